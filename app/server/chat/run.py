"""What comes of a call, choice by choice, and the answer that a protocol makes of that: one object, or a stream.

async with running(call, streams=True) as (run, updates):  # holds the model; raises what is wrong with the body
    async for batch in updates:                            # pieces of text, reasoning and tool calls
        ...
run.choices                                                # all that came, with ends and receipts
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.generation import ChoiceUpdate, Updates, collect, tokens_of
from app.server.http.errors import ApiError, RequestFailed, cancelled, renamed
from app.server.http.sse import EventStream, while_connected
from app.server.replies.pieces import (
    CallArguments,
    CallBegun,
    CallEnded,
    ContentText,
    DraftedText,
    Piece,
    ReasoningText,
    Span,
)
from app.server.replies.reply_parser import ReplyParser
from app.server.templates.chat_template import MOST_CHARS_OF_A_TOKEN
from core.values.messages import Ended, FinishReason, LoadedModel, Receipt, Started, TokenLogprob
from core.values.request import Request

if TYPE_CHECKING:
    from app.server.chat.call import Call


@dataclass(slots=True)
class RequestedCall:
    """A call that a model asks for; ``arguments`` is a JSON object as text, or its beginning in a reply cut short."""

    id: str
    name: str
    arguments: str = ""


class ThoughtTokens:
    """Counts the tokens between the marks of thoughts: those whose text is one of thoughts, also in part."""

    def __init__(self) -> None:
        # What no piece has told of yet: the text, and the characters and tokens of its parts.
        self._text, self._parts = "", list[tuple[int, int]]()

    def take(self, update: ChoiceUpdate) -> int:
        """Return how many tokens of thoughts there are more, now that the pieces of an update are known."""
        self._text += update.text
        self._parts += update.parts
        n_tokens = 0
        thoughts = [piece.text for piece in update.pieces if isinstance(piece, ReasoningText)]
        # The mark before them may have the same letters. What may come after them has, if there are other pieces.
        find = self._text.rfind if len(thoughts) == len(update.pieces) == 1 else self._text.find
        for text in thoughts:
            n_tokens += self._cut(max(find(text), 0), len(text))
            find = self._text.find
        if update.pieces and not isinstance(update.pieces[-1], ReasoningText):
            self._text, self._parts = "", []
        return n_tokens

    def _cut(self, begin: int, size: int) -> int:
        """Drop the text up to the end of thoughts, which have ``size`` characters; return how many tokens these are."""
        end, at, n_tokens = begin + size, 0, 0
        left: list[tuple[int, int]] = []
        for n_chars, n in self._parts:
            # A token without text is the beginning of a character that the next one completes.
            is_thought = at < end and at + max(n_chars, 1) > begin
            at += n_chars
            n_tokens += n * is_thought
            if at > end or (at == end and not is_thought):
                left.append((min(n_chars, at - end), n * (not is_thought)))
        self._text, self._parts = self._text[end:], left
        return n_tokens


@dataclass(slots=True)
class Choice:
    """All that has come of one choice so far. Without a ``parser`` it is text and nothing else."""

    parser: ReplyParser | None = None
    makes_one_call: bool = False
    drafted: DraftedText | None = None  # where it is asked for
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[RequestedCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_tokens: int = 0
    n_reasoning: int = 0  # of these tokens
    first_at: float | None = None  # when the first of them came, on ``time.monotonic``
    ttft: float = 0.0  # as the receipt will say
    started: Started | None = None
    end: Ended | None = None
    has_call: bool = False  # a whole one, as the last
    counting: ThoughtTokens = field(default_factory=ThoughtTokens)

    def take(self, news: ChoiceUpdate) -> None:
        """Take what is new apart into pieces, and keep it."""
        news.pieces = self._parsed(news)
        if self.drafted is not None:
            self.drafted.feed(news.text, news.drafted)
            news.spans = [self._spans(self.drafted, piece) for piece in news.pieces]
        self.keep(news)

    def keep(self, update: ChoiceUpdate) -> None:
        """Keep what is new."""
        self.n_tokens += update.n_tokens
        self.ttft = self.ttft or update.ttft
        if self.n_tokens and self.first_at is None:
            self.first_at = time.monotonic()
        self.started, self.end = update.started or self.started, update.end
        if update.prompt_logprobs or update.logprobs:
            self.logprobs += [*update.prompt_logprobs, *update.logprobs]
        for piece in update.pieces:
            self._keep(piece)
        if self.parser is not None:
            self.n_reasoning += self.counting.take(update)
        elif update.n_reasoning is not None:
            self.n_reasoning = update.n_reasoning
        elif self.reasoning and any(isinstance(piece, ReasoningText) for piece in update.pieces):
            self.n_reasoning += update.n_tokens  # a remote's come one by one

    @property
    def text(self) -> str:
        """The text so far, without thoughts and calls."""
        return "".join(self.content)

    @property
    def finish_reason(self) -> str:
        """Why the choice ended: ``stop``, ``length`` or ``tool_calls``."""
        if self.end is not None and self.end.reason is FinishReason.LENGTH:
            return "length"
        is_cut = self.end is not None and self.end.stop and not self.has_call
        return "tool_calls" if self.calls and not is_cut else "stop"

    @property
    def is_followed(self) -> bool:
        """Whether it must be looked at as it comes: what comes in one piece cannot be counted by what it is."""
        return self.parser is not None

    @property
    def has_enough(self) -> bool:
        """True where a choice that may make one call has made it."""
        return self.makes_one_call and self.has_call

    def _parsed(self, news: ChoiceUpdate) -> list[Piece]:
        if self.has_enough:
            return []
        if self.parser is None:
            return [ContentText(news.text)] if news.text else []
        pieces = self.parser.feed(news.text) if news.text else []
        if news.end is not None:
            pieces += self.parser.finish(is_cut=news.end.reason is FinishReason.LENGTH or bool(news.end.stop))
        if self.makes_one_call:
            last = next((i for i, piece in enumerate(pieces) if isinstance(piece, CallEnded)), len(pieces))
            return pieces[: last + 1]
        return pieces

    def _spans(self, drafted: DraftedText, piece: Piece) -> list[Span]:
        return drafted.take(piece.text) if isinstance(piece, ContentText | ReasoningText) else []

    def _keep(self, piece: Piece) -> None:
        if isinstance(piece, ContentText):
            self.content.append(piece.text)
        elif isinstance(piece, ReasoningText):
            self.reasoning.append(piece.text)
        elif isinstance(piece, CallBegun):
            self.calls.append(RequestedCall(piece.id, piece.name))
            self.has_call = False
        elif isinstance(piece, CallArguments):
            self.calls[-1].arguments += piece.text
        else:
            self.has_call = True


class Run(Protocol):
    """A call that runs, here or elsewhere. ``name`` is that of the model that answers, ``begun_at`` when it was there.

    Both are known with the first update. The time is on ``time.monotonic``.
    """

    name: str
    begun_at: float
    choices: list[Choice]

    def updates(self) -> Updates:
        """Yield what is new of the choices; raises ApiError. What runs when this is closed is cancelled."""


class EngineRun:
    """A call that holds its model, with its requests to the engine: the choices of a prompt are together."""

    def __init__(self, call: Call[Any], model: LoadedModel, requests: list[Request], *, streams: bool) -> None:
        """With ``streams`` False all updates may come at once."""
        self.name, self.begun_at = call.host.name, call.begun_at
        self.model, self.requests = model, requests
        self.choices = [call.choice() for _ in requests]
        self._bridge, self._prompt_field = call.host.bridge, call.PROMPT_FIELD
        self._streams = streams or any(choice.is_followed for choice in self.choices)

    async def updates(self) -> Updates:
        """Yield what is new of the choices; raises RequestFailed, and ApiError where one was ended from elsewhere.

        What runs when this is closed is cancelled.
        """
        index_of = {request.id: index for index, request in enumerate(self.requests)}
        channel = self._bridge.open(self.requests, self._streams)
        try:
            while not channel.is_over:
                batch = collect(await channel.take(), index_of)
                is_cut = False
                for update in batch:
                    choice = self.choices[update.index]
                    choice.take(update)
                    if choice.has_enough:
                        if choice.end is None:
                            self._bridge.cancel(self.requests[update.index].id)
                    elif update.end is not None and update.end.reason is FinishReason.CANCELLED:
                        is_cut, update.end = True, None
                if not is_cut or any(update.pieces for update in batch):
                    yield batch
                if is_cut:
                    raise cancelled()
        except RequestFailed as error:
            if error.param in ("messages", "prompt"):
                error.param = self._prompt_field  # what the prompt was made from
            raise
        finally:
            self._bridge.close(channel)

    async def unanswerable_share(self) -> float:
        """Return what share of the prompt can go where it leaves too little room for an answer, as ``_spare_share``.

        Of a prompt that is far too long the engine says so itself.
        """
        request, n_ctx = self.requests[0], self.model.n_ctx
        n_most = n_ctx - min(n_ctx // _ANSWERS_PART, request.max_tokens if request.max_tokens is not None else n_ctx)
        prompt = request.prompt
        if not isinstance(prompt, str) or not n_most < len(prompt.encode()) <= n_ctx * _MOST_BYTES_COUNTED:
            return 0.0
        return _half_too_much(len(await tokens_of(self._bridge, prompt)), n_most)

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts of the choices that have ended."""
        return [choice.end.receipt for choice in self.choices if choice.end is not None]


_Run = TypeVar("_Run", bound=Run)
_Run_co = TypeVar("_Run_co", bound=Run, covariant=True)


class AnyCall(Protocol[_Run_co]):
    """A call that can be run, here or at a remote."""

    def run(self, *, streams: bool) -> AbstractAsyncContextManager[_Run_co]:
        """Hold the model while the call runs; with ``streams`` False all updates may come at once. Raises ApiError."""

    def drop_oldest(self, share: float) -> bool:
        """Leave out the oldest turns of a prompt that is too long, as ``Call.drop_oldest``."""


@asynccontextmanager
async def running(
    call: AnyCall[_Run], *, streams: bool, truncates: bool = False
) -> AsyncIterator[tuple[_Run, Updates]]:
    """Run a call and give what comes of it, once there is something.

    With ``truncates`` the oldest turns of a chat that does not fit are left out until it does, with room for an answer.
    """
    while True:
        run: _Run | None = None
        async with AsyncExitStack() as stack:
            try:
                run = await stack.enter_async_context(call.run(streams=streams))
                share = await run.unanswerable_share() if truncates and isinstance(run, EngineRun) else 0.0
                if share and call.drop_oldest(share):
                    continue
                updates = await stack.enter_async_context(aclosing(run.updates()))
                first = await anext(updates)
            except ApiError as error:
                is_too_long = truncates and error.answer.code == "context_length_exceeded"
                if is_too_long and call.drop_oldest(_spare_share(run, error)):
                    continue
                raise
            yield run, _with_first(first, updates)
            return


# Where turns are left out, this part of the context stays free for the answer, unless it may only be shorter.
_ANSWERS_PART = 8
_MOST_BYTES_COUNTED = 8  # of a prompt, for each token of the context: others are too long anyway
# What goes at once of a prompt of which nobody says how much is too long, as some remotes.
_UNTOLD_SHARE = 1 / 8


def _spare_share(run: Run | None, error: ApiError) -> float:
    """Return what share of a prompt that is too long can go, with none of it that would have room.

    That is half of what is too much, since tokens are not spread evenly. What the error says of a long prompt's tokens
    may be far too few.
    """
    sizes = error.sizes or error.guessed_sizes
    if sizes is None:
        return _UNTOLD_SHARE
    n_prompt, n_ctx = sizes
    n_chars = len(run.requests[0].prompt) if isinstance(run, EngineRun) else 0
    return _half_too_much(max(n_prompt, n_chars // MOST_CHARS_OF_A_TOKEN), n_ctx)


def _half_too_much(n_prompt: int, n_most: int) -> float:
    return max(1.0 - n_most / n_prompt, 0.0) / 2


async def _with_first(first: list[ChoiceUpdate], rest: Updates) -> Updates:
    yield first
    async for batch in rest:
        yield batch


class Reply(ABC):
    """The answer to one call in the shapes of a protocol: a stream, or one object."""

    def opening(self) -> bytes:
        """Return what the stream begins with."""
        return b""

    def take(self, update: ChoiceUpdate) -> None:  # noqa: B027 - most keep nothing
        """Keep what is new for the object; what the choices of the run keep need not be kept again."""

    @abstractmethod
    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Return what the stream tells of an update."""

    @abstractmethod
    async def closing(self) -> bytes:
        """Return the end of the stream: the call is over."""

    @abstractmethod
    async def whole(self) -> Any:
        """Return the object: the call is over."""

    def failed(self, error: Exception) -> bytes:
        """Return the end of a stream that fails; raises ``error`` where it is told as everywhere."""
        raise error


_Replying = AbstractAsyncContextManager[tuple[Reply, Updates]]


async def respond(
    http: HttpRequest,
    call: AnyCall[_Run],
    reply_of: Callable[[_Run], Reply],
    *,
    streams: bool | None,
    truncates: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
    around: AbstractAsyncContextManager[Any] = nullcontext(),  # noqa: B008 - holds nothing
    stream: Callable[[AsyncGenerator[bytes, None]], Response] = EventStream,
) -> Response:
    """Run a call and answer in the shapes of a protocol, as a ``stream`` or as one object.

    ``names`` are those of the fields of its bodies, by ours. The call runs inside of ``around``.
    """

    @asynccontextmanager
    async def replying() -> AsyncIterator[tuple[Reply, Updates]]:
        with renamed(names):
            async with around, running(call, streams=bool(streams), truncates=truncates) as (run, updates):
                yield reply_of(run), updates

    if streams:
        return stream(_streamed(replying()))
    return JSONResponse(await while_connected(http.receive, _whole(replying())))


async def _whole(replying: _Replying) -> Any:
    async with replying as (reply, updates):
        async for batch in updates:
            for update in batch:
                reply.take(update)
        return await reply.whole()


async def _streamed(replying: _Replying) -> AsyncGenerator[bytes, None]:
    async with replying as (reply, updates):
        said = reply.opening()
        try:
            async for batch in updates:
                said += b"".join(map(reply.chunk, batch))
                if said:
                    yield said
                said = b""
        except Exception as error:
            yield said + reply.failed(error)
            return
        if end := await reply.closing():
            yield end
