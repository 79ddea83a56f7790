"""What each rule of speculation's policy is worth: the same texts with it and without it, on a simulated machine.

A real machine's noise hides a few per cent, so the time of a step comes from a recorded curve (``simulation.py``).
``vs_rule`` is the speed without a rule over that with it: below 1.0 the rule earns something. The workloads are texts
for which a draft model is right always, never, by chance or by turns. They run alone and with three others, with cost
curves that are right and with ones that underestimate the cost of drafting. There are also texts that repeat
themselves, and decisions that take time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

from benchmarks.report import BenchReport, run_bench, say
from benchmarks.simulation import (
    CURVES,
    IsRight,
    SimulatedDraftModel,
    SimulatedEngine,
    repeated_token,
    unique_token,
)
from core.speculation import speculator
from core.speculation.draft_length import LatencyBound
from core.speculation.draft_state import Backoff, DraftState, RiskBudget
from core.speculation.proposer_choice import ProposerChoice
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.proposer import AcceptanceTable

# How many texts a workload has, one after the other, and how many steps each.
_TEXTS, _STEPS = 4, 150
# Seconds that a decision takes in workloads where it takes time: 3 % of a step.
_THOUGHT = 0.0003


def _by_chance(share: float) -> IsRight:
    """Return a rule by which a draft model is right with the chance ``share``, at the same places in each run."""
    return lambda request_id, position: zlib.crc32(f"{request_id} {position}".encode()) % 1000 < 1000 * share


PATTERNS: dict[str, IsRight] = {
    "always right": lambda *_: True,
    "right 3 of 4 times": _by_chance(0.75),
    "right 1 of 2 times": _by_chance(0.5),
    "right 3 of 10 times": _by_chance(0.3),
    "never right": lambda *_: False,
    "right for one text": lambda request_id, _: request_id == "0",
    "right by turns": lambda _, position: position // 200 % 2 == 0,
}


@dataclass(frozen=True)
class SimulatedWorkload:
    """Texts on a simulated machine.

    ``is_repeating`` texts repeat themselves by turns. Deciding takes ``thought`` seconds.
    A draft model that ``knows_itself`` is sure of its right tokens, and of no others.
    """

    curve: str
    pattern: str
    n_texts: int = 1
    surcharge: float = 1.0
    is_repeating: bool = False
    thought: float = 0.0
    knows_itself: bool = False

    @property
    def name(self) -> str:
        """The workload in words."""
        notes = [f"{self.n_texts} at once"] if self.n_texts > 1 else []
        notes += [f"drafting takes {self.surcharge} times its price"] if self.surcharge > 1.0 else []
        notes += ["text repeats itself by turns"] if self.is_repeating else []
        notes += ["deciding takes time"] if self.thought else []
        notes += ["the draft model knows when it is right"] if self.knows_itself else []
        return ", ".join([self.curve, self.pattern, *notes])

    def speedup(self) -> float:
        """Return the speed over that of plain decoding."""
        model = _SlowToDecide("draft", PATTERNS[self.pattern], knows_itself=self.knows_itself)
        model.thought = self.thought
        engine = SimulatedEngine(
            CURVES[self.curve],
            model,
            n_requests=self.n_texts,
            ngram=NgramProposer() if self.is_repeating else None,
            says=_repeats_by_turns if self.is_repeating else unique_token,
            surcharge=self.surcharge,
        )
        for text in range(_TEXTS):
            if text:
                engine.begin(self.n_texts)
            engine.run(_STEPS)
        return engine.speedup


class _SlowToDecide(SimulatedDraftModel):
    thought = 0.0

    def round_seconds(self, n_chains: int) -> float:
        self.clock.now += self.thought
        return super().round_seconds(n_chains)


def _repeats_by_turns(position: int) -> int:
    return repeated_token(position) if position // 60 % 2 == 0 else unique_token(position)


def workloads() -> Iterator[SimulatedWorkload]:
    for curve, pattern, n_texts, surcharge in itertools.product(CURVES, PATTERNS, (1, 4), (1.0, 1.5)):
        yield SimulatedWorkload(curve, pattern, n_texts, surcharge)
    for curve, pattern in itertools.product(CURVES, ("always right", "right 1 of 2 times", "never right")):
        yield SimulatedWorkload(curve, pattern, is_repeating=True)
        yield SimulatedWorkload(curve, pattern, thought=_THOUGHT)
    by_chance = ("right 3 of 4 times", "right 1 of 2 times", "right 3 of 10 times")
    for curve, pattern, n_texts in itertools.product(CURVES, by_chance, (1, 4)):
        yield SimulatedWorkload(curve, pattern, n_texts, knows_itself=True)


def _risk_anything() -> AbstractContextManager[object]:
    return patch.multiple(
        RiskBudget, available=lambda self, proposer: math.inf, required_return=lambda self, proposer: 1.0
    )


# How each rule is switched off.
RULES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "risk budget": _risk_anything,
    "caution that grows with the loss": lambda: patch.object(RiskBudget, "required_return", lambda self, proposer: 1.0),
    "probes": lambda: patch.object(ProposerChoice, "_probe", lambda self, *_: set()),
    "rests": lambda: patch.object(Backoff, "back_off", lambda self, longest: None),
    "worth of evidence": lambda: patch.object(AcceptanceTable, "resolution", 0.0),
    "worth of a second": lambda: patch.object(DraftState, "learn_speed", lambda self, n_new, plain_step, spent: None),
    "latency bound": lambda: patch.object(speculator, "LatencyBound", lambda sequences, plain: LatencyBound()),
}


def speedups(rule: str | None) -> dict[str, float]:
    """Return the speed-up of each workload without a rule (None: with all)."""
    with RULES[rule]() if rule else nullcontext():
        return {workload.name: workload.speedup() for workload in workloads()}


def measure(options: argparse.Namespace) -> BenchReport:
    report = BenchReport("ablations", settings={"texts": _TEXTS, "steps": _STEPS, "is_simulated": True})
    base = speedups(None)
    report.summary["vs_plain_min"] = round(min(base.values()), 4)
    for rule in RULES:
        without = speedups(rule)
        ratios = {name: without[name] / base[name] for name in base}
        for name in sorted(ratios, key=lambda name: ratios[name]):
            if abs(ratios[name] - 1.0) >= options.least:
                report.rows.append(
                    {
                        "rule": rule,
                        "workload": name,
                        "vs_rule": round(ratios[name], 4),
                        "vs_plain": round(base[name], 4),
                        "vs_plain_without": round(without[name], 4),
                    }
                )
        mean = statistics.geometric_mean(ratios.values())
        say(f"without {rule}: {mean:.4f} on average, {min(ratios.values()):.4f} at worst")
        key = rule.replace(" ", "_")
        report.summary |= {
            f"without_{key}_mean": round(mean, 4),
            f"without_{key}_min": round(min(ratios.values()), 4),
            f"without_{key}_vs_plain_min": round(min(without.values()), 4),
        }
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=float, default=0.02, help="list workloads that change by at least this share")
    return run_bench("ablations", measure, parser)


if __name__ == "__main__":
    raise SystemExit(main())
