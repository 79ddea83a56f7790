"""Are receipts true? Compares their speed-up and tokens per second with plain decoding of the same prompts.

Deep Ember is loaded twice: once with a draft (one of the same family, lookups alone, a useless one, or none at all),
once for plain decoding. Both get the same prompts and take steps in turns, each on a clock that stands still while the
other one works. A machine that gets slower for a second gets slower for both, so the difference between them is
drafting. Several clients send their prompts at once. A client that is answered goes on with prompts of one word, which
are not measured. So no client decodes alone at the end, and no long prompt is read beside a reply on one side only.

The true speed-up of a reply is its tokens per second over those of the plain reply to the same prompt, by the bench's
own clock. This is done on a quiet machine, and after busy programs ran while the models were loaded and calibrated,
which end before the first prompt. Replies whose receipt has no speed-up, because too few plain steps were seen, are
counted. The speed that the library predicts after one such reply is also compared with the plain speed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from app.server.calls.run_recorder import RunRecorder
from benchmarks import prompts
from benchmarks.draft import draft_path
from benchmarks.load import busy
from benchmarks.report import BenchReport, ReportRow, median, percentile, run_bench, say
from benchmarks.target import add_options, draft_file, settings_of, target_file
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.machine.known_machine import (
    CPU,
    MachineProbe,
    probe_machine,
    runs_key,
)
from core.values.engine_options import EngineOptions, Speculation
from core.values.messages import Ended, FinishReason, Receipt, Token
from core.values.request import Request, SamplingParams
from models.estimate.fit.memory import free_memory
from models.estimate.speed.machine import DeviceKind, MachineDevice, machine_of
from models.estimate.speed.runs import observations, read_runs

CONDITIONS = ("quiet", "after load")
DRAFTS = ("realistic", "lookups", "random", "none")
CLIENTS = (1, 4)
_N_CTX = 2_048
# Busy programs for each core: step times calibrated beside them are several times too slow.
_BUSY_EACH = 4
# In shorter replies even the tokens per second are only noise.
_FEWEST_TOKENS = 24
_GREEDY = SamplingParams(temperature=0)
# Prompts for clients whose measured prompts are all answered.
_COMPANY = ("Once", "The", "One", "In")


@dataclass(frozen=True)
class TruthSample:
    """The receipt of a reply with drafts beside the plain reply to the same prompt; rates in tokens per second."""

    receipt: Receipt
    rate: float
    plain_rate: float

    @property
    def truth(self) -> float:
        """The true speed relative to plain decoding."""
        return self.rate / self.plain_rate

    @property
    def speedup_error(self) -> float | None:
        """The relative error of the reported speed-up; None if none is reported."""
        return None if self.receipt.speedup is None else abs(self.receipt.speedup / self.truth - 1)

    @property
    def over_bound(self) -> float:
        """The reported speed-up over the most possible, the tokens per step; at most 1 if receipts are true."""
        receipt = self.receipt
        n_steps = max(receipt.n_generated - receipt.n_accepted - 1, 1)
        return (receipt.speedup or 0.0) / (receipt.n_generated / n_steps)

    @property
    def rate_error(self) -> float:
        """The relative error of the reported tokens per second."""
        return abs(self.receipt.decode_rate / self.rate - 1)


class StoppedClock:
    """Counts real seconds, but only those within ``with clock:``."""

    def __init__(self) -> None:
        self._lost, self._stopped_at = 0.0, time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self._lost

    def __enter__(self) -> None:
        self._lost += time.perf_counter() - self._stopped_at

    def __exit__(self, *error: object) -> None:
        self._stopped_at = time.perf_counter()


@dataclass
class _Open:
    """A running request: its client, the index of its prompt, and when its first and its latest token came."""

    client: int
    place: int
    first: float = 0.0
    last: float = 0.0


@dataclass(frozen=True)
class TruthTurn:
    """The prompts of one turn, in the order in which ``n_clients`` take them."""

    texts: Sequence[str]
    n_clients: int
    n_tokens: int


class TruthSide:
    """One of the two engines, on a clock that stops while the other one works."""

    def __init__(self, options: EngineOptions) -> None:
        self._clock, self._names = StoppedClock(), count()
        self.engine, self.model = load_engine(options, cache_folder=None, clock=self._clock)
        self._n_before = 0
        self._open: dict[str, _Open] = {}
        self._replies: dict[int, tuple[Receipt, float]] = {}
        self._turn = TruthTurn((), 0, 0)

    def begin(self, turn: TruthTurn) -> None:
        """Send the first prompt of each client."""
        self.engine.forget_texts()
        self._turn, self._replies, self._n_before = turn, {}, self.engine.stats.n_sampled
        with self._clock:
            for client in range(turn.n_clients):
                self._send(client, client)

    def step(self) -> None:
        """Take a step; a client whose prompt is answered sends its next one."""
        with self._clock:
            events = self.engine.step()
            self.engine.take_snapshot()
            now = self._clock()
            for event in events:
                one = self._open[event.request_id]
                if isinstance(event, Token | Ended):
                    one.first, one.last = one.first or now, now
                if isinstance(event, Ended):
                    self._take(event, one)

    @property
    def n_sampled(self) -> int:
        """Tokens that came in this turn, including those of incomplete replies."""
        return self.engine.stats.n_sampled - self._n_before

    def replies(self) -> dict[int, tuple[Receipt, float]] | None:
        """Return the measured receipts by their prompts' places, with the tokens per second that really came.

        None until all are there.
        """
        return self._replies if len(self._replies) == len(self._turn.texts) else None

    def finish(self) -> None:
        """Cancel the requests that still run."""
        for name in list(self._open):
            self.engine.cancel(name)
        self._open.clear()
        with self._clock:
            while not self.engine.is_idle:
                self.engine.step()

    def _send(self, client: int, place: int) -> None:
        name, texts = str(next(self._names)), self._turn.texts
        self._open[name] = _Open(client, place)
        # A client that is done goes on, so that no client decodes alone; a prompt of one word delays nobody.
        text = texts[place] if place < len(texts) else _COMPANY[place % len(_COMPANY)]
        request = Request(name, text, self._turn.n_tokens, sampling=_GREEDY)
        self.engine.submit(self.engine.prepare(request))

    def _take(self, event: Ended, one: _Open) -> None:
        assert event.reason is not FinishReason.FAILED, event.failure
        del self._open[event.request_id]
        receipt = event.receipt
        if one.place < len(self._turn.texts):
            seconds = one.last - one.first
            self._replies[one.place] = receipt, (receipt.n_generated - 1) / seconds if seconds > 0 else 0.0
        self._send(one.client, one.place + self._turn.n_clients)


def compare(drafting: TruthSide, plain: TruthSide, turn: TruthTurn) -> list[TruthSample]:
    """Let both sides answer the same prompts in alternating steps; the side with fewer tokens is next."""
    drafting.begin(turn)
    plain.begin(turn)
    while (ours := drafting.replies()) is None or (theirs := plain.replies()) is None:
        behind = min((drafting, plain), key=lambda side: (side.replies() is not None, side.n_sampled))
        behind.step()
    drafting.finish()
    plain.finish()
    pairs = [(*ours[place], theirs[place][1]) for place in sorted(ours)]
    return [TruthSample(*pair) for pair in pairs if min(pair[1:]) > 0 and pair[0].n_generated >= _FEWEST_TOKENS]


def open_sides(draft: str, condition: str, options: argparse.Namespace, n_threads: int) -> tuple[TruthSide, TruthSide]:
    """Load the model for drafting and for plain decoding, beside busy programs if the ``condition`` asks for them."""
    target = target_file(options)
    plain = EngineOptions(
        str(target), n_slots=max(options.clients), n_ctx=_N_CTX, n_threads=n_threads, speculation="off"
    )
    path = draft_path(draft, draft_file(options)) if draft in ("realistic", "random") else None
    speculation: Speculation = "off" if draft == "none" else "auto"
    drafting = replace(plain, speculation=speculation, draft_path=str(path) if path else None)
    with busy(_BUSY_EACH * n_threads) if condition == "after load" else nullcontext():
        return TruthSide(drafting), TruthSide(plain)


def predicted(side: TruthSide, samples: Sequence[TruthSample], probe: MachineProbe | None) -> float | None:
    """Return the tokens per second that the library predicts after the first reply that taught it something."""
    if probe is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        recorder = RunRecorder(Path(folder), lambda: side.model)
        for sample in samples:
            recorder.opened(Request("one", "text"))
            recorder.closed("one", sample.receipt)
            recorder.save()
            if runs := read_runs(Path(folder), runs_key()):
                break
    if not runs:
        return None
    cpu = MachineDevice(CPU, DeviceKind.CPU, free_memory(), free_memory(), None, probe.devices.get(CPU))
    machine = machine_of([cpu], observations(runs))
    seconds = machine.efficiency.seconds(runs[0].amounts)
    return 1.0 / seconds if seconds else None


def measure_draft(
    draft: str, condition: str, options: argparse.Namespace, n_threads: int, probe: MachineProbe | None
) -> list[ReportRow]:
    """Return the rows of one draft under one condition, one for each number of clients."""
    drafting, plain = open_sides(draft, condition, options, n_threads)
    rows: list[ReportRow] = []
    n_used = 0
    for n_clients in options.clients:
        texts = prompts.mixed(options.replies, n_used)
        n_used += len(texts)
        # Several clients start together; otherwise one side may by chance prefill more prompts beside a reply than the
        # other.
        size = len(texts) if n_clients == 1 else n_clients
        turns = [texts[first : first + size] for first in range(0, len(texts), size)]
        samples = [
            sample for turn in turns for sample in compare(drafting, plain, TruthTurn(turn, n_clients, options.tokens))
        ]
        row = {"condition": condition, "draft": draft, "clients": n_clients, **_figures(samples)}
        if n_clients == 1 and (rate := predicted(drafting, samples, probe)) is not None:
            row["predicted_after_one_run"] = round(rate, 1)
            row["prediction_error"] = round(abs(rate / row["plain_tokens_per_s"] - 1), 4)
        rows.append(row)
        say(", ".join(f"{name} {value}" for name, value in row.items() if name != "speedup_errors"))
    drafting.engine.close()
    plain.engine.close()
    return rows


def _figures(samples: Sequence[TruthSample]) -> ReportRow:
    errors = [sample.speedup_error for sample in samples if sample.speedup_error is not None]
    return {
        "replies": len(samples),
        "with_speedup": len(errors),
        "plain_tokens_per_s": round(median([sample.plain_rate for sample in samples]), 1),
        "speedup": round(median([sample.truth for sample in samples]), 3),
        "speedup_error_p50": round(median(errors), 4) if errors else None,
        "speedup_error_p90": round(percentile(errors, 0.9), 4) if errors else None,
        "rate_error_p90": round(percentile([sample.rate_error for sample in samples], 0.9), 4),
        "most_over_bound": round(max(sample.over_bound for sample in samples), 4),
        "speedup_errors": [round(error, 4) for error in errors],
    }


def summarise(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the summary over all replies; a figure is None if nothing was measured for it."""
    errors = [error for row in rows for error in row["speedup_errors"]]
    predictions = [row["prediction_error"] for row in rows if row.get("prediction_error") is not None]
    return {
        "speedup_error_p50": round(median(errors), 4) if errors else None,
        "speedup_error_p90": round(percentile(errors, 0.9), 4) if errors else None,
        "speedup_known_share": round(len(errors) / max(sum(row["replies"] for row in rows), 1), 3),
        "rate_error_p90_max": max((row["rate_error_p90"] for row in rows), default=None),
        "prediction_after_one_run_error": round(median(predictions), 4) if predictions else None,
    }


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    n_threads = options.threads or core_count()
    names = ("replies", "tokens", "clients", "drafts", "conditions")
    settings = {**settings_of(options), **{name: getattr(options, name) for name in names}}
    report = BenchReport("truth", settings={**settings, "threads": n_threads, "busy_programs": _BUSY_EACH * n_threads})
    probe = probe_machine() if 1 in options.clients else None
    for condition in options.conditions:
        for draft in options.drafts:
            report.rows += measure_draft(draft, condition, options, n_threads, probe)
    report.summary = summarise(report.rows)
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=int, default=12, help="measured replies of each kind")
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of a reply")
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS), metavar="N", help="clients at once")
    parser.add_argument("--drafts", nargs="+", choices=DRAFTS, default=list(DRAFTS), help="only these")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS), help="only these")
    add_options(parser)
    parser.add_argument("--threads", type=int, help="threads of both engines; all physical cores if left out")
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("truth", measure, _parser()))
