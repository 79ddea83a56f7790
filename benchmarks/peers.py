"""Slipstream beside llama.cpp's own server: the same file, prompts and threads, both over HTTP, in turns.

The peer is llama-server with its own defaults, except for the number of threads and slots and the context, which are
ours. It is built for this machine from the unchanged sources of the pinned llama-cpp-python
(benchmarks/native_peer.sh); ``--server`` names another one. Without a compiler, the peer is the server in the package
xllamacpp, which is built for any processor. ``settings`` says which it was.

Four parts, of which ``--rows`` chooses:

- plain: plain decoding on both sides, and the peer once more: its difference from itself is noise.
- drafted: our drafting (Ember-draft and lookups, as decided in each step) beside the peer's (the same draft, its
  default of 3 tokens per step), beside its plain decoding, so that it is also compared with the better of these two,
  and beside our own plain decoding.
- prompts: long prompts of 500 different words, all at once, with 1 and with 64 new tokens; plain decoding.
- beside: what it costs us to read such a prompt beside 4 or 16 other texts of 800 tokens, idle or decoding.

All servers of a part stay loaded, but only one works at a time; the order changes from turn to turn. No server gets a
prompt twice, and all sides get the same prompts. A ratio is the median over all turns.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.client.server_process import ServerProcess
from benchmarks import plots, prompts
from benchmarks.http_load import LoadRun, run_load
from benchmarks.peer_server import PeerBinary, PeerFailed, PeerOptions, PeerServer, find_peer
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from benchmarks.target import add_options, draft_file, settings_of, target_file, target_name
from core.machine.host import core_count
from core.process.child_process import WAITING

PARTS = ("plain", "drafted", "prompts", "beside")
CLIENTS = (1, 2, 4, 8, 16)
LONG_CLIENTS = (1, 4, 8)
LONG_TOKENS = (1, 64)
# The sides: we, the peer, the peer once more, and both without drafts.
OURS, PEER, CONTROL, PEER_PLAIN = "slipstream", "llama.cpp", "llama.cpp again", "llama.cpp plain"
OURS_PLAIN = "slipstream plain"
SIDES = {"plain": (OURS, PEER, CONTROL), "drafted": (OURS, PEER, PEER_PLAIN, OURS_PLAIN), "prompts": (OURS, PEER)}

_N_CTX, _LONG_N_CTX = 512, 1024
# Default numbers of rounds: all parts together take less than a quarter of an hour on two cores.
_ROUNDS = {"plain": 5, "drafted": 5, "prompts": 3, "beside": 6}
# With few clients, at least this many requests are sent in a turn, one group after the other.
_FEWEST_REQUESTS = {"plain": 4, "drafted": 4, "prompts": 2}
_COLOURS = {OURS: "#0969da", PEER: "#57606a"}


class PeerSide(Protocol):
    """A server that loads are sent to."""

    def run(self, texts: Sequence[str], n_tokens: int, *, ignores_end: bool = False) -> LoadRun:
        """Send all prompts at once."""


@dataclass(frozen=True)
class HttpSide:
    """A server by its address and key."""

    url: str
    api_key: str | None = None

    def run(self, texts: Sequence[str], n_tokens: int, *, ignores_end: bool = False) -> LoadRun:
        """Send all prompts at once."""
        shared = {"max_tokens": n_tokens, "temperature": 0, "stream": True, "ignore_eos": ignores_end}
        return run_load(self.url, [{"prompt": text, **shared} for text in texts], self.api_key)


@dataclass(frozen=True)
class Case:
    """One comparison: a part, the number of clients, and the most tokens of each reply."""

    part: str
    n_clients: int
    n_tokens: int


@dataclass(frozen=True)
class PeerTurn:
    """The results of all sides for the same prompts, one side after the other."""

    case: Case
    loads: Mapping[str, LoadRun]

    def rate_ratio(self, side: str, to: str) -> float:
        """Return the tokens per second of one side over another's."""
        return self.loads[side].rate / self.loads[to].rate

    def ttft_ratio(self, side: str, to: str) -> float:
        """Return the median time to the first token of one side over another's."""
        return _ttft(self.loads[side]) / _ttft(self.loads[to])


def _ttft(load: LoadRun) -> float:
    return median([reply.ttft for reply in load.replies])


def cases(part: str, options: argparse.Namespace) -> list[Case]:
    """Return the comparisons of a part."""
    if part == "prompts":
        return [Case(part, n_clients, n) for n_clients in options.long_clients for n in LONG_TOKENS]
    return [Case(part, n_clients, options.tokens) for n_clients in options.clients]


def measure_part(part: str, sides: Mapping[str, PeerSide], options: argparse.Namespace, turns: list[PeerTurn]) -> None:
    """Run the turns of a part, and append each to ``turns`` when all ``sides`` (by name) have finished it."""
    is_long = part == "prompts"
    make = prompts.long_texts if is_long else prompts.mixed
    warm = [prompt.text for prompt in prompts.warm_up()]
    for side in sides.values():
        for n_clients in (1, len(warm)):
            side.run(warm[:n_clients], options.tokens)
    names = list(sides)
    n_before = len(turns)
    n_used = 0
    n_rounds = options.rounds or _ROUNDS[part]
    for round_ in range(n_rounds):
        for case in cases(part, options):
            for _ in range(max(1, _FEWEST_REQUESTS[part] // case.n_clients)):
                texts = make(case.n_clients, n_used)
                n_used += case.n_clients
                first = (len(turns) - n_before) % len(names)
                order = [*names[first:], *names[:first]]
                if (len(turns) - n_before) // len(names) % 2:
                    order.reverse()  # else each side would always follow the same one
                loads = {name: sides[name].run(texts, case.n_tokens, ignores_end=is_long) for name in order}
                turns.append(PeerTurn(case, {name: loads[name] for name in names}))
        say(f"{part}: round {round_ + 1} of {n_rounds}: {_so_far(turns[n_before:])}")


def _so_far(turns: Sequence[PeerTurn]) -> str:
    """Return our tokens per second and TTFT over the peer's, as text for progress output."""
    ours = [row for row in rows_of(turns) if row["side"] == OURS]
    return ", ".join(
        f"{row['clients']} x {row['new_tokens']} tokens {row['vs_peer']:.2f} ({row['ttft_vs_peer']:.2f})"
        for row in ours
    )


def rows_of(turns: Sequence[PeerTurn]) -> list[ReportRow]:
    """Return a row for each case and side: medians over its turns."""
    groups: dict[Case, list[PeerTurn]] = {}
    for turn in turns:
        groups.setdefault(turn.case, []).append(turn)
    return [_row(case, side, group) for case, group in groups.items() for side in group[0].loads]


def _row(case: Case, side: str, turns: Sequence[PeerTurn]) -> ReportRow:
    loads = [turn.loads[side] for turn in turns]
    replies = [reply for load in loads for reply in load.replies]
    per_token = [(reply.total - reply.ttft) / (reply.n_tokens - 1) for reply in replies if reply.n_tokens > 1]
    against = {} if side == PEER else _ratios("peer", side, PEER, turns)
    if side == OURS and PEER_PLAIN in turns[0].loads:
        best = max((PEER, PEER_PLAIN), key=lambda peer: median([turn.loads[peer].rate for turn in turns]))
        against |= {"best": best, **_ratios("best", side, best, turns)}
    if side == OURS and OURS_PLAIN in turns[0].loads:
        against |= _ratios("own_plain", side, OURS_PLAIN, turns)
    return {
        "mode": case.part,
        "side": side,
        "clients": case.n_clients,
        "new_tokens": case.n_tokens,
        "runs": len(turns),
        "tokens_per_s": round(median([load.rate for load in loads]), 1),
        "ttft_ms_p50": round(median([reply.ttft for reply in replies]) * 1e3, 1),
        "ms_per_token_p50": round(median(per_token) * 1e3, 2) if per_token else None,
        "tokens": sum(reply.n_tokens for reply in replies),
        **against,
    }


def _ratios(name: str, side: str, to: str, turns: Sequence[PeerTurn]) -> ReportRow:
    return {
        f"vs_{name}": round(median([turn.rate_ratio(side, to) for turn in turns]), 4),
        f"ttft_vs_{name}": round(median([turn.ttft_ratio(side, to) for turn in turns]), 4),
    }


def summarise(rows: Sequence[ReportRow]) -> dict[str, float | str | None]:
    """Return the worst ratio of each part, and the peer's noise; None if nothing was measured for one."""

    def worst(pick: Callable[..., float], name: str, side: str, *parts: str) -> float | None:
        found = [row[name] for row in rows if row["side"] == side and row["mode"] in parts]
        return pick(found, default=None)

    beside = [row for row in rows if row["mode"] == "beside"]
    return {
        "vs_peer_aggregate_min": worst(min, "vs_peer", OURS, "plain"),
        "vs_peer_ttft_max": worst(max, "ttft_vs_peer", OURS, "plain"),
        "vs_peer_drafted_aggregate_min": worst(min, "vs_peer", OURS, "drafted"),
        "vs_peer_drafted_ttft_max": worst(max, "ttft_vs_peer", OURS, "drafted"),
        "vs_peer_best_aggregate_min": worst(min, "vs_best", OURS, "drafted"),
        "vs_peer_best_ttft_max": worst(max, "ttft_vs_best", OURS, "drafted"),
        "vs_peer_prompts_aggregate_min": worst(min, "vs_peer", OURS, "prompts"),
        "vs_peer_prompts_ttft_max": worst(max, "ttft_vs_peer", OURS, "prompts"),
        "prompt_beside_rest_max": max((row["vs_none"] for row in beside if row["state"] == "rest"), default=None),
        "prompt_beside_work_max": max((row["vs_none"] for row in beside if row["state"] == "work"), default=None),
        "control_aggregate_min": worst(min, "vs_peer", CONTROL, "plain"),
        "control_aggregate_max": worst(max, "vs_peer", CONTROL, "plain"),
        "control_ttft_min": worst(min, "ttft_vs_peer", CONTROL, "plain"),
        "control_ttft_max": worst(max, "ttft_vs_peer", CONTROL, "plain"),
    }


def draw(report: BenchReport, options: argparse.Namespace) -> None:
    """Draw throughput against latency."""
    series = []
    drawn = [row for row in report.rows if row["mode"] in ("plain", "drafted") and row["side"] in _COLOURS]
    for side in _COLOURS:
        for part in ("plain", "drafted"):
            points = [
                (row["ms_per_token_p50"], row["tokens_per_s"], row["clients"])
                for row in drawn
                if (row["side"], row["mode"]) == (side, part)
            ]
            name = f"{side.capitalize() if side == OURS else side},\n{part}"
            if points:
                series.append(plots.Series(name, _COLOURS[side], points, is_dashed=part == "plain"))
    ratios = [row["vs_peer"] for row in drawn if row["side"] == OURS]
    title = f"Slipstream gives {min(ratios):.2f} to {max(ratios):.2f} times the throughput of llama.cpp's server"
    model = f"{target_name(options)}, {report.settings['threads']} threads"
    built = {"native": "built for this machine", "given": "as given", "generic": "as the wheel of xllamacpp"}
    peer = f"llama.cpp {built[report.settings['peer']['build']]}"
    subtitle = f"Over HTTP, prompts of four kinds, greedy; {model}; {peer}. Medians."
    plots.draw_throughput(series, options.plot, title, subtitle)


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    n_threads = options.threads or core_count()
    names = ("rounds", "tokens", "clients", "long_clients", "rows", "peer_openmp")
    settings = {**settings_of(options), **{name: getattr(options, name) for name in names}}
    report = BenchReport("peers", settings={**settings, "threads": n_threads})
    model = target_file(options)
    parts = [part for part in PARTS if part in options.rows]
    turns: list[PeerTurn] = []
    try:
        peer = find_peer(options.server) if parts != ["beside"] else None
        for part in parts:
            if part != "beside":
                say(f"{part}: loading")
                _measure_http(part, model, peer, n_threads, options, report, turns)
        if "beside" in parts:
            say("beside: loading")
            # Before llama.cpp is loaded into this process, and after the last peer was started, which must not inherit
            # it.
            os.environ.update(WAITING)
            from benchmarks.beside import measure_beside

            report.rows = measure_beside(model, n_threads, options.rounds or _ROUNDS["beside"])
    except PeerFailed as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        report.was_stopped = True
    report.rows = [*rows_of(turns), *report.rows]
    report.summary = summarise(report.rows)
    if options.plot and not report.was_stopped:
        draw(report, options)
    return report


def _measure_http(
    part: str,
    model: Path,
    peer: PeerBinary | None,
    n_threads: int,
    options: argparse.Namespace,
    report: BenchReport,
    turns: list[PeerTurn],
) -> None:
    """Load the servers of a part and add its turns; add the peer's description to ``report``."""
    draft = str(draft_file(options)) if part == "drafted" else None
    n_slots = max(case.n_clients for case in cases(part, options))
    n_ctx = _LONG_N_CTX if part == "prompts" else _N_CTX
    path = peer.path if peer is not None else None
    with contextlib.ExitStack() as servers:
        sides: dict[str, PeerSide] = {}
        for side in SIDES[part]:
            if side in (OURS, OURS_PLAIN):
                own_draft = draft if side == OURS else None
                ours = servers.enter_context(ServerProcess(_our_options(model, own_draft, n_threads, n_slots, n_ctx)))
                sides[side] = HttpSide(ours.wait_listening(), ours.api_key)
                continue
            drafting = None if side == PEER_PLAIN else draft
            peer_options = PeerOptions(str(model), n_slots, n_ctx, n_threads, drafting, options.peer_openmp, path)
            server = servers.enter_context(PeerServer(peer_options))
            sides[side] = HttpSide(server.url)
            report.settings["peer"] = {"build": peer.build if peer is not None else "generic", **server.description}
        measure_part(part, sides, options, turns)


def _our_options(model: Path, draft: str | None, n_threads: int, n_slots: int, n_ctx: int) -> list[str]:
    shared = ["--model", str(model), "--parallel", str(n_slots), "--ctx", str(n_ctx), "--threads", str(n_threads)]
    # No disk cache: prompts of an earlier run would be found there.
    return [*shared, "--cache-disk", "0", *(["--draft", draft] if draft else ["--speculation", "off"])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts")
    parser.add_argument("--server", metavar="PATH", help="the llama-server to compare with")
    parser.add_argument(
        "--rounds",
        type=int,
        choices=range(1, 51),
        metavar="N",
        help=f"rounds of turns of each part (default: {', '.join(f'{part} {n}' for part, n in _ROUNDS.items())})",
    )
    parser.add_argument("--tokens", type=int, default=prompts.N_TOKENS, help="most tokens of a reply to a short prompt")
    parser.add_argument(
        "--clients", type=int, nargs="+", choices=range(1, 65), default=list(CLIENTS), metavar="N", help="at once"
    )
    parser.add_argument(
        "--long-clients",
        type=int,
        nargs="+",
        choices=range(1, 65),
        default=list(LONG_CLIENTS),
        metavar="N",
        help="at once, of long prompts",
    )
    add_options(parser)
    parser.add_argument("--threads", type=int, help="threads of both sides; all physical cores if left out")
    parser.add_argument(
        "--peer-openmp",
        choices=("default", "tuned"),
        default="default",
        help="how the peer's threads wait: as its users get it, or with the settings that Slipstream's engine uses",
    )
    plots.add_option(parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("peers", measure, _parser()))
