"""Finds grammars that no finite text matches, since their start requires itself (llguidance's Lark). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core.sampling.grammar.endless_schema import reason_clause, why_endless_value
from core.sampling.grammar.least_fixed_point import find_cycle, least_fixed_point

_START = "start"
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|//[^\n]*)
    |(?P<newline>\n)
    |(?P<text>"(?:\\.|[^"\\\n])*"i?|/(?:\\.|[^/\\\n])+/[imslux]*|<[^>\n]*>)
    |(?P<embedded>%[a-z_]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    |(?P<number>-?\d+)
    |(?P<mark>\.\.|->|[][(){}|?*+~:,.!&@=])""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    is_first: bool


class _Unclear(Exception):
    """The grammar has syntax that this reader does not know."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The tokens after a rule's colon, and the names among them."""

    tokens: tuple[_Token, ...]
    names: tuple[str, ...]


@dataclass(slots=True)
class _Grammar:
    rules: dict[str, _Rule] = field(default_factory=dict)
    problem: str | None = None


def why_endless(text: str) -> str | None:
    """Return why no finite text can match a grammar; None if one can, or if that is not clear."""
    try:
        grammar = _read(text)
        if grammar.problem is not None:
            return grammar.problem
        needs = {
            name: [other for other in rule.names if other in grammar.rules] for name, rule in grammar.rules.items()
        }
        ends = least_fixed_point(needs, lambda name, known: _Reader(grammar.rules[name], known).can_end(), False)
    except (_Unclear, RecursionError):
        return None
    if ends is None or ends.get(_START, True):
        return None
    cycle = find_cycle(_START, lambda name: next((other for other in needs[name] if not ends[other]), None))
    return reason_clause(cycle) if cycle else None


def _read(text: str) -> _Grammar:
    grammar = _Grammar()
    tokens = _tokens(text, grammar)
    place = 0
    heads: list[tuple[str, int, int]] = []
    while place < len(tokens):
        end = _head_end(tokens, place) if tokens[place].is_first else 0
        if end:
            heads.append((tokens[place].text, place, end))
        elif tokens[place].is_first and tokens[place].kind == "embedded":
            heads.append(("", place, place + 1))  # a statement, such as %ignore
        place += 1
    for (name, _, begin), until in zip(heads, [*(head[1] for head in heads[1:]), len(tokens)], strict=False):
        # Names in capitals are lexer rules (regular expressions), which cannot be recursive.
        if name and name.upper() != name:
            body = tuple(tokens[begin:until])
            names = tuple(dict.fromkeys(token.text for token in body if token.kind == "name"))
            grammar.rules[name] = _Rule(body, names)
    return grammar


def _tokens(text: str, grammar: _Grammar) -> list[_Token]:
    tokens: list[_Token] = []
    place, is_first = 0, True
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _Unclear
        place, kind = match.end(), match.lastgroup or ""
        if kind == "newline":
            is_first = True
        if kind in ("newline", "skip"):
            continue
        if kind == "embedded":
            place = _skip_embedded(text, place, match[0], grammar)
        tokens.append(_Token(kind, match[0], is_first))
        is_first = False
    return tokens


def _skip_embedded(text: str, place: int, what: str, grammar: _Grammar) -> int:
    """Return the place after the value that follows ``what``; check an embedded schema too."""
    if what not in ("%json", "%regex", "%llguidance"):
        if what == "%lark":
            raise _Unclear
        return place
    begin = place + len(text[place:]) - len(text[place:].lstrip())
    try:
        value: Any
        value, end = json.JSONDecoder().raw_decode(text, begin)
    except ValueError as error:
        raise _Unclear from error
    if what == "%json":
        grammar.problem = grammar.problem or why_endless_value(value)
    return end


def _head_end(tokens: list[_Token], place: int) -> int:
    """Return the place after the colon of a rule's head that begins at ``place``; 0 if none begins there."""
    if tokens[place].kind != "name":
        return 0
    closing = {"[": "]", "{": "}"}
    place += 1
    while place < len(tokens) and tokens[place].text != ":":
        text = tokens[place].text
        if tokens[place].is_first or (text not in (*closing, ".") and tokens[place].kind != "number"):
            return 0
        if text in closing:
            while place < len(tokens) and tokens[place].text != closing[text]:
                place += 1
        place += 1
    return place + 1 if place < len(tokens) else 0


class _Reader:
    """Reads the tokens of one rule and says whether one of its alternatives can end."""

    def __init__(self, rule: _Rule, known: Mapping[str, bool]) -> None:
        self._tokens = rule.tokens
        self._known = known
        self._place = 0

    def can_end(self) -> bool:
        """Return whether an alternative can end. Raises _Unclear."""
        can_end = self._alternatives()
        if self._place < len(self._tokens):
            raise _Unclear
        return can_end

    def _peek(self) -> str:
        return self._tokens[self._place].text if self._place < len(self._tokens) else ""

    def _take(self, *expected: str) -> _Token:
        if self._place >= len(self._tokens) or (expected and self._peek() not in expected):
            raise _Unclear
        self._place += 1
        return self._tokens[self._place - 1]

    def _alternatives(self) -> bool:
        can_end = self._row()
        while self._peek() == "|":
            self._take()
            can_end = self._row() or can_end
        return can_end

    def _row(self) -> bool:
        can_end = True
        while self._place < len(self._tokens) and self._peek() not in ("|", ")", "]"):
            if self._peek() == "->":
                self._take()
                self._take()
                continue
            can_end = self._item() and can_end
        return can_end

    def _item(self) -> bool:
        token = self._take()
        if token.text in ("(", "["):
            can_end = self._alternatives()
            self._take(")" if token.text == "(" else "]")
            can_end = can_end or token.text == "["
        elif token.kind == "name":
            can_end = self._known.get(token.text, True)
        elif token.kind in ("text", "embedded"):
            can_end = True
            if self._peek() == "..":
                self._take()
                self._take()
        else:
            raise _Unclear
        return self._repeated(can_end)

    def _repeated(self, can_end: bool) -> bool:
        while self._peek() in ("?", "*", "+", "{", "~"):
            mark = self._take().text
            if mark in ("?", "*"):
                can_end = True
            elif mark != "+":
                least = self._take()
                can_end = can_end or least.text in ("0", ",")
                while mark == "{" and self._take().text != "}":
                    pass
                if mark == "~" and self._peek() == "..":
                    self._take()
                    self._take()
        return can_end
