"""Turns token bytes into text to show: whole characters, and no part of a stop string."""

from __future__ import annotations

from encodings.utf_8 import IncrementalDecoder


class TextStream:
    """The growing text of one request. The cost of a token does not depend on the text's length.

    Bytes of an unfinished UTF-8 character are held back, as is text that may turn out to begin a stop string.
    Invalid bytes become U+FFFD.
    """

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        """``stops`` are the strings before which the text ends."""
        self._decoder = IncrementalDecoder("replace")
        self._stops = stops
        self._longest = max((len(stop) for stop in stops), default=0)
        self._held = ""
        self.stop: str | None = None

    def feed(self, piece: bytes) -> str:
        """Take a token's bytes; return the text that can be shown now. Sets ``stop`` when a stop string is complete."""
        # Most pieces are ASCII: the decoder is needed only if it holds the beginning of a character.
        text = piece.decode("ascii") if piece.isascii() and not self._decoder.buffer else self._decoder.decode(piece)
        if not self._stops:
            return text
        return self._release(self._held + text) if text else ""

    def flush(self) -> str:
        """Return what was held back, at the end of the text."""
        if self.stop is not None:
            return ""
        rest = self._decoder.decode(b"", final=True)
        if not self._stops:
            return rest
        shown = self._release(self._held + rest)
        if self.stop is None:
            shown, self._held = shown + self._held, ""
        return shown

    def _release(self, text: str) -> str:
        """Split ``text`` into what may be shown and what is held back."""
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, self.stop = min(found)
            self._held = ""
            return text[:at]
        keep = self._longest_beginning_of_a_stop(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _longest_beginning_of_a_stop(self, text: str) -> int:
        """Return the length of the longest suffix of ``text`` that is a prefix of a stop string."""
        for size in range(min(len(text), self._longest - 1), 0, -1):
            tail = text[-size:]
            if any(stop.startswith(tail) for stop in self._stops):
                return size
        return 0
