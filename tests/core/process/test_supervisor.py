"""The supervisor with real engine processes: every request ends once, and the engine comes back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import psutil
import pytest

from app.doctor.self_test import DESCRIBE
from core.machine.host import core_count
from core.process.child_process import run_module
from core.process.engine_process import EngineProcess, EnginesAtWork
from core.process.supervisor import Supervisor
from core.values.engine_options import EngineOptions
from core.values.errors import EngineUnavailable, LoadFailed
from core.values.messages import (
    Command,
    EnginePhase,
    EngineState,
    Event,
    FailureKind,
    FinishReason,
    ShareCores,
    Snapshot,
)
from core.values.request import Request, SamplingParams, TokenizeRequest
from tests.support import measured
from tests.support.engines import Ledger
from tests.support.fork_server import stood_for
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, FOX, STARTER, SURE
from tests.support.waiting import until, wait_ready
from tools.model_factory.gguf_factory import MetadataEntry, Recipe, metadata_of, reader_of, tensors_of, write

pytestmark = pytest.mark.usefixtures("forked_children")


class Office:
    """A supervisor with a ledger of all it says."""

    def __init__(self, folder: Path, at_work: EnginesAtWork | None = None) -> None:
        self.ledger = Ledger()
        self.states: list[EngineState] = []
        self.snapshots: list[Snapshot] = []
        self._heard = threading.Condition()
        measured.give(folder / "cache")
        self.supervisor = Supervisor(
            self._listen, log_folder=folder / "log", cache_folder=folder / "cache", at_work=at_work
        )

    def _listen(self, events: tuple[Event, ...]) -> None:
        with self._heard:
            self.states += [event for event in events if isinstance(event, EngineState)]
            self.snapshots += [event for event in events if isinstance(event, Snapshot)]
            self.ledger.add(tuple(event for event in events if not isinstance(event, EngineState | Snapshot)))
            self._heard.notify_all()

    def wait(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        with self._heard:
            assert self._heard.wait_for(condition, seconds), f"waited {seconds} s in vain"

    def wait_ended(self, *ids: str) -> None:
        self.wait(lambda: set(ids) <= set(self.ledger.ended))

    @property
    def phases(self) -> list[EnginePhase]:
        phases: list[EnginePhase] = []
        for state in self.states:
            if not phases or phases[-1] is not state.phase:
                phases.append(state.phase)
        return phases


def engines(of: int | None = None) -> list[psutil.Process]:
    """The engines' processes that this process or another has started, of which one may have no model yet."""
    found = []
    for child in psutil.Process(of).children():
        with suppress(psutil.Error):  # it has ended
            if "core.loading.worker" in child.cmdline():
                found.append(until(lambda child=child: itself(child), pause=0.001))
    return found


def itself(child: psutil.Process) -> psutil.Process | None:
    """The engine's process, which the client of a fork server stands for as soon as there is one."""
    found = stood_for(child)
    return None if found == child and any("fork_client" in word for word in child.cmdline()) else found


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path)
    yield made
    made.supervisor.close()


def options(path: Path = EMBER) -> EngineOptions:
    return EngineOptions(str(path), n_threads=1)


def test_a_request_runs_in_another_process_and_snapshots_come_while_it_works_and_one_when_it_is_done(
    office: Office,
) -> None:
    office.supervisor.load(options())
    office.supervisor.submit(Request("a", SURE, 20, sampling=SamplingParams(temperature=0)))
    office.wait_ended("a")
    assert office.ledger.text["a"].startswith("A small draft model")
    assert office.phases == [EnginePhase.LOADING, EnginePhase.READY]
    assert engines()
    model = wait_ready(office.supervisor)
    assert (model.architecture, model.n_vocab, model.n_slots) == ("llama", 4096, 4)
    assert model.chat_template is not None
    office.wait(lambda: any(snapshot.is_idle for snapshot in office.snapshots))
    office.snapshots.clear()
    office.supervisor.submit(Request("b", FOX, 900, sampling=ENDLESS))
    office.wait(lambda: sum(not one.is_idle for one in office.snapshots) >= 2 and office.snapshots[-1].is_idle)
    # A second one of an idle engine says what the disk has by now.
    at_work = [snapshot for snapshot in office.snapshots if not snapshot.is_idle]
    assert all(snapshot.n_active == 1 for snapshot in at_work)
    assert max(snapshot.decode_rate for snapshot in at_work) > 0
    assert max(snapshot.bytes_per_second for snapshot in at_work) > 0
    assert office.snapshots[-1].n_active == 0


def test_no_request_waits_for_a_long_text_that_is_only_counted(office: Office) -> None:
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    office.supervisor.submit(TokenizeRequest("long", ("x" * 1_500_000,)))
    office.supervisor.submit(Request("a", SURE, 3))
    office.wait_ended("a")
    assert "long" not in office.ledger.ended
    office.wait_ended("long")


def test_an_engine_that_cannot_be_told_a_command_ends_so_that_its_requests_do(tmp_path: Path) -> None:
    process = EngineProcess(tmp_path)
    process.send(lambda: None)  # what cannot be pickled
    assert process.child.wait() == -signal.SIGKILL
    process.close()


def test_a_process_that_was_started_ahead_loads_the_model(office: Office) -> None:
    office.supervisor.prepare()
    office.supervisor.prepare()
    (ahead,) = until(engines)
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    assert engines() == [ahead]
    office.supervisor.prepare()
    assert engines() == [ahead], "one that runs is not doubled"


def test_a_process_that_was_started_ahead_and_is_gone_is_replaced(office: Office) -> None:
    office.supervisor.prepare()
    (ahead,) = until(engines)
    alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    ahead.kill()
    until(lambda: any(child.status() == psutil.STATUS_ZOMBIE for child in alive))
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    assert office.phases == [EnginePhase.LOADING, EnginePhase.READY]


def test_a_process_that_was_started_ahead_leaves_with_the_supervisor(office: Office) -> None:
    office.supervisor.prepare()
    (spare,) = until(engines)
    office.supervisor.close()
    assert psutil.wait_procs([spare], timeout=60)[1] == []
    assert engines() == []


def test_four_streams_end_when_the_engine_is_killed_and_the_next_request_works(
    office: Office, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    class NotedTimer(threading.Timer):
        def __init__(self, interval: float, *arguments: Any, **options: Any) -> None:
            delays.append(interval)
            super().__init__(interval, *arguments, **options)

    monkeypatch.setattr("core.process.supervisor.threading.Timer", NotedTimer)
    office.supervisor.load(options())
    for name in "abcd":
        office.supervisor.submit(Request(name, FOX, sampling=ENDLESS))
    office.wait(lambda: set(office.ledger.text) >= set("abcd"))
    (engine,) = until(engines)
    engine.kill()
    office.wait_ended(*"abcd")
    for name in "abcd":
        failure = office.ledger.ended[name].failure
        assert failure is not None
        assert failure.kind is FailureKind.ENGINE_DIED
        assert "was killed" in failure.message
    (said,) = [record.message.partition("(")[0] for record in caplog.records]
    assert said == f"The engine of {EMBER.name} was killed "
    assert "\n" not in caplog.text.rstrip("\n")
    office.supervisor.submit(Request("next", FOX, 3))
    office.wait_ended("next")
    assert office.ledger.ended["next"].reason is FinishReason.LENGTH
    assert EnginePhase.RESTARTING in office.phases
    assert delays == [0.0, 60.0], "after a first death it comes back at once, and is trusted after a minute"


def test_a_request_that_had_not_begun_waits_for_the_next_engine_unless_it_was_there_at_two_deaths(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.process.supervisor._WAITS", (0.0, 0.0, 3_600.0))
    supervisor = office.supervisor
    supervisor.load(options())
    wait_ready(supervisor)
    supervisor.submit(Request("begun", FOX, sampling=ENDLESS))
    office.wait(lambda: "begun" in office.ledger.text)
    for name in ("a", "b"):
        (engine,) = until(engines)
        engine.suspend()  # it dies unseen
        supervisor.submit(Request(name, f"{FOX} {name}", 3))
        if name == "a":
            supervisor.submit(Request("left", FOX))
            supervisor.cancel("left")
            supervisor.submit(TokenizeRequest("long", ("x" * 1_500_000,)))  # takes longer than until the second death
        kill(office)
        office.wait_ended(name)
    ends = {name: ended.reason for name, ended in office.ledger.ended.items()}
    # By what is noticed first: that it was cancelled, or that its engine died.
    assert ends.pop("left") in (FinishReason.FAILED, FinishReason.CANCELLED)
    assert ends == {
        "a": FinishReason.LENGTH,
        "b": FinishReason.LENGTH,
        "begun": FinishReason.FAILED,
        "long": FinishReason.FAILED,
    }


def test_engines_that_run_at_the_same_time_write_a_log_each(
    office: Office, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Office(tmp_path)
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    other.supervisor.load(options(EMBER_DRAFT))
    wait_ready(other.supervisor)
    first, second = tmp_path / "log" / "engine.log", tmp_path / "log" / "engine-2.log"
    for log, own, foreign in ((first, EMBER, EMBER_DRAFT), (second, EMBER_DRAFT, EMBER)):
        assert f"Loading {own}\n" in log.read_text()
        assert str(foreign) not in log.read_text()
    both = engines()
    both[1].send_signal(signal.SIGABRT)
    other.wait(lambda: EnginePhase.RESTARTING in other.phases)
    assert f"The engine of {EMBER_DRAFT.name} aborted (SIGABRT). {second} ends with:\n" in caplog.text
    for one in (other, office):
        one.supervisor.close()
    assert psutil.wait_procs(both, timeout=60)[1] == []
    os.truncate(first, 5 << 20)
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    assert first.with_suffix(".old.log").stat().st_size == 5 << 20
    assert first.stat().st_size < 1 << 20


def test_a_log_that_cannot_make_way_does_not_stop_an_engine_and_does_not_stay_open(tmp_path: Path) -> None:
    (tmp_path / "engine.old.log" / "kept").mkdir(parents=True)
    (tmp_path / "engine.log").touch()
    os.truncate(tmp_path / "engine.log", 5 << 20)
    engine = EngineProcess(tmp_path)
    try:
        assert engine.log_path is None
        assert [one.path for one in psutil.Process().open_files() if "engine" in one.path] == []
    finally:
        engine.kill()
        engine.close()


def kill(office: Office) -> None:
    """Kill the engine, and wait until that is known."""
    state, (engine,) = office.supervisor.state, engines()
    engine.kill()
    office.wait(lambda: office.supervisor.state is not state)


@pytest.mark.slow
def test_an_engine_that_keeps_dying_is_tried_again_for_ever_without_what_may_kill_it(
    office: Office, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("core.process.supervisor._WAITS", (0.0, 0.0, 3_600.0))
    wanted = replace(options(), draft_path=str(EMBER_DRAFT), n_ctx=256, cache_disk=1 << 20)
    supervisor = office.supervisor
    supervisor.load(wanted, 7)
    for i in range(5):
        if i > 2:
            supervisor.load(wanted, 7, again=True)
        model = wait_ready(supervisor)
        assert bool(model.draft_path) == (i < 2), "two deaths cost the draft"
        left_out = " ".join(supervisor.state.left_out)
        assert ("nothing drafts" in left_out, "on disk" in left_out) == (i >= 2, i >= 3)
        supervisor.submit(Request(f"new {i}", f"{FOX}{i}", sampling=ENDLESS))
        if i < 4:
            supervisor.submit(Request(f"same {i}", FOX, sampling=ENDLESS))
        else:
            with pytest.raises(EngineUnavailable, match="died 4 times in a row while this request ran") as refused:
                supervisor.submit(Request("same 4", FOX, sampling=ENDLESS))
            assert refused.value.retry_after is not None
            assert "at each death" in left_out
        office.wait(lambda i=i: f"new {i}" in office.ledger.text)
        kill(office)
        office.wait_ended(f"new {i}")
        failure = office.ledger.ended[f"new {i}"].failure
        assert failure is not None
        assert failure.retry_after == (3_600.0 if i >= 2 else 0.0), "whoever was cut off is told when to come again"
        if i >= 2:
            office.wait(lambda: supervisor.state.phase is EnginePhase.FAILED)
            assert (supervisor.state.problem or "").endswith(f"{i + 1} times in a row."), (
                "when to come is told beside it"
            )
            assert failure.message == f"{supervisor.state.problem} Try again in 3600 s."
            with pytest.raises(EngineUnavailable, match="times in a row") as told:
                supervisor.submit(Request("late", "late"))
            assert told.value.retry_after is not None
            assert 3_000 < told.value.retry_after <= 3_600
    assert {state.load for state in office.states} == {7}
    supervisor.load(wanted, 8)
    supervisor.submit(Request("same 5", FOX, 2))
    office.wait_ended("same 5")
    assert wait_ready(supervisor).draft_path, "asked for anew, it is loaded whole"
    assert supervisor.state.left_out == ()


def test_an_engine_that_worked_for_long_is_trusted_again_and_says_so(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.process.supervisor._HEALTHY_SECONDS", 0.05)
    monkeypatch.setattr("core.process.supervisor._WAITS", (0.0, 3_600.0))
    monkeypatch.setattr("core.process.supervisor._WITHOUT_DRAFTS", 1)
    office.supervisor.load(options())
    for _ in range(2):
        wait_ready(office.supervisor)
        until(lambda: office.supervisor.state.n_deaths == 0)
        kill(office)
        office.wait(lambda: office.states[-1].n_deaths == 1)
    office.wait(lambda: office.states[-1].n_deaths == 0)
    assert office.states[-1].phase is EnginePhase.READY
    assert office.states[-1].left_out == office.states[-2].left_out != (), "it still runs without"


def test_the_time_that_loading_takes_does_not_make_a_dying_engine_healthy(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.process.supervisor._WAITS", (0.0, 0.0, 3_600.0))
    monkeypatch.setattr("core.process.supervisor._HEALTHY_SECONDS", 0.0)
    office.supervisor.load(options())
    wait_ready(office.supervisor)

    def killed() -> bool:
        for engine in engines():
            with suppress(psutil.NoSuchProcess):
                engine.kill()
        return office.supervisor.state.phase is EnginePhase.FAILED

    until(killed, pause=0.01)


def test_a_load_that_failed_is_tried_again_when_it_is_asked_for(office: Office, tmp_path: Path) -> None:
    path = tmp_path / "late.gguf"
    office.supervisor.load(options(path))
    with pytest.raises(LoadFailed, match="late"):
        wait_ready(office.supervisor)
    assert office.supervisor.state.retry_at <= time.monotonic(), "at first without a wait"
    office.supervisor.load(options(path), again=True)
    with pytest.raises(LoadFailed, match="late"):
        wait_ready(office.supervisor)
    assert office.supervisor.state.retry_at > time.monotonic(), "then with one"
    shutil.copy(EMBER, path)
    office.supervisor.load(options(path), again=True)
    wait_ready(office.supervisor)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "split.count",
            r"could not load .*odd\.gguf. It says: key split\.count has wrong type u32 .*update Slipstream",
        ),
        ("llama.expert_count", r"aborted .* Its last words: (?s:.*)GGML_ASSERT\(n_expert_used_max > 0\) failed$"),
    ],
)
def test_what_llama_cpp_says_of_a_file_that_it_does_not_load_is_told(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, said: str
) -> None:
    monkeypatch.setattr("core.process.supervisor._WAITS", (3_600.0,))
    path = tmp_path / "odd.gguf"
    entries = [*metadata_of(EMBER_DRAFT), MetadataEntry(key, 1, gguf.GGUFValueType.UINT32)]
    write(path, entries, list(tensors_of(reader_of(EMBER_DRAFT), Recipe())))
    office.supervisor.load(options(path))
    with pytest.raises(LoadFailed, match=said):
        wait_ready(office.supervisor)


def test_a_context_without_memory_is_explained_by_that_and_not_by_the_file(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.process.supervisor._WAITS", (3_600.0,))
    office.supervisor.prepare()
    (engine,) = until(engines)
    engine.rlimit(psutil.RLIMIT_AS, (1 << 31, 1 << 31))
    office.supervisor.load(replace(options(), n_ctx=1 << 20))
    with pytest.raises(LoadFailed, match=r"could not make a context .* It says: .*allocate.*\. Memory is short"):
        wait_ready(office.supervisor)


# As ggml-cuda logs it in a step and in a load, before it aborts.
CUDA_ERROR = """{mark}CUDA error: no kernel image is available for execution on the device
{mark}  current device: 0, in function ggml_cuda_mul_mat at ggml-cuda.cu:2418
{mark}  cudaGetLastError()
/src/ggml-cuda.cu:109: CUDA error
"""


TOO_LITTLE = "terminate called after throwing an instance of 'std::bad_alloc'\n"
NO_KERNEL = "aborted (SIGABRT: CUDA error: no kernel image is available for execution on the device)"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (CUDA_ERROR.format(mark="llama.cpp error: "), NO_KERNEL),
        (CUDA_ERROR.format(mark=""), NO_KERNEL),
        (TOO_LITTLE, "ran out of memory (std::bad_alloc)"),
    ],
)
def test_what_was_said_before_an_engine_aborted_is_told(
    office: Office, tmp_path: Path, written: str, told: str
) -> None:
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    office.supervisor.submit(Request("a", FOX, sampling=ENDLESS))
    office.wait(lambda: "a" in office.ledger.text)
    with open(tmp_path / "log" / "engine.log", "a", encoding="utf-8") as log:
        log.write(written)
    (engine,) = engines()
    engine.send_signal(signal.SIGABRT)
    office.wait_ended("a")
    failure = office.ledger.ended["a"].failure
    assert failure is not None
    assert failure.message.startswith(f"The engine {told} while")


def test_an_unloaded_engine_is_gone_and_its_model_can_be_loaded_again(office: Office) -> None:
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    office.supervisor.submit(Request("a", FOX, 200))
    office.supervisor.unload(7)
    office.wait_ended("a")
    assert engines() == []
    assert (office.supervisor.state.phase, office.supervisor.state.load) == (EnginePhase.EMPTY, 7)
    with pytest.raises(EngineUnavailable, match="No model is loaded"):
        office.supervisor.submit(Request("b", FOX, 3))
    office.supervisor.load(options())
    wait_ready(office.supervisor)


def test_an_engine_outlives_the_thread_that_loaded_it(office: Office) -> None:
    office.supervisor.prepare()
    office.supervisor.close()

    def load() -> None:
        office.supervisor.load(options())
        wait_ready(office.supervisor)

    loading = threading.Thread(target=load)
    loading.start()
    loading.join()
    office.supervisor.submit(Request("a", FOX, 3))
    office.wait_ended("a")
    assert office.ledger.ended["a"].reason is FinishReason.LENGTH
    assert EnginePhase.RESTARTING not in office.phases


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the closed pipe tells it")
def test_an_engine_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from core.values.engine_options import EngineOptions\n"
        "from core.process.supervisor import Supervisor\n"
        "folder = Path(sys.argv[1])\n"
        "supervisor = Supervisor(lambda events: None, log_folder=folder, cache_folder=folder)\n"
        "loading = threading.Thread(target=supervisor.load, args=(EngineOptions(sys.argv[2], n_threads=1),))\n"
        "loading.start()\n"
        "loading.join()\n"
        "while supervisor.state.model is None:\n"
        "    time.sleep(0.05)\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    measured.give(tmp_path)
    server = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), str(EMBER)],
        cwd=STARTER.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    server.stdout.readline()
    (engine,) = engines(server.pid)
    # Stopped, it cannot see that its pipe is closed.
    engine.suspend()
    server.kill()
    server.communicate()
    assert psutil.wait_procs([engine], timeout=60)[1] == []


def test_an_engine_that_does_not_read_holds_up_nobody(office: Office) -> None:
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    (engine,) = until(engines)
    engine.suspend()
    asking = threading.Thread(target=office.supervisor.submit, args=(Request("a", "x" * 1_000_000),), daemon=True)
    asking.start()
    asking.join(60)
    is_stuck = asking.is_alive()
    if is_stuck:
        engine.resume()
    assert not is_stuck
    office.supervisor.close()
    assert office.ledger.ended["a"].reason is FinishReason.FAILED


def test_modules_in_the_folder_of_the_user_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    done = run_module("app.doctor.self_test", DESCRIBE, seconds=60)
    assert done.returncode == 0, done.stderr


def test_requests_sent_while_loading_wait_for_the_model(office: Office) -> None:
    office.supervisor.prepare()
    (ahead,) = until(engines)
    ahead.suspend()
    office.supervisor.load(options())
    for name in "abc":
        office.supervisor.submit(Request(name, FOX, 2))
    office.supervisor.cancel("b")
    ahead.resume()
    office.wait_ended(*"abc")
    assert office.ledger.ended["b"].reason is FinishReason.CANCELLED
    assert office.ledger.ended["a"].reason is FinishReason.LENGTH


def test_loading_another_model_ends_the_requests_of_the_first(office: Office) -> None:
    office.supervisor.load(options())
    office.supervisor.submit(Request("a", FOX, sampling=ENDLESS))
    office.wait(lambda: "a" in office.ledger.text)
    office.supervisor.load(options(EMBER_DRAFT))
    office.wait_ended("a")
    failure = office.ledger.ended["a"].failure
    assert failure is not None
    assert failure.kind is FailureKind.SHUTDOWN
    assert wait_ready(office.supervisor).n_params < 2_000_000
    office.supervisor.submit(Request("b", FOX, 2))
    office.wait_ended("b")


def test_bad_and_cancelled_requests_end_with_their_reason_and_the_engine_goes_on(office: Office) -> None:
    office.supervisor.load(options())
    office.supervisor.submit(Request("a", FOX, sampling=ENDLESS))
    office.wait(lambda: "a" in office.ledger.text)
    for name in ("a", "a", "nobody"):
        office.supervisor.cancel(name)
    office.supervisor.submit(Request("long", "word " * 5000))
    office.supervisor.submit(Request("huge", "x" * 10_000_000))
    office.supervisor.submit(Request("bad", (99_999,)))
    office.supervisor.submit(Request("good", FOX, 2))
    office.wait_ended("a", "long", "huge", "bad", "good")
    assert office.ledger.ended["a"].reason is FinishReason.CANCELLED
    kinds = {name: ended.failure.kind for name, ended in office.ledger.ended.items() if ended.failure}
    assert kinds == {
        "long": FailureKind.CONTEXT_LENGTH,
        "huge": FailureKind.CONTEXT_LENGTH,
        "bad": FailureKind.BAD_REQUEST,
    }


def test_a_file_that_is_no_model_is_refused_with_a_sentence(office: Office, tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("these are my notes")
    office.supervisor.load(options(path))
    office.supervisor.submit(Request("a", FOX))
    with pytest.raises(LoadFailed, match=r"notes\.gguf"):
        wait_ready(office.supervisor)
    office.wait_ended("a")
    until(lambda: engines() == [])


def test_nothing_is_left_running_after_close_and_a_closed_supervisor_can_load_again(office: Office) -> None:
    office.supervisor.load(options())
    wait_ready(office.supervisor)
    (engine,) = until(engines)
    office.supervisor.close()
    assert office.supervisor.state.phase is EnginePhase.EMPTY
    assert psutil.wait_procs([engine], timeout=60)[1] == []
    office.supervisor.load(options())
    wait_ready(office.supervisor)


def test_a_draft_that_was_deleted_does_not_cost_the_model_when_its_engine_starts_again(
    office: Office, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.gguf"
    shutil.copy(EMBER_DRAFT, draft)
    office.supervisor.load(replace(options(), draft_path=str(draft)))
    assert wait_ready(office.supervisor).notices == ()
    draft.unlink()
    kill(office)
    (notice,) = wait_ready(office.supervisor).notices
    assert "draft.gguf" in notice


@pytest.mark.skipif(core_count() < 2, reason="one core cannot be divided")
def test_engines_that_compute_at_the_same_time_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[EngineProcess, int]] = []
    send = EngineProcess.send

    def watched(process: EngineProcess, command: Command) -> None:
        if isinstance(command, ShareCores):
            told.append((process, command.n_engines))
        send(process, command)

    monkeypatch.setattr(EngineProcess, "send", watched)
    at_work = EnginesAtWork()
    first, second = (Office(tmp_path / name, at_work) for name in "ab")
    for office in (first, second):
        office.supervisor.load(replace(options(), n_threads=core_count()))
        wait_ready(office.supervisor)
        until(lambda: not len(at_work))
    assert not told, "they were loaded one after the other"

    first.supervisor.submit(Request("long", FOX, sampling=ENDLESS))
    first.wait(lambda: "long" in first.ledger.tokens)
    assert not told, "it is alone"
    second.supervisor.submit(Request("beside", FOX, 60, sampling=ENDLESS))
    second.wait_ended("beside")
    until(lambda: [n for _, n in told] == [2, 2, 1])
    one, other = (process for process, _ in told[:2])
    assert one is not other
    assert second.ledger.ended["beside"].receipt.plain_seconds is None, "it says how long steps take with all cores"

    second.supervisor.submit(Request("killed", FOX, sampling=ENDLESS))
    second.wait(lambda: "killed" in second.ledger.tokens)
    assert told[3][1] == 2
    told.clear()
    second.supervisor.close()
    until(lambda: [n for _, n in told] == [1])
    first.supervisor.cancel("long")
    first.wait_ended("long")
    first.supervisor.submit(Request("alone", FOX, 60, sampling=ENDLESS))
    first.wait_ended("alone")
    assert len(told) == 1, "it knows already"
    first.supervisor.close()
