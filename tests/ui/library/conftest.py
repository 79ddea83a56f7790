"""The library page with the real process, a hub and folders of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.catalog.catalog import STARTER_FOLDER
from models.formatting.program import IN_WINDOW
from tests.support.library_client import give_places
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
    made = HubServer()
    made.add(REPO, {"fox-Q8_0.gguf": SMALL, "fox-Q4_K_M.gguf": SMALL[:500_000], "mmproj-F16.gguf": SMALL[:9_000]})
    give_places(tmp_path, made.address, monkeypatch)
    monkeypatch.setenv(IN_WINDOW, "1")
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
