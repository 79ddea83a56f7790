"""Finds tool calls in a model's text while it comes."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText, Piece

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_CALL = 1_000_000
# Characters of an escape in a JSON string: \uXXXX.
_LONGEST_ESCAPE = 6


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for; ``arguments`` is a JSON object as text, or its beginning in a reply cut short."""

    id: str
    name: str
    arguments: str

    is_whole: bool = True

    def pieces(self) -> list[Piece]:
        """Return the call as pieces."""
        begun: list[Piece] = [CallBegun(self.id, self.name)]
        if self.arguments:
            begun.append(CallArguments(self.arguments))
        return [*begun, CallEnded()] if self.is_whole else begun


class ReplyParser:
    """Makes pieces of a reply's text as it comes."""

    def __init__(self) -> None:
        self._calls = ToolCallParser()

    def feed(self, text: str) -> list[Piece]:
        """Take more text; return the pieces that are certain now."""
        return _pieces(self._calls.feed(text))

    def finish(self, *, is_cut: bool = False) -> list[Piece]:
        """Return the pieces that were held back: the text is over, cut by its limit of tokens where ``is_cut``."""
        return _pieces(self._calls.finish(is_cut=is_cut))


def _pieces(parts: list[str | ToolCall]) -> list[Piece]:
    found: list[Piece] = []
    for part in parts:
        found += part.pieces() if isinstance(part, ToolCall) else [ContentText(part)]
    return found


class ToolCallParser:
    """Splits text that comes in pieces into plain text and calls, in order.

    Text is given out as soon as it cannot belong to a call any more: only the longest end that may begin a marker,
    and white space before it, is held back. A block that is no valid call stays text, markers included.
    """

    def __init__(self) -> None:
        self._held = ""
        self._space = ""  # what stood between the text before a block and the block
        self._is_inside = False
        self._drops_space = True  # white space before the first word, or right after a call

    def feed(self, text: str) -> list[str | ToolCall]:
        """Take more text; return what is certain now."""
        self._held += text
        found: list[str | ToolCall] = []
        while self._held and (self._leave(found, text) if self._is_inside else self._enter(found)):
            text = self._held
        return found

    def finish(self, *, is_cut: bool = False) -> list[str | ToolCall]:
        """Return what was held back: the text is over.

        In a reply that ``is_cut`` by its limit of tokens, a call that has begun is given as far as it came: from its
        name on. A marker that has begun is dropped, since nobody wants half of one.
        """
        if is_cut and self._is_inside:
            call = begun_call(self._held[len(OPEN) :])
            self._held = ""
            return [call] if call is not None else []
        if is_cut:
            self._held = self._held[: len(self._held) - _n_begun(self._held)]
        rest = (self._space if self._is_inside else "") + self._held
        self._held = ""
        if not self._is_inside and self._drops_space and not rest.strip():
            return []
        return [rest] if rest else []

    def _enter(self, found: list[str | ToolCall]) -> bool:
        before, marker, rest = self._held.partition(OPEN)
        if marker:
            self._give(found, before.rstrip())
            self._space = before[len(before.rstrip()) :]
            self._held, self._is_inside = marker + rest, True
            return True
        n_certain = len(self._held) - _n_begun(self._held)
        n_certain = len(self._held[:n_certain].rstrip())
        self._give(found, self._held[:n_certain])
        self._held = self._held[n_certain:]
        return False

    def _leave(self, found: list[str | ToolCall], news: str) -> bool:
        # Only the end can hold a close marker that was not there before.
        end = self._held.find(CLOSE, max(0, len(self._held) - len(news) - len(CLOSE)))
        if end < 0:
            if len(self._held) > MAX_CALL:
                self._give(found, self._space + self._held)
                self._held, self._is_inside = "", False
            return False
        block, self._held = self._held[: end + len(CLOSE)], self._held[end + len(CLOSE) :]
        self._is_inside = False
        call = parse_call(block[len(OPEN) : end])
        if call is None:
            self._give(found, self._space + block)
        else:
            found.append(call)
            self._drops_space = True
        return True

    def _give(self, found: list[str | ToolCall], text: str) -> None:
        if text:
            found.append(text)
            self._drops_space = False


def _n_begun(text: str, marker: str = OPEN) -> int:
    """Return the length of the longest end of ``text`` that begins a marker."""
    return next((n for n in range(min(len(marker) - 1, len(text)), 0, -1) if marker.startswith(text[-n:])), 0)


# A block as the models write it, cut anywhere behind the name.
_BEGUN = re.compile(r"""\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)+")(?:\s*,\s*"arguments"\s*:\s*(.*))?""", re.DOTALL)


def begun_call(body: str) -> ToolCall | None:
    """Return the call that a text which ends early has begun behind the open marker; None without its whole name."""
    body = body.lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        pass
    else:
        return parse_call(body[:end])  # only the close marker is missing
    begun = _BEGUN.match(body)
    if begun is None:
        return None
    arguments = begun[2] or ""
    if arguments.startswith('"'):
        arguments = _text_begun(arguments)
    try:
        return ToolCall(_new_id(), json.loads(begun[1]), _object_begun(arguments), is_whole=False)
    except ValueError:
        return None


def _object_begun(arguments: str) -> str:
    """Return the arguments alone, without what closes the block behind them."""
    if not arguments.startswith("{"):
        return ""
    try:
        _, end = json.JSONDecoder().raw_decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    return arguments[:end]


def _text_begun(quoted: str) -> str:
    """Return what a JSON string that ends early says, without an escape that is cut."""
    for n_dropped in range(min(_LONGEST_ESCAPE, len(quoted))):
        try:
            text, _ = json.JSONDecoder().raw_decode(quoted[: len(quoted) - n_dropped] + '"')
        except ValueError:
            continue
        return str(text)
    return ""


def parse_call(body: str) -> ToolCall | None:
    """Return the call in the text between the markers, or None where it is none."""
    try:
        value = json.loads(body)
        arguments = value.get("arguments", {})
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
    except (ValueError, AttributeError, RecursionError):
        return None
    name = value.get("name")
    if not (isinstance(name, str) and name and isinstance(arguments, dict)):
        return None
    return ToolCall(_new_id(), name, json.dumps(arguments, ensure_ascii=False))


def _new_id() -> str:
    return f"call_{os.urandom(12).hex()}"
