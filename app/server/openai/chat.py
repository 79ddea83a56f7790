"""POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app.server.calls.generation import ChoiceUpdate
from app.server.calls.model_host import ModelHost
from app.server.http.sse import encode_text
from app.server.openai.call import Begun, Call, Reply, finish_reason
from app.server.openai.deep import DeepReply, DeepReplyProgress, check_deep
from app.server.openai.schemas import ChatCompletionBody
from app.server.openai.speed import ReplySpeed
from app.server.openai.timings import chat_logprobs, timings
from app.server.openai.tool_calls import ToolCall, ToolCallParser
from app.server.templates.chat_template import TemplateRenderer
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel
from core.values.receipt import Receipt


async def chat_completions(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream."""
    return await ChatCall(body, http.app.state.host, http.app.state.renderer).respond(http.receive)


class ChatCall(Call[ChatCompletionBody]):
    """One call of the endpoint."""

    PROMPT_FIELD = "messages"
    ID_PREFIX = "chat"

    def __init__(self, body: ChatCompletionBody, host: ModelHost, renderer: TemplateRenderer) -> None:
        super().__init__(body, host)
        self._renderer = renderer

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        if self.body.wanted_speed is ReplySpeed.DEEP:
            check_deep(self.body)

    async def prompts(self, model: LoadedModel) -> Sequence[str]:
        """Return the messages as the model's template renders them."""
        if self.body.reasoning_effort is not None and "reasoning_effort" not in (model.chat_template or ""):
            raise BadRequest("This model has no reasoning_effort: leave it out.", param="reasoning_effort")
        return [await self._renderer.render(model, self.body.template_variables())]

    def reply(self, begun: Begun) -> ChatReply:
        """Return what puts the answer into OpenAI's shape."""
        deep = None
        if self.body.wanted_speed is ReplySpeed.DEEP:
            deep = DeepReply(self.body, begun.requests[0], self.host.bridge, self._renderer, begun.model)
        return ChatReply(self, begun, deep)


@dataclass(slots=True)
class ChatChoice:
    """What has come of one choice so far."""

    parser: ToolCallParser | None
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    end: Ended | None = None
    n_tokens: int = 0

    def parse(self, news: ChoiceUpdate) -> list[str | ToolCall]:
        """Return what is certain after this piece of text."""
        if self.parser is None:
            return [news.text] if news.text else []
        parts = self.parser.feed(news.text)
        if news.end is None:
            return parts
        return parts + self.parser.finish(is_cut=news.end.reason is FinishReason.LENGTH)

    @property
    def finish_reason(self) -> str:
        """Why the choice ended, in OpenAI's words."""
        assert self.end is not None
        if self.calls and self.end.reason in (FinishReason.STOP, FinishReason.CANCELLED):
            return "tool_calls"
        return finish_reason(self.end)


class ChatReply(Reply[ChatChoice]):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, call: ChatCall, begun: Begun, deep: DeepReply | None) -> None:
        body = call.body
        identity = call.identity("chatcmpl", f"chat.completion{'.chunk' if body.stream else ''}", begun.model)
        choices = [ChatChoice(ToolCallParser() if body.uses_tools else None) for _ in range(body.n_choices)]
        super().__init__(body, identity, begun.requests, choices)
        self._deep = deep
        self._is_single_call = body.parallel_tool_calls is False
        self._has_logprobs = bool(body.logprobs)
        self._counts_tokens = bool(body.timings_per_token)
        self._heads = [f'{self._head},"choices":[{{"index":{i},"delta":{{"content":' for i in range(body.n_choices)]
        who = {"delta": {"role": "assistant", "content": ""}}
        self._unsent = b"".join(self._chunk(index, who) for index in range(body.n_choices))

    async def prepare(self) -> AsyncGenerator[bytes, None]:
        """Run the stages of a deep reply before its last one; yield chunks that say how far that is.

        Clients that do not know ``progress`` see an empty delta.
        """
        if self._deep is None:
            return
        async with aclosing(self._deep.think()) as thinking:
            async for progress in thinking:
                self._unsent += self._progress(progress)
                if not self._deep.plan.is_plain:  # the engine may still refuse what is answered plainly
                    yield self.opening()
        self.requests = [self._deep.answer]

    def opening(self) -> bytes:
        """Return the chunks that say who speaks, where they were not sent."""
        unsent, self._unsent = self._unsent, b""
        return unsent

    def add(self, news: ChoiceUpdate) -> None:
        """Keep what is new of a choice for the whole object."""
        choice = self._choices[news.index]
        choice.logprobs.extend(news.logprobs)
        choice.end = news.end
        for part in choice.parse(news):
            self._keep(choice, part)

    def _keep(self, choice: ChatChoice, part: str | ToolCall) -> None:
        if choice.calls and self._is_single_call:
            return
        if isinstance(part, ToolCall):
            choice.calls.append(part)
        else:
            choice.texts.append(part)

    def has_enough(self, index: int) -> bool:
        """True where a choice that may make one call has made it, and still runs."""
        choice = self._choices[index]
        return self._is_single_call and bool(choice.calls) and choice.end is None

    def _wire(self, index: int, choice: ChatChoice) -> dict[str, Any]:
        return {
            "index": index,
            "message": _message(choice),
            "logprobs": chat_logprobs(choice.logprobs) if self._has_logprobs else None,
            "finish_reason": choice.finish_reason,
        }

    def _progress(self, progress: DeepReplyProgress) -> bytes:
        return self._chunk(0, {"delta": {}}, progress=progress.wire())

    def chunks(self, news: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""
        choice = self._choices[news.index]
        choice.n_tokens += news.n_tokens
        if choice.parser is None and news.end is None and not news.logprobs:
            # The common case is put together by hand: it runs for every token of every stream.
            if not news.text:
                return b""
            count = f',"timings":{{"decode_tokens":{choice.n_tokens}}}' if self._counts_tokens else ""
            return f"{self._heads[news.index]}{encode_text(news.text)}}}{self._tail}{count}}}\n\n".encode()
        deltas: list[dict[str, Any]] = []
        for part in choice.parse(news):
            if choice.calls and self._is_single_call:
                break
            deltas.append({"delta": _delta(part, len(choice.calls))})
            if isinstance(part, ToolCall):
                choice.calls.append(part)
        logprobs = chat_logprobs(news.logprobs) if self._has_logprobs and news.logprobs else None
        if logprobs and not deltas:
            deltas.append({"delta": {"content": ""}})
        so_far: dict[str, Any] = {"timings": {"decode_tokens": choice.n_tokens}} if self._counts_tokens else {}
        chunks = b"".join(
            self._chunk(news.index, delta, logprobs if i == 0 else None, **so_far) for i, delta in enumerate(deltas)
        )
        return chunks if news.end is None else chunks + self._last(news.index, news.end)

    def _last(self, index: int, end: Ended) -> bytes:
        choice = self._choices[index]
        choice.end = end
        return self._chunk(
            index, {"delta": {}}, finish_reason=choice.finish_reason, timings=self._timings([end.receipt])
        )

    def _usage(self, receipts: list[Receipt]) -> dict[str, Any]:
        counted = super()._usage(receipts)
        return self._deep.usage(counted) if self._deep is not None else counted

    def _timings(self, receipts: list[Receipt]) -> dict[str, Any]:
        return timings(receipts) | (self._deep.timings(receipts[0]) if self._deep is not None else {})


def _delta(part: str | ToolCall, n_calls: int) -> dict[str, Any]:
    return {"tool_calls": [{"index": n_calls} | part.wire()]} if isinstance(part, ToolCall) else {"content": part}


def _message(choice: ChatChoice) -> dict[str, Any]:
    text = "".join(choice.texts)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not choice.calls else None}
    message["refusal"] = None
    if choice.calls:
        message["tool_calls"] = [call.wire() for call in choice.calls]
    return message
