"""POST /api/v1/models/download, and how far a download is, in LM Studio's shapes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.http.body import LenientBody
from app.server.http.errors import refuse
from app.server.http.sse import while_connected
from app.server.library.pulls import Pull, PullState, begin, meant, states
from app.server.library.pulls import state as state_of
from app.server.library.worker import LibraryWorker
from app.server.remotes.chat import model_at_remote
from models.download.progress import DownloadPhase

_QUANTISATION = re.compile(r"[\w.-]{1,100}")
_STATUSES = {
    DownloadPhase.PAUSED: "paused",
    DownloadPhase.FAILED: "failed",
    DownloadPhase.CANCELLED: "failed",
    DownloadPhase.DONE: "completed",
}


class LmStudioDownloadBody(LenientBody):
    """The body: a repository of the Hub, or its address there."""

    model: str = Field(min_length=1)
    quantization: str | None = Field(None, min_length=1)


async def download_model(body: LmStudioDownloadBody, http: HttpRequest) -> Response:
    """Begin to download a model, and say how far that is; it goes on when the client leaves."""
    if body.quantization is not None and not _QUANTISATION.fullmatch(body.quantization):
        raise refuse(400, "quantization is written as Q4_K_M, or left out for what fits.", param="quantization")
    name = body.model if body.quantization is None else f"{body.model.rstrip('/')}:{body.quantization}"
    library: LibraryWorker = http.app.state.library
    if await model_at_remote(http, name) is not None:
        return JSONResponse({"status": "already_downloaded"})
    pull = await while_connected(http.receive, meant(library, http.app.state.pool, name))
    if pull is None:
        return JSONResponse({"status": "already_downloaded"})
    await begin(library, pull)
    state = await state_of(library, pull)
    if state is None:
        raise refuse(400, f"The download of {pull.repo_id} was taken off the list: ask again.", param="model")
    return JSONResponse(_job(state))


async def download_status(job_id: str, http: HttpRequest) -> Response:
    """Say how far a download is."""
    found = [one for one in await states(http.app.state.library) if _job_id(one.pull) == job_id]
    if not found:
        raise refuse(
            404,
            f"There is no download {job_id[:80]!r} in the list: start one with POST /api/v1/models/download.",
            param="job_id",
            code="job_not_found",
        )
    return JSONResponse(_job(max(found, key=lambda one: one.number)))


def _job_id(pull: Pull) -> str:
    return f"job_{pull.digest[:10]}"


def _job(state: PullState) -> dict[str, Any]:
    job: dict[str, Any] = {"job_id": _job_id(state.pull), "status": _STATUSES.get(state.phase, "downloading")}
    job |= {"total_size_bytes": state.n_total, "downloaded_bytes": state.n_done}
    if not state.is_over:
        job["bytes_per_second"] = state.bytes_per_second
        if state.eta is not None:
            job["estimated_completion"] = _time(datetime.now(UTC) + timedelta(seconds=min(state.eta, 1e9)))
    elif state.phase is DownloadPhase.DONE and state.files and (path := Path(state.files[0])).exists():
        job["completed_at"] = _time(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    elif state.problem:
        job["error"] = {"type": "internal_error", "message": state.problem}
    return job


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
