"""Every protocol of the endpoint as a client sees it: a request's path and body, and the form of its stream."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]
_TIMEOUT = 120.0  # seconds


@dataclass(frozen=True)
class Protocol:
    """How to request a text: ``fields`` makes the body from a prompt and a number of tokens; ``text`` reads the answer.

    ``news`` reads the text from an event of a stream, ``is_end`` says whether the event is the last one.
    """

    name: str
    path: str
    fields: Callable[[str, int], Json]
    text: Callable[[Json], str]
    news: Callable[[Json], str]
    is_end: Callable[[Json], bool]


def as_turn(prompt: str) -> str:
    """Return the prompt as Ember's template renders it, for routes that take text."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def _messages(prompt: str) -> list[Json]:
    return [{"role": "user", "content": prompt}]


def _chat_news(event: Json) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def _finished(event: Json) -> bool:
    return any(choice["finish_reason"] for choice in event["choices"])


def _output_text(response: Json) -> str:
    return "".join(part["text"] for item in response["output"] for part in item["content"])


PROTOCOLS = (
    Protocol(
        "chat completions",
        "/v1/chat/completions",
        lambda prompt, n: {"messages": _messages(prompt), "max_tokens": n, "temperature": 0},
        lambda answer: str(answer["choices"][0]["message"]["content"]),
        _chat_news,
        _finished,
    ),
    Protocol(
        "responses",
        "/v1/responses",
        lambda prompt, n: {"input": prompt, "max_output_tokens": n, "temperature": 0, "store": False},
        _output_text,
        lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
        lambda event: event["type"] in ("response.completed", "response.incomplete"),
    ),
    Protocol(
        "messages",
        "/v1/messages",
        lambda prompt, n: {"messages": _messages(prompt), "max_tokens": n, "temperature": 0},
        lambda answer: "".join(block["text"] for block in answer["content"]),
        lambda event: event["delta"]["text"] if event["type"] == "content_block_delta" else "",
        lambda event: event["type"] == "message_stop",
    ),
    Protocol(
        "completions",
        "/v1/completions",
        lambda prompt, n: {"prompt": as_turn(prompt), "max_tokens": n, "temperature": 0},
        lambda answer: str(answer["choices"][0]["text"]),
        lambda event: "".join(choice["text"] for choice in event["choices"]),
        _finished,
    ),
    Protocol(
        "llama.cpp",
        "/completion",
        lambda prompt, n: {"prompt": as_turn(prompt), "n_predict": n, "temperature": 0},
        lambda answer: str(answer["content"]),
        lambda event: str(event["content"]),
        lambda event: bool(event["stop"]),
    ),
    Protocol(
        "ollama",
        "/api/chat",
        lambda prompt, n: {
            "model": "any",
            "messages": _messages(prompt),
            "options": {"num_predict": n, "temperature": 0},
        },
        lambda answer: str(answer["message"]["content"]),
        lambda event: str(event["message"]["content"]),
        lambda event: bool(event["done"]),
    ),
)


@dataclass
class Stream:
    """The result of one stream: its text, and how many of its events had text. ``faults`` says what was wrong."""

    text: str = ""
    n_chunks: int = 0
    ttft: float = 0.0  # seconds to the first event with text
    faults: list[str] = field(default_factory=list)


class ApiClient:
    """One connection to a server, kept alive."""

    def __init__(self, url: str, api_key: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_TIMEOUT)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}

    def connect(self) -> None:
        """Open the connection unless it is open, so that a measured request does not wait for that."""
        if self._connection.sock is None:
            self._connection.connect()

    def close(self) -> None:
        """Close the connection, which cancels its request."""
        self._connection.close()

    def get(self, path: str) -> Any:
        self._connection.request("GET", path, headers=self._headers)
        return json.loads(self._connection.getresponse().read())

    def post(self, path: str, body: Json) -> Json:
        """Return the answer to a request; raises RuntimeError if it is an error."""
        answer: Json = json.loads(self._open(path, body).read())
        return answer

    def ask(self, protocol: Protocol, prompt: str, n_tokens: int) -> str:
        """Return the text of a reply that is not streamed."""
        return protocol.text(self.post(protocol.path, protocol.fields(prompt, n_tokens) | {"stream": False}))

    def stream(self, protocol: Protocol, prompt: str, n_tokens: int) -> Stream:
        """Read a stream to its end."""
        found = Stream()
        body = protocol.fields(prompt, n_tokens) | {"stream": True}
        self.connect()
        began = time.perf_counter()
        n_ends = 0
        for event in _events(self._open(protocol.path, body)):
            if n_ends:
                found.faults.append("an event after the last one")
            if news := protocol.news(event):
                found.ttft = found.ttft or time.perf_counter() - began
                found.text += news
                found.n_chunks += 1
            n_ends += protocol.is_end(event)
        if n_ends != 1:
            found.faults.append(f"{n_ends} ends")
        return found

    def leave_stream(self, protocol: Protocol, prompt: str, n_tokens: int) -> None:
        """Begin a stream and close the connection in the middle of it."""
        answer = self._open(protocol.path, protocol.fields(prompt, n_tokens) | {"stream": True})
        next(_events(answer), None)
        self.close()

    def _open(self, path: str, body: Json) -> http.client.HTTPResponse:
        self._connection.request("POST", path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {answer.read()[:500]!r}")
        return answer


def _events(answer: http.client.HTTPResponse) -> Iterator[Json]:
    """Yield the objects of server-sent events, or of lines of JSON."""
    while line := answer.readline():
        if line.startswith((b"data: {", b"{")):
            yield json.loads(line.removeprefix(b"data: "))
