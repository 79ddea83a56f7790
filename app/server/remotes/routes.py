"""``/slipstream/remotes`` and ``/slipstream/workers``: other servers and lent devices. Keys and tokens go in only."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.http.body import Body, as_asked
from app.server.http.limits import check_here
from app.server.remotes.exchange import Remotes
from app.settings import worker_tokens
from core.remote_devices.borrowing import look
from core.values.addresses import WORKER_SCHEME, worker_address
from core.values.errors import BadOption, BadRequest, SlipstreamError
from models.formatting.sentence import Sentence


class RemoteBody(Body):
    """The body of POST /slipstream/remotes."""

    name: str = Field(min_length=1)
    url: str = Field(min_length=1)
    key: str | None = None
    fallback: str | None = None
    models: list[str] = Field(default_factory=list)


async def list_remotes(http: HttpRequest) -> Response:
    """List the remotes with their models; ``problem`` says why one does not answer."""
    remotes = _remotes(http)
    lists = await remotes.upstream.lists()
    found = [known.as_dict(one) for one, known in lists.items()]
    return JSONResponse(as_asked(http, {"object": "list", "data": found}))


async def add_remote(body: RemoteBody, http: HttpRequest) -> Response:
    """Add a remote, or replace the one of this name, and say whether it answers."""
    check_here(http, "Remotes are changed")
    remotes = _remotes(http)
    remote = await asyncio.to_thread(
        remotes.store.add, body.name, body.url, key=body.key, fallback=body.fallback, models=body.models
    )
    return JSONResponse(as_asked(http, (await remotes.upstream.ask(remote)).as_dict(remote)), 201)


async def test_remote(name: str, http: HttpRequest) -> Response:
    """Ask a remote for its models now."""
    remotes = _remotes(http)
    remote = remotes.store.named(name)
    began = time.monotonic()
    known = await remotes.upstream.ask(remote)
    found = known.as_dict(remote) | {"seconds": round(time.monotonic() - began, 3)}
    return JSONResponse(as_asked(http, found))


async def remove_remote(name: str, http: HttpRequest) -> Response:
    """Forget a remote and its key."""
    check_here(http, "Remotes are changed")
    await asyncio.to_thread(_remotes(http).store.remove, name)
    return JSONResponse({"name": name, "removed": True})


def _remotes(http: HttpRequest) -> Remotes:
    remotes: Remotes = http.app.state.remotes
    return remotes


_NO_KEYRING = Sentence(
    "This system has no keyring that could keep the worker's token, so the worker was not added. "
    "On Linux, a desktop session with GNOME Keyring or KWallet has one."
)
_NO_TOKEN = Sentence("Its token is not in this system's keyring any more: add the worker again.")


class WorkerBody(Body):
    """The body of POST /slipstream/workers."""

    address: str = Field(min_length=1, max_length=300)
    token: str = Field(min_length=1, max_length=4_096)


async def list_workers(http: HttpRequest) -> Response:
    """List the workers that were added and what they lend; ``problem`` says why one does not answer."""
    check_here(http, "Workers are listed")
    addresses = await asyncio.to_thread(worker_tokens.known_workers)
    found = await asyncio.gather(*(asyncio.to_thread(_look, address) for address in addresses))
    return JSONResponse(as_asked(http, {"object": "list", "data": found}))


async def add_worker(body: WorkerBody, http: HttpRequest) -> Response:
    """Try a worker with its token; keep both where it answers."""
    check_here(http, "Workers are changed")
    return JSONResponse(await asyncio.to_thread(_added, body.address.strip(), body.token.strip()), 201)


async def remove_worker(place: str, http: HttpRequest) -> Response:
    """Forget a worker, named as HOST:PORT, and its token."""
    check_here(http, "Workers are changed")
    address = f"{WORKER_SCHEME}{place}"
    if not await asyncio.to_thread(worker_tokens.forget_worker, address):
        raise BadRequest(Sentence("There is no worker {address}.", address=address[:80]), param="place")
    return JSONResponse({"address": address, "removed": True})


def _added(typed: str, token: str) -> dict[str, Any]:
    try:
        host, port = worker_address(typed if "://" in typed else f"{WORKER_SCHEME}{typed}")
    except BadOption as error:
        raise BadRequest(
            Sentence("The address of a worker is as it is shown there, as rpc://192.168.1.20:8643.")
        ) from error
    address = f"{WORKER_SCHEME}{f'[{host}]' if ':' in host else host}:{port}"
    found = _asked(address, token)
    if found["problem"]:
        raise BadRequest(found["problem"])
    if not worker_tokens.add_worker(address, token):
        raise BadRequest(_NO_KEYRING)
    return found


def _look(address: str) -> dict[str, Any]:
    token = dict(worker_tokens.tokens_for((address,))).get(address)
    return _asked(address, token) if token else _wire(address, problem=_NO_TOKEN)


def _asked(address: str, token: str) -> dict[str, Any]:
    try:
        worker = look(address, token)
    except SlipstreamError as error:
        return _wire(address, problem=str(error))
    devices = [
        {"name": one.name, "description": one.description, "free": one.free, "total": one.total}
        for one in worker.devices
    ]
    return _wire(
        address, devices=devices, bandwidth=worker.link.bandwidth, latency=worker.link.latency, is_busy=worker.is_busy
    )


def _wire(address: str, *, problem: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"address": address, "problem": problem, "devices": [], "is_busy": False} | facts
