"""A server that streams a given text at a given rate, and figures of its speed: the window is measured, not a model."""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from core.values.messages import Snapshot

STATE = {"phase": "ready", "progress": 1.0, "model": "source", "n_ctx": 100_000, "n_params": 1_000_000}


class TokenHandler(BaseHTTPRequestHandler):
    """Streams ``tokens`` at ``rate`` a second to every chat request, and figures ten times a second."""

    tokens: tuple[str, ...] = ()
    rate = 1_000.0

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/slipstream/events":
            self._begin()
            for at in itertools.count():
                time.sleep(0.1)
                rate = 400.0 + 40.0 * math.sin(at / 3)
                snapshot = asdict(Snapshot(is_idle=False, decode_rate=rate, bytes_per_second=rate * 6e7, peak=4e10))
                self._event({**STATE, "snapshot": snapshot, "requests": []})
        answers: dict[str, dict[str, Any]] = {"/slipstream/state": STATE, "/v1/models": {"data": [{"id": "source"}]}}
        self._answer(answers.get(self.path, {}))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/chat/completions"):
            self.send_error(404)
            return
        self._begin()
        began = time.perf_counter()
        for number, token in enumerate(self.tokens):
            early = began + number / self.rate - time.perf_counter()
            if early > 0:
                time.sleep(early)
            self._event({"choices": [{"index": 0, "delta": {"content": token}, "finish_reason": None}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def _event(self, body: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")

    def _answer(self, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def serve() -> None:
    """Serve the tokens that come as JSON on stdin; print the port."""
    wanted = json.loads(sys.stdin.readline())
    TokenHandler.tokens, TokenHandler.rate = tuple(wanted["tokens"]), wanted["rate"]
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenHandler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


# The bench starts this module as a process of its own, so that the two do not share Python's lock.
if __name__ == "__main__" and not sys.stdin.isatty():
    serve()
