"""POST /v1/completions."""

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
from app.server.openai.model_defaults import with_defaults
from app.server.openai.schemas import MAX_CHOICES, CompletionBody
from app.server.openai.speed import ReplySpeed, answering, marks
from app.server.openai.timings import Identity, fingerprint, text_logprobs, timings, usage
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel, TokenLogprob
from core.values.receipt import Receipt
from core.values.request import Request


async def completions(body: CompletionBody, http: HttpRequest) -> Response:
    """Continue the prompts, as one object or as a stream."""
    call = CompletionCall(body, http.app.state.host)
    if body.stream:
        return EventStream(call.stream())
    return JSONResponse(await while_connected(http.receive, call.answer()))


@dataclass(slots=True)
class CompletionCall:
    """One call of the endpoint."""

    body: CompletionBody
    host: ModelHost

    async def answer(self) -> dict[str, Any]:
        """Return the text_completion object."""
        async with self._begun() as (model, requests):
            reply = self._reply(model)
            async with aclosing(generate(self.host.bridge, requests, streams=False, prompt_field="prompt")) as batches:
                async for batch in batches:
                    for news in batch:
                        reply.add(news)
            return reply.whole()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks as server-sent events."""
        async with self._begun() as (model, requests):
            reply = self._reply(model)
            async with aclosing(generate(self.host.bridge, requests, streams=True, prompt_field="prompt")) as batches:
                chunks = reply.opening()
                async for batch in batches:
                    chunks += b"".join([reply.chunks(news) for news in batch])
                    if chunks:
                        yield chunks
                    chunks = b""
            yield reply.closing()

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[tuple[LoadedModel, list[Request]]]:
        """Hold the model while the call runs; give it with the engine's requests, choices of a prompt together."""
        body = self.body
        self._check()
        params, limit, stop = list(body.sampling(body.logprobs)), body.token_limit, body.stop_strings
        constraint, speed = body.constraint, body.wanted_speed
        async with self.host.lease(body.model) as loaded:
            filled = with_defaults(body, self.host.own, loaded)
            if filled is not body:
                body = self.body = filled
                params, speed = list(body.sampling(body.logprobs)), body.wanted_speed
            model, by_draft = answering(loaded, speed), speed is ReplySpeed.SPARK
            body.check(model)
            prompts = [self._around(prompt, model) for prompt in body.prompts]
            yield (
                model,
                [
                    Request(
                        new_id("text"),
                        prompt,
                        limit,
                        stop,
                        one,
                        constraint=constraint,
                        lane=speed.lane,
                        by_draft=by_draft,
                    )
                    for prompt in prompts
                    for one in params
                ],
            )

    def _check(self) -> None:
        body = self.body
        if body.wanted_speed is ReplySpeed.DEEP:
            raise BadRequest("speed deep is for chats: send messages to /v1/chat/completions.", param="speed")
        n_requests = len(body.prompts) * body.n_choices
        if not 1 <= n_requests <= MAX_CHOICES:
            raise BadRequest(f"prompts times n must be between 1 and {MAX_CHOICES}, not {n_requests}.", param="prompt")
        has_tokens = any(not isinstance(prompt, str) for prompt in body.prompts)
        if body.echo and (has_tokens or body.logprobs is not None or body.suffix is not None):
            raise BadRequest("echo works with text prompts, without logprobs and suffix.", param="echo")
        if body.suffix is not None and has_tokens:
            raise BadRequest("suffix works with text prompts, not with token ids.", param="suffix")

    def _around(self, prompt: str | tuple[int, ...], model: LoadedModel) -> str | tuple[int, ...]:
        """Return the prompt, with the suffix by the model's fill-in-the-middle tokens where one is given."""
        if self.body.suffix is None or isinstance(prompt, tuple):
            return prompt
        if model.fim is None:
            raise BadRequest("This model cannot fill in the middle: leave suffix out.", param="suffix")
        prefix, suffix, middle = model.fim
        return f"{prefix}{prompt}{suffix}{self.body.suffix}{middle}"

    def _reply(self, model: LoadedModel) -> TextReply:
        served = marks(model, self.body.wanted_speed, self.body.service_tier)
        identity = Identity(new_id("cmpl"), "text_completion", self.host.name, fingerprint(model), served)
        return TextReply(self.body, identity)


@dataclass(slots=True)
class TextChoice:
    """What has come of one choice so far; ``n_chars`` counts the characters of its tokens."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_chars: int = 0
    end: Ended | None = None


class TextReply:
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, body: CompletionBody, identity: Identity) -> None:
        self._identity = identity
        self._n_prompts = len(body.prompts)
        self._echoes = [prompt if body.echo else "" for prompt in body.prompts for _ in range(body.n_choices)]
        self._choices = [TextChoice() for _ in self._echoes]
        self._has_logprobs = body.logprobs is not None
        self._includes_usage = body.includes_usage
        rest = ',"usage":null' if body.includes_usage else ""
        head = "data: " + json.dumps(identity.head(), separators=(",", ":"))[:-1]
        self._heads = [f'{head},"choices":[{{"index":{i},"text":' for i in range(len(self._choices))]
        self._tail = f',"logprobs":null,"finish_reason":null}}]{rest}}}\n\n'

    def add(self, news: ChoiceUpdate) -> None:
        """Keep what is new of a choice for the whole object."""
        choice = self._choices[news.index]
        choice.texts.append(news.text)
        choice.logprobs.extend(news.logprobs)
        choice.end = news.end

    def whole(self) -> dict[str, Any]:
        """Return the text_completion object."""
        receipts = self._receipts()
        choices = [
            {
                "index": index,
                "text": f"{self._echoes[index]}{''.join(choice.texts)}",
                "logprobs": text_logprobs(choice.logprobs, 0) if self._has_logprobs else None,
                "finish_reason": _finish_reason(choice.end),
            }
            for index, choice in enumerate(self._choices)
        ]
        last = {"usage": usage(receipts, self._n_prompts), "timings": timings(receipts)}
        return self._identity.head() | {"choices": choices} | last

    def opening(self) -> bytes:
        """Return the chunks with the prompts, where they are wanted."""
        return b"".join(self._chunk(index, str(echo)) for index, echo in enumerate(self._echoes) if echo)

    def chunks(self, news: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""
        if news.end is None and not news.logprobs:
            # The common case is put together by hand: it runs for every token of every stream.
            return (self._heads[news.index] + encode_text(news.text) + self._tail).encode() if news.text else b""
        choice = self._choices[news.index]
        choice.end = news.end
        logprobs = None
        if self._has_logprobs and news.logprobs:
            logprobs = text_logprobs(news.logprobs, choice.n_chars)
            choice.n_chars += sum(len(text) for text in logprobs["tokens"])
        if news.end is None:
            return self._chunk(news.index, news.text, logprobs)
        return self._chunk(
            news.index, news.text, logprobs, _finish_reason(news.end), timings=timings([news.end.receipt])
        )

    def closing(self) -> bytes:
        """Return the end of the stream."""
        if not self._includes_usage:
            return DONE
        receipts = self._receipts()
        last = {"choices": [], "usage": usage(receipts, self._n_prompts), "timings": timings(receipts)}
        return encode_event(self._identity.head() | last) + DONE

    def _receipts(self) -> list[Receipt]:
        return receipts_in_order({i: choice.end for i, choice in enumerate(self._choices) if choice.end is not None})

    def _chunk(
        self,
        index: int,
        text: str,
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        **more: Any,
    ) -> bytes:
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}
        null_usage = {"usage": None} if self._includes_usage else {}
        return encode_event(self._identity.head() | {"choices": [choice]} | null_usage | more)


def _finish_reason(end: Ended | None) -> str:
    return "length" if end is not None and end.reason is FinishReason.LENGTH else "stop"
