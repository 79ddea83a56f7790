"""LM Studio's older routes: OpenAI's calls, with what they measured."""

from __future__ import annotations

from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app import __version__
from app.server.calls.call import Begun
from app.server.calls.model_host import ModelHost
from app.server.calls.schemas import ChatCompletionBody, CompletionBody
from app.server.chat.call import ChatCall, ChatChoice, ChatRun
from app.server.chat.model_card import facts_of
from app.server.openai import chat
from app.server.openai import completions as texts
from app.server.openai import embeddings as vectors
from app.server.openai.chat import ChatReply
from app.server.openai.completions import CompletionCall, TextChoice, TextReply
from app.server.openai.embeddings import EmbeddingsBody
from app.server.openai.timings import ReplyChoice
from core.values.messages import FinishReason, LoadedModel


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

    def of(self, choice: ReplyChoice, *, is_call: bool = False) -> dict[str, Any]:
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


def _stop_reason(choice: ReplyChoice, *, is_call: bool) -> str:
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
