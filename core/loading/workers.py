"""Borrows the devices of the workers that the options name, before a model is loaded."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

from core.llama.devices import add_rpc_server, check_rpc, device_handles, n_devices, name_borrowed
from core.remote_devices.borrowing import borrow
from core.values.addresses import LOST_WORKER
from core.values.engine_options import Device, EngineOptions
from core.values.errors import WorkerUnavailable
from models.estimate.speed.work import work
from models.formatting.program import advice
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from core.loading.memory_fit import LoadPlan
    from models.estimate.speed.machine import Machine
    from models.facts.model_facts import ModelFacts


def connect_workers(options: EngineOptions) -> None:
    """Connect to each worker that is not connected yet, for as long as this process lives; raises LoadFailed."""
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


def why_so(facts: ModelFacts, plan: LoadPlan, machine: Machine) -> tuple[str, ...]:
    """Return a sentence on the layers on workers and the expected speed; empty without workers."""
    workers = " and ".join(plan.options.workers)
    if not workers:
        return ()
    used = {*plan.placement.layers, plan.placement.output}
    lent = [device.lent for number, device in enumerate(machine.devices) if number in used and device.lent is not None]
    if not lent:
        how = advice("--gpu-layers", Sentence("a number of GPU layers in the model's settings"))
        return (
            Sentence(
                "This machine alone is expected to be faster, so nothing is on {workers}; {how} insists.",
                workers=workers,
                how=how,
            ),
        )
    n_layers = sum(machine.devices[where].lent is not None for where in plan.placement.layers)
    amounts = work(facts, plan.placement, machine.traits, n_past=0, kv_type=plan.options.cache_type)
    seconds = machine.efficiency.seconds(amounts)
    slowest = min((one.link for one in lent), key=lambda link: link.bandwidth)
    over = {
        "n_layers": n_layers,
        "n_all": facts.n_layers,
        "workers": workers,
        "pace": slowest.bandwidth / 1e6,
        "latency": slowest.latency * 1000,
    }
    if not seconds:
        return (
            Sentence(
                "{n_layers} of {n_all} layers are on {workers}, over {pace:,.0f} MB/s with {latency:.2f} ms there and "
                "back.",
                **over,
            ),
        )
    return (
        Sentence(
            "{n_layers} of {n_all} layers are on {workers}, over {pace:,.0f} MB/s with {latency:.2f} ms there and "
            "back: about {tokens:,.1f} tokens/s are expected (an estimate).",
            tokens=1.0 / seconds,
            **over,
        ),
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
