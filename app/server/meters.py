"""What this machine is busy with: processor, memory by kind, GPUs, and power where it can be read."""

from __future__ import annotations

import asyncio
import csv
import shutil
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_host import ModelHost
from app.server.calls.model_pool import pool_of
from app.server.chat.model_card import facts_of
from models.estimate.fit.memory import free_memory, total_memory

_FRESH_SECONDS = 0.5  # asked more often, the same figures are given
_NVIDIA_SECONDS = 2.0  # the tool answers in a tenth of this
_NVIDIA = ("name", "utilization.gpu", "memory.used", "memory.total", "power.draw")
_RAPL = Path("/sys/class/powercap/intel-rapl:0/energy_uj")  # in microjoules since some time; often for root only
_DRM = Path("/sys/class/drm")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its ``load`` from 0 to 1, its memory in bytes, its power; None is not known."""

    name: str
    load: float | None
    used: int | None
    total: int | None
    watts: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """The machine at a moment. ``cpu`` is from 0 to 1 since the last look, None in the first one.

    ``watts`` are the processor's, None where they cannot be read.

    The bytes of memory add up to ``total``: ``weights`` and ``kv`` of loaded models outside of GPUs, ``kept`` prompts,
    ``other`` programs, and what is ``free``.
    """

    cpu: float | None
    total: int
    weights: int
    kv: int
    kept: int
    other: int
    free: int
    gpus: tuple[Gpu, ...]
    watts: float | None


class Meters:
    """Reads the machine, twice a second at most. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._last: Figures | None = None
        self._energy: tuple[float, int] | None = None
        self._times: tuple[float, float] | None = None  # seconds of all cores: busy, and all

    def read(self, hosts: list[ModelHost]) -> Figures:
        """Return the present figures."""
        with self._lock:
            now = time.monotonic()
            if self._last is None or now - self._read_at > _FRESH_SECONDS:
                self._last, self._read_at = self._measure(hosts, now), now
            return self._last

    def _measure(self, hosts: list[ModelHost], now: float) -> Figures:
        total = total_memory()
        weights, mapped, kv = (sum(kind) for kind in zip(*map(_memory_of, hosts), strict=True)) if hosts else (0, 0, 0)
        snapshots = [host.bridge.snapshot for host in hosts]
        kept = sum(snapshot.cache_ram_bytes for snapshot in snapshots if snapshot is not None)
        # Mapped weights count as memory that programs can have; the system gives them up last.
        other = max(0, total - min(free_memory(), total) - (weights - mapped) - kv - kept)
        free = max(0, total - other - weights - kv - kept)
        return Figures(
            cpu=self._busy(),
            total=total,
            weights=weights,
            kv=kv,
            kept=kept,
            other=total - free - weights - kv - kept,
            free=free,
            gpus=(*_nvidia_gpus(), *_amd_gpus(_DRM)),
            watts=self._watts(now),
        )

    def _busy(self) -> float | None:
        """Return how busy the cores were since the last look; psutil's own figure is per thread, and 0 at first."""
        times = psutil.cpu_times()
        whole = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)  # they are in "user" too
        idle = times.idle + getattr(times, "iowait", 0.0)
        before, self._times = self._times, (whole - idle, whole)
        if before is None or whole <= before[1]:
            return None
        return min(max((whole - idle - before[0]) / (whole - before[1]), 0.0), 1.0)

    def _watts(self, now: float) -> float | None:
        try:
            energy = int(_RAPL.read_text())
        except (OSError, ValueError):
            return None
        before, self._energy = self._energy, (now, energy)
        if before is None or energy < before[1]:  # the counter begins anew now and then
            return None
        return (energy - before[1]) / 1e6 / (now - before[0])


def _memory_of(host: ModelHost) -> tuple[int, int, int]:
    """Return the bytes of weights, of those that are mapped, and of KV that a model has outside of GPUs, by layers."""
    model, entry = host.model, host.entry
    facts = facts_of(entry) if entry is not None else None
    if model is None or facts is None:
        return 0, 0, 0
    share = 1 - min(1.0, model.n_gpu_layers / max(1, facts.n_layers))
    n_kv = facts.kv_bytes_per_token(model.kv_type) * model.n_cells
    n_weights = round(model.n_bytes * share)
    return n_weights, n_weights if model.is_mapped else 0, round(n_kv * share)


def _nvidia_gpus() -> list[Gpu]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={','.join(_NVIDIA)}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_NVIDIA_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return read_nvidia(said)


def read_nvidia(said: str) -> list[Gpu]:
    """Read what nvidia-smi says: a line for each GPU, mebibytes and percent; what it does not know is in brackets."""
    gpus = []
    for line in csv.reader(said.splitlines(), skipinitialspace=True):
        if len(line) == len(_NVIDIA):
            load, used, total, watts = map(_number, line[1:])
            gpus.append(Gpu(line[0], None if load is None else load / 100, _mib(used), _mib(total), watts))
    return gpus


def _amd_gpus(folder: Path) -> list[Gpu]:
    gpus = []
    for busy in sorted(folder.glob("card*/device/gpu_busy_percent")):
        load, used, total = (
            _read(busy.with_name(name)) for name in ("gpu_busy_percent", "mem_info_vram_used", "mem_info_vram_total")
        )
        sizes = (None if one is None else int(one) for one in (used, total))
        gpus.append(Gpu("AMD GPU", None if load is None else load / 100, *sizes))
    return gpus


def _read(path: Path) -> float | None:
    try:
        return _number(path.read_text())
    except OSError:
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mib(count: float | None) -> int | None:
    return None if count is None else int(count * 2**20)


async def get_machine(http: HttpRequest) -> Response:
    """Say what the machine is busy with: processor, memory by kind, GPUs, power."""
    pool = pool_of(http)
    meters: Meters = http.app.state.meters
    found: dict[str, Any] = asdict(await asyncio.to_thread(meters.read, list(pool.hosts)))
    return JSONResponse(found)
