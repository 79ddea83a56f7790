"""Many clients at once, with and without drafting: throughput, time to first token, time between tokens.

Deep Ember with Ember-draft and lookups, as a server with a paired draft decides by default, and the same with a useless
draft of shuffled weights. With ``--model`` it is a tiny hybrid with a recurrent state instead, whose own prediction
head drafts: one head that is often right, and one with random weights. Clients send prompts of four kinds at the same
moment; whole requests are measured, prefill included, in the engine's process without HTTP. No prompt comes twice, and
each way of decoding runs it once, from an empty cache. Ways take turns in an order that rotates from round to round.
Each ratio is to plain decoding of the same prompts in the same round.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks import plots, prompts
from benchmarks.contenders import AUTO, PLAIN, Contender, ContenderRun, DecodingStage, PlainAndDrafting, Way
from benchmarks.draft import draft_path
from benchmarks.report import BenchReport, ReportRow, median, percentile, run_bench, say
from benchmarks.target import draft_file, target_file, target_name
from core.machine.host import core_count
from tools.model_factory import gguf_factory, hybrid_factory
from tools.model_factory.wide_factory import SHAPES

EMBER = "ember"
# llama.cpp can keep (small) snapshots of the first hybrid's recurrent state, but not of the second's.
HYBRIDS = {"qwen35": hybrid_factory.qwen35, "qwen3next": hybrid_factory.qwen3next}
CLIENTS = (1, 2, 4, 8, 16)
DRAFTS = ("realistic", "random")
_HEADS: dict[str, hybrid_factory.Head] = {"realistic": "counts", "random": "random"}
_N_CTX = 512
_COLOURS = {"plain": "#57606a", "realistic": "#d4570a", "random": "#8250df"}
_NAMES = {
    "plain": "plain decoding",
    "realistic": "small draft\nand lookups",
    "random": "useless draft\nand lookups",
}


@dataclass(frozen=True)
class ConcurrencySample:
    """One way's run of some clients; ``vs_plain`` is its aggregate rate over that of plain decoding."""

    draft: str
    way: Way
    n_clients: int
    run: ContenderRun
    vs_plain: float


def open_stage(draft: str, options: argparse.Namespace, n_threads: int) -> DecodingStage | PlainAndDrafting:
    """Load the model with a draft, making the files on first use."""
    n_slots = max(options.clients)
    if options.model == EMBER:
        target, path = target_file(options), draft_path(draft, draft_file(options))
        return DecodingStage(target, path, n_slots=n_slots, n_ctx=_N_CTX, n_threads=n_threads)
    make, head = HYBRIDS[options.model], _HEADS[draft]
    target = gguf_factory.cached_file(
        f"hybrid-{options.model}-{head}-{options.layers}.gguf", lambda path: make(path, head, options.layers)
    )
    return PlainAndDrafting(target, n_slots=n_slots, n_ctx=_N_CTX, n_threads=n_threads)


def measure_draft(
    draft: str, stage: DecodingStage | PlainAndDrafting, options: argparse.Namespace
) -> list[ConcurrencySample]:
    """Return the samples of plain decoding and of drafting at all numbers of clients."""
    plain, drafted = stage.contender(PLAIN), stage.contender(AUTO)
    warm = [prompt.text for prompt in prompts.warm_up()]
    for contender in (plain, drafted):
        for n_clients in (1, len(warm)):
            contender.run(warm[:n_clients], options.tokens)
    samples: list[ConcurrencySample] = []
    n_used = 0
    for round_ in range(options.rounds):
        for n_clients in options.clients:
            # One client gives few samples per round: it sends as many requests as four clients do, one after the other.
            for _ in range(max(1, 4 // n_clients)):
                texts = prompts.mixed(n_clients, n_used)
                n_used += n_clients
                samples += _measure_turn(draft, (plain, drafted), round_ % 2, texts, options.tokens)
        say(f"{draft}: round {round_ + 1} of {options.rounds}")
    return samples


def _measure_turn(
    draft: str, contenders: tuple[Contender, Contender], first: int, texts: list[str], n_tokens: int
) -> list[ConcurrencySample]:
    runs = {index: contenders[index].run(texts, n_tokens) for index in (first, 1 - first)}
    return [
        ConcurrencySample(draft, contenders[index].way, len(texts), run, run.rate / runs[0].rate)
        for index, run in sorted(runs.items())
    ]


def rows_of(samples: Sequence[ConcurrencySample]) -> list[ReportRow]:
    """Return a row for each draft, way and number of clients; plain decoding has one for each draft's rounds."""
    groups: dict[tuple[str, Way, int], list[ConcurrencySample]] = {}
    for sample in samples:
        groups.setdefault((sample.draft, sample.way, sample.n_clients), []).append(sample)
    return [_row(*key, group) for key, group in groups.items()]


def _row(draft: str, way: Way, n_clients: int, samples: Sequence[ConcurrencySample]) -> ReportRow:
    outcomes = [outcome for sample in samples for outcome in sample.run.outcomes]
    receipts = [outcome.receipt for outcome in outcomes]
    gaps = [gap for outcome in outcomes for gap in outcome.gaps]
    n_drafted = sum(receipt.n_drafted for receipt in receipts)
    per_token = [receipt.decode / (receipt.n_generated - 1) for receipt in receipts if receipt.n_generated > 1]
    return {
        "draft": draft,
        "way": way.name,
        "clients": n_clients,
        "runs": len(samples),
        "tokens_per_s": round(median([sample.run.rate for sample in samples]), 1),
        "vs_plain": round(median([sample.vs_plain for sample in samples]), 4),
        "ttft_ms_p50": round(median([receipt.ttft for receipt in receipts]) * 1e3, 1),
        "itl_ms_p50": round(median(gaps) * 1e3, 2),
        "itl_ms_p95": round(percentile(gaps, 0.95) * 1e3, 2),
        "ms_per_token_p50": round(median(per_token) * 1e3, 2),
        "acceptance": round(sum(r.n_accepted for r in receipts) / n_drafted, 3) if n_drafted else None,
        "drafted_share": round(n_drafted / sum(r.n_generated for r in receipts), 3),
    }


def summarise(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the speed-up of drafting with the worse draft, for each number of clients and overall."""
    drafted = [row for row in rows if row["way"] != PLAIN.name]
    by_count = {
        f"drafted_vs_plain_min_{count}": min(row["vs_plain"] for row in drafted if row["clients"] == count)
        for count in sorted({row["clients"] for row in drafted})
    }
    return {**by_count, "draft_vs_plain_min": min((row["vs_plain"] for row in drafted), default=None)}


def draw(report: BenchReport, options: argparse.Namespace) -> None:
    """Draw throughput against latency."""
    series = [plots.Series(_NAMES["plain"], _COLOURS["plain"], _points(report.rows, options.drafts, PLAIN))]
    for draft in options.drafts:
        points = _points(report.rows, [draft], AUTO)
        series.append(plots.Series(_NAMES[draft], _COLOURS[draft], points, is_dashed=draft == "random"))
    low = report.summary["draft_vs_plain_min"]
    high = max(row["vs_plain"] for row in report.rows)
    title = f"From 1 to {max(options.clients)} clients drafting gives {low:.2f} to {high:.2f} times plain throughput"
    hybrid = f"hybrid {options.model}, {options.layers} layers"
    model = f"{target_name(options) if options.model == EMBER else hybrid}, {report.settings['threads']} threads"
    subtitle = f"Prompts of four kinds, greedy, prefill included; {model}. Medians."
    plots.draw_throughput(series, options.plot, title, subtitle)


def _points(rows: Sequence[ReportRow], drafts: Sequence[str], way: Way) -> list[tuple[float, float, int]]:
    """Return a way's points: means of its rows over the drafts."""
    mine = [row for row in rows if row["way"] == way.name and row["draft"] in drafts]
    points = []
    for count in sorted({row["clients"] for row in mine}):
        there = [row for row in mine if row["clients"] == count]
        latency, rate = (sum(row[name] for row in there) / len(there) for name in ("ms_per_token_p50", "tokens_per_s"))
        points.append((latency, rate, count))
    return points


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    n_threads = options.threads or core_count()
    # This many layers give steps of about ten milliseconds, so that overhead weighs as little as for larger models.
    options.layers = options.layers or (60 if options.model == EMBER else 200)
    names = ("model", "layers", "shape", "rounds", "tokens", "clients", "drafts")
    settings = {name: getattr(options, name) for name in names}
    report = BenchReport("concurrency", settings={**settings, "threads": n_threads})
    samples: list[ConcurrencySample] = []
    for draft in options.drafts:
        say(f"{draft}: loading")
        stage = open_stage(draft, options, n_threads)
        if isinstance(stage, PlainAndDrafting):
            report.settings["way_back"] = stage.way_back
        samples += measure_draft(draft, stage, options)
        stage.close()
    report.rows = rows_of(samples)
    report.summary = summarise(report.rows)
    if options.plot:
        draw(report, options)
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, choices=range(1, 51), metavar="N", help="rounds of turns")
    parser.add_argument("--tokens", type=int, default=prompts.N_TOKENS, help="most tokens of a reply")
    parser.add_argument(
        "--clients",
        type=int,
        nargs="+",
        choices=range(1, 65),
        default=list(CLIENTS),
        metavar="N",
        help="clients at once",
    )
    parser.add_argument("--drafts", nargs="+", choices=DRAFTS, default=list(DRAFTS), help="only these")
    parser.add_argument("--model", choices=(EMBER, *HYBRIDS), default=EMBER, help="deep Ember, or a hybrid")
    parser.add_argument(
        "--layers", type=int, help="layers of the target; 60 of Ember's, or 200 of a hybrid's small ones"
    )
    parser.add_argument("--shape", choices=tuple(SHAPES), help="a target of this size instead, for a GPU")
    parser.add_argument("--threads", type=int, help="threads of both models; all physical cores if left out")
    plots.add_option(parser)
    parser.set_defaults(target=None, draft=None)
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("concurrency", measure, _parser()))
