"""Figures as people read them, names that hide nothing, and this program called as it can be typed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.formatting import figures
from models.formatting.program import PROGRAM, command, program_typed
from models.formatting.safe_text import lines, one_line


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.speed(4.26), "4.3 tok/s"),
        (figures.speed(1234.5), "1,234 tok/s"),
        (figures.expected_speed(1062.3), "≈ 1,100 tok/s"),
        (figures.expected_speed(7.68), "≈ 7.7 tok/s"),
        (figures.expected_speed(0.123), "≈ 0.1 tok/s"),
        (figures.count(1_730), "1,730"),
        (figures.milliseconds(38.2), "38 ms"),
        (figures.milliseconds(2140), "2.1 s"),
        (figures.parameters(0), ""),
        (figures.parameters(640), "640"),
        (figures.parameters(5_000), "5.0K"),
        (figures.parameters(11_300_000), "11.3M"),
        (figures.parameters(494_000_000), "494M"),
        (figures.parameters(999_600_000), "1.0B"),
        (figures.parameters(7_600_000_000), "7.6B"),
        (figures.parameters(120_400_000_000), "120B"),
        (figures.size(640), "640 B"),
        (figures.size(9_940_000), "9.9 MB"),
        (figures.size(4_900_000_000), "4.9 GB"),
        (figures.duration(48), "48 s"),
        (figures.duration(7_800), "2 h 10 min"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected


R = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Qwen3-8B", "Qwen3-8B"),
        ("mein modell 模型 नमस्ते שלום مدل", "mein modell 模型 नमस्ते שלום مدل"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\nb\tc\r", "a b c "),
        ("fox\u202effug.exe", f"fox{R}ffug.exe"),
        ("\u2067a\u2069", f"{R}a{R}"),
        ("\x1b[2Jgone\x9b1A", f"{R}[2Jgone{R}1A"),
        ("a\u2028b\u200bc\ufeff", f"a{R}b{R}c{R}"),
        ("\udce9t\udce9", f"{R}t{R}"),
        ("", ""),
    ],
)
def test_what_controls_is_seen_and_does_nothing(name, shown):
    assert one_line(name) == shown
    assert lines("a\nb\u202ec\n") == f"a\nb{R}c\n"


ROOT = Path(__file__).resolve().parents[2]
# A command without what it is a command of, or with a name that was not looked up.
_WRITTEN_OUT = re.compile(
    r"(?<![\w/-])(\./)?slipstream (models|chat|serve|doctor|verify|bench|batch|cache|test|setup)\b"
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", "./slipstream"),
        ("./slipstream", "./slipstream"),
        ("slipstream", "slipstream"),
        ("/home/a b/slipstream", "'/home/a b/slipstream'"),
        ("/x\n/slipstream", "./slipstream"),
        ("\x1b[31mslipstream", "./slipstream"),
    ],
)
def test_the_program_is_called_as_it_was_typed(typed, expected):
    assert program_typed({"SLIPSTREAM_PROGRAM": typed}) == expected
    assert program_typed({}) == "./slipstream"


@pytest.mark.parametrize(
    "name", ["ember", "mein modell", "模型", "it's", "-lead", "--delete", "$(reboot)", "a\nb", "`x`"]
)
def test_a_command_can_be_typed_whatever_the_name(name):
    words = shlex.split(command("models rm", name, "--delete"))
    assert words[:3] == [*shlex.split(PROGRAM), "models", "rm"]
    assert sorted(words[3:]) == sorted([name, "--delete", *(["--"] if name.startswith("-") else [])])
    assert not name.startswith("-") or words[-2:] == ["--", name]


@pytest.mark.parametrize("folder", ["app", "core", "models", "ui"])
def test_no_sentence_writes_the_program_out(folder):
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in (ROOT / folder).rglob("*.py")
        if "slipstream " in (source := path.read_text(encoding="utf-8"))
        for text in _sentences(ast.parse(source))
        if _WRITTEN_OUT.search(text)
    ]
    assert found == []


def test_models_name_no_command_and_no_button():
    """What is typed or clicked is said by the command line and by the window."""
    users = [path for path in (ROOT / "models").rglob("*.py") if "formatting.program" in path.read_text("utf-8")]
    assert users == []


def _sentences(tree: ast.Module) -> Iterator[str]:
    """All texts but docstrings."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value
