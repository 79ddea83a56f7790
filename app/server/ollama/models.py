"""The models in Ollama's shapes: what is there, what one is, what is in memory."""

from __future__ import annotations

import asyncio
import hashlib
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from app.server.calls.model_host import Entry
from app.server.calls.model_pool import ModelPool
from app.server.chat.model_card import card_of, facts_of, loaded_of
from app.server.http.errors import refuse
from app.server.ollama.bodies import ShowBody
from app.server.ollama.chat import shown_name
from core.values.errors import BadRequest
from models.facts.model_facts import ModelFacts
from models.formatting.figures import parameters
from models.gguf.errors import GgufError
from models.gguf.header import GgufHeader, MetadataValue, StoredArray, StoredText, read_header

# The release of Ollama whose routes these are. Clients refuse older ones: Copilot below 0.6.4, codex below 0.13.4.
VERSION = "0.32.15"
# A list in a header is shown up to this length, as a vocabulary has 100,000 entries; with ``verbose`` all of it.
_MOST_LISTED = 64
_NEVER = timedelta(days=36_500)  # when a model leaves memory that stays there


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
    pool: ModelPool = http.app.state.pool
    return JSONResponse({"models": await asyncio.to_thread(_listed, pool)})


async def processes(http: HttpRequest) -> Response:
    """List the models in memory."""
    pool: ModelPool = http.app.state.pool
    return JSONResponse({"models": await asyncio.to_thread(_running, pool)})


async def show(body: ShowBody, http: HttpRequest) -> Response:
    """Return what a model is: its details, its header, its template, and what it can do."""
    pool: ModelPool = http.app.state.pool
    entry = await entry_of(pool, body.named)
    card = await card_of(entry, pool, http.app.state.renderer)
    if card is None:
        raise refuse(404, f"The file of {entry.name} cannot be read: {entry.path.name}.", param="model")
    facts = await asyncio.to_thread(_header_facts, entry.path, is_verbose=bool(body.verbose))
    information = facts | {"general.parameter_count": card.facts.n_params}
    host = pool.of(entry)
    settings: dict[str, Any] = {}
    if card.loaded is not None and host is not None:
        settings = {"num_ctx": card.loaded.n_ctx} | host.own.sampling
    return JSONResponse(
        {
            "license": card.facts.licence or "",
            "modelfile": f"FROM {entry.name}\n",
            "parameters": "\n".join(f"{name:30} {value}" for name, value in settings.items()),
            "template": card.template,
            "details": _details(card.facts),
            "model_info": information,
            "capabilities": list(card.capabilities),
            "modified_at": _time(card.modified),
        }
    )


async def entry_of(pool: ModelPool, name: str) -> Entry:
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


def _model(entry: Entry) -> dict[str, Any] | None:
    facts = facts_of(entry)
    try:
        modified = entry.path.stat().st_mtime
    except OSError:
        return None
    if facts is None:
        return None
    name = shown_name(entry.name)
    # Files are not read for it: it names this version of the file, and is not the hash of its content.
    digest = hashlib.sha256(f"{entry.path}\n{modified}\n{facts.n_bytes}".encode()).hexdigest()
    return {
        "name": name,
        "model": name,
        "modified_at": _time(modified),
        "size": facts.n_bytes,
        "digest": digest,
        "details": _details(facts),
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
