"""Folders of its own for each test, and the fake server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli import main as cli
from app.environment.exit_codes import ExitCode
from tests.support import measured
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import Recipe
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.hub_server import HubServer


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All folders of the app below a new one, without a key or other settings from outside."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    for name in ("SLIPSTREAM_API_KEY", "SLIPSTREAM_UNLISTED"):
        monkeypatch.delenv(name, raising=False)
    measured.give(tmp_path / "home" / "cache")
    return tmp_path / "home"


@pytest.fixture
def hub_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """An empty hub on this machine, which is asked in place of the real one, without anybody's token."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # a home may be without a network
    server = HubServer()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    yield server
    server.stop()


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.stop()


# Runs a command: its words become its exit code, output and errors.
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(home: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs a command in this process and returns its exit code, output and errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(list(words))
        return int(code), *capsys.readouterr()

    return run


class Models:
    """Runs a command of ``slipstream models``."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed

    def __call__(self, *words: str) -> tuple[int, str, str]:
        return self.typed("models", *words)

    def json(self, *words: str) -> Any:
        """Return what it prints as JSON."""
        code, out, err = self(*words, "--json")
        assert code == ExitCode.OK, err
        return json.loads(out)


@pytest.fixture
def models(typed: Typed) -> Models:
    return Models(typed)


@pytest.fixture
def library(home: Path) -> Path:
    """The models folder, with deep.gguf in it: a deep Ember, for which the bundled models can draft."""
    folder = home / "data" / "models"
    folder.mkdir(parents=True)
    shutil.copyfile(gguf_factory.cached(Recipe(n_layers=30)), folder / "deep.gguf")
    return folder
