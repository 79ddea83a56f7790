"""Vectors of texts, and how well documents answer a query.

POST /embedding and /embeddings have llama-server's shapes, /v1/rerank and /rerank those of Jina, Cohere and TEI.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import Field, model_validator

from app.server.calls.generation import answered, new_id
from app.server.calls.schemas import Text
from app.server.http.body import LenientBody, json_response
from app.server.http.errors import renamed
from app.server.openai.embeddings import MAX_INPUTS, Vectors, VectorsBody, base64_of, floats_of, inputs_of
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.request import EUCLIDEAN, Embedded, EmbedRequest


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
        found = Vectors(*await answered(http, body.model, request, Embedded))
    write = base64_of if body.encoding_format == "base64" else floats_of
    answers = [[write(vector) for vector in vectors] for vectors in found.answer.vectors]
    return json_response([{"index": index, "embedding": vectors} for index, vectors in enumerate(answers)])


class TextDocument(LenientBody):
    """A document as Cohere's and Jina's clients send it."""

    text: Text


class RerankBody(VectorsBody):
    """The body; ``texts`` instead of ``documents`` is answered in the shape of Text Embeddings Inference (TEI).

    What TEI cuts with ``truncate`` is refused here as too long. ``raw_scores`` False gives scores from 0 to 1.
    """

    query: Text = Field(min_length=1)
    documents: list[Text | TextDocument] | None = Field(default=None, max_length=MAX_INPUTS)
    texts: list[Text] | None = Field(default=None, max_length=MAX_INPUTS)
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False
    return_text: bool = False
    raw_scores: bool = True
    truncate: bool | None = None
    truncation_direction: Literal["Left", "Right", "left", "right"] | None = None

    @model_validator(mode="after")
    def _has_documents(self) -> RerankBody:
        if (self.documents is None) == (self.texts is None):
            raise ValueError("documents (or texts, as TEI calls them) must be given once")
        if not (self.documents or self.texts):
            raise ValueError("documents must have one text or more")
        return self

    @property
    def given(self) -> tuple[str, ...]:
        """The texts of the documents."""
        listed = self.documents or self.texts or []
        return tuple(one if isinstance(one, str) else one.text for one in listed)


async def rerank(body: RerankBody, http: HttpRequest) -> Response:
    """Return the scores of the documents, best first."""
    given = body.given
    request = EmbedRequest(new_id("rank"), given, query=body.query, lane=body.lane)
    with renamed({"input": "documents" if body.texts is None else "texts"}):
        found = Vectors(*await answered(http, body.model, request, Embedded, _check))
    scores = [floats_of(one[0])[0] for one in found.answer.vectors]
    if not body.raw_scores:
        scores = [0.5 + math.tanh(score / 2) / 2 for score in scores]
    order = sorted(range(len(given)), key=lambda index: -scores[index])[: body.top_n]
    if body.texts is not None:
        shown = [{"text": given[index]} if body.return_text else {} for index in order]
        return json_response(
            [{"index": index, "score": scores[index]} | text for index, text in zip(order, shown, strict=True)]
        )
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": scores[index]} for index in order]
    if body.return_documents:
        results = [one | {"document": {"text": given[one["index"]]}} for one in results]
    return json_response({"model": found.model, "object": "list", "usage": found.usage, "results": results})


def _check(model: LoadedModel) -> None:
    if model.pooling != "rank":
        raise BadRequest(
            "This model does not score documents: name a reranker. One whose file does not say that it is one needs "
            "--reranking.",
            param="model",
        )
