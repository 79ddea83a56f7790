"""POST /api/embed and /api/embeddings: vectors of texts in Ollama's shapes."""

from __future__ import annotations

import time
from array import array
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app.server.calls.generation import ask, new_id, text_of, tokens_of
from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import pool_of
from app.server.http.body import json_response
from app.server.http.errors import ApiError, renamed
from app.server.http.sse import while_connected
from app.server.ollama.bodies import EmbedBody, LegacyEmbedBody, RunBody
from app.server.ollama.chat import nanoseconds, resting, shown_name
from app.server.openai.embeddings import Vectors, check_pooling, floats_of, inputs_of
from app.server.remotes.chat import Unanswered, read_whole
from app.server.remotes.exchange import BAD_GATEWAY, Remotes, model_at_remote
from app.server.remotes.store import RemoteModel
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import Embedded, EmbedRequest

# Room for the tokens that a model wants before and behind a text.
_AROUND = 8


async def embed(body: EmbedBody, http: HttpRequest) -> Response:
    """Return a vector of each text; one that is too long is cut, unless ``truncate`` is false."""
    asked_at = time.monotonic()
    texts = [body.input] if isinstance(body.input, str) else body.input or []
    texts = [text for text in texts if text] if isinstance(body.input, str) else texts
    truncates = body.truncate is not False
    vectors, loaded_at = await _vectors(http, body, texts, truncates=truncates, dimensions=body.dimensions)
    return json_response(
        {
            "model": shown_name(vectors.model),
            "embeddings": [floats_of(one[0]) for one in vectors.answer.vectors],
            "total_duration": nanoseconds(time.monotonic() - asked_at),
            "load_duration": nanoseconds(loaded_at - asked_at),
            "prompt_eval_count": sum(vectors.answer.n_tokens),
        }
    )


async def embeddings(body: LegacyEmbedBody, http: HttpRequest) -> Response:
    """Return the vector of a text; the older route."""
    with renamed({"input": "prompt"}):
        vectors, _ = await _vectors(http, body, [body.prompt] if body.prompt else [], truncates=True)
    answers = vectors.answer.vectors
    return json_response({"embedding": floats_of(answers[0][0]) if answers else []})


async def _vectors(
    http: HttpRequest, body: RunBody, texts: list[str], *, truncates: bool, dimensions: int | None = None
) -> tuple[Vectors, float]:
    """Return the vectors, none where there are no texts, and when the model was there."""
    pool = pool_of(http)
    there = await model_at_remote(http, body.model)
    if there is not None:
        try:
            work = _of_remote(http.app.state.remotes, there, texts, dimensions)
            return await while_connected(http.receive, work), time.monotonic()
        except Unanswered as unanswered:
            body = body.model_copy(update={"model": unanswered.fallback})

    async def answer() -> tuple[Vectors, float]:
        async with resting(pool, body), pool.lease(body.model) as host:
            loaded = host.model
            assert loaded is not None
            loaded_at = time.monotonic()
            check_pooling(loaded)
            if not texts:
                return Vectors(Embedded("", (), ()), host.name), loaded_at
            try:
                inputs: Any = inputs_of(texts, "input")
            except ValueError as error:
                raise BadRequest(f"{error}.", param="input") from None
            try:
                found = await ask(host.bridge, EmbedRequest(new_id("embd"), inputs, dimensions=dimensions), Embedded)
            except ApiError as error:
                if not truncates or error.answer.code != "context_length_exceeded":
                    raise
                short = tuple([await _cut(host, loaded, text) for text in texts])
                found = await ask(host.bridge, EmbedRequest(new_id("embd"), short, dimensions=dimensions), Embedded)
            return Vectors(found, host.name), loaded_at

    return await while_connected(http.receive, answer())


async def _of_remote(remotes: Remotes, there: RemoteModel, texts: list[str], dimensions: int | None) -> Vectors:
    """Return a remote's vectors. Raises ApiError and Unanswered."""
    if not texts:
        return Vectors(Embedded("", (), ()), there.name)
    sized = {"dimensions": dimensions} if dimensions is not None else {}

    def read(found: dict[str, Any]) -> Vectors:
        try:
            vectors = tuple((array("f", one["embedding"]).tobytes(),) for one in found["data"])
            n_tokens = int((found.get("usage") or {}).get("prompt_tokens") or 0)
            if len(vectors) != len(texts):
                raise ValueError(f"{len(vectors)} of {len(texts)}")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            said = f"The remote {there.remote.name} does not answer with a vector of each text."
            raise ApiError(BAD_GATEWAY, said) from None
        return Vectors(Embedded("", vectors, (n_tokens,)), there.name)

    body = {"input": texts, "encoding_format": "float"} | sized
    return await read_whole(remotes, there, "/v1/embeddings", body, read)


async def _cut(host: ModelHost, model: LoadedModel, text: str) -> str:
    """Return as much of a text as the context has room for."""
    limit = model.n_ctx - _AROUND
    tokens = await tokens_of(host.bridge, text)
    return text if len(tokens) <= limit else await text_of(host.bridge, tokens[:limit])
