"""What the owner of a server changes while it runs: the port for other programs, and the keys of clients."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

OWNERS = ("/slipstream/endpoint", "/slipstream/keys", "/slipstream/log")


@pytest.fixture
def endpoint(server):
    """The answer of opening a port for this machine; it is shut in the end."""
    opened = server.http.post("/slipstream/endpoint", json={"open": True, "port": free_port()}).json()
    yield opened
    server.http.post("/slipstream/endpoint", json={"open": False})


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return taken.getsockname()[1]


def models(url: str, key: str) -> int:
    return httpx.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code


def test_the_port_is_open_to_those_with_its_key_until_it_is_shut(server, endpoint):
    (url,) = endpoint["urls"]
    assert (models(url, endpoint["key"]), models(url, "another")) == (200, 401)
    theirs = {"Authorization": f"Bearer {endpoint['key']}"}
    assert [httpx.get(url + path, headers=theirs).status_code for path in OWNERS] == [403] * 3, "it owns nothing"
    assert len(server.http.get("/slipstream/log", params={"lines": 2}).json()["lines"]) <= 2
    again = server.http.get("/slipstream/endpoint").json()
    assert again == endpoint
    anew = server.http.post("/slipstream/endpoint", json={"open": True, "port": endpoint["port"], "new_key": True})
    assert (models(url, endpoint["key"]), models(url, anew.json()["key"])) == (401, 200)
    shut = server.http.post("/slipstream/endpoint", json={"open": False, "port": endpoint["port"]}).json()
    assert (shut["open"], shut["urls"], shut["key"]) == (False, [], None)
    with pytest.raises(httpx.ConnectError):
        models(url, endpoint["key"])


def test_pages_of_named_origins_are_let_in_until_they_are_taken_back(server, endpoint):
    (url,) = endpoint["urls"]

    def answer(origin: str) -> int:
        fields = {"Authorization": f"Bearer {endpoint['key']}", "Origin": origin}
        return httpx.get(f"{url}/v1/models", headers=fields).status_code

    def named(*origins: str) -> dict:
        body = {"open": True, "port": endpoint["port"], "origins": list(origins)}
        return server.http.post("/slipstream/endpoint", json=body).json()

    assert answer("https://pages.example") == 403
    assert named("HTTPS://Pages.example/", "https://pages.example:443")["origins"] == ["https://pages.example"]
    assert (answer("https://pages.example"), answer("https://other.example")) == (200, 403)
    error = named("https://other.example", "pages.example")["error"]
    assert (error["param"], error["code"]) == ("origins", "invalid_origin")
    assert "'pages.example' is no address" in error["message"]
    same = server.http.post("/slipstream/endpoint", json={"open": True, "port": endpoint["port"]}).json()
    assert same["origins"] == ["https://pages.example"]
    assert answer("https://other.example") == 403
    assert named("*")["origins"] == ["*"]
    assert answer("https://other.example") == 200
    assert named()["origins"] == []
    assert answer("https://pages.example") == 403


def test_a_port_that_is_taken_is_said_with_one_that_is_free(server):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        refused = server.http.post("/slipstream/endpoint", json={"open": True, "port": port})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, "port_taken", "port")
    assert f"port {port}." in error["message"]
    assert f"Port {error['free_port']} is free." in error["message"]
    assert server.http.get("/slipstream/endpoint").json()["open"] is False


def test_ports_that_are_opened_at_once_are_all_shut_in_the_end(server):
    ports = [free_port() for _ in range(4)]

    def set_port(port: int) -> dict:
        return server.http.post("/slipstream/endpoint", json={"open": True, "port": port}).json()

    with ThreadPoolExecutor(len(ports)) as pool:
        key = next(iter(pool.map(set_port, ports)))["key"]
    assert server.http.post("/slipstream/endpoint", json={"open": False}).json()["urls"] == []
    for port in ports:
        with pytest.raises(httpx.ConnectError):
            models(f"http://127.0.0.1:{port}", key)


def test_keys_are_made_listed_and_revoked(server):
    key = server.http.post("/slipstream/keys", json={"name": "laptop"}).json()["key"]
    assert models(server.url, key) == 200
    (listed,) = server.http.get("/slipstream/keys").json()["data"]
    assert listed["name"] == "laptop"
    assert key not in str(listed)
    for again in ({"name": "laptop"}, {"name": "?"}):
        refused = server.http.post("/slipstream/keys", json=again)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "name")
    theirs = {"Authorization": f"Bearer {key}"}
    refused = [server.http.get(path, headers=theirs) for path in OWNERS]
    assert [one.status_code for one in refused] == [403] * 3
    assert [one.json()["error"]["code"] for one in refused] == ["not_owner", "not_owner", "may_not_manage"]
    assert server.http.delete("/slipstream/keys/laptop").json()["revoked"]
    assert models(server.url, key) == 401
    assert server.http.delete("/slipstream/keys/laptop").status_code == 400
