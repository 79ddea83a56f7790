"""The worker's side: admits engines that know the token, and starts a process that serves one.

That process is ``python -m core.remote_devices.lending``. It ends with its client.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import psutil

from core.machine.host import core_count
from core.process.child_process import (
    ChildProcess,
    PipeClosed,
    die_with_parent,
    leave_signals_to_the_parent,
    own_streams,
    start_module,
)
from core.remote_devices.borrowing import MessageSocket, NotUnderstood, Offered, admit
from core.values.errors import SlipstreamError
from models.estimate.fit.memory import USABLE_SHARE, free_memory
from models.estimate.speed.machine import DeviceKind
from models.formatting.json_values import plain

# The most connections that have not proved the token yet; further ones are closed at once.
_MOST_STRANGERS = 16
# A lender that is stopped, or stays when its client has left, would keep the devices from everybody: it is ended when
# two looks in a row, so many seconds apart, find it so.
_LOOK_SECONDS = 5.0
# Seconds without a new connection after one that could not be taken.
_PAUSE_SECONDS = 0.1
# Bytes that a client may send to time the link: eight times what ours send.
_MOST_MEASURED = 16 << 20


@dataclass(frozen=True, slots=True)
class Offer:
    """The devices that a worker lends, and the most bytes of each (None: all that is free)."""

    devices: tuple[Offered, ...]
    memory: int | None = None

    def now(self) -> tuple[Offered, ...]:
        """Return the devices with the memory that a client would get now."""
        most = self.limit
        return tuple(replace(one, free=min(one.free, most), total=min(one.total, most)) for one in self.devices)

    @property
    def limit(self) -> int:
        """The most bytes of each device that are lent now. llama.cpp reports all of a machine's memory as free."""
        most = sys.maxsize if self.memory is None else self.memory
        uses_host = any(one.kind is DeviceKind.CPU for one in self.devices)
        return min(most, int(free_memory() * USABLE_SHARE)) if uses_host else most


class Lending:
    """Listens for engines and lends to one at a time. ``say`` is called with a sentence about each."""

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
                if self._listening.fileno() < 0:
                    return
                # A client that left at once, a network that went down, or too many open files: all of that passes.
                time.sleep(_PAUSE_SECONDS)
                continue
            if self._strangers.acquire(blocking=False):
                threading.Thread(target=self._meet, args=(connection, peer[0]), daemon=True).start()
            else:
                connection.close()

    def close(self) -> None:
        """Stop listening, and end the lending process."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            if self._lender is not None:
                self._lender.kill()

    def _meet(self, connection: socket.socket, peer: str) -> None:
        with connection:
            try:
                lent = self._answer(MessageSocket(connection), peer)
            except (NotUnderstood, OSError, ValueError, TypeError):  # the peer does not speak our protocol
                return
            finally:
                self._strangers.release()
            if lent is not None:
                self._follow(lent, connection, peer)

    def _answer(self, channel: MessageSocket, peer: str) -> ChildProcess | None:
        """Answer until the peer leaves; return the process that serves it from then on, if one does."""
        if not admit(channel, self._token):
            self._say(f"{peer} came with a wrong token and was refused.")
            return None
        while True:
            question = channel.receive()
            match question.get("do"):
                case "look":
                    devices = [plain(one) for one in self._offer.now()]
                    with self._lock:  # _lend tells a client that it has the devices before its process exists
                        is_busy = self._lender is not None
                    channel.send(llama=version("llama-cpp-python"), devices=devices, busy=is_busy)
                case "measure":
                    channel.skip(min(int(question.get("bytes", 0)), _MOST_MEASURED))
                    channel.send()
                case "lend":
                    return self._lend(channel, peer)
                case _:
                    return None

    def _lend(self, channel: MessageSocket, peer: str) -> ChildProcess | None:
        with self._lock:
            if self._lender is not None:
                channel.send(problem="busy")
                return None
            channel.send()
            fd = channel.hand_over().fileno()
            lender = start_module("core.remote_devices.lending", sys.stderr.buffer, pass_fds=(fd,))
            self._lender = lender
        self._say(f"{peer} uses the devices.")
        with contextlib.suppress(PipeClosed):  # it died at once; _follow reports it
            lender.pipe.send((fd, tuple(one.name for one in self._offer.devices), self._offer.limit))
        return lender

    def _follow(self, lender: ChildProcess, connection: socket.socket, peer: str) -> None:
        has_left, was_stuck, ended = f"{peer} has left.", False, ""
        while (code := _exit_code(lender, _LOOK_SECONDS)) is None:
            is_alone = _has_left(connection)
            is_stuck = is_alone or _is_stopped(lender)
            if is_stuck and was_stuck and not ended:
                ended = has_left if is_alone else f"The process that lends to {peer} hung and was ended."
                lender.kill()
            was_stuck = is_stuck
        with self._lock:
            self._lender = None
        lender.close()
        cut_off = f"{peer} was cut off: llama.cpp ended with code {code} here."
        self._say(ended or (has_left if code == 0 else cut_off))


def _exit_code(lender: ChildProcess, seconds: float) -> int | None:
    """Return the exit code of a lender, None where it still runs after ``seconds``."""
    try:
        return lender.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _has_left(connection: socket.socket) -> bool:
    """Return whether a client has closed its connection."""
    client = select.poll()
    client.register(connection, getattr(select, "POLLRDHUP", 0))  # the lender reads the data
    return bool(client.poll(0))


def _is_stopped(lender: ChildProcess) -> bool:
    try:
        return psutil.Process(lender.pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def main() -> int:
    """Take the order (socket, devices, bytes of each) and serve the client; exit code 1 if a device cannot be used."""
    from core.llama.devices import serve_rpc
    from core.llama.library import silence_log

    leave_signals_to_the_parent()
    pipe = own_streams()
    die_with_parent()
    silence_log()
    fd, devices, memory = pipe.receive()
    try:
        serve_rpc(fd, devices, memory, core_count())
    except SlipstreamError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # Skip C destructors, as the engine process does.
    os._exit(main())
