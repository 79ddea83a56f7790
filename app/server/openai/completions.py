"""POST /v1/completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.call import Begun, Call
from app.server.calls.generation import ChoiceUpdate, text_of
from app.server.calls.schemas import MAX_CHOICES, CompletionBody
from app.server.http.sse import EventStream, encode_text, while_connected
from app.server.openai.timings import Reply, head_of, text_logprobs
from core.values.errors import BadRequest
from core.values.messages import Ended, FinishReason, LoadedModel, TokenLogprob
from core.values.request import ReplySpeed


async def completions(body: CompletionBody, http: HttpRequest) -> Response:
    """Continue the prompts, as one object or as a stream."""
    return await respond(body, http, TextReply)


async def respond(body: CompletionBody, http: HttpRequest, kind: type[TextReply]) -> Response:
    """Continue the prompts with a reply of this kind."""
    call = CompletionCall(body, http.app.state.pool)
    if body.stream:
        return EventStream(_stream(call, kind))
    return JSONResponse(await while_connected(http.receive, _answer(call, kind)))


async def _answer(call: CompletionCall, kind: type[TextReply]) -> dict[str, Any]:
    async with call.begun() as begun:
        reply = kind(call, begun)
        async with aclosing(call.updates(begun.requests, streams=False)) as batches:
            async for batch in batches:
                for news in batch:
                    reply.add(news)
        return reply.whole()


async def _stream(call: CompletionCall, kind: type[TextReply]) -> AsyncGenerator[bytes, None]:
    async with call.begun() as begun:
        reply = kind(call, begun)
        unsent = reply.opening()
        async with aclosing(call.updates(begun.requests, streams=True)) as batches:
            async for batch in batches:
                for news in batch:
                    unsent += reply.chunks(news)
                if unsent:
                    yield unsent
                unsent = b""
        yield reply.closing()


class CompletionCall(Call[CompletionBody]):
    """One call of the endpoint."""

    PROMPT_FIELD = "prompt"
    ID_PREFIX = "text"

    echoes: Sequence[str] = ()
    """The text before each choice, where it is wanted; known once there are prompts."""

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        body = self.body
        if body.wanted_speed is ReplySpeed.DEEP:
            raise BadRequest("speed deep is for chats: send messages to /v1/chat/completions.", param="speed")
        n_requests = len(body.prompts) * body.n_choices
        if not 1 <= n_requests <= MAX_CHOICES:
            raise BadRequest(f"prompts times n must be between 1 and {MAX_CHOICES}, not {n_requests}.", param="prompt")
        has_tokens = any(not isinstance(prompt, str) for prompt in body.prompts)
        if body.echo and body.suffix is not None:
            raise BadRequest("echo and suffix do not go together: leave one of them out.", param="echo")
        if body.suffix is not None and has_tokens:
            raise BadRequest("suffix works with text prompts, not with token ids.", param="suffix")

    @property
    def scores_prompts(self) -> bool:
        """Whether the log probabilities of the prompts' tokens are wanted."""
        return bool(self.body.echo) and self.body.logprobs is not None

    async def prompts(self, model: LoadedModel) -> Sequence[str | tuple[int, ...]]:
        """Return the prompts, with what fill-in-the-middle needs around them."""
        if self.body.echo:
            self.echoes = [await self._text(prompt) for prompt in self.body.prompts for _ in range(self.body.n_choices)]
        return [self._around(prompt, model) for prompt in self.body.prompts]

    async def _text(self, prompt: str | tuple[int, ...]) -> str:
        if isinstance(prompt, str):
            return prompt
        return await text_of(self.host.bridge, prompt)

    def _around(self, prompt: str | tuple[int, ...], model: LoadedModel) -> str | tuple[int, ...]:
        """Return the prompt, with the suffix by the model's fill-in-the-middle tokens where one is given."""
        if self.body.suffix is None or isinstance(prompt, tuple):
            return prompt
        if model.fim is None:
            raise BadRequest("This model cannot fill in the middle: leave suffix out.", param="suffix")
        prefix, suffix, middle, *_ = model.fim
        return f"{prefix}{prompt}{suffix}{self.body.suffix}{middle}"


@dataclass(slots=True)
class TextChoice:
    """What has come of one choice so far; ``n_chars`` counts the characters of its tokens."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_chars: int = 0
    end: Ended | None = None


class TextReply(Reply[TextChoice]):
    """Puts the choices of one call into OpenAI's shapes."""

    def __init__(self, call: CompletionCall, begun: Begun) -> None:
        body = call.body
        self._echoes = call.echoes or [""] * len(begun.requests)
        head = head_of(call, "cmpl", "text_completion", begun.model, begun.requests[0].id)
        super().__init__(body, head, [TextChoice() for _ in self._echoes])
        self._has_logprobs = body.logprobs is not None
        self._heads = [f'{self._head},"choices":[{{"index":{i},"text":' for i in range(len(self._choices))]

    def add(self, news: ChoiceUpdate) -> None:
        """Keep what is new of a choice for the whole object."""
        choice = self._choices[news.index]
        choice.texts.append(news.text)
        choice.logprobs += news.prompt_logprobs + news.logprobs
        choice.end = news.end

    def _wire(self, index: int, choice: TextChoice) -> dict[str, Any]:
        return {
            "index": index,
            "text": f"{self._echoes[index]}{''.join(choice.texts)}",
            "logprobs": text_logprobs(choice.logprobs, 0) if self._has_logprobs else None,
            "finish_reason": _finish_reason(choice.end),
        }

    def opening(self) -> bytes:
        """Return the chunks with the prompts, where they are wanted."""
        return b"".join(self._chunk(index, {"text": str(echo)}) for index, echo in enumerate(self._echoes) if echo)

    def chunks(self, news: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice."""
        if news.read is None:
            return self._said(news)
        return self._progress(news.index, {"text": ""}, news.read) + self._said(news)

    def _said(self, news: ChoiceUpdate) -> bytes:
        found = news.prompt_logprobs + news.logprobs
        if news.end is None and not found:
            # The common case is put together by hand: it runs for every token of every stream.
            text = encode_text(news.text)
            return f"{self._heads[news.index]}{text}{self._tail}}}\n\n".encode() if news.text else b""
        choice = self._choices[news.index]
        choice.end = news.end
        logprobs = None
        if self._has_logprobs and found:
            logprobs = text_logprobs(found, choice.n_chars)
            choice.n_chars += sum(len(text) for text in logprobs["tokens"])
        content = {"text": news.text}
        if news.end is None:
            return self._chunk(news.index, content, logprobs)
        why = _finish_reason(news.end)
        return self._chunk(news.index, content, logprobs, why, timings=self._timings([news.end.receipt]))


def _finish_reason(end: Ended | None) -> str:
    return "length" if end is not None and end.reason is FinishReason.LENGTH else "stop"
