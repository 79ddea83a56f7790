"""The tuner of threads on simulated machines: load that comes and goes, hiccups, noise, many cores, one thread."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from core.cost.threads import ThreadTuner, counts_below

# Steps of Ember on two cores beside one busy process, as recorded: seconds with two threads.
RECORDED = (0.378, 0.046, 0.0011, 0.0009, 0.053, 0.0009, 0.42, 0.0011, 0.0012, 0.12, 0.0009, 0.0010, 0.38, 0.18, 0.0010)

Load = Callable[[float], int]


@dataclass
class Machine:
    """Steps of which a share is divided among threads; where cores are missing, most wait for the scheduler.

    ``load`` gives the number of busy processes at a time.
    """

    load: Load
    n_cores: int = 2
    serial: float = 0.0002
    parallel: float = 0.0012
    noise: float = 0.0
    wait: float = 0.1
    hiccups: float = 0.0
    now: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def quiet(self, n_threads: int) -> float:
        """Return the seconds of an undisturbed step."""
        return self.serial + self.parallel / n_threads

    def step(self, n_threads: int) -> float:
        """Return the seconds of a step, which pass."""
        seconds = self.quiet(n_threads) * self.rng.lognormvariate(0.0, self.noise)
        n_missing = n_threads + self.load(self.now) - self.n_cores
        if n_missing > 0 and self.rng.random() < 0.6:
            seconds += self.wait * self.rng.random() * (2.0 if n_threads > 1 else 0.01)
        if self.rng.random() < self.hiccups:
            seconds *= 30.0
        self.now += seconds
        return seconds

    def expect(self, n_threads: int, n: int = 400) -> float:
        """Return the mean seconds of a step with a fixed number of threads under the load of now."""
        began = self.now
        total = sum(self._undone(n_threads, began) for _ in range(n))
        return total / n

    def _undone(self, n_threads: int, now: float) -> float:
        seconds = self.step(n_threads)
        self.now = now
        return seconds


@dataclass
class Run:
    """What came of a number of seconds: threads and seconds of each step, and which were learnt from."""

    counts: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    learnt: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Steps per second."""
        return len(self.seconds) / sum(self.seconds)


def follow(tuner: ThreadTuner, machine: Machine, seconds: float) -> Run:
    """Let the tuner choose for ``seconds``."""
    run, quiet = Run(), machine.quiet(machine.n_cores)
    until = machine.now + seconds
    while machine.now < until:
        run.counts.append(tuner.count)
        took = machine.step(tuner.count)
        run.seconds.append(took)
        tuner.observe(took / quiet, took, machine.now)
        if tuner.is_learning:
            run.learnt.append(took / quiet)
    return run


def best_rate(machine: Machine, counts: tuple[int, ...]) -> float:
    """Return the steps per second of the best fixed number of threads."""
    return max(1.0 / machine.expect(count) for count in counts)


def never(now: float) -> int:
    return 0


def always(now: float) -> int:
    return 1


def test_the_counts_lie_close_together_near_the_most() -> None:
    assert counts_below(1) == (1,)
    assert counts_below(2) == (1, 2)
    assert counts_below(4) == (1, 2, 3, 4)
    assert counts_below(16) == (1, 2, 3, 4, 6, 9, 12, 14, 15, 16)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n_cores", [2, 16])
def test_a_quiet_machine_keeps_all_threads(noise: float, n_cores: int) -> None:
    machine = Machine(never, n_cores, noise=noise)
    run = follow(ThreadTuner(counts_below(n_cores)), machine, 20.0)
    assert set(run.counts) == {n_cores}
    assert len(run.learnt) > 0.98 * len(run.counts)


@pytest.mark.parametrize("seed", range(5))
def test_load_is_escaped_within_a_few_steps_and_stays_so(seed: int) -> None:
    machine = Machine(lambda now: int(now > 1.0), noise=0.1, rng=random.Random(seed))
    tuner = ThreadTuner((1, 2))
    assert set(follow(tuner, machine, 1.0).counts) == {2}
    first = follow(tuner, machine, 3.0)
    assert first.counts.index(1) < 12
    later = follow(tuner, machine, 60.0)
    assert later.rate >= 0.93 * best_rate(machine, (1, 2))
    assert tuner.count == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_was_recorded_is_escaped(seed: int) -> None:
    tuner, rng, now = ThreadTuner((1, 2)), random.Random(seed), 0.0
    n_slow, start = 0, rng.randrange(len(RECORDED))
    for _ in range(20_000):
        seconds = RECORDED[(start + n_slow) % len(RECORDED)] if tuner.count == 2 else 0.0013
        n_slow += tuner.count == 2
        now += seconds
        tuner.observe(seconds / 0.0008, seconds, now)
    assert 20_000 / now > 0.9 / 0.0013, f"{n_slow} steps with two threads"


def test_nothing_is_learnt_of_the_machine_while_it_is_loaded() -> None:
    machine = Machine(always, noise=0.1)
    tuner = ThreadTuner((1, 2))
    run = follow(tuner, machine, 30.0)
    assert all(ratio < 3.0 for ratio in run.learnt)
    assert len(run.learnt) < 20


def test_when_the_load_goes_all_threads_are_back_soon() -> None:
    machine = Machine(lambda now: int(now < 20.0), noise=0.1)
    tuner = ThreadTuner((1, 2))
    follow(tuner, machine, 20.0)
    assert tuner.count == 1
    assert tuner.slowdown == pytest.approx(machine.quiet(1) / machine.quiet(2), rel=0.2)
    follow(tuner, machine, 10.0)
    assert tuner.has_all
    assert tuner.slowdown == 1.0
    run = follow(tuner, machine, 10.0)
    assert set(run.counts) == {2}
    assert len(run.learnt) > 0.98 * len(run.counts)


def test_load_that_comes_and_goes_costs_little_more_than_the_best_for_each_moment() -> None:
    machine = Machine(lambda now: int(now % 20.0 < 10.0), noise=0.1, wait=0.02)
    run = follow(ThreadTuner((1, 2)), machine, 200.0)
    ideal = (1.0 / machine.quiet(1) + 1.0 / machine.quiet(2)) / 2
    assert run.rate > 0.85 * ideal


@pytest.mark.parametrize("seed", range(3))
def test_hiccups_now_and_then_change_little(seed: int) -> None:
    machine = Machine(never, noise=0.1, hiccups=0.005, rng=random.Random(seed))
    run = follow(ThreadTuner((1, 2)), machine, 30.0)
    assert run.counts.count(2) > 0.93 * len(run.counts)


def test_a_single_slow_step_changes_nothing() -> None:
    tuner = ThreadTuner((1, 2))
    for turn in range(200):
        ratio = 500.0 if turn % 100 == 50 else 1.0
        tuner.observe(ratio, ratio * 1e-3, turn * 1e-3)
        assert tuner.count == 2
        assert not (tuner.is_learning and ratio > 1.0)


@pytest.mark.parametrize("n_busy", [1, 2, 4, 8, 15])
def test_of_16_cores_those_that_are_free_are_used(n_busy: int) -> None:
    machine = Machine(lambda now: n_busy * (now > 0.5), 16, noise=0.1, serial=0.0005, parallel=0.02)
    counts = counts_below(16)
    tuner = ThreadTuner(counts)
    follow(tuner, machine, 10.0)
    run = follow(tuner, machine, 100.0)
    free = max(count for count in counts if count <= 16 - n_busy)
    assert tuner.count == free
    assert run.rate > 0.93 * best_rate(machine, counts)


def test_where_load_comes_and_goes_threads_go_and_some_come_back() -> None:
    machine = Machine(lambda now: 8 if now < 20.0 else 3, 16, noise=0.1, serial=0.0005, parallel=0.02)
    tuner = ThreadTuner(counts_below(16))
    follow(tuner, machine, 20.0)
    assert tuner.count <= 8
    follow(tuner, machine, 120.0)
    assert tuner.count == 12
    machine = Machine(lambda now: 2 if now < 10.0 else 10, 16, noise=0.1, serial=0.0005, parallel=0.02)
    tuner = ThreadTuner(counts_below(16))
    follow(tuner, machine, 10.0)
    assert tuner.count == 14
    follow(tuner, machine, 20.0)
    assert tuner.count == 6


def test_a_machine_that_is_slower_with_any_number_of_threads_is_learnt_anew() -> None:
    tuner, now, normal = ThreadTuner((1, 2)), 0.0, 1.0
    learnt = 0
    for _ in range(600):
        took = 4.0 if tuner.count == 2 else 7.0
        now += took * 1e-3
        tuner.observe(took / normal, took * 1e-3, now)
        if tuner.is_learning:
            learnt += 1
            normal *= 1.0 + 0.1 * (min(took / normal, 3.0) - 1.0)
    assert tuner.has_all
    assert normal == pytest.approx(4.0, rel=0.1)
    assert learnt > 400


def test_another_kinds_finding_is_tried_at_once_and_so_is_its_recovery() -> None:
    tuner = ThreadTuner((1, 2))
    tuner.suggest(1, 0.0)
    assert tuner.count == 1
    for turn in range(4):
        tuner.observe(1.7, 0.0017, 0.01 * turn)
    assert (tuner.has_all, tuner.count) == (False, 1)
    assert tuner.slowdown == pytest.approx(1.7)
    tuner.retry_soon(0.1)
    tuner.observe(1.7, 0.0017, 0.1)
    assert tuner.count == 2
    for _ in range(12):
        tuner.observe(1.0, 0.001, 0.2)
    assert tuner.has_all


def test_an_alert_that_names_more_threads_than_there_are_is_nothing_new() -> None:
    tuner = ThreadTuner((1, 2))
    tuner.suggest(2, 0.0)
    assert tuner.has_all
    assert tuner.count == 2


def test_a_limit_holds_whatever_steps_take_and_all_threads_are_back_when_it_ends() -> None:
    tuner = ThreadTuner((1, 2, 3, 4))
    tuner.limit(4)
    assert (tuner.has_all, tuner.slowdown) == (True, 1.0)
    tuner.limit(2)
    assert (tuner.count, tuner.slowdown) == (2, 2.0)
    for turn in range(200):
        tuner.observe(2.5, 0.001, 0.1 * turn)
        assert (tuner.count, tuner.is_learning) == (2, False)
    assert tuner.slowdown == pytest.approx(2.5, rel=0.01), "it learns how slow steps are"
    tuner.limit(3)
    assert tuner.count == 3
    tuner.limit(4)
    assert (tuner.count, tuner.has_all, tuner.slowdown) == (4, True, 1.0)


def test_under_a_limit_a_busy_machine_is_escaped_too() -> None:
    counts = counts_below(8)
    machine = Machine(load=lambda now: 6, n_cores=8)
    tuner = ThreadTuner(counts)
    follow(tuner, machine, 20.0)
    assert tuner.count <= 2
    tuner.limit(4)
    assert tuner.count <= 2, "fewer are kept"
    free = ThreadTuner(counts)
    free.limit(4)
    assert free.count == 4
    run = follow(free, machine, 20.0)
    assert max(run.counts) <= 4
    assert run.counts[-1] <= 2
