"""What the server takes from its engine while it streams: the same streams with and without it, in short turns.

Two engines differ by some per cent for life, by where their memory lies, and a machine drifts by more within seconds.
So one engine answers one set of streams, and the server in front of it works and rests in turns: while it rests, what
the engine sends is received and kept, and passed on when the turn is over. The turns go there and back (rests, works,
works, rests), so that what drifts slowly counts for neither.

The client sleeps until whole replies are there: one on another machine would take nothing from these cores.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from app.server import main
from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.model_host import ModelHost
from app.settings.server_settings import ServerSettings
from benchmarks.report import median
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, EnginePhase, Event, Token

N_CTX = 512
# With room for the prompt.
REPLY_TOKENS = N_CTX - 64
_ORDER = (False, True, True, False)  # whether the server works
# Tokens of each stream in a turn; and messages, of which the first only sets the clock.
_TURN_TOKENS, _TURN_MESSAGES = 7, 2
_LONGEST_LOAD = 120.0  # seconds
# More than a reply has, so that a reader is woken by its end alone.
_WHOLE_REPLY = 1 << 20


class Turn(NamedTuple):
    """Tokens that the engine sent in ``seconds``, and the seconds of a core that the server took meanwhile."""

    works: bool
    n_tokens: int
    seconds: float
    server_seconds: float


@dataclass(frozen=True)
class Ratio:
    """The median of the ratios of some rounds, and its interval of 95 %."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Ratio:
        """Return both by rank, which holds whatever the noise is."""
        ordered = sorted(ratios)
        n_out = max(0, math.floor((len(ordered) - 1.96 * math.sqrt(len(ordered))) / 2))
        return cls(median(ordered), ordered[n_out], ordered[-1 - n_out])


class TurnBridge(EngineBridge):
    """Takes turns while all of ``n_streams`` run, and passes everything on at once before and after that."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.n_streams = 0
        self.turns: list[Turn] = []
        self.clear()

    def clear(self, n_streams: int = 0) -> None:
        """Take turns once so many streams run."""
        self.turns, self.n_streams = [], n_streams
        self._begun: set[str] = set()
        self._kept: list[tuple[Event, ...]] = []
        self._marks: list[tuple[float, float, int]] = []

    @property
    def _works(self) -> bool:
        return _ORDER[len(self.turns) % len(_ORDER)]

    def deliver(self, events: tuple[Event, ...]) -> None:
        """Take one message; this is the supervisor's listener."""
        tokens = [event for event in events if isinstance(event, Token)]
        self._begun.update(token.request_id for token in tokens)
        if any(isinstance(event, Ended) for event in events):
            self.n_streams = 0
        if not self.n_streams or len(self._begun) < self.n_streams:
            self._pass_on(events)
            return
        self._marks.append((time.perf_counter(), time.process_time(), sum(token.n for token in tokens)))
        if self._works:
            super().deliver(events)
        else:
            self._kept.append(events)
        (first, cpu, _), (last, cpu_last, _) = self._marks[0], self._marks[-1]
        n_tokens = sum(mark[2] for mark in self._marks[1:])
        if len(self._marks) >= _TURN_MESSAGES and n_tokens >= _TURN_TOKENS * self.n_streams:
            self.turns.append(Turn(self._works, n_tokens, last - first, cpu_last - cpu))
            self._marks = []
            if self._works:
                self._pass_on(())

    def _pass_on(self, events: tuple[Event, ...]) -> None:
        kept, self._kept = self._kept, []
        for message in (*kept, events):
            super().deliver(message)


class TurnServer:
    """A server that takes turns, seen from its client."""

    def __init__(self, control: Connection, port: int) -> None:
        self._control, self._port = control, port

    def stream(self, prompts: Sequence[str], n_tokens: int = REPLY_TOKENS) -> list[Turn]:
        """Stream the replies to these prompts at once; return the turns of the server meanwhile."""
        self._control.send(len(prompts))
        self._control.recv()
        sockets = [socket.create_connection(("127.0.0.1", self._port)) for _ in prompts]
        for one, prompt in zip(sockets, prompts, strict=True):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WHOLE_REPLY)
            one.sendall(_request(prompt, n_tokens))
        for one in sockets:
            reply = _read(one)
            if f'"predicted_n":{n_tokens},'.encode() not in reply:
                raise RuntimeError(f"a reply came back short: {reply[:200]!r} … {reply[-500:]!r}")
        self._control.send(0)
        turns: list[Turn] = self._control.recv()
        return turns


def rounds_of(turns: Sequence[Turn]) -> list[Sequence[Turn]]:
    """Return the turns by whole rounds, there and back."""
    whole = len(turns) - len(turns) % len(_ORDER)
    return [turns[first : first + len(_ORDER)] for first in range(0, whole, len(_ORDER))]


def rate(turns: Sequence[Turn]) -> float:
    """Return the tokens per second of some turns."""
    return sum(turn.n_tokens for turn in turns) / sum(turn.seconds for turn in turns)


def _request(prompt: str, n_tokens: int) -> bytes:
    fields = {"prompt": prompt, "max_tokens": n_tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    body = json.dumps(fields).encode()
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _read(one: socket.socket) -> bytes:
    parts = []
    with one:
        while part := one.recv(_WHOLE_REPLY):
            parts.append(part)
    return b"".join(parts)


@contextmanager
def turn_server(model: Path, n_slots: int, n_threads: int) -> Iterator[TurnServer]:
    """Run a server whose model is loaded, in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    engine = EngineOptions(
        str(model), n_slots=n_slots, n_ctx=N_CTX, n_threads=n_threads, speculation="off", cache_disk=0
    )
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, engine))
    process.start()
    theirs.close()
    try:
        yield TurnServer(ours, ours.recv())
    finally:
        ours.close()
        process.join()


def _serve(control: Connection, engine: EngineOptions) -> None:
    """Serve as ``app serve`` does, with turns as ``control`` says, until that is closed."""

    def obey(host: ModelHost, port: int) -> None:
        bridge = host.bridge
        assert isinstance(bridge, TurnBridge)
        until = time.monotonic() + _LONGEST_LOAD
        while host.engine.state.phase is not EnginePhase.READY and time.monotonic() < until:
            time.sleep(0.01)
        try:
            control.send(port)
            while True:
                if n_streams := control.recv():
                    bridge.clear(n_streams)
                control.send(bridge.turns)
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)

    def on_started(_settings: object, _keys: object, host: ModelHost, port: int) -> None:
        threading.Thread(target=obey, args=(host, port), daemon=True).start()

    with mock.patch.multiple(main, EngineBridge=TurnBridge, say_what_is_served=on_started):
        main.run_server(ServerSettings(port=0, model=engine.model_path, engine=engine))
