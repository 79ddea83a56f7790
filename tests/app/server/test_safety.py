"""What must never happen: secrets in logs, and files or addresses that a request names being read."""

from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import pytest

from tests.app.server.conftest import RunningServer

MARK = "xyzzy-plugh-4711"


def logs(home: Path) -> str:
    """All that is written of what happens: logs, the index of servers, what is remembered of a machine."""
    kept = [path for path in home.rglob("*") if path.is_file() and path.suffix in (".log", ".json", ".txt")]
    return "".join(path.read_text(errors="replace") for path in kept if path.stat().st_size < 10 << 20)


def test_neither_prompts_nor_keys_are_in_logs(own_server: RunningServer, home: Path) -> None:
    assert own_server.chat(f"Say {MARK}.", max_tokens=4)
    for body in ({"messages": [{"role": MARK, "content": MARK}]}, {"messages": MARK}, {"model": MARK}):
        assert own_server.http.post("/v1/chat/completions", json=body).status_code == 400
    wrong = {"Authorization": f"Bearer {MARK}", "x-api-key": MARK}
    assert httpx.get(f"{own_server.url}/v1/models", headers=wrong).status_code == 401
    assert httpx.get(f"{own_server.url}/v1/models?api_key={MARK}").status_code == 401
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(own_server.chat, f"Say {MARK}.", max_tokens=None, extra_body={"ignore_eos": True})
        own_server.wait_until(lambda state: state["active"] == 1)
        shown = own_server.http.get("/slots").text + own_server.http.get("/slipstream/requests").text
        own_server.engine.send_signal(signal.SIGKILL)
        with pytest.raises(openai.InternalServerError) as died:
            call.result(timeout=60)
    own_server.wait_until(lambda state: state["phase"] == "ready")
    told = shown + own_server.http.get("/metrics").text + own_server.http.get("/props").text + str(died.value)
    assert MARK not in told
    written = logs(home)
    assert "server.log" in {path.name for path in home.rglob("*.log")}
    assert MARK not in written
    assert own_server.process.api_key not in written


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that notes who asks it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}/x.png", asked
    served.shutdown()
    thread.join()
    served.server_close()


def image(url: str) -> dict:
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


FILE = "/etc/hostname"
BODIES = (
    ("/v1/chat/completions", image),
    ("/v1/chat/completions", lambda url: {"messages": [], "lora": [{"path": FILE}]}),
    ("/v1/chat/completions", lambda url: {"messages": [{"role": "user", "content": "x"}], "grammar_file": FILE}),
    ("/v1/responses", lambda url: {"input": [{"type": "input_file", "file_url": url}]}),
    (
        "/v1/responses",
        lambda url: {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]},
    ),
    (
        "/v1/messages",
        lambda url: {
            "max_tokens": 1,
            "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": url}}]}],
        },
    ),
    ("/slipstream/load", lambda url: {"model": url}),
    ("/models/load", lambda url: {"model": url}),
    ("/api/show", lambda url: {"model": url}),
)


@pytest.mark.parametrize(("path", "body"), BODIES)
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_no_route_reads_a_file_or_an_address_that_a_request_names(server: RunningServer, trap, path, body, scheme):
    url, asked = trap
    answer = server.http.post(path, json=body(url if scheme == "http" else f"file://{FILE}"))
    assert 400 <= answer.status_code < 500, answer.text
    assert Path(FILE).read_text().strip() not in answer.text
    assert asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/files/..%2f..%2fetc%2fpasswd",
        "/v1/files/../../etc/passwd/content",
        "/v1/responses/..%2f..",
        "/v1/batches/..",
    ],
)
def test_ids_are_no_paths(server: RunningServer, path: str) -> None:
    answer = server.http.get(path)
    assert answer.status_code in (404, 405)
    assert "root:" not in answer.text
