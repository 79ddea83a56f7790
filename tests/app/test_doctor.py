from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from app.cli import main as cli
from app.client.discovery import RunningServer
from app.client.http_client import ServerStatus
from app.doctor import checks
from app.doctor.machine import nvidia_gpus
from app.doctor.report import (
    BandwidthFacts,
    DoctorReport,
    FolderFacts,
    LlamaSystem,
    ServerFacts,
    SystemFacts,
    faults,
    remedies,
    render,
)
from app.doctor.self_test import explain
from app.environment.exit_codes import ExitCode
from core.machine import bandwidth, known_machine
from core.machine.host import this_machine
from core.machine.known_machine import MachineProbe, remembered_probe
from models.estimate.speed.probe import Probe

LLAMA = {
    "package": "0.3.36",
    "version": "1",
    "features": ["AVX2"],
    "can_offload": False,
    "devices": [{"name": "CPU", "description": "A chip", "kind": "cpu", "free": 5, "total": 8}],
    "heads": {"mtp": None, "eagle3": "This build of llama.cpp lacks a function."},
}
GOOD = DoctorReport(
    system=SystemFacts(
        slipstream="0.1.0",
        os="An OS",
        python="3.12.1",
        qt="6.12.0",
        cpu="A chip",
        n_cores=4,
        n_threads=8,
        ram_total=16 * 10**9,
        ram_free=8 * 10**9,
        display=":0",
        nvidia_gpu=None,
    ),
    llama=checks.llama_facts(0, json.dumps(LLAMA), ""),
    selftest=None,
    bandwidth=BandwidthFacts(20e9, 2),
    folders=(FolderFacts("data", "/data"),),
    servers=(),
)


def test_a_healthy_machine_gets_no_advice() -> None:
    assert remedies(GOOD) == ()
    text = render(GOOD)
    assert "All is well." in text
    assert "20.0 GB/s of memory reads with 2 threads (just measured)" in text
    assert "CPU: A chip (cpu)" in text
    assert "mtp heads: can be used" in text
    assert "eagle3 heads: This build of llama.cpp lacks a function." in text


def test_a_gpu_comes_before_the_processor_with_what_it_was_measured_to_do() -> None:
    rates = {"F16": 3_648e9, "Q8_0": 2_853e9, "Q4_K": 1_857e9, "IQ2_XXS": 900e9}
    facts = dataclasses.replace(GOOD.bandwidth, kernels={"Q8_0": 61.4e9}, gpus={"CUDA0": rates})
    text = render(dataclasses.replace(GOOD, bandwidth=facts))
    said = [line.strip() for line in text.partition("Speed\n")[2].splitlines()[:5]]
    assert said == [
        "CUDA0       F16 3,648.0, Q8_0 2,853.0, Q4_K 1,857.0 GB/s of weights",
        "a model of 4 GB on it writes at most about 912.0 tokens/s for one reader",
        "bandwidth   20.0 GB/s of memory reads with 2 threads (just measured)",
        "a model of 4 GB in main memory writes at most about 5.0 tokens/s for one reader",
        "kernels     Q8_0 61.4 GB/s of weights on the processor",
    ]
    unknown = dataclasses.replace(facts, bytes_per_second=None, problem="Too little memory.")
    assert "CUDA0       F16 3,648.0" in render(dataclasses.replace(GOOD, bandwidth=unknown))


def test_each_problem_has_its_advice() -> None:
    system = dataclasses.replace(GOOD.system, ram_free=10**9, qt=None, nvidia_gpu="GPU 0: A card")
    report = dataclasses.replace(
        GOOD,
        system=system,
        selftest="llama.cpp does not work here.",
        folders=(FolderFacts("data", "/data", "Read-only file system"),),
        servers=(ServerFacts(7, "http://127.0.0.1:1", "ember-q8_0", None),),
        bandwidth=BandwidthFacts(problem="Too little memory."),
    )
    sentences = remedies(report)
    assert faults(report) == ("llama.cpp does not work here.",)
    for part in ("does not work here", "/data", "SLIPSTREAM_HOME", "without CUDA", "1.0 GB", "PySide6", "process 7"):
        assert any(part in sentence for sentence in sentences), part
        assert part in render(report)


@pytest.mark.parametrize(
    ("code", "output", "errors", "sentence"),
    [
        (-11, "", "", "SIGSEGV"),
        (-4, "", "", "SIGILL"),
        (1, "", "Traceback\nModuleNotFoundError: No module named 'llama_cpp'\n", "No module named 'llama_cpp'"),
        (0, "{}", "", "cannot be asked"),
    ],
)
def test_a_crash_of_llama_becomes_a_line(code: int, output: str, errors: str, sentence: str) -> None:
    problem = checks.llama_facts(code, output, errors).problem
    assert problem is not None
    assert sentence in problem
    assert faults(dataclasses.replace(GOOD, llama=LlamaSystem(problem=problem))) == (problem,)


def test_folders_are_tried(tmp_path: Path) -> None:
    assert checks.write_problem(tmp_path) is None
    assert checks.write_problem(tmp_path / "not" / "yet") is None
    (tmp_path / "file").write_text("")
    assert "is not a folder" in (checks.write_problem(tmp_path / "file" / "below") or "")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    if os.path.isdir("/proc/self"):
        assert checks.write_problem(Path("/proc/self")) is not None


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the memory be measured for a moment only."""
    monkeypatch.setattr(bandwidth, "LARGEST_SET", bandwidth.SMALLEST_SET)
    monkeypatch.setattr(bandwidth, "measure", partial(bandwidth.measure, seconds=0.02))


def test_the_whole_report_as_json(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    be_quick(monkeypatch)
    monkeypatch.setattr(bandwidth, "others_are_busy", lambda others: False)
    probe = MachineProbe(
        this_machine().cpu, this_machine().ram, {"CPU": Probe({"Q8_0": 20e9}), "GPU": Probe({"F16": 9e11})}
    )
    monkeypatch.setattr(known_machine, "probe_machine", lambda should_stop=None: probe)
    assert cli.main(["doctor", "--json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert report["selftest"] is None
    assert report["llama"]["package"] == "0.3.36"
    cpu = report["llama"]["devices"][0]
    assert 0 < cpu["free"] <= report["system"]["ram_free"] < cpu["total"], "it says the same of the memory twice"
    assert report["bandwidth"]["bytes_per_second"] > 1e8
    assert report["bandwidth"]["is_remembered"] is False
    assert {folder["purpose"] for folder in report["folders"]} >= {"data", "models", "cache", "runtime"}
    assert checks.check_bandwidth().is_remembered
    assert report["bandwidth"]["kernels"] == {"Q8_0": 20e9}
    assert report["bandwidth"]["gpus"] == {"GPU": {"F16": 9e11}}
    assert remembered_probe(home / "cache", this_machine()) == probe


def test_what_other_programs_disturbed_is_measured_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_machine()
    disturbed = MachineProbe(here.cpu, here.ram, {"CPU": Probe({"Q8_0": 2e9})}, is_estimate=True)
    probe = MachineProbe(here.cpu, here.ram, {"CPU": Probe({"Q8_0": 20e9})})
    found = iter([disturbed, probe, disturbed])
    monkeypatch.setattr(known_machine, "probe_machine", lambda should_stop=None: next(found))
    assert checks.check_kernels() == disturbed
    assert checks.check_kernels() == probe
    assert checks.check_kernels() == probe, "it is known"
    assert checks.check_kernels(measure_again=True) == disturbed
    assert remembered_probe(home / "cache", here) == probe, "an estimate replaces no measurement"
    facts = dataclasses.replace(GOOD.bandwidth, kernels={"Q8_0": 2e9}, are_kernels_estimates=True)
    assert "2.0 GB/s of weights (while other programs were busy" in render(dataclasses.replace(GOOD, bandwidth=facts))


def test_other_programs_make_nobody_wait_for_minutes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(should_stop: Callable[[], bool]) -> None:
        assert should_stop()

    be_quick(monkeypatch)
    monkeypatch.setattr(checks, "PROBE_SECONDS", -1.0)
    monkeypatch.setattr(known_machine, "probe_machine", probe)
    assert "other programs left it too little time" in render(checks.examine())


def test_ctrl_c_leaves_no_line_of_progress_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def reconfigure(self, **_: object) -> None:
            pass

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(checks, "examine", interrupt)
    assert cli.main(["doctor"]) == ExitCode.INTERRUPTED
    assert terminal.getvalue().endswith("...\r\x1b[K")


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "file"))
    be_quick(monkeypatch)
    found = checks.check_bandwidth()
    assert found.bytes_per_second
    assert "cannot be written" in (found.problem or "")


def test_memory_is_measured_again_where_other_programs_were_busy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_machine()
    slow = bandwidth.Bandwidth(2e9, 1, 1 << 30, here.cpu, here.ram, is_estimate=True)
    taken = [slow, dataclasses.replace(slow, bytes_per_second=1e9), dataclasses.replace(slow, is_estimate=False)]
    monkeypatch.setattr(bandwidth, "measure", lambda machine, free, should_stop: taken.pop(0))
    found = [checks.check_bandwidth() for _ in range(4)]
    assert [(one.is_estimate, one.is_remembered) for one in found] == [
        (True, False), (True, True), (False, False), (False, True)
    ]  # fmt: skip
    assert {one.bytes_per_second for one in found} == {2e9}
    said = [render(dataclasses.replace(GOOD, bandwidth=one)) for one in found]
    assert ["other programs were busy" in words for words in said] == [True, True, False, False]


def test_a_running_server_says_how_its_model_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"n_gpu_layers": 20, "n_cpu_moe": 12, "kv_type": "q8_0", "n_ctx": 8192}
    server = RunningServer(7, "127.0.0.1", 1, "http://127.0.0.1:1", None, "a-model", 0.0)
    monkeypatch.setattr(checks, "running_servers", lambda: (server,))
    for told, expected in ((fields, "ready, 20 layers on GPUs, experts of 12 layers on the processor, q8_0"), ({}, "")):
        monkeypatch.setattr(
            "app.client.http_client.Client.state", lambda self, told=told: ServerStatus("ready", fields=told)
        )
        (found,) = checks.check_servers()
        assert expected in render(dataclasses.replace(GOOD, servers=(found,)))
        assert bool(found.setting) == bool(told)


def test_the_gpus_are_named_as_their_driver_names_them(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\necho "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"\necho "GPU 1: NVIDIA T4"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert nvidia_gpus() == ["NVIDIA H100 80GB HBM3", "NVIDIA T4"]
    tool.write_text('#!/bin/sh\necho "NVIDIA-SMI has failed"\nexit 9\n')
    assert nvidia_gpus() == []


def test_what_a_gpu_says_before_it_aborts_the_self_test_is_told() -> None:
    logged = "CUDA error: no kernel image is available for execution on the device"
    errors = f"llama.cpp error: {logged}\nllama.cpp error:   cudaGetLastError()\nggml-cuda.cu:109: CUDA error\n"
    assert f"signal 6 ({logged}) in the self-test" in (explain(-6, "", errors) or "")
    assert f"could not load it. {logged} " in (explain(1, "llama.cpp could not load it.\n", errors) or "")
    assert explain(0, "", errors) is None
