"""The library page with the real process, a hub and folders of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.catalog.catalog import STARTER_FOLDER
from models.formatting.program import IN_WINDOW
from tools.stand_ins.hub_server import HubServer
from tools.stand_ins.library_server import KEY, LibraryServer
from ui.client.api import Api
from ui.library.library_page import LibraryPage
from ui.window.main_window import MainWindow

SMALL = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
REPO = "acme/fox-GGUF"


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub, and an environment without the user's settings."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = HubServer()
    made.add(REPO, {"fox-Q8_0.gguf": SMALL, "fox-Q4_K_M.gguf": SMALL[:500_000], "mmproj-F16.gguf": SMALL[:9_000]})
    for name in ("home", "xdg"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HF_ENDPOINT", made.address)
    monkeypatch.setenv(IN_WINDOW, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "slipstream"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    yield made
    made.stop()


@pytest.fixture
def models_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "slipstream" / "data" / "models"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def library(lonely_api: Api, library_server: LibraryServer) -> Api:
    """A client of the library."""
    lonely_api.connect_to(library_server.url, KEY)
    return lonely_api


@pytest.fixture
def page(hub: HubServer, models_folder: Path, window: MainWindow) -> LibraryPage:
    """The library in the window, in view."""
    window.show_page("library")
    assert window.library is not None
    return window.library
