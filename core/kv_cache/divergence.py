"""Where a prompt parts from a stored text."""

from __future__ import annotations

from dataclasses import dataclass

from core.kv_cache.prefix_cache.prefix_tree import PrefixMatch, TokenIds

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first ``position`` tokens are alike; then come ``stored`` in the text that is kept and ``prompt`` here."""

    position: int
    stored: tuple[int, ...]
    prompt: tuple[int, ...]


def divergence(match: PrefixMatch, prompt: TokenIds) -> Divergence | None:
    """Return where ``prompt``, which was matched but for its last token, parts from what is stored.

    None where nothing begins alike, or where it just goes on from what is stored.
    """
    other = match.continuation(_MOST_SHOWN)
    if other is None or match.size >= len(prompt) - 1:
        return None
    own = prompt[match.size : match.size + _MOST_SHOWN]
    return Divergence(match.size, tuple(other.tolist()), tuple(own.tolist()))
