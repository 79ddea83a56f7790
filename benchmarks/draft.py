"""Drafting against plain decoding: a perfect, a realistic and a useless draft, lookups, and every fixed depth.

The target is deep Ember: Ember with silent layers after its own, so that it says the same and costs as much as a model
ten times its size. Ember itself drafts for it perfectly. Ember-draft drafts like a small model of the same family.
Ember-draft with shuffled weights is always wrong. There is one client, greedy. Tokens per second count from the first
token on, so the target's reading of the prompt does not count, but the draft model's does.

Every way to decode takes its turn on each prompt, from an empty cache. A way keeps what it learns from prompt to prompt
(acceptance, step times, its own lookup table), as a running server does. Adaptive ways begin calibrated, and warmed up
by one prompt of each kind that is not measured. A reply takes a fraction of a second, in which a shared machine may be
slow by chance. So each way has several independent servers, each of which sees each prompt once. Plain decoding runs
again every few turns: each ratio is to plain decoding of the same prompt just before and after, so that a drifting
machine favours nobody.

The best fixed depth is chosen on one half of the prompts and compared on the other half, and the other way round. If it
were chosen and compared on the same noisy samples, the luckiest of many depths would win. The same holds for the better
of draft model and lookups, to which the two together are compared. Which of these is faster differs by 15 % from prompt
to prompt, more than from server to server, so this comparison has more prompts. One way, the control, is plain
decoding: its distance from plain decoding says how much of any ratio is noise.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

from benchmarks import plots, prompts
from benchmarks.contenders import ADAPTIVE, AUTO, CONTROL, LOOKUP, PLAIN, Contender, DecodingStage, Way, fixed
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from benchmarks.target import add_options, draft_file, settings_of, source_file, target_file, target_name
from core.machine.host import core_count
from core.values.engine_options import DEFAULT_SLOTS, MAX_DRAFT_DEPTH
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe

DEPTHS = (0, 1, 2, 3, 4, 5, 6, 8, 12)
DRAFTS = ("perfect", "realistic", "random", "none")
_SWEPT = ("perfect", "realistic")
# Draft model and lookups together, and each alone.
_TOGETHER = (AUTO, ADAPTIVE, LOOKUP)
# Plain decoding is measured again after this many turns of other ways.
_PLAIN_EVERY = 3
_N_CTX = 512


@dataclass(frozen=True)
class DraftSample:
    """One way's run of one prompt; ``vs_plain`` is its rate over that of plain decoding just before and after."""

    draft: str
    kind: str
    way: Way
    rate: float
    vs_plain: float
    n_drafted: int = 0
    n_accepted: int = 0
    round: int = 0


def draft_path(name: str, realistic: Path = EMBER_DRAFT, perfect: Path = EMBER) -> Path | None:
    """Return the file of a draft, which is made on first use; None for lookups alone."""
    if name == "random":
        return gguf_factory.cached(Recipe(source=realistic, is_shuffled=True))
    return {"perfect": perfect, "realistic": realistic}.get(name)


def ways_with(draft: str, depths: Sequence[int]) -> tuple[Way, ...]:
    """Return the ways to decode that are measured with a draft; depth 0 is plain decoding."""
    if draft == "none":
        return (LOOKUP, CONTROL)
    swept = tuple(fixed(depth) for depth in depths if depth) if draft in _SWEPT else ()
    return (ADAPTIVE, *swept, CONTROL)


def turns(ways: Sequence[Way], round_: int, n_servers: int = 1) -> list[Way]:
    """Return the order of a round: all ways, as often as each has servers, and plain decoding between them.

    Rotated from round to round, plain decoding first, last and every few turns.
    """
    ways = [*ways] * n_servers
    start = round_ * _PLAIN_EVERY % len(ways)
    rotated = [*ways[start:], *ways[:start]]
    order = [PLAIN]
    for first in range(0, len(rotated), _PLAIN_EVERY):
        order += [*rotated[first : first + _PLAIN_EVERY], PLAIN]
    return order


def ratios_to_plain(order: Sequence[Way], rates: Sequence[float]) -> list[float]:
    """Return each turn's rate over the rate of plain decoding at that moment: on a line between the nearest two."""
    plain = [index for index, way in enumerate(order) if way == PLAIN]
    ratios = []
    for index, rate in enumerate(rates):
        before = max(place for place in plain if place <= index)
        after = min(place for place in plain if place >= index)
        share = (index - before) / (after - before) if after > before else 0.0
        seconds = (1 - share) / rates[before] + share / rates[after]
        ratios.append(rate * seconds)
    return ratios


def measure_draft(
    draft: str, stage: DecodingStage, options: argparse.Namespace
) -> tuple[list[DraftSample], list[DraftSample]]:
    """Return the samples of all ways with one draft, and those of draft model and lookups together and alone."""
    ways, n_servers = ways_with(draft, options.depths), options.servers
    servers = {way: [stage.contender(way) for _ in range(n_servers)] for way in ways}
    together = {way: [stage.contender(way) for _ in range(n_servers)] for way in (_TOGETHER if draft != "none" else ())}
    servers[PLAIN] = [stage.contender(PLAIN)]
    for way, contenders in (*servers.items(), *together.items()):
        # Ways without decisions learn nothing: one prompt warms them up.
        warm_up = prompts.warm_up() if way.depth is None and not way.is_plain else prompts.warm_up()[:1]
        for contender, prompt in product(contenders, warm_up):
            contender.run([prompt.text], options.tokens)
    together[PLAIN] = servers[PLAIN]
    samples = _measure_ways(draft, ways, servers, options)
    n_more = options.more_prompts if draft != "none" else 0
    more: list[DraftSample] = []
    for place, text in enumerate(prompts.mixed(n_more * len(prompts.KINDS))):
        round_, kind = divmod(place, len(prompts.KINDS))
        prompt = prompts.BenchPrompt(prompts.KINDS[kind], text)
        more += _measure_prompt(draft, prompt, round_, turns(_TOGETHER, round_, n_servers), together, options.tokens)
        if prompt.kind == prompts.KINDS[-1]:
            say(f"{draft}: draft model and lookups: prompt {round_ + 1} of {n_more} of each kind")
    return samples, more


def _measure_ways(
    draft: str, ways: Sequence[Way], servers: dict[Way, list[Contender]], options: argparse.Namespace
) -> list[DraftSample]:
    samples: list[DraftSample] = []
    for round_ in range(options.prompts):
        for kind in prompts.KINDS:
            prompt = prompts.of_kind(kind)[round_]
            order = turns(ways, round_, options.servers)
            samples += _measure_prompt(draft, prompt, round_, order, servers, options.tokens)
        say(f"{draft}: prompt {round_ + 1} of {options.prompts} of each kind")
    return samples


def _measure_prompt(
    draft: str,
    prompt: prompts.BenchPrompt,
    round_: int,
    order: Sequence[Way],
    servers: dict[Way, list[Contender]],
    n_tokens: int,
) -> list[DraftSample]:
    waiting = {way: cycle(contenders) for way, contenders in servers.items()}
    receipts = [next(waiting[way]).run([prompt.text], n_tokens).outcomes[0].receipt for way in order]
    rates = [receipt.decode_rate for receipt in receipts]
    return [
        DraftSample(draft, prompt.kind, way, receipt.decode_rate, ratio, receipt.n_drafted, receipt.n_accepted, round_)
        for way, receipt, ratio in zip(order, receipts, ratios_to_plain(order, rates), strict=True)
    ]


def rows_of(samples: Sequence[DraftSample], together: Sequence[DraftSample] = ()) -> list[ReportRow]:
    """Return a row for each draft, kind and way: medians over its prompts.

    ``together`` are the samples of draft model and lookups, together and alone.
    """
    groups: dict[tuple[str, str, Way], list[DraftSample]] = {}
    for sample in (*samples, *(one for one in together if one.way in (AUTO, LOOKUP))):
        groups.setdefault((sample.draft, sample.kind, sample.way), []).append(sample)
    rows = []
    for (draft, kind, way), group in groups.items():
        row = _row(draft, kind, way, group)
        if way == ADAPTIVE:
            # Plain decoding is depth 0.
            fixed_ways = [one for *_, one in groups if one == PLAIN or one.depth is not None]
            row["vs_best_fixed"] = against_best(samples, draft, kind, way, fixed_ways) if draft in _SWEPT else None
        elif way == AUTO:
            row["vs_best_part"] = against_best(together, draft, kind, way, (ADAPTIVE, LOOKUP))
        rows.append(row)
    return rows


def against_best(
    samples: Sequence[DraftSample], draft: str, kind: str, way: Way, others: Collection[Way]
) -> float | None:
    """Return a way's speed over that of the best other way, chosen on other prompts; None if none was measured.

    With a single prompt there is nothing else to choose on.
    """
    cell = [sample for sample in samples if (sample.draft, sample.kind) == (draft, kind)]
    rounds = sorted({sample.round for sample in cell})
    others = {sample.way for sample in cell if sample.way in others}
    if not others:
        return None
    speeds = {one: _speeds(cell, one) for one in (way, *others)}
    ratios = []
    for part in (0, 1) if len(rounds) > 1 else (0,):
        chosen_on = set(rounds[part::2])
        compared_on = set(rounds) - chosen_on or chosen_on
        best = max(others, key=lambda one: (median([speeds[one][place] for place in chosen_on]), one.name))
        # Prompts differ far more than ways do: compare ways on the same prompt.
        ratios.append(median([speeds[way][place] / speeds[best][place] for place in compared_on]))
    return round(statistics.geometric_mean(ratios), 4)


def _speeds(cell: Sequence[DraftSample], way: Way) -> dict[int, float]:
    """Return how a way compares with plain decoding, by round."""
    rounds = {sample.round for sample in cell if sample.way == way}
    return {
        place: median([sample.vs_plain for sample in cell if sample.way == way and sample.round == place])
        for place in rounds
    }


def _row(draft: str, kind: str, way: Way, samples: Sequence[DraftSample]) -> ReportRow:
    n_drafted = sum(sample.n_drafted for sample in samples)
    return {
        "draft": draft,
        "kind": kind,
        "way": way.name,
        "depth": 0 if way.is_plain else way.depth,
        "runs": len(samples),
        "tokens_per_s": round(median([sample.rate for sample in samples]), 1),
        "vs_plain": round(median([sample.vs_plain for sample in samples]), 4),
        "acceptance": round(sum(s.n_accepted for s in samples) / n_drafted, 3) if n_drafted else None,
    }


def summarise(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the summary; a figure is None if nothing was measured for it."""
    ratio = {(row["draft"], row["kind"], row["way"]): row["vs_plain"] for row in rows}
    decided = [row["vs_plain"] for row in rows if row["depth"] is None]
    control = [row["vs_plain"] for row in rows if row["way"] == CONTROL.name]
    against = {
        name: [row[name] for row in rows if row.get(name) is not None] for name in ("vs_best_fixed", "vs_best_part")
    }
    return {
        "draft_vs_plain_min": min(decided, default=None),
        "control_vs_plain_min": min(control, default=None),
        **{
            f"draft_speedup_{kind}": ratio.get(("realistic", kind, ADAPTIVE.name))
            for kind in ("story", "code", "rename")
        },
        "perfect_speedup": ratio.get(("perfect", "story", ADAPTIVE.name)),
        "adaptive_vs_best_fixed_min": min(against["vs_best_fixed"], default=None),
        "lookup_speedup_copy": ratio.get(("none", "copy", LOOKUP.name)),
        "auto_vs_best_part_min": min(against["vs_best_part"], default=None),
    }


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    n_threads = options.threads or core_count()
    names = ("prompts", "more_prompts", "servers", "tokens", "depths", "drafts")
    settings = {**settings_of(options), **{name: getattr(options, name) for name in names}}
    report = BenchReport("draft", settings={**settings, "threads": n_threads, "slots": DEFAULT_SLOTS, "clients": 1})
    target, drafts = target_file(options), (draft_file(options), source_file(options))
    samples: list[DraftSample] = []
    together: list[DraftSample] = []
    for draft in options.drafts:
        say(f"{draft}: loading")
        stage = DecodingStage(
            target, draft_path(draft, *drafts), n_slots=DEFAULT_SLOTS, n_ctx=_N_CTX, n_threads=n_threads
        )
        of_ways, of_parts = measure_draft(draft, stage, options)
        samples += of_ways
        together += of_parts
        stage.close()
    report.rows = rows_of(samples, together)
    report.summary = summarise(report.rows)
    if options.plot:
        plots.draw_draft(report.rows, options.plot, f"{target_name(options)}, {n_threads} threads")
    return report


def _depths(text: str) -> list[int]:
    """Parse ``0-4`` or ``0,2,8``."""
    parts = [part.partition("-") for part in text.split(",")]
    try:
        found = sorted({depth for low, _, high in parts for depth in range(int(low), int(high or low) + 1)})
    except ValueError:
        found = []
    if not found or found[0] < 0 or found[-1] > MAX_DRAFT_DEPTH:
        raise argparse.ArgumentTypeError(f"depths go from 0 to {MAX_DRAFT_DEPTH}, as in 0-12 or 0,2,8, not {text!r}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--prompts", type=int, default=prompts.N_EACH, choices=range(1, prompts.N_EACH + 1), help="of each kind"
    )
    parser.add_argument(
        "--more-prompts", type=int, default=16, metavar="N", help="of each kind, for draft model and lookups together"
    )
    parser.add_argument("--servers", type=int, default=3, choices=range(1, 11), metavar="N", help="of each way")
    parser.add_argument("--tokens", type=int, default=prompts.N_TOKENS, help="most tokens of a reply")
    parser.add_argument("--depths", type=_depths, default=list(DEPTHS), help="fixed depths, as 0-12 or 0,2,8")
    parser.add_argument("--drafts", nargs="+", choices=DRAFTS, default=list(DRAFTS), help="only these; none: lookups")
    add_options(parser)
    parser.add_argument("--threads", type=int, help="threads of both models; all physical cores if left out")
    plots.add_option(parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("draft", measure, _parser()))
