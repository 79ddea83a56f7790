"""What sentences call this program is what can be typed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.formatting.program import PROGRAM, command, program_typed

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


def test_the_usual_name_needs_no_environment():
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
        for text in _sentences(ast.parse(path.read_text(encoding="utf-8")))
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
