"""Where a prompt differs from a cached prompt, so that the rest of the cache cannot be reused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """The prompt equals a cached one for ``position`` tokens; then the cache has ``stored``, the prompt ``prompt``.

    Both are the text of a few tokens.
    """

    position: int
    stored: str
    prompt: str
