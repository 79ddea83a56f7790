"""The stand-in of the Hub."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection

import pytest

from tools.stand_ins.hub_server import HubServer


def ask(client: HTTPConnection) -> bytes:
    client.request("GET", "/api/models")
    return client.getresponse().read()


def test_a_hub_that_was_stopped_answers_nobody_not_even_on_an_open_connection() -> None:
    hub = HubServer()
    with closing(HTTPConnection(hub.address.removeprefix("http://"), timeout=60)) as client:
        assert ask(client) == b"[]"
        hub.stop()
        with pytest.raises(ConnectionError):
            ask(client)
