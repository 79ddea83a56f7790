"""The worker's side: lets in who knows the token, and starts a process that serves them."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import NamedTuple

from core.ipc.child_process import ChildProcess, start_module
from core.ipc.pipe import PipeClosed
from core.remote_devices.borrowing import Offered
from core.remote_devices.handshake import Conversation, NotUnderstood, admit
from models.estimate.fit.memory import USABLE_SHARE, free_memory
from models.estimate.speed.machine import DeviceKind
from models.formatting.json_values import plain

# Connections that have not proved the token yet; more are closed at once.
_MOST_STRANGERS = 16
_MOST_MEASURED = 16 << 20


class Lend(NamedTuple):
    """The order to a lending process: serve ``fd`` with these devices, at most ``memory`` bytes of each."""

    fd: int
    devices: tuple[str, ...]
    memory: int


@dataclass(frozen=True, slots=True)
class Offer:
    """The devices that a worker lends, and at most how many bytes of each (None: what is free)."""

    devices: tuple[Offered, ...]
    memory: int | None = None

    def now(self) -> tuple[Offered, ...]:
        """Return the devices with the memory that a client would get now."""
        most = self.limit
        return tuple(replace(one, free=min(one.free, most), total=min(one.total, most)) for one in self.devices)

    @property
    def limit(self) -> int:
        """At most how many bytes of each device are lent now. llama.cpp takes all of a machine's memory for free."""
        most = sys.maxsize if self.memory is None else self.memory
        uses_host = any(one.kind is DeviceKind.CPU for one in self.devices)
        return min(most, int(free_memory() * USABLE_SHARE)) if uses_host else most


class Lending:
    """Listens for engines; one at a time gets the devices. ``say`` is called with a sentence for each who comes."""

    def __init__(self, listening: socket.socket, token: str, offer: Offer, say: Callable[[str], None]) -> None:
        self._listening, self._token, self._offer, self._say = listening, token, offer, say
        self._strangers = threading.BoundedSemaphore(_MOST_STRANGERS)
        self._lock = threading.Lock()
        self._lender: ChildProcess | None = None

    def run(self) -> None:
        """Serve until ``close``."""
        while True:
            try:
                connection, peer = self._listening.accept()
            except OSError:
                return
            if self._strangers.acquire(blocking=False):
                threading.Thread(target=self._meet, args=(connection, peer[0]), daemon=True).start()
            else:
                connection.close()

    def close(self) -> None:
        """Listen no longer, and take the devices back."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            if self._lender is not None:
                self._lender.kill()

    def _meet(self, connection: socket.socket, peer: str) -> None:
        with connection:
            try:
                lent = self._answer(Conversation(connection), peer)
            except (NotUnderstood, OSError, ValueError, TypeError):  # whoever speaks so is no client of ours
                return
            finally:
                self._strangers.release()
        if lent is not None:
            self._follow(lent, peer)

    def _answer(self, talk: Conversation, peer: str) -> ChildProcess | None:
        """Answer until the peer leaves; return the process that serves it from then on, if one does."""
        if not admit(talk, self._token):
            self._say(f"{peer} came with a wrong token and was refused.")
            return None
        while True:
            question = talk.receive()
            match question.get("do"):
                case "look":
                    devices = [plain(one) for one in self._offer.now()]
                    with self._lock:  # a client is told that it has the devices before its process is there
                        is_busy = self._lender is not None
                    talk.send(llama=version("llama-cpp-python"), devices=devices, busy=is_busy)
                case "measure":
                    talk.skip(min(int(question.get("bytes", 0)), _MOST_MEASURED))
                    talk.send()
                case "lend":
                    return self._lend(talk, peer)
                case _:
                    return None

    def _lend(self, talk: Conversation, peer: str) -> ChildProcess | None:
        with self._lock:
            if self._lender is not None:
                talk.send(problem="busy")
                return None
            talk.send()
            fd = talk.hand_over().fileno()
            lender = start_module("core.remote_devices.lender", sys.stderr.buffer, pass_fds=(fd,))
            self._lender = lender
        self._say(f"{peer} uses the devices.")
        with contextlib.suppress(PipeClosed):  # it died at once; who waits for its end hears of it
            lender.pipe.send(Lend(fd, tuple(one.name for one in self._offer.devices), self._offer.limit))
        return lender

    def _follow(self, lender: ChildProcess, peer: str) -> None:
        code = lender.wait()
        with self._lock:
            self._lender = None
        lender.close()
        self._say(f"{peer} has left." if code == 0 else f"{peer} was cut off: llama.cpp ended with code {code} here.")
