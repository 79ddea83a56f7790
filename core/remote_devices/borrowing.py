"""The engine's side: looks at a worker, measures the link to it, and borrows its devices."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from core.remote_devices.handshake import MessageSocket, NotUnderstood, enter
from core.values.addresses import LOST_WORKER, worker_address
from core.values.engine_options import Device, EngineOptions
from core.values.errors import WorkerUnavailable
from models.estimate.speed.machine import DeviceKind, Lent, Link
from models.estimate.speed.probe import Probe
from models.formatting.json_values import value_of
from models.formatting.program import advice
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

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

    def lent(self, device: Offered) -> Lent:
        """Return the facts from which the speed of one of its devices is predicted."""
        probe = device.probe if device.probe is not None and device.probe.is_possible else None
        return Lent(self.address, device.kind, self.link, device.bandwidth, probe)


def look(address: str, token: str) -> RemoteWorker:
    """Return what a worker, named as rpc://HOST:PORT, lends; raises WorkerUnavailable."""
    with _connect(address) as connection:
        return _met(MessageSocket(connection), address, token)


def borrow(address: str, token: str) -> tuple[RemoteWorker, int]:
    """Borrow a worker's devices; return them with the descriptor of the socket for ggml.

    Raises WorkerUnavailable, after _BUSY_SECONDS if the worker is busy.
    """
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
                Sentence(
                    "The worker {address} lends its devices to another program. Wait until that ends, or start "
                    "one more worker there at another port.",
                    address=address,
                )
            )
        time.sleep(0.25)


def _connect(address: str) -> socket.socket:
    try:
        return socket.create_connection(worker_address(address), timeout=5.0)
    except (OSError, UnicodeError) as error:  # the latter for a name that can be none, as one with a part too long
        raise WorkerUnavailable(
            Sentence(
                "The worker {address} cannot be reached ({reason}). Check the address, and whether that "
                "machine lends its devices now.",
                address=address,
                reason=system_reason(error),
            )
        ) from error


def _met(channel: MessageSocket, address: str, token: str) -> RemoteWorker:
    try:
        is_known = enter(channel, token)
    except NotUnderstood as error:
        raise _not_a_worker(address, error) from error
    if not is_known:
        raise WorkerUnavailable(
            Sentence(
                "The worker {address} does not know this token. It shows the right one on its own machine.",
                address=address,
            )
        )
    facts = _asked(channel, address, do="look")
    if facts.get("llama") != (own := version("llama-cpp-python")):
        raise WorkerUnavailable(
            Sentence(
                "The worker {address} has llama-cpp-python {its}, and this machine {own}. Both must be the "
                "same: update Slipstream on the machine with the older one.",
                address=address,
                its=facts.get("llama"),
                own=own,
            )
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
        Sentence(
            "What answers at {address} is no worker of this version of Slipstream ({error}).",
            address=address,
            error=error,
        )
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
                Sentence(
                    "The worker {worker} wants a token, which it shows on its own machine. {how}",
                    worker=worker,
                    how=how,
                )
            )
        check_rpc()
        found, fd = borrow(worker, tokens[worker])
        threading.Thread(target=_watch, args=(worker, os.dup(fd)), name="worker-watch", daemon=True).start()
        before = n_devices()
        add_rpc_server(fd)
        name_borrowed(
            before,
            [
                Device(
                    f"{worker}/{one.name}",
                    f"{one.description}, lent by {worker}",
                    "gpu",
                    one.free,
                    one.total,
                    found.lent(one),
                )
                for one in found.devices
            ],
        )


def _watch(worker: str, fd: int) -> None:
    """End this process when the worker closes the connection; ggml would abort at the next step."""
    watched = select.poll()
    # Poll for hang-ups only, because ggml reads the data.
    watched.register(fd, getattr(select, "POLLRDHUP", 0))
    while not watched.poll():
        continue
    os.write(2, f"{LOST_WORKER}: {worker} closed the connection\n".encode())
    os._exit(1)
