"""The models in Ollama's shapes: what is there, what one is, what is in memory; downloads and removals."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from app.server.calls.model_pool import ModelPool, pool_of
from app.server.chat.model_card import card_of, facts_of, loaded_of
from app.server.http.errors import ModelNotFound, refuse
from app.server.http.sse import LineStream, while_connected
from app.server.library.pulls import PullState, begin, find_pull, may_be, meant, remove
from app.server.library.worker import LibraryWorker, library_of
from app.server.ollama.bodies import ModelBody, PullBody, ShowBody
from app.server.ollama.chat import shown_name
from app.server.remotes.exchange import Remotes, model_at_remote
from app.server.remotes.listed import ListedModel
from core.values.errors import BadRequest
from models.catalog.catalog import ModelEntry
from models.download.progress import DownloadPhase
from models.facts.model_facts import ModelFacts
from models.formatting.figures import parameters
from models.formatting.program import PROGRAM, advice
from models.gguf.errors import GgufError
from models.gguf.header import GgufHeader, MetadataValue, StoredArray, StoredText, read_header

# The release of Ollama whose routes these are. Clients refuse older ones: Copilot below 0.6.4, codex below 0.13.4.
VERSION = "0.32.15"
# A list in a header is shown up to this length, as a vocabulary has 100,000 entries; with ``verbose`` all of it.
_MOST_LISTED = 64
# This client shows models by their base names: quantisations would be called alike, and some files have none.
_SHOWS_BASE_NAMES = "GitHubCopilotChat/"
_NEVER = timedelta(days=36_500)  # when a model leaves memory that stays there
# A remote does not say of which family a model is, but clients look up the context under a family's name. The remote
# decides how long the model stays in memory; here it counts as running for as long as it would at Ollama.
_REMOTE_FAMILY, _REMOTE_SECONDS = "remote", 300.0


async def root(http: HttpRequest) -> Response:
    """Say what runs here: clients look whether it is Ollama, and people where to read on."""
    if "text/html" in http.headers.get("accept", ""):
        return PlainTextResponse("Slipstream is running. Its routes are listed at /docs.")
    return PlainTextResponse("Ollama is running")


async def version(http: HttpRequest) -> Response:
    """Return the version of the protocol."""
    return JSONResponse({"version": VERSION})


async def tags(http: HttpRequest) -> Response:
    """List the models that can be used."""
    pool = pool_of(http)
    here = await asyncio.to_thread(_listed, pool)
    return JSONResponse({"models": [*here, *(_remote_model(one) for one in await _remotes(http).models())]})


async def processes(http: HttpRequest) -> Response:
    """List the models in memory, and those of remotes that were used lately."""
    pool = pool_of(http)
    here = await asyncio.to_thread(_running, pool)
    used = _remotes(http).figures.used
    there = [one for one in await _remotes(http).models() if used.get(one.name, 0.0) + _REMOTE_SECONDS > time.time()]
    return JSONResponse({"models": [*here, *(_remote_process(one, used[one.name]) for one in there)]})


async def show(body: ShowBody, http: HttpRequest) -> Response:
    """Return what a model is: its details, its header, its template, and what it can do."""
    card = await _shown(body, http)
    if http.headers.get("user-agent", "").startswith(_SHOWS_BASE_NAMES):
        card["model_info"]["general.basename"] = body.named  # as Ollama does for it
    return JSONResponse(card)


async def _shown(body: ShowBody, http: HttpRequest) -> dict[str, Any]:
    pool = pool_of(http)
    there = await model_at_remote(http, body.named)
    if there is not None:
        listed = await _remotes(http).models()
        found = next((one for one in listed if one.name == there.name), None)
        its_own = [one.name for one in listed if one.remote == there.remote and one.answers]
        if found is None and its_own:
            raise ModelNotFound(body.named, its_own)
        return _remote_card(found or ListedModel(there.remote, there.id))
    entry = await entry_of(pool, body.named)
    card = await card_of(entry, pool, http.app.state.renderer)
    if card is None:
        raise refuse(404, f"The file of {entry.name} cannot be read: {entry.path.name}.", param="model")
    facts = await asyncio.to_thread(_header_facts, entry.path, is_verbose=bool(body.verbose))
    information = facts | {"general.parameter_count": card.facts.n_params}
    host = pool.of(entry)
    settings: dict[str, Any] = {}
    if card.loaded is not None and host is not None:
        told = {name: value for name, value in host.sampling.items() if not isinstance(value, dict | list)}
        settings = {"num_ctx": card.loaded.n_ctx} | told
    return {
        "license": card.facts.licence or "",
        "modelfile": f"FROM {entry.name}\n",
        "parameters": "\n".join(f"{name:30} {value}" for name, value in settings.items()),
        "template": card.template,
        "details": _details(card.facts),
        "model_info": information,
        "capabilities": list(card.capabilities),
        "modified_at": _time(card.modified),
    }


async def entry_of(pool: ModelPool, name: str) -> ModelEntry:
    """Return the model of a name as Ollama's clients write it; raises ModelNotFound and LoadFailed."""
    entries = await asyncio.to_thread(pool.entries)
    known = next((entry for entry in entries if name in (entry.name, shown_name(entry.name))), None)
    return known if known is not None else await asyncio.to_thread(pool.find, name)


def _listed(pool: ModelPool) -> list[dict[str, Any]]:
    found = (_model(entry) for entry in pool.entries() if entry.problem is None)
    return [model for model in found if model is not None]


def _running(pool: ModelPool) -> list[dict[str, Any]]:
    models = []
    for entry in pool.entries():
        loaded = loaded_of(entry, pool)
        model = _model(entry) if loaded is not None else None
        if loaded is None or model is None:
            continue
        seconds = pool.settings.idle_unload
        leaves = datetime.now(UTC) + (timedelta(seconds=seconds) if seconds is not None else _NEVER)
        facts = facts_of(entry)
        n_layers = facts.n_layers if facts is not None else 0
        share = min(loaded.n_gpu_layers / (n_layers or 1), 1.0)
        del model["modified_at"]
        models.append(
            model
            | {
                "size": loaded.n_bytes,
                "size_vram": round(loaded.n_bytes * share),
                "expires_at": leaves.isoformat(),
                "context_length": loaded.n_ctx,
            }
        )
    return models


def _model(entry: ModelEntry) -> dict[str, Any] | None:
    facts = facts_of(entry)
    try:
        modified = entry.path.stat().st_mtime
    except OSError:
        return None
    if facts is None:
        return None
    name = shown_name(entry.name)
    # It identifies this version of the file. A hash of the content would take reading all of it.
    digest = hashlib.sha256(os.fsencode(f"{entry.path}\n{modified}\n{facts.n_bytes}")).hexdigest()
    return {
        "name": name,
        "model": name,
        "modified_at": _time(modified),
        "size": facts.n_bytes,
        "digest": digest,
        "details": _details(facts),
    }


def _remotes(http: HttpRequest) -> Remotes:
    remotes: Remotes = http.app.state.remotes
    return remotes


def _remote_model(model: ListedModel) -> dict[str, Any]:
    """Return a remote's model as Ollama lists those of its own cloud."""
    name = shown_name(model.name)
    digest = hashlib.sha256(f"{model.remote.url}\n{model.id}".encode()).hexdigest()
    details = {
        "parent_model": "",
        "format": "",
        "family": _REMOTE_FAMILY,
        "families": [_REMOTE_FAMILY],
        "parameter_size": "",
        "quantization_level": model.quantisation,
        "context_length": model.n_ctx,
    }
    return {
        "name": name,
        "model": name,
        "remote_model": model.id,
        "remote_host": model.remote.url,
        "modified_at": _time(model.created or model.remote.changed),
        "size": model.n_bytes,
        "digest": digest,
        "details": details,
    }


def _remote_process(model: ListedModel, used: float) -> dict[str, Any]:
    told = _remote_model(model) | {"size": 0, "size_vram": 0, "expires_at": _time(used + _REMOTE_SECONDS)}
    del told["modified_at"]
    return told | {"context_length": model.n_ctx}


def _remote_card(model: ListedModel) -> dict[str, Any]:
    told = _remote_model(model)
    context = {f"{_REMOTE_FAMILY}.context_length": model.n_ctx} if model.n_ctx else {}
    return {
        "license": "",
        "modelfile": f"FROM {model.name}\n",
        "parameters": f"{'num_ctx':30} {model.n_ctx}" if model.n_ctx else "",
        "template": "",
        "remote_model": told["remote_model"],
        "remote_host": told["remote_host"],
        "details": told["details"],
        "model_info": {"general.architecture": _REMOTE_FAMILY, **context},
        "capabilities": list(model.capabilities),
        "modified_at": told["modified_at"],
    }


def _details(facts: ModelFacts) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": facts.architecture,
        "families": [facts.architecture],
        "parameter_size": parameters(facts.n_params),
        "quantization_level": facts.quantisation,
        "context_length": facts.n_ctx_train,
        "embedding_length": facts.n_embd,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _header_facts(path: Path, *, is_verbose: bool) -> dict[str, Any]:
    """Return the metadata of a file; without ``is_verbose`` long lists are null. The template has its own field."""
    try:
        header = read_header(path)
        names = [name for name in header.metadata if name != "tokenizer.chat_template"]
        return {name: _value(header, name, is_verbose=is_verbose) for name in names}
    except GgufError as error:
        raise BadRequest(str(error), param="model") from None


def _value(header: GgufHeader, name: str, *, is_verbose: bool) -> Any:
    value: MetadataValue = header.metadata[name]
    if isinstance(value, StoredText):
        return header.text(name)
    if isinstance(value, StoredArray):
        many = (header.strings(name) if value.item == "s" else header.integers(name)) if is_verbose else None
        return list(many) if many is not None else None
    if isinstance(value, tuple):
        return [_number(one) for one in value] if is_verbose or len(value) <= _MOST_LISTED else None
    return _number(value)


def _number(value: Any) -> Any:
    """Return a value that JSON knows: it has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Status = dict[str, Any]
# How often the queue of downloads is asked, in seconds: often enough for a progress bar.
_LOOK_SECONDS = 0.25
_SILENCE = 10.0  # seconds without a byte after which that is told, and told again
_GATHERING = {"status": "pulling manifest"}


async def pull(body: PullBody, http: HttpRequest) -> Response:
    """Download a model, and tell how far it is. It goes on in the library when the client leaves."""
    there = await model_at_remote(http, body.named)
    steps = _here() if there is not None else _pulled(library_of(http), pool_of(http), body.named)
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
            f"{there.name} is a model of the remote {name}, and not removed from here. "
            f"{advice(f'`{PROGRAM} remotes remove {name}`', '“Remove” on the page Server')} forgets the remote.",
            param="model",
        )
    pool = pool_of(http)
    entry = await entry_of(pool, body.named)
    if not await asyncio.to_thread(may_be, body.named, entry):
        raise ModelNotFound(body.named, pool.names())
    await remove(library_of(http), pool, entry)
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
        state = await find_pull(library, wanted)
        if state is None:
            if await meant(library, pool, name) is None:  # somebody cleared the list of what is done
                yield {"status": "success"}
                return
            raise refuse(400, f"The download of {wanted.repo_id} was taken off the list.")
        if state.problem:
            raise refuse(400, state.problem)
        status = _status(state)
        if status != told:
            told = status
            yield status
        if state.phase is DownloadPhase.DONE:
            pool.look_again()
            yield {"status": "writing manifest"}
            yield {"status": "success"}
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _status(state: PullState) -> Status:
    if state.phase in (DownloadPhase.QUEUED, DownloadPhase.OTHER_INSTANCE, DownloadPhase.CHECKING):
        return _GATHERING
    if state.phase is DownloadPhase.VERIFYING:
        return {"status": "verifying sha256 digest"}
    if state.silence >= _SILENCE:
        silence = state.silence // _SILENCE * _SILENCE
        return {"status": f"still trying: nothing has arrived for {silence:.0f} s"}
    digest, done = state.pull.digest, {"total": state.n_total, "completed": state.n_done}
    return {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", **done}


async def _last(steps: AsyncGenerator[Status, None]) -> Status:
    return [status async for status in steps][-1]


async def _lines(steps: AsyncGenerator[Status, None]) -> AsyncGenerator[bytes, None]:
    async for status in steps:
        yield _line(status)


def _line(status: Status) -> bytes:
    return json.dumps(status).encode() + b"\n"
