"""POST /api/pull and DELETE /api/delete: the library's downloads and removals in Ollama's shapes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_pool import ModelPool
from app.server.http.errors import refuse
from app.server.http.sse import LineStream, while_connected
from app.server.library.pulls import PullState, begin, meant, remove
from app.server.library.pulls import state as state_of
from app.server.library.worker import LibraryWorker
from app.server.ollama.bodies import ModelBody, PullBody
from app.server.ollama.models import entry_of
from app.server.remotes.chat import model_at_remote
from models.download.progress import DownloadPhase
from models.formatting.program import PROGRAM

Status = dict[str, Any]
# How often the queue of downloads is asked, in seconds: often enough for a progress bar.
_LOOK_SECONDS = 0.25
_GATHERING = {"status": "pulling manifest"}


async def pull(body: PullBody, http: HttpRequest) -> Response:
    """Download a model, and tell how far it is. It goes on in the library when the client leaves."""
    there = await model_at_remote(http, body.named)
    steps = _here() if there is not None else _pulled(http.app.state.library, http.app.state.pool, body.named)
    if body.stream is not False:
        return LineStream(_lines(steps), ping=_line(_GATHERING))
    return JSONResponse(await while_connected(http.receive, _last(steps)))


async def delete(body: ModelBody, http: HttpRequest) -> Response:
    """Move a downloaded model to the trash."""
    there = await model_at_remote(http, body.named)
    if there is not None:
        name = there.remote.name
        raise refuse(
            400,
            f"{there.name} is a model of the remote {name}, and not removed from here. `{PROGRAM} remotes remove "
            f"{name}` forgets the remote.",
            param="model",
        )
    pool: ModelPool = http.app.state.pool
    await remove(http.app.state.library, pool, await entry_of(pool, body.named))
    return Response()


async def unsupported(http: HttpRequest) -> Response:
    """Refuse what is done with Ollama's own store of models, which is not here."""
    raise refuse(
        501,
        f"{http.url.path} is not done here: models are GGUF files. Put one into the models folder, or use /api/pull "
        "with hf.co/OWNER/REPOSITORY:QUANTISATION.",
    )


async def no_blob(digest: str) -> Response:
    """Say that no such blob is here."""
    raise refuse(404, f"There is no blob {digest[:80]!r} here: models are GGUF files in the models folder.")


async def unsupported_blob(digest: str, http: HttpRequest) -> Response:
    """Refuse to take a blob into Ollama's own store of models."""
    return await unsupported(http)


async def _here() -> AsyncGenerator[Status, None]:
    """Yield what is told of a model that needs no download."""
    yield _GATHERING
    yield {"status": "success"}


async def _pulled(library: LibraryWorker, pool: ModelPool, name: str) -> AsyncGenerator[Status, None]:
    wanted = await meant(library, pool, name)
    if wanted is None:
        async for status in _here():
            yield status
        return
    await begin(library, wanted)
    told: Status = {}
    while True:
        state = await state_of(library, wanted)
        if state is None:
            raise refuse(400, f"The download of {wanted.repo_id} was taken off the list.", param="model")
        if state.problem:
            raise refuse(400, state.problem, param="model")
        status = _status(state)
        if status != told:
            told = status
            yield status
        if state.phase is DownloadPhase.DONE:
            yield {"status": "writing manifest"}
            yield {"status": "success"}
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _status(state: PullState) -> Status:
    if state.phase in (DownloadPhase.QUEUED, DownloadPhase.OTHER_INSTANCE, DownloadPhase.CHECKING):
        return _GATHERING
    if state.phase is DownloadPhase.VERIFYING:
        return {"status": "verifying sha256 digest"}
    digest, done = state.pull.digest, {"total": state.n_total, "completed": state.n_done}
    return {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", **done}


async def _last(steps: AsyncGenerator[Status, None]) -> Status:
    return [status async for status in steps][-1]


async def _lines(steps: AsyncGenerator[Status, None]) -> AsyncGenerator[bytes, None]:
    async for status in steps:
        yield _line(status)


def _line(status: Status) -> bytes:
    return json.dumps(status).encode() + b"\n"
