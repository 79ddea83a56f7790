"""A prompt with images as rows: the ids that stand for them, and where their embeddings go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.images.image_file import image_size
from core.kv_cache.prefix_cache.image_tokens import image_ids
from core.llama.model import Vocab
from core.llama.projector import EncodingFailed, ImageChunk, Projector
from core.values.errors import BadRequest
from core.values.request import Request
from models.formatting.sentence import Sentence


@dataclass(frozen=True, slots=True)
class ImageRows:
    """Rows of a prompt, ``start`` to ``end``, whose embeddings are chunk ``part`` of the image with the hash ``id``.

    ``positions`` are llama.cpp's, shape (n_rows,), or (4, n_rows) for M-RoPE. ``data`` is the image's file.
    """

    start: int
    end: int
    positions: npt.NDArray[np.int32]
    id: bytes
    part: int
    data: bytes


class PromptReader:
    """Reads prompts with images for one model. Every method may be called from any thread."""

    def __init__(self, projector: Projector, key: bytes, n_ubatch: int) -> None:
        """``key`` identifies the projector; rows that attend to each other must fit into ``n_ubatch``."""
        self.projector = projector
        self._key = key
        self._n_ubatch = n_ubatch

    def read(self, request: Request, vocab: Vocab) -> tuple[npt.NDArray[np.int32], tuple[ImageRows, ...]]:
        """Return the ids of a prompt's rows, shape (n_rows,), and those that are images. Raises BadRequest."""
        try:
            chunks = self.projector.chunks(list(_parts(request)), vocab.adds_begin)
        except EncodingFailed as error:
            raise BadRequest(error.message, param="messages") from error
        if not chunks or isinstance(chunks[-1], ImageChunk):
            raise BadRequest(Sentence("The prompt ends with an image: put text behind it."), param="prompt")
        hashes = [hashlib.sha256(image.data).digest() for image in request.images]
        n_parts = [0] * len(hashes)
        ids: list[npt.NDArray[np.int32]] = []
        rows: list[ImageRows] = []
        start = 0
        for chunk in chunks:
            if isinstance(chunk, ImageChunk):
                self._check(chunk)
                index, part = chunk.image, n_parts[chunk.image]
                n_parts[index] += 1
                end = start + chunk.n_rows
                data = request.images[index].data
                rows.append(ImageRows(start, end, chunk.positions, hashes[index], part, data))
                key = self._key + hashes[index] + part.to_bytes(4, "little")
                ids.append(image_ids(key, chunk.n_rows, chunk.n_positions))
            else:
                ids.append(chunk)
            start += len(ids[-1])
        return np.concatenate(ids), tuple(rows)

    def _check(self, chunk: ImageChunk) -> None:
        if not self.projector.is_causal and chunk.n_rows > self._n_ubatch:
            raise BadRequest(
                Sentence(
                    "The image takes {n_rows} tokens that this model must read at once, and it reads at most "
                    "{n_ubatch}: send a smaller image.",
                    n_rows=chunk.n_rows,
                    n_ubatch=self._n_ubatch,
                ),
                param="messages",
            )


def _parts(request: Request) -> Iterator[str | tuple[int, int]]:
    """Yield a prompt's texts, and the sizes of the images between them."""
    assert isinstance(request.prompt, str)
    done = 0
    for image in request.images:
        if image.offset > done:
            yield request.prompt[done : image.offset]
            done = image.offset
        yield image_size(image.data)
    if done < len(request.prompt):
        yield request.prompt[done:]
