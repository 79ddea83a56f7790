"""Replies that are broken off on each route: the engine dies, or the client goes, while it waits or while it reads."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.client.server_process import ServerProcess
from tests.app.server.conftest import RunningServer
from tools.model_factory import gguf_factory

USER = [{"role": "user", "content": "Tell me a story about a fox."}]
LONG = {"model": "deep", "ignore_eos": True}
# Of each route a body whose reply does not end by itself while a test runs.
ENDLESS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": USER, **LONG},
    "/v1/completions": {"prompt": "Once", "max_tokens": 900, **LONG},
    "/v1/responses": {"input": "Tell me a story.", "store": False, **LONG},
    "/v1/messages": {"messages": USER, "max_tokens": 900, "model": "deep"},
    "/completion": {"prompt": "Once", **LONG},
    "/infill": {"input_prefix": "a", "input_suffix": "b", **LONG},
    "/api/chat": {"model": "deep", "messages": USER, "options": {"num_predict": 900}},
    "/api/generate": {"model": "deep", "prompt": "Once", "options": {"num_predict": 900}},
}
CALLS = [(path, stream) for path in ENDLESS for stream in (True, False)]
SLOTS = 4  # fewer than calls: the others wait


@pytest.fixture(scope="module")
def deep(home: object) -> Iterator[RunningServer]:
    """A server whose model is so slow that its replies last."""
    path = gguf_factory.cached_file("deep-24.gguf", lambda path: gguf_factory.deep_ember(path, 24))
    running = RunningServer(ServerProcess(["--model", str(path), "--parallel", str(SLOTS), "--no-draft"]))
    yield running
    running.close()


def body(path: str, stream: bool) -> str:
    return json.dumps(ENDLESS[path] | {"stream": stream})


def last_words(deep: RunningServer, path: str, stream: bool) -> str:
    """The last thing that is said of a call, whatever the form: an event, a line, or the whole body."""
    answer = deep.http.post(path, content=body(path, stream), headers={"Content-Type": "application/json"})
    lines = [line for line in answer.text.splitlines() if line and not line.startswith((":", "data: [DONE]"))]
    return lines[-1].removeprefix("data: ")


@pytest.mark.slow
def test_an_engine_that_dies_ends_each_call_once_and_in_its_own_form(deep: RunningServer) -> None:
    with ThreadPoolExecutor(len(CALLS)) as threads:
        calls = [threads.submit(last_words, deep, *call) for call in CALLS]
        deep.wait_until(lambda state: state["active"] == SLOTS and state["queued"] == len(CALLS) - SLOTS)
        deep.engine.send_signal(signal.SIGKILL)
        said = {call: json.loads(one.result(timeout=120)) for call, one in zip(CALLS, calls, strict=True)}
    for (path, stream), found in said.items():
        error = found.get("response", found)["error"]
        sentence = error if isinstance(error, str) else error["message"]
        assert "engine" in sentence, (path, stream, found)
    state = deep.wait_until(lambda state: state["phase"] == "ready")
    assert (state["active"], state["queued"]) == (0, 0)
    assert deep.chat(model="deep", max_tokens=1).choices[0].finish_reason == "length"


@pytest.mark.slow
def test_the_slots_of_clients_that_go_are_free_at_once(deep: RunningServer) -> None:
    address = urlsplit(deep.url)
    for path, stream in CALLS:
        sent = body(path, stream).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {deep.headers['Authorization']}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(head.encode() + sent)
            deep.wait_until(lambda state: state["active"] == 1)
            if stream:
                assert client.recv(1)
        deep.wait_until(lambda state: state["active"] == 0 and state["queued"] == 0)
