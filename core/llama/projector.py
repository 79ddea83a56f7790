"""A projector (mmproj file) beside a model: turns images into rows of embeddings that the model reads (mtmd.h)."""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.devices import device_handles
from core.llama.library import FLOAT_P, INT32_P, NO_LOG, L, LibraryMissing
from core.llama.model import NO_TOKEN, Model
from core.values.errors import LoadFailed, SlipstreamError
from models.formatting.sentence import Sentence

_IMAGE_CHUNK = 1  # MTMD_INPUT_CHUNK_TYPE_IMAGE
# Images whose rows are counted to find the largest: sides in pixels, and shapes as (width, height) in sides.
_SIDES, _SHAPES = (256, 1024, 2048), ((1, 1), (1, 2), (2, 1), (4, 1))
Pixels = npt.NDArray[np.uint8]
"""An image in RGB, shape (height, width, 3)."""


class EncodingFailed(SlipstreamError):
    """A projector could not make embeddings of an image."""


@dataclass(frozen=True, slots=True)
class ImageChunk:
    """Rows of a prompt that are an image, or a part of one that the projector cuts into several.

    ``image`` is the index of the image. The text goes on ``n_positions`` behind the position of the first row.
    ``positions`` are those of the rows: shape (n_rows,), or (4, n_rows) for M-RoPE.
    """

    image: int
    n_rows: int
    n_positions: int
    positions: npt.NDArray[np.int32]


TextChunk = npt.NDArray[np.int32]
"""Token ids."""


class Projector:
    """An ``mtmd_context``. ``encode`` belongs to one thread; ``chunks`` may be called from any, also meanwhile."""

    def __init__(self, path: str, model: Model, *, n_threads: int, uses_gpu: bool, device: str) -> None:
        """Load ``path`` for the text model ``model``; raises LoadFailed.

        ``device`` names the GPU to use, "" leaves the choice to llama.cpp.
        """
        self._mtmd = _bindings()
        params = self._mtmd.mtmd_context_params_default()
        params.use_gpu = uses_gpu
        params.n_threads = n_threads
        params.print_timings = False
        # A trial at load would take as long as an image.
        params.warmup = False
        if uses_gpu and device:
            params.device = next(iter(device_handles(device)), None)
        self._context: Any = self._mtmd.mtmd_init_from_file(os.fsencode(path), model.c, params)
        if not self._context:
            raise LoadFailed("{path} is not a projector for this model, so it cannot see images with it.", path=path)
        if not self._mtmd.mtmd_support_vision(self._context):
            self.close()
            raise LoadFailed("{path} is not a projector for images.", path=path)
        self.uses_mrope = bool(self._mtmd.mtmd_decode_use_mrope(self._context))
        # False if the rows of an image attend to each other, also to later ones.
        self.is_causal = not self._mtmd.mtmd_decode_use_non_causal(self._context, None)
        self._n_embd = int(L.llama_model_n_embd_inp(model.c))

    def chunks(self, parts: Sequence[str | tuple[int, int]], begin: int) -> list[TextChunk | ImageChunk]:
        """Return the rows of a prompt of texts and images, each given as its (width, height).

        Texts get the model's marks around images, and the token ``begin`` once (-1: the model has none). Raises
        EncodingFailed.
        """
        position = 0

        def read(chunk: Any) -> TextChunk | ImageChunk:
            nonlocal position
            found = self._described(chunk, position)
            if isinstance(found, ImageChunk):
                position += found.n_positions
                return found
            # A chat template may have written the token that mtmd adds.
            if not position and len(found) > 1 and found[0] == found[1] == begin:
                found = found[1:]
            position += len(found)
            return found

        bitmaps = [self._bitmap(part) for part in parts if not isinstance(part, str)]
        try:
            for index, bitmap in enumerate(bitmaps):
                self._mtmd.mtmd_bitmap_set_id(bitmap, str(index).encode())
            return self._tokenized(parts, bitmaps, read)
        finally:
            for bitmap in bitmaps:
                self._mtmd.mtmd_bitmap_free(bitmap)

    def most_rows(self) -> int:
        """Return the most rows that a chunk of an image takes, for images of common sizes."""
        sizes = [(side * wide, side * high) for side in _SIDES for wide, high in _SHAPES]
        chunks = [chunk for size in sizes for chunk in self.chunks([size], NO_TOKEN)]
        return max(chunk.n_rows for chunk in chunks if isinstance(chunk, ImageChunk))

    def encode(self, pixels: Pixels) -> list[npt.NDArray[np.float32]]:
        """Return an image's embeddings, (n_rows, n_embd) for each chunk. Takes up to seconds; raises EncodingFailed."""
        pixels = np.ascontiguousarray(pixels)
        height, width, _ = pixels.shape
        bitmap = self._bitmap((width, height), pixels)
        try:
            return [rows for rows in self._tokenized([(width, height)], [bitmap], self._encoded) if rows is not None]
        finally:
            self._mtmd.mtmd_bitmap_free(bitmap)

    def close(self) -> None:
        """Free the projector's weights; call it before the model is closed."""
        if self._context:
            self._mtmd.mtmd_free(self._context)
            self._context = None

    def _bitmap(self, size: tuple[int, int], pixels: Pixels | None = None) -> Any:
        """Return a bitmap; without pixels it has only a size."""
        data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)) if pixels is not None else None
        bitmap = self._mtmd.mtmd_bitmap_init(*size, data)
        if not bitmap:
            raise EncodingFailed(Sentence("llama.cpp has no memory for an image."))
        return bitmap

    def _tokenized(self, parts: Sequence[str | tuple[int, int]], bitmaps: list[Any], read: Any) -> list[Any]:
        """Return the result of ``read`` for each chunk of a prompt."""
        mtmd = self._mtmd
        kept: list[Any] = []
        array = (ctypes.POINTER(mtmd.mtmd_input_part) * len(parts))()
        images = iter(bitmaps)
        for index, part in enumerate(parts):
            entry = mtmd.mtmd_input_part()
            if isinstance(part, str):
                data = part.encode("utf-8", "replace")
                text = mtmd.mtmd_input_text(data, len(data), True, True)
                entry.text = ctypes.pointer(text)
                kept.append((text, data))
            else:
                entry.bitmap = next(images)
            kept.append((entry, None))
            array[index] = ctypes.pointer(entry)
        chunks = mtmd.mtmd_input_chunks_init()
        try:
            status = mtmd.mtmd_tokenize_from_parts(self._context, chunks, array, len(parts), True)
            if status:
                raise EncodingFailed(Sentence("The model's projector cannot take an image of this size and shape."))
            return [read(mtmd.mtmd_input_chunks_get(chunks, i)) for i in range(mtmd.mtmd_input_chunks_size(chunks))]
        finally:
            mtmd.mtmd_input_chunks_free(chunks)

    def _described(self, chunk: Any, position: int) -> TextChunk | ImageChunk:
        mtmd = self._mtmd
        n_rows = int(mtmd.mtmd_input_chunk_get_n_tokens(chunk))
        if mtmd.mtmd_input_chunk_get_type(chunk) != _IMAGE_CHUNK:
            count = ctypes.c_size_t()
            tokens = mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(count))
            ids = np.ctypeslib.as_array(ctypes.cast(tokens, INT32_P), (n_rows,)).astype(np.int32)
            if len(ids) and ids.min() < 0:
                raise EncodingFailed(
                    Sentence("The model has no tokens for the marks that its projector puts around images.")
                )
            return ids
        image = int(mtmd.mtmd_input_chunk_get_id(chunk))
        positions = np.arange(position, position + n_rows, dtype=np.int32)
        if self.uses_mrope:
            found = (mtmd.mtmd_decoder_pos * n_rows)()
            mtmd.mtmd_helper_image_get_decoder_pos(mtmd.mtmd_input_chunk_get_tokens_image(chunk), position, found)
            place = np.frombuffer(found, np.uint32).reshape(n_rows, 4).astype(np.int32)
            # llama.cpp's sections are time, height, width and a spare one (decode_embd_batch in mtmd-helper-common.h).
            positions = np.ascontiguousarray(place[:, [0, 2, 1, 3]].T)
        return ImageChunk(image, n_rows, int(mtmd.mtmd_input_chunk_get_n_pos(chunk)), positions)

    def _encoded(self, chunk: Any) -> npt.NDArray[np.float32] | None:
        mtmd = self._mtmd
        if mtmd.mtmd_input_chunk_get_type(chunk) != _IMAGE_CHUNK:
            return None
        if mtmd.mtmd_encode_chunk(self._context, chunk):
            raise EncodingFailed(Sentence("The model's projector failed on an image."))
        n_rows = int(mtmd.mtmd_input_chunk_get_n_tokens(chunk))
        rows = ctypes.cast(mtmd.mtmd_get_output_embd(self._context), FLOAT_P)
        return np.ctypeslib.as_array(rows, (n_rows, self._n_embd)).copy()


def _bindings() -> Any:
    """Import ``llama_cpp.mtmd_cpp``, silent."""
    try:
        mtmd = importlib.import_module("llama_cpp.mtmd_cpp")
    except (ImportError, OSError, RuntimeError) as error:
        raise LibraryMissing("This build of llama.cpp cannot read images: {error}.", error=error) from error
    mtmd.mtmd_helper_log_set(NO_LOG, ctypes.c_void_p(0))
    return mtmd
