"""Predicted against measured decoding speed over a family of models, at an empty and at a filled context.

The family is deep Ember: Ember with silent layers after its own, dense and with experts (two of four for each token),
in Q4_0, Q8_0 and F16. Each model is made, loaded in Slipstream's engine, timed with greedy requests without drafts (the
better of two), and removed; the order is shuffled, because a machine's speed drifts by the minute. For the same reason
each is timed a second time after all others: no prediction can be nearer than the machine is to itself.

What a prediction may know:

- ``bandwidth``: the measured bandwidth of this machine alone;
- ``cold``: also the probe of its kernels;
- ``learnt``: also runs of the other models of the family. The model itself is left out, and with it all models with as
  many layers, whatever their type and kind;
- ``few``: as ``learnt``, but only from runs of the six smallest models;
- ``again``: the control: the second timing itself.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks import plots
from benchmarks.report import BenchReport, ReportRow, median, percentile, run_bench, say
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine import bandwidth
from core.machine.host import core_count, this_machine
from core.machine.known_machine import CPU, MachineProbe, probe_machine
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, FinishReason
from core.values.request import Request, SamplingParams
from models.estimate.fit.memory import free_memory
from models.estimate.speed.efficiency import Observation
from models.estimate.speed.machine import DeviceKind, Machine, MachineDevice, machine_of
from models.estimate.speed.work import Amounts, Placement, work
from models.facts.model_facts import ModelFacts, read_model
from models.formatting.json_values import plain
from models.formatting.program import PROGRAM
from tools.model_factory.gguf_factory import Recipe, make

SIZES = (8, 10, 13, 17, 22, 29, 38, 50, 66, 86)
TYPES = ("Q4_0", "Q8_0", "F16")
KINDS = ("dense", "moe")
KNOWLEDGE = ("bandwidth", "cold", "few", "again", "learnt")
_EXPERTS, _CHOSEN = 4, 2
_EMPTY, _FULL = 8, 600
_N_CTX = 1024
# A disturbance only makes a timing longer: the best of this many counts.
_TIMINGS = 2


@dataclass(frozen=True)
class Member:
    """One model of the family."""

    kind: str
    type: str
    n_layers: int

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of its model file."""
        n_experts, n_used = (_EXPERTS, _CHOSEN) if self.kind == "moe" else (0, 0)
        return Recipe(self.n_layers, self.type, n_experts, n_used)


@dataclass(frozen=True)
class PredictSample:
    """A measured run of a member: ``seconds`` of a token after ``n_past`` others."""

    member: Member
    context: str
    n_past: int
    seconds: float
    active_bytes: int
    observation: Observation


def measure_family(
    members: Iterable[Member], probe: MachineProbe, seconds: float, n_threads: int
) -> list[PredictSample]:
    """Make, time and remove each model."""
    samples: list[PredictSample] = []
    with tempfile.TemporaryDirectory() as folder:
        for member in members:
            path = make(Path(folder) / member.recipe.name, member.recipe)
            samples += measure_member(member, path, probe, seconds, n_threads)
            path.unlink()
            rates = ", ".join(f"{1 / sample.seconds:.1f}" for sample in samples[-2:])
            say(f"{member.kind} {member.type} with {member.n_layers} layers: {rates} tokens/s")
    return samples


def measure_member(
    member: Member, path: Path, probe: MachineProbe, seconds: float, n_threads: int
) -> list[PredictSample]:
    """Time one model after a few and after many tokens."""
    facts = read_model(path)
    options = EngineOptions(str(path), n_ctx=_N_CTX, n_slots=1, n_threads=n_threads, n_gpu_layers=0, speculation="off")
    engine, _ = load_engine(options, cache_folder=None)
    try:
        samples = []
        for context, n_prompt in (("empty", _EMPTY), ("full", _FULL)):
            timings = [time_decoding(engine, n_prompt, seconds / _TIMINGS) for _ in range(_TIMINGS)]
            n_past, taken = min(timings, key=lambda timing: timing[1])
            seen = Observation(amounts_of(facts, n_past, probe), taken)
            samples.append(PredictSample(member, context, n_past, taken, facts.active_bytes_per_token, seen))
        return samples
    finally:
        engine.close()


# Tokens of a first timing, which says how many fit into the time.
_FIRST_TOKENS = 16
# More would change the context length too much.
_MOST_TOKENS = 128


def time_decoding(engine: Engine, n_prompt: int, seconds: float) -> tuple[int, float]:
    """Decode without drafts after ``n_prompt`` tokens for about ``seconds``; raises RuntimeError if a request fails.

    Return how many tokens the middle one attended to, and the mean seconds per token.
    """
    first = _decode(engine, n_prompt, _FIRST_TOKENS)
    room = engine.n_ctx - n_prompt
    n_tokens = min(max(_FIRST_TOKENS, round(seconds / max(first, 1e-6))), _MOST_TOKENS, room)
    return n_prompt + n_tokens // 2, _decode(engine, n_prompt, n_tokens)


def _decode(engine: Engine, n_prompt: int, n_tokens: int) -> float:
    """Return the seconds per token after the first."""
    prompt = tuple(1 + position % 61 for position in range(n_prompt))
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    request = Request("timing", prompt, n_tokens, sampling=sampling, speculates=False)
    engine.submit(engine.prepare(request))
    while not engine.is_idle:
        for event in engine.step():
            if isinstance(event, Ended):
                if event.reason is FinishReason.FAILED or event.receipt.decode_rate <= 0:
                    raise RuntimeError(f"Decoding could not be timed: {event.failure}")
                taken = 1.0 / event.receipt.decode_rate
    return taken


def amounts_of(facts: ModelFacts, n_past: int, probe: MachineProbe) -> Amounts:
    """Return the amounts of work of a token on the CPU."""
    placement = Placement.all_on(0, facts.n_layers)
    return work(facts, placement, [_processor(None, probe)], n_past=n_past)


def _processor(rate: float | None, probe: MachineProbe | None) -> MachineDevice:
    free = free_memory()
    found = probe.devices.get(CPU) if probe is not None else None
    return MachineDevice(CPU, DeviceKind.CPU, free, free, rate, found)


def predictors(
    rate: float, probe: MachineProbe, samples: Sequence[PredictSample]
) -> dict[str, Callable[[PredictSample], Machine | None]]:
    """Return for each state of knowledge a function from a sample to the predicting machine (None: model seen)."""
    cold = _processor(rate, probe)
    smallest = min(sample.member.n_layers for sample in samples)

    def without(n_layers: int) -> Machine:
        return machine_of([cold], [s.observation for s in samples if s.member.n_layers != n_layers])

    bare = machine_of([_processor(rate, None)])
    untaught = machine_of([cold])
    few = machine_of([cold], [s.observation for s in samples if s.member.n_layers == smallest])
    learnt = {n_layers: without(n_layers) for n_layers in {sample.member.n_layers for sample in samples}}
    return {
        "bandwidth": lambda sample: bare,
        "cold": lambda sample: untaught,
        "few": lambda sample: few if sample.member.n_layers != smallest else None,
        "learnt": lambda sample: learnt[sample.member.n_layers],
    }


def rows_of(
    samples: Sequence[PredictSample],
    machines: dict[str, Callable[[PredictSample], Machine | None]],
    again: Iterable[PredictSample],
) -> list[ReportRow]:
    """Return a row for each measured run with what was predicted for it, and what it took ``again``."""
    rows = []
    second = {(sample.member, sample.context): sample.seconds for sample in again}
    for sample in samples:
        member = sample.member
        row: ReportRow = {
            "kind": member.kind,
            "type": member.type,
            "layers": member.n_layers,
            "context": sample.context,
            "n_past": sample.n_past,
            "bytes_per_token": sample.active_bytes,
            "measured": round(1 / sample.seconds, 2),
        }
        for knowledge, machine_for in machines.items():
            machine = machine_for(sample)
            seconds = machine.efficiency.seconds(sample.observation.amounts) if machine is not None else None
            row[knowledge] = round(1 / seconds, 2) if seconds else None
        row["again"] = round(1 / second[member, sample.context], 2)
        rows.append(row)
    return rows


def error(row: ReportRow, knowledge: str) -> float | None:
    """Return how far a prediction is from what was measured, as a share of that."""
    return abs(row[knowledge] / row["measured"] - 1) if row[knowledge] is not None else None


def errors(rows: Iterable[ReportRow], knowledge: str) -> list[float]:
    """Return the errors of all rows that have a prediction."""
    return [found for row in rows if (found := error(row, knowledge)) is not None]


def summary_of(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the median and 90th percentile of the errors, and the median by type, kind and context."""
    found = errors(rows, "learnt")
    summary: dict[str, float | str | None] = {
        "median_error": round(median(found), 4),
        "p90_error": round(percentile(found, 0.9), 4),
    }
    for knowledge in KNOWLEDGE[:-1]:
        summary[f"median_error_{knowledge}"] = round(median(errors(rows, knowledge)), 4)
        summary[f"p90_error_{knowledge}"] = round(percentile(errors(rows, knowledge), 0.9), 4)
    for column in ("type", "kind", "context"):
        for value in dict.fromkeys(row[column] for row in rows):
            of_value = errors((row for row in rows if row[column] == value), "learnt")
            summary[f"median_error_{value}"] = round(median(of_value), 4)
    return summary


def measure(options: argparse.Namespace) -> BenchReport:
    """Measure this machine and the family, predict, and compare."""
    silence_log()
    here, n_threads = this_machine(), options.threads or core_count()
    rate = bandwidth.measure(here, free_memory()).bytes_per_second
    probe = probe_machine()
    if probe is None:
        raise SystemExit(f"This machine could not be probed: {PROGRAM} doctor says what is wrong with llama.cpp.")
    members = [Member(kind, type_, n) for kind in KINDS for type_ in TYPES for n in options.layers]
    random.Random(options.seed).shuffle(members)
    samples, again = (measure_family(members, probe, options.seconds, n_threads) for _ in range(2))
    samples.sort(key=lambda s: (s.member.kind, s.member.type, s.member.n_layers, s.context))
    rows = rows_of(samples, predictors(rate, probe, samples), again)
    settings = {
        "threads": n_threads,
        "layers": list(options.layers),
        "types": list(TYPES),
        "experts": f"{_CHOSEN} of {_EXPERTS}",
        "seconds": options.seconds,
        "seed": options.seed,
        "bandwidth": round(rate),
        "probe": {name: plain(one) for name, one in probe.devices.items()},
    }
    summary = summary_of(rows)
    report = BenchReport("predict", rows, summary, settings)
    if options.plot:
        plots.draw_prediction(rows, options.plot, summary)
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=SIZES, help="sizes of the family")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timing")
    parser.add_argument("--threads", type=int, default=None, help="threads of the engine (default: all cores)")
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    plots.add_option(parser)
    raise SystemExit(run_bench("predict", measure, parser))
