"""A server with a draft model: the same text, drafts that are counted, and refusals that say why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from app.exit_codes import ExitCode
from app.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[3]
BODY = {"messages": [{"role": "user", "content": "Tell me a story about a fox."}], "max_tokens": 60, "temperature": 0}


def ask(server: ServerProcess) -> str:
    request = Request(
        f"{server.wait_listening()}/v1/chat/completions",
        json.dumps(BODY).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {server.api_key}"},
    )
    with urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def test_a_draft_model_changes_no_text() -> None:
    with ServerProcess(["--speculation", "off"]) as plain:
        expected = ask(plain)
    with ServerProcess(["--draft", "ember-draft-q8_0"]) as drafting:
        assert ask(drafting)[:40] == expected[:40]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--draft", "nobody"], ExitCode.MODEL, "ember-draft-q8_0"),
        (["--speculation", "sometimes"], ExitCode.USAGE, "speculation"),
    ],
)
def test_a_draft_that_cannot_be_is_refused(arguments: list[str], code: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "serve", "--port", "0", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert words in done.stderr
