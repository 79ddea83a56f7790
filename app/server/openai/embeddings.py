"""POST /v1/embeddings: texts become vectors."""

from __future__ import annotations

import base64
from array import array
from typing import Any, Literal, NamedTuple

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import Field, field_validator, model_validator

from app.server.calls.generation import answered, new_id
from app.server.calls.schemas import HINTS, PromptInput, is_token_ids
from app.server.calls.speed import wanted_speed
from app.server.http.body import WholeNumbers, json_response
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import Embedded, EmbedRequest, Lane, ReplySpeed

MAX_INPUTS = 2_048  # as at OpenAI


class VectorsBody(WholeNumbers):
    """What requests for vectors and for scores have in common: the model, and how soon they are wanted."""

    model: str | None = None
    speed: str | None = None
    service_tier: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_hints(cls, value: Any) -> Any:
        """Leave out nulls, and what other servers know and what changes nothing here."""
        if not isinstance(value, dict):
            return value
        fields = cls.model_fields
        return {name: one for name, one in value.items() if one is not None and (name in fields or name not in HINTS)}

    @property
    def lane(self) -> Lane:
        """The engine's lane. Raises BadRequest."""
        speed = wanted_speed(self.speed, self.service_tier)
        if speed in (ReplySpeed.SPARK, ReplySpeed.DEEP):
            raise BadRequest(f"speed {speed} is for texts: vectors have standard, fast and batch.", param="speed")
        return speed.lane


class EmbeddingsBody(VectorsBody):
    """The body of POST /v1/embeddings; ``input`` is a text, a list of texts, token ids, or a list of such lists."""

    input: Any
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)

    @field_validator("input")
    @classmethod
    def _is_input(cls, value: Any) -> tuple[PromptInput, ...]:
        return inputs_of(value, "input")


def inputs_of(value: Any, field: str) -> tuple[PromptInput, ...]:
    """Return the inputs that a field holds; raises ValueError."""
    is_one = isinstance(value, str | dict) or is_token_ids(value)
    several = [value] if is_one else value
    if not isinstance(several, list) or not several:
        raise ValueError(f"{field} must be a text, token ids, or a list of these, none of them empty")
    if len(several) > MAX_INPUTS:
        raise ValueError(f"{field} must have {MAX_INPUTS:,} entries or fewer, not {len(several):,}")
    return tuple(_input_of(one, field if is_one else f"{field}[{index}]") for index, one in enumerate(several))


def _text_in(value: dict[str, Any]) -> Any:
    """Return the text of an object: Jina's (``text``), llama-server's (``prompt_string``), or parts of a message."""
    if value.get("image") or value.get("multimodal_data"):
        return None  # the vector of the text alone would not be what was asked for
    parts = value.get("content")
    if isinstance(parts, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        texts = [part.get("text") for part in parts]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else None
    return value.get("text", value.get("prompt_string"))


def _input_of(value: Any, field: str) -> PromptInput:
    if isinstance(value, dict):
        value = _text_in(value)
    if isinstance(value, str) and value:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{field} holds half of a surrogate pair, which is not text") from None
        return value
    if is_token_ids(value):
        return tuple(value)
    raise ValueError(f"{field} must be a text or token ids, and not be empty")


class Vectors(NamedTuple):
    """What the engine answered, and the name of the model."""

    answer: Embedded
    model: str

    @property
    def usage(self) -> dict[str, int]:
        """The tokens that were read."""
        n_tokens = sum(self.answer.n_tokens)
        return {"prompt_tokens": n_tokens, "total_tokens": n_tokens}


async def embeddings(body: EmbeddingsBody, http: HttpRequest) -> Response:
    """Return the vectors of the inputs, of Euclidean length 1."""
    request = EmbedRequest(new_id("embd"), body.input, dimensions=body.dimensions, lane=body.lane)
    vectors = Vectors(*await answered(http, body.model, request, Embedded, check_pooling))
    is_base64 = body.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": base64_of(one[0]) if is_base64 else floats_of(one[0])}
        for index, one in enumerate(vectors.answer.vectors)
    ]
    answer = {"id": request.id, "object": "list", "data": data}  # Mistral's client needs an id
    return json_response(answer | {"model": vectors.model, "usage": vectors.usage})


def check_pooling(model: LoadedModel) -> None:
    """Raise BadRequest for a model that gives no vector of a whole text."""
    if model.pooling == "none":
        raise BadRequest(
            "This model gives a vector for each token (pooling none): use /embedding, or start with --pooling mean.",
            param="model",
        )


def floats_of(vector: bytes) -> list[float]:
    """Return the values of a vector."""
    values = array("f")
    values.frombytes(vector)
    return values.tolist()


def base64_of(vector: bytes) -> str:
    """Return a vector as OpenAI's clients ask for it."""
    return base64.b64encode(vector).decode()
