"""Keeps what replies measured, so that the speed model learns: from replies that had the engine for themselves."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from core.machine.bandwidth import raise_remembered
from core.machine.host import last_level_cache, this_machine
from core.machine.known_machine import CPU, runs_key
from core.values.messages import Ended, LoadedModel, Receipt
from core.values.request import Request
from models.estimate.fit.plan import LoadSetting, place
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.runs import ModelRun, add_runs
from models.estimate.speed.work import work
from models.facts.model_facts import ModelFacts, read_model
from models.gguf.errors import GgufError
from models.pairing.forecast import MTP

_log = logging.getLogger("slipstream.server")
_SAVE_AFTER = 5.0
# The times of shorter replies are mostly chance.
_FEWEST_TOKENS, _SHORTEST = 32, 0.02
_MOST_WAITING = 200
# A model as large as this many caches is read from memory.
_FAR = 4


class _TimedReply(NamedTuple):
    model: LoadedModel
    receipt: Receipt
    at: float


@dataclass(frozen=True, slots=True)
class OpenRequests:
    """The ids of the requests that share this machine, and of those that did not have it for themselves."""

    all: set[str] = field(default_factory=set)
    disturbed: set[str] = field(default_factory=set)


class RunRecorder:
    """Listens to the requests of one engine; writes on a thread of its own, some seconds after there is something."""

    def __init__(
        self,
        folder: Path,
        model: Callable[[], LoadedModel | None],
        shared: OpenRequests | None = None,
        save_after: float = _SAVE_AFTER,
    ) -> None:
        """``folder`` keeps the runs; ``model`` gives the loaded model. Engines of one server have one ``shared``."""
        self._folder, self._model, self._save_after = folder, model, save_after
        self._open = shared or OpenRequests()
        self._replies: list[_TimedReply] = []
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._facts: dict[str, ModelFacts] = {}

    def opened(self, request: Request) -> None:
        """A request was submitted: from here on, others share the engine with it."""
        self._open.all.add(request.id)
        if len(self._open.all) > 1:
            self._open.disturbed.update(self._open.all)
        elif request.by_draft:
            self._open.disturbed.add(request.id)

    def ended(self, event: Ended) -> None:
        """A request is over."""
        self.closed(event.request_id, event.receipt)

    def closed(self, request_id: str, receipt: Receipt | None = None) -> None:
        """A request is over, or nobody hears of it any more."""
        self._open.all.discard(request_id)
        is_disturbed = request_id in self._open.disturbed
        self._open.disturbed.discard(request_id)
        model = self._model()
        if receipt is None or is_disturbed or model is None or not _tells(receipt):
            return
        with self._lock:
            if len(self._replies) < _MOST_WAITING:
                self._replies.append(_TimedReply(model, receipt, time.time()))
            if self._timer is None:
                self._timer = threading.Timer(self._save_after, self.save)
                self._timer.daemon = True
                self._timer.start()

    def save(self) -> None:
        """Write what is waiting; a folder that cannot be written loses it."""
        with self._lock:
            replies, self._replies = self._replies, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        try:
            self._raise_bandwidth(replies)
            runs = [run for reply in replies if (run := self._run(reply)) is not None]
            if runs:
                add_runs(self._folder, runs_key(), runs)
        except (OSError, GgufError, ValueError) as error:
            _log.info("What replies measured could not be kept: %s", error)

    def _raise_bandwidth(self, replies: Sequence[_TimedReply]) -> None:
        """Let a reply that read faster than was measured correct that: other programs had been busy then."""
        n_far = _FAR * last_level_cache()
        reached = [
            reply.receipt.bytes_per_token * reply.receipt.decode_rate
            for reply in replies
            if not reply.model.n_gpu_layers and reply.model.n_bytes >= n_far
        ]
        if reached:
            raise_remembered(self._folder, this_machine(), max(reached))

    def _run(self, reply: _TimedReply) -> ModelRun | None:
        model, receipt = reply.model, reply.receipt
        machine = _machine(model)
        if machine is None or receipt.plain_seconds is None:
            return None
        if model.path not in self._facts:
            self._facts = {model.path: read_model(Path(model.path))}
        facts = self._facts[model.path]
        setting = LoadSetting(model.n_gpu_layers, model.n_cpu_moe, model.kv_type, model.n_ctx)
        n_past = receipt.n_prompt + receipt.n_generated // 2
        draft = _draft(model)
        placement = place(facts.n_layers, machine, setting)
        return ModelRun(
            model=Path(model.path).stem,
            n_bytes=facts.weight_bytes,
            options=(
                f"{model.kv_type} cache, {model.n_gpu_layers} layers on GPUs, {model.n_cpu_moe} without experts, "
                f"{model.n_threads} threads"
            ),
            draft=draft,
            amounts=work(facts, placement, machine.devices, n_past=n_past, kv_type=model.kv_type),
            seconds=receipt.plain_seconds,
            rate=receipt.decode_rate,
            n_past=n_past,
            n_tokens=receipt.n_generated,
            n_drafted=receipt.n_judged if draft else 0,
            n_accepted=receipt.n_right if draft else 0,
            at=reply.at,
        )


def _draft(model: LoadedModel) -> str:
    """Return the name of what drafts; "" if nothing does, or if two do, since their tokens are counted together."""
    if model.draft_path and model.has_heads:
        return ""
    return Path(model.draft_path).stem if model.draft_path else MTP if model.has_heads else ""


def _tells(receipt: Receipt) -> bool:
    is_long = receipt.n_generated >= _FEWEST_TOKENS and receipt.decode >= _SHORTEST
    return is_long and receipt.decode_rate > 0 and receipt.plain_seconds is not None


def _machine(model: LoadedModel) -> Machine | None:
    """The devices of a loaded model; None with several GPUs, whose shares are not known afterwards."""
    gpus = model.devices if model.n_gpu_layers else ()
    if len(gpus) > 1:
        return None
    cpu = MachineDevice(CPU, DeviceKind.CPU, 1, 1)
    return machine_of([cpu, *(MachineDevice(name, DeviceKind.GPU, 1, 1) for name in gpus)])
