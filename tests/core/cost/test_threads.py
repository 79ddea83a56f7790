"""Threads: the choice from measured times, the control over a fake context, and Ember beside busy processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from core.cost.cost_model import Calibration, CostModel, StepKind, kind_of
from core.cost.threads import (
    BatchThreads,
    ThreadChoice,
    ThreadControl,
    candidates,
    fewest_that_pay,
    step_times,
    thread_control,
)
from core.machine.host import core_count
from core.scheduler.planner import prefill_chunk
from core.values.engine_options import MANY_ROWS
from core.values.request import SamplingParams
from tests.support.engines import complete, open_engine, run, submit
from tests.support.prompts import SURE

CURVE = Calibration({1: 0.001, 8: 0.002, 64: 0.016, 256: 0.064})
BUSY = (
    "import os, sys\nif hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
)


@pytest.mark.parametrize(
    ("n_cores", "expected"), [(1, (1,)), (2, (1, 2)), (4, (1, 2, 3, 4)), (16, (1, 4, 8, 12, 15, 16))]
)
def test_counts_worth_a_try(n_cores: int, expected: tuple[int, ...]) -> None:
    assert candidates(n_cores) == expected


def test_threads_that_gain_nothing_are_not_used() -> None:
    assert fewest_that_pay({1: 1.04, 2: 1.0}) == 1
    assert fewest_that_pay({1: 2.0, 2: 1.0, 4: 0.9}) == 4
    assert fewest_that_pay({1: 2.0, 2: 1.0, 4: 1.6}) == 2


def test_every_count_is_measured_while_steps_are_short() -> None:
    asked: list[int] = []
    times = step_times(asked.append, (1, 2, 3))
    assert set(times) == {1, 2, 3}
    assert set(asked) == {1, 2, 3}


@dataclass
class FakeContext:
    """Remembers the threads it was given."""

    threads: list[tuple[int, int, int]] = field(default_factory=list)

    def set_threads(self, decode: int, few: int, many: int) -> None:
        self.threads.append((decode, few, many))


class Stage:
    """A control on a fake context whose clock is that of its steps."""

    def __init__(self, choice: ThreadChoice) -> None:
        self.now = 0.0
        self.context, self.cost = FakeContext(), CostModel(CURVE)
        self.busy = 2.0
        self.control = ThreadControl(
            self.context, self.cost, choice, clock=lambda: self.now, busy_cores=lambda: self.busy, n_cores=2
        )

    def steps(self, count: int, rows: int, ratio: float) -> None:
        """Let steps take ``ratio`` times what the calibration says."""
        for _ in range(count):
            seconds = ratio * CostModel(CURVE).time(rows)
            self.now += seconds
            self.control.observe(rows, 0, seconds)

    def steps_by_threads(self, count: int, rows: int, *ratios: float) -> None:
        """The same, with the ratio for the threads that they have: one, two."""
        for _ in range(count):
            threads = self.control.threads
            self.steps(1, rows, ratios[(threads.many if rows >= MANY_ROWS else threads.few) - 1])


def test_kinds_of_steps_are_told_by_their_rows() -> None:
    kinds = [kind_of(rows) for rows in (1, 2, 31, 32, 512)]
    assert kinds == [StepKind.DECODE, StepKind.FEW, StepKind.FEW, StepKind.MANY, StepKind.MANY]


def test_in_quiet_threads_are_never_set_and_the_cost_model_learns() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.steps(200, 1, 1.1)
    assert stage.context.threads == []
    assert stage.cost.time(1) == pytest.approx(0.0011, rel=0.02)


def test_load_lowers_the_threads_of_all_kinds_of_steps() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.steps(3, 1, 100.0)
    assert stage.context.threads[-1] == (1, 2, 2)
    stage.steps(4, 1, 1.6)
    assert stage.context.threads[-1] == (1, 1, 1)
    assert stage.control.threads == ThreadChoice(1, 1, 1)


def test_the_machines_own_curve_outlives_the_load() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.steps(50, 1, 1.0)
    own = stage.cost.time(1), stage.cost.time(4), stage.cost.time(256)
    stage.steps(3, 1, 100.0)
    stage.steps(20, 1, 1.6)
    assert stage.cost.time(1) == pytest.approx(1.6 * own[0], rel=0.02)
    assert stage.cost.own_time(1) == pytest.approx(own[0], rel=0.02)
    assert stage.cost.snapshot().seconds[1] == pytest.approx(own[0], rel=0.02)
    stage.now += 100.0
    stage.steps(1, 1, 1.6)
    stage.steps(12, 1, 1.0)
    assert stage.context.threads[-1][0] == 2
    for rows, seconds in zip((1, 4, 256), own, strict=True):
        assert stage.cost.own_time(rows) == pytest.approx(seconds, rel=0.02)
    assert stage.cost.time(1) == stage.cost.own_time(1)


@pytest.mark.parametrize("ratio", [1 / 30, 0.5, 1.3, 2.0, 2.9, 5.0, 30.0])
def test_a_calibration_that_never_held_is_replaced_within_twenty_steps(ratio: float) -> None:
    """It was made beside other work, or before the machine's clock changed; now nobody else wants the cores."""
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.busy = 0.1
    stage.steps(20, 1, ratio)
    assert stage.context.threads == []
    assert stage.cost.time(1) == pytest.approx(0.001 * ratio, rel=0.06)
    assert stage.cost.time(8) == pytest.approx(0.002 * ratio, rel=0.1)


def test_a_larger_machine_has_cores_for_others() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    control = ThreadControl(
        stage.context, stage.cost, ThreadChoice(2, 2, 2), lambda: stage.now, busy_cores=lambda: 5.0, n_cores=8
    )
    for _ in range(300):
        stage.now += 0.02
        control.observe(1, 0, 0.02)
    assert stage.context.threads == []


def test_when_others_have_gone_all_threads_are_tried_at_once() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.steps(3, 1, 100.0)
    stage.steps(4, 1, 1.6)
    stage.busy = 0.0
    began = stage.now
    while stage.control.threads.decode != 2 and stage.now < began + 10.0:
        stage.steps(1, 1, 1.0)
    assert stage.now - began < 1.0


@pytest.mark.parametrize("n_decoding", [0, 1, 4])
def test_after_a_slowdown_prompts_are_soon_read_in_wide_steps_again(n_decoding: int) -> None:
    stage = Stage(ThreadChoice(2, 2, 2))

    def read(n_steps: int, *ratios: float) -> int:
        """Return the last chunk of a prompt."""
        for _ in range(n_steps):
            chunk = prefill_chunk(stage.cost, n_decoding, 0, 512, 0.032)
            stage.steps_by_threads(1, n_decoding + chunk, *ratios)
        return chunk

    for _ in range(2):
        stage.busy, stage.now = 2.0, stage.now + 3.0
        assert read(60, 9.0, 30.0) == (16 if n_decoding else 32)
        stage.busy, stage.now = 0.0, stage.now + 3.0
        assert read(20, 2.0, 1.0) >= 64


def test_wide_steps_are_not_expected_to_be_slower_than_the_narrow_ones_that_run_now() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    stage.steps_by_threads(20, 64, 9.0, 30.0)
    assert stage.cost.time(64) == pytest.approx(9.0 * 0.016, rel=0.1)
    stage.steps_by_threads(300, 16, 3.0, 30.0)
    assert stage.control.threads.many == 1, "others still use the cores"
    assert stage.cost.time(64) == pytest.approx(3.0 * 0.016, rel=0.1)


def test_steps_that_have_one_thread_anyway_are_only_learnt_from() -> None:
    stage = Stage(ThreadChoice(1, 2, 2))
    assert stage.control.decoding is None
    stage.steps(200, 1, 3.0)
    assert stage.context.threads == []
    assert stage.cost.time(1) == pytest.approx(0.003, rel=0.05)


def test_steps_without_rows_or_time_say_nothing() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    for rows, seconds in ((0, 1.0), (1, 0.0), (1, -1.0)):
        stage.control.observe(rows, 0, seconds)
    assert stage.context.threads == []
    assert stage.cost.time(1) == pytest.approx(0.001)


def test_batches_have_all_threads_that_a_user_has_set_while_others_rest() -> None:
    now, others = [0.0], [0.1]
    threads = BatchThreads(8, lambda: now[0], lambda: others[0], 4)
    now[0] = 0.3
    assert threads.count == 8
    threads.share(2)
    assert threads.count == 2, "both engines together have the four cores"
    threads.share(1)
    assert threads.count == 8
    now[0], others[0] = 0.6, 1.0
    assert threads.count == 3


@pytest.mark.parametrize(("busy", "count"), [(0.0, 2), (0.3, 2), (1.0, 1), (2.0, 1), (5.0, 1)])
def test_batches_have_as_many_threads_as_others_leave_cores(busy: float, count: int) -> None:
    now, others = [0.0], [busy]
    threads = BatchThreads(2, lambda: now[0], lambda: others[0], 2)
    assert threads.count == 2, "nobody has looked yet"
    now[0] = 0.3
    assert threads.count == count
    others[0] = 0.0
    assert threads.count == count, "the next look comes later"
    now[0] = 0.6
    assert threads.count == 2
    threads.share(2)
    assert threads.count == 1
    threads.share(1)
    assert threads.count == 2


def test_batches_forget_soon_what_others_did_during_a_pause() -> None:
    now, others = [0.0], [1.0]
    threads = BatchThreads(2, lambda: now[0], lambda: others[0], 2)
    now[0] = 2.0
    assert threads.count == 1
    now[0], others[0] = 2.06, 0.0
    assert threads.count == 2
    others[0] = 1.0
    assert threads.count == 2, "between batches the usual time passes before the next look"
    now[0] = 2.32
    assert threads.count == 1


def test_where_a_gpu_computes_threads_are_left_alone() -> None:
    stage = Stage(ThreadChoice(2, 2, 2))
    assert thread_control(stage.context, stage.cost, ThreadChoice(2, 2, 2), n_gpu_layers=-1) is None
    assert thread_control(stage.context, stage.cost, ThreadChoice(2, 2, 2), n_gpu_layers=0) is not None


def test_engines_that_work_at_once_divide_the_cores_at_once() -> None:
    context, cost = FakeContext(), CostModel(CURVE)
    control = ThreadControl(context, cost, ThreadChoice(6, 8, 8), busy_cores=lambda: 0.0, n_cores=8)
    alone = cost.time(1)
    control.share(2)
    assert control.threads == ThreadChoice(4, 4, 4)
    assert context.threads == [(4, 4, 4)]
    assert cost.time(1) == pytest.approx(1.5 * alone), "steps are expected to take longer"
    control.share(3)
    assert control.threads == ThreadChoice(2, 2, 2)
    control.share(20)
    assert control.threads == ThreadChoice(1, 1, 1)
    control.share(1)
    assert control.threads == ThreadChoice(6, 8, 8)
    assert cost.time(1) == alone
    many = ThreadControl(context, cost, ThreadChoice(8, 8, 8), busy_cores=lambda: 0.0, n_cores=4)
    many.share(2)
    assert many.threads == ThreadChoice(2, 2, 2), "both together have the four cores"
    many.share(1)
    assert many.threads == ThreadChoice(8, 8, 8), "the user has set them"
    few = ThreadControl(context, cost, ThreadChoice(2, 2, 2), busy_cores=lambda: 0.0, n_cores=8)
    few.share(2)
    assert few.threads == ThreadChoice(2, 2, 2), "each has four cores"


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep each core that this process may use busy with another one."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    children = [subprocess.Popen([sys.executable, "-c", BUSY, str(core)]) for core in cores]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


@pytest.mark.skipif(core_count() < 2, reason="there is nothing to lower on one core")
def test_beside_busy_processes_ember_gets_fewer_threads_and_says_the_same() -> None:
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    with open_engine(n_threads=core_count(), n_slots=1, n_ctx=512, speculation="off") as engine:
        used: set[int] = set()
        set_threads = engine.context.set_threads

        def watched(decode: int, few: int, many: int) -> None:
            used.add(decode)
            set_threads(decode, few, many)

        engine.context.set_threads = watched
        expected, _, _ = complete(engine, SURE, max_tokens=120, sampling=sampling)
        deadline = time.monotonic() + 60.0
        with busy_cores():
            is_lowered = False
            while not is_lowered and time.monotonic() < deadline:
                submit(engine, "beside", SURE, max_tokens=120, sampling=sampling)
                assert run(engine).text["beside"] == expected
                # By what was busy before, too: other tests are, and then nothing needs to change.
                is_lowered = min(used, default=core_count()) < core_count()
        assert is_lowered
        text, _, _ = complete(engine, SURE, max_tokens=120, sampling=sampling)
        assert text == expected


@pytest.mark.slow
@pytest.mark.skipif(core_count() < 2, reason="there is nothing to choose on one core")
def test_an_engine_that_is_loaded_beside_busy_processes_does_not_stay_with_few_threads() -> None:
    with busy_cores():
        # What is busy must show in the system's counters, which have a resolution of hundredths of a second.
        time.sleep(0.1)
        with open_engine(n_threads=None, calibrates=True, n_slots=1, n_ctx=512, speculation="off") as engine:
            assert engine.threads is not None
            assert engine.threads.threads == ThreadChoice(*[core_count()] * 3)
