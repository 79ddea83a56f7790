"""Finds in a written reply which characters were drafted, while its pieces are put into the document. No Qt here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

NEAR = 300  # characters of markup, such as an address, that may stand before a piece of text


def spans_from(begin: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of a text as spans of what stands from ``begin`` on."""
    return [(max(0, first - begin), last - begin) for first, last in spans if last > begin]


class DraftTint:
    """Goes along ``source``, the markdown, from ``at`` on; ``spans`` are its drafted characters, in order.

    Both may grow. A piece that is not found, because its markdown is written in another way, counts as not drafted.
    """

    def __init__(self, source: str, at: int, spans: Sequence[tuple[int, int]]) -> None:
        self.source = source
        self._at, self._spans = at, spans

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the parts of a piece of text that comes next, and whether each was drafted."""
        # Lines of code lose the indentation of a list around them.
        for line in text.splitlines(keepends=True):
            yield from self._split_line(line)

    def _split_line(self, line: str) -> Iterator[tuple[str, bool]]:
        begin = self.source.find(line, self._at, self._at + len(line) + NEAR)
        if begin < 0:
            yield line, False
            return
        at = begin
        self._at = end = begin + len(line)
        for first, last in self._spans[max(0, bisect_right(self._spans, (at, at)) - 1) :]:
            if first >= end:
                break
            if last <= at:
                continue
            if first > at:
                yield self.source[at:first], False
            yield self.source[max(first, at) : min(last, end)], True
            at = min(last, end)
        if at < end:
            yield self.source[at:end], False
