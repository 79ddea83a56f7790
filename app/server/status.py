"""Routes for models, health, the engine's state, and loading a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import ModelPool, pool_of
from app.server.calls.schemas import LoadBody, UnloadBody
from app.server.calls.speed import why_no_spark
from app.server.chat.model_card import STATUS, ModelCard, card_of, loaded_of
from app.server.http.body import as_asked
from app.server.http.errors import ModelNotFound
from app.server.remotes.exchange import Remotes
from app.server.remotes.upstream import SERVER_ID
from app.settings.model_settings_store import note_choice
from core.values.messages import EnginePhase, Snapshot
from models.catalog.catalog import ModelEntry
from models.formatting.safe_text import in_utf8

HEALTH = {
    EnginePhase.READY: "ok",
    EnginePhase.LOADING: "loading",
    EnginePhase.RESTARTING: "restarting",
    EnginePhase.FAILED: "error",
    EnginePhase.EMPTY: "unloaded",
}


async def health(http: HttpRequest) -> Response:
    """Say whether requests are answered: 200, else 503, and what the engine does without and why.

    A model that was unloaded is loaded by the next request, and so is one whose engine was lost, with a worker or by
    dying often: who stays away until this says 200 would wait for ever. A model that has never come up is a 503.
    """
    host = pool_of(http).main
    state = host.state
    phase = state.phase
    if phase is EnginePhase.FAILED and await asyncio.to_thread(lambda: host.comes_back):
        phase = EnginePhase.EMPTY
    body = {
        "status": HEALTH[phase],
        "model": host.name or None,
        "progress": state.progress,
        "problem": state.problem,
        "deaths": state.n_deaths,
        "left_out": list(state.left_out),
        "retry_in": round(host.seconds_to_retry, 1) if phase is EnginePhase.FAILED else None,
    }
    return JSONResponse(body, 200 if phase in (EnginePhase.READY, EnginePhase.EMPTY) else 503)


async def list_models(http: HttpRequest) -> Response:
    """List the models that can be named in requests."""
    data = await _models(http) + await _remote_models(http)
    if _is_anthropic(http):
        return JSONResponse(as_anthropic(data))
    return JSONResponse({"object": "list", "data": data}, headers={SERVER_ID: http.app.state.remotes.upstream.id})


async def get_model(model_id: str, http: HttpRequest) -> Response:
    """Return one model; 404 with the names there are."""
    models = await _models(http)
    for listed in (*models, *(await _remote_models(http) if "/" in model_id else ())):
        if listed["id"] == model_id:
            return JSONResponse(anthropic_model(listed) if _is_anthropic(http) else listed)
    raise ModelNotFound(model_id, [model["id"] for model in models])


def _is_anthropic(http: HttpRequest) -> bool:
    return "anthropic-version" in http.headers


async def _models(http: HttpRequest) -> list[dict[str, Any]]:
    """Return the models as they are listed, and behind them each alias as one of its own."""
    pool = pool_of(http)
    entries = await asyncio.to_thread(pool.entries)
    models = {}
    for entry in entries:
        if entry.problem is None:
            card = await card_of(entry, pool, http.app.state.renderer, is_quick=True)
            models[entry.name] = _model(entry, pool) | (_of_card(card) if card is not None else {})
    aliases = {alias: name for alias, name in pool.aliases.items() if name in models and alias not in models}
    for name, model in models.items():
        model["aliases"] = [alias for alias, of in aliases.items() if of == name]
    return [*models.values(), *(models[name] | {"id": alias, "alias_of": name} for alias, name in aliases.items())]


async def _remote_models(http: HttpRequest) -> list[dict[str, Any]]:
    return [one.as_openai() for one in await http.app.state.remotes.models()]


def _of_card(card: ModelCard) -> dict[str, Any]:
    """Return what is known of a model's file: as vLLM, LM Studio, OpenRouter and llama-server name it."""
    facts, loaded = card.facts, card.loaded
    n_ctx = loaded.n_ctx if loaded is not None else facts.n_ctx_train
    return {
        "context_length": n_ctx,
        "max_model_len": n_ctx,
        "max_context_length": facts.n_ctx_train,
        "size": facts.n_bytes,
        "quantization": facts.quantisation,
        "capabilities": list(card.capabilities),
        "architecture": {
            "input_modalities": ["text", *(["image"] if "vision" in card.capabilities else [])],
            "output_modalities": ["embeddings" if "embedding" in card.capabilities else "text"],
        },
        "meta": {
            "n_vocab": loaded.n_vocab if loaded is not None else facts.n_vocab,
            "n_ctx": n_ctx,
            "n_ctx_train": facts.n_ctx_train,
            "n_embd": facts.n_embd,
            "n_params": facts.n_params,
            "size": facts.weight_bytes,
        },
    }


def _model(entry: ModelEntry, pool: ModelPool) -> dict[str, Any]:
    return {
        "id": entry.name,
        "object": "model",
        "created": int(entry.path.stat().st_mtime) if entry.path.exists() else 0,
        "owned_by": "slipstream",
        "is_toy": entry.is_toy,
        "loaded": loaded_of(entry, pool) is not None,
        "status": {"value": _status(entry, pool)},  # as llama-server's router
    }


def _status(entry: ModelEntry, pool: ModelPool) -> str:
    host = next((one for one in pool.hosts if one.entry is not None and one.entry.path == entry.path), None)
    if host is not None:
        return STATUS[host.state.phase]
    return "loading" if pool.of(entry) is not None else "unloaded"  # calls wait until another has left


async def state(http: HttpRequest) -> Response:
    """Return where the engine stands, with what is known of the model."""
    return JSONResponse(as_asked(http, state_of(pool_of(http), http.app.state.remotes)))


def state_of(pool: ModelPool, remotes: Remotes) -> dict[str, Any]:
    """Return the body of the state: that of the chosen model, and in ``models`` a line for each engine."""
    host = pool.main
    model, now, entry = host.model, host.state, host.entry
    body: dict[str, Any] = {
        "phase": now.phase.value,
        "progress": now.progress,
        "problem": now.problem,
        "model": host.name or None,
        "is_toy": entry.is_toy if entry is not None else False,
        "active": host.bridge.n_active,
        "queued": host.bridge.n_queued + host.n_waiting,
    }
    names = ("n_ctx", "n_slots", "architecture", "n_params", "description", "n_threads", "devices")
    more = ("n_bytes", "n_ctx_train", "n_cells", "n_gpu_layers", "n_cpu_moe", "kv_type", "load_seconds")
    body |= {name: getattr(model, name, None) for name in (*names, *more)}
    is_ready = now.phase is EnginePhase.READY
    body["snapshot"] = _gauges(host.bridge.snapshot) if is_ready else None
    body["last_reply"] = _gauges(host.bridge.last_reply) if is_ready else None
    body["has_chat_template"] = model is not None and model.chat_template is not None
    body["spark"] = model.spark.name if model is not None and model.spark is not None else None
    drafter = _draft_name(host)
    why = host.draft.why if drafter == host.draft.name else why_no_spark(host)
    body["draft"] = {"name": drafter, "why": why, "notices": list(host.draft.notices)}
    body["left_out"] = list(now.left_out)
    body["notices"] = [*(model.notices if model is not None else ()), *now.left_out]
    body["why_no_spark"] = why_no_spark(host)
    body["sees_images"] = model is not None and bool(model.mmproj)
    body["has_fim"] = model is not None and model.fim is not None
    # What their models are called, also while a remote has not said which it has.
    body["remotes"] = list(remotes.store.all())
    body["models"] = [_engine(one) for one in pool.hosts if one.entry is not None]
    return body


def _engine(host: ModelHost) -> dict[str, Any]:
    return {
        "model": host.name,
        "phase": host.state.phase.value,
        "progress": host.state.progress,
        "n_bytes": host.model.n_bytes if host.model is not None else None,
        "active": host.bridge.n_active,
        "queued": host.bridge.n_queued + host.n_waiting,
    }


def _draft_name(host: ModelHost) -> str | None:
    """Return who drafts for the loaded model; None where nobody does, or what was wanted could not be loaded."""
    draft, model = host.draft, host.model
    if model is None:
        return None
    if model.draft_path != (str(draft.path) if draft.path is not None else ""):
        return in_utf8(Path(model.draft_path).stem) or None
    # Heads in the model's own file have no file to compare.
    return draft.name if model.draft_path or model.has_heads else None


def _gauges(snapshot: Snapshot | None) -> dict[str, Any] | None:
    """Return what the engine last said of its speed; None before its first step."""
    return asdict(snapshot) | {"acceptance": snapshot.acceptance} if snapshot is not None else None


async def load(body: LoadBody, http: HttpRequest) -> Response:
    """Begin to load a model once running requests have ended; the state says when it is ready.

    Other protocols' requests to load a model come from programs: only here is it the user's choice.
    """
    entry = await pool_of(http).request_load(body.model)
    asyncio.get_running_loop().run_in_executor(None, note_choice, entry.path)
    return JSONResponse({"model": entry.name}, 202)


async def cancel_load(http: HttpRequest) -> Response:
    """End a load that goes on: no model is loaded then, and the calls that wait for it end with an error."""
    host = pool_of(http).main
    return JSONResponse({"model": host.name or None, "cancelled": host.cancel_load()})


async def unload(body: UnloadBody, http: HttpRequest) -> Response:
    """Free the memory of the model once running requests have ended; the next request loads it again."""
    entry = await pool_of(http).request_unload(body.model)
    return JSONResponse({"model": entry.name}, 202)


def as_anthropic(models: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a list of models in OpenAI's form as a whole page of Anthropic's."""
    data = [anthropic_model(model) for model in models]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"data": data, "has_more": False, **ends}


def anthropic_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model in OpenAI's form as one in Anthropic's."""
    created = datetime.fromtimestamp(model.get("created") or 0, UTC).isoformat().replace("+00:00", "Z")
    return {"type": "model", "id": model["id"], "display_name": model["id"], "created_at": created}
