"""Images of requests: their files, the rows of a prompt that stand for them, and a thread that makes their embeddings.

A file is checked from its header, before any pixel is decoded. Embeddings are made while steps go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import queue
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from core.kv_cache.prefix_tree import image_ids
from core.values.errors import BadRequest, SlipstreamError
from core.values.request import PromptImage
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from core.llama.model import Vocab
    from core.llama.projector import ImageChunk, Projector

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# A projector looks at one or two million pixels at most. A decoded image of 50 million takes 150 MB.
MAX_PIXELS = 50_000_000
# llama.cpp's preprocessors fail or abort if one side is more than this many times the other (smart_resize of Qwen2-VL).
MAX_ASPECT = 100
_ORIENTATION, _UPRIGHT, _FIRST_TURNED = 0x0112, 1, 5
# Of pixels with 16 bits, the upper eight are used, as by other programs.
_WIDE_SHIFT = 8
# Pillow's own limit would only print a warning; _size refuses instead.
Image.MAX_IMAGE_PIXELS = None


def image_size(data: bytes) -> tuple[int, int]:
    """Return width and height of an image as it is shown; raises BadRequest for what is not one, or is too large."""
    with _opened(data) as image:
        return _size(image)


def decoded(data: bytes) -> npt.NDArray[np.uint8]:
    """Return the pixels of an image file as it is shown, shape (height, width, 3); raises BadRequest.

    Transparency is ignored, as by llama-server. Of an animation it is the first picture.
    """
    with _opened(data) as image:
        _size(image)
        try:
            image.load()
            shown = image if _orientation(image) == _UPRIGHT else ImageOps.exif_transpose(image)
            if shown.mode.startswith("I;16"):
                shown = Image.fromarray((np.asarray(shown) >> _WIDE_SHIFT).astype(np.uint8))
            return np.asarray(shown.convert("RGB"))
        except Exception as error:  # Pillow's decoders raise nearly everything
            raise BadRequest(
                "The image is damaged: {error}. Send it again, or another one.", error=error, param="messages"
            ) from error


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=_FORMATS)
    except Exception as error:  # Pillow's parsers raise nearly everything
        raise BadRequest(Sentence("It is not an image in PNG, JPEG, WebP, GIF or BMP."), param="messages") from error


def _size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    if width < 1 or height < 1 or width * height > MAX_PIXELS:
        raise BadRequest(
            "The image has {width} x {height} pixels; the limit is {most} million. Send a smaller one.",
            width=width,
            height=height,
            most=MAX_PIXELS // 1_000_000,
            param="messages",
        )
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise BadRequest(
            "The image has {width} x {height} pixels: one side may be at most {max_aspect} times the other.",
            width=width,
            height=height,
            max_aspect=MAX_ASPECT,
            param="messages",
        )
    return (height, width) if _orientation(image) >= _FIRST_TURNED else (width, height)


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation (1 to 8); 1 if there is none."""
    try:
        found = image.getexif().get(_ORIENTATION, _UPRIGHT)
    except Exception:  # a damaged EXIF block is ignored
        return _UPRIGHT
    return found if isinstance(found, int) and _UPRIGHT <= found <= 8 else _UPRIGHT


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

    def read(
        self, prompt: str, images: Sequence[PromptImage], vocab: Vocab
    ) -> tuple[npt.NDArray[np.int32], tuple[ImageRows, ...]]:
        """Return the ids of a prompt's rows, shape (n_rows,), and those that are images. Raises BadRequest."""
        from core.llama.projector import EncodingFailed, ImageChunk  # the server decodes images without llama.cpp

        try:
            chunks = self.projector.chunks(list(_parts(prompt, images)), vocab.adds_begin)
        except EncodingFailed as error:
            raise BadRequest(error.message, param="messages") from error
        if not chunks or isinstance(chunks[-1], ImageChunk):
            raise BadRequest(Sentence("The prompt ends with an image: put text behind it."), param="prompt")
        hashes = [hashlib.sha256(image.data).digest() for image in images]
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
                data = images[index].data
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
                "The image takes {n_rows} tokens that this model must read at once, and it reads at most "
                "{n_ubatch}: send a smaller image.",
                n_rows=chunk.n_rows,
                n_ubatch=self._n_ubatch,
                param="messages",
            )


def _parts(prompt: str, images: Sequence[PromptImage]) -> Iterator[str | tuple[int, int]]:
    """Yield a prompt's texts, and the sizes of the images between them."""
    done = 0
    for image in images:
        if image.offset > done:
            yield prompt[done : image.offset]
            done = image.offset
        yield image_size(image.data)
    if done < len(prompt):
        yield prompt[done:]


_log = logging.getLogger(__name__)
# Embeddings of the latest images are kept, up to this many bytes: 1,000 rows of 4,096 numbers take 16 MB.
_KEPT_BYTES = 256 << 20
# On Linux the encoder's threads give way to steps (nice values, sched(7)): 5 is a third of a step's share of a core.
_NICE = 5


class Encoding:
    """An image being encoded: ``parts`` are (n_rows, n_embd) for each chunk, ``error`` says why there are none."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.parts: list[npt.NDArray[np.float32]] | None = None
        self.error: SlipstreamError | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of the embeddings."""
        return sum(part.nbytes for part in self.parts or ())


class ImageEncoder:
    """Encodes one image after the other. An image that no request holds any more is skipped."""

    def __init__(self, projector: Projector) -> None:
        """Take over ``projector``: ``close`` frees it."""
        self._projector = projector
        self._latest: weakref.WeakValueDictionary[bytes, Encoding] = weakref.WeakValueDictionary()
        self._kept: OrderedDict[bytes, Encoding] = OrderedDict()
        self._queue: queue.SimpleQueue[weakref.ref[Encoding] | None] = queue.SimpleQueue()
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._work, name="images", daemon=True)
        self._thread.start()

    @property
    def is_causal(self) -> bool:
        """False where the rows of an image see each other, and must be evaluated together."""
        return self._projector.is_causal

    def encode(self, rows: ImageRows) -> Encoding:
        """Return the encoding of the image of ``rows``; it is dropped once no request holds it."""
        encoding = self._latest.get(rows.id)
        if encoding is None:
            encoding = self._latest[rows.id] = Encoding(rows.data)
            self._queue.put(weakref.ref(encoding))
        return encoding

    def embeddings(self, rows: ImageRows, encoding: Encoding) -> npt.NDArray[np.float32]:
        """Return the embeddings of ``rows``, shape (n_rows, n_embd), and remember those of the whole image."""
        assert encoding.parts is not None
        self._kept[rows.id] = encoding
        self._kept.move_to_end(rows.id)
        while len(self._kept) > 1 and sum(one.n_bytes for one in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return encoding.parts[rows.part]

    def wait(self, seconds: float) -> None:
        """Wait until an image is encoded, at most so long."""
        self._arrived.wait(seconds)
        self._arrived.clear()

    def close(self) -> None:
        """End the thread after its present image, and free the projector."""
        self._latest.clear()
        self._kept.clear()
        self._queue.put(None)
        self._thread.join()
        self._projector.close()

    def _work(self) -> None:
        _give_way()
        while (reference := self._queue.get()) is not None:
            encoding = reference()
            if encoding is None:
                continue  # its request was cancelled
            try:
                encoding.parts = self._projector.encode(decoded(encoding.data))
            except SlipstreamError as error:
                encoding.error = error
            except Exception as error:  # a request must end even after a bug here
                _log.exception("Encoding failed")
                encoding.error = SlipstreamError("The image could not be encoded: {error}", error=error)
            encoding.data = b""
            del encoding
            self._arrived.set()


def _give_way() -> None:
    """Let other threads of this process go first if cores are short; llama.cpp's threads inherit this."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
