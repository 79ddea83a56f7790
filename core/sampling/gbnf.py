"""Converts llama.cpp's grammars (GBNF) to llguidance's dialect of Lark. Pure.

Each character becomes a token of its own, so that the parser alone decides where a rule ends, as in llama.cpp
(``llama_grammar_parser``). llguidance's own converter makes tokens of whole rules, and its lexer matches those as far
as it can: with ``root ::= num "\\n"`` and ``num ::= [0-9]+ [ \\n]*`` no reply would ever end.
"""

from __future__ import annotations

import re

_ROOT, _START = "root", "start"
_NOTHING = '""'
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_COUNTS = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")
# Characters that an error quotes.
_SHOWN = 20


def to_lark(text: str) -> str:
    """Return the same grammar in Lark. Raises ValueError with the line where it cannot be read."""
    try:
        return _GrammarReader(text).lark()
    except RecursionError:
        raise ValueError("its groups are nested too deeply") from None


class _GrammarReader:
    """Reads one grammar and converts each rule to Lark as it goes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._names: dict[str, str] = {_ROOT: _START}
        self._taken = {_START}
        self._tokens: dict[str, str] = {}
        self._bodies: dict[str, str] = {}
        self._used_at: dict[str, int] = {}

    def lark(self) -> str:
        """Return the whole grammar."""
        self._skip(_BLANK_LINES)
        while self._place < len(self._text):
            name = self._name()
            self._skip(_BLANK)
            if not self._take("::="):
                raise self._error(f"Expected ::= behind the name {name}")
            self._skip(_BLANK_LINES)
            self._bodies[name] = self._alternatives(_BLANK)
            if self._peek() not in ("", "\r", "\n"):
                raise self._error("Expected the end of the rule")
            self._skip(_BLANK_LINES)
        if _ROOT not in self._bodies:
            raise ValueError("No rule is named root")
        for name, place in self._used_at.items():
            if name not in self._bodies:
                raise ValueError(f"line {self._line(place)}: Rule '{name}' not found")
        rules = [f"{self._lark_name(name)}: {body}" for name, body in self._bodies.items()]
        return "\n".join([*rules, *(f"{name}: /{source}/" for source, name in self._tokens.items())])

    def _alternatives(self, blank: re.Pattern[str]) -> str:
        found = [self._row(blank)]
        while self._take("|"):
            self._skip(_BLANK_LINES)
            found.append(self._row(blank))
        return " | ".join(found)

    def _row(self, blank: re.Pattern[str]) -> str:
        items: list[str] = []
        while (item := self._item(blank)) is not None:
            self._skip(blank)
            items.append(self._repeated(item, blank))
        return " ".join(items) or _NOTHING

    def _item(self, blank: re.Pattern[str]) -> str | None:
        """Return the next item, which can be repeated as a whole; None where the row ends."""
        if self._take('"'):
            return self._literal()
        if self._take("["):
            return self._token(self._class())
        if self._take("."):
            return self._token("(?s:.)")
        if self._take("("):
            self._skip(_BLANK_LINES)
            inner = self._alternatives(_BLANK_LINES)
            if not self._take(")"):
                raise self._error("Expected )")
            return f"({inner})"
        if _NAME.match(self._text, self._place) is None:
            return None
        place = self._place
        name = self._name()
        self._used_at.setdefault(name, place)
        return self._lark_name(name)

    def _repeated(self, item: str, blank: re.Pattern[str]) -> str:
        is_repeated = False
        while (mark := self._peek()) and mark in "*+?{":
            if is_repeated:
                item = f"({item})"
            if mark == "{":
                item = self._counted(item)
            else:
                self._place += 1
                item += mark
            is_repeated = True
            self._skip(blank)
        return item

    def _counted(self, item: str) -> str:
        counts = _COUNTS.match(self._text, self._place)
        if counts is None:
            raise self._error("Expected {n}, {n,} or {n,m}")
        least, has_comma, most = counts.groups()
        if most is None and not has_comma:
            most = least
        if most is not None and int(most) < int(least):
            raise self._error("The second count is below the first")
        self._place = counts.end()
        if most is not None and not int(most):
            return _NOTHING
        return f"{item}{{{int(least)},{'' if most is None else int(most)}}}"

    # -- characters ---------------------------------------------------------------------------------------------

    def _literal(self) -> str:
        tokens = []
        while not self._take('"'):
            tokens.append(self._token(_char(self._character())))
        return tokens[0] if len(tokens) == 1 else f"({' '.join(tokens) or _NOTHING})"

    def _class(self) -> str:
        """Return the regular expression of a class of characters whose bracket is open."""
        sign = "^" if self._take("^") else ""
        parts = []
        while not self._take("]"):
            first = last = self._character()
            if self._peek() == "-" and self._text[self._place + 1 : self._place + 2] != "]":
                self._place += 1
                last = self._character()
                if last < first:
                    raise self._error("A range of characters ends before it begins")
            parts.append(_char(first) if first == last else f"{_char(first)}-{_char(last)}")
        if not parts:
            raise self._error("A class of characters is empty")
        return f"[{sign}{''.join(parts)}]"

    def _character(self) -> str:
        if not self._peek():
            raise self._error("A text or a class of characters has no end")
        if not self._take("\\"):
            self._place += 1
            return self._text[self._place - 1]
        kind = self._peek()
        if kind in _HEX_DIGITS:
            return self._by_number(kind)
        if kind not in _ESCAPED:
            raise self._error("There is no such escape")
        self._place += 1
        return _ESCAPED[kind]

    def _by_number(self, kind: str) -> str:
        digits = self._text[self._place + 1 : self._place + 1 + _HEX_DIGITS[kind]]
        if not re.fullmatch(f"[0-9A-Fa-f]{{{_HEX_DIGITS[kind]}}}", digits):
            raise self._error(f"\\{kind} needs {_HEX_DIGITS[kind]} hexadecimal digits")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self._error(f"\\{kind}{digits} is no character")
        self._place += 1 + len(digits)
        return chr(code)

    # -- names --------------------------------------------------------------------------------------------------

    def _token(self, source: str) -> str:
        return self._tokens.setdefault(source, f"C{len(self._tokens) + 1}")

    def _name(self) -> str:
        found = _NAME.match(self._text, self._place)
        if found is None:
            raise self._error("Expected the name of a rule")
        self._place = found.end()
        return found[0]

    def _lark_name(self, name: str) -> str:
        """Return a unique Lark name for a rule: lower case, starting with a letter."""
        if name not in self._names:
            lower = name.lower().replace("-", "_")
            lower = lower if lower[0].isalpha() else f"r{lower}"
            while lower in self._taken:
                lower = f"{lower}_{len(self._taken)}"
            self._taken.add(lower)
            self._names[name] = lower
        return self._names[name]

    # -- text ---------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self, expected: str) -> bool:
        if not self._text.startswith(expected, self._place):
            return False
        self._place += len(expected)
        return True

    def _skip(self, blank: re.Pattern[str]) -> None:
        found = blank.match(self._text, self._place)
        self._place = found.end() if found is not None else self._place

    def _line(self, place: int) -> int:
        return self._text.count("\n", 0, place) + 1

    def _error(self, message: str) -> ValueError:
        rest = self._text[self._place :].splitlines()
        found = f"{rest[0][:_SHOWN]!r}" if rest and rest[0] else "the end of the line"
        return ValueError(f"line {self._line(self._place)}: {message}, at {found}")


def _char(character: str) -> str:
    """Return a character as regular expressions and their classes write it."""
    is_plain = character.isascii() and character.isalnum()
    return character if is_plain else f"\\x{{{ord(character):X}}}"
