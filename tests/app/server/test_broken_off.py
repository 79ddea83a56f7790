"""Replies that are broken off on each route: the engine dies, or the client goes, while it waits or while it reads."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.server.http.errors import is_llama_cpp, is_ollama
from tests.app.server.conftest import RunningServer
from tests.support.waiting import until
from tools.model_factory import gguf_factory

USER = [{"role": "user", "content": "Tell me a story about a fox."}]
LONG = {"model": "deep", "ignore_eos": True}
STORY = {"num_predict": 900, "temperature": 0}  # the likeliest story is long
# Of each route a body whose reply does not end by itself while a test runs.
ENDLESS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": USER, **LONG},
    "/v1/completions": {"prompt": "Once", "max_tokens": 900, **LONG},
    "/v1/responses": {"input": "Tell me a story.", "store": False, **LONG},
    "/v1/messages": {"messages": USER, "max_tokens": 900, "model": "deep", "temperature": 0},
    "/completion": {"prompt": "Once", **LONG},
    "/infill": {"input_prefix": "a", "input_suffix": "b", **LONG},
    "/api/chat": {"model": "deep", "messages": USER, "options": STORY},
    "/api/v1/chat": {"input": "Tell me a story.", "store": False, **LONG},
    "/api/generate": {"model": "deep", "prompt": USER[0]["content"], "options": STORY},
    "/api/v0/chat/completions": {"messages": USER, **LONG},
    "/api/v0/completions": {"prompt": "Once", "max_tokens": 900, **LONG},
}
# Of each route that writes nothing a body that takes seconds.
TEXTS = ["a fox and a boat " * 60] * 200
VECTORS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"model": "deep", "input": TEXTS},
    "/api/v0/embeddings": {"model": "deep", "input": TEXTS},
    "/embedding": {"model": "deep", "content": TEXTS},
    "/api/embed": {"model": "deep", "input": TEXTS},
    "/api/embeddings": {"model": "deep", "prompt": TEXTS[0]},
}
SCORES = ("/v1/rerank", "/v1/reranking", "/rerank")
CALLS = [(path, stream) for path in ENDLESS for stream in (True, False)]
SLOTS = len(ENDLESS) + 2  # fewer than calls: the others wait


@pytest.fixture(scope="module")
def deep(home: object) -> Iterator[RunningServer]:
    """A server whose model is so slow that its replies last."""
    path = gguf_factory.cached_file("deep-24.gguf", lambda path: gguf_factory.deep_ember(path, 24))
    with RunningServer("--model", str(path), "--parallel", str(SLOTS), "--no-draft") as running:
        yield running


def body(path: str, stream: bool) -> str:
    return json.dumps(ENDLESS[path] | {"stream": stream})


def listed(running: RunningServer) -> list[dict[str, Any]]:
    return running.http.get("/slipstream/requests").json()["data"]


def deaths_of(running: RunningServer) -> int | None:
    """How often the engine died in a row; None while it does not answer."""
    health = running.http.get("/health").json()
    return health["deaths"] if health["status"] == "ok" else None


@contextmanager
def sent(running: RunningServer, path: str, text: str) -> Iterator[socket.socket]:
    """A client that sends a request, and goes when the block ends."""
    address = urlsplit(running.url)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {running.headers['Authorization']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text.encode())}\r\n\r\n"
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall(head.encode() + text.encode())
        yield client


def has_text(found: Any) -> bool:
    """Whether an event or a line has some of the reply, wherever its protocol puts it."""
    if isinstance(found, list):
        return any(map(has_text, found))
    if not isinstance(found, dict):
        return False
    return any(
        has_text(value) or (name in ("content", "text", "delta", "response") and isinstance(value, str) and value != "")
        for name, value in found.items()
    )


def data_of(line: str) -> Any:
    """The object in a line of a stream; None where it has none."""
    text = line.removeprefix("data: ")
    return json.loads(text) if text.startswith("{") else None


def first_text(lines: Iterator[str]) -> str:
    """Read a stream up to the first text of its reply."""
    return next(line for line in lines if has_text(data_of(line)))


def sentence_of_end(path: str, lines: list[str]) -> str:
    """What a stream says of its failure, as its last event or line and in the form of its route."""
    said = [line for line in lines if line and not line.startswith(":")]
    if path == "/api/v1/chat":
        *said, name, data = said
        assert (name, data_of(data)["result"]["response_id"]) == ("event: chat.end", None)
    names, error = [line for line in said[-2:-1] if line.startswith("event: ")], data_of(said[-1])
    if path == "/v1/responses":
        assert (names, error["type"]) == (["event: response.failed"], "response.failed")
        assert (error["response"]["status"], error["response"]["error"]["code"]) == ("failed", "engine_died")
        assert error["response"]["output"][0]["content"][0]["text"], "what came before"
        return error["response"]["error"]["message"]
    assert names == (["event: error"] if path in ("/v1/messages", "/api/v1/chat") else []), said[-3:]
    return sentence_of(path, error)


def sentence_of(path: str, body: dict[str, Any]) -> str:
    """What an error says that has the form of its route."""
    error = body["error"]
    if is_ollama(path):
        assert list(body) == ["error"]
        return error
    if is_llama_cpp(path):
        assert (error["type"], error["code"]) == ("unavailable_error", 503)
        return error["message"]
    kinds = {"/v1/messages": "overloaded_error", "/api/v1/chat": "internal_error"}
    assert (error["type"], error["code"]) == (kinds.get(path, "server_error"), "engine_died")
    assert path not in kinds or body.get("type", "error") == "error"
    return error["message"]


def test_an_engine_that_dies_ends_each_call_once_and_in_the_form_of_its_route(
    deep: RunningServer, reranker: RunningServer
) -> None:
    documents = {"query": "fox", "documents": ["a fox and a boat " * 20] * 200}
    with ThreadPoolExecutor(len(CALLS) + len(VECTORS) + len(SCORES)) as threads, ExitStack() as stack:
        streams = {}
        for path in ENDLESS:
            asked = deep.http.stream("POST", path, json=ENDLESS[path] | {"stream": True})
            streams[path] = stack.enter_context(asked).iter_lines()
            first_text(streams[path])
        wholes = {
            path: threads.submit(deep.http.post, path, json=ENDLESS[path] | {"stream": False}) for path in ENDLESS
        }
        until(lambda: len(listed(deep)) == len(CALLS))
        for server in (deep, reranker):
            server.engine.suspend()  # so that nothing ends before
        wholes |= {path: threads.submit(deep.http.post, path, json=asked) for path, asked in VECTORS.items()}
        wholes |= {path: threads.submit(reranker.http.post, path, json=documents) for path in SCORES}
        until(lambda: len(listed(deep)) == len(CALLS) + len(VECTORS) and len(listed(reranker)) == len(SCORES))
        for server in (deep, reranker):
            server.engine.kill()
        for server in (deep, reranker):
            until(lambda server=server: deaths_of(server) == 1)
            server.engine.kill()  # what had not begun at the first death waits, and is ended by a second one
        for path, lines in streams.items():
            assert "The engine" in sentence_of_end(path, list(lines)), path
        for path, whole in wholes.items():
            answer = whole.result(timeout=60)
            if path not in ENDLESS and answer.status_code == 200:
                continue  # the second engine was quick
            assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "true"), path
            assert "The engine" in sentence_of(path, answer.json()), path
    for server in (deep, reranker):
        until(lambda server=server: deaths_of(server) == 2)
        assert listed(server) == []
    for path in ENDLESS:
        with deep.http.stream("POST", path, json=ENDLESS[path] | {"stream": True}) as answer:
            assert first_text(answer.iter_lines()), path
    assert deep.http.post("/v1/embeddings", json={"model": "deep", "input": "fox"}).status_code == 200
    assert reranker.http.post("/v1/rerank", json={"query": "fox", "documents": ["a"]}).status_code == 200
    deep.wait_until(lambda state: state["active"] == state["queued"] == 0)
    for server in (deep, reranker):  # loaded anew, nothing is left out and the deaths are forgotten
        server.http.post("/slipstream/load", json={"model": server.state["model"]})
        until(lambda server=server: deaths_of(server) == 0)
        assert server.state["left_out"] == []


@pytest.mark.slow
def test_the_slots_of_clients_that_go_are_free_at_once(deep: RunningServer) -> None:
    for path, stream in CALLS:
        with sent(deep, path, body(path, stream)) as client:
            deep.wait_until(lambda state: state["active"] == 1)
            if stream:
                assert client.recv(1)
        deep.wait_until(lambda state: state["active"] == 0 and state["queued"] == 0)


@pytest.mark.slow
def test_vectors_that_nobody_waits_for_are_dropped(deep: RunningServer) -> None:
    for path, asked in VECTORS.items():
        with sent(deep, path, json.dumps(asked)):
            until(lambda: len(listed(deep)) == 1)
        until(lambda: listed(deep) == [])
    began = time.monotonic()
    assert deep.http.post("/v1/embeddings", json={"model": "deep", "input": "fox"}).status_code == 200
    assert time.monotonic() - began < 10, "the engine still worked for those that had gone"
