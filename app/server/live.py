"""What the server does just now: the requests that have not ended, and a stream of states for gauges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.engine_bridge import AskedRequest, LiveRequest
from app.server.calls.model_pool import ModelPool, pool_of
from app.server.http.body import wants_facts
from app.server.http.errors import cancelled, refuse
from app.server.http.keys import may_see
from app.server.http.sse import EventStream, encode_event
from app.server.remotes.exchange import Remotes
from app.server.remotes.figures import RemoteFigures, RemoteRequest
from app.server.status import state_of
from core.values.request import EmbedRequest
from models.formatting.json_values import plain

# As often as a gauge can be read; a state that has not changed is not sent.
_SECONDS = 0.1


async def list_requests(http: HttpRequest) -> Response:
    """List the requests that have not ended: those that whoever asks may see."""
    return JSONResponse({"object": "list", "data": _requests(pool_of(http), http.app.state.remotes.figures)})


async def cancel_request(request_id: str, http: HttpRequest) -> Response:
    """End a request early: its client is told so, in a stream behind what has come. The owner may end all."""
    pool = pool_of(http)
    figures: RemoteFigures = http.app.state.remotes.figures
    here = ((host, one) for host in pool.hosts for one in (*host.bridge.live, *host.bridge.asked))
    ids = {one.request.id: host for host, one in here if may_see(one.made_by)}
    if request_id in figures.live and may_see(figures.live[request_id].made_by):
        figures.live[request_id].end(cancelled())
    elif request_id in ids:
        ids[request_id].bridge.cancel(request_id)
    else:
        raise refuse(404, f"There is no request {request_id[:80]!r} that runs or waits.", param="request_id")
    return JSONResponse({"id": request_id, "object": "request", "cancelled": True})


async def events(http: HttpRequest) -> Response:
    """Stream the state whenever it changes, with the requests that have not ended."""
    return EventStream(_states(pool_of(http), http.app.state.remotes, with_facts=wants_facts(http)))


async def _states(pool: ModelPool, remotes: Remotes, *, with_facts: bool) -> AsyncGenerator[bytes, None]:
    last: dict[str, Any] | None = None
    while not pool.is_closing:
        now = {"type": "state", **state_of(pool, remotes), "requests": _requests(pool, remotes.figures)}
        if now != last:
            last = now
            yield encode_event(plain(now) if with_facts else now)
        await asyncio.sleep(_SECONDS)


def _requests(pool: ModelPool, figures: RemoteFigures) -> list[dict[str, Any]]:
    now = time.monotonic()
    here = [
        {"id": live.request.id, "model": host.name, "who": live.who, "slot": live.slot}
        | {"lane": live.request.lane.value, **_progress(live, now, is_running=live.slot is not None)}
        for host, live in pool.live
        if may_see(live.made_by)
    ]
    asked = ((host, one) for host in pool.hosts for one in host.bridge.asked if may_see(one.made_by))
    vectors = (_vectors(one, host.name, now) for host, one in asked)
    there = [
        {"id": one.id, "model": one.to.name, "remote": one.to.remote.name, "slot": None}
        | {"lane": one.lane.value, **_progress(one, now, is_running=one.has_slot)}
        for one in figures.live.values()
        if may_see(one.made_by)
    ]
    return [*here, *(one for one in vectors if one is not None), *there]


def _progress(live: LiveRequest | RemoteRequest, now: float, *, is_running: bool) -> dict[str, Any]:
    """Return how far a request is, as it is listed; ``phase`` is waiting, prefill or decode."""
    seconds = now - live.decoding_since if live.decoding_since is not None else 0.0
    return {
        "phase": "decode" if live.decoding_since is not None else "prefill" if is_running else "waiting",
        "n_prompt": live.n_prompt,
        "n_cached": live.n_cached,
        "n_generated": live.n_tokens,
        "tokens_per_second": round((live.n_tokens - 1) / seconds, 1) if live.n_tokens > 1 and seconds > 0 else None,
        "seconds": round(now - live.since, 1),
    }


def _vectors(asked: AskedRequest, model: str, now: float) -> dict[str, Any] | None:
    """Return a request for vectors or scores as it is listed; None for one of tokens, which lasts milliseconds."""
    if not isinstance(asked.request, EmbedRequest):
        return None
    return {
        "id": asked.request.id,
        "model": model,
        "who": asked.who,
        "lane": asked.request.lane.value,
        "phase": "embed",
        "n_inputs": len(asked.request.inputs),
        "seconds": round(now - asked.since, 1),
    }
