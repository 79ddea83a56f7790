"""Made-up images, and what llama.cpp's own helper makes of a prompt with them."""

from __future__ import annotations

import ctypes
import importlib
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from core.llama.context import Batch, Context, ContextOptions
from core.llama.model import Model
from core.values.request import PromptImage

MARK = "<__media__>"


def picture(seed: int = 1, width: int = 96, height: int = 64, kind: str = "PNG") -> bytes:
    """The file of an image whose colour and pixels follow from ``seed``."""
    random = np.random.default_rng(seed)
    pixels = (random.integers(0, 224, 3) + random.integers(0, 32, (height, width, 3))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """The beginning of a PNG file that claims to have so many pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">II", zlib.crc32(head), 1) + b"IDAT"


def with_images(text: str, *files: bytes) -> dict[str, Any]:
    """The fields of a request whose prompt has an image at each mark of ``text``."""
    *before, last = text.split(MARK)
    assert len(before) == len(files)
    images, offset = [], 0
    for part, data in zip(before, files, strict=True):
        offset += len(part)
        images.append(PromptImage(offset, data))
    return {"prompt": "".join([*before, last]), "images": tuple(images)}


def reference(path: Path, mmproj: Path, text: str, files: tuple[bytes, ...], n_tokens: int) -> str:
    """Return the greedy text after a prompt that ``mtmd_helper_eval_chunks`` evaluates; its marks are the images."""
    mtmd = importlib.import_module("llama_cpp.mtmd_cpp")
    model = Model(str(path))
    params = mtmd.mtmd_context_params_default()
    params.use_gpu = params.print_timings = params.warmup = False
    params.n_threads = 1
    projector = mtmd.mtmd_init_from_file(os.fsencode(mmproj), model.c, params)
    options = ContextOptions(
        n_cells=1024, n_sequences=1, n_outputs=1, n_batch=512, n_ubatch=512, n_threads=1, flash_attention="on"
    )
    context, vocab = Context(model, options), model.vocab
    bitmaps = []
    for file in files:
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))
        data = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        bitmaps.append(mtmd.mtmd_bitmap_init(pixels.shape[1], pixels.shape[0], data))
    chunks = mtmd.mtmd_input_chunks_init()
    encoded = text.encode()
    prompt = mtmd.mtmd_input_text(encoded, len(encoded), True, True)
    array = (ctypes.c_void_p * len(bitmaps))(*bitmaps)
    assert not mtmd.mtmd_tokenize(projector, chunks, ctypes.byref(prompt), array, len(bitmaps))
    past = ctypes.c_int32(0)
    assert not mtmd.mtmd_helper_eval_chunks(projector, context.c, chunks, 0, 0, 512, True, ctypes.byref(past))
    said, batch = b"", Batch(1)
    for position in range(past.value, past.value + n_tokens):
        context.synchronize()
        token = int(context.logits(1)[0].argmax())
        if token in vocab.end_tokens:
            break
        said += vocab.pieces[token]
        batch.clear()
        batch.add(token, position, 0)
        context.decode(batch)
    mtmd.mtmd_input_chunks_free(chunks)
    for bitmap in bitmaps:
        mtmd.mtmd_bitmap_free(bitmap)
    context.close()
    mtmd.mtmd_free(projector)
    model.close()
    return said.decode("utf-8", "replace")
