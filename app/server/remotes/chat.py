"""A remote's model behind protocols that it need not speak: asked in OpenAI's, and what comes is made into pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fastapi import Request as HttpRequest

from app.server.calls.call import Call
from app.server.calls.generation import new_id
from app.server.calls.schemas import ChatCompletionBody
from app.server.chat.call import ChatCall, ChatChoice, ChatUpdate, Updates, running
from app.server.http.errors import ApiError, from_exception
from app.server.remotes.exchange import BAD_GATEWAY, RemoteCall, Remotes, ask, model_named, untagged
from app.server.remotes.figures import RemoteRequest
from app.server.remotes.store import Remote
from app.server.remotes.upstream import Sent, error_text
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from core.values.messages import Ended, FinishReason, Logprob, TokenLogprob
from core.values.request import Lane
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]
# Whoever reads slowly slows the remote down, not only us.
_MOST_HELD = 64
# Fields that only servers of ours know; how much is thought is said as templates are told.
_OURS = frozenset(
    [
        "drafted_spans",
        "enable_thinking",
        "lora",
        "model",
        "reasoning_budget",
        "reasoning_control",
        "reasoning_format",
        "return_progress",
        "speculation",
        "speed",
        "stream",
        "thinking_budget_tokens",
        "timings_per_token",
    ]
)


_Local = TypeVar("_Local", bound=Call[Any])


class ModelAtRemote(NamedTuple):
    """A model at a remote."""

    remotes: Remotes
    remote: Remote
    model: str

    @property
    def name(self) -> str:
        """The name that it has here."""
        return f"{self.remote.name}/{self.model}"


class Unanswered(Exception):
    """A remote gave nothing of an answer: others may answer in its place, else ``failure`` is told."""

    def __init__(self, failure: ApiError) -> None:
        super().__init__(failure.message)
        self.failure = failure


async def model_at_remote(http: HttpRequest, name: str | None) -> ModelAtRemote | None:
    """Return the remote's model of this name, also with a tag that Ollama's clients add; None for names of others.

    Raises ModelNotFound.
    """
    remotes: Remotes = http.app.state.remotes
    known = remotes.store.all()
    if name is None or not known:
        return None
    found = model_named(known, name)
    return ModelAtRemote(remotes, found[0], await untagged(remotes, *found)) if found is not None else None


async def placed(http: HttpRequest, call: ChatCall) -> ChatCall | RemoteChat:
    """Return the call as it runs where its model is: here, or at a remote."""
    there = await model_at_remote(http, call.body.model)
    return RemoteChat(there, call) if there is not None else call


class AtRemote(Generic[_Local]):
    """A call that a remote answers; ``local`` is the same call here, for the model that steps in."""

    def __init__(self, there: ModelAtRemote, local: _Local) -> None:
        self.there, self.local = there, local
        self.name = there.name
        self.pool = local.pool

    async def answered(self, path: str, body: Json, *, streams: bool, step_in: Callable[[], Updates]) -> Updates:
        """Yield what the remote says, else what ``step_in`` does once ``local`` names that model; raises ApiError."""
        try:
            async with aclosing(_updates_of(self.there, path, body, streams)) as updates:
                async for update in updates:
                    yield [update]
            return
        except Unanswered as unanswered:
            fallback = fallback_of(self.there, unanswered)
        self.local.body = self.local.body.model_copy(update={"model": fallback})
        async with aclosing(step_in()) as batches:
            async for batch in batches:
                yield batch


class RemoteChat(AtRemote[ChatCall]):
    """A chat that a remote answers."""

    def running(self, *, streams: bool, truncates: bool) -> AbstractAsyncContextManager[tuple[RemoteRun, Updates]]:
        """Run the call and give what comes of it, as ``ChatCall.running``."""
        self.local.check()
        return running(partial(self.run, streams=streams), self.local.drop_oldest if truncates else None)

    @asynccontextmanager
    async def run(self, *, streams: bool) -> AsyncIterator[RemoteRun]:
        """Run the call, as ``ChatCall.run``."""
        yield RemoteRun(self, streams)


class RemoteRun:
    """A chat that runs at a remote, or here where that did not answer."""

    def __init__(self, call: RemoteChat, streams: bool) -> None:
        self._call, self._streams = call, streams
        self.choices = [ChatChoice(None)]

    async def updates(self) -> Updates:
        """Yield what is new; raises ApiError. What runs when this is closed is cancelled."""
        answer, body = self.choices[0], openai_chat(self._call.local.body)
        said = self._call.answered("/v1/chat/completions", body, streams=self._streams, step_in=self._step_in)
        async with aclosing(said) as batches:
            async for batch in batches:
                if self.choices[0] is answer:  # a run here keeps its own
                    for update in batch:
                        answer.keep(update)
                yield batch

    async def _step_in(self) -> Updates:
        call = self._call
        async with call.local.run(streams=self._streams) as run, aclosing(run.updates()) as batches:
            self.choices, call.name = run.choices, call.local.name
            async for batch in batches:
                yield batch


def fallback_of(there: ModelAtRemote, unanswered: Unanswered) -> str:
    """Return the model of this machine that answers in a remote's place; raises ApiError where there is none."""
    remote = there.remote
    if remote.fallback is None:
        raise unanswered.failure from None
    there.remotes.figures.n_fallbacks[remote.name] += 1
    return remote.fallback


def openai_chat(body: ChatCompletionBody) -> Json:
    """Return a chat's body as other servers read it."""
    sent = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(_OURS))
    thinks = body.wants_thinking
    if body.enable_thinking is not None and thinks is not None:
        kwargs = {"enable_thinking": thinks, "thinking": thinks}
        sent["chat_template_kwargs"] = kwargs | (body.chat_template_kwargs or {})
    if "repeat_penalty" in sent:  # vLLM's name for it
        sent["repetition_penalty"] = sent["repeat_penalty"]
    form = sent.get("response_format")
    for one in (form, form.get("json_schema")) if form else ():
        if one and "schema_" in one:
            one["schema"] = one.pop("schema_")
    for message in sent["messages"]:
        for called in message.get("tool_calls", ()):
            function = called["function"]
            if not isinstance(function["arguments"], str):
                function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    return sent


async def _updates_of(there: ModelAtRemote, path: str, body: Json, streams: bool) -> AsyncGenerator[ChatUpdate, None]:
    """Yield what a remote's chat or text brings, at last its end. Raises ApiError and Unanswered."""
    asked = body | ({"stream": True, "stream_options": {"include_usage": True}} if streams else {})
    request = there.remotes.figures.open(there.remote.name, there.model, Lane.STANDARD)
    reader = _ChunkReader()
    async with aclosing(_objects(there, path, asked, request)) as objects:
        async for data in objects:
            update = reader.read(data)
            if update.pieces or update.logprobs:
                yield update
        yield reader.end(request)


async def object_of(there: ModelAtRemote, path: str, body: Json) -> Json:
    """Return a remote's whole answer, {} where that is no JSON object. Raises ApiError and Unanswered."""
    request = there.remotes.figures.open(there.remote.name, there.model, Lane.STANDARD)
    found: Json = {}
    async with aclosing(_objects(there, path, body, request)) as objects:
        async for data in objects:
            found = data
    return found


async def _objects(there: ModelAtRemote, path: str, body: Json, request: RemoteRequest) -> AsyncGenerator[Json, None]:
    """Yield the JSON objects of an answer: those of its events, or the whole one."""
    call = RemoteCall(there.remote, there.model, body, request.lane)
    held = _Held()
    reason = FinishReason.CANCELLED

    async def work() -> None:
        try:
            failure = await ask(there.remotes, call, Sent(path, _HEADERS), held, request)
            await held.queue.put(None if failure is None else Unanswered(failure))
        except Exception as error:
            await held.queue.put(from_exception(error))

    working = asyncio.ensure_future(work())
    try:
        while (item := await held.queue.get()) is not None:
            if isinstance(item, Exception):
                reason = FinishReason.CANCELLED if request.ended_by is not None else FinishReason.FAILED
                raise item
            for line in item.splitlines():
                if line.startswith(b"data:") and (data := _object_of(line[5:])) is not None:
                    if "error" in data and not data.get("choices"):
                        reason = FinishReason.FAILED
                        raise ApiError(
                            BAD_GATEWAY,
                            Sentence(
                                "The remote {name} says: {words}", name=there.remote.name, words=error_text(line[5:])
                            ),
                        )
                    yield data
        reason = FinishReason.STOP
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        there.remotes.figures.close(request, reason)


_HEADERS = ((b"content-type", b"application/json"),)


def _object_of(text: bytes) -> Json | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # [DONE], or not for us
        return None
    return found if isinstance(found, dict) else None


class _Held:
    """Takes a remote's answer in lines, for whoever reads it; a whole one as a single event."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_MOST_HELD)
        self.has_begun = False

    async def begin(self, response: httpx.Response) -> None:
        self.has_begun = True

    async def write(self, lines: bytes) -> None:
        await self.queue.put(lines)

    async def end(self, response: httpx.Response) -> None:
        self.has_begun = True

    async def send_whole(self, response: httpx.Response, body: bytes) -> None:
        self.has_begun = True
        await self.queue.put(b"data: " + b" ".join(body.splitlines()))


class _ChunkReader:
    """Makes pieces of the chunks of one choice, or of a whole answer."""

    def __init__(self) -> None:
        self._called: int | None = None  # the number of the call that has begun
        self._is_cut = False

    def read(self, data: Json) -> ChatUpdate:
        """Return what is new in a chunk."""
        pieces: list[Piece] = []
        logprobs: list[TokenLogprob] = []
        for choice in _dicts(data.get("choices"))[:1]:
            self._is_cut = self._is_cut or choice.get("finish_reason") == "length"
            said = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
            for name, kind in (("reasoning_content", ReasoningText), ("reasoning", ReasoningText)):
                if isinstance(said.get(name), str) and said[name]:
                    pieces.append(kind(said[name]))
                    break
            if isinstance(said.get("content"), str) and said["content"]:
                pieces.append(ContentText(said["content"]))
            pieces += self._calls(_dicts(said.get("tool_calls")))
            logprobs += _logprobs(choice.get("logprobs"))
        return ChatUpdate(0, pieces, 1 if pieces else 0, logprobs)

    def end(self, request: RemoteRequest) -> ChatUpdate:
        """Return the end: the answer is complete."""
        pieces = [CallEnded()] if self._called is not None and not self._is_cut else []
        reason = FinishReason.LENGTH if self._is_cut else FinishReason.STOP
        return ChatUpdate(0, pieces, end=Ended(request.id, reason, receipt=request.receipt))

    def _calls(self, deltas: list[Json]) -> Iterator[Piece]:
        for number, delta in enumerate(deltas):
            function = delta.get("function") or {}
            index = delta.get("index", number)
            if index != self._called:
                if self._called is not None:
                    yield CallEnded()
                self._called = index
                yield CallBegun(str(delta.get("id") or new_id("call")), str(function.get("name") or ""))
            arguments = function.get("arguments")
            if arguments:
                yield CallArguments(arguments if isinstance(arguments, str) else json.dumps(arguments))


def _dicts(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _logprobs(found: Any) -> Iterator[TokenLogprob]:
    for one in _dicts(found.get("content") if isinstance(found, dict) else None):
        yield TokenLogprob(_logprob(one), tuple(_logprob(other) for other in _dicts(one.get("top_logprobs"))))


def _logprob(one: Json) -> Logprob:
    """Return a token's log probability; its number is the remote's own and not said."""
    piece = bytes(one["bytes"]) if isinstance(one.get("bytes"), list) else str(one.get("token", "")).encode()
    return Logprob(-1, piece, float(one.get("logprob") or 0.0))
