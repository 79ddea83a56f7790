"""Quantisations as they are written in file names, and their order from best to smallest."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?:^|[-._/ ])(?P<name>(?:UD-)?(?:"
    r"I?Q\d(?:_(?:\d(?:_\d)+|[01K]|NL|XXS|XS|S|M|L|XL))(?:_(?:XXS|XS|S|M|L|XL))?"
    r"|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32|FP32|Q\d))(?=$|[-._/ ])",
    re.IGNORECASE,
)
_BITS = re.compile(r"(\d+)")


def quantisation_of(stem: str) -> str:
    """The quantisation named in a file's stem (the last one, in capitals), or "" if it names none."""
    found = [match["name"] for match in _TOKEN.finditer(stem)]
    return found[-1].upper().replace("FP16", "F16").replace("FP32", "F32") if found else ""


def is_same(name: str, wanted: str) -> bool:
    """Whether a quantisation is the one that a user typed: any case, with or without "UD-"."""
    return name.casefold().removeprefix("ud-") == wanted.casefold().removeprefix("ud-")


def without_quantisation(stem: str) -> str:
    """The stem without the quantisation it names."""
    matches = list(_TOKEN.finditer(stem))
    return stem[: matches[-1].start()] + stem[matches[-1].end() :] if matches else stem
