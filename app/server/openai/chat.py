"""POST /v1/chat/completions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.generation import ChoiceUpdate, generate, new_id, receipts_in_order
from app.server.calls.model_host import ModelHost
from app.server.http.sse import DONE, EventStream, encode_event, encode_text, while_connected
from app.server.openai.deep import DeepReply, DeepReplyProgress, check_deep
from app.server.openai.model_defaults import with_defaults
from app.server.openai.schemas import ChatCompletionBody
from app.server.openai.speed import ReplySpeed, answering, marks
from app.server.openai.timings import Identity, chat_logprobs, fingerprint, timings, usage
from app.server.openai.tool_calls import ToolCall, ToolCallParser
from app.server.templates.chat_template import TemplateRenderer
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel
from core.values.receipt import Receipt
from core.values.request import Request


async def chat_completions(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream."""
    call = ChatCall(body, http.app.state.host, http.app.state.renderer)
    if body.stream:
        return EventStream(call.stream())
    return JSONResponse(await while_connected(http.receive, call.answer()))


@dataclass(slots=True)
class ChatCall:
    """One call of the endpoint."""

    body: ChatCompletionBody
    host: ModelHost
    renderer: TemplateRenderer

    async def answer(self) -> dict[str, Any]:
        """Return the chat.completion object."""
        async with self._begun() as (model, requests):
            deep = self._deep(model, requests)
            reply = ChatReply(self.body, self._identity("chat.completion", model), deep)
            if deep is not None:
                async with aclosing(deep.think()) as thinking:
                    async for _ in thinking:
                        pass
                requests = [deep.answer]
            async with aclosing(
                generate(self.host.bridge, requests, streams=False, prompt_field="messages")
            ) as batches:
                async for batch in batches:
                    for news in batch:
                        reply.add(news)
            return reply.whole()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks as server-sent events."""
        async with self._begun() as (model, requests):
            deep = self._deep(model, requests)
            reply = ChatReply(self.body, self._identity("chat.completion.chunk", model), deep)
            chunks = reply.opening()
            if deep is not None:
                async with aclosing(deep.think()) as thinking:
                    async for progress in thinking:
                        chunks += reply.progress(progress)
                        if not deep.plan.is_plain:  # the engine may still refuse what is answered plainly
                            yield chunks
                            chunks = b""
                requests = [deep.answer]
            async with aclosing(generate(self.host.bridge, requests, streams=True, prompt_field="messages")) as batches:
                async for batch in batches:
                    for news in batch:
                        chunks += reply.chunks(news)
                        if reply.has_enough(news.index):
                            self.host.bridge.cancel(requests[news.index].id)
                    if chunks:
                        yield chunks
                    chunks = b""
            yield reply.closing()

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[tuple[LoadedModel, list[Request]]]:
        """Hold the model while the call runs; give it with the engine's requests."""
        body = self.body
        limit, top_logprobs = body.token_limit, body.n_top_logprobs
        params, constraint, speed = list(body.sampling(top_logprobs)), body.constraint, body.wanted_speed
        if speed is ReplySpeed.DEEP:
            check_deep(body)
        async with self.host.lease(body.model) as loaded:
            filled = with_defaults(body, self.host.own, loaded)
            if filled is not body:
                body = self.body = filled
                params, speed = list(body.sampling(top_logprobs)), body.wanted_speed
            model, by_draft = answering(loaded, speed), speed is ReplySpeed.SPARK
            body.check(model)
            if body.reasoning_effort is not None and "reasoning_effort" not in (model.chat_template or ""):
                raise BadRequest("This model has no reasoning_effort: leave it out.", param="reasoning_effort")
            prompt = await self.renderer.render(model, body.template_variables())
            stop = body.stop_strings
            yield (
                model,
                [
                    Request(
                        new_id("chat"),
                        prompt,
                        limit,
                        stop,
                        one,
                        constraint=constraint,
                        lane=speed.lane,
                        by_draft=by_draft,
                    )
                    for one in params
                ],
            )

    def _deep(self, model: LoadedModel, requests: list[Request]) -> DeepReply | None:
        if self.body.wanted_speed is not ReplySpeed.DEEP:
            return None
        return DeepReply(self.body, requests[0], self.host.bridge, self.renderer, model)

    def _identity(self, kind: str, model: LoadedModel) -> Identity:
        served = marks(model, self.body.wanted_speed, self.body.service_tier)
        return Identity(new_id("chatcmpl"), kind, self.host.name, fingerprint(model), served)


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
        return "length" if self.end.reason is FinishReason.LENGTH else "stop"


class ChatReply:
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, body: ChatCompletionBody, identity: Identity, deep: DeepReply | None = None) -> None:
        self._identity = identity
        self._deep = deep
        self._is_single_call = body.parallel_tool_calls is False
        self._has_logprobs = bool(body.logprobs)
        self._includes_usage = body.includes_usage
        self._counts_tokens = bool(body.timings_per_token)
        self._choices = [ChatChoice(ToolCallParser() if body.uses_tools else None) for _ in range(body.n_choices)]
        rest = ',"usage":null' if body.includes_usage else ""
        head = "data: " + json.dumps(identity.head(), separators=(",", ":"))[:-1]
        self._heads = [f'{head},"choices":[{{"index":{i},"delta":{{"content":' for i in range(body.n_choices)]
        self._tail = f'}},"logprobs":null,"finish_reason":null}}]{rest}'

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

    def whole(self) -> dict[str, Any]:
        """Return the chat.completion object."""
        receipts = self._receipts()
        choices = [
            {
                "index": index,
                "message": _message(choice),
                "logprobs": chat_logprobs(choice.logprobs) if self._has_logprobs else None,
                "finish_reason": choice.finish_reason,
            }
            for index, choice in enumerate(self._choices)
        ]
        return self._identity.head() | {"choices": choices, **self._cost(receipts)}

    def opening(self) -> bytes:
        """Return the chunks that say who speaks."""
        delta = {"role": "assistant", "content": ""}
        return b"".join(self._chunk(index, delta) for index in range(len(self._choices)))

    def progress(self, progress: DeepReplyProgress) -> bytes:
        """Return the chunk that says how far a deep reply is; clients that do not know it see an empty delta."""
        return self._chunk(0, {}, progress=progress.wire())

    def chunks(self, news: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""
        choice = self._choices[news.index]
        choice.n_tokens += news.n_tokens
        if choice.parser is None and news.end is None and not news.logprobs:
            # The common case is put together by hand: it runs for every token of every stream.
            if not news.text:
                return b""
            count = f',"timings":{{"decode_tokens":{choice.n_tokens}}}' if self._counts_tokens else ""
            return f"{self._heads[news.index]}{encode_text(news.text)}{self._tail}{count}}}\n\n".encode()
        deltas: list[dict[str, Any]] = []
        for part in choice.parse(news):
            if choice.calls and self._is_single_call:
                break
            deltas.append(_delta(part, len(choice.calls)))
            if isinstance(part, ToolCall):
                choice.calls.append(part)
        logprobs = chat_logprobs(news.logprobs) if self._has_logprobs and news.logprobs else None
        if logprobs and not deltas:
            deltas.append({"content": ""})
        so_far: dict[str, Any] = {"timings": {"decode_tokens": choice.n_tokens}} if self._counts_tokens else {}
        chunks = b"".join(
            self._chunk(news.index, delta, logprobs if i == 0 else None, **so_far) for i, delta in enumerate(deltas)
        )
        return chunks if news.end is None else chunks + self._last(news.index, news.end)

    def _last(self, index: int, end: Ended) -> bytes:
        choice = self._choices[index]
        choice.end = end
        return self._chunk(index, {}, finish_reason=choice.finish_reason, timings=self._timings([end.receipt]))

    def closing(self) -> bytes:
        """Return the end of the stream."""
        if not self._includes_usage:
            return DONE
        last = {"choices": [], **self._cost(self._receipts())}
        return encode_event(self._identity.head() | last) + DONE

    def _cost(self, receipts: list[Receipt]) -> dict[str, Any]:
        counted = usage(receipts)
        return {
            "usage": self._deep.usage(counted) if self._deep is not None else counted,
            "timings": self._timings(receipts),
        }

    def _timings(self, receipts: list[Receipt]) -> dict[str, Any]:
        return timings(receipts) | (self._deep.timings(receipts[0]) if self._deep is not None else {})

    def _receipts(self) -> list[Receipt]:
        return receipts_in_order({i: choice.end for i, choice in enumerate(self._choices) if choice.end is not None})

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        null_usage = {"usage": None} if self._includes_usage else {}
        return encode_event(self._identity.head() | {"choices": [choice]} | null_usage | more)


def _delta(part: str | ToolCall, n_calls: int) -> dict[str, Any]:
    return {"tool_calls": [{"index": n_calls} | part.wire()]} if isinstance(part, ToolCall) else {"content": part}


def _message(choice: ChatChoice) -> dict[str, Any]:
    text = "".join(choice.texts)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not choice.calls else None}
    message["refusal"] = None
    if choice.calls:
        message["tool_calls"] = [call.wire() for call in choice.calls]
    return message
