"""Search and repositories through the real client over real HTTP, and a sentence for everything that fails."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from models.hub.client import Search
from models.hub.errors import (
    BadHubSetting,
    BadToken,
    HubFault,
    RateLimited,
    RepositoryNotFound,
    RevisionNotFound,
    TimedOut,
    Unreachable,
)
from models.hub.remote_source import file_client
from models.hub.repository import Access, FileRole
from models.hub.session import retry_after
from tools.stand_ins.hub_server import PAGE, TOKEN, Fault

FILES = {
    "README.md": b"# Hello",
    "big-Q8_0.gguf": b"GGUF" + bytes(900),
    "big-Q4_K_M.gguf": b"GGUF" + bytes(500),
    "F16/big-F16-00001-of-00002.gguf": b"GGUF" + bytes(1000),
    "F16/big-F16-00002-of-00002.gguf": b"GGUF" + bytes(600),
    "mmproj-big-F16.gguf": b"GGUF" + bytes(300),
    "big-draft-Q8_0.gguf": b"GGUF" + bytes(100),
    "imatrix-big.gguf": b"GGUF" + bytes(10),
}


def test_search_sorts_filters_and_follows_pages(server, hub):
    for i in range(PAGE + 5):
        server.add(f"acme/fox-{i:02}-GGUF", {"fox-Q4_0.gguf": b"GGUF"}, downloads=i, likes=100 - i)
    server.add("acme/fox-plain", {"model.safetensors": b"x"}, tags=("license:mit",), downloads=1000)
    server.add("acme/bear-GGUF", {"bear.gguf": b"GGUF"}, downloads=1000)
    found = hub.search(Search("fox", limit=PAGE + 3))
    assert [row.repo_id for row in found] == [f"acme/fox-{i:02}-GGUF" for i in range(PAGE + 4, 1, -1)]
    assert hub.search(Search("fox", sort="likes", limit=1))[0].repo_id == "acme/fox-00-GGUF"
    assert hub.search(Search("nothing like it")) == ()
    assert hub.search(Search("no text: \udcff")) == ()
    server.add("acme/owl-GGUF", {"a.gguf": b"GGUF"}, modified="2024-01-01T00:00:00.000Z", downloads=9)
    server.add("acme/owl-new-GGUF", {"a.gguf": b"GGUF"}, modified="2026-01-01T00:00:00.000Z")
    recent = hub.search(Search("owl", sort="last_modified"))
    assert [row.repo_id for row in recent] == ["acme/owl-new-GGUF", "acme/owl-GGUF"]


def test_search_rows_say_what_the_hub_knows(server, hub):
    server.add("acme/big-GGUF", FILES, gated="manual", downloads=7, likes=3)
    (row,) = hub.search(Search("big"))
    assert (row.downloads, row.likes, row.access, row.licence) == (7, 3, Access.GATED, "apache-2.0")
    assert (row.architecture, row.n_params, row.n_ctx_train, row.base_models, row.n_models) == (
        "llama",
        11_309_952,
        1024,
        ("acme/base",),
        3,
    )


def test_files_are_grouped_as_models_with_true_sizes(server, hub):
    server.add("acme/big-GGUF", FILES)
    repository = hub.repository("acme/big-GGUF")
    models = [(item.name, item.quantisation, item.n_bytes) for item in repository.with_role(FileRole.MODEL)]
    assert models == [("big-Q4_K_M", "Q4_K_M", 504), ("big-Q8_0", "Q8_0", 904), ("big-F16", "F16", 1608)]
    assert [item.name for item in repository.with_role(FileRole.PROJECTOR)] == ["mmproj-big-F16"]
    assert [item.name for item in repository.with_role(FileRole.DRAFT)] == ["big-draft-Q8_0"]
    assert [item.name for item in repository.with_role(FileRole.OTHER)] == ["imatrix-big"]
    assert (repository.commit, repository.licence, repository.base_models) == ("0" * 40, "apache-2.0", ("acme/base",))


def test_a_renamed_repository_is_followed_and_told(server, hub):
    server.add("acme/new-GGUF", FILES)
    server.renamed["acme/old-GGUF"] = "acme/new-GGUF"
    repository = hub.repository("acme/old-GGUF")
    assert (repository.repo_id, repository.was_renamed) == ("acme/new-GGUF", True)
    assert not hub.repository("acme/new-GGUF").was_renamed


def test_a_private_repository_needs_its_owner(server, hub, hub_with):
    server.add("acme/secret-GGUF", FILES, is_private=True)
    with pytest.raises(RepositoryNotFound, match=r"or it is private.*log in first"):
        hub.repository("acme/secret-GGUF")
    with pytest.raises(RepositoryNotFound, match="your token must be allowed"):
        hub_with("hf_stranger").repository("acme/secret-GGUF")
    server.asked.clear()
    assert hub_with(TOKEN).repository("acme/secret-GGUF").access is Access.PRIVATE
    assert {asked.authorization for asked in server.asked} == {f"Bearer {TOKEN}"}


def test_what_is_not_there_is_told(server, hub):
    for repo_id in ("acme/none", "none"):
        with pytest.raises(RepositoryNotFound, match=f"no repository {repo_id}"):
            hub.repository(repo_id)
    server.add("acme/big-GGUF", FILES)
    with pytest.raises(RevisionNotFound, match="no version v9"):
        hub.repository("acme/big-GGUF", "v9")


@pytest.mark.parametrize("repo_id", ["", "../etc/passwd", "a/b/c", "a b", "https://x.y/z", "a" * 200, "a/..", "a/\0"])
def test_names_that_no_repository_has(repo_id, server, hub):
    with pytest.raises(BadHubSetting, match="no name of a repository"):
        hub.repository(repo_id)
    assert server.asked == []


def test_a_wrong_token_is_told_and_never_shown(server, hub_with):
    server.add("acme/big-GGUF", FILES)
    with pytest.raises(BadToken) as caught:
        hub_with("hf_wrong").user_of("hf_wrong")
    assert "hf_wrong" not in str(caught.value)
    assert hub_with().user_of(TOKEN) == "tester"
    assert "hf_wrong" not in repr(hub_with("hf_wrong").settings)
    n_asked = len(server.asked)
    for ask in (lambda: hub_with("hf_ä").repository("acme/big-GGUF"), lambda: hub_with().user_of("hf_ä")):
        with pytest.raises(BadToken):  # no header can hold it
            ask()
    assert len(server.asked) == n_asked


def test_rate_limits_are_told_at_once_with_their_seconds(server, hub):
    server.fault("/api/models", Fault(status=429, headers={"Retry-After": "77"}))
    with pytest.raises(RateLimited, match="in 77 s, or"):
        hub.search(Search("x"))
    server.heal()
    server.fault("/api/models", Fault(status=429, headers={"RateLimit": '"api";r=0;t=55'}))
    with pytest.raises(RateLimited, match="in 55 s, or"):
        hub.repository("acme/big-GGUF")
    assert len(server.asked) == 2


NOW = "Sat, 21 Nov 2026 15:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "Sat, 21 Nov 2026 15:02:00 GMT", "Date": NOW}, 120.0),
        ({"Retry-After": "Sat, 21 Nov 2020 15:02:00 GMT", "Date": NOW}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 1970 15:02:00 GMT"}, 0.0),
        ({"Retry-After": "Sat, 21 Nov 2126 15:02:00 GMT", "Date": NOW}, 7 * 86_400.0),
        ({"Retry-After": "9" * 400}, 7 * 86_400.0),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Sat, 99 Nov 2026 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_when_to_come_back_whatever_this_machines_clock_says(headers, seconds):
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Fault(status=500), HubFault, "HTTP status 500"),
        (Fault(status=503), HubFault, "HTTP status 503"),
        (Fault(status=504), HubFault, "HTTP status 504"),
        (Fault(status=302, headers={"Location": "?"}), Unreachable, "redirects"),
        (Fault(stall_after=0), TimedOut, r"within 0\.2 seconds"),
    ],
)
def test_a_fault_of_the_hub_is_told_at_once(fault, error, said, server, hub_with):
    server.fault("/api/models", fault)
    hub = hub_with(timeout=0.2) if error is TimedOut else hub_with()
    with pytest.raises(error, match=said):
        hub.search(Search("x"))
    assert error is Unreachable or len(server.asked) == 1


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"{}", b"null", b"\xff\xfe"])
def test_an_answer_that_makes_no_sense_is_a_fault(body, server, hub):
    server.fault("/api/models", Fault(body=body))
    with pytest.raises(HubFault, match="has a problem"):
        hub.repository("acme/big-GGUF")


def test_nobody_there(hub_with):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Unreachable, match=r"cannot be reached.*Check the network") as caught:
        hub_with(address=address).search(Search("x"))
    assert address in str(caught.value)
    with pytest.raises(Unreachable, match=r"cannot be reached"):
        hub_with(address="http://no-such-host.invalid").repository("a/b")


def test_who_has_less_patience_ends_nobody_elses_question(server, hub_with):
    """Both go through the library's one session: another one would close the connection that somebody reads."""
    from huggingface_hub import get_session

    server.add("acme/big-GGUF", FILES)
    assert hub_with(timeout=60.0).repository("acme/big-GGUF").repo_id == "acme/big-GGUF"
    opened = get_session()
    server.fault("/api/models", Fault(times=1, stall_after=0))
    with pytest.raises(TimedOut, match=r"within 0\.2 seconds"):
        hub_with(timeout=0.2).search(Search("x"))
    assert hub_with(timeout=61.0).repository("acme/big-GGUF").repo_id == "acme/big-GGUF"
    assert get_session() is opened
    assert not opened.is_closed


def test_a_proxy_is_used(server, hub_with):
    # The hub itself stands in for the proxy: a proxied request names the whole address in its first line.
    hub = hub_with(address="http://hub.invalid", proxy=server.address)
    with pytest.raises(RepositoryNotFound):
        hub.repository("acme/none")
    assert [asked.path.split("?")[0] for asked in server.asked] == ["http://hub.invalid/api/models/acme/none"]


class Socks(socketserver.ThreadingTCPServer):
    """A SOCKS5 proxy that takes any name for the hub's."""

    daemon_threads, block_on_close = True, False

    def __init__(self, hub: str) -> None:
        super().__init__(("127.0.0.1", 0), _Through)
        self.hub = ("127.0.0.1", int(hub.rpartition(":")[2]))
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class _Through(socketserver.StreamRequestHandler):
    server: Socks

    def handle(self) -> None:
        self.rfile.read(self.rfile.read(2)[1])
        self.wfile.write(b"\5\0")
        self.rfile.read(self.rfile.read(5)[4] + 2)
        self.wfile.write(b"\5\0\0\1" + bytes(6))
        with socket.create_connection(self.server.hub) as there:
            while line := self.rfile.readline():
                there.sendall(line)
                if line == b"\r\n":
                    break
            while answer := there.recv(1 << 16):
                self.wfile.write(answer)


@pytest.fixture
def anew():
    """Let the library's one session be made anew, as in a process of its own."""
    from huggingface_hub import close_session

    close_session()
    yield
    close_session()


@pytest.mark.parametrize("way", ["set", "ALL_PROXY"])
def test_a_socks_proxy_is_used(server, hub_with, monkeypatch, anew, way):
    server.add("acme/big-GGUF", FILES)
    with Socks(server.address) as proxy:
        address = f"socks5://127.0.0.1:{proxy.server_address[1]}"
        if way == "ALL_PROXY":
            monkeypatch.setenv(way, address)
        hub = hub_with(address="http://hub.invalid", proxy=address if way == "set" else None)
        assert hub.repository("acme/big-GGUF").repo_id == "acme/big-GGUF"
        proxy.shutdown()


def test_a_proxy_that_cannot_be_used_is_told(hub_with, monkeypatch, anew):
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:70")
    hub = hub_with(address="http://hub.invalid")
    for ask in (lambda: hub.repository("a/b"), lambda: file_client(hub.settings)):
        with pytest.raises(BadHubSetting, match=r"The proxy cannot be used \(.*gopher"):
            ask()
