"""Texts to vectors, or to scores for a query."""

from __future__ import annotations

from dataclasses import dataclass

from core.values.errors import BadRequest
from core.values.request import Lane

EUCLIDEAN = 2  # the p of the norm


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Asks for the vectors of ``inputs``, each text or token ids, or for their scores as answers to ``query``.

    ``dimensions`` keeps only the first values of each vector. Vectors are divided by their ``norm`` as in llama.cpp's
    ``common_embd_normalize``: 2 is Euclidean, 1 the sum of absolute values, any other p the p-norm; with 0 the largest
    value becomes 32760, and -1 does not normalise.
    """

    id: str
    inputs: tuple[str | tuple[int, ...], ...]
    query: str | None = None
    dimensions: int | None = None
    norm: int = EUCLIDEAN
    lane: Lane = Lane.STANDARD

    def __post_init__(self) -> None:
        if not self.inputs:
            raise BadRequest("The input is empty: send at least one text.", param="input")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The answer: for each input its vectors, float32 in bytes, and the number of its tokens.

    An input has one vector; with pooling "none" one for each token; for a query a vector of one value, the score.
    """

    request_id: str
    vectors: tuple[tuple[bytes, ...], ...]
    n_tokens: tuple[int, ...]
