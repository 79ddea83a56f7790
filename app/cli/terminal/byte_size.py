"""Sizes as people write them: 0, 500M, 4G."""

from __future__ import annotations

import re

from core.values.errors import BadOption

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,15})([KMGT]?)(?:I?B)?", re.IGNORECASE)


def parse_size(text: str, what: str) -> int:
    """Return the bytes that ``text`` names; raises BadOption, which calls them ``what``."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadOption(f"{text!r} is no size for {what}: write for example 500M, 4G, or 0.")
    return int(found[1]) * _UNITS[found[2].upper()]
