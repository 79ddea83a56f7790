"""The models as LM Studio lists them, loaded or not; loading, unloading and downloading."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.environment.paths import models_folder
from app.server.calls.model_pool import ModelPool, pool_of
from app.server.chat.model_card import ModelCard, cards_of
from app.server.http.body import LenientBody
from app.server.http.errors import ModelNotFound, refuse
from app.server.http.sse import while_connected
from app.server.library.pulls import Pull, PullState, begin, find_pull, meant, states
from app.server.library.worker import library_of
from app.server.remotes.exchange import model_at_remote
from app.server.remotes.listed import ListedModel
from core.values.messages import LoadedModel
from models.download.progress import DownloadPhase
from models.formatting.figures import parameters


class LmStudioLoadBody(LenientBody):
    """The body of POST /api/v1/models/load."""

    model: str = Field(min_length=1)


class LmStudioUnloadBody(LenientBody):
    """The body of POST /api/v1/models/unload."""

    instance_id: str = Field(min_length=1)


async def greet() -> Response:
    """Say that LM Studio's routes are here: its packages ask before they open the websocket that tells them no."""
    return JSONResponse({"lmstudio": True})


async def list_models(http: HttpRequest) -> Response:
    """List the models, loaded or not, and those of remotes."""
    cards = await cards_of(pool_of(http), http.app.state.renderer)
    there = [_remote_model(one) for one in await http.app.state.remotes.models()]
    return JSONResponse({"object": "list", "data": [*map(_model, cards), *there]})


async def get_model(model_id: str, http: HttpRequest) -> Response:
    """Return one model; 404 with the names there are."""
    cards = await cards_of(pool_of(http), http.app.state.renderer)
    for card in cards:
        if card.name == model_id:
            return JSONResponse(_model(card))
    there = await http.app.state.remotes.models() if "/" in model_id else []
    for one in there:
        if one.name == model_id:
            return JSONResponse(_remote_model(one))
    raise ModelNotFound(model_id, [card.name for card in cards] + [one.name for one in there])


async def list_models_v1(http: HttpRequest) -> Response:
    """List the models as the newer route does."""
    cards = await cards_of(pool_of(http), http.app.state.renderer)
    there = [_remote_model_v1(one) for one in await http.app.state.remotes.models()]
    return JSONResponse({"models": [*map(_model_v1, cards), *there]})


async def load_model(body: LmStudioLoadBody, http: HttpRequest) -> Response:
    """Load a model, and answer when it is there. How it is loaded is set elsewhere: other fields change nothing."""
    began = time.monotonic()
    pool = pool_of(http)

    async def load() -> dict[str, Any]:
        entry = await pool.request_load(body.model)
        async with pool.lease(entry.name) as host:
            assert host.model is not None
            kind = "llm" if host.model.can_write else "embedding"
            return {"type": kind, **_instance(entry.name), "load_config": _config(host.model)}

    loaded = await while_connected(http.receive, load())
    return JSONResponse(loaded | {"load_time_seconds": round(time.monotonic() - began, 3), "status": "loaded"})


async def unload_model(body: LmStudioUnloadBody, http: HttpRequest) -> Response:
    """Unload a model as soon as no call has it."""
    pool = pool_of(http)
    entry = await pool.request_unload(body.instance_id)
    return JSONResponse(_instance(entry.name))


def _model(card: ModelCard) -> dict[str, Any]:
    kind = "embeddings" if _is_embedder(card) else "vlm" if "vision" in card.capabilities else "llm"
    found = {
        "id": card.name,
        "object": "model",
        "type": kind,
        "publisher": _publisher(card),
        "arch": card.facts.architecture,
        "compatibility_type": "gguf",
        "quantization": card.facts.quantisation,
        "state": "not-loaded" if card.loaded is None else "loaded",
        "max_context_length": card.facts.n_ctx_train,
        "capabilities": ["tool_use"] if "tools" in card.capabilities else [],
    }
    return found if card.loaded is None else found | {"loaded_context_length": card.loaded.n_ctx}


def _model_v1(card: ModelCard) -> dict[str, Any]:
    facts, loaded = card.facts, card.loaded
    instances: list[dict[str, Any]] = []
    if loaded is not None:
        instances.append({"id": card.name, "config": _config(loaded)})
    bits = round(8 * facts.weight_bytes / facts.n_params, 2) if facts.n_params else None
    found = {
        "type": "embedding" if _is_embedder(card) else "llm",
        "publisher": _publisher(card),
        "key": card.name,
        "display_name": facts.title or card.name,
        "architecture": facts.architecture,
        "quantization": {"name": facts.quantisation, "bits_per_weight": bits},
        "size_bytes": facts.n_bytes,
        "params_string": parameters(facts.n_params) or None,
        "loaded_instances": instances,
        "max_context_length": facts.n_ctx_train,
        "format": "gguf",
    }
    if _is_embedder(card):
        return found
    can: dict[str, Any] = {
        "vision": "vision" in card.capabilities,
        "trained_for_tool_use": "tools" in card.capabilities,
    }
    if "thinking" in card.capabilities:
        can["reasoning"] = {"allowed_options": ["off", "on"], "default": "on"}
    return found | {"capabilities": can, "description": None}


def _remote_model(model: ListedModel) -> dict[str, Any]:
    can = model.capabilities
    return {
        "id": model.name,
        "object": "model",
        "type": "embeddings" if "embedding" in can else "vlm" if "vision" in can else "llm",
        "publisher": model.remote.name,
        "arch": "",
        "compatibility_type": "remote",
        "quantization": model.quantisation,
        "state": "loaded" if model.answers else "not-loaded",
        "max_context_length": model.n_ctx,
        "capabilities": ["tool_use"] if "tools" in can else [],
    }


def _remote_model_v1(model: ListedModel) -> dict[str, Any]:
    can = model.capabilities
    instances = [{"id": model.name, "config": {"context_length": model.n_ctx}}] if model.answers else []
    found = {
        "type": "embedding" if "embedding" in can else "llm",
        "publisher": model.remote.name,
        "key": model.name,
        "display_name": model.name,
        "architecture": None,
        "quantization": {"name": model.quantisation, "bits_per_weight": None} if model.quantisation else None,
        "size_bytes": model.n_bytes,
        "params_string": None,
        "loaded_instances": instances,
        "max_context_length": model.n_ctx,
        "format": None,
    }
    if "embedding" in can:
        return found
    told = {"vision": "vision" in can, "trained_for_tool_use": "tools" in can}
    return found | {"capabilities": told, "description": None}


def _instance(name: str) -> dict[str, Any]:
    """Return which model is meant: its versions name the field differently."""
    return {"instance_id": name, "model_instance_id": name}


def _config(model: LoadedModel) -> dict[str, Any]:
    return {"context_length": model.n_ctx, "parallel": model.n_slots}


def _is_embedder(card: ModelCard) -> bool:
    return "embedding" in card.capabilities


def _publisher(card: ModelCard) -> str:
    """Return whose repository a model was downloaded from; "local" for other files."""
    folder = models_folder()
    is_downloaded = card.path.is_relative_to(folder) and len(card.path.relative_to(folder).parts) > 2
    return card.path.relative_to(folder).parts[0] if is_downloaded else "local"


_MOST_BEGUN = 100  # downloads that are remembered once they are off the list
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
    library = library_of(http)
    if await model_at_remote(http, name) is not None:
        return JSONResponse({"status": "already_downloaded"})
    pull = await while_connected(http.receive, meant(library, pool_of(http), name))
    if pull is None:
        return JSONResponse({"status": "already_downloaded"})
    await begin(library, pull)
    begun: dict[str, Pull] = http.app.state.begun_pulls
    begun[_job_id(pull)] = pull
    for old in list(begun)[:-_MOST_BEGUN]:
        del begun[old]
    state = await find_pull(library, pull)
    if state is None:
        raise refuse(400, f"The download of {pull.repo_id} was taken off the list: ask again.", param="model")
    return JSONResponse(_job(state))


async def download_status(job_id: str, http: HttpRequest) -> Response:
    """Say how far a download is."""
    found = [one for one in await states(library_of(http)) if _job_id(one.pull) == job_id]
    pull = http.app.state.begun_pulls.get(job_id)
    if not found and pull is not None:  # it was taken off the list: what is done, or was cancelled
        return JSONResponse(await _off_the_list(pull, pool_of(http)))
    if not found:
        raise refuse(
            404,
            f"There is no download {job_id[:80]!r} in the list: start one with POST /api/v1/models/download.",
            param="job_id",
            code="job_not_found",
        )
    return JSONResponse(_job(max(found, key=lambda one: one.number)))


async def _off_the_list(pull: Pull, pool: ModelPool) -> dict[str, Any]:
    try:
        entry = await asyncio.to_thread(pool.find, f"{pull.repo_id}:{pull.wanted}")
    except ModelNotFound:
        error = {"type": "internal_error", "message": f"The download of {pull.repo_id} was taken off the list."}
        return {"job_id": _job_id(pull), "status": "failed", "error": error}
    sizes = {"total_size_bytes": entry.n_bytes, "downloaded_bytes": entry.n_bytes}
    done = {"job_id": _job_id(pull), "status": "completed", **sizes}
    return done | {"completed_at": _time(datetime.fromtimestamp(entry.path.stat().st_mtime, UTC))}


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
