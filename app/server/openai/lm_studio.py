"""LM Studio's own routes: models with what they are, and OpenAI's calls with what they measured."""

from __future__ import annotations

from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app import __version__
from app.environment.paths import models_folder
from app.server.calls.call import Begun
from app.server.calls.model_host import ModelHost
from app.server.calls.schemas import ChatCompletionBody, CompletionBody
from app.server.chat.call import ChatCall, ChatChoice, ChatRun
from app.server.chat.model_card import ModelCard, cards_of, facts_of
from app.server.http.errors import ModelNotFound
from app.server.openai import chat
from app.server.openai import completions as texts
from app.server.openai import embeddings as vectors
from app.server.openai.chat import ChatReply
from app.server.openai.completions import CompletionCall, TextChoice, TextReply
from app.server.openai.embeddings import EmbeddingsBody
from app.server.openai.reply import Choice
from core.values.messages import FinishReason, LoadedModel
from models.formatting.figures import parameters


class TextBody(CompletionBody):
    """The body of POST /api/v0/completions: without a limit, a text goes on as long as the model likes."""

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated; None for as many as there is room for."""
        return self.max_tokens


async def chat_completions(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream."""
    return await chat.respond(body, http, MeasuredChat)


async def completions(body: TextBody, http: HttpRequest) -> Response:
    """Continue the prompts, as one object or as a stream."""
    return await texts.respond(body, http, MeasuredText)


async def embeddings(body: EmbeddingsBody, http: HttpRequest) -> Response:
    """Return the vectors of the inputs."""
    return await vectors.embeddings(body, http)


async def list_models(http: HttpRequest) -> Response:
    """List the models, loaded or not."""
    cards = await cards_of(http.app.state.pool, http.app.state.renderer)
    return JSONResponse({"object": "list", "data": [_model(card) for card in cards]})


async def get_model(model_id: str, http: HttpRequest) -> Response:
    """Return one model; 404 with the names there are."""
    cards = await cards_of(http.app.state.pool, http.app.state.renderer)
    for card in cards:
        if card.name == model_id:
            return JSONResponse(_model(card))
    raise ModelNotFound(model_id, [card.name for card in cards])


async def list_models_v1(http: HttpRequest) -> Response:
    """List the models as the newer route does."""
    cards = await cards_of(http.app.state.pool, http.app.state.renderer)
    return JSONResponse({"models": [_model_v1(card) for card in cards]})


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
        config = {"context_length": loaded.n_ctx, "parallel": loaded.n_slots}
        instances.append({"id": card.name, "config": config})
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


def _is_embedder(card: ModelCard) -> bool:
    return "embedding" in card.capabilities


def _publisher(card: ModelCard) -> str:
    """Return whose repository a model was downloaded from; "local" for other files."""
    folder = models_folder()
    is_downloaded = card.path.is_relative_to(folder) and len(card.path.relative_to(folder).parts) > 2
    return card.path.relative_to(folder).parts[0] if is_downloaded else "local"


class _Measured:
    """The blocks that these routes add to an answer, and to the last chunk of a choice."""

    def __init__(self, host: ModelHost, model: LoadedModel) -> None:
        facts = facts_of(host.entry) if host.entry is not None else None
        self._blocks = {
            "model_info": {
                "arch": model.architecture,
                "quant": facts.quantisation if facts is not None else "",
                "format": "gguf",
                "context_length": model.n_ctx,
            },
            "runtime": {"name": "slipstream", "version": __version__, "supported_formats": ["gguf"]},
        }

    def of(self, choice: Choice, *, is_call: bool = False) -> dict[str, Any]:
        """Return the blocks for a choice that has ended."""
        if choice.end is None:
            return self._blocks
        receipt = choice.end.receipt
        stats = {
            "tokens_per_second": round(receipt.decode_rate, 2),
            "time_to_first_token": round(receipt.ttft, 4),
            "generation_time": round(receipt.decode, 4),
            "stop_reason": _stop_reason(choice, is_call=is_call),
        }
        return {"stats": stats, **self._blocks}


def _stop_reason(choice: Choice, *, is_call: bool) -> str:
    assert choice.end is not None
    if choice.end.reason is FinishReason.LENGTH:
        return "maxPredictedTokensReached"
    if is_call:
        return "toolCalls"
    return "stopStringFound" if choice.end.stop else "eosFound"


class MeasuredChat(ChatReply):
    """A chat's answer with what it measured."""

    def __init__(self, call: ChatCall, run: ChatRun) -> None:
        super().__init__(call, run)
        self._measured = _Measured(call.host, run.model)

    def _cost(self) -> dict[str, Any]:
        choice: ChatChoice = self._choices[0]
        return super()._cost() | self._measured.of(choice, is_call=bool(choice.calls))

    def _chunk(self, index: int, content: dict[str, Any], *told: Any, **more: Any) -> bytes:
        if more.get("finish_reason") is not None:
            choice = self._choices[index]
            more |= self._measured.of(choice, is_call=bool(choice.calls))
        return super()._chunk(index, content, *told, **more)


class MeasuredText(TextReply):
    """A text with what it measured."""

    def __init__(self, call: CompletionCall, begun: Begun) -> None:
        super().__init__(call, begun)
        self._measured = _Measured(call.host, begun.model)

    def _cost(self) -> dict[str, Any]:
        return super()._cost() | self._measured.of(self._choices[0])

    def _chunk(self, index: int, content: dict[str, Any], *told: Any, **more: Any) -> bytes:
        choice: TextChoice = self._choices[index]
        if choice.end is not None:
            more |= self._measured.of(choice)
        return super()._chunk(index, content, *told, **more)
