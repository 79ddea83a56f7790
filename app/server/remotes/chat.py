"""A remote's model behind protocols that it need not speak: asked in OpenAI's, and what comes is made into pieces."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from fastapi import Request as HttpRequest

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.generation import ChoiceUpdate, Updates, new_id
from app.server.chat.call import Call
from app.server.chat.chat_call import ChatCall
from app.server.chat.run import Choice
from app.server.http.errors import ApiError, from_exception
from app.server.remotes.exchange import BAD_GATEWAY, Remotes, ask_remote, model_at_remote
from app.server.remotes.figures import RemoteRequest
from app.server.remotes.store import RemoteModel
from app.server.remotes.upstream import Sent, error_text
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from core.values.messages import Ended, FinishReason, Logprob, TokenLogprob
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]
T = TypeVar("T")
# Pieces that wait for the client: one that reads slowly slows the remote down, and fills no memory here.
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


class Unanswered(Exception):
    """A remote gave nothing of an answer: the model ``fallback`` of this machine shall answer in its place."""

    def __init__(self, fallback: str) -> None:
        super().__init__(fallback)
        self.fallback = fallback


async def where_it_runs(http: HttpRequest, call: ChatCall) -> ChatCall | AtRemote:
    """Return the call as it runs where its model is: here, or at a remote."""
    there = await model_at_remote(http, call.body.model)
    return chat_at(http.app.state.remotes, there, call) if there is not None else call


def chat_at(remotes: Remotes, there: RemoteModel, call: ChatCall) -> AtRemote:
    """Return a chat that a remote answers."""
    return AtRemote(remotes, there, call, "/v1/chat/completions", lambda: openai_chat(call.body))


class AtRemote:
    """A call that a remote answers, with this ``body`` at ``path``; ``local`` is the same call here."""

    def __init__(
        self, remotes: Remotes, there: RemoteModel, local: Call[Any], path: str, body: Callable[[], Json]
    ) -> None:
        self.remotes, self.there, self.local, self.path, self.body = remotes, there, local, path, body

    def drop_oldest(self, share: float) -> bool:
        """Leave out the oldest turns, as ``local`` does."""
        return self.local.drop_oldest(share)

    @asynccontextmanager
    async def run(self, *, streams: bool) -> AsyncIterator[RemoteRun]:
        """Run the call."""
        self.local.check()
        yield RemoteRun(self, streams)


class RemoteRun:
    """A call that runs at a remote, or here where that did not answer."""

    def __init__(self, call: AtRemote, streams: bool) -> None:
        self._call, self._streams = call, streams
        self.choices, self.name, self.begun_at = [Choice()], call.there.name, 0.0

    async def updates(self) -> Updates:
        """Yield what is new; raises ApiError. What runs when this is closed is cancelled."""
        call, local = self._call, self._call.local
        try:
            said = _updates_of(call.remotes, call.there, call.path, call.body(), self._streams)
            async with aclosing(said) as updates:
                async for update in updates:
                    self.begun_at = self.begun_at or time.monotonic()
                    self.choices[0].keep(update)
                    yield [update]
            return
        except Unanswered as unanswered:
            fallback = unanswered.fallback
        local.body = local.body.model_copy(update={"model": fallback})
        async with local.run(streams=self._streams) as run, aclosing(run.updates()) as batches:
            self.choices, self.name, self.begun_at = run.choices, run.name, run.begun_at
            async for batch in batches:
                yield batch


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


async def _updates_of(
    remotes: Remotes, there: RemoteModel, path: str, body: Json, streams: bool
) -> AsyncGenerator[ChoiceUpdate, None]:
    """Yield what a remote's chat or text brings, at last its end. Raises ApiError and Unanswered."""
    more = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
    request = remotes.figures.open(RemoteRequest(there, body=body | more))
    reader = _ChunkReader()
    with _counted(remotes, request):
        async with aclosing(_objects(remotes, request, path)) as objects:
            async for data in objects:
                try:
                    update = reader.read(data)
                except (AttributeError, TypeError, ValueError):
                    raise _not_openais(there) from None
                if update.pieces or update.logprobs:
                    yield update
        if not reader.has_choice:
            raise _not_openais(there)
    yield reader.end(request)


@contextmanager
def _counted(remotes: Remotes, request: RemoteRequest) -> Iterator[None]:
    """Count a request as what became of it: one whose answer nobody understands has failed."""
    reason = FinishReason.CANCELLED
    try:
        yield
        reason = FinishReason.STOP
    except Exception:
        reason = FinishReason.CANCELLED if request.ended_by is not None else FinishReason.FAILED
        raise
    finally:
        remotes.figures.close(request, reason)


def _not_openais(there: RemoteModel) -> ApiError:
    said = Sentence("The remote {name} answers in another form than OpenAI's.", name=there.remote.name)
    return ApiError(BAD_GATEWAY, said)


async def read_whole(remotes: Remotes, there: RemoteModel, path: str, body: Json, read: Callable[[Json], T]) -> T:
    """Return what ``read`` makes of a remote's whole answer, {} where that is no JSON object; it may raise ApiError.

    Raises ApiError and Unanswered.
    """
    request = remotes.figures.open(RemoteRequest(there, body=body))
    found: Json = {}
    with _counted(remotes, request):
        async with aclosing(_objects(remotes, request, path)) as objects:
            async for data in objects:
                found = data
        return read(found)


async def _objects(remotes: Remotes, request: RemoteRequest, path: str) -> AsyncGenerator[Json, None]:
    """Yield the JSON objects of an answer: those of its events, or the whole one."""
    held = _Held()

    async def work() -> None:
        try:
            fallback = await ask_remote(remotes, request, Sent(path, _HEADERS), held)
            await held.queue.put(None if fallback is None else Unanswered(fallback))
        except Exception as error:
            await held.queue.put(from_exception(error))

    working = asyncio.ensure_future(work())
    try:
        while (item := await held.queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            for line in item.splitlines():
                if line.startswith(b"data:") and (data := _object_of(line[5:])) is not None:
                    if "error" in data and not data.get("choices"):
                        raise ApiError(
                            BAD_GATEWAY,
                            Sentence(
                                "The remote {name} says: {words}",
                                name=request.to.remote.name,
                                words=error_text(line[5:]),
                            ),
                        )
                    yield data
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


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
        self.has_choice = False  # in what came so far
        self._called: int | None = None  # the number of the call that has begun
        self._is_cut = False
        self._is_whole = False
        self._n_chars = [0, 0]  # of thoughts, and of all

    def read(self, data: Json) -> ChoiceUpdate:
        """Return what is new in a chunk."""
        pieces: list[Piece] = []
        logprobs: list[TokenLogprob] = []
        for choice in _dicts(data.get("choices"))[:1]:
            self.has_choice = True
            self._is_cut = self._is_cut or choice.get("finish_reason") == "length"
            self._is_whole = "message" in choice
            said = choice.get("delta") or choice.get("message") or {"content": choice.get("text")}
            pieces += _said(said)
            pieces += self._calls(_dicts(said.get("tool_calls")))
            logprobs += _logprobs(choice.get("logprobs"))
        for piece in pieces:
            n_chars = len(piece.text) if isinstance(piece, ReasoningText | ContentText | CallArguments) else 0
            self._n_chars[0] += n_chars * isinstance(piece, ReasoningText)
            self._n_chars[1] += n_chars
        return ChoiceUpdate(0, n_tokens=1 if pieces else 0, logprobs=logprobs, pieces=pieces)

    def end(self, request: RemoteRequest) -> ChoiceUpdate:
        """Return the end: the answer is complete."""
        pieces = [CallEnded()] if self._called is not None and not self._is_cut else []
        reason = FinishReason.LENGTH if self._is_cut else FinishReason.STOP
        end = Ended(request.id, reason, receipt=request.receipt)
        return ChoiceUpdate(0, end=end, pieces=pieces, n_reasoning=self._n_reasoning(request))

    def _n_reasoning(self, request: RemoteRequest) -> int | None:
        """Return the tokens of thoughts; None where they came one by one, and were counted so.

        Many remotes do not count them, or say 0. Then those of a whole answer have their share of its text.
        """
        n_thoughts, n_all = self._n_chars
        if request.n_reasoning or not self._is_whole:
            return request.n_reasoning or None
        return round(request.n_tokens * n_thoughts / n_all) if n_all else 0

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


def _said(message: Json) -> Iterator[Piece]:
    """Yield thoughts and text of a chunk or an answer; Mistral's models that think send parts of both."""
    content = message.get("content")
    for part in _dicts(content):
        yield from (ReasoningText(one["text"]) for one in _dicts(part.get("thinking")) if _is_text(one.get("text")))
        if _is_text(part.get("text")):
            yield ContentText(part["text"])
    thoughts = [message[name] for name in ("reasoning_content", "reasoning") if _is_text(message.get(name))]
    if thoughts:
        yield ReasoningText(thoughts[0])
    if _is_text(content):
        yield ContentText(content)


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _dicts(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _logprobs(found: Any) -> Iterator[TokenLogprob]:
    for one in _dicts(found.get("content") if isinstance(found, dict) else None):
        yield TokenLogprob(_logprob(one), tuple(_logprob(other) for other in _dicts(one.get("top_logprobs"))))


def _logprob(one: Json) -> Logprob:
    """Return a token's log probability; its number is the remote's own and not said."""
    piece = bytes(one["bytes"]) if isinstance(one.get("bytes"), list) else str(one.get("token", "")).encode()
    return Logprob(-1, piece, float(one.get("logprob") or 0.0))
