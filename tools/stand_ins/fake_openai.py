"""A small server with the real server's HTTP API on a real socket; a test chooses every answer."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TIMINGS = {
    "ttft_ms": 38.2, "prefill_ms": 30.0, "decode_ms": 310.0, "total_ms": 348.2, "queued_ms": 1.0, "prefill_tokens": 52,
    "prefill_per_second": 1733.0, "decode_tokens": 128, "decode_per_second": 412.0, "cached_tokens": 48,
    "drafted_tokens": 80, "accepted_tokens": 62, "bytes_per_token": 5_900_000, "peak_share": 0.31, "speedup": 1.71,
    "seed": 7,
}  # fmt: skip
# Replaces these fields in a reply without drafts.
PLAIN = {"drafted_tokens": 0, "accepted_tokens": 0, "speedup": 1.0, "decode_per_second": 241.0}


class FakeServer:
    """Answers each chat request with ``pieces``, ``delay`` seconds apart; other fields make it misbehave."""

    def __init__(self, port: int = 0, api_key: str | None = None) -> None:
        self.api_key = api_key
        self.pieces: list[str] = ["Hello", " there", "."]
        self.reads: list[dict[str, int]] = []  # how much of the prompt was read, sent first
        self.thoughts: list[str] = []  # sent before the pieces
        self.tokens_each: int | None = None  # tokens of each piece, if the pieces report that
        self.timings: dict[str, Any] = TIMINGS
        self.drafted: list[list[list[int]]] = []  # the drafted spans of each piece, for clients that ask for them
        # The tool calls of each chat, as (name, arguments). Each chat uses up one entry.
        self.calls: list[list[tuple[str, str]]] = []
        self.delay = 0.0
        self.steps: threading.Semaphore | None = None  # each stage and piece waits until the test lets it go
        self.takes_turns = False  # a chat waits until the one before it has ended
        self.holds_one = False  # a model that is asked takes the place of the one before
        self.turn = threading.Lock()
        self.error: tuple[int, Any] | None = None  # status and body of every chat request
        self.error_in_stream: str | None = None  # sent after the pieces, instead of the end
        self.cut_after: int | None = None  # pieces until the connection is closed without an end
        self.finish_reason = "stop"
        self.phase, self.progress, self.problem = "ready", 1.0, None
        self.model: str | None = "ember-q8_0"
        self.models = [
            {"id": "ember-q8_0", "object": "model", "created": 0, "owned_by": "slipstream"},
            {"id": "ember-draft-q8_0", "object": "model", "created": 0, "owned_by": "slipstream"},
        ]
        self.spark: str | None = "ember-draft-q8_0"
        self.why_no_spark = ""
        self.left_out: list[str] = []
        self.remotes: list[str] = []
        self.stages: list[dict[str, Any]] = []  # the progress of a deep reply, sent before the pieces
        self.deep: dict[str, Any] | None = None  # beside the timings
        self.n_active = 0
        self.n_ctx_train = 1024
        self.snapshot: dict[str, Any] | None = None
        self.last_reply: dict[str, Any] | None = None
        self.requests: list[dict[str, Any]] = []
        self.embedded: list[str] = []  # the texts that were asked for as vectors
        self.loads: list[str] = []
        self.gone = threading.Event()  # a client left in the middle of a stream
        self._http = _Server(port, self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def state(self) -> dict[str, Any]:
        return {
            "phase": self.phase, "progress": self.progress, "problem": self.problem, "model": self.model,
            "n_ctx": 1024, "n_ctx_train": self.n_ctx_train, "n_slots": 4, "architecture": "llama",
            "n_params": 11_300_000,
            "description": "llama ?B Q8_0", "n_threads": 2, "devices": ["CPU"], "is_toy": True,
            "active": self.n_active, "queued": 0, "snapshot": self.snapshot, "last_reply": self.last_reply,
            "spark": self.spark, "why_no_spark": self.why_no_spark,
            "left_out": self.left_out, "notices": self.left_out, "remotes": self.remotes,
            "models": [{"model": name, "phase": "ready", "active": self.n_active} for name in set(self._in_memory)],
        }  # fmt: skip

    @property
    def _in_memory(self) -> list[str]:
        asked = [one["model"] for one in self.requests if one.get("model")]
        return asked[-1:] if self.holds_one else asked

    def chunks(
        self, speed: str | None = None, tells_drafted: bool = False, drafts: bool = True
    ) -> Iterator[dict[str, Any]]:
        marks = {"speed": speed, "answered_by": self.spark} if speed == "spark" else {}
        yield _chunk({"role": "assistant", "content": ""}) | marks
        for stage in self.stages if speed == "deep" else ():
            self._wait()
            yield _chunk({}) | {"progress": stage}
        for read in self.reads:
            self._wait()
            yield _chunk({}) | {"prompt_progress": read}
        for thought in self.thoughts:
            self._wait()
            yield _chunk({"reasoning_content": thought})
        for place, piece in enumerate(self.pieces, 1):
            self._wait()
            count = {"timings": {"decode_tokens": place * self.tokens_each}} if self.tokens_each else {}
            spans = {"drafted": self.drafted[place - 1]} if tells_drafted and place <= len(self.drafted) else {}
            yield _chunk({"content": piece}) | marks | count | spans
        if self.error_in_stream:
            yield {"error": {"message": self.error_in_stream, "type": "server_error", "param": None, "code": None}}
            return
        if self.calls:
            for place, (name, arguments) in enumerate(self.calls.pop(0)):
                half = len(arguments) // 2
                first = {"name": name, "arguments": arguments[:half]}
                yield _chunk({"tool_calls": [{"index": place, "id": f"c{place}", "function": first}]})
                yield _chunk({"tool_calls": [{"index": place, "function": {"arguments": arguments[half:]}}]})
            yield {**_chunk({}, "tool_calls"), **marks, "timings": TIMINGS}
            return
        deep = {"deep": self.deep} if speed == "deep" and self.deep else {}
        yield {**_chunk({}, self.finish_reason), **marks, "timings": self.timings | ({} if drafts else PLAIN) | deep}

    def _wait(self) -> None:
        if self.steps is not None:
            self.steps.acquire()
        elif self.delay:
            time.sleep(self.delay)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, fake: FakeServer) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.fake = fake

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that go away: windows do when they close."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "ember-q8_0", "choices": [choice]}


def _vector(text: str) -> list[float]:
    """Return a vector in which a fox is near a "vulpine" one, whatever the words."""
    return [float("fox" in text or "vulpine" in text), 0.1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> FakeServer:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self._is_refused():
            return
        answers = {"/v1/models": {"object": "list", "data": self.fake.models}, "/slipstream/state": self.fake.state}
        self._answer(200, answers[self.path]) if self.path in answers else self._answer(404, {"detail": "no"})

    def do_DELETE(self) -> None:
        if self._is_refused():
            return
        was_loading = self.path == "/slipstream/load" and self.fake.phase == "loading"
        self.fake.phase = "empty" if was_loading else self.fake.phase
        self._answer(200, {"model": self.fake.model, "cancelled": was_loading})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_refused():
            return
        if self.path.startswith("/slipstream/library/"):  # as a server does that lacks the route
            self._answer(404, {"error": {"message": "No such route.", "code": "not_found"}})
            return
        if self.path == "/slipstream/load":
            self.fake.loads.append(body["model"])
            self.fake.model = body["model"]
            self._answer(202, self.fake.state)
            return
        if self.path == "/tokenize":
            self._answer(200, {"tokens": list(range(len(body["content"].split())))})
            return
        if self.path == "/v1/embeddings":
            self.fake.embedded += body["input"]
            data = [{"index": at, "embedding": _vector(text)} for at, text in enumerate(body["input"])]
            self._answer(200, {"object": "list", "data": data})
            return
        self.fake.requests.append(body)
        if self.fake.error is not None:
            self._answer(*self.fake.error)
        elif self.fake.takes_turns:
            with self.fake.turn:
                self._stream(body)
        else:
            self._stream(body)

    def _is_refused(self) -> bool:
        if self.fake.api_key is None or self.headers.get("Authorization") == f"Bearer {self.fake.api_key}":
            return False
        self._answer(401, {"error": {"message": "The API key is wrong.", "type": "x", "param": None, "code": None}})
        return True

    def _answer(self, status: int, body: Any) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        tells_drafted, drafts = bool(body.get("drafted_spans")), body.get("speculation") is not False
        named = body.get("model")
        try:
            for number, chunk in enumerate(self.fake.chunks(body.get("speed"), tells_drafted, drafts)):
                if self.fake.cut_after is not None and number > self.fake.cut_after:
                    return
                if "model" in chunk:
                    chunk["model"] = named if named in [one["id"] for one in self.fake.models] else self.fake.model
                self._send(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n")
            self._send("data: [DONE]\n\n")
        except OSError:
            self.fake.gone.set()

    def _send(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


def main() -> None:
    """Behave like the real server's process: announce the address, serve, and end when stdin ends."""
    if os.environ.get("FAKE_DIES"):
        sys.exit(f"slipstream: {os.environ['FAKE_DIES']}")
    server = FakeServer(api_key=os.environ.get("SLIPSTREAM_API_KEY"))
    server.delay = float(os.environ.get("FAKE_DELAY", "0"))
    print(f"SLIPSTREAM READY {server.url}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
