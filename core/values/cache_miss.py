"""Where a prompt parted from a text that was stored: what keeps the rest of it from being found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """The first ``position`` tokens are those of a stored text; then it says ``stored`` and the prompt ``prompt``.

    Both are the text of a few tokens.
    """

    position: int
    stored: str
    prompt: str
