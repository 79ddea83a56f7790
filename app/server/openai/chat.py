"""POST /v1/chat/completions."""

from __future__ import annotations

import json
from collections.abc import Container
from functools import partial
from typing import Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.calls.chat_body import ChatCompletionBody, text_of_arguments
from app.server.calls.generation import ChoiceUpdate
from app.server.calls.model_pool import pool_of
from app.server.chat.chat_call import ChatCall, ChatRun
from app.server.chat.run import Choice, respond
from app.server.http.body import LenientBody
from app.server.http.keys import may_see
from app.server.http.sse import encode_text, while_connected
from app.server.openai.timings import OpenAiReply, chat_logprobs, timings_so_far
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece, ReasoningText
from core.values.messages import Receipt

_REPLY_ID = "chatcmpl"


async def chat_completions(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages, as one object or as a stream."""
    return await reply_with(ChatReply, body, http)


async def count_input_tokens(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Return how many tokens the messages are as the model reads them, in the shape of llama-server."""
    call = ChatCall(body, pool_of(http), http.app.state.renderer)
    n_tokens = await while_connected(http.receive, call.count_tokens())
    return JSONResponse({"object": "response.input_tokens", "input_tokens": n_tokens})


class ControlBody(LenientBody):
    """The body of POST /v1/chat/completions/control, as llama-server has it."""

    id: str = Field(min_length=1)
    action: Literal["reasoning_end"]


async def control(body: ControlBody, http: HttpRequest) -> Response:
    """Let a chat that is being answered go on from its thoughts to the answer."""
    pool = pool_of(http)
    number = body.id.removeprefix(f"{_REPLY_ID}-")
    name = f"{ChatCall.ID_PREFIX}-{number}"
    running = [(host, live) for host, live in pool.live if live.channel.first_id == name and live.slot is not None]
    found = [(host, live) for host, live in running if may_see(live.made_by)]
    thinking = [(host, live) for host, live in found if live.request.thinking is not None]
    for host, live in thinking:
        host.bridge.end_thoughts(live.request.id)
    if thinking:
        return JSONResponse({"success": True})
    why = (
        "Its thoughts cannot be ended: send reasoning_control true with the chat, to a model that thinks."
        if found
        else f"No chat of the id {body.id[:80]!r} is being answered: send the id that its chunks have."
    )
    return JSONResponse({"success": False, "message": why})


async def reply_with(kind: type[ChatReply], body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Answer the messages with a reply of this kind."""
    call = ChatCall(body, pool_of(http), http.app.state.renderer)
    call.tells_stages = bool(body.stream)
    return await respond(http, call, partial(kind, call), streams=body.stream)


class ChatReply(OpenAiReply):
    """Puts the choices of one chat into OpenAI's shapes."""

    def __init__(self, call: ChatCall, run: ChatRun) -> None:
        body = call.body
        super().__init__(call, run, _REPLY_ID, f"chat.completion{'.chunk' if body.stream else ''}")
        self._deep = run.deep
        self._has_logprobs = bool(body.logprobs)
        self._counts_tokens = bool(body.timings_per_token)
        self._heads = [f'{self._head},"choices":[{{"index":{i},"delta":{{"content":' for i in range(body.n_choices)]
        self._n_calls = [-1] * len(run.choices)  # the index of the call that was sent last
        self._custom = {tool.function.name for tool in body.tools or () if tool.type == "custom"}

    def opening(self) -> bytes:
        """Return the chunks that say who speaks."""
        who = {"delta": {"role": "assistant", "content": ""}}
        return b"".join(self._chunk(index, who, **self._so_far(index)) for index in range(len(self._choices)))

    def chunk(self, update: ChoiceUpdate) -> bytes:
        """Return the chunks for what is new of a choice; clients that do not know ``progress`` see an empty delta."""
        if update.progress is not None:
            return self._chunk(0, {"delta": {}}, progress=update.progress)
        return self._progress(update.index, {"delta": {}}, update.read) + self._said(update)

    def _said(self, update: ChoiceUpdate) -> bytes:
        pieces, so_far = update.pieces, self._so_far(update.index)
        if update.end is None and not update.logprobs and not any(update.spans):
            if not pieces:
                return b""
            if len(pieces) == 1 and type(pieces[0]) is ContentText:
                # The common case is put together by hand: it runs for every token of every stream.
                count = f",{json.dumps(so_far)[1:-1]}" if so_far else ""
                text = encode_text(pieces[0].text)
                return f"{self._heads[update.index]}{text}}}{self._tail}{count}}}\n\n".encode()
        spans = update.spans or [[]] * len(pieces)
        made = [(self._delta(update.index, piece), found) for piece, found in zip(pieces, spans, strict=True)]
        deltas: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (delta, {"drafted": found} if found else {}) for delta, found in made if delta is not None
        ]
        logprobs = chat_logprobs(update.logprobs) if self._has_logprobs and update.logprobs else None
        choice = self._choices[update.index]
        if update.end is not None and choice.calls and not choice.has_call and choice.calls[-1].name in self._custom:
            deltas.append((self._text_of_call(update.index), {}))
        if logprobs and not deltas:
            deltas.append(({"content": ""}, {}))
        chunks = b"".join(
            self._chunk(update.index, {"delta": delta}, logprobs if i == 0 else None, **so_far, **drafted)
            for i, (delta, drafted) in enumerate(deltas)
        )
        if update.end is None:
            return chunks
        why, cost = self._choices[update.index].finish_reason, self._timings([update.end.receipt])
        return chunks + self._chunk(update.index, {"delta": {}}, finish_reason=why, **so_far | {"timings": cost})

    def _so_far(self, index: int) -> dict[str, Any]:
        found, choice = super()._so_far(index), self._choices[index]
        if not self._counts_tokens or choice.first_at is None:
            return found
        return found | {"timings": timings_so_far(choice)}

    def _delta(self, index: int, piece: Piece) -> dict[str, Any] | None:
        if isinstance(piece, ContentText):
            return {"content": piece.text}
        if isinstance(piece, ReasoningText):
            return {"reasoning_content": piece.text}
        if isinstance(piece, CallBegun):
            self._n_calls[index] += 1
        call = self._choices[index].calls[self._n_calls[index]]
        if call.name in self._custom and not isinstance(piece, CallBegun):
            return self._text_of_call(index) if isinstance(piece, CallEnded) else None
        if isinstance(piece, CallEnded):
            return None
        if isinstance(piece, CallArguments):
            return self._of_call(index, {"function": {"arguments": piece.text}})
        return self._of_call(index, {"id": piece.id} | _called(piece.name, "", is_custom=piece.name in self._custom))

    def _text_of_call(self, index: int) -> dict[str, Any]:
        """Return what a call of a tool that takes free text says: it is told once its arguments are whole, or cut."""
        call = self._choices[index].calls[self._n_calls[index]]
        return self._of_call(index, {"custom": {"input": text_of_arguments(call.arguments)}})

    def _of_call(self, index: int, told: dict[str, Any]) -> dict[str, Any]:
        return {"tool_calls": [{"index": self._n_calls[index]} | told]}

    def _wire(self, index: int, choice: Choice) -> dict[str, Any]:
        return {
            "index": index,
            "message": _message(choice, self._custom),
            "logprobs": chat_logprobs(choice.logprobs) if self._has_logprobs else None,
            "finish_reason": choice.finish_reason,
        }

    def _usage(self, receipts: list[Receipt]) -> dict[str, Any]:
        n_reasoning = sum(choice.n_reasoning for choice in self._choices)
        counted = super()._usage(receipts) | {"completion_tokens_details": {"reasoning_tokens": n_reasoning}}
        return self._deep.usage(counted) if self._deep is not None else counted

    def _timings(self, receipts: list[Receipt]) -> dict[str, Any]:
        return super()._timings(receipts) | (self._deep.timings(receipts[0]) if self._deep is not None else {})


def _called(name: str, arguments: str, *, is_custom: bool) -> dict[str, Any]:
    if is_custom:
        return {"type": "custom", "custom": {"name": name, "input": text_of_arguments(arguments)}}
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def _message(choice: Choice, custom: Container[str]) -> dict[str, Any]:
    text = choice.text
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not choice.calls else None}
    if choice.reasoning:
        message["reasoning_content"] = "".join(choice.reasoning)
    message["refusal"] = None
    if choice.calls:
        message["tool_calls"] = [
            {"id": call.id} | _called(call.name, call.arguments, is_custom=call.name in custom) for call in choice.calls
        ]
    return message
