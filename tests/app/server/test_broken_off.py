"""Replies that are broken off on each route: the engine dies, or the client goes, while it waits or while it reads."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.app.server.conftest import RunningServer
from tests.support.fork_server import ForkedServer
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
}
# Of each route that writes nothing a body that takes seconds.
TEXTS = ["a fox and a boat " * 60] * 200
VECTORS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"model": "deep", "input": TEXTS},
    "/embedding": {"model": "deep", "content": TEXTS},
    "/api/embed": {"model": "deep", "input": TEXTS},
}
CALLS = [(path, stream) for path in ENDLESS for stream in (True, False)]
SLOTS = 4  # fewer than calls: the others wait


@pytest.fixture(scope="module")
def deep(home: object) -> Iterator[RunningServer]:
    """A server whose model is so slow that its replies last."""
    path = gguf_factory.cached_file("deep-24.gguf", lambda path: gguf_factory.deep_ember(path, 24))
    running = RunningServer(ForkedServer(["--model", str(path), "--parallel", str(SLOTS), "--no-draft"]))
    yield running
    running.close()


def body(path: str, stream: bool) -> str:
    return json.dumps(ENDLESS[path] | {"stream": stream})


def listed(running: RunningServer) -> list[dict[str, Any]]:
    return running.http.get("/slipstream/requests").json()["data"]


@contextmanager
def sent(running: RunningServer, path: str, text: str) -> Iterator[socket.socket]:
    """A client that sends a request, and goes when the block ends."""
    address = urlsplit(running.url)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {running.headers['Authorization']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text.encode())}\r\n\r\n"
    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall(head.encode() + text.encode())
        yield client


def last_words(deep: RunningServer, path: str, stream: bool) -> str:
    """The last thing that is said of a call, whatever the form: an event, a line, or the whole body."""
    answer = deep.http.post(path, content=body(path, stream), headers={"Content-Type": "application/json"})
    ends = (":", "data: [DONE]", 'data: {"type":"chat.end"')  # what comes after the last word
    lines = [
        line for line in answer.text.splitlines() if line and not line.startswith(ends) and line != "event: chat.end"
    ]
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
    for path, stream in CALLS:
        with sent(deep, path, body(path, stream)) as client:
            deep.wait_until(lambda state: state["active"] == 1)
            if stream:
                assert client.recv(1)
        deep.wait_until(lambda state: state["active"] == 0 and state["queued"] == 0)


@pytest.mark.slow
def test_vectors_and_scores_end_with_the_engine_in_their_own_form(deep: RunningServer, reranker: RunningServer) -> None:
    documents = ["a fox and a boat " * 20] * 2_000
    calls = [(deep, path, asked) for path, asked in VECTORS.items()]
    calls += [(reranker, path, {"query": "fox", "documents": documents}) for path in ("/v1/rerank", "/rerank")]
    with ThreadPoolExecutor(len(calls)) as threads:
        answers = [threads.submit(one.http.post, path, json=asked) for one, path, asked in calls]
        for one, n_calls in ((reranker, 2), (deep, len(VECTORS))):
            until(lambda one=one, n_calls=n_calls: len(listed(one)) == n_calls)
            one.engine.send_signal(signal.SIGKILL)
        found = [answer.result(timeout=60) for answer in answers]
    for (one, path, _), answer in zip(calls, found, strict=True):
        error = answer.json()["error"]
        assert answer.status_code == 503, path
        assert "engine" in (error if path.startswith("/api/") else error["message"]), (path, answer.text)
        assert listed(one) == []
    for one, path, asked in ((deep, "/v1/embeddings", "fox"), (reranker, "/v1/rerank", None)):
        one.wait_until(lambda state: state["phase"] == "ready")
        again = {"model": "deep", "input": asked} if asked else {"query": "fox", "documents": ["a"]}
        assert one.http.post(path, json=again).status_code == 200


@pytest.mark.slow
def test_vectors_that_nobody_waits_for_are_dropped(deep: RunningServer) -> None:
    for path, asked in VECTORS.items():
        with sent(deep, path, json.dumps(asked)):
            until(lambda: len(listed(deep)) == 1)
        until(lambda: listed(deep) == [])
    began = time.monotonic()
    assert deep.http.post("/v1/embeddings", json={"model": "deep", "input": "fox"}).status_code == 200
    assert time.monotonic() - began < 10, "the engine still worked for those that had gone"


@pytest.mark.slow
def test_a_batch_goes_on_after_the_engine_died(deep: RunningServer) -> None:
    asked = {"messages": USER, "max_tokens": 60, "ignore_eos": True, "model": "deep"}
    line = {"method": "POST", "url": "/v1/chat/completions", "body": asked}
    lines = [json.dumps({"custom_id": str(number), **line}) for number in range(8)]
    file = deep.client.files.create(file=("requests.jsonl", "\n".join(lines).encode()), purpose="batch")
    batch = deep.client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    deep.wait_until(lambda state: state["active"] > 0)
    deep.engine.send_signal(signal.SIGKILL)
    until(lambda: deep.client.batches.retrieve(batch.id).status == "completed", 90)
    done = deep.client.batches.retrieve(batch.id)
    assert (done.request_counts.completed, done.request_counts.failed) == (8, 0)
    state = deep.wait_until(lambda state: state["active"] == 0)
    assert state["queued"] == 0
