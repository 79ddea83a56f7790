"""A library over pipes, with a hub and folders of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.library_pipe import LibraryPipe
from tools.stand_ins.hub_server import HubServer


@pytest.fixture
def hub() -> Iterator[HubServer]:
    made = HubServer()
    yield made
    made.stop()


@pytest.fixture
def open_library(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Opens the library's process on the test's folder, again and again."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "xdg").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "slipstream"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    opened: list[LibraryPipe] = []

    def open_one(**options: Any) -> LibraryPipe:
        opened.append(LibraryPipe(**options))
        return opened[-1]

    yield open_one
    for library in opened:
        library.close()


@pytest.fixture
def library(open_library) -> LibraryPipe:
    return open_library()


@pytest.fixture
def models_folder(tmp_path: Path) -> Path:
    return tmp_path / "slipstream" / "data" / "models"
