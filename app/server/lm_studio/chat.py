"""POST /api/v1/chat: LM Studio's chat, which keeps the conversation. It is stored as responses are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Annotated, Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import ConfigDict, Field

from app.server.calls.chat_body import MAX_MESSAGES, ChatCompletionBody, with_own
from app.server.calls.generation import ChoiceUpdate
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import Text, TokenLimit
from app.server.chat.chat_call import ChatCall
from app.server.chat.run import Choice, Run, running
from app.server.http.body import LenientBody, WholeNumbers, valid
from app.server.http.errors import from_exception, refuse, renamed
from app.server.http.sse import EventStream, encode_named, while_connected
from app.server.openai.response_body import Item, ToolNames, messages_of
from app.server.openai.response_store import ResponseStore, StoredResponse, new_number
from app.server.openai.responses import earlier_items
from app.server.remotes.chat import AtRemote, where_it_runs
from app.server.replies.pieces import ContentText, ReasoningText
from core.values.messages import Receipt

# Fields about how a model is loaded, which is set elsewhere.
_HINTS = ("context_length", "ttl")
# What an answer there has no place for.
_UNSAYABLE = ("messages", "n", "tools", "logprobs", "top_logprobs")
_NO_TOOLS = ToolNames(())
# How often a load is looked at, in seconds: often enough for a progress bar.
_LOOK_SECONDS = 0.1
# The names of fields in the chat's body.
_SENT = {"messages": "input", "max_completion_tokens": "max_output_tokens", "reasoning_effort": "reasoning"}


class InputItem(LenientBody):
    """A text or an image of the message."""

    type: Literal["message", "text", "image"]
    content: Text | None = None
    data_url: str | None = None

    def part(self, place: str) -> Item:
        """Return it as a part of a message; raises ApiError."""
        field = "data_url" if self.type == "image" else "content"
        value = getattr(self, field)
        if value is None:
            raise refuse(400, f"{place} needs the field {field}.", param=f"{place}.{field}")
        return (
            {"type": "input_image", "image_url": value}
            if self.type == "image"
            else {"type": "input_text", "text": value}
        )


class LmStudioChatBody(WholeNumbers):
    """The body of POST /api/v1/chat; the fields of sampling are a chat's."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str = Field(min_length=1)
    input: Text | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES)]
    system_prompt: Text | None = None
    integrations: list[Any] | None = None
    stream: bool | None = None
    max_output_tokens: TokenLimit = None
    reasoning: Literal["off", "low", "medium", "high", "on"] | None = None
    store: bool | None = None
    previous_response_id: Text | None = None

    @property
    def items(self) -> list[Item]:
        """What is said now, as items of a response's input; raises ApiError."""
        said: str | list[Item]
        if isinstance(self.input, str):
            said = self.input
        else:
            said = [item.part(f"input[{index}]") for index, item in enumerate(self.input)]
        told = [_message("system", self.system_prompt)] if self.system_prompt else []
        return [*told, _message("user", said)]

    def chat(self, earlier: list[Item]) -> ChatCompletionBody:
        """Return the chat call's body, for a conversation that ``earlier`` items begin; raises ApiError."""
        if self.integrations:
            raise refuse(
                400,
                "Integrations run in LM Studio and not here: leave integrations out, or send tools to "
                "/v1/chat/completions and run them yourself.",
                param="integrations",
            )
        items = [*earlier, *self.items]
        told = [item for item in items if item.get("role") == "system"][-1:]  # what the latest turn with one said
        items = [*told, *(item for item in items if item.get("role") != "system")]
        fields = {name: value for name, value in (self.model_extra or {}).items() if name not in _HINTS}
        own = {
            "model": self.model,
            "messages": messages_of(None, items, _NO_TOOLS),
            "max_completion_tokens": self.max_output_tokens,
        }
        fields = with_own(fields, own, _UNSAYABLE)
        if self.stream:
            fields |= {"stream": True, "return_progress": True}
        if self.reasoning in ("on", "off"):
            fields["enable_thinking"] = self.reasoning == "on"
        elif self.reasoning is not None:
            fields["reasoning_effort"] = self.reasoning
        return valid(ChatCompletionBody, fields, _SENT)


async def chat(body: LmStudioChatBody, http: HttpRequest) -> Response:
    """Answer the input, as one object or as a stream of events."""
    store: ResponseStore = http.app.state.responses
    earlier = await earlier_items(store, body.previous_response_id)
    local = ChatCall(body.chat(earlier), pool_of(http), http.app.state.renderer)
    local.must_think = "reasoning" if body.reasoning not in (None, "off") else ""
    reply = LmStudioReply(body, await where_it_runs(http, local), store)
    if body.stream:
        return EventStream(reply.stream())
    return JSONResponse(await while_connected(http.receive, reply.whole()))


class LmStudioReply:
    """Runs a chat, and tells of it in LM Studio's output and events."""

    def __init__(self, body: LmStudioChatBody, call: ChatCall | AtRemote, store: ResponseStore) -> None:
        self._body, self._call, self._store = body, call, store
        self._is_stored = body.store is not False
        self._number = new_number()
        self._id = f"resp_{self._number}"
        self._output: list[dict[str, str]] = []  # kinds, and their texts
        self._name = body.model
        self._run: Run | None = None
        self._load_seconds: float | None = None  # where the model was not there
        self._share_read: float | None = 0.0  # of the prompt; None where it was read

    async def whole(self) -> dict[str, Any]:
        """Return the answer as one object."""
        async with aclosing(self._events(streams=False)) as events:
            async for _ in events:
                pass
        await self._keep()
        return self._result()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the events; one that fails ends with the error and what came before it."""
        has_begun = False
        try:
            async with aclosing(self._events(streams=True)) as batches:
                async for events in batches:
                    has_begun = True
                    yield events
        except Exception as error:
            if not has_begun:
                raise
            told = from_exception(error).event(_PATH)
            yield self._ended() + told + _event("chat.end", result=self._result() | {"response_id": None})
            return
        await self._keep()
        yield self._ended() + _event("chat.end", result=self._result())

    async def _events(self, *, streams: bool) -> AsyncGenerator[bytes, None]:
        """Run the chat and yield its events, up to the end of what is said."""
        with renamed(_SENT):
            async with AsyncExitStack() as stack:
                begun = asyncio.ensure_future(stack.enter_async_context(running(self._call, streams=streams)))
                try:
                    async with aclosing(self._loading(begun)) as events:
                        async for event in events:
                            yield event
                    self._run, updates = await begun
                finally:
                    begun.cancel()
                    await asyncio.gather(begun, return_exceptions=True)
                self._name = self._run.name
                starts = self._event("chat.start") if self._load_seconds is None else b""
                yield starts + _event("prompt_processing.start")
                async for batch in updates:
                    said = b"".join(event for update in batch for event in (*self._read(update), *self._take(update)))
                    if said:
                        yield said

    async def _loading(self, begun: asyncio.Future[Any]) -> AsyncGenerator[bytes, None]:
        """Yield the events of a load that the chat waits for, as long as it has not ``begun``."""
        if isinstance(self._call, AtRemote):
            return
        pool = self._call.pool
        entry = await pool.answering(self._body.model)
        if pool.load_progress(entry) is None:
            return
        self._name, since, told = entry.name, time.monotonic(), 0.0
        self._load_seconds = 0.0
        yield self._event("chat.start") + self._event("model_load.start")
        while not begun.done() and (progress := pool.load_progress(entry)) is not None:
            if progress > told:
                told = progress
                yield self._event("model_load.progress", progress=round(progress, 3))
            await asyncio.wait([begun], timeout=_LOOK_SECONDS)
        if begun.done() and begun.exception() is not None:
            return
        self._load_seconds = round(time.monotonic() - since, 3)
        yield self._event("model_load.end", load_time_seconds=self._load_seconds)

    def _event(self, kind: str, **told: Any) -> bytes:
        return _event(kind, model_instance_id=self._name, **told)

    def _read(self, update: ChoiceUpdate) -> Iterator[bytes]:
        """Yield the events that tell how much of the prompt was read, and at last that all was."""
        if self._share_read is None:
            return
        if update.read is not None and (share := update.read.n_read / update.read.n_prompt) > self._share_read:
            self._share_read = share
            yield _event("prompt_processing.progress", progress=round(share, 3))
        if update.n_tokens or update.end is not None:
            self._share_read = None
            yield _event("prompt_processing.end")

    def _take(self, update: ChoiceUpdate) -> list[bytes]:
        """Keep what is new, and return the events that tell it. There are no calls: no tools were sent."""
        events = []
        for piece in update.pieces:
            if not isinstance(piece, ContentText | ReasoningText):
                continue
            kind = "message" if isinstance(piece, ContentText) else "reasoning"
            if not self._output or self._output[-1]["type"] != kind:
                events += [self._ended(), _event(f"{kind}.start")]
                self._output.append({"type": kind, "content": ""})
            self._output[-1]["content"] += piece.text
            events.append(_event(f"{kind}.delta", content=piece.text))
        return events

    def _ended(self) -> bytes:
        """Return the event that ends the last part of the output."""
        return _event(f"{self._output[-1]['type']}.end") if self._output else b""

    def _result(self) -> dict[str, Any]:
        choice = self._run.choices[0] if self._run is not None else Choice()
        receipt = choice.end.receipt if choice.end is not None else Receipt(n_generated=choice.n_tokens)
        stats = {
            "input_tokens": receipt.n_prompt,
            "total_output_tokens": receipt.n_generated,
            "reasoning_output_tokens": choice.n_reasoning,
            "tokens_per_second": round(receipt.decode_rate, 2),
            "time_to_first_token_seconds": round(receipt.ttft, 4),
        }
        if self._load_seconds is not None:
            stats["model_load_time_seconds"] = self._load_seconds
        result = {"model_instance_id": self._name, "output": self._output, "stats": stats}
        return result | {"response_id": self._id} if self._is_stored else result

    async def _keep(self) -> None:
        if not self._is_stored:
            return
        response = {
            "id": self._id,
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": self._name,
            "output": [_item(part, f"{self._number}_{index}") for index, part in enumerate(self._output)],
            "previous_response_id": self._body.previous_response_id,
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        stored = StoredResponse(response, self._body.items, self._body.previous_response_id)
        self._is_stored = await asyncio.to_thread(self._store.put, stored)


def _message(role: str, content: str | list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _item(part: dict[str, str], number: str) -> Item:
    """Return a part of the output as an item of a response."""
    text = part["content"]
    if part["type"] == "reasoning":
        thoughts: list[Item] = [{"type": "reasoning_text", "text": text}]
        return {"id": f"rs_{number}", "type": "reasoning", "summary": [], "content": thoughts}
    content: list[Item] = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content}


_PATH = "/api/v1/chat"


def _event(kind: str, **told: Any) -> bytes:
    return encode_named({"type": kind, **told})
