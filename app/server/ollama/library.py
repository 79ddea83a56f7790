"""POST /api/pull and DELETE /api/delete: the library's downloads and removals in Ollama's shapes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_pool import ModelPool
from app.server.http.errors import ModelNotFound, refuse
from app.server.http.sse import LineStream, while_connected
from app.server.ollama.bodies import ModelBody, PullBody
from app.server.ollama.models import entry_of
from app.server.remotes.chat import model_at_remote
from models.catalog.curated import curated
from models.download.progress import DownloadPhase
from models.formatting.json_values import value_of
from models.formatting.program import PROGRAM

Status = dict[str, Any]
# How often the queue of downloads is asked, in seconds: often enough for a progress bar.
_LOOK_SECONDS = 0.25
_HUB_NAMES = re.compile(r"(?:https?://)?(?:hf\.co|huggingface\.co)/(.+)", re.IGNORECASE)
_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+?)(?::([\w./-]+))?")
_GATHERING = {"status": "pulling manifest"}
_ENDED = (DownloadPhase.FAILED, DownloadPhase.CANCELLED, DownloadPhase.PAUSED)


class Library(Protocol):
    """The library's process, as it is asked here."""

    def ask(self, name: str, fields: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the parts of the answer; raises ApiError."""


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
    entry = await entry_of(http.app.state.pool, body.named)
    async with http.app.state.pool.without(lambda file: file == entry.path and not entry.is_toy):
        await _asked(http.app.state.library, "RemoveModel", name=entry.name)
    return Response()


async def unsupported(http: HttpRequest) -> Response:
    """Refuse what is done with Ollama's own store of models, which is not here."""
    raise refuse(
        501,
        f"{http.url.path} is not done here: models are GGUF files. Put one into the models folder, or use /api/pull "
        "with hf.co/OWNER/REPOSITORY:QUANTISATION.",
    )


async def no_blob(http: HttpRequest) -> Response:
    """Say that no such blob is here."""
    raise refuse(404, "There are no blobs here: models are GGUF files in the models folder.")


async def _here() -> AsyncGenerator[Status, None]:
    """Yield what is told of a model that needs no download."""
    yield _GATHERING
    yield {"status": "success"}


async def _pulled(library: Library, pool: ModelPool, name: str) -> AsyncGenerator[Status, None]:
    wanted = await _meant(library, pool, name)
    if wanted is None:
        async for status in _here():
            yield status
        return
    repo_id, file = wanted
    await _asked(library, "StartDownload", repo_id=repo_id, wanted=file)
    # Tells downloads apart; the hash of the file is not known here.
    digest = hashlib.sha256(f"{repo_id}:{file}".encode()).hexdigest()
    told: Status = {}
    while True:
        jobs = [job for job in await _asked(library, "ListDownloads") if (job["repo_id"], job["wanted"]) == wanted]
        if not jobs:
            raise refuse(400, f"The download of {repo_id} was taken off the list.", param="model")
        job = max(jobs, key=lambda job: int(job["number"]))
        phase = DownloadPhase(job["progress"]["phase"])
        if phase in _ENDED:
            why = (
                value_of(str, job["trouble"]["sentence"])
                if job["trouble"]
                else f"The download of {repo_id} is {phase.value}."
            )
            raise refuse(400, why, param="model")
        status = _status(phase, job["progress"], digest)
        if status != told:
            told = status
            yield status
        if phase is DownloadPhase.DONE:
            yield {"status": "writing manifest"}
            yield {"status": "success"}
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _status(phase: DownloadPhase, progress: dict[str, Any], digest: str) -> Status:
    if phase in (DownloadPhase.QUEUED, DownloadPhase.OTHER_INSTANCE, DownloadPhase.CHECKING):
        return _GATHERING
    if phase is DownloadPhase.VERIFYING:
        return {"status": "verifying sha256 digest"}
    done = {"total": progress["n_total"], "completed": progress["n_done"]}
    return {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", **done}


async def _meant(library: Library, pool: ModelPool, name: str) -> tuple[str, str] | None:
    """Return the repository and the file or quantisation that a name stands for; None for a model that is here."""
    try:
        await entry_of(pool, name)
    except ModelNotFound:
        pass
    else:
        return None
    on_hub = _HUB_NAMES.fullmatch(name)
    found = _REPOSITORY.fullmatch(on_hub[1] if on_hub else name)
    if found is None:
        plain = _plain(name.removesuffix(":latest"))
        model = next((model for model in curated().models if _plain(model.title) == plain), None)
        if model is None:
            raise refuse(
                404,
                f"No model is known as {name[:200]!r}: name a repository of the Hugging Face Hub, as "
                "hf.co/OWNER/REPOSITORY:QUANTISATION, or a model of /slipstream/library/suggestions, as qwen3.5:4b.",
                param="model",
            )
        return model.repo_id, model.files[0].quantisation
    repo_id, wanted = found[1], found[2] or ""
    if wanted in ("", "latest"):
        advice = await _asked(library, "Recommend", repo_id=repo_id)
        if advice["name"] is None:
            raise refuse(400, value_of(str, advice["sentence"]), param="model")
        wanted = advice["name"]
    return repo_id, wanted


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-")


async def _asked(library: Library, request: str, **fields: Any) -> Any:
    """Return an answer that comes in one part."""
    parts = [part async for part in library.ask(request, fields)]
    return parts[-1] if parts else None


async def _last(steps: AsyncGenerator[Status, None]) -> Status:
    return [status async for status in steps][-1]


async def _lines(steps: AsyncGenerator[Status, None]) -> AsyncGenerator[bytes, None]:
    async for status in steps:
        yield _line(status)


def _line(status: Status) -> bytes:
    return json.dumps(status).encode() + b"\n"
