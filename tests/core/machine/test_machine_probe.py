"""The probe of this machine: real kernels and a real model in a process of its own, and the file that keeps it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core.llama.devices import list_devices
from core.machine import kernel_probe
from core.machine.host import this_machine
from core.machine.kernel_probe import MOST_USED, PROBED, OpTimer, cache_size, probe
from core.machine.known_machine import (
    CPU,
    ONLY_GPUS,
    PROBE_FILE,
    MachineProbe,
    probe_machine,
    remember_probe,
    remembered_probe,
)
from core.values.engine_options import Device
from models.estimate.speed.probe import Probe
from models.formatting.program import PROGRAM_FOLDER
from tests.support.waiting import until

HERE = this_machine()
FOUND = MachineProbe(HERE.cpu, HERE.ram, {"CPU": Probe({"Q8_0": 20e9}, {}, 1e-6, 0.4)})


def test_every_type_is_multiplied_and_attention_reads_every_cache() -> None:
    cpu = next(device for device in list_devices() if device.name == CPU)
    found = probe(cpu, n_threads=1, n_bytes=8 << 20, seconds=0.1)
    assert found is not None
    assert set(found.weights) == set(PROBED)
    assert set(found.cached) == {"F16", "Q8_0", "Q4_0"}
    assert all(rate > 1e7 for rate in [*found.weights.values(), *found.cached.values()])
    assert 0 < found.node < 0.01


def test_a_gpu_reads_more_than_its_cache_holds_and_shared_keys_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = Device(CPU, "a processor that stands in", "gpu", free=8 << 30, total=8 << 30)
    monkeypatch.setattr(kernel_probe, "list_devices", lambda: (stand_in,))
    # Where everything takes a second, rates are the bytes that are read.
    monkeypatch.setattr(OpTimer, "time", lambda self, nodes, buffer: 1.0)
    assert kernel_probe.main() == 0
    found = json.loads(capsys.readouterr().out)["devices"][CPU]
    assert all(1 << 28 <= n_bytes <= 1 << 29 for n_bytes in [*found["weights"].values(), *found["cached"].values()])


def test_of_gpus_alone_the_most_used_types_are_measured_soon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here,) = (device for device in list_devices() if device.kind == "cpu")
    gpu = Device(CPU, "a processor that stands in", "gpu", free=1 << 30, total=1 << 30)
    monkeypatch.setattr(kernel_probe, "list_devices", lambda: (gpu, here))
    monkeypatch.setattr(OpTimer, "time", lambda self, nodes, buffer: 1.0)
    monkeypatch.setattr(sys, "argv", ["kernel_probe", ONLY_GPUS])
    assert kernel_probe.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert found["is_partial"]
    assert set(found["devices"][CPU]["weights"]) == set(MOST_USED)
    assert found["devices"][CPU]["cached"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a process in the middle of a computation")
def test_a_probe_ends_with_the_process_that_asked_for_it() -> None:
    code = "from core.machine.known_machine import probe_machine; probe_machine()"
    asking = subprocess.Popen([sys.executable, "-c", code], cwd=PROGRAM_FOLDER)
    (probing,) = until(psutil.Process(asking.pid).children)
    until(lambda: probing.cpu_times().user > 1.5)  # it measures
    probing.suspend()  # so that it cannot end by itself
    asking.kill()
    asking.wait()
    assert psutil.wait_procs([probing], timeout=20)[1] == []


def test_a_device_that_is_not_there_has_no_probe() -> None:
    cpu = list_devices()[0]
    assert probe(dataclasses.replace(cpu, name="Warp9"), n_threads=1, n_bytes=1 << 20) is None


def test_a_probe_that_fails_leaves_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess("probe", 1, "{}", "")
    monkeypatch.setattr("core.machine.known_machine.run_module", lambda *words, **how: failed)
    assert probe_machine() is None


def test_another_machine_remembers_nothing(tmp_path: Path) -> None:
    remember_probe(tmp_path, FOUND)
    assert remembered_probe(tmp_path, HERE) == FOUND
    assert remembered_probe(tmp_path, dataclasses.replace(HERE, cpu="Another")) is None


@pytest.mark.parametrize("program", [None, "1, llama-cpp-python 0.3.1"])
def test_what_another_version_measured_is_measured_again(tmp_path: Path, program: str | None) -> None:
    remember_probe(tmp_path, FOUND)
    fields = json.loads((tmp_path / PROBE_FILE).read_text())
    del fields["program"]
    (tmp_path / PROBE_FILE).write_text(json.dumps(fields | ({"program": program} if program else {})))
    assert remembered_probe(tmp_path, HERE) is None


def test_a_machine_that_can_use_a_gpu_now_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember_probe(tmp_path, FOUND)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "libggml-cuda.so").touch()
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(libraries))
    assert remembered_probe(tmp_path, HERE) is None
    remember_probe(tmp_path, FOUND)
    assert remembered_probe(tmp_path, HERE) == FOUND


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cpu": "x", "ram": 1, "devices": 5, "timed": []}', "[" * 9999])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / PROBE_FILE).write_text(content)
    assert remembered_probe(tmp_path, HERE) is None


def test_a_device_with_nonsense_is_left_out(tmp_path: Path) -> None:
    remember_probe(tmp_path, FOUND)
    fields = json.loads((tmp_path / PROBE_FILE).read_text())
    fields["devices"]["GPU"] = {"weights": {"Q8_0": -5}, "node": 0, "row": 0}
    (tmp_path / PROBE_FILE).write_text(json.dumps(fields))
    assert remembered_probe(tmp_path, HERE) == FOUND


SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((73, 50, 49, 51, 48, 33, 27, 26), 64),  # the smallest lies in a cache of the core's own
        ((50, 50, 50, 26, 26, 26, 26, 26), 16),
        ((50, 50, 20, 50, 50, 26, 26, 26), 64),  # one was disturbed
        ((28, 27, 26, 26, 26, 25, 26, 25), 0),  # computing takes as long as reading
        ((50, 50, 50, 50, 50, 50, 50, 49), 0),  # all of it fits
    ],
)
def test_the_largest_size_that_is_read_fast(rates: tuple[int, ...], expected: int) -> None:
    assert cache_size(dict(zip(SIZES, rates, strict=True))) == expected


def test_nothing_measured() -> None:
    assert cache_size({}) == 0.0


def test_a_probe_beside_busy_programs_is_an_estimate_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_probe, "list_devices", lambda: ())
    for is_busy in (True, False):
        monkeypatch.setattr(kernel_probe, "others_are_busy", lambda others, is_busy=is_busy: is_busy)
        assert kernel_probe.main() == 0
        assert json.loads(capsys.readouterr().out)["is_estimate"] is is_busy
        remember_probe(tmp_path, dataclasses.replace(FOUND, is_estimate=is_busy))
        assert remembered_probe(tmp_path, HERE) == (None if is_busy else FOUND)
