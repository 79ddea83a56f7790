"""The checks, each of which returns facts and never raises for what it finds."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import __version__
from app.client.discovery import RunningServer, running_servers
from app.doctor.machine import nvidia_gpus, package_version
from app.doctor.report import BandwidthFacts, DoctorReport, FolderFacts, LlamaSystem, ServerFacts, SystemFacts
from app.environment import paths
from core.process.child_process import run_module
from core.values.engine_options import Device
from core.values.errors import SlipstreamError
from models.estimate.fit.plan import LoadSetting
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from core.machine.known_machine import MachineProbe

_CHILD_SECONDS = 60  # it takes one; a GPU's driver may take several at first
PROBE_SECONDS = 60.0  # it takes ten; beside busy programs it takes minutes, and what it finds is not kept


def examine(*, measure_again: bool = False, workers: Sequence[tuple[str, str]] = ()) -> DoctorReport:
    """Look at everything; ``measure_again`` forgets the remembered bandwidth. Takes some seconds.

    ``workers`` are pairs of a worker's name, as rpc://HOST:PORT, and its token.
    """
    from app.doctor.self_test import run_in_child
    from core.machine.known_machine import CPU

    with ThreadPoolExecutor(3) as pool:
        llama, selftest, servers = pool.submit(check_llama), pool.submit(run_in_child), pool.submit(check_servers)
        system, folders = check_system(), check_folders()
    # Alone, after the others: they would take a part of the bandwidth.
    speed, until = check_bandwidth(measure_again), time.monotonic() + PROBE_SECONDS
    probe = check_kernels(measure_again, lambda: time.monotonic() > until)
    if probe is not None:
        rates = {name: found.weights for name, found in probe.devices.items()}
        kernels = rates.pop(CPU, {})
        speed = replace(speed, kernels=kernels, gpus=rates, are_kernels_estimates=probe.is_estimate)
    lent, lost = check_workers(workers)
    own = tuple(
        # llama.cpp reports all memory of a processor as free.
        replace(one, free=min(one.free, system.ram_free)) if one.kind == "cpu" else one
        for one in llama.result().devices
    )
    found = replace(llama.result(), devices=(*own, *lent))
    return DoctorReport(system, found, selftest.result(), speed, folders, servers.result(), lost)


def check_workers(workers: Sequence[tuple[str, str]]) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """Return the devices that workers lend, and a sentence for each worker that cannot be used."""
    from core.remote_devices.borrowing import look

    lent, lost = [], []
    for address, token in workers:
        try:
            found = look(address, token)
        except SlipstreamError as error:
            lost.append(error.message)
            continue
        lent += [replace(found.device(one), description=one.description, kind=one.kind.value) for one in found.devices]
    return tuple(lent), tuple(lost)


def check_system() -> SystemFacts:
    """Look at machine and programs."""
    from core.machine.host import this_machine
    from models.estimate.fit.memory import free_memory, total_memory

    machine = this_machine()
    return SystemFacts(
        slipstream=__version__,
        os=_os_name(),
        python=platform.python_version(),
        qt=package_version("PySide6-Essentials"),
        cpu=machine.cpu,
        n_cores=machine.n_cores,
        n_threads=machine.n_threads,
        ram_total=total_memory(),
        ram_free=free_memory(),
        display=_display(),
        nvidia_gpu=next(iter(nvidia_gpus()), None),
    )


def check_llama() -> LlamaSystem:
    """Ask llama.cpp in a process of its own, which may die."""
    from app.doctor.self_test import DESCRIBE

    try:
        child = run_module("app.doctor.self_test", DESCRIBE, seconds=_CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        return LlamaSystem(
            problem=Sentence("llama.cpp did not list its devices within {seconds} s.", seconds=_CHILD_SECONDS)
        )
    return llama_facts(child.returncode, child.stdout, child.stderr)


def llama_facts(code: int, output: str, errors: str) -> LlamaSystem:
    """Return what a child that asked llama.cpp said, or how it ended."""
    if code < 0:
        return LlamaSystem(
            problem=Sentence(
                "llama.cpp crashed when it was asked for its devices ({signal}).", signal=_signal_name(-code)
            )
        )
    try:
        fields = json.loads(output)
        return LlamaSystem(
            package=fields["package"],
            version=fields["version"],
            features=tuple(fields["features"]),
            can_offload=bool(fields["can_offload"]),
            devices=tuple(Device(**device) for device in fields["devices"]),
            heads=dict(fields["heads"]),
        )
    except (ValueError, KeyError, TypeError):
        reason = (errors.strip().splitlines() or [f"exit code {code}"])[-1]
        return LlamaSystem(problem=Sentence("llama.cpp cannot be asked for its devices: {reason}", reason=reason))


def check_bandwidth(measure_again: bool = False, should_stop: Callable[[], bool] = lambda: False) -> BandwidthFacts:
    """Return the remembered bandwidth of this machine, else measure and remember it, unless it is to stop.

    A remembered estimate is measured again.
    """
    from core.machine.bandwidth import measure, remember, remembered
    from core.machine.host import this_machine
    from models.estimate.fit.memory import free_memory

    machine, folder = this_machine(), paths.cache_folder()
    known = None if measure_again else remembered(folder, machine)
    if known is not None and not known.is_estimate:
        return BandwidthFacts(known.bytes_per_second, known.n_threads, is_remembered=True)
    try:
        measured = measure(machine, free_memory(), should_stop=should_stop)
    except (SlipstreamError, MemoryError) as error:
        if known is not None:
            return BandwidthFacts(known.bytes_per_second, known.n_threads, is_remembered=True, is_estimate=True)
        return BandwidthFacts(problem=str(error) or Sentence("There is not enough memory to measure it."))
    try:
        kept = remember(folder, measured)
    except OSError as error:
        problem = Sentence(
            "It will be measured again next time: {folder} cannot be written ({reason}).",
            folder=folder,
            reason=system_reason(error),
        )
        return BandwidthFacts(
            measured.bytes_per_second, measured.n_threads, is_estimate=measured.is_estimate, problem=problem
        )
    return BandwidthFacts(
        kept.bytes_per_second, kept.n_threads, is_remembered=kept is not measured, is_estimate=kept.is_estimate
    )


def check_kernels(measure_again: bool = False, should_stop: Callable[[], bool] = lambda: False) -> MachineProbe | None:
    """Return the remembered probe of this machine, else probe it (some ten seconds); None if that fails or is stopped.

    One that other programs have disturbed is an estimate, and is not remembered.
    """
    from core.machine.host import this_machine
    from core.machine.known_machine import probe_machine, remember_probe, remembered_probe

    folder = paths.cache_folder()
    found = None if measure_again else remembered_probe(folder, this_machine())
    if (found is None or found.is_partial) and (found := probe_machine(should_stop)) is not None:
        with contextlib.suppress(OSError):  # the check of the bandwidth has said so already
            remember_probe(folder, found)
    return found


def check_gpus(should_stop: Callable[[], bool]) -> None:
    """Measure and remember what most models need to know of GPUs, unless more is known: a second or two."""
    from core.machine.host import this_machine
    from core.machine.known_machine import probe_machine, remember_probe, remembered_probe

    folder = paths.cache_folder()
    if remembered_probe(folder, this_machine()) is None and (found := probe_machine(should_stop, is_partial=True)):
        with contextlib.suppress(OSError):
            remember_probe(folder, found)


def check_folders() -> tuple[FolderFacts, ...]:
    """See which folders can be written."""
    from core.kv_cache import disk_cache

    prefixes = paths.cache_folder() / disk_cache.FOLDER
    folders = {
        "data": paths.data_folder(),
        "models": paths.models_folder(),
        "config": paths.config_folder(),
        "cache": paths.cache_folder(),
        "prefixes": prefixes,
        "log": paths.log_folder(),
        "runtime": paths.runtime_folder(),
    }
    sizes = {"prefixes": disk_cache.size(paths.cache_folder())}
    return tuple(
        FolderFacts(purpose, str(path), write_problem(path), sizes.get(purpose)) for purpose, path in folders.items()
    )


def write_problem(folder: Path) -> str | None:
    """Return why nothing can be written to ``folder``, or None. One that does not exist yet is judged by its parent."""
    existing = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
    if not existing.is_dir():
        return Sentence("{existing} is not a folder", existing=existing)
    if existing != folder:
        can_write = os.access(existing, os.W_OK | os.X_OK)
        return None if can_write else Sentence("{existing} cannot be written", existing=existing)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return system_reason(error)


def check_servers() -> tuple[ServerFacts, ...]:
    """Ask the running servers how they are."""
    return tuple(_server_facts(server) for server in running_servers())


def _server_facts(server: RunningServer) -> ServerFacts:
    from app.client.http_client import Client

    try:
        state = Client(server.url, server.api_key).state()
    except SlipstreamError:
        return ServerFacts(server.pid, server.url, server.model, None)
    return ServerFacts(server.pid, server.url, state.model or server.model, state.phase, _setting_text(state.fields))


def _setting_text(fields: Mapping[str, Any]) -> str:
    """Say how a model was loaded, by what its server tells of it; "" while there is none."""
    try:
        layers, experts, n_ctx = (int(fields[name]) for name in ("n_gpu_layers", "n_cpu_moe", "n_ctx"))
        return LoadSetting(layers, experts, str(fields["kv_type"]), n_ctx).text
    except (KeyError, TypeError, ValueError):
        return ""


def _os_name() -> str:
    if sys.platform != "linux":
        return platform.platform(terse=True)
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        name = "Linux"
    return f"{name} ({platform.machine()}, kernel {platform.release()})"


def _display() -> str | None:
    if sys.platform != "linux":
        return "the desktop"
    return os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
