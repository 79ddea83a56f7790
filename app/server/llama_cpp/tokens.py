"""POST /tokenize, /detokenize and /apply-template: what becomes of a text or of messages, in llama-server's shapes."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.generation import ask, new_id
from app.server.calls.model_pool import ModelPool
from app.server.calls.schemas import ChatCompletionBody, Text
from app.server.chat.call import ChatCall
from app.server.http.body import LenientBody
from app.server.http.sse import while_connected
from core.values.messages import Answer
from core.values.request import Detokenized, DetokenizeRequest, Tokenized, TokenizeRequest

_Answer = TypeVar("_Answer", bound=Answer)


class TokenizeBody(LenientBody):
    """The body of POST /tokenize; a list of ``content`` mixes texts and token ids."""

    content: Text | list[Text | int]
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None
    model: str | None = None


class DetokenizeBody(LenientBody):
    """The body of POST /detokenize."""

    tokens: list[int]
    model: str | None = None


async def tokenize(body: TokenizeBody, http: HttpRequest) -> Response:
    """Return the tokens of a text, with their pieces where they are wanted."""
    parts = (body.content,) if isinstance(body.content, str) else tuple(body.content)
    request = TokenizeRequest(new_id("tokens"), parts, bool(body.add_special), body.parse_special is not False)
    answer = await _answer(http, body.model, request, Tokenized)
    if not body.with_pieces:
        return JSONResponse({"tokens": list(answer.tokens)})
    pairs = zip(answer.tokens, answer.pieces, strict=True)
    return JSONResponse({"tokens": [{"id": token, "piece": _piece(piece)} for token, piece in pairs]})


async def detokenize(body: DetokenizeBody, http: HttpRequest) -> Response:
    """Return the text of tokens."""
    answer = await _answer(http, body.model, DetokenizeRequest(new_id("text"), tuple(body.tokens)), Detokenized)
    return JSONResponse({"content": answer.text})


async def apply_template(body: ChatCompletionBody, http: HttpRequest) -> Response:
    """Return the prompt that a chat with this body would have."""
    call = ChatCall(body, http.app.state.pool, http.app.state.renderer)

    async def prompt() -> Any:
        async with call.begun() as begun:
            return begun.requests[0].prompt

    return JSONResponse({"prompt": await while_connected(http.receive, prompt())})


async def _answer(
    http: HttpRequest, model: str | None, request: TokenizeRequest | DetokenizeRequest, kind: type[_Answer]
) -> _Answer:
    pool: ModelPool = http.app.state.pool

    async def answer() -> _Answer:
        async with pool.lease(model) as host:
            return await ask(host.bridge, request, kind)

    return await while_connected(http.receive, answer())


def _piece(piece: bytes) -> str | list[int]:
    """Return a piece as text, or its bytes where it is part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
