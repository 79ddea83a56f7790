"""Time to the first token when the beginning of a prompt is cached: a second turn, sub-agents, after a restart."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.client.server_process import ServerProcess
from app.environment.paths import HOME_VARIABLE
from benchmarks import prompts
from benchmarks.http_load import StreamedReply, run_load
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from core.kv_cache.disk_cache import FOLDER
from core.llama.library import silence_log
from core.llama.model import Model
from core.machine.host import core_count
from tools.model_factory import gguf_factory

# Ember was trained for 1,024 positions.
N_CTX = 1024
HISTORY, SHARED, OWN = 800, 600, 20
N_AGENTS = 8
N_REPLY = 32
_TURN_END = "<|im_end|>\n"
_REPLY = "Once upon a time, there was a happy fox named Ella."
CacheSample = tuple[float, float, int]
"""Seconds to the first token without the cached prefix and with it, and how many tokens were found in the cache."""
# Cache files count as complete if none has changed for this many seconds.
_QUIET = 1.0


class Texts:
    """Prompts of exact lengths in words that Ember knows; no two share a beginning."""

    def __init__(self) -> None:
        self._model = Model(str(gguf_factory.EMBER))
        self._vocab = self._model.vocab
        self._n_used = 0

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [int(token) for token in self._vocab.tokenize(text)]

    def fresh(self, n_tokens: int) -> list[int]:
        """Return the first ``n_tokens`` of a long chat that was not used before."""
        found: list[int] = []
        while len(found) < n_tokens:
            (turn,) = prompts.mixed(1, self._n_used)
            self._n_used += 1
            found += self.tokens(turn + _REPLY + _TURN_END)
        return found[:n_tokens]

    def next_turn(self, history: list[int], reply: str) -> list[int]:
        """Return the next turn's prompt after ``reply``, as a client builds it."""
        return history + self.tokens(reply + _TURN_END + prompts.chat("Tell me more."))

    def close(self) -> None:
        self._model.close()


class Server:
    """A server on deep Ember that keeps its cache in a folder of this bench."""

    def __init__(self, model: Path, home: Path, n_threads: int) -> None:
        arguments = ["--model", str(model), "--parallel", str(N_AGENTS), "--ctx", str(N_CTX)]
        arguments += ["--threads", str(n_threads), "--speculation", "off", "--cache-disk", "4G"]
        self._folder = home / "cache" / FOLDER
        self._process = ServerProcess(arguments)
        self._url = self._process.wait_listening()
        # Warm-up: the first request of a process is slow.
        self.ask(list(range(20, 36)))

    def ask(self, *all_tokens: list[int], n_reply: int = 1) -> tuple[StreamedReply, ...]:
        """Send prompts at once."""
        bodies: list[dict[str, object]] = [
            {"prompt": tokens, "max_tokens": n_reply, "temperature": 0, "ignore_eos": True} for tokens in all_tokens
        ]
        return run_load(self._url, bodies, self._process.api_key).replies

    def settle(self) -> None:
        """Wait until all cached prompts are on disk."""
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < _QUIET:
            found = sum(path.stat().st_size for path in self._folder.rglob("*.kv"))
            if found != seen:
                seen, since = found, time.monotonic()
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.stop()


def second_turn(server: Server, texts: Texts) -> CacheSample:
    """Return the TTFT of a first turn of 800 tokens and of the second turn, and how many of its tokens were cached."""
    server.settle()
    history = texts.fresh(HISTORY)
    (first,) = server.ask(history, n_reply=N_REPLY)
    (second,) = server.ask(texts.next_turn(history, first.text))
    return first.ttft, second.ttft, second.n_cached


def sub_agents(server: Server, texts: Texts) -> CacheSample:
    """Return the median TTFT of 8 prompts with nothing in common, of 8 that share 600 tokens, and tokens cached."""
    server.settle()
    alone = server.ask(*[texts.fresh(SHARED + OWN) for _ in range(N_AGENTS)])
    server.settle()
    shared = texts.fresh(SHARED)
    together = server.ask(*[shared + texts.fresh(OWN) for _ in range(N_AGENTS)])
    ttfts = [median([reply.ttft for reply in replies]) for replies in (alone, together)]
    return ttfts[0], ttfts[1], sum(reply.n_cached for reply in together)


@contextmanager
def _home() -> Iterator[Path]:
    """Put caches, logs and measurements of the servers into a temporary folder."""
    before = os.environ.get(HOME_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="slipstream-bench-") as folder:
        os.environ[HOME_VARIABLE] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ[HOME_VARIABLE]
            else:
                os.environ[HOME_VARIABLE] = before


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    n_threads = options.threads or core_count()
    settings = {"rounds": options.rounds, "layers": options.layers, "threads": n_threads}
    report = BenchReport("cache", settings={**settings, "history": HISTORY, "shared": SHARED, "agents": N_AGENTS})
    model = gguf_factory.cached(gguf_factory.Recipe(n_layers=options.layers))
    texts = Texts()
    with _home() as home:
        server = Server(model, home, n_threads)
        turns = _rounds("second turn", options.rounds, lambda: second_turn(server, texts))
        agents = _rounds("sub-agents", options.rounds, lambda: sub_agents(server, texts))
        histories = [texts.fresh(HISTORY) for _ in range(options.rounds)]
        firsts = [server.ask(history)[0].ttft for history in histories]
        server.settle()
        server.stop()
        server = Server(model, home, n_threads)
        again = [server.ask(history)[0] for history in histories]
        server.stop()
    texts.close()
    restarts = [(first, reply.ttft, reply.n_cached) for first, reply in zip(firsts, again, strict=True)]
    measured = {"second_turn": turns, "shared_prefix": agents, "restart": restarts}
    report.rows = [_row(name, values) for name, values in measured.items()]
    report.summary = {f"{row['what']}_ttft_ratio": row["ratio"] for row in report.rows}
    return report


def _rounds(name: str, n_rounds: int, once: Callable[[], CacheSample]) -> list[CacheSample]:
    samples = []
    for _ in range(n_rounds):
        samples.append(once())
        say(f"{name}: {samples[-1][1] * 1e3:.0f} ms instead of {samples[-1][0] * 1e3:.0f} ms")
    return samples


def _row(name: str, samples: list[CacheSample]) -> ReportRow:
    return {
        "what": name,
        "ttft_ms_without": round(median([without for without, _, _ in samples]) * 1e3, 1),
        "ttft_ms": round(median([ttft for _, ttft, _ in samples]) * 1e3, 1),
        "ratio": round(median([ttft / without for without, ttft, _ in samples]), 4),
        "cached_tokens": round(median([n_cached for _, _, n_cached in samples])),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=60, help="layers of deep Ember")
    parser.add_argument("--rounds", type=int, default=5, help="of each kind; medians are reported")
    parser.add_argument("--threads", type=int, default=None, help="threads of the engine (default: all cores)")
    raise SystemExit(run_bench("cache", measure, parser))
