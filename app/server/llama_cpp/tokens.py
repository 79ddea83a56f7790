"""POST /tokenize, /detokenize and /apply-template: what becomes of a text or of messages, in llama-server's shapes."""

from __future__ import annotations

from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import model_validator

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.generation import answered, new_id
from app.server.calls.model_pool import pool_of
from app.server.calls.schemas import Text
from app.server.chat.chat_call import ChatCall
from app.server.http.body import LenientBody, json_response, valid
from app.server.http.errors import refuse
from app.server.http.sse import while_connected
from core.values.request import Detokenized, DetokenizeRequest, Tokenized, TokenizeRequest

_OF_CHATS = ("model", "messages", "tools", "add_generation_prompt", "continue_final_message", "chat_template_kwargs")
_MOST_PIECES = 200_000  # all other callers wait while they are written down
_OF_IMAGE = -1  # in the place of a token, as llama.cpp has it


class TokenizeBody(LenientBody):
    """The body of POST /tokenize; a list of ``content`` mixes texts and token ids.

    vLLM's is taken too: a ``prompt``, with what stands before it unless ``add_special_tokens`` is false; or
    ``messages``, with the fields of a chat that its template reads.
    """

    content: Text | list[Text | int]
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None
    model: str | None = None
    messages: list[Any] | None = None
    tools: list[Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | str | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_here(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "content" in value:
            return value
        if value.get("messages") is not None:
            return {"content": ""} | value
        if value.get("prompt") is None:
            return value
        special = value.get("add_special_tokens")
        return {"content": value["prompt"], "add_special": True if special is None else special} | value


class DetokenizeBody(LenientBody):
    """The body of POST /detokenize."""

    tokens: list[int]
    model: str | None = None


async def tokenize(body: TokenizeBody, http: HttpRequest) -> Response:
    """Return the tokens of a text, with their pieces where they are wanted, or those of messages."""
    if body.messages is not None:
        sent = {name: getattr(body, name) for name in _OF_CHATS}
        call = ChatCall(valid(ChatCompletionBody, sent, {}), pool_of(http), http.app.state.renderer)
        found = await while_connected(http.receive, call.tokens())
        told = [max(token, _OF_IMAGE) for token in found]
        return json_response({"tokens": told, "count": len(told)})
    parts = (body.content,) if isinstance(body.content, str) else tuple(body.content)
    request = TokenizeRequest(new_id("tokens"), parts, bool(body.add_special), body.parse_special is not False)
    answer, _ = await answered(http, body.model, request, Tokenized)
    tokens: list[Any] = list(answer.tokens)
    if body.with_pieces:
        if len(tokens) > _MOST_PIECES:
            message = f"with_pieces shows {_MOST_PIECES:,} tokens at most, not {len(tokens):,}: send the text in parts."
            raise refuse(400, message, param="with_pieces")
        pairs = zip(answer.tokens, answer.pieces, strict=True)
        tokens = [{"id": token, "piece": _piece(piece)} for token, piece in pairs]
    return json_response({"tokens": tokens, "count": len(tokens)})


async def detokenize(body: DetokenizeBody, http: HttpRequest) -> Response:
    """Return the text of tokens, by llama-server's name and by vLLM's."""
    request = DetokenizeRequest(new_id("text"), tuple(body.tokens))
    answer, _ = await answered(http, body.model, request, Detokenized)
    return JSONResponse({"content": answer.text, "prompt": answer.text})


async def apply_template(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Return the prompt that a chat with this body would have."""
    call = ChatCall(body, pool_of(http), http.app.state.renderer)

    async def prompt() -> Any:
        async with call.begun() as (_, requests):
            return requests[0].prompt

    return JSONResponse({"prompt": await while_connected(http.receive, prompt())})


def _piece(piece: bytes) -> str | list[int]:
    """Return a piece as text, or its bytes where it is part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
