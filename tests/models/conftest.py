"""A hub of their own for the tests that need one, and no token of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.hub.client import Hub
from models.hub.settings import AccessToken, HubSettings
from tools.stand_ins.hub_server import HubServer


@pytest.fixture(autouse=True)
def no_token_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))


@pytest.fixture
def server() -> Iterator[HubServer]:
    hub = HubServer()
    yield hub
    hub.stop()


@pytest.fixture
def hub(server: HubServer) -> Hub:
    return Hub(HubSettings(server.address, timeout=60))


@pytest.fixture
def hub_with(server: HubServer):
    """A hub whose settings are changed: a token, an address, a timeout."""

    def make(token: str | None = None, address: str | None = None, **settings) -> Hub:
        known = AccessToken(token, "the test") if token else None
        return Hub(HubSettings(address or server.address, look_up_token=lambda: known, **{"timeout": 60, **settings}))

    return make
