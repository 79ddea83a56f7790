"""The chat call: each protocol translates its body to one and writes what comes of it in its own shapes.

call = ChatCall(body, pool, renderer)
async with call.run(streams=True) as run:  # holds the model; raises what is wrong with the body
    async for batch in run.updates():      # pieces of text, reasoning and tool calls
        ...
run.choices                                # all that came, with ends and receipts
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from app.server.calls.call import Begun, Call, ReplyShape
from app.server.calls.generation import ChoiceUpdate, tokens_of
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import ChatCompletionBody
from app.server.chat.deep import DeepReply, DeepReplyProgress
from app.server.chat.images import image_marks, placed, read_images
from app.server.http.errors import ApiError, refuse
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
from app.server.replies.reply_format import ReplyFormat
from app.server.replies.reply_parser import ReplyParser
from app.server.replies.tool_grammar import tool_grammar
from app.server.templates.chat_template import TemplateRenderer, Turn
from core.values.messages import Ended, FinishReason, LoadedModel, PromptRead, Receipt, Started, TokenLogprob
from core.values.request import Constraint, PromptImage, ReplySpeed, ThinkingBudget

# A budget that no thoughts spend: they can be ended by the client.
ENDLESS = 2**31 - 1


class ChatCall(Call[ChatCompletionBody]):
    """One call for replies to messages."""

    PROMPT_FIELD = "messages"
    ID_PREFIX = "chat"

    must_think = ""
    """The field that asks for thoughts, where a model without any is refused for it."""

    def __init__(self, body: ChatCompletionBody, pool: ModelPool, renderer: TemplateRenderer) -> None:
        super().__init__(body, pool)
        self.renderer = renderer
        self._form = ReplyFormat()
        self._thinks = False
        self._images: tuple[PromptImage, ...] = ()

    def check(self) -> None:
        """Raise BadRequest for what cannot be answered, whatever the model is."""
        if self.body.wanted_speed is ReplySpeed.DEEP:
            self.body.check_deep()

    async def count_tokens(self) -> int:
        """Return how many tokens the messages are as the model reads them."""
        async with self.begun() as begun:
            prompt = begun.requests[0].prompt
            if not isinstance(prompt, str):
                return len(prompt)
            return len(await tokens_of(self.host.bridge, prompt, add_special=True))

    async def prompts(self, model: LoadedModel) -> Sequence[str]:
        """Return the messages as the model's template renders them."""
        self._form = await self.renderer.reply_format(model)
        if self.must_think and not self._form.has_thoughts:
            message = f"{self.name} does not support thinking: leave {self.must_think} out."
            raise refuse(400, message, param=self.must_think)
        body = self.body
        turn = Turn.CONTINUED if body.continues else Turn.NONE if body.add_generation_prompt is False else Turn.NEW
        sent = body.images
        files = await read_images(sent, model, allows_remote=self.pool.settings.allows_remote_images) if sent else ()
        marks = image_marks(len(files))
        prompt = await self.renderer.render(model, body.template_variables(marks), turn)
        prompt, self._images = placed(prompt, marks, files)
        self._thinks = self._form.opens_thinking(prompt)
        return [prompt]

    def shape(self, asked: Constraint | None, prompt: str | tuple[int, ...]) -> ReplyShape:
        """Return the model's form of reply; what it thinks before the answer is free but for its budget."""
        form, binding = self._form, self.body.binding
        thought = form.thought_after(str(prompt))
        if binding is not None:
            constraint: Constraint | None = tool_grammar(form, binding, thought)
        else:
            constraint = replace(asked, thought=thought) if asked is not None else None
        n_tokens, thinking = self.body.thinking_budget, None
        if n_tokens is None:
            n_tokens = self.pool.settings.reasoning_budget
        if n_tokens < 0 and self.body.reasoning_control:
            n_tokens = ENDLESS
        if n_tokens >= 0 and form.thinking is not None and thought is not None:
            markers = form.thinking
            thinking = ThinkingBudget(n_tokens, markers.open, markers.close, markers.then, begins_inside=self._thinks)
        return ReplyShape(constraint, form.markers, thinking)

    @property
    def speculates(self) -> bool:
        """Whether tokens may be drafted: not where the body says that they may not."""
        return self.body.speculation is not False

    def images(self) -> tuple[PromptImage, ...]:
        """Return the images in the prompt."""
        return self._images

    def parser(self) -> ReplyParser | None:
        """Return what takes one reply apart; None where it is text and nothing else."""
        tools = {tool.function.name: tool.function.parameters or {} for tool in self.body.tools or ()}
        if not self.body.uses_tools and self._form.is_plain:
            return None
        told = (self.body.reasoning_format or self.pool.settings.reasoning_format) == "none"
        tools_or_none = tools if self.body.uses_tools else None
        return ReplyParser(self._form, tools_or_none, thinks=self._thinks, tells_thoughts=told)

    def drop_oldest(self) -> bool:
        """Leave out the oldest turn, up to what the user said next; False where only the last one is left."""
        messages = self.body.messages
        n_system = next((i for i, message in enumerate(messages) if message.role not in ("system", "developer")), 0)
        turns = [i for i, message in enumerate(messages) if message.role == "user" and i > n_system]
        if not turns:
            return False
        self.body = self.body.model_copy(update={"messages": [*messages[:n_system], *messages[turns[0] :]]})
        return True

    def running(self, *, streams: bool, truncates: bool) -> AbstractAsyncContextManager[tuple[ChatRun, Updates]]:
        """Run the call and give what comes of it; ``truncates`` leaves out the oldest turns of what does not fit."""
        return running(partial(self.run, streams=streams), self.drop_oldest if truncates else None)

    @asynccontextmanager
    async def run(self, *, streams: bool) -> AsyncIterator[ChatRun]:
        """Hold the model while the call runs; with ``streams`` False all updates come at once."""
        async with self.begun() as begun:
            yield ChatRun(self, begun, streams)


@dataclass(slots=True)
class RequestedCall:
    """A call that a model asks for; ``arguments`` is a JSON object as text, or its beginning in a reply cut short."""

    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class ChatUpdate:
    """What is new of one choice. ``pieces`` are certain; ``n_tokens`` counts the tokens behind this update.

    ``drafted`` has for each piece its drafted spans, where they are asked for.
    ``started`` says how long the prompt is and how much of it was cached, and ``read``, where it is asked for, how much
    was read since.
    """

    index: int
    pieces: Sequence[Piece]
    n_tokens: int = 0
    logprobs: Sequence[TokenLogprob] = ()
    started: Started | None = None
    end: Ended | None = None
    drafted: Sequence[list[Span]] = ()
    read: PromptRead | None = None


Updates = AsyncGenerator[list[ChatUpdate], None]


@dataclass(slots=True)
class ChatChoice:
    """All that has come of one choice so far."""

    parser: ReplyParser | None
    makes_one_call: bool = False
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[RequestedCall] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_tokens: int = 0
    n_reasoning: int = 0  # of these tokens
    started: Started | None = None
    end: Ended | None = None
    has_call: bool = False  # a whole one, as the last
    is_reasoning: bool = False  # the text that came last
    drafted: DraftedText | None = None  # where it is asked for

    def take(self, news: ChoiceUpdate) -> ChatUpdate:
        """Keep what is new; return it as pieces."""
        pieces = self._parsed(news)
        drafted = self._drafted(news, pieces) if self.drafted is not None else ()
        update = ChatUpdate(
            news.index, pieces, news.n_tokens, news.logprobs, news.started, news.end, drafted, news.read
        )
        self.keep(update, len(news.text))
        return update

    def keep(self, update: ChatUpdate, n_chars: int = 0) -> None:
        """Keep what is new; ``n_chars`` are those of the text that was taken apart, with its markers."""
        self.n_tokens += update.n_tokens
        self.started, self.end = update.started or self.started, update.end
        if update.logprobs:
            self.logprobs += update.logprobs
        for piece in update.pieces:
            self._keep(piece)
        thoughts = [piece.text for piece in update.pieces if isinstance(piece, ReasoningText)]
        if update.pieces:
            self.is_reasoning = isinstance(update.pieces[-1], ReasoningText)
        if 0 < len(thoughts) < len(update.pieces):  # which of its tokens were thoughts is not told
            n_thought = sum(map(len, thoughts))
            self.n_reasoning += round(update.n_tokens * n_thought / max(n_chars, n_thought))
        elif self.is_reasoning:
            self.n_reasoning += update.n_tokens

    @property
    def finish_reason(self) -> str:
        """Why the choice ended: ``stop``, ``length`` or ``tool_calls``."""
        if self.end is not None and self.end.reason is FinishReason.LENGTH:
            return "length"
        is_cut = self.end is not None and self.end.stop and not self.has_call
        return "tool_calls" if self.calls and not is_cut else "stop"

    @property
    def has_enough(self) -> bool:
        """True where a choice that may make one call has made it, and still runs."""
        return self.makes_one_call and self.has_call and self.end is None

    def _parsed(self, news: ChoiceUpdate) -> list[Piece]:
        if self.makes_one_call and self.has_call:
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

    def _drafted(self, news: ChoiceUpdate, pieces: Sequence[Piece]) -> list[list[Span]]:
        assert self.drafted is not None
        self.drafted.feed(news.text, news.drafted)
        return [
            self.drafted.take(piece.text) if isinstance(piece, ContentText | ReasoningText) else [] for piece in pieces
        ]

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


class RunningChat(Protocol):
    """A chat that runs, here or elsewhere."""

    choices: list[ChatChoice]

    def updates(self) -> Updates:
        """Yield what is new of the choices; raises ApiError. What runs when this is closed is cancelled."""


_Run = TypeVar("_Run", bound=RunningChat)


@asynccontextmanager
async def running(
    run: Callable[[], AbstractAsyncContextManager[_Run]], drop_oldest: Callable[[], bool] | None
) -> AsyncIterator[tuple[_Run, Updates]]:
    """Run a chat and give what comes of it; where it does not fit, its oldest turns are dropped one by one.

    ``drop_oldest`` says whether one was; None drops none.
    """
    while True:
        async with AsyncExitStack() as stack:
            try:
                begun = await stack.enter_async_context(run())
                updates = await stack.enter_async_context(aclosing(begun.updates()))
                first = await anext(updates)
            except ApiError as error:
                if drop_oldest is not None and error.answer.code == "context_length_exceeded" and drop_oldest():
                    continue
                raise
            yield begun, _with_first(first, updates)
            return


async def _with_first(first: list[ChatUpdate], rest: Updates) -> Updates:
    yield first
    async for batch in rest:
        yield batch


class ChatRun:
    """A call that holds its model. ``prepare`` may be left out: ``updates`` does what is left of it."""

    def __init__(self, call: ChatCall, begun: Begun, streams: bool) -> None:
        body = call.body
        self.model, self.requests = begun.model, begun.requests
        self.deep: DeepReply | None = None
        # A reply of no tokens only reads its prompt, with which those of the stages begin.
        if body.wanted_speed is ReplySpeed.DEEP and body.token_limit != 0:
            self.deep = DeepReply(body, begun.requests[0], call.host.bridge, call.renderer, begun.model)
        one_call = body.parallel_tool_calls is False
        self.choices = [ChatChoice(call.parser(), one_call) for _ in begun.requests]
        if body.drafted_spans:
            for choice in self.choices:
                choice.drafted = DraftedText()
        # What comes in one piece cannot be counted by what it is.
        is_followed = self.deep is not None and self.deep.has_listener
        self._call, self._streams = call, streams or is_followed or any(choice.parser for choice in self.choices)
        self._is_prepared = self.deep is None

    async def prepare(self) -> AsyncGenerator[DeepReplyProgress, None]:
        """Run the stages of a deep reply before its last one; yield how far they are."""
        if self.deep is None or self._is_prepared:
            return
        self._is_prepared = True
        async with aclosing(self.deep.think()) as thinking:
            async for progress in thinking:
                yield progress
        self.requests = [self.deep.answer]

    async def updates(self) -> Updates:
        """Yield what is new of the choices; raises RequestFailed. What runs when this is closed is cancelled."""
        async with aclosing(self.prepare()) as preparing:
            async for _ in preparing:
                pass
        async with aclosing(self._call.updates(self.requests, streams=self._streams)) as batches:
            async for batch in batches:
                updates = [self.choices[news.index].take(news) for news in batch]
                for update in updates:
                    if self.choices[update.index].has_enough:
                        self._call.host.bridge.cancel(self.requests[update.index].id)
                if self.deep is not None and self.deep.has_listener:
                    self.deep.note_answer(sum(choice.n_tokens for choice in self.choices))
                yield updates

    async def finish(self) -> None:
        """Run to the end; ``choices`` have all that came."""
        async with aclosing(self.updates()) as batches:
            async for _ in batches:
                pass

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts of the choices that have ended."""
        return [choice.end.receipt for choice in self.choices if choice.end is not None]
