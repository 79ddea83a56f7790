"""Folders of its own for each test, and the fake server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import measured
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
