"""POST /embedding and /embeddings: vectors of texts, in llama-server's shapes."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import Field, model_validator

from app.server.calls.generation import new_id
from app.server.http.errors import renamed
from app.server.openai.embeddings import VectorsBody, base64_of, floats_of, inputs_of, json_response, vectors_of
from core.values.request import EUCLIDEAN, EmbedRequest


class EmbeddingBody(VectorsBody):
    """The body: ``content`` or ``input`` is a text, token ids, or a list of these."""

    content: Any = None
    input: Any = None
    embd_normalize: int = Field(default=EUCLIDEAN, ge=-1, le=64)
    encoding_format: Literal["float", "base64"] = "float"

    @model_validator(mode="after")
    def _has_one_input(self) -> EmbeddingBody:
        if (self.content is None) == (self.input is None):
            raise ValueError("content (or input, the same) must be given once")
        name = "input" if self.content is None else "content"
        self.content = inputs_of(getattr(self, name), name)
        return self


async def embedding(body: EmbeddingBody, http: HttpRequest) -> Response:
    """Return a list with the vectors of each input: one, or with pooling none one of each token."""
    request = EmbedRequest(new_id("embd"), body.content, norm=body.embd_normalize, lane=body.lane)
    with renamed({"input": "content" if body.input is None else "input"}):
        found = await vectors_of(http, request, body.model)
    write = base64_of if body.encoding_format == "base64" else floats_of
    answers = [[write(vector) for vector in vectors] for vectors in found.answer.vectors]
    return json_response([{"index": index, "embedding": vectors} for index, vectors in enumerate(answers)])
