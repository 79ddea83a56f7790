"""Embeddings per second beside llama.cpp's own server: the same file, texts and threads, both over HTTP, in turns.

The file is an encoder with the dimensions of bge-small (33 million parameters) and random weights. A case is a number
of clients, each with texts of one length in every request. The peer is llama-server with ``--embeddings`` and as many
slots as the largest request has texts. A ratio is the median over all turns, and above 1 if Slipstream is faster.
"""

import argparse
import contextlib
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
        """Send all requests at once; return the seconds until all are answered, and the first one's vectors."""
        with ThreadPoolExecutor(len(bodies)) as clients:
            began = time.perf_counter()
            answers = list(clients.map(self._embed, bodies))
            seconds = time.perf_counter() - began
        first = sorted(json.loads(answers[0])["data"], key=lambda one: one["index"])
        return seconds, [one["embedding"] for one in first]

    def _embed(self, texts: list[list[int]]) -> bytes:
        body = json.dumps({"model": "any", "input": texts}).encode()
        with urllib.request.urlopen(urllib.request.Request(self._url, body, self._headers), timeout=60) as answer:
            return bytes(answer.read())


def measure_case(case: EmbeddingCase, sides: Mapping[str, EmbeddingSide], n_rounds: int) -> ReportRow:
    """Return the texts per second of each side, and the smallest cosine between their vectors."""
    noise = np.random.default_rng(1)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    nearest = 1.0
    for round_ in range(n_rounds + 1):
        shape = (case.n_clients, case.n_texts, case.n_tokens)
        bodies = noise.integers(300, _N_VOCAB, shape).tolist()
        found = {}
        for name in list(sides)[:: 1 if round_ % 2 else -1]:
            seconds, found[name] = sides[name].run(bodies)
            if round_:  # the first warms up
                rates[name].append(case.n_clients * case.n_texts / seconds)
        ours, peers = (np.array(vectors) for vectors in (found[OURS], found[PEER]))
        nearest = min(nearest, float((ours * peers).sum(axis=1).min()))
    ratios = [ours / peer for ours, peer in zip(rates[OURS], rates[PEER], strict=True)]
    row: ReportRow = {"clients": case.n_clients, "texts": case.n_texts, "tokens": case.n_tokens}
    row |= {f"{name} texts/s": median(found) for name, found in rates.items()}
    say(f"{case}: {median(ratios):.2f}")
    return row | {"ratio": median(ratios), "cosine": nearest}


def measure(options: argparse.Namespace) -> BenchReport:
    """Start both servers and measure all cases."""
    try:
        peer = find_peer(options.server)
    except PeerFailed as error:
        raise SystemExit(str(error)) from None
    if peer is None:
        raise SystemExit("This bench needs a llama-server: build one with benchmarks/native_peer.sh, or name one.")
    n_threads = options.threads or core_count()
    path = gguf_factory.cached_file("bench-bert-small.gguf", lambda path: bert(path, "mean", _BGE_SMALL))
    report = BenchReport("embeddings", settings={"threads": n_threads, "rounds": options.rounds})
    with contextlib.ExitStack() as servers:
        ours = servers.enter_context(ServerProcess(["--model", str(path), "--threads", str(n_threads)]))
        arguments = ("--embeddings", "--pooling", "mean", "--batch-size", "512", "--ubatch-size", "512")
        wanted = PeerOptions(str(path), _SLOTS, _BGE_SMALL.n_ctx, n_threads, server=peer.path, more=arguments)
        theirs = servers.enter_context(PeerServer(wanted))
        report.settings["peer"] = {"build": peer.build, **theirs.description}
        sides = {OURS: EmbeddingSide(ours.wait_listening(), ours.api_key), PEER: EmbeddingSide(theirs.url)}
        report.rows = [measure_case(case, sides, options.rounds) for case in CASES]
    report.summary = {
        "ratio": median([row["ratio"] for row in report.rows]),
        "lowest ratio": min(row["ratio"] for row in report.rows),
        "lowest cosine": min(row["cosine"] for row in report.rows),
    }
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each case")
    parser.add_argument("--threads", type=int, help="threads of both sides")
    parser.add_argument("--server", help="path of a llama-server to compare with")
    return run_bench("embeddings", measure, parser)


if __name__ == "__main__":
    raise SystemExit(main())
