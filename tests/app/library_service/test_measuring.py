"""Verifications and benchmarks over the library's routes: followed, stopped, and refused beside other work."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.client.discovery import enlist
from app.doctor.report import BandwidthFacts, LlamaSystem
from app.environment.paths import cache_folder
from app.library.errors import LibraryError
from app.library_service.machine import MachineService
from app.library_service.outbox import Stop
from app.library_service.service import LibraryService
from core.machine.bandwidth import Bandwidth, remember
from core.machine.host import this_machine
from core.machine.known_machine import MachineProbe, as_dict, remembered_probe
from core.values.engine_options import Device
from core.values.errors import SlipstreamError
from models.estimate.speed.probe import Probe
from models.estimate.speed.work import STEP
from models.formatting.program import PROGRAM_FOLDER
from models.library import requests as ask
from models.library.requests import PREFIX
from models.library.values import GpuFacts, MeasuringStep, Trouble
from tests.support.library_client import LibraryClient
from tests.support.waiting import until
from tools.stand_ins.fake_openai import FakeServer


@pytest.mark.slow
def test_a_model_is_verified_with_progress_and_a_report(library: LibraryClient) -> None:
    with library.parts(ask.Verify("ember-q8_0", "ember-draft-q8_0", max_tokens=4, seeds=0)) as parts:
        steps = list(parts)
    assert all(isinstance(step, MeasuringStep) for step in steps), steps[-1]
    assert [step.share for step in steps if step.stage == "Verifying"] == sorted(
        step.share for step in steps if step.stage == "Verifying"
    )
    assert {"Loading ember-q8_0", "Verifying"} <= {step.stage for step in steps}
    report = steps[-1].report
    assert report is not None
    assert (report["model"]["name"], report["model"]["draft"]) == ("ember-q8_0", "ember-draft-q8_0")
    assert report["summary"]["beyond_near_tie"] == 0
    assert len(report["rows"]) == 12


def test_a_benchmark_is_stopped_with_all_that_it_started(library: LibraryClient) -> None:
    benches = {bench.name: bench.title for bench in library.get(ask.ListBenches())}
    assert benches["engine"]
    with library.parts(ask.RunBench("engine")) as parts:
        first = next(parts)
        assert (first.share, first.report) == (0.0, None)
        busy = library.ask(ask.RunBench("engine"))
        assert "Something is being measured already" in busy.sentence
        library.get(ask.StopMeasuring())
        *_, last = parts
    assert isinstance(last, Trouble)
    assert last.sentence == "It was stopped."


@pytest.mark.parametrize("streams", [True, False])
def test_a_benchmark_ends_when_its_client_leaves(library: LibraryClient, streams: bool) -> None:
    def can_begin() -> bool:
        with library.parts(ask.RunBench("engine")) as parts:
            return isinstance(next(parts), MeasuringStep)

    if streams:
        assert can_begin()
    else:
        with pytest.raises(httpx.ReadTimeout):
            library.http.post(f"{PREFIX}benches", json={"name": "engine"}, timeout=1.0)
    until(can_begin)
    library.get(ask.StopMeasuring())


def test_what_a_command_says_may_look_like_its_progress(open_library, tmp_path: Path) -> None:
    odd = ("{", "{}", '{"stage": "here"}', '{"stage": [], "share": []}', "1", "[" * 100_000)
    said = [line for number, one in enumerate(odd) for line in (one, f"It goes on after {number}.")]
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nprint(*{said!r}, sep='\\n', file=sys.stderr)")
    library = open_library(PYTHONPATH=os.pathsep.join((str(PROGRAM_FOLDER), str(tmp_path))))
    with library.parts(ask.Verify("ember-q8_0", max_tokens=0)) as parts:
        *steps, last = parts
    assert [step for step in steps if step.stage in said[1::2]] == [MeasuringStep(one, 0.0) for one in said[1::2]]
    assert "max-tokens" in last.sentence


def test_two_measurements_of_the_machine_are_made_one_after_the_other(
    open_library, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, at_work, alone = this_machine(), threading.Semaphore(), []
    has_begun, is_over = threading.Event(), threading.Event()

    def kernels(should_stop: Callable[[], bool], measure_again: bool = False) -> MachineProbe | None:
        alone.append(at_work.acquire(blocking=False))
        has_begun.set()
        is_first = len(alone) == 1
        if is_first:
            until(should_stop)
        at_work.release()
        return None if is_first else MachineProbe(machine.cpu, machine.ram, {})

    monkeypatch.setattr("app.library_service.machine.check_bandwidth", lambda **asked: BandwidthFacts(1e9, 2))
    monkeypatch.setattr("app.library_service.machine.check_kernels", kernels)
    monkeypatch.setattr("app.library_service.machine.other_work", lambda: None)
    monkeypatch.setattr("app.library_service.machine.others_are_busy", lambda others: False)
    monkeypatch.setattr("app.library_service.machine._QUIET_SECONDS", 0.01)
    service = MachineService(is_over.set)
    service.measure(Stop(), is_first=True)
    assert has_begun.wait(60), "what is left for later is measured"
    service.measure(Stop())
    assert is_over.wait(60)
    assert alone == [True, True, True]


def test_the_machine_is_measured_until_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    service, stop = MachineService(), Stop()

    def kernels(measure_again: bool, should_stop: Callable[[], bool]) -> None:
        stop.set()  # as a click in the window while the processor is measured
        assert should_stop()

    monkeypatch.setattr("app.library_service.machine.check_bandwidth", lambda **asked: BandwidthFacts(1e9, 2))
    monkeypatch.setattr("app.library_service.machine.check_kernels", kernels)
    monkeypatch.setattr("app.library_service.machine.other_work", lambda: None)
    with pytest.raises(LibraryError, match="was stopped"):
        service.measure(stop)
    monkeypatch.setattr("app.library_service.machine.check_kernels", lambda measure_again, should_stop: None)
    service.measure(Stop())


def test_what_an_update_made_unknown_is_measured_in_a_quiet_moment(
    open_library, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, asked = this_machine(), []
    told = threading.Event()

    def kernels(should_stop: Callable[[], bool]) -> MachineProbe | None:
        asked.append(should_stop())
        return MachineProbe(machine.cpu, machine.ram, {}) if len(asked) > 1 else None  # the first try fails

    def tell(kind: str, value: object) -> None:
        if kind == "models":
            told.set()

    monkeypatch.setattr("app.library_service.machine._QUIET_SECONDS", 0.01)
    monkeypatch.setattr("app.library_service.machine.others_are_busy", lambda others: False)
    monkeypatch.setattr("app.library_service.machine.check_kernels", kernels)
    never_measured = LibraryService(tell)
    never_measured.start()
    never_measured.answer(ask.ShowMachine())
    assert not told.wait(0.3)
    assert asked == []
    never_measured.stop()
    cache_folder().mkdir(parents=True, exist_ok=True)
    remember(cache_folder(), Bandwidth(1e10, 2, 1 << 28, machine.cpu, machine.ram, is_estimate=False))
    service = LibraryService(tell)
    service.start()
    service.answer(ask.ShowMachine())
    assert told.wait(10)
    assert asked == [False, False]
    service.stop()


def test_a_gpu_is_measured_with_the_memory_and_all_else_in_a_quiet_moment(
    open_library, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, asked, measured = this_machine(), [], threading.Event()

    def measure(module: str, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
        asked.append(arguments)
        devices = {"CUDA0": Probe({"F16": 3.6e12, "Q4_K": 1.8e12})} | (
            {} if arguments else {"CPU": Probe({"F16": 9e10})}
        )
        found = MachineProbe(machine.cpu, machine.ram, devices, is_partial=bool(arguments))
        return subprocess.CompletedProcess(module, 0, json.dumps(as_dict(found)), "")

    gpu = Device("CUDA0", "A card", "gpu", 8 << 30, 8 << 30)
    monkeypatch.setattr("core.llama.build.gpu_backends", lambda: ("cuda",))
    monkeypatch.setattr("app.doctor.checks.check_llama", lambda: LlamaSystem(devices=(gpu,)))
    monkeypatch.setattr("core.machine.known_machine.run_module", measure)
    monkeypatch.setattr("app.library_service.machine.check_bandwidth", lambda **asked: BandwidthFacts(9e10, 2))
    monkeypatch.setattr("app.library_service.machine.other_work", lambda: None)
    monkeypatch.setattr("app.library_service.machine._QUIET_SECONDS", 3_600.0)
    service = MachineService(measured.set)
    service.measure(Stop(), is_first=True)
    assert asked == [("--only-gpus",)]
    assert service.facts().gpus == (GpuFacts("CUDA0", 8 << 30, 3.6e12),)
    assert f"CUDA0: {STEP}" in service.now().machine.efficiency.constants, "so speeds there are predicted"
    service.measure(Stop(), is_first=True)
    assert asked == [("--only-gpus",)], "it is known"
    monkeypatch.setattr("app.library_service.machine._QUIET_SECONDS", 0.01)
    monkeypatch.setattr("app.library_service.machine.others_are_busy", lambda others: False)
    again = MachineService(measured.set)
    again.measure(Stop(), is_first=True)
    assert measured.wait(10)
    assert asked == [("--only-gpus",), ()]
    known = remembered_probe(cache_folder(), machine)
    assert known is not None
    assert (set(known.devices), known.is_partial) == ({"CPU", "CUDA0"}, False)


@pytest.mark.parametrize(
    "request_",
    [
        ask.Verify("ember-q8_0"),
        ask.RunBench("engine"),
        ask.TestPair("ember-q8_0"),
        ask.MeasureMachine(),
        ask.MoveModels("elsewhere"),
    ],
)
def test_what_is_stopped_before_its_thread_begins_does_not_begin(
    open_library, request_: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service = LibraryService()
    begin, later = service.take(request_), service.take(ask.ListBenches())
    service.answer(ask.StopMeasuring())
    service.answer(ask.StopPairTest())
    service.answer(ask.CancelMove())
    with pytest.raises(SlipstreamError, match=r"stopped|cancelled"):
        list(begin())
    assert later() != ()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ask.Verify("nothing-there"), "nothing-there"),
        (ask.Verify("ember-q8_0", "nothing-there"), "nothing-there"),
        (ask.Verify("ember-q8_0", max_tokens=0), "max-tokens"),
        (ask.RunBench("../engine"), "There is no benchmark called '../engine'. Benchmarks: "),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(library: LibraryClient, request_: object, words: str) -> None:
    found = library.ask(request_)
    assert isinstance(found, Trouble)
    assert words in found.sentence


def test_nothing_is_measured_beside_replies(library: LibraryClient, fake: FakeServer) -> None:
    fake.n_active = 1
    enlist(host="127.0.0.1", port=int(fake.url.rpartition(":")[2]), api_key=None, model=None)
    found = library.ask(ask.Verify("ember-q8_0"))
    assert isinstance(found, Trouble)
    assert "at work on replies" in found.sentence
