"""The event loop's side of the engine: events come from the supervisor's thread and go to the calls that wait.

One wake-up of the loop per message of the pipe, however many requests it speaks of; a call that lags finds all
that has come meanwhile at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Protocol

from app.server.calls.request_totals import RequestTotals
from app.server.http.errors import refuse
from app.server.http.keys import caller, caller_id
from core.values.messages import (
    AnyRequest,
    Bottleneck,
    Ended,
    EnginePhase,
    EngineState,
    Event,
    Failure,
    FailureKind,
    FinishReason,
    Receipt,
    RequestEvent,
    Snapshot,
    Started,
    Token,
)
from core.values.request import Embedded, Request

if TYPE_CHECKING:
    from core.process.supervisor import Supervisor

_log = logging.getLogger("slipstream.server")
MAX_REQUESTS = 2_048


class Channel:
    """The events of one call's requests, in order; ``streams`` False wakes the call only when all have ended."""

    __slots__ = ("_events", "_loop", "_streams", "_waiter", "first_id", "open_ids")

    def __init__(self, request_ids: Sequence[str], streams: bool) -> None:
        self.first_id = request_ids[0]  # by which the call is known
        self.open_ids = set(request_ids)
        self._streams = streams
        self._loop = asyncio.get_running_loop()  # to ask for it takes a system call
        self._events: list[RequestEvent] = []
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """True where nothing more will come."""
        return not self.open_ids and not self._events

    def push(self, event: RequestEvent) -> None:
        """Add an event; wake the call."""
        self._events.append(event)
        if type(event) is Ended:
            self.open_ids.discard(event.request_id)
        if self._waiter is not None and (self._streams or not self.open_ids):
            if not self._waiter.done():
                self._waiter.set_result(None)
            self._waiter = None

    async def take(self) -> list[RequestEvent]:
        """Return the events since the last call, at least one; with ``streams`` False, all there will be."""
        if not self._events or not (self._streams or not self.open_ids):
            self._waiter = self._loop.create_future()
            await self._waiter
        events, self._events = self._events, []
        return events


class RequestObserver(Protocol):
    """Keeps what requests measured."""

    def opened(self, request: Request) -> None:
        """A request was submitted."""

    def ended(self, event: Ended) -> None:
        """A request is over."""

    def closed(self, request_id: str) -> None:
        """Nobody hears of a request any more."""


@dataclass(slots=True)
class AskedRequest:
    """A request that has not ended, of ``since`` on ``time.monotonic``.

    ``who`` is the name of the key that it came with, ``made_by`` the key's id. One that ``is_cancelled`` never counts
    as answered: its end may have been on the way here already.
    """

    request: AnyRequest
    channel: Channel
    since: float = field(default_factory=time.monotonic)
    who: str | None = field(default_factory=caller.get)
    made_by: str | None = field(default_factory=caller_id.get)
    is_cancelled: bool = False

    def end(self, event: Ended) -> Ended:
        """Return its end, which is that of a cancelled request where it was cancelled and has not failed."""
        if self.is_cancelled and event.reason is not FinishReason.FAILED:
            return replace(event, reason=FinishReason.CANCELLED)
        return event


@dataclass(slots=True)
class LiveRequest(AskedRequest):
    """A request that generates. ``slot`` is the number of its slot, None while it waits for one.

    It has generated tokens from ``decoding_since`` on, on ``time.monotonic``.
    """

    request: Request
    slot: int | None = None
    n_prompt: int = 0
    n_cached: int = 0
    n_tokens: int = 0
    decoding_since: float | None = None


class EngineBridge:
    """Carries events from the supervisor's thread to channels on the event loop."""

    def __init__(self, totals: RequestTotals | None = None) -> None:
        """``totals`` are those of all engines of a server."""
        self.state = EngineState(EnginePhase.EMPTY)
        self.snapshot: Snapshot | None = None
        # The figures of the last reply, for gauges that are looked at after it: most replies are over before that.
        self.last_reply: Snapshot | None = None
        self._inbox: deque[tuple[Event, ...]] = deque()
        self._is_scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Supervisor | None = None
        self._live: dict[str, LiveRequest] = {}
        # Requests that generate nothing, by their id.
        self._asked: dict[str, AskedRequest] = {}
        self._n_running = 0
        self._on_state: Callable[[EngineState], None] = lambda _state: None
        self.totals = totals or RequestTotals()
        self.observers: list[RequestObserver] = [self.totals]

    # On the supervisor's thread

    def deliver(self, events: tuple[Event, ...]) -> None:
        """Take one message; this is the supervisor's listener."""
        self._inbox.append(events)
        loop = self._loop
        if loop is None or self._is_scheduled:
            return
        self._is_scheduled = True
        try:
            loop.call_soon_threadsafe(self._dispatch)
        except RuntimeError:
            # The loop was closed: the server is leaving, nobody waits any more.
            self._loop = None

    # On the event loop

    def attach(self, engine: Supervisor, on_state: Callable[[EngineState], None]) -> None:
        """Start to dispatch on the running loop, beginning with what has come so far."""
        self._engine, self._on_state = engine, on_state
        self._loop = asyncio.get_running_loop()
        self._dispatch()

    @property
    def n_active(self) -> int:
        """How many requests have a slot."""
        return self._n_running

    @property
    def n_queued(self) -> int:
        """How many requests wait for a slot."""
        return len(self._live) - self._n_running

    @property
    def live(self) -> list[LiveRequest]:
        """The requests that generate and have not ended."""
        return list(self._live.values())

    @property
    def asked(self) -> list[AskedRequest]:
        """The requests that generate nothing and have not ended."""
        return list(self._asked.values())

    def open(self, requests: Sequence[AnyRequest], streams: bool) -> Channel:
        """Submit requests and return their channel; raises EngineUnavailable or 503 when too many wait."""
        n_live = len(self._live) + len(self._asked)
        if n_live + len(requests) > MAX_REQUESTS:
            raise refuse(503, f"{n_live} requests are waiting already: try again later.", code="queue_full")
        assert self._engine is not None
        channel = Channel([request.id for request in requests], streams)
        try:
            for request in requests:
                self._engine.submit(request)
                if isinstance(request, Request):
                    self._live[request.id] = LiveRequest(request, channel)
                    self._tell(methodcaller("opened", request))
                else:
                    self._asked[request.id] = AskedRequest(request, channel)
        except Exception:
            self.close(channel)
            raise
        return channel

    def close(self, channel: Channel) -> None:
        """Cancel what has not ended; the channel hears no more."""
        for request_id in channel.open_ids:
            self._asked.pop(request_id, None)
            if self._forget(request_id) is not None:
                self._tell(methodcaller("closed", request_id))
            if self._engine is not None:
                self._engine.cancel(request_id)
        channel.open_ids.clear()

    def cancel(self, request_id: str) -> None:
        """End one request early; its channel still hears of its end."""
        asked = self._live.get(request_id) or self._asked.get(request_id)
        if asked is not None:
            asked.is_cancelled = True
        if self._engine is not None:
            self._engine.cancel(request_id)

    def end_thoughts(self, request_id: str) -> None:
        """Let a request whose thoughts are bounded go on to its answer."""
        if self._engine is not None:
            self._engine.end_thoughts(request_id)

    def end_all(self, message: str) -> None:
        """End every request with a sentence: the server is leaving."""
        failure = Failure(FailureKind.SHUTDOWN, message)
        for request_id in [*self._live, *self._asked]:
            self.cancel(request_id)
            self._route(Ended(request_id, FinishReason.FAILED, failure=failure))

    def _dispatch(self) -> None:
        # Cleared first: a message that comes during the loop below is taken by it or wakes the loop again.
        self._is_scheduled = False
        while self._inbox:
            for event in self._inbox.popleft():
                if type(event) is EngineState:
                    if event.phase is not self.state.phase:
                        self.snapshot = self.last_reply = None
                    self.state = event
                    self._on_state(event)
                elif type(event) is Snapshot:
                    self.totals.stepped(self.snapshot or Snapshot(), event)
                    self.snapshot = event
                    if not event.is_idle:
                        self.last_reply = event
                else:
                    self._route(event)  # type: ignore[arg-type]  # type() narrows no union, and isinstance is slower

    def _route(self, event: RequestEvent) -> None:
        if type(event) is Ended and event.receipt.decode_rate > 0:
            # Also of a reply that nobody waits for any more: who stopped it looks at the gauges.
            self.last_reply = _of_reply(event.receipt, self.last_reply or Snapshot())
        live = self._live.get(event.request_id)
        if live is None:
            self._answer(event)
            return
        if type(event) is Token:
            live.n_tokens += event.n
            if live.decoding_since is None:
                live.decoding_since = time.monotonic()
        elif type(event) is Ended:
            event = live.end(event)
            self._forget(event.request_id)
            self._tell(methodcaller("ended", event))
        elif type(event) is Started and live.slot is None:
            live.slot, live.n_prompt, live.n_cached = event.slot, event.n_prompt, event.n_cached
            self._n_running += 1
        live.channel.push(event)

    def _tell(self, tell: Callable[[RequestObserver], object]) -> None:
        for observer in self.observers:
            try:
                tell(observer)
            except Exception:  # what is kept of a request must not cost its caller the end of it
                _log.exception("%s failed", type(observer).__name__)

    def _answer(self, event: RequestEvent) -> None:
        """Pass on an event of a request that generates nothing; one that nobody waits for is dropped."""
        asked = self._asked.get(event.request_id)
        if type(event) is Ended:
            event = asked.end(event) if asked is not None else event
            self._asked.pop(event.request_id, None)
        elif type(event) is Embedded:
            self.totals.n_embedded += sum(event.n_tokens)
        if asked is not None:
            asked.channel.push(event)

    def _forget(self, request_id: str) -> LiveRequest | None:
        live = self._live.pop(request_id, None)
        if live is not None and live.slot is not None:
            self._n_running -= 1
        return live


def _of_reply(receipt: Receipt, while_running: Snapshot) -> Snapshot:
    """Return the gauges' figures of a whole reply; what a receipt does not say is as it was while the reply ran."""
    rate = receipt.bytes_per_token * receipt.decode_rate
    if receipt.peak_share is not None and while_running.peak is not None:
        rate = receipt.peak_share * while_running.peak  # with what ran beside it, as the gauge shows it
    return replace(
        while_running,
        decode_rate=receipt.decode_rate,
        prefill_rate=0.0,
        bytes_per_second=rate,
        peak_share=receipt.peak_share,
        limited_by=while_running.limited_by if receipt.limited_by is Bottleneck.UNKNOWN else receipt.limited_by,
        n_drafted=receipt.n_drafted,
        n_accepted=receipt.n_accepted,
        speedup=receipt.speedup,
    )
