"""Embeddings per second beside llama.cpp's own server: the same file, texts and threads, both over HTTP, in turns.

The file is an encoder with the dimensions of bge-small (33 million parameters) and random weights. A case is a number
of clients, each with texts of one length in every request. The peer is llama-server with ``--embeddings`` and as many
slots as the largest request has texts. Both are started several times, because the place of a process's memory makes it
faster or slower by several per cent for its whole life. A short pause comes before each turn: the threads of the other
side go on spinning for some milliseconds after its last answer, which would slow down whoever comes next. Each turn
begins with requests that are not measured: Slipstream leaves cores to programs that computed a moment ago, here the
peer, which a server alone on its machine does not meet. A ratio is the median over all turns of all starts, and above 1
if Slipstream is faster.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from app.client.server_process import ServerProcess
from benchmarks.peer_server import PeerFailed, PeerOptions, PeerServer, find_peer
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from core.machine.host import core_count
from tools.model_factory import gguf_factory
from tools.model_factory.embedder_factory import BertShape, bert

OURS, PEER = "slipstream", "llama.cpp"
_BGE_SMALL = BertShape(n_embd=384, n_ff=1536, n_layers=12, n_heads=12, n_ctx=512)
_N_VOCAB = 4_000  # of the tokens of the texts
_SLOTS = 16
# Seconds: between two turns, before a turn is measured, and of a turn at least.
_PAUSE, _WARM_UP, _SHORTEST_TURN = 0.05, 0.3, 0.1


@dataclass(frozen=True)
class EmbeddingCase:
    """``n_clients`` at once, each with one request of ``n_texts`` texts of ``n_tokens`` tokens."""

    n_clients: int
    n_texts: int
    n_tokens: int


CASES = (
    EmbeddingCase(1, 1, 16),
    EmbeddingCase(1, 32, 16),
    EmbeddingCase(1, 16, 128),
    EmbeddingCase(1, 4, 480),
    EmbeddingCase(8, 4, 32),
)


class EmbeddingSide:
    """A server by its address and key."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        self._url = f"{url}/v1/embeddings"
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def run(self, bodies: Sequence[list[list[int]]]) -> tuple[float, list[list[float]]]:
        """Send all requests at once; return the seconds until all are answered, and the first one's vectors.

        Short ones are sent again and again: the seconds are a mean.
        """
        with ThreadPoolExecutor(len(bodies)) as clients:
            began = time.perf_counter()
            while time.perf_counter() - began < _WARM_UP:
                list(clients.map(self._embed, bodies))
            began = time.perf_counter()
            seconds, n_times = 0.0, 0
            while seconds < _SHORTEST_TURN:
                answers = list(clients.map(self._embed, bodies))
                seconds, n_times = time.perf_counter() - began, n_times + 1
        first = sorted(json.loads(answers[0])["data"], key=lambda one: one["index"])
        return seconds / n_times, [one["embedding"] for one in first]

    def _embed(self, texts: list[list[int]]) -> bytes:
        body = json.dumps({"model": "any", "input": texts}).encode()
        with urllib.request.urlopen(urllib.request.Request(self._url, body, self._headers), timeout=60) as answer:
            return bytes(answer.read())


@dataclass
class CaseTimes:
    """Texts per second of each side in all turns, and the smallest cosine between their vectors."""

    rates: dict[str, list[float]] = field(default_factory=lambda: {OURS: [], PEER: []})
    cosine: float = 1.0


def measure_case(case: EmbeddingCase, sides: Mapping[str, EmbeddingSide], n_rounds: int, times: CaseTimes) -> None:
    """Add the turns of one start to ``times``."""
    noise = np.random.default_rng(1)
    for round_ in range(n_rounds + 1):
        shape = (case.n_clients, case.n_texts, case.n_tokens)
        bodies = noise.integers(300, _N_VOCAB, shape).tolist()
        found = {}
        for name in list(sides)[:: 1 if round_ % 2 else -1]:
            time.sleep(_PAUSE)
            seconds, found[name] = sides[name].run(bodies)
            if round_:  # the first warms up
                times.rates[name].append(case.n_clients * case.n_texts / seconds)
        ours, peers = (np.array(vectors) for vectors in (found[OURS], found[PEER]))
        times.cosine = min(times.cosine, float((ours * peers).sum(axis=1).min()))


def row_of(case: EmbeddingCase, times: CaseTimes) -> ReportRow:
    """Return the medians of a case."""
    ratios = [ours / peer for ours, peer in zip(times.rates[OURS], times.rates[PEER], strict=True)]
    row: ReportRow = {"clients": case.n_clients, "texts": case.n_texts, "tokens": case.n_tokens}
    row |= {f"{name} texts/s": median(found) for name, found in times.rates.items()}
    return row | {"ratio": median(ratios), "cosine": times.cosine}


def measure(options: argparse.Namespace) -> BenchReport:
    """Start both servers some times and measure all cases."""
    try:
        peer = find_peer(options.server)
    except PeerFailed as error:
        raise SystemExit(str(error)) from None
    if peer is None:
        raise SystemExit("This bench needs a llama-server: build one with benchmarks/native_peer.sh, or name one.")
    n_threads = options.threads or core_count()
    path = gguf_factory.cached_file("bench-bert-small.gguf", lambda path: bert(path, "mean", _BGE_SMALL))
    settings = {"threads": n_threads, "rounds": options.rounds, "starts": options.starts}
    report = BenchReport("embeddings", settings=settings)
    times = {case: CaseTimes() for case in CASES}
    arguments = ("--embeddings", "--pooling", "mean", "--batch-size", "512", "--ubatch-size", "512")
    wanted = PeerOptions(str(path), _SLOTS, _BGE_SMALL.n_ctx, n_threads, server=peer.path, more=arguments)
    for start in range(options.starts):
        with contextlib.ExitStack() as servers:
            ours = servers.enter_context(ServerProcess(["--model", str(path), "--threads", str(n_threads)]))
            theirs = servers.enter_context(PeerServer(wanted))
            report.settings["peer"] = {"build": peer.build, **theirs.description}
            sides = {OURS: EmbeddingSide(ours.wait_listening(), ours.api_key), PEER: EmbeddingSide(theirs.url)}
            for case, taken in times.items():
                measure_case(case, sides, options.rounds, taken)
        say(f"start {start + 1} of {options.starts}")
    report.rows = [row_of(case, taken) for case, taken in times.items()]
    report.summary = {
        "ratio": median([row["ratio"] for row in report.rows]),
        "lowest ratio": min(row["ratio"] for row in report.rows),
        "lowest cosine": min(row["cosine"] for row in report.rows),
    }
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each case after each start")
    parser.add_argument("--starts", type=int, default=5, help="how often both servers are started")
    parser.add_argument("--threads", type=int, help="threads of both sides")
    parser.add_argument("--server", help="path of a llama-server to compare with")
    return run_bench("embeddings", measure, parser)


if __name__ == "__main__":
    raise SystemExit(main())
