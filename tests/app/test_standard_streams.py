"""Commands whose standard streams are closed, full, or left early by their reader."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.terminal.text import say_json
from app.environment.exit_codes import ExitCode
from app.environment.standard_streams import write_all_texts

ROOT = Path(__file__).resolve().parents[2]
FULL = Path("/dev/full")

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="redirections of a POSIX shell"),
    pytest.mark.usefixtures("home"),
]


def run(redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-m", "app", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail(redirection: str) -> None:
    done = run(redirection, "models", "list")
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
    assert ("ember" in done.stdout) is (">&- " not in f"{redirection} ".replace("2>&- ", ""))


def written(monkeypatch: pytest.MonkeyPatch, encoding: str, write: Callable[[str], object], text: str) -> str:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding, newline="\n"))
    write_all_texts()
    write(text)
    sys.stdout.flush()
    return sys.stdout.buffer.getvalue().decode(encoding).rstrip("\n")


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("ascii", "≈\N{NO-BREAK SPACE}4.3 tok/s · “Füchse” 1.2× … \udcff", "~ 4.3 tok/s - 'Fuchse' 1.2x ... ?"),
        ("cp1252", "≈\N{NO-BREAK SPACE}4.3 tok/s · “Füchse” …", "~\N{NO-BREAK SPACE}4.3 tok/s · “Füchse” …"),
        ("utf8", "≈ Füchse 世界 \udcff", "≈ Füchse 世界 \\udcff"),
        ("ascii", "世界 한국어", "?? ???"),
        ("ascii", "GPT\N{NON-BREAKING HYPHEN}4\N{HYPHEN}o", "GPT-4-o"),
        ("ascii", "½ or 1½ of 10⁵, 10⁻¹², H₂O, Core™", "1/2 or 1 1/2 of 10^5, 10^-12, H2O, CoreTM"),
        ("ascii", "a ≠ b ≮ c", "a != b <? c"),
    ],
)
def test_an_encoding_that_lacks_letters_gets_others_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch, encoding: str, text: str, shown: str
) -> None:
    assert written(monkeypatch, encoding, print, text) == shown


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8", "utf8"])
def test_json_keeps_each_letter_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    text = 'Füchse／“世界”＂＼ \N{GRINNING FACE} " \udcff.gguf'
    found = written(monkeypatch, encoding, say_json, text)
    assert json.loads(found) == text
    assert ("世界" in found) is encoding.startswith("utf")


def test_without_standard_input_there_is_no_prompt() -> None:
    done = run("<&-", "chat")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("Error: The prompt is empty.")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("models", "list"), ("models", "list", "--json"), ("--help",)], ids=" ".join)
def test_an_output_without_room_is_told(words: tuple[str, ...]) -> None:
    done = run(f">{FULL}", *words)
    assert done.returncode == ExitCode.ERROR
    assert done.stderr == "Error: The output cannot be written: No space left on device.\n"


def test_a_reader_that_has_left_before_anything_came_is_nothing_to_talk_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "app", "models", "list"],
            cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=100, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.ERROR, "")
