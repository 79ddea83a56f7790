"""Decoding while another program is busy: the engine's thread tuner against every fixed number of threads.

A child process computes on one of the engine's cores. One engine decodes with the thread tuner and with each fixed
number of threads in turns, first without the child, then with it; drafts are off. A ratio compares turns of one round.
The time to reduce the threads when the child starts, and to use all again when it ends, is reported too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks.engine import N_CTX, PROMPT, EngineLoop
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.values.engine_options import EngineOptions
from models.formatting.figures import rounded
from tools.model_factory import gguf_factory

GOVERNED = 0
_BUSY = (
    "import os, sys\nif hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
)
_WARM_SECONDS = 0.5
# Turns without load are shorter by this factor, and there are as many times more of them.
_SHORTER = 6
# Positions after which a text restarts.
_SITTING = 256


class ThreadContender:
    """One engine, with the thread tuner or a fixed number of threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = EngineLoop(engine)
        assert engine.threads is not None
        self._control = engine.threads
        # The tuner may spend a share of its time on trials, so other turns must not count as its time.
        self._governed_seconds = 0.0
        engine.threads.clock = lambda: self._governed_seconds
        self._n_steps = _SITTING

    def run(self, n_threads: int, seconds: float) -> float:
        """Return the steps per second of a turn with ``n_threads``, or with the thread tuner."""
        engine, threads = self._engine, self._control.threads
        counts = (threads.decode, threads.few, threads.many) if n_threads == GOVERNED else (n_threads,) * 3
        engine.context.set_threads(*counts)
        engine.feedback.flush()
        engine.feedback.observe = self._control.observe if n_threads == GOVERNED else _learn_nothing
        spent, n_steps = 0.0, 0
        while spent < seconds:
            if self._n_steps >= _SITTING:
                self._loop.start(PROMPT, 1)
                self._n_steps = 0
            began = time.perf_counter()
            self._loop.step()
            taken = time.perf_counter() - began
            spent += taken
            self._governed_seconds += taken if n_threads == GOVERNED else 0.0
            n_steps += 1
            self._n_steps += 1
        return n_steps / spent

    def seconds_until(self, has_all: bool, limit: float) -> float | None:
        """Return the seconds of tuned steps until decoding has all threads (or fewer); None if not within ``limit``."""
        governor = self._control.decoding
        assert governor is not None
        spent = 0.0
        while spent < limit:
            if governor.has_all == has_all and (has_all or governor.slowdown != 1.0):
                return spent
            began = time.perf_counter()
            self.run(GOVERNED, 0.0001)
            spent += time.perf_counter() - began
        return None


def _learn_nothing(rows: int, kv: int, seconds: float) -> None:
    """Leave cost model and thread tuner as they are."""


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """Keep ``n_processes`` cores busy, with a process each."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    children = [
        subprocess.Popen([sys.executable, "-c", _BUSY, str(cores[index % len(cores)])]) for index in range(n_processes)
    ]
    try:
        time.sleep(_WARM_SECONDS)
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def compare(contender: ThreadContender, counts: tuple[int, ...], rounds: int, seconds: float) -> dict[int, list[float]]:
    """Return steps per second of each round, with the thread tuner (key 0) and by number of threads, in turns."""
    rates: dict[int, list[float]] = {count: [] for count in (GOVERNED, *counts)}
    for turn in range(rounds):
        order = list(rates)
        for count in order[turn % len(order) :] + order[: turn % len(order)]:
            rates[count].append(contender.run(count, seconds))
    return rates


def row_of(model: str, n_busy: int, rates: dict[int, list[float]]) -> ReportRow:
    """Return a row: medians, and the thread tuner against the best fixed number of threads."""
    fixed = {count: median(values) for count, values in rates.items() if count != GOVERNED}
    best = max(fixed, key=lambda count: fixed[count])
    ratios = [mine / other for mine, other in zip(rates[GOVERNED], rates[best], strict=True)]
    return {
        "model": model,
        "busy_processes": n_busy,
        "governed_tokens_per_s": round(median(rates[GOVERNED]), 1),
        **{f"threads_{count}_tokens_per_s": round(value, 1) for count, value in fixed.items()},
        "best_threads": best,
        "governed_vs_best_fixed": round(median(ratios), 3),
    }


def measure_model(name: str, path: str, options: argparse.Namespace) -> list[ReportRow]:
    """Return the rows of one model: without load, and with busy processes."""
    n_threads = options.threads or core_count()
    engine, _ = load_engine(
        EngineOptions(path, n_slots=1, n_ctx=N_CTX, n_threads=n_threads, speculation="off"), cache_folder=None
    )
    contender, counts = ThreadContender(engine), tuple(sorted({1, n_threads - 1, n_threads} - {0}))
    contender.run(GOVERNED, _WARM_SECONDS)
    # Without load a turn needs no time to settle, and disturbances hit all turns equally.
    quiet_rounds = options.rounds * _SHORTER
    rows = [row_of(name, 0, compare(contender, counts, quiet_rounds, options.seconds / _SHORTER))]
    with busy(options.busy):
        escape = contender.seconds_until(False, options.patience)
        contender.run(GOVERNED, _WARM_SECONDS)
        loaded = row_of(name, options.busy, compare(contender, counts, options.rounds, options.seconds))
    back = contender.seconds_until(True, options.patience)
    engine.close()
    rows.append(loaded | {"escape_s": rounded(escape, 2), "return_s": rounded(back, 2)})
    for row in rows:
        say(", ".join(f"{key} {value}" for key, value in row.items()))
    return rows


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    names = ("rounds", "seconds", "busy", "layers")
    settings = {name: getattr(options, name) for name in names}
    report = BenchReport("load", settings={**settings, "threads": options.threads or core_count()})
    deep = gguf_factory.cached_file(
        f"deep-{options.layers}.gguf", lambda path: gguf_factory.deep_ember(path, options.layers)
    )
    for name, path in (("ember", gguf_factory.EMBER), ("deep-ember", deep)):
        report.rows += measure_model(name, str(path), options)
    quiet = [row for row in report.rows if not row["busy_processes"]]
    loaded = [row for row in report.rows if row["busy_processes"]]
    report.summary = {
        "loaded_vs_best_fixed_min": min(row["governed_vs_best_fixed"] for row in loaded),
        "unloaded_vs_fixed": min(row["governed_vs_best_fixed"] for row in quiet),
        "loaded_vs_all_threads_min": min(
            round(row["governed_tokens_per_s"] / row[f"threads_{report.settings['threads']}_tokens_per_s"], 1)
            for row in loaded
        ),
    }
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each kind; medians are reported")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn")
    parser.add_argument("--busy", type=int, default=1, help="busy processes")
    parser.add_argument("--layers", type=int, default=60, help="layers of the deep model")
    parser.add_argument("--patience", type=float, default=30.0, help="longest wait for a fall or a return, in seconds")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: all physical cores)")
    raise SystemExit(run_bench("load", measure, parser))
