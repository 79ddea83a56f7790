"""The lanes: a fast request's pace beside batch requests, the batch lane's throughput, and what planning takes.

Deep Ember, plainly and with Ember-draft and lookups, in the engine's process without HTTP. A fast request runs alone,
and while 16 batch requests are queued and running, in turns (alone, beside, beside, alone). Each ratio is taken within
such a round. The batch lane alone is compared with as many plain concurrent requests as there are slots, with prompts
of the same kinds; ratios are taken within a pair, too. Planning (placing requests and choosing rows) is timed with 16
and with 256 batch requests in line. Both runs of a pair have the same prompt, and the cache is emptied between them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from dataclasses import dataclass
from typing import Any

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks import prompts
from benchmarks.draft import draft_path
from benchmarks.report import BenchReport, ReportRow, median, percentile, run_bench, say
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, FinishReason, Token
from core.values.request import Lane, Request, SamplingParams
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import Recipe

_N_CTX = 512
_N_BATCH = 16
_FEW, _MANY = 16, 256
_PLAN_STEPS = 60
# The pace of a single request varies most, so it gets more rounds than the other measurements.
_FEW_ROUNDS = 3
# Rounds of whole batches still differ by several per cent on a shared machine.
_BATCH_ROUNDS = 7
# Index in the list of prompts at which those of the fast lane begin.
_FAST_PLACES = 1_900
_FIRST_TOKENS = 4
_ENDLESS = SamplingParams(temperature=0, ignore_eos=True)
_WAYS = ("plain", "drafted")


@dataclass(frozen=True)
class LanePace:
    """A fast request: seconds per token, the gaps between its texts, and tokens of others that came meanwhile."""

    per_token: float
    gaps: tuple[float, ...]
    n_others: int
    seconds: float

    def joined(self, other: LanePace) -> LanePace:
        """Return both runs as one."""
        per_token = (self.per_token + other.per_token) / 2
        return LanePace(per_token, self.gaps + other.gaps, self.n_others + other.n_others, self.seconds + other.seconds)


class Lanes:
    """One engine, and prompts that are not in its cache."""

    def __init__(self, engine: Engine, n_slots: int) -> None:
        self.engine = engine
        self._n_slots = n_slots
        self._places = itertools.count()

    def submit(self, lane: Lane, n_tokens: int, count: int, *, speculates: bool = True) -> list[str]:
        """Send requests to a lane that generate ``n_tokens`` each; return their ids."""
        texts = [prompts.mixed(1, next(self._places))[0] for _ in range(count)]
        return [self.send(lane, n_tokens, text, speculates=speculates) for text in texts]

    def send(self, lane: Lane, n_tokens: int, prompt: str, *, speculates: bool = True) -> str:
        """Send one request; return its id."""
        name = f"{lane} {next(self._places)}"
        request = Request(name, prompt, n_tokens, sampling=_ENDLESS, lane=lane, speculates=speculates)
        self.engine.submit(self.engine.prepare(request))
        return request.id

    def clear(self, names: list[str]) -> None:
        """End requests and drop all cached texts."""
        for name in names:
            self.engine.cancel(name)
        while not self.engine.is_idle:
            self.engine.step()
        self.engine.forget_texts()

    def pace(self, prompt: str, n_tokens: int, n_batch: int) -> LanePace:
        """Run one fast request while ``n_batch`` requests of the batch lane run or wait."""
        engine = self.engine
        others = self.submit(Lane.BATCH, _N_CTX // 2, n_batch)
        for _ in range(3 * bool(n_batch)):
            engine.step()
        name = self.send(Lane.FAST, n_tokens, prompt)
        arrivals: list[tuple[float, int]] = []
        n_others = 0
        is_over = False
        while not is_over:
            events = engine.step()
            now = time.perf_counter()
            for event in events:
                if isinstance(event, Ended):
                    assert event.reason is not FinishReason.FAILED, event.failure
                    is_over = is_over or event.request_id == name
                elif isinstance(event, Token):
                    if event.request_id != name:
                        n_others += event.n * bool(arrivals)
                    elif arrivals and arrivals[-1][0] == now:
                        arrivals[-1] = now, arrivals[-1][1] + event.n
                    else:
                        arrivals.append((now, event.n))
        self.clear(others)
        first, last = arrivals[0][0], arrivals[-1][0]
        n_later = sum(n for _, n in arrivals[1:])
        gaps = tuple(later[0] - earlier[0] for earlier, later in itertools.pairwise(arrivals))
        return LanePace((last - first) / n_later, gaps, n_others, last - first)

    def throughput(self, lane: Lane, texts: list[str], n_tokens: int) -> float:
        """Return tokens per second of requests in one lane, prefill included."""
        began = time.perf_counter()
        names = [self.send(lane, n_tokens, text) for text in texts]
        while not self.engine.is_idle:
            self.engine.step()
        seconds = time.perf_counter() - began
        self.clear(names)
        return len(texts) * n_tokens / seconds

    def plan_seconds(self, n_waiting: int) -> float:
        """Return the mean seconds of planning a step where all slots decode and ``n_waiting`` wait in line."""
        engine = self.engine
        names = self.submit(Lane.BATCH, _N_CTX // 2, self._n_slots + n_waiting, speculates=False)
        while engine.scheduler.waiting.size > n_waiting or any(s.is_prefilling for s in engine.scheduler.running):
            engine.step()
        for _ in range(_FIRST_TOKENS):
            engine.step()
        before, n_steps = engine.stats.plan, engine.stats.n_steps
        for _ in range(_PLAN_STEPS):
            engine.step()
        assert engine.scheduler.waiting.size == n_waiting, "somebody ended while planning was measured"
        seconds = (engine.stats.plan - before) / (engine.stats.n_steps - n_steps)
        self.clear(names)
        return seconds


def measure_pace(lanes: Lanes, way: str, options: argparse.Namespace) -> ReportRow:
    """Return the row of a fast request alone and beside batch requests."""
    pairs: list[tuple[LanePace, LanePace]] = []
    for turn in range(options.rounds + 1):
        prompt = prompts.mixed(1, _FAST_PLACES + turn)[0]
        # Alone, beside, beside, alone: a drifting clock rate affects both equally.
        order = (0, _N_BATCH, _N_BATCH, 0)
        first, second, third, fourth = [lanes.pace(prompt, options.tokens, n_batch) for n_batch in order]
        if turn:  # the first round warms up
            pairs.append((first.joined(fourth), second.joined(third)))
    alone, beside = zip(*pairs, strict=True)
    row: ReportRow = {
        "way": way,
        "measure": "fast lane",
        "rounds": len(pairs),
        "itl_ms_alone": round(median([pace.per_token for pace in alone]) * 1e3, 3),
        "itl_ms_beside": round(median([pace.per_token for pace in beside]) * 1e3, 3),
        "itl_ratio": round(median([b.per_token / a.per_token for a, b in pairs]), 4),
        "itl_ratio_max": round(max(b.per_token / a.per_token for a, b in pairs), 4),
        "batch_tokens_per_s": round(median([pace.n_others / pace.seconds for pace in beside]), 1),
    }
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        ratios = [percentile(list(b.gaps), share) / percentile(list(a.gaps), share) for a, b in pairs]
        row[f"gap_{name}_ratio"] = round(median(ratios), 4)
    return row


def measure_batch(lanes: Lanes, way: str, options: argparse.Namespace) -> ReportRow:
    """Return the row of the batch lane alone against plain concurrent requests."""
    pairs = []
    for turn in range(min(options.rounds, _BATCH_ROUNDS)):
        texts = prompts.mixed(options.slots, turn * options.slots)
        order = (Lane.STANDARD, Lane.BATCH, Lane.BATCH, Lane.STANDARD)
        first, second, third, fourth = [lanes.throughput(lane, texts, options.tokens // 2) for lane in order]
        pairs.append((2 / (1 / first + 1 / fourth), 2 / (1 / second + 1 / third)))
    return {
        "way": way,
        "measure": "batch lane",
        "rounds": len(pairs),
        "standard_tokens_per_s": round(median([standard for standard, _ in pairs]), 1),
        "batch_tokens_per_s": round(median([batch for _, batch in pairs]), 1),
        "batch_share": round(median([batch / standard for standard, batch in pairs]), 4),
    }


def measure_plan(lanes: Lanes, way: str, rounds: int) -> ReportRow:
    """Return the row of planning times, with few and with many requests in line."""
    found: dict[int, list[float]] = {_FEW: [], _MANY: []}
    for turn in range(rounds):
        for n_waiting in (_FEW, _MANY)[:: -1 if turn % 2 else 1]:
            found[n_waiting].append(lanes.plan_seconds(n_waiting))
    row: ReportRow = {"way": way, "measure": "planning", "rounds": rounds}
    return row | {f"plan_us_{count}": round(median(seconds) * 1e6, 2) for count, seconds in found.items()}


def summarise(rows: list[ReportRow]) -> dict[str, float | str | None]:
    """Return the summary, each figure from its worst way."""
    fast = [row for row in rows if row["measure"] == "fast lane"]
    summary: dict[str, float | str | None] = {
        "fast_lane_itl_ratio": max(row["itl_ratio"] for row in fast),
        "fast_lane_p50_ratio": max(row["gap_p50_ratio"] for row in fast),
        "fast_lane_p95_ratio": max(row["gap_p95_ratio"] for row in fast),
        "batch_lane_share": min(row["batch_share"] for row in rows if row["measure"] == "batch lane"),
    }
    for row in rows:
        if row["measure"] == "planning":
            summary |= {f"plan_us_{count}": row[f"plan_us_{count}"] for count in (_FEW, _MANY)}
    return summary


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    n_threads = options.threads or core_count()
    names = ("layers", "rounds", "tokens", "slots", "ways")
    settings = {name: getattr(options, name) for name in names}
    report = BenchReport("lanes", settings={**settings, "threads": n_threads, "batch_requests": _N_BATCH})
    target = gguf_factory.cached(Recipe(n_layers=options.layers))
    for way in options.ways:
        say(f"{way}: loading")
        plain, drafts = {"speculation": "off"}, {"draft_path": str(draft_path("realistic"))}
        drafting: dict[str, Any] = plain if way == "plain" else drafts
        engine, _ = load_engine(
            EngineOptions(str(target), n_slots=options.slots, n_ctx=_N_CTX, n_threads=n_threads, **drafting),
            cache_folder=None,
        )
        lanes = Lanes(engine, options.slots)
        row = measure_pace(lanes, way, options)
        say(f"{way}: beside {_N_BATCH} batch requests a fast one takes {row['itl_ratio']:.3f} of its time alone")
        report.rows.append(row)
        row = measure_batch(lanes, way, options)
        say(f"{way}: the batch lane reaches {row['batch_share']:.3f} of plain concurrency")
        report.rows.append(row)
        if way == options.ways[0]:
            row = measure_plan(lanes, way, min(options.rounds, _FEW_ROUNDS))
            say(f"planning a step takes {row[f'plan_us_{_FEW}']} and {row[f'plan_us_{_MANY}']} us")
            report.rows.append(row)
        engine.close()
    report.summary = summarise(report.rows)
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, choices=range(1, 51), metavar="N", help="rounds of turns")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a fast reply; a batch reply has half")
    parser.add_argument("--slots", type=int, default=8, choices=range(2, 33), metavar="N", help="slots of the engine")
    parser.add_argument("--ways", nargs="+", choices=_WAYS, default=list(_WAYS), help="only these")
    parser.add_argument("--layers", type=int, default=60, help="layers of the target")
    parser.add_argument("--threads", type=int, help="threads of both models; all physical cores if left out")
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("lanes", measure, _parser()))
