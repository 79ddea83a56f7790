"""Which parts of long files fit a question: by their words (BM25), or by vectors where a model gives some. No Qt."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ui.chat.storage.search_hit import SPACELESS
from ui.client.attachments import FOUND, Attachment, SentParts

_WORDS = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+")
# The usual parameters of BM25 (Robertson and Zaragoza, 2009): how soon repeated words stop to count, how much length.
_K1, _B = 1.2, 0.75
Place = tuple[int, int]  # a file among those of a message, a part of it


def places_of(attachments: Sequence[Attachment]) -> list[Place]:
    """Return the parts among which passages are chosen."""
    wanted = [number for number, one in enumerate(attachments) if one.choice in FOUND]
    return [(number, at) for number in wanted for at in range(len(attachments[number].parts))]


def text_at(attachments: Sequence[Attachment], place: Place) -> str:
    """Return one part's text."""
    return attachments[place[0]].parts[place[1]].text


def by_words(question: str, texts: Sequence[str]) -> list[int]:
    """Return the places of ``texts``, that which shares the rarest words with the question first (BM25)."""
    counts = [Counter(_words(text)) for text in texts]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    scores = [0.0] * len(texts)
    for word in set(_words(question)):
        holders = [at for at, count in enumerate(counts) if word in count]
        weight = math.log(1 + (len(texts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for at in holders:
            n = counts[at][word]
            scores[at] += weight * n * (_K1 + 1) / (n + _K1 * (1 - _B + _B * lengths[at] / max(mean, 1.0)))
    return sorted(range(len(texts)), key=lambda at: -scores[at])


def by_vectors(question: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of ``vectors``, that which points most as the question does first."""

    def cosine(vector: Sequence[float]) -> float:
        length = math.hypot(*vector) or 1.0
        return sum(a * b for a, b in zip(question, vector, strict=False)) / length

    scores = [cosine(vector) for vector in vectors]
    return sorted(range(len(vectors)), key=lambda at: -scores[at])


def with_best(
    attachments: Sequence[Attachment], ranking: Sequence[Place], n_tokens: int, choice: SentParts
) -> tuple[Attachment, ...]:
    """Return the files with the first parts of the ranking that fit into ``n_tokens``; at least the first one."""
    kept: dict[int, list[int]] = {number: [] for number, _ in ranking}
    left = n_tokens
    for rank, (number, at) in enumerate(ranking):
        one = attachments[number]
        cost = replace(one, sent=(at,)).tokens
        if cost <= left or rank == 0:
            kept[number].append(at)
            left -= cost
        if left <= 0:
            break
    return tuple(
        replace(one, choice=choice, sent=tuple(sorted(kept[number]))) if number in kept else one
        for number, one in enumerate(attachments)
    )


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())
