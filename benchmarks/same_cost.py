"""The cost of the measures that keep texts the same: two processes, with and without a measure, in turns.

A measure can be switched off by variables of the environment, which llama.cpp and the engine read when they are loaded.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import prompts
from benchmarks.report import ReportRow, median, say

_N_SLOTS, _N_CTX = 8, 1024
_N_ROUNDS = 12
# The cases: how many at once, whether their prompts are long, and the tokens of each reply.
_CASES = {"1 client": (1, False, 64), "8 clients": (8, False, 64), "long prompts": (4, True, 1)}


@dataclass(frozen=True)
class Switch:
    """A measure by name, and the environment ``variables`` that switch it off."""

    name: str
    variables: Mapping[str, str]


# What can be switched off: packaging/first_start/llama_sources.cmake reads it.
SWITCHES = (Switch("an attention of its own", {"SLIPSTREAM_LLAMA_ATTENTION": "1"}),)


def measure_costs(
    model: Path, n_threads: int, switches: tuple[Switch, ...], n_rounds: int = _N_ROUNDS
) -> list[ReportRow]:
    """Return a row for each switch and case: how much longer it takes with the measure, as a share."""
    return [row for switch in switches for row in _measure(switch, model, n_threads, n_rounds)]


def _measure(switch: Switch, model: Path, n_threads: int, n_rounds: int) -> list[ReportRow]:
    seconds: dict[str, list[float]] = {case: [] for case in _CASES}
    with ExitStack() as stack:
        arms = [stack.enter_context(_arm(variables, model, n_threads)) for variables in ({}, switch.variables)]
        # The first round warms up.
        for round_ in range(n_rounds + 1):
            for case in _CASES:
                taken = {place: _ask(arms[place], (case, round_)) for place in (round_ % 2, 1 - round_ % 2)}
                if round_:
                    seconds[case].append(taken[0] / taken[1])
    rows = [
        {"measure": switch.name, "case": case, "runs": n_rounds, "cost": round(median(ratios) - 1.0, 4)}
        for case, ratios in seconds.items()
    ]
    for row in rows:
        say(f"cost of {switch.name}: {row['cost']:.1%}, {row['case']}")
    return rows


def _ask(connection: Connection, what: tuple[str, int]) -> float:
    connection.send(what)
    seconds: float = connection.recv()
    return seconds


@contextmanager
def _arm(variables: Mapping[str, str], model: Path, n_threads: int) -> Iterator[Connection]:
    """Run a process that times cases; its ``variables`` must be set before it starts."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        process = context.Process(target=_work, args=(there, model, n_threads), daemon=True)
        process.start()
    finally:
        os.environ.clear()
        os.environ.update(before)
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.join()


def _work(connection: Connection, model: Path, n_threads: int) -> None:
    """Time the requested cases, in a separate process, until the connection ends."""
    from app.jobs.verify.verification import Mode
    from benchmarks.engine_client import EngineClient, Question
    from core.values.engine_options import EngineOptions

    options = EngineOptions(str(model), n_slots=_N_SLOTS, n_ctx=_N_CTX, n_threads=n_threads, speculation="off")
    client = EngineClient(options, prompts.N_TOKENS)
    while True:
        try:
            case, round_ = connection.recv()
        except EOFError:
            client.close()
            return
        n_clients, is_long, n_tokens = _CASES[case]
        make = prompts.long_texts if is_long else prompts.mixed
        asked = [Question(text, Mode()) for text in make(n_clients, n_clients * round_)]
        client.engine.forget_texts()
        began = time.perf_counter()
        client.ask_together(asked, n_tokens)
        connection.send(time.perf_counter() - began)
