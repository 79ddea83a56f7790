"""What is seen of requests that pass through: who runs, how many tokens came, and what that adds up to."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from app.server.calls.engine_bridge import MAX_REQUESTS
from app.server.calls.generation import new_id
from app.server.calls.model_host import LEAVING
from app.server.calls.request_totals import RequestTotals
from app.server.http.errors import ApiError, refuse
from app.server.http.keys import caller_id
from app.server.remotes.store import RemoteModel
from core.values.messages import Ended, FinishReason, Receipt
from core.values.request import Lane

# The protocols' names for the numbers of tokens.
_PROMPT = ("prompt_tokens", "input_tokens")
_GENERATED = ("completion_tokens", "output_tokens")
# The types of the last event of a stream, in the protocols that have types.
_LAST = frozenset(["error", "message_stop", "response.completed", "response.failed", "response.incomplete"])
_MOST_USED = 100  # names are the clients', who could make up any number


@dataclass(slots=True, eq=False)
class RemoteRequest:
    """A request that a remote answers. Times are on ``time.monotonic``; tokens are chunks until the remote says more.

    ``body`` is as it came, but for the fields that are ours. ``has_slot`` is True once the remote began its answer,
    ``is_complete`` once a stream said that it is over.
    """

    to: RemoteModel
    lane: Lane = Lane.STANDARD
    body: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: new_id("remote"))
    made_by: str | None = field(default_factory=caller_id.get)
    since: float = field(default_factory=time.monotonic)
    has_slot: bool = False
    is_complete: bool = False
    decoding_since: float | None = None
    last_token: float = 0.0
    n_prompt: int = 0
    n_cached: int = 0
    n_tokens: int = 0
    n_reasoning: int = 0  # of these tokens, where the remote says it
    ended_by: ApiError | None = None
    work: asyncio.Future[Any] | None = None

    @property
    def streams(self) -> bool:
        """Whether the reply comes in pieces."""
        return self.body.get("stream") is True

    def encoded(self, model: str) -> bytes:
        """Return the body for this name of the model."""
        return json.dumps(self.body | {"model": model}, separators=(",", ":")).encode()

    def end(self, error: ApiError) -> None:
        """End it early; its client is told this."""
        self.ended_by = error
        if self.work is not None:
            self.work.cancel()

    def see_line(self, line: bytes) -> None:
        """Count one line of an event stream."""
        if line.startswith(b"data:"):
            text = line[5:].strip()
            self.is_complete = self.is_complete or text == b"[DONE]"
            self.see_json(text, is_chunk=True)

    def see_json(self, text: bytes, *, is_chunk: bool = False) -> bool:
        """Count one chunk of a stream, or take the figures of a whole reply; False for what is no JSON."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return False
        if not isinstance(data, dict):
            return True
        self.is_complete = self.is_complete or (
            is_chunk and _is_last(data, has_one_choice=self.body.get("n") in (None, 1))
        )
        if is_chunk and _has_text(data):
            self.last_token = time.monotonic()
            self.decoding_since = self.decoding_since or self.last_token
            self.n_tokens += 1
        for one in (data, data.get("response"), data.get("message")):
            if isinstance(one, dict) and isinstance(one.get("usage"), dict):
                self._take(one["usage"])
        return True

    def _take(self, usage: dict[str, Any]) -> None:
        self.n_prompt = max(_first(usage, _PROMPT), self.n_prompt)
        # Anthropic's first event says 1 token, long before the last one says how many there were.
        self.n_tokens = max(_first(usage, _GENERATED), self.n_tokens)
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        if isinstance(details, dict):
            self.n_cached = max(_first(details, ("cached_tokens",)), self.n_cached)
        details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
        if isinstance(details, dict):
            self.n_reasoning = max(_first(details, ("reasoning_tokens",)), self.n_reasoning)

    @property
    def receipt(self) -> Receipt:
        """What it measured, as far as that can be seen from here."""
        began = self.decoding_since
        return Receipt(
            n_prompt=self.n_prompt,
            n_cached=self.n_cached,
            n_generated=self.n_tokens,
            ttft=began - self.since if began is not None else 0.0,
            decode=self.last_token - began if began is not None else 0.0,
            total=time.monotonic() - self.since,
        )


class RemoteFigures:
    """The requests that run at remotes, and the totals of each remote."""

    def __init__(self) -> None:
        self.live: dict[str, RemoteRequest] = {}
        self.totals: defaultdict[str, RequestTotals] = defaultdict(RequestTotals)
        self.n_fallbacks: defaultdict[str, int] = defaultdict(int)
        # When each model was asked last, in seconds since 1970, the latest at the end.
        self.used: dict[str, float] = {}

    def open(self, request: RemoteRequest) -> RemoteRequest:
        """Add a request, and return it; raises 503 where too many wait."""
        if len(self.live) >= MAX_REQUESTS:
            raise refuse(503, f"{len(self.live)} requests wait for remotes already: try later.", code="queue_full")
        self.live[request.id] = request
        self.used.pop(request.to.name, None)
        self.used[request.to.name] = time.time()
        if len(self.used) > _MOST_USED:
            del self.used[next(iter(self.used))]
        return request

    def end_all(self) -> None:
        """End every request: the server is leaving."""
        for request in self.live.values():
            request.end(refuse(503, LEAVING, code="shutting_down"))

    def close(self, request: RemoteRequest, reason: FinishReason) -> None:
        """It is over."""
        if self.live.pop(request.id, None) is not None:
            self.totals[request.to.remote.name].ended(Ended(request.id, reason, receipt=request.receipt))


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> int:
    found = next((fields[name] for name in names if isinstance(fields.get(name), int)), 0)
    return max(int(found), 0)


def _is_last(chunk: dict[str, Any], *, has_one_choice: bool) -> bool:
    """Return whether a chunk says why the reply has ended; llama-server's own ends with ``stop``."""
    choices = chunk.get("choices") if has_one_choice else None  # of several, one ends before the others
    ends = [one.get("finish_reason") for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
    return any(ends) or bool(chunk.get("error")) or chunk.get("stop") is True or str(chunk.get("type")) in _LAST


def _has_text(chunk: dict[str, Any]) -> bool:
    """Return whether a chunk brings a piece of the reply: text, thoughts or the arguments of a call."""
    kind = str(chunk.get("type", ""))
    if kind.endswith("delta"):  # Anthropic's and those of responses
        return kind != "message_delta"
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return bool(chunk.get("content"))  # llama-server's own
    return any(_piece(choice) for choice in choices if isinstance(choice, dict))


def _piece(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls"))
