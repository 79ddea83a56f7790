"""What is passed on of llguidance's messages."""

from __future__ import annotations

import pytest

from core.sampling.grammar.error_text import in_short

_PATTERN = (
    'at 1(8): invalid regex "aa(?!b)" (in regex): regex parse error:\n    aa(?!b)\n      ^^^\n'
    "error: look-around is not supported\n   1 | start: /aa(?!b)/\n              ^\n"
)


@pytest.mark.parametrize(
    ("said", "has_lines", "short"),
    [
        (_PATTERN, False, "look-around is not supported, at '(?!b)'"),
        (_PATTERN, True, "line 1, column 8: look-around is not supported, at '(?!b)'"),
        (_PATTERN.replace("aa(", "a" * 900 + "(").replace("      ^^^", " " * 904 + "^^^"), False, None),
        (
            '2(8): Expected value (at "+" (\'+\'))\n   1 | start: a\n   2 | a: "x"+++\n              ^\n',
            True,
            "line 2, column 8: Expected value (at \"+\" ('+'))",
        ),
        ("Invalid type: nope", False, "Invalid type: nope"),
        ("Unsatisfiable schema: schema is false.", False, "Unsatisfiable schema: schema is false"),
        ("lexer error: too many expressions constructed\n<non-verbose/>", False, "it is too large"),
        (
            "parser error: Too many items (limit 50000; mask); try avoiding single-byte/short lexemes",
            False,
            "it is too large",
        ),
        ("panic: assertion failed: grammar.symbols.len()\n<backtrace>\n 0: unknown", False, "it is too large"),
        ("", False, "no reason is known"),
    ],
)
def test_the_cause_is_said_without_the_source(said: str, has_lines: bool, short: str | None) -> None:
    assert in_short(said, has_lines=has_lines) == (short or "look-around is not supported, at '(?!b)'")


def test_a_long_reason_is_cut() -> None:
    assert len(in_short("x" * 5_000, has_lines=False)) < 500
