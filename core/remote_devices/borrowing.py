"""How an engine borrows the devices of a worker: both prove that they know a token, before ggml uses the connection.

ggml's RPC serves every connection. So both sides prove the token first, and only then hand the connection to ggml. Each
side sends a random challenge, and each answers with an HMAC of both: the token itself never crosses the network, and no
answer can be used again. Nothing is encrypted or signed after that, so it is only for trusted networks.

Messages are JSON objects behind their length. The engine may ask for the devices ("look"), measure the link
("measure"), and at last borrow the devices ("lend"). From then on the connection is ggml's.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from core.values.addresses import LOST_WORKER, worker_address
from core.values.engine_options import Device, EngineOptions
from core.values.errors import WorkerUnavailable
from models.estimate.speed.machine import DeviceKind, Lent, Link
from models.estimate.speed.probe import Probe
from models.formatting.json_values import value_of
from models.formatting.program import advice
from models.formatting.sentence import Sentence, SentenceError
from models.formatting.system_error import system_reason

# Version of the messages; both sides must have the same.
PROTOCOL = 1
# Limit for a whole handshake, on slow networks too; and for a connection and its first word, which take no work.
HANDSHAKE_SECONDS = 20.0
_GREETING_SECONDS = 5.0
# A worker that hangs keeps its connections open. So it is greeted each so many seconds, and is lost after this many
# greetings in a row without a word: a machine that swaps may miss one.
_GREET_SECONDS, _MOST_UNANSWERED = 10.0, 2
_LENGTH = struct.Struct(">I")
# Bytes of one message at most, far above what many devices and their probes take; and of one read of a measurement.
_MOST_BYTES = _PIECE = 1 << 16
# A peer that lost power cannot close its connection. TCP keep-alive finds out: after so many quiet seconds it asks,
# again every _ASK_SECONDS, and gives up after _ASKED times.
_QUIET_SECONDS, _ASK_SECONDS, _ASKED = 10, 5, 3


class NotUnderstood(SentenceError):
    """The other side does not speak this protocol, or said nothing in time."""


class MessageSocket:
    """JSON objects and bytes over a connected socket, for as long as a handshake may take. Raises NotUnderstood."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._deadline = time.monotonic() + HANDSHAKE_SECONDS

    def send(self, **fields: object) -> None:
        """Send an object."""
        body = json.dumps(fields).encode()
        self.send_bytes(_LENGTH.pack(len(body)) + body)

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        try:
            self._wait_no_longer()
            self.connection.sendall(data)
        except OSError as error:
            raise NotUnderstood(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """Wait for an object."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if size > _MOST_BYTES:
            raise NotUnderstood(Sentence("the message is too long"))
        try:
            fields = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise NotUnderstood(str(error)) from error
        if not isinstance(fields, dict):
            raise NotUnderstood(Sentence("the message is not an object"))
        return fields

    def wait_for_a_word(self, seconds: float) -> None:
        """Wait until the other side has said something, or closed the connection; raises OSError."""
        self.connection.settimeout(seconds)
        self.connection.recv(1, socket.MSG_PEEK)

    def skip(self, n_bytes: int) -> None:
        """Read and discard bytes."""
        while n_bytes > 0:
            n_bytes -= len(self._read(min(n_bytes, _PIECE)))

    def hand_over(self) -> socket.socket:
        """Return the socket as ggml expects it: without a timeout, and with keep-alive to notice a lost peer."""
        self.connection.settimeout(None)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        lost_after = _QUIET_SECONDS + _ASK_SECONDS * _ASKED
        for name, value in (
            ("TCP_KEEPIDLE", _QUIET_SECONDS),
            ("TCP_KEEPALIVE", _QUIET_SECONDS),  # the same on macOS
            ("TCP_KEEPINTVL", _ASK_SECONDS),
            ("TCP_KEEPCNT", _ASKED),
            ("TCP_USER_TIMEOUT", 1000 * lost_after),
        ):
            if hasattr(socket, name):
                self.connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return self.connection

    def _read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes: one more could belong to ggml."""
        parts = []
        while size:
            try:
                self._wait_no_longer()
                part = self.connection.recv(size)
            except OSError as error:
                raise NotUnderstood(str(error)) from error
            if not part:
                raise NotUnderstood(Sentence("it closed the connection"))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise NotUnderstood(Sentence("it took too long"))
        self.connection.settimeout(left)


def admit(channel: MessageSocket, token: str) -> bool:
    """Check the engine's proof that it knows the token, and prove the same to it; False if its proof is wrong."""
    mine = secrets.token_hex(16)
    channel.send(slipstream_worker=PROTOCOL, challenge=mine)
    answer = channel.receive()
    theirs = str(answer.get("challenge", ""))
    if not hmac.compare_digest(_proof(token, "engine", mine, theirs), str(answer.get("proof", "")).encode()):
        channel.send(problem="token")
        return False
    channel.send(proof=_proof(token, "worker", mine, theirs).decode())
    return True


def enter(channel: MessageSocket, token: str) -> bool:
    """Prove to a worker that we know the token; False if either side does not. Raises NotUnderstood."""
    hello = channel.receive()
    if hello.get("slipstream_worker") != PROTOCOL:
        raise NotUnderstood(
            "it speaks version {its}, and this program {own}", its=hello.get("slipstream_worker"), own=PROTOCOL
        )
    theirs, mine = str(hello.get("challenge", "")), secrets.token_hex(16)
    channel.send(challenge=mine, proof=_proof(token, "engine", theirs, mine).decode())
    answer = str(channel.receive().get("proof", ""))
    return hmac.compare_digest(_proof(token, "worker", theirs, mine), answer.encode())


def _proof(token: str, who: str, of_worker: str, of_engine: str) -> bytes:
    said = f"slipstream {PROTOCOL} {who} {of_worker} {of_engine}"
    return hmac.new(token.encode(errors="surrogateescape"), said.encode(), "sha256").hexdigest().encode()


# A worker whose client has just left frees its memory first, which takes a while for a large model.
_BUSY_SECONDS = 10.0
# Round trips that are timed; the fastest counts, since others may use the network.
_PINGS = 8
# More than the slow start of a TCP connection, and a fifth of a second at 100 Mbit/s.
_MEASURED_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Offered:
    """A device as a worker describes it: memory in bytes, and its speed as far as it was measured there."""

    name: str
    description: str
    kind: DeviceKind
    free: int
    total: int
    bandwidth: float | None = None
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """A worker and the link to it. ``is_busy``: another engine uses its devices."""

    address: str
    devices: tuple[Offered, ...]
    link: Link
    is_busy: bool

    def device(self, one: Offered) -> Device:
        """Return one of its devices, which is used like a GPU, with the facts that predict its speed."""
        probe = one.probe if one.probe is not None and one.probe.is_possible else None
        lent = Lent(self.address, one.kind, self.link, one.bandwidth, probe)
        name, description = f"{self.address}/{one.name}", f"{one.description}, lent by {self.address}"
        return Device(name, description, DeviceKind.GPU, one.free, one.total, lent)


def look(address: str, token: str) -> RemoteWorker:
    """Return what a worker, named as rpc://HOST:PORT, lends; raises WorkerUnavailable."""
    with _connect(address) as connection:
        return _met(MessageSocket(connection), address, token)


def borrow(address: str, token: str) -> tuple[RemoteWorker, int]:
    """Borrow a worker's devices; return them and ggml's descriptor. Raises WorkerUnavailable, also if it stays busy."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        connection = _connect(address)
        try:
            channel = MessageSocket(connection)
            worker = _met(channel, address, token)
            if not worker.is_busy and not _asked(channel, address, do="lend").get("problem"):
                return worker, channel.hand_over().detach()
        finally:
            connection.close()  # nothing happens to a descriptor that was detached
        if time.monotonic() > until:
            raise WorkerUnavailable(
                "The worker {address} lends its devices to another program. Wait until that ends, or start "
                "one more worker there at another port.",
                address=address,
            )
        time.sleep(0.25)


def _connect(address: str) -> socket.socket:
    try:
        return socket.create_connection(worker_address(address), timeout=_GREETING_SECONDS)
    except (OSError, UnicodeError) as error:  # the latter for a name that can be none, as one with a part too long
        raise WorkerUnavailable(
            "The worker {address} cannot be reached ({reason}). Check the address, and whether that "
            "machine lends its devices now.",
            address=address,
            reason=system_reason(error),
        ) from error


def _met(channel: MessageSocket, address: str, token: str) -> RemoteWorker:
    try:
        channel.wait_for_a_word(_GREETING_SECONDS)
        is_known = enter(channel, token)
    except TimeoutError:
        raise WorkerUnavailable(
            "The worker {address} says nothing: it may hang. Start it again there.", address=address
        ) from None
    except (NotUnderstood, OSError, ValueError) as error:  # the last for a challenge that is no text
        raise _not_a_worker(address, error) from error
    if not is_known:
        raise WorkerUnavailable(
            "The worker {address} does not know this token. It shows the right one on its own machine.", address=address
        )
    facts = _asked(channel, address, do="look")
    if facts.get("llama") != (own := version("llama-cpp-python")):
        raise WorkerUnavailable(
            "The worker {address} has llama-cpp-python {its}, and this machine {own}. Both must be the "
            "same: update Slipstream on the machine with the older one.",
            address=address,
            its=facts.get("llama"),
            own=own,
        )
    try:
        devices = tuple(value_of(Offered, fields) for fields in facts["devices"])
    except (KeyError, TypeError, ValueError) as error:
        raise _not_a_worker(address, error) from error
    return RemoteWorker(address, devices, _measure(channel, address), bool(facts.get("busy")))


def _measure(channel: MessageSocket, address: str) -> Link:
    """Measure seconds of a round trip, and bytes per second."""

    def seconds(n_bytes: int) -> float:
        began = time.perf_counter()
        _asked(channel, address, do="measure", bytes=n_bytes)
        return time.perf_counter() - began

    latency = min(seconds(0) for _ in range(_PINGS))
    return Link(latency, _MEASURED_BYTES / max(seconds(_MEASURED_BYTES) - latency, 1e-6))


def _asked(channel: MessageSocket, address: str, **question: Any) -> dict[str, Any]:
    try:
        channel.send(**question)
        channel.send_bytes(bytes(question.get("bytes", 0)))
        return channel.receive()
    except NotUnderstood as error:
        raise _not_a_worker(address, error) from error


def _not_a_worker(address: str, error: Exception) -> WorkerUnavailable:
    return WorkerUnavailable(
        "What answers at {address} is no worker of this version of Slipstream ({error}).", address=address, error=error
    )


def connect_workers(options: EngineOptions) -> None:
    """Connect to each worker that is not connected yet, for as long as this process lives; raises LoadFailed."""
    # Here, because the server looks at workers without llama.cpp.
    from core.llama.devices import add_rpc_server, check_rpc, device_handles, n_devices, name_borrowed

    tokens = dict(options.worker_tokens)
    for worker in options.workers:
        if device_handles(worker):
            continue
        if worker not in tokens:
            how = advice(
                "Name it in SLIPSTREAM_WORKER_TOKEN or --worker-token-file.",
                Sentence("Add the worker with it on the page Server."),
            )
            raise WorkerUnavailable(
                "The worker {worker} wants a token, which it shows on its own machine. {how}", worker=worker, how=how
            )
        check_rpc()
        found, fd = borrow(worker, tokens[worker])
        threading.Thread(target=_watch, args=(worker, os.dup(fd)), name="worker-watch", daemon=True).start()
        before = n_devices()
        add_rpc_server(fd)
        name_borrowed(before, [found.device(one) for one in found.devices])


def _watch(worker: str, fd: int) -> None:
    """End this process when the worker is lost: ggml would abort at the next step, or wait for ever."""
    watched = select.poll()
    # Poll for hang-ups only, because ggml reads the data.
    watched.register(fd, getattr(select, "POLLRDHUP", 0))
    n_unanswered, how = 0, "closed the connection"
    while not watched.poll(1000 * _GREET_SECONDS):
        n_unanswered = n_unanswered + 1 if _is_silent(worker) else 0
        if n_unanswered == _MOST_UNANSWERED:
            how = "says nothing any more"
            break
    os.write(2, f"{LOST_WORKER}: {worker} {how}\n".encode())
    os._exit(1)


def _is_silent(worker: str) -> bool:
    """Return whether nobody greets at a worker's door; one that is closed or too full is no sign of that."""
    try:
        with socket.create_connection(worker_address(worker), timeout=_GREET_SECONDS) as connection:
            connection.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False
