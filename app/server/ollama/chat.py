"""POST /api/chat and /api/generate: chats and texts in Ollama's objects, one in a line of a stream."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.generation import text_of, tokens_of
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import ChatCompletionBody
from app.server.chat.call import ChatCall, ChatUpdate, Updates
from app.server.http.errors import ApiError, refuse, renamed
from app.server.http.sse import LineStream, while_connected
from app.server.llama_cpp.completion import LlamaCall
from app.server.llama_cpp.infill import InfillBody, InfillCall
from app.server.ollama.bodies import GenerateBody, OllamaChatBody, RunBody, WritingBody
from app.server.openai.timings import LOWEST
from app.server.remotes.chat import AtRemote, ModelAtRemote, RemoteChat, model_at_remote, placed
from app.server.replies.pieces import CallArguments, CallBegun, ContentText, Piece, ReasoningText
from app.server.templates.chat_template import TemplateRenderer, Turn
from core.values.errors import SlipstreamError
from core.values.messages import Ended, FinishReason, LoadedModel, Logprob, TokenLogprob

Line = dict[str, Any]
Kind = Literal["chat", "generate"]


async def chat(body: OllamaChatBody, http: HttpRequest) -> Response:
    """Answer the messages, in lines or as one object; without messages, load or unload the model."""
    pool: ModelPool = http.app.state.pool
    if not body.messages:
        return await _prepared(http, body, "chat")
    call = await placed(http, ChatCall(body.chat(), pool, http.app.state.renderer))
    return await _response(http, call, body, "chat")


async def generate(body: GenerateBody, http: HttpRequest) -> Response:
    """Answer the prompt, go on with it (``raw``) or fill in the middle (``suffix``)."""
    pool: ModelPool = http.app.state.pool
    if not body.prompt and not body.suffix:
        return await _prepared(http, body, "generate")
    there = await model_at_remote(http, body.model)
    if there is not None and body.context:
        raise refuse(
            400, f"{there.name} is a remote's model, whose tokens are not known here: use /api/chat.", param="context"
        )
    call: OllamaCall
    if not body.is_text:
        call = PromptCall(body.chat(), pool, http.app.state.renderer, tuple(body.context or ()))
        call = RemoteChat(there, call) if there is not None else call
    else:
        text = body.text()
        call = InfillCall(text, pool) if isinstance(text, InfillBody) else LlamaCall(text, pool)
        call = RemoteText(there, call, body.openai_text()) if there is not None else call
    return await _response(http, call, body, "generate")


def shown_name(name: str) -> str:
    """Return a model's name with a tag, as Ollama's have: clients add ``:latest`` to one without and look it up."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def nanoseconds(seconds: float) -> int:
    """Return a duration; never 0, which clients would divide by."""
    return max(round(seconds * 1e9), 1)


@asynccontextmanager
async def resting(pool: ModelPool, body: RunBody) -> AsyncIterator[None]:
    """Unload the model behind a call that asks for it (``keep_alive: 0``), as soon as nobody else uses it."""
    try:
        yield
    finally:
        if body.unloads:
            with contextlib.suppress(ApiError, SlipstreamError):  # it has left meanwhile
                await pool.request_unload(body.model)


class PromptCall(ChatCall):
    """A chat of one message, which goes on from the tokens of an earlier answer (``context``)."""

    def __init__(
        self, body: ChatCompletionBody, pool: ModelPool, renderer: TemplateRenderer, context: tuple[int, ...]
    ) -> None:
        super().__init__(body, pool, renderer)
        self._context = context
        self._earlier = ""

    async def prompts(self, model: LoadedModel) -> Sequence[str]:
        """Return what was said earlier and then the message."""
        (prompt,) = await super().prompts(model)
        if self._context:
            self._earlier = await text_of(self.host.bridge, self._context)
        return [self._joined(prompt, model)]

    async def context_after(self, model: LoadedModel, answer: str) -> list[int]:
        """Return the tokens of all that was said, with the answer."""
        told = {"role": "assistant", "content": answer}
        variables = self.body.template_variables()
        text = await self.renderer.render(model, variables | {"messages": [*variables["messages"], told]}, Turn.NONE)
        return list(await tokens_of(self.host.bridge, self._joined(text, model)))

    def _joined(self, text: str, model: LoadedModel) -> str:
        return self._earlier + text.removeprefix(model.bos) if self._earlier else text


class RemoteText(AtRemote[LlamaCall]):
    """A text that a remote goes on with."""

    def __init__(self, there: ModelAtRemote, local: LlamaCall, body: Line) -> None:
        super().__init__(there, local)
        self._body = body

    def updates(self, *, streams: bool) -> Updates:
        """Yield what is new; raises ApiError."""
        return self.answered("/v1/completions", self._body, streams=streams, step_in=partial(self._step_in, streams))

    async def _step_in(self, streams: bool) -> Updates:
        local = self.local
        async with local.begun() as begun, aclosing(_of_text(local, begun.requests, streams=streams)) as batches:
            self.name = local.name
            async for batch in batches:
                yield batch


OllamaCall = ChatCall | RemoteChat | LlamaCall | RemoteText


async def _prepared(http: HttpRequest, body: WritingBody, kind: Kind) -> Response:
    """Load the model, or unload it with ``keep_alive: 0``; either way it is over. A remote's is where it is."""
    pool: ModelPool = http.app.state.pool
    reply = OllamaReply(kind, body.model)
    is_remote = await model_at_remote(http, body.model) is not None

    async def prepare() -> None:
        if is_remote:
            return
        if not body.unloads:
            async with pool.lease(body.model) as host:
                reply.name = shown_name(host.name)
            return
        async with resting(pool, body):
            pass

    await while_connected(http.receive, prepare())
    return JSONResponse(reply.line() | {"done": True, "done_reason": "unload" if body.unloads else "load"})


async def _response(http: HttpRequest, call: OllamaCall, body: WritingBody, kind: Kind) -> Response:
    reply = OllamaReply(kind, shown_name(body.model))
    if body.streams:
        return LineStream(_stream(call, body, reply), ping=_encoded(reply.line()))
    return JSONResponse(await while_connected(http.receive, _answer(call, body, reply)))


async def _answer(call: OllamaCall, body: WritingBody, reply: OllamaReply) -> Line:
    async with resting(call.pool, body), _running(call, body, reply, streams=False) as updates:
        async for batch in updates:
            for update in batch:
                reply.take(update)
        return reply.whole() | await _context(call, reply)


async def _stream(call: OllamaCall, body: WritingBody, reply: OllamaReply) -> AsyncGenerator[bytes, None]:
    async with resting(call.pool, body), _running(call, body, reply, streams=True) as updates:
        async for batch in updates:
            lines = [line for update in batch for line in reply.take(update)]
            if lines:
                yield b"".join(map(_encoded, lines))
        yield _encoded(reply.last() | await _context(call, reply))


@asynccontextmanager
async def _running(call: OllamaCall, body: WritingBody, reply: OllamaReply, *, streams: bool) -> AsyncIterator[Updates]:
    """Run the call; what is wrong with it is told by the names of its body's fields."""
    with renamed(body.sent_fields):
        async with _begun(call, body, reply, streams=streams) as updates:
            yield updates


@asynccontextmanager
async def _begun(call: OllamaCall, body: WritingBody, reply: OllamaReply, *, streams: bool) -> AsyncIterator[Updates]:
    """Hold the model and run the call; of a chat that is too long the oldest turns are left out, as there."""
    if isinstance(call, LlamaCall):
        async with call.begun() as begun:
            reply.begin(call.name, call.begun_at)
            async with aclosing(_of_text(call, begun.requests, streams=streams)) as updates:
                yield updates
        return
    if isinstance(call, RemoteText):
        async with aclosing(call.updates(streams=streams)) as updates:
            yield _telling(reply, call, updates)
        return
    truncates = body.truncate is not False
    if isinstance(call, RemoteChat):
        async with call.running(streams=streams, truncates=truncates) as (_, updates):
            yield _telling(reply, call, updates)
        return
    call.must_think = "think" if body.think not in (None, False) else ""
    async with call.running(streams=streams, truncates=truncates) as (_, updates):
        reply.begin(call.name, call.begun_at)
        yield updates


async def _telling(reply: OllamaReply, call: RemoteChat | RemoteText, updates: Updates) -> Updates:
    """Yield the updates; who answers is known with the first."""
    async for batch in updates:
        reply.begin(call.name, time.monotonic())
        yield batch


async def _of_text(call: LlamaCall, requests: Sequence[Any], *, streams: bool) -> Updates:
    async with aclosing(call.updates(requests, streams=streams)) as batches:
        async for batch in batches:
            yield [
                ChatUpdate(
                    news.index,
                    [ContentText(news.text)] if news.text else [],
                    news.n_tokens,
                    news.logprobs,
                    news.started,
                    news.end,
                )
                for news in batch
            ]


async def _context(call: OllamaCall, reply: OllamaReply) -> Line:
    """Return the tokens with which a prompt's conversation goes on; nothing for chats, plain texts and images."""
    if not isinstance(call, PromptCall) or call.host.model is None or call.body.images:
        return {}
    try:
        return {"context": await call.context_after(call.host.model, reply.content)}
    except (ApiError, SlipstreamError):  # a template that takes no answers; this one is whole
        return {}


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


class OllamaReply:
    """Builds the lines of one reply."""

    def __init__(self, kind: Kind, name: str) -> None:
        self._kind, self.name = kind, name
        self._asked_at = time.monotonic()
        self._begun_at: float | None = None
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Line] = []
        self._logprobs: list[Line] = []
        self._called: CallBegun | None = None
        self._arguments: list[str] = []
        self._end: Ended | None = None

    @property
    def content(self) -> str:
        """The text so far, without thoughts."""
        return "".join(self._content)

    def begin(self, name: str, at: float) -> None:
        """Note since when the model is there; the time is of ``time.monotonic``."""
        self.name, self._begun_at = shown_name(name), self._begun_at or at

    def take(self, update: ChatUpdate) -> list[Line]:
        """Keep what is new, and return the lines that tell it."""
        self._end = update.end or self._end
        content, thinking, calls = "", "", list[Line]()
        for piece in update.pieces:
            if isinstance(piece, ContentText):
                content += piece.text
            elif isinstance(piece, ReasoningText):
                thinking += piece.text
            elif (call := self._call(piece)) is not None:
                calls.append(call)
        logprobs = [_logprob(one) for one in update.logprobs]
        self._content.append(content)
        self._thoughts.append(thinking)
        self._calls += calls
        self._logprobs += logprobs
        if not (content or thinking or calls or logprobs):
            return []
        return [self.line(content, thinking, calls, logprobs)]

    def line(
        self, content: str = "", thinking: str = "", calls: Sequence[Line] = (), logprobs: Sequence[Line] = ()
    ) -> Line:
        """Return a line with what is told in it."""
        said: Line = {"role": "assistant", "content": content} if self._kind == "chat" else {"response": content}
        if thinking:
            said["thinking"] = thinking
        if calls:
            said["tool_calls"] = list(calls)
        created = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        line: Line = {"model": self.name, "created_at": created}
        line |= {"message": said} if self._kind == "chat" else said
        if logprobs:
            line["logprobs"] = list(logprobs)
        return line | {"done": False}

    def last(self) -> Line:
        """Return the line that ends the reply."""
        return self.line() | self._cost()

    def whole(self) -> Line:
        """Return the whole reply as one object."""
        return self.line(self.content, "".join(self._thoughts), self._calls, self._logprobs) | self._cost()

    def _call(self, piece: Piece) -> Line | None:
        """Return a call that is whole now. One that was cut is left out: its arguments are no object."""
        if isinstance(piece, CallBegun):
            self._called, self._arguments = piece, []
            return None
        if isinstance(piece, CallArguments):
            self._arguments.append(piece.text)
            return None
        if self._called is None:
            return None
        try:
            arguments = json.loads("".join(self._arguments) or "{}")
        except ValueError:
            return None
        function = {"index": len(self._calls), "name": self._called.name, "arguments": arguments}
        return {"id": self._called.id, "function": function}

    def _cost(self) -> Line:
        assert self._end is not None
        receipt, now = self._end.receipt, time.monotonic()
        return {
            "done": True,
            "done_reason": "length" if self._end.reason is FinishReason.LENGTH else "stop",
            "total_duration": nanoseconds(now - self._asked_at),
            "load_duration": nanoseconds((self._begun_at or now) - self._asked_at),
            "prompt_eval_count": receipt.n_prompt,
            "prompt_eval_duration": nanoseconds(receipt.prefill),
            "eval_count": receipt.n_generated,
            "eval_duration": nanoseconds(receipt.decode),
        }


def _logprob(one: TokenLogprob) -> Line:
    return _token(one.chosen) | {"top_logprobs": [_token(other) for other in one.top]}


def _token(one: Logprob) -> Line:
    text = one.piece.decode("utf-8", "replace")
    return {"token": text, "logprob": max(one.logprob, LOWEST), "bytes": list(one.piece)}
