"""/props, /slots and /lora-adapters: what the server is set to, what its slots run, and saving what they hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast, get_args

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app import __version__
from app.server.calls.engine_bridge import LiveRequest
from app.server.calls.generation import answered, new_id
from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import CompletionBody, LoraScale
from app.server.chat.model_card import template_capabilities
from app.server.http.body import LenientBody
from app.server.http.errors import refuse
from app.server.http.keys import cache_salt, may_see
from core.values.errors import BadRequest, EngineUnavailable
from core.values.messages import EnginePhase, LoadedModel
from core.values.request import Request, SamplingParams, SlotAction, SlotDone, SlotRequest
from models.files.errors import UnsafeName
from models.files.safe_path import safe_parts
from models.formatting.safe_text import in_utf8

_RANDOM_SEED = 2**32 - 1  # as llama-server writes a seed that is drawn
_ACTIONS = get_args(SlotAction)


async def properties(http: HttpRequest) -> Response:
    """Return the properties of the loaded model and the defaults of its requests."""
    host = await _host(http)
    model = _model(host)
    calls_tools = "tools" in await template_capabilities(model, http.app.state.renderer)
    return JSONResponse(
        {
            "default_generation_settings": {
                "id": 0,
                "n_ctx": model.n_ctx,
                "speculative": _speculates(model),
                "is_processing": False,
                "params": sampling_settings(_defaults(host), None),
            },
            "total_slots": model.n_slots,
            "model_alias": host.name,
            "model_path": in_utf8(model.path),
            "chat_template": model.chat_template or "",
            # Editors offer tools only where it says so.
            "chat_template_caps": {"supports_tools": calls_tools, "supports_tool_calls": calls_tools},
            "bos_token": model.bos,
            "eos_token": model.eos,
            "modalities": {"vision": bool(model.mmproj), "audio": False},
            "build_info": f"slipstream-{__version__}",
            "is_sleeping": host.model is None,
        }
    )


async def tokenizer_info(http: HttpRequest) -> Response:
    """Return what vLLM says of a tokenizer; evaluation harnesses then count by /tokenize and need no copy of it."""
    model = _model(await _host(http))
    return JSONResponse({"bos_token": model.bos, "eos_token": model.eos, "chat_template": model.chat_template})


async def change_properties(http: HttpRequest, body: dict[str, Any] | None = None) -> Response:
    """Change nothing, as llama-server: it has no property that could be changed either. A field is refused by name."""
    pool = pool_of(http)
    if not pool.settings.allows_props:
        raise refuse(501, "This server does not support changing global properties. Start it with `--props`.")
    if body:
        field = next(iter(body))
        raise refuse(
            400,
            f"{field[:40]} cannot be changed while the server runs: send it with each request, or start the server "
            "with its option.",
            param=field,
        )
    return JSONResponse({"success": True})


async def slots(http: HttpRequest) -> Response:
    """List the slots; with ``fail_on_no_slot=1``, 503 where none is free. Of others' requests nothing is told."""
    host = await _host(http)
    model = _model(host)
    running = {one.slot: one for one in host.bridge.live if one.slot is not None}
    if http.query_params.get("fail_on_no_slot") == "1" and len(running) >= model.n_slots:
        raise refuse(503, "No slot is free.", code="no_slot_available")
    numbers = range(max(model.n_slots, max(running, default=0) + 1))
    return JSONResponse([_slot(number, running.get(number), model) for number in numbers])


class SlotBody(LenientBody):
    """The body of POST /slots/ID."""

    filename: str | None = None
    model: str | None = None


async def act_on_slot(id_slot: int, http: HttpRequest, body: SlotBody | None = None) -> Response:
    """Save what a slot holds to a file of the folder for that, restore it from there, or erase it."""
    pool = pool_of(http)
    folder = pool.settings.slot_save_path
    if folder is None:
        raise refuse(
            501,
            "This server does not support slots action. Start it with `--slot-save-path FOLDER`. Without it, prompts "
            "are kept in memory and on disk, and found again, by themselves.",
        )
    action = http.query_params.get("action", "")
    if action not in _ACTIONS:
        raise refuse(400, f"action must be save, restore or erase, not {action[:40]!r}.", param="action")
    body = body or SlotBody()
    name = "" if action == "erase" else _file_name(body.filename)
    path = str(folder.absolute() / name) if name else ""  # the engine's process may run in another folder
    request = SlotRequest(new_id("slot"), id_slot, cast(SlotAction, action), path, cache_salt())
    done, _ = await answered(http, body.model or http.query_params.get("model"), request, SlotDone)
    milliseconds = round(done.seconds * 1_000, 3)
    told: dict[str, Any] = {"id_slot": id_slot}
    if action == "erase":
        return JSONResponse(told | {"n_erased": done.n_tokens})
    told["filename"] = name
    if action == "save":
        told |= {"n_saved": done.n_tokens, "n_written": done.n_bytes, "timings": {"save_ms": milliseconds}}
    else:
        told |= {"n_restored": done.n_tokens, "n_read": done.n_bytes, "timings": {"restore_ms": milliseconds}}
    return JSONResponse(told)


def _file_name(name: str | None) -> str:
    """Return the name of a slot's file: never a path, nor what some systems cannot store. Raises ApiError."""
    if name is None:
        raise refuse(400, "Missing required field: filename.", param="filename", code="missing_required_parameter")
    try:
        (name,) = safe_parts(name)
    except (UnsafeName, ValueError):
        raise refuse(
            400, f"filename must be the plain name of a file, as story.bin, not {name[:40]!r}.", param="filename"
        ) from None
    return name


async def _host(http: HttpRequest) -> ModelHost:
    """Return the engine of the model that the query names, else of the chosen one."""
    pool = pool_of(http)
    return await pool.named(http.query_params.get("model"))


def _model(host: ModelHost) -> LoadedModel:
    if (model := host.model or host.asleep) is not None:
        return model
    if host.state.phase is EnginePhase.EMPTY:
        raise EngineUnavailable(f"{host.name or 'No model'} is not loaded: the next request for a text loads it.")
    raise EngineUnavailable(host.state.problem or "The model is being loaded.", retry_after=1.0)


def _defaults(host: ModelHost) -> SamplingParams:
    """Return the sampling of a request that says nothing of it."""
    body = CompletionBody(prompt="any").model_copy(update=host.sampling)
    return next(body.sampling(None))


def _speculates(model: LoadedModel) -> bool:
    return bool(model.draft_path) or model.has_heads


def _slot(number: int, live: LiveRequest | None, model: LoadedModel) -> dict[str, Any]:
    slot: dict[str, Any] = {"id": number, "n_ctx": model.n_ctx, "speculative": _speculates(model)}
    if live is None:
        return slot | {"is_processing": False}
    if not may_see(live.made_by):  # its stop strings and its grammar are somebody's texts
        return slot | {"is_processing": True}
    limit, n_done = live.request.max_tokens, live.n_tokens
    return slot | {
        "id_task": live.request.id,
        "is_processing": True,
        "lane": live.request.lane.value,
        "n_prompt_tokens": live.n_prompt,
        "params": sampling_settings(live.request.sampling, live.request),
        "next_token": [
            {"has_next_token": True, "n_remain": -1 if limit is None else limit - n_done, "n_decoded": n_done}
        ],
    }


def sampling_settings(sampling: SamplingParams, request: Request | None) -> dict[str, Any]:
    """Return the settings of a generation in llama-server's names; those of ``request`` or the defaults."""
    settings = asdict(sampling)
    for ours in ("logprobs", "top_logprobs", "typical_p", "logit_bias"):
        del settings[ours]
    limit = -1 if request is None or request.max_tokens is None else request.max_tokens
    constraint = request.constraint if request is not None else None
    return settings | {
        "seed": _RANDOM_SEED if sampling.seed is None else sampling.seed,
        "typ_p": sampling.typical_p,
        "typical_p": sampling.typical_p,
        "logit_bias": [list(one) for one in sampling.logit_bias],
        "n_probs": sampling.top_logprobs,
        "n_predict": limit,
        "max_tokens": limit,
        "stop": list(request.stop) if request is not None else [],
        "grammar": constraint.text if constraint is not None and constraint.kind in ("gbnf", "lark") else "",
    }


async def list_adapters(http: HttpRequest) -> Response:
    """List the adapters with the scales of requests that say none."""
    host = _adapted(http)
    pairs = zip(host.adapters, host.lora_scales, strict=False)
    return JSONResponse([{"id": index, "path": path, "scale": scale} for index, (path, scale) in enumerate(pairs)])


async def scale_adapters(body: list[LoraScale], http: HttpRequest) -> Response:
    """Change the scales for requests to come, of all keys; an adapter that is not listed gets 0."""
    host = _adapted(http)
    if host.model is not None and not host.model.can_write:
        raise BadRequest("A model for vectors has the scales that it was started with: serve --lora FILE:SCALE.")
    host.lora_scales = host.lora_of(body) or host.lora_scales
    return JSONResponse({"success": True})


def _adapted(http: HttpRequest) -> ModelHost:
    """Return the engine whose model has adapters, else that of the chosen model."""
    pool = pool_of(http)
    return next((host for host in pool.hosts if host.adapters), pool.main)
