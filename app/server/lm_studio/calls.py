"""LM Studio's older routes: OpenAI's calls, with what they measured."""

from __future__ import annotations

from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app import __version__
from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.schemas import CompletionBody
from app.server.chat.model_card import facts_of
from app.server.chat.run import Choice
from app.server.openai import chat
from app.server.openai import completions as texts
from app.server.openai import embeddings as vectors
from app.server.openai.chat import ChatReply
from app.server.openai.completions import TextReply
from app.server.openai.embeddings import EmbeddingsBody
from app.server.openai.timings import OpenAiReply
from core.values.messages import Ended, FinishReason


class TextBody(CompletionBody):
    """The body of POST /api/v0/completions: without a limit, a text goes on as long as the model likes."""

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated; None for as many as there is room for."""
        return None if self.max_tokens is None else super().token_limit


async def chat_completions(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream."""
    return await chat.reply_with(MeasuredChat, body, http)


async def completions(body: TextBody, http: HttpRequest) -> Response:
    """Continue the prompts, as one object or as a stream."""
    return await texts.reply_with(MeasuredText, body, http)


async def embeddings(body: EmbeddingsBody, http: HttpRequest) -> Response:
    """Return the vectors of the inputs."""
    return await vectors.embeddings(body, http)


class _Measured(OpenAiReply):
    """An answer with the blocks that these routes add to it, and to the last chunk of a choice."""

    def _cost(self) -> dict[str, Any]:
        return super()._cost() | self._of(self._choices[0])

    def _chunk(self, index: int, content: dict[str, Any], *told: Any, **more: Any) -> bytes:
        if more.get("finish_reason") is not None:
            more |= self._of(self._choices[index])
        return super()._chunk(index, content, *told, **more)

    def _of(self, choice: Choice) -> dict[str, Any]:
        """Return the blocks for a choice; what it measured once it has ended."""
        entry, model = self._call.host.entry, self._run.model
        facts = facts_of(entry) if entry is not None else None
        blocks: dict[str, Any] = {
            "model_info": {
                "arch": model.architecture,
                "quant": facts.quantisation if facts is not None else "",
                "format": "gguf",
                "context_length": model.n_ctx,
            },
            "runtime": {"name": "slipstream", "version": __version__, "supported_formats": ["gguf"]},
        }
        if choice.end is None:
            return blocks
        receipt = choice.end.receipt
        stats = {
            "tokens_per_second": round(receipt.decode_rate, 2),
            "time_to_first_token": round(receipt.ttft, 4),
            "generation_time": round(receipt.decode, 4),
            "stop_reason": _stop_reason(choice, choice.end),
        }
        return {"stats": stats, **blocks}


def _stop_reason(choice: Choice, end: Ended) -> str:
    if end.reason is FinishReason.LENGTH:
        return "maxPredictedTokensReached"
    if choice.calls:
        return "toolCalls"
    return "stopStringFound" if end.stop else "eosFound"


class MeasuredChat(_Measured, ChatReply):
    """A chat's answer with what it measured."""


class MeasuredText(_Measured, TextReply):
    """A text with what it measured."""
