"""``/slipstream/workers``: other machines that lend their devices to a model. Tokens go in only, into the keyring."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.http.body import Body, as_asked
from app.server.http.limits import check_owner
from app.settings.worker_tokens import add_worker, forget_worker, known_workers, tokens_for
from core.remote_devices.borrowing import look
from core.values.addresses import WORKER_SCHEME, worker_address
from core.values.errors import BadOption, BadRequest, SlipstreamError
from models.formatting.sentence import Sentence

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
    check_owner(http, "Workers are listed")
    addresses = await asyncio.to_thread(known_workers)
    found = await asyncio.gather(*(asyncio.to_thread(_look, address) for address in addresses))
    return JSONResponse(as_asked(http, {"object": "list", "data": found}))


async def add(body: WorkerBody, http: HttpRequest) -> Response:
    """Try a worker with its token; keep both where it answers."""
    check_owner(http, "Workers are changed")
    return JSONResponse(await asyncio.to_thread(_add, body.address.strip(), body.token.strip()), 201)


async def remove(place: str, http: HttpRequest) -> Response:
    """Forget a worker, named as HOST:PORT, and its token."""
    check_owner(http, "Workers are changed")
    address = f"{WORKER_SCHEME}{place}"
    await asyncio.to_thread(forget_worker, address)
    return JSONResponse({"address": address, "removed": True})


def _add(typed: str, token: str) -> dict[str, Any]:
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
    if not add_worker(address, token):
        raise BadRequest(_NO_KEYRING)
    return found


def _look(address: str) -> dict[str, Any]:
    token = dict(tokens_for((address,))).get(address)
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
        address,
        devices=devices,
        bandwidth=worker.link.bandwidth,
        latency=worker.link.latency,
        is_busy=worker.is_busy,
    )


def _wire(address: str, *, problem: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"address": address, "problem": problem, "devices": [], "is_busy": False} | facts
