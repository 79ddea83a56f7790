"""A library behind its routes, with a hub and folders of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.fork_server import forked_library_command
from tests.support.library_client import LibraryClient, give_places
from tools.stand_ins.hub_server import HubServer
from tools.stand_ins.library_server import LibraryServer


@pytest.fixture
def hub() -> Iterator[HubServer]:
    made = HubServer()
    yield made
    made.stop()


@pytest.fixture
def open_library(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Opens a library on the test's folder, again and again; its process is forked, or started by a command."""
    give_places(tmp_path, hub.address, monkeypatch)
    opened: list[LibraryClient] = []

    def open_one(command: Callable[[], list[str]] = forked_library_command, **environment: str) -> LibraryClient:
        opened.append(LibraryClient(LibraryServer(command, **environment)))
        return opened[-1]

    yield open_one
    for library in opened:
        library.close()


@pytest.fixture
def library(open_library) -> LibraryClient:
    return open_library()


@pytest.fixture
def models_folder(tmp_path: Path) -> Path:
    return tmp_path / "slipstream" / "data" / "models"
