"""``/slipstream/remotes``: which remotes there are, whether they answer; adding and removing them. Keys go in only."""

from __future__ import annotations

import asyncio
import time

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.http.body import Body, as_asked
from app.server.http.limits import check_owner
from app.server.remotes.exchange import Remotes


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
    lists = await remotes.lists.all()
    found = [known.as_dict(one) for one, known in lists.items()]
    return JSONResponse(as_asked(http, {"object": "list", "data": found}))


async def add_remote(body: RemoteBody, http: HttpRequest) -> Response:
    """Add a remote, or replace the one of this name, and say whether it answers."""
    check_owner(http, "Remotes are changed")
    remotes = _remotes(http)
    remote = await asyncio.to_thread(
        remotes.store.add, body.name, body.url, key=body.key, fallback=body.fallback, models=body.models
    )
    return JSONResponse(as_asked(http, (await remotes.lists.ask(remote)).as_dict(remote)), 201)


async def test_remote(name: str, http: HttpRequest) -> Response:
    """Ask a remote for its models now."""
    remotes = _remotes(http)
    remote = remotes.store.named(name)
    began = time.monotonic()
    known = await remotes.lists.ask(remote)
    found = known.as_dict(remote) | {"seconds": round(time.monotonic() - began, 3)}
    return JSONResponse(as_asked(http, found))


async def remove_remote(name: str, http: HttpRequest) -> Response:
    """Forget a remote and its key."""
    check_owner(http, "Remotes are changed")
    await asyncio.to_thread(_remotes(http).store.remove, name)
    return JSONResponse({"name": name, "removed": True})


def _remotes(http: HttpRequest) -> Remotes:
    remotes: Remotes = http.app.state.remotes
    return remotes
