"""Image files from requests: what they are is checked from the header, before any pixel is decoded."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from core.values.errors import BadRequest
from models.formatting.sentence import Sentence

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# A projector looks at one or two million pixels at most. A decoded image of 50 million takes 150 MB.
MAX_PIXELS = 50_000_000
# llama.cpp's preprocessors fail or abort if one side is more than this many times the other (smart_resize of Qwen2-VL).
MAX_ASPECT = 100
_ORIENTATION, _UPRIGHT, _FIRST_TURNED = 0x0112, 1, 5
# 16 bits for each pixel: the upper eight are what others show.
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
                Sentence("The image is damaged: {error}. Send it again, or another one.", error=error), param="messages"
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
            Sentence(
                "The image has {width} x {height} pixels; the limit is {most} million. Send a smaller one.",
                width=width,
                height=height,
                most=MAX_PIXELS // 1_000_000,
            ),
            param="messages",
        )
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise BadRequest(
            Sentence(
                "The image has {width} x {height} pixels: one side may be at most {max_aspect} times the other.",
                width=width,
                height=height,
                max_aspect=MAX_ASPECT,
            ),
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
