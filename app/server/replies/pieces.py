"""The pieces of a reply, in the order in which a model writes them. Every protocol's events are made from these.

Which of their characters were drafted is found again in what the parser makes of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class ContentText(NamedTuple):
    """Text for the reader."""

    text: str


class ReasoningText(NamedTuple):
    """Text that the model thinks aloud before it answers."""

    text: str


class CallBegun(NamedTuple):
    """A tool call begins; its arguments follow, then ``CallEnded``, unless the reply is cut before."""

    id: str
    name: str


class CallArguments(NamedTuple):
    """More of the arguments of the call that has begun: together a JSON object as text, or its beginning."""

    text: str


class CallEnded(NamedTuple):
    """The call that has begun is whole."""


Piece = ContentText | ReasoningText | CallBegun | CallArguments | CallEnded


Span = tuple[int, int]
"""First character, and the one behind the last."""


class DraftedText:
    """The text of one reply as it comes, with marks, and the pieces that are taken from it in order."""

    def __init__(self) -> None:
        self._text, self._marks = "", bytearray()

    def feed(self, text: str, drafted: Sequence[Span]) -> None:
        """Add text at the end, of which the spans ``drafted`` were guessed ahead."""
        marks = bytearray(len(text))
        for begin, end in drafted:
            marks[begin:end] = b"\1" * (end - begin)
        self._text, self._marks = self._text + text, self._marks + marks

    def take(self, piece: str) -> list[Span]:
        """Return the drafted spans of the next piece. What stands before it, as a marker does, is dropped."""
        at = self._text.find(piece)
        if at < 0:  # the parser wrote it in another way
            return []
        end = at + len(piece)
        marks, self._text, self._marks = self._marks[at:end], self._text[end:], self._marks[end:]
        spans, place = [], 0
        for is_drafted, run in groupby(marks):
            begin, place = place, place + len(list(run))
            if is_drafted:
                spans.append((begin, place))
        return spans
