"""Slipstream beside llama.cpp's own server: the same file, prompts and threads, both over HTTP, in turns.

The peer is the C++ server of llama.cpp as packaged in xllamacpp, with its own defaults but for the number of threads,
slots and the context, which are ours. Plain decoding is compared with plain decoding, and our drafting (Ember-draft
and lookups, as decided in each step) with the peer's (the same draft, its default of 3 tokens per step). All servers
stay loaded, but only one has work at a time; who goes first alternates. No prompt comes twice to a server, and both
sides get the same ones. The wheel of the peer is built for any processor: ``settings`` names what its build uses.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.server_process import ServerProcess
from benchmarks import plots, prompts
from benchmarks.http_load import Load, run_load
from benchmarks.peer_server import HOW_TO_INSTALL, PeerFailed, PeerOptions, PeerServer, is_installed
from benchmarks.report import Report, Row, median, run_bench, say
from core.measurements import physical_cores
from tests.support import gguf_factory
from tests.support.gguf_factory import EMBER_DRAFT, Recipe

CLIENTS = (1, 4, 16)
MODES = ("plain", "drafted")
SIDES = ("slipstream", "llama.cpp")
_N_CTX = 512
_COLOURS = {"slipstream": "#0969da", "llama.cpp": "#57606a"}


class Side(Protocol):
    """A server that loads are sent to."""

    def run(self, texts: Sequence[str], n_tokens: int) -> Load:
        """Send all prompts at once."""


@dataclass(frozen=True)
class HttpSide:
    """A server by its address and key."""

    url: str
    api_key: str | None = None

    def run(self, texts: Sequence[str], n_tokens: int) -> Load:
        """Send all prompts at once."""
        bodies: list[dict[str, object]] = [
            {"prompt": text, "max_tokens": n_tokens, "temperature": 0, "stream": True} for text in texts
        ]
        return run_load(self.url, bodies, self.api_key)


@dataclass(frozen=True)
class Sample:
    """What one side did with a number of clients in one turn, and the ratios of our side to the peer's in it."""

    mode: str
    side: str
    n_clients: int
    load: Load
    rate_vs_peer: float | None = None
    ttft_vs_peer: float | None = None


def measure_mode(mode: str, sides: tuple[Side, Side], options: argparse.Namespace) -> list[Sample]:
    """Return the samples of our side and the peer's at all numbers of clients."""
    warm = [prompt.text for prompt in prompts.warm_up()]
    for side in sides:
        for n_clients in (1, len(warm)):
            side.run(warm[:n_clients], options.tokens)
    samples: list[Sample] = []
    n_used = 0
    for round_ in range(options.rounds):
        for n_clients in options.clients:
            # One client says little in a turn: it gets as many requests as four clients do, one after the other.
            for _ in range(max(1, 4 // n_clients)):
                texts = prompts.mixed(n_clients, n_used)
                n_used += n_clients
                samples += _measure_turn(mode, sides, round_ % 2, texts, options.tokens)
        say(f"{mode}: round {round_ + 1} of {options.rounds}")
    return samples


def _measure_turn(mode: str, sides: tuple[Side, Side], first: int, texts: Sequence[str], n_tokens: int) -> list[Sample]:
    loads = {index: sides[index].run(texts, n_tokens) for index in (first, 1 - first)}
    ours, theirs = loads[0], loads[1]
    rate, ttft = ours.rate / theirs.rate, _ttft(ours) / _ttft(theirs)
    return [
        Sample(mode, SIDES[0], len(texts), ours, rate, ttft),
        Sample(mode, SIDES[1], len(texts), theirs),
    ]


def _ttft(load: Load) -> float:
    return median([reply.ttft for reply in load.replies])


def rows_of(samples: Sequence[Sample]) -> list[Row]:
    """Return a row for each mode, side and number of clients: medians over its turns."""
    groups: dict[tuple[str, str, int], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.mode, sample.side, sample.n_clients), []).append(sample)
    return [_row(*key, group) for key, group in groups.items()]


def _row(mode: str, side: str, n_clients: int, samples: Sequence[Sample]) -> Row:
    replies = [reply for sample in samples for reply in sample.load.replies]
    per_token = [(reply.total - reply.ttft) / (reply.n_tokens - 1) for reply in replies if reply.n_tokens > 1]
    rates = [sample.rate_vs_peer for sample in samples if sample.rate_vs_peer is not None]
    ttfts = [sample.ttft_vs_peer for sample in samples if sample.ttft_vs_peer is not None]
    return {
        "mode": mode,
        "side": side,
        "clients": n_clients,
        "runs": len(samples),
        "tokens_per_s": round(median([sample.load.rate for sample in samples]), 1),
        "vs_peer": round(median(rates), 4) if rates else None,
        "ttft_ms_p50": round(median([reply.ttft for reply in replies]) * 1e3, 1),
        "ttft_vs_peer": round(median(ttfts), 4) if ttfts else None,
        "ms_per_token_p50": round(median(per_token) * 1e3, 2),
        "tokens": sum(reply.n_tokens for reply in replies),
    }


def summarise(rows: Sequence[Row]) -> dict[str, float | str | None]:
    """Return the lowest ratio of throughput and the highest of time to first token over all numbers of clients."""
    ours = {mode: [row for row in rows if (row["mode"], row["side"]) == (mode, SIDES[0])] for mode in MODES}
    return {
        "vs_peer_aggregate_min": min((row["vs_peer"] for row in ours["plain"]), default=None),
        "vs_peer_ttft_max": max((row["ttft_vs_peer"] for row in ours["plain"]), default=None),
        "vs_peer_drafted_aggregate_min": min((row["vs_peer"] for row in ours["drafted"]), default=None),
        "vs_peer_drafted_ttft_max": max((row["ttft_vs_peer"] for row in ours["drafted"]), default=None),
    }


def draw(report: Report, options: argparse.Namespace) -> None:
    """Draw throughput against latency."""
    series = []
    for side in SIDES:
        for mode in options.modes:
            points = [
                (row["ms_per_token_p50"], row["tokens_per_s"], row["clients"])
                for row in report.rows
                if (row["side"], row["mode"]) == (side, mode)
            ]
            name = f"{side.capitalize() if side == SIDES[0] else side},\n{mode}"
            series.append(plots.Series(name, _COLOURS[side], points, is_dashed=mode == "plain"))
    ratios = [row["vs_peer"] for row in report.rows if row["vs_peer"] is not None]
    title = f"Slipstream gives {min(ratios):.2f} to {max(ratios):.2f} times the throughput of llama.cpp's server"
    model = f"deep Ember, {options.layers} layers, {report.settings['threads']} threads"
    subtitle = f"Over HTTP, prompts of four kinds, greedy; {model}; llama.cpp as the wheel of xllamacpp. Medians."
    plots.draw_throughput(series, options.plot, title, subtitle)


def measure(options: argparse.Namespace) -> Report:
    """Run the bench."""
    if not is_installed():
        raise SystemExit(HOW_TO_INSTALL)
    n_threads = options.threads or physical_cores()
    settings = {
        name: getattr(options, name) for name in ("layers", "rounds", "tokens", "clients", "modes", "peer_openmp")
    }
    report = Report("peers", settings={**settings, "threads": n_threads})
    model = str(gguf_factory.cached(Recipe(n_layers=options.layers)))
    samples: list[Sample] = []
    for mode in options.modes:
        say(f"{mode}: loading")
        draft = str(EMBER_DRAFT) if mode == "drafted" else None
        with contextlib.ExitStack() as servers:
            peer_options = PeerOptions(model, max(options.clients), _N_CTX, n_threads, draft, options.peer_openmp)
            try:
                peer = servers.enter_context(PeerServer(peer_options))
            except PeerFailed as error:
                raise SystemExit(str(error)) from error
            ours = servers.enter_context(ServerProcess(_our_options(model, draft, n_threads, max(options.clients))))
            sides = HttpSide(ours.wait_listening(), ours.api_key), HttpSide(peer.url)
            report.settings["peer"] = peer.description
            samples += measure_mode(mode, sides, options)
    report.rows = rows_of(samples)
    report.summary = summarise(report.rows)
    if options.plot:
        draw(report, options)
    return report


def _our_options(model: str, draft: str | None, n_threads: int, n_slots: int) -> list[str]:
    shared = ["--model", model, "--parallel", str(n_slots), "--ctx", str(_N_CTX), "--threads", str(n_threads)]
    return [*shared, *(["--draft", draft] if draft else ["--speculation", "off"])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=16, choices=range(1, 51), metavar="N", help="rounds of turns")
    parser.add_argument("--tokens", type=int, default=prompts.N_TOKENS, help="most tokens of a reply")
    parser.add_argument(
        "--clients", type=int, nargs="+", choices=range(1, 65), default=list(CLIENTS), metavar="N", help="at once"
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), help="only these")
    parser.add_argument("--layers", type=int, default=60, help="layers of the target")
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
