"""Borrows the devices of the workers that options name, before a model is loaded."""

from __future__ import annotations

import os
import select
import threading

from core.llama import rpc
from core.llama.devices import BackendDeviceType, Device, device_handles, n_devices, name_borrowed
from core.remote_devices.borrowing import borrow
from core.remote_devices.handshake import WorkerUnavailable
from core.values.engine_options import EngineOptions
from core.values.worker_address import LOST_WORKER
from models.formatting.program import PROGRAM


def connect_workers(options: EngineOptions) -> None:
    """Connect to each worker that is not connected yet, for as long as this process lives; raises LoadFailed."""
    tokens = dict(options.worker_tokens)
    for worker in options.workers:
        if device_handles(worker):
            continue
        if worker not in tokens:
            raise WorkerUnavailable(
                f"The worker {worker} wants a token, which {PROGRAM} worker prints there. Give it in the environment "
                "variable SLIPSTREAM_WORKER_TOKEN or with --worker-token-file."
            )
        rpc.check()
        found, fd = borrow(worker, tokens[worker])
        threading.Thread(target=_watch, args=(worker, os.dup(fd)), name="worker-watch", daemon=True).start()
        before = n_devices()
        rpc.add_server(fd)
        name_borrowed(
            before,
            [
                Device(
                    f"{worker}/{one.name}",
                    f"{one.description}, lent by {worker}",
                    BackendDeviceType.GPU,
                    one.free,
                    one.total,
                    worker,
                    one.rate,
                    found.link,
                )
                for one in found.devices
            ],
        )


def _watch(worker: str, fd: int) -> None:
    """End this process when the worker closes the connection; ggml would abort at the next step."""
    watched = select.poll()
    # Only hang-ups: what arrives is for ggml.
    watched.register(fd, getattr(select, "POLLRDHUP", 0))
    while not watched.poll():
        continue
    os.write(2, f"{LOST_WORKER}: {worker} closed the connection\n".encode())
    os._exit(1)
