"""Text that comes in pieces, read from the front."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")
# A reader of this room: it yields where it needs more text, and returns what it found.
Reading = Generator[None, None, T]
Give = Callable[[str], object]


class TextOver(Exception):
    """The text ended where a reader wanted more."""


class TextSource:
    """The part of a text that was not taken yet.

    Readers may look ahead as far as they like: what lies behind ``kept`` is still there to go back to.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.kept = 0
        self.is_over = False
        self.holds = False  # what is read may be wanted again

    def feed(self, text: str) -> None:
        """Add text at the end, and forget what was taken."""
        self.text = self.text[self.kept :] + text
        self.at -= self.kept
        self.kept = 0

    def take(self) -> None:
        """Say that all that was read will not be wanted again, unless it is held."""
        if not self.holds:
            self.kept = self.at

    @property
    def rest(self) -> str:
        """What was not taken."""
        return self.text[self.kept :]

    def more(self) -> Reading[None]:
        """Wait for more text; raises TextOver."""
        if self.is_over:
            raise TextOver
        yield

    def peek(self) -> Reading[str]:
        """Return the next character without reading it."""
        while self.at >= len(self.text):
            yield from self.more()
        return self.text[self.at]

    def skip_space(self, more: str = "") -> Reading[str]:
        """Read white space, and the characters of ``more``; return the next character without reading it."""
        while (next_one := (yield from self.peek())).isspace() or next_one in more:
            self.at += 1
        return next_one

    def literal(self, *texts: str) -> Reading[str]:
        """Read the longest of the texts that comes next and return it; "" where none does."""
        ordered = sorted(texts, key=len, reverse=True)
        while True:
            here = self.text[self.at : self.at + len(ordered[0])]
            # A longer text that may still come is waited for.
            for text in ordered:
                if here.startswith(text):
                    self.at += len(text)
                    return text
                if text.startswith(here):
                    break
            else:
                return ""
            try:
                yield from self.more()
            except TextOver:
                found = next((text for text in ordered if here.startswith(text)), "")
                if not found:
                    raise
                self.at += len(found)
                return found

    def until(self, markers: Collection[str], longest: int) -> Reading[tuple[str, str]]:
        """Read to the first of the markers; return the text before it and the marker. ("…", "") where that is too long.

        Reads past the marker.
        """
        pattern = _any_of(frozenset(markers))
        while True:
            match = pattern.search(self.text, self.at)
            if match is not None:
                text, self.at = self.text[self.at : match.start()], match.end()
                return text, match[0]
            if len(self.text) - self.at > longest:
                return self.text[self.at :], ""
            yield from self.more()

    def stream_until(self, markers: Collection[str], give: Give) -> Reading[str]:
        """Read to the first of the markers and return it; what cannot be part of one is given out as it comes."""
        pattern = _any_of(frozenset(markers))
        while True:
            match = pattern.search(self.text, self.at)
            end = match.start() if match is not None else len(self.text) - n_begun(self.text, self.at, markers)
            if end > self.at:
                text, self.at = self.text[self.at : end], end
                give(text)
            self.take()
            if match is not None:
                self.at = match.end()
                return match[0]
            yield from self.more()


@lru_cache(maxsize=256)
def _any_of(markers: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True)) or r"(?!)")


def n_begun(text: str, at: int, markers: Collection[str]) -> int:
    """Return the length of the longest end of ``text`` behind ``at`` that begins one of the markers."""
    longest = 0
    for marker in markers:
        start = text.find(marker[0], max(at, len(text) - len(marker) + 1))
        while start >= 0 and not marker.startswith(text[start:]):
            start = text.find(marker[0], start + 1)
        if start >= 0:
            longest = max(longest, len(text) - start)
    return longest
