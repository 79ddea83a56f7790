"""What is new of each choice of a call, from the engine's events; and questions that generate no text."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest

from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.model_pool import pool_of
from app.server.http.errors import RequestFailed, cancelled
from app.server.http.sse import while_connected
from app.server.replies.pieces import Piece, Span
from core.values.messages import (
    Answer,
    AnyRequest,
    Ended,
    FinishReason,
    LoadedModel,
    PromptRead,
    PromptScored,
    RequestEvent,
    Started,
    Token,
    TokenLogprob,
)
from core.values.request import Detokenized, DetokenizeRequest, PromptImage, Tokenized, TokenizeRequest

_Answer = TypeVar("_Answer", bound=Answer)
_numbers = itertools.count()
_process = os.urandom(4).hex()


def new_id(prefix: str) -> str:
    """Return an id that no other call of any server has."""
    return f"{prefix}-{_process}{os.urandom(8).hex()}{next(_numbers):x}"


@dataclass(slots=True)
class ChoiceUpdate:
    """What is new of one choice: that it has begun, what was read, text of how many tokens, their logprobs, its end.

    ``parts`` are the characters and tokens of each part of the text, as the engine gave them. ``prompt_logprobs`` are
    those of the prompt's next tokens, ``drafted`` the spans of the text that were drafted. ``pieces`` are what is
    certain once the text was taken apart, and ``spans`` the drafted ones of each, where they are asked for.
    ``ttft`` comes with the first token. ``progress`` is how far a deep reply is before its answer begins.
    ``n_reasoning`` are the tokens of all thoughts, where a remote has counted them.
    """

    index: int
    text: str = ""
    n_tokens: int = 0
    ttft: float = 0.0
    parts: list[tuple[int, int]] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob] = field(default_factory=list)
    drafted: list[Span] = field(default_factory=list)
    started: Started | None = None
    read: PromptRead | None = None
    end: Ended | None = None
    pieces: Sequence[Piece] = ()
    spans: Sequence[list[Span]] = ()
    progress: dict[str, Any] | None = None
    n_reasoning: int | None = None


Updates = AsyncGenerator[list[ChoiceUpdate], None]


def collect(events: Sequence[RequestEvent], index_of: dict[str, int]) -> list[ChoiceUpdate]:
    """Return one update for each choice that the events speak of; several tokens of a choice become one text."""
    if len(events) == 1 and type(events[0]) is Token:
        token = events[0]
        drafted = [(0, len(token.text))] if token.is_drafted else []
        index = index_of[token.request_id]
        lengths = [(len(token.text), token.n)]
        return [ChoiceUpdate(index, token.text, token.n, token.ttft, lengths, list(token.logprobs), drafted=drafted)]
    news: dict[int, ChoiceUpdate] = {}
    texts: dict[int, list[str]] = {}
    n_chars: dict[int, int] = {}
    for event in events:
        index = index_of[event.request_id]
        if type(event) is Token:
            item = news.setdefault(index, ChoiceUpdate(index))
            texts.setdefault(index, []).append(event.text)
            begin = n_chars.get(index, 0)
            n_chars[index] = begin + len(event.text)
            if event.is_drafted:
                item.drafted.append((begin, n_chars[index]))
            item.n_tokens += event.n
            item.ttft = item.ttft or event.ttft
            item.parts.append((len(event.text), event.n))
            item.logprobs.extend(event.logprobs)
        elif type(event) is Ended:
            if event.reason is FinishReason.FAILED and event.failure is not None:
                raise RequestFailed(event.failure)
            news.setdefault(index, ChoiceUpdate(index)).end = event
            texts.setdefault(index, []).append(event.text)
        elif type(event) is PromptScored:
            news.setdefault(index, ChoiceUpdate(index)).prompt_logprobs.extend(event.logprobs)
        elif type(event) is PromptRead:
            news.setdefault(index, ChoiceUpdate(index)).read = event
        elif type(event) is Started:
            news.setdefault(index, ChoiceUpdate(index)).started = event
    for index, parts in texts.items():
        news[index].text = "".join(parts)
    return list(news.values())


async def ask(bridge: EngineBridge, request: AnyRequest, kind: type[_Answer]) -> _Answer:
    """Return the engine's answer, which is of ``kind``; raises RequestFailed. Cancelled when the caller is."""
    channel = bridge.open([request], streams=False)
    try:
        *answers, ended = await channel.take()
    finally:
        bridge.close(channel)
    assert isinstance(ended, Ended)
    if ended.failure is not None:
        raise RequestFailed(ended.failure)
    if ended.reason is FinishReason.CANCELLED:
        raise cancelled()
    return next(answer for answer in answers if isinstance(answer, kind))


async def answered(
    http: HttpRequest,
    model: str | None,
    request: AnyRequest,
    kind: type[_Answer],
    check: Callable[[LoadedModel], None] = lambda model: None,
) -> tuple[_Answer, str]:
    """Return the answer of the engine that has a model, and the model's name.

    ``check`` raises what is wrong with the request for the loaded model. Raises ApiError.
    """
    pool = pool_of(http)

    async def answer() -> tuple[_Answer, str]:
        async with pool.lease(model) as host:
            assert host.model is not None
            check(host.model)
            return await ask(host.bridge, request, kind), host.name

    return await while_connected(http.receive, answer())


async def tokens_of(
    bridge: EngineBridge,
    *parts: str | int,
    add_special: bool = False,
    parse_special: bool = True,
    images: tuple[PromptImage, ...] = (),
) -> tuple[int, ...]:
    """Return the tokens of ``parts``, as TokenizeRequest has them; raises RequestFailed."""
    request = TokenizeRequest(new_id("tokens"), parts, add_special, parse_special, images)
    return (await ask(bridge, request, Tokenized)).tokens


async def text_of(bridge: EngineBridge, tokens: tuple[int, ...]) -> str:
    """Return the text of tokens; raises RequestFailed."""
    return (await ask(bridge, DetokenizeRequest(new_id("text"), tokens), Detokenized)).text
