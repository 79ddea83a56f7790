"""POST /v1/messages: the chat call in Anthropic's blocks and events."""

from __future__ import annotations

from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.anthropic.message_body import SENT_FIELDS, Block, MessageBody
from app.server.calls.generation import ChoiceUpdate, new_id
from app.server.calls.model_pool import pool_of
from app.server.chat.chat_call import ChatCall, ChatRun
from app.server.chat.run import Reply, respond
from app.server.http.errors import renamed
from app.server.http.sse import encode_named, while_connected
from app.server.replies.json_text import read_json
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece

_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}
_KINDS = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}


async def create_message(body: MessageBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream of events."""
    call = ChatCall(body.chat(), pool_of(http), http.app.state.renderer)
    return await respond(http, call, MessageReply, streams=body.stream, names=SENT_FIELDS)


async def count_tokens(body: MessageBody, http: HttpRequest) -> Response:
    """Return how many tokens the messages are as the model reads them."""
    call = ChatCall(body.chat(), pool_of(http), http.app.state.renderer)
    with renamed(SENT_FIELDS):
        return JSONResponse({"input_tokens": await while_connected(http.receive, call.count_tokens())})


class MessageReply(Reply):
    """Builds a message's blocks from the pieces of a chat, and tells of each step as an event."""

    def __init__(self, run: ChatRun) -> None:
        self._model, self._choice = run.name, run.choices[0]
        self._id = new_id("msg").replace("-", "_")
        self._blocks: list[Block] = []
        self._text: list[str] = []  # of the block that grows
        self._is_open = False

    def opening(self) -> bytes:
        """Return the events that begin the stream."""
        begun = self.message() | {"content": [], "stop_reason": None, "stop_sequence": None}
        return encode_named({"type": "message_start", "message": begun}) + encode_named({"type": "ping"})

    def take(self, update: ChoiceUpdate) -> None:
        """Keep what is new."""
        self.events(update)

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Keep what is new, and return the events that tell of it."""
        return b"".join(map(encode_named, self.events(update)))

    def events(self, update: ChoiceUpdate) -> list[Block]:
        """Keep what is new, and return what is to be told of it."""
        return [event for piece in update.pieces for event in self._take(piece)]

    async def closing(self) -> bytes:
        """Return the last events of the stream."""
        told = {"stop_reason": self._stop_reason, "stop_sequence": self._stop_sequence}
        usage = self.message()["usage"]
        end = [*self._close(), {"type": "message_delta", "delta": told, "usage": usage}, {"type": "message_stop"}]
        return b"".join(map(encode_named, end))

    async def whole(self) -> dict[str, Any]:
        """Return the message."""
        self._close()
        return self.message()

    def message(self) -> dict[str, Any]:
        """Return the message as it stands."""
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": list(self._blocks),
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "usage": self._usage(),
        }

    def _usage(self) -> dict[str, int]:
        """Return the tokens: those of the prompt that were cached are counted apart, as there."""
        choice, started = self._choice, self._choice.started
        if choice.end is not None:
            receipt = choice.end.receipt
            n_prompt, n_cached, n_generated = receipt.n_prompt, receipt.n_cached, receipt.n_generated
        else:
            n_prompt, n_cached = (started.n_prompt, started.n_cached) if started is not None else (0, 0)
            n_generated = choice.n_tokens
        return {
            "input_tokens": n_prompt - n_cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": n_cached,
            "output_tokens": n_generated,
        }

    @property
    def _stop_sequence(self) -> str | None:
        return self._choice.end.stop if self._choice.end is not None else None

    @property
    def _stop_reason(self) -> str | None:
        if self._choice.end is None:
            return None
        return "stop_sequence" if self._choice.end.stop else _STOPS[self._choice.finish_reason]

    def _take(self, piece: Piece) -> list[Block]:
        if isinstance(piece, CallEnded):
            return self._close()
        if isinstance(piece, CallBegun):
            block = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
            return [*self._close(), self._open(block)]
        kind = (
            "tool_use" if isinstance(piece, CallArguments) else "text" if isinstance(piece, ContentText) else "thinking"
        )
        events = []
        if not (self._is_open and self._blocks[-1]["type"] == kind):
            empty = {"text": ""} if kind == "text" else {"thinking": "", "signature": ""}
            events = [*self._close(), self._open({"type": kind, **empty})]
        self._text.append(piece.text)
        field = "partial_json" if kind == "tool_use" else kind
        return [*events, self._delta({"type": _KINDS[kind], field: piece.text})]

    def _open(self, block: Block) -> Block:
        self._blocks.append(block)
        self._is_open = True
        return {"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": dict(block)}

    def _delta(self, delta: Block) -> Block:
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _close(self) -> list[Block]:
        if not self._is_open:
            return []
        block, text = self._blocks[-1], "".join(self._text)
        self._text.clear()
        self._is_open = False
        events = []
        if block["type"] == "tool_use":
            block["input"] = _object(text)
        elif block["type"] == "thinking":
            # Clients send it back with the thoughts; here it protects nothing.
            block |= {"thinking": text, "signature": self._id}
            events = [self._delta({"type": "signature_delta", "signature": self._id})]
        else:
            block["text"] = text
        return [*events, {"type": "content_block_stop", "index": len(self._blocks) - 1}]


def _object(text: str) -> Any:
    """Return the arguments of a call; {} where the reply was cut before they were whole."""
    try:
        return read_json(text or "{}")
    except ValueError:
        return {}
