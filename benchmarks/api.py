"""The endpoint beside its engine: what HTTP adds, 64 streams, 10,000 requests, and an agent's reuse of its prompts.

The model is Ember, deep Ember where rates are compared. The engine is the same engine process as the server's, driven
by this program over its pipe. Nothing is drafted. Parts:

- ttft: the same prompt to the engine and over HTTP, in turns, one client; the difference of the times to first text.
- rate: tokens per second of some long streams with the server working and at rest, in turns (``api_rate.py``); the
  control compares rests with rests. The processor time of the server is told for each token.
- streams: the texts of simultaneous streams compared with those of the same requests without streaming, in each
  protocol.
- requests: memory and slots after a tenth of many small requests and after all of them; some are cancelled.
- agent: in an agent's conversation with tools, the share of the earlier text that a turn finds in the cache.
"""

from __future__ import annotations

import argparse
import itertools
import queue
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil

from app.client.server_process import ServerProcess
from benchmarks.api_agent import CONVERSATIONS, CompletionConversation, converse, drops_thoughts, reread, shares
from benchmarks.api_client import PROTOCOLS, ApiClient, Protocol, Stream, as_turn
from benchmarks.api_rate import Ratio, Turn, TurnServer, rate, rounds_of, turn_server
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from benchmarks.target import add_options, settings_of, target_file
from core.machine.host import core_count
from core.process.supervisor import Supervisor
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, EnginePhase, Event, FinishReason, Token
from core.values.request import Request, SamplingParams
from tools.model_factory import gguf_factory

PARTS = ("ttft", "rate", "streams", "requests", "agent")
_GREEDY = SamplingParams(temperature=0, ignore_eos=True)
_N_CTX = 512
_AGENT_CTX = 8_192
_TTFT_TOKENS = 2
_THOUGHT_TOKENS = "16"  # the most tokens of the agent's reasoning, which the bundled model never ends by itself
_LONGEST_LOAD = 120.0  # seconds
_MOST_EMPTY_WAVES = 20  # sets of streams, of a model so fast that hardly a round fits in
_FRESH = itertools.count()


def _prompt() -> str:
    """Return a prompt that no cache has seen."""
    return f"Tell me story number {next(_FRESH)} about a fox and a jar of honey."


class EngineSide:
    """An engine process of its own, as the server has one."""

    def __init__(self, model: Path, n_slots: int, n_threads: int, folder: Path) -> None:
        self._events: queue.SimpleQueue[tuple[float, Event]] = queue.SimpleQueue()
        self._supervisor = Supervisor(self._listen, log_folder=folder, cache_folder=folder)
        options = EngineOptions(str(model), n_slots=n_slots, n_ctx=_N_CTX, n_threads=n_threads, speculation="off")
        self._supervisor.load(options)
        until = time.monotonic() + _LONGEST_LOAD
        while self._supervisor.state.model is None:
            if time.monotonic() > until or self._supervisor.state.phase is EnginePhase.FAILED:
                raise RuntimeError(f"{model} was not loaded: {self._supervisor.state.problem}")
            time.sleep(0.01)

    def _listen(self, events: tuple[Event, ...]) -> None:
        now = time.perf_counter()
        for event in events:
            if isinstance(event, Token | Ended):
                self._events.put((now, event))

    def run(self, prompts: Sequence[str], n_tokens: int) -> tuple[float, float]:
        """Run requests at once; return the seconds to the first text, and to the end of all."""
        began = time.perf_counter()
        for prompt in prompts:
            self._supervisor.submit(Request(str(next(_FRESH)), prompt, n_tokens, sampling=_GREEDY))
        n_open, first = len(prompts), 0.0
        while n_open:
            at, event = self._events.get()
            if isinstance(event, Ended):
                assert event.reason is FinishReason.LENGTH, event
                n_open -= 1
            elif isinstance(event, Token) and event.text:
                first = first or at
        return first - began, at - began

    def close(self) -> None:
        self._supervisor.close()


@contextmanager
def serving(model: Path, n_slots: int, n_threads: int, *more: str, n_ctx: int = _N_CTX) -> Iterator[ServerProcess]:
    """Run a server, and wait until its model is loaded."""
    options = ["--model", str(model), "--parallel", str(n_slots), "--ctx", str(n_ctx), "--threads", str(n_threads)]
    # No disk cache: prompts of an earlier run would be found there.
    with ServerProcess([*options, "--speculation", "off", "--cache-disk", "0", *more]) as server:
        client = ApiClient(server.wait_listening(), server.api_key)
        deadline = time.monotonic() + _LONGEST_LOAD
        while (state := client.get("/slipstream/state"))["phase"] != "ready":
            if state["phase"] == "failed" or time.monotonic() > deadline:
                raise SystemExit(f"The server did not load its model: {state}")
            time.sleep(0.05)
        client.close()
        yield server


def measure_ttft(engine: EngineSide, client: ApiClient, protocol: Protocol, rounds: int) -> ReportRow:
    """Return how much later the first text comes over HTTP than from the engine, in milliseconds."""
    direct, http, added = [], [], []
    for turn in range(rounds + 1):
        prompt = _prompt()
        times: dict[bool, float] = {}
        for is_http in (turn % 2 == 0, turn % 2 == 1):
            if is_http:
                times[is_http] = client.stream(protocol, prompt, _TTFT_TOKENS).ttft
            else:
                times[is_http] = engine.run([as_turn(prompt)], _TTFT_TOKENS)[0]
        if turn:  # the first warms up
            direct.append(times[False])
            http.append(times[True])
            added.append(times[True] - times[False])
    return {
        "protocol": protocol.name,
        "engine_ttft_ms": round(median(direct) * 1e3, 2),
        "http_ttft_ms": round(median(http) * 1e3, 2),
        "added_ms_p50": round(median(added) * 1e3, 2),
    }


def measure_rate(server: TurnServer, n_streams: int, n_waves: int) -> ReportRow:
    """Return tokens per second with the server working and at rest, and the ratio of the two with its interval."""
    rounds: list[Sequence[Turn]] = []
    for wave in itertools.count():
        if wave >= n_waves and len(rounds) > 1:
            break
        if wave > n_waves + _MOST_EMPTY_WAVES:
            raise SystemExit("The replies end before the turns do: take a slower model, with more --layers.")
        rounds += rounds_of(server.stream([as_turn(_prompt()) for _ in range(n_streams)]))
    worked, rested = ([[turn for turn in one if turn.works is works] for one in rounds] for works in (True, False))
    found = Ratio.of([rate(one) / rate(other) for one, other in zip(worked, rested, strict=True)])
    # The last rest of a round and the first of the next are beside each other, except between two sets of streams.
    control = Ratio.of([rate(after[:1]) / rate(before[-1:]) for before, after in itertools.pairwise(rested)])
    turns = [turn for one in worked for turn in one]
    return {
        "streams": n_streams,
        "rounds": len(rounds),
        "engine_tokens_per_s": round(median([rate(one) for one in rested]), 1),
        "http_tokens_per_s": round(median([rate(one) for one in worked]), 1),
        "http_vs_engine": round(found.median, 4),
        "http_vs_engine_low": round(found.low, 4),
        "http_vs_engine_high": round(found.high, 4),
        "engine_vs_engine": round(control.median, 4),
        "server_us_per_token": round(
            sum(turn.server_seconds for turn in turns) / sum(turn.n_tokens for turn in turns) * 1e6, 1
        ),
    }


def measure_streams(server: ServerProcess, protocol: Protocol, n_streams: int, n_tokens: int) -> ReportRow:
    """Return how many of ``n_streams`` at once differ from the same requests unstreamed, or do not end exactly once."""
    clients = [ApiClient(server.wait_listening(), server.api_key) for _ in range(n_streams)]
    prompts = [_prompt() for _ in clients]
    with ThreadPoolExecutor(n_streams) as threads:

        def stream(index: int) -> Stream:
            return clients[index].stream(protocol, prompts[index], n_tokens)

        def ask(index: int) -> str:
            return clients[index].ask(protocol, prompts[index], n_tokens)

        streams = list(threads.map(stream, range(n_streams)))
        texts = list(threads.map(ask, range(n_streams)))
    for client in clients:
        client.close()
    pairs = list(zip(streams, texts, strict=True))
    return {
        "protocol": protocol.name,
        "streams": n_streams,
        "chunks": sum(stream.n_chunks for stream in streams),
        "wrong_texts": sum(stream.text != text or not text for stream, text in pairs),
        "wrong_ends": sum(bool(stream.faults) for stream in streams),
    }


def measure_requests(server: ServerProcess, options: argparse.Namespace) -> ReportRow:
    """Return the memory after a tenth of the requests and after all, and the number of slots that are busy then."""
    n_clients = min(options.slots, options.requests)
    clients = [ApiClient(server.wait_listening(), server.api_key) for _ in range(n_clients)]
    n_cancelled = 0

    def send(indices: range) -> int:
        """Send these requests over one connection, and cancel one in twenty."""
        client, n_left = clients[indices.start % n_clients], 0
        for index in indices:
            protocol, prompt = PROTOCOLS[index % len(PROTOCOLS)], f"What is {index % 100} and 1?"
            if index % 20 == 19:
                client.leave_stream(protocol, prompt, 64)
                n_left += 1
            elif index % 2:
                client.stream(protocol, prompt, 4)
            else:
                client.ask(protocol, prompt, 4)
        return n_left

    memory, began, n_done = [], time.perf_counter(), 0
    with ThreadPoolExecutor(n_clients) as threads:
        for n_until in (options.requests // 10, options.requests):
            ranges = [range(n_done + first, n_until, n_clients) for first in range(n_clients)]
            n_cancelled += sum(threads.map(send, [one for one in ranges if one]))
            n_done = n_until
            _wait_idle(clients[0])
            memory.append(_memory(server.pid))
            say(f"{n_done} requests: {memory[-1]}")
    slots = clients[0].get("/slots")
    for client in clients:
        client.close()
    early, late = memory
    return {
        "requests": options.requests,
        "cancelled": n_cancelled,
        "requests_per_s": round(options.requests / (time.perf_counter() - began), 1),
        "slots": len(slots),
        "busy_slots": sum(slot["is_processing"] for slot in slots),
        **{f"{name}_mib_early": round(early[name], 1) for name in early},
        **{f"{name}_mib_growth": round(late[name] - early[name], 1) for name in early},
    }


def _wait_idle(client: ApiClient) -> None:
    deadline = time.monotonic() + 30
    while client.get("/slipstream/requests")["data"] and time.monotonic() < deadline:
        time.sleep(0.05)


def _memory(pid: int) -> dict[str, float]:
    """Return the MiB of the server and of its engine."""
    server = psutil.Process(pid)
    engine = next(child for child in server.children() if "core.loading.worker" in " ".join(child.cmdline()))
    return {"server": server.memory_info().rss / 2**20, "engine": engine.memory_info().rss / 2**20}


def measure_agent(server: ServerProcess, template: str, n_turns: int) -> list[ReportRow]:
    """Return a row for each protocol: the lowest share of the earlier text that a turn found in the cache."""
    client = ApiClient(server.wait_listening(), server.api_key)
    drops = drops_thoughts(client)
    rows: list[ReportRow] = []
    for name, kind in CONVERSATIONS.items():
        if kind is CompletionConversation and template != "ember":
            continue  # it brings Ember's template itself
        turns = converse(kind(client), n_turns, name)
        of_all, of_kept = shares(turns, drops_thoughts=drops)
        rows.append(
            {
                "template": template,
                "protocol": name,
                "turns": n_turns,
                "reused_min": round(min(of_all), 4),
                "reused_p50": round(median(of_all), 4),
                "reused_of_kept_min": round(min(of_kept), 4) if of_kept else None,
                "first_prompt_tokens": turns[0].n_prompt,
                "reread_tokens_p50": median([float(count) for count in reread(turns)]),
            }
        )
        say(f"{template}, {name}: {rows[-1]['reused_min']}")
    client.close()
    return rows


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the parts that are wanted."""
    n_threads = options.threads or core_count()
    names = ("rounds", "tokens", "slots", "requests", "turns")
    settings = {**settings_of(options), **{name: getattr(options, name) for name in names}}
    report = BenchReport("api", settings={**settings, "threads": n_threads})
    target = target_file(options)
    for part in options.parts:
        say(part)
        rows, summary = _PARTS[part](options, target, n_threads)
        report.rows += [{"part": part, **row} for row in rows]
        report.summary |= summary
    return report


_Found = tuple[list[ReportRow], dict[str, float | str | None]]


def _ttft(options: argparse.Namespace, _deep: Path, n_threads: int) -> _Found:
    model = gguf_factory.EMBER
    with _engine(model, 1, n_threads) as engine, serving(model, 1, n_threads) as server:
        client = ApiClient(server.wait_listening(), server.api_key)
        # Many rounds: each takes some milliseconds.
        rows = [measure_ttft(engine, client, protocol, 10 * options.rounds) for protocol in PROTOCOLS[:3]]
        client.close()
    return rows, {"added_ttft_ms_max": max(row["added_ms_p50"] for row in rows)}


def _rate(options: argparse.Namespace, model: Path, n_threads: int) -> _Found:
    rows = []
    with turn_server(model, options.slots, n_threads) as server:
        for n_streams in sorted({1, max(1, options.slots // 4), options.slots}):
            rows.append(measure_rate(server, n_streams, options.rounds))
            say(f"rate of {n_streams}: {rows[-1]['http_vs_engine']}")
    return rows, {f"{name}_min": min(row[name] for row in rows) for name in ("http_vs_engine", "http_vs_engine_low")}


def _streams(options: argparse.Namespace, deep: Path, n_threads: int) -> _Found:
    with serving(deep, options.slots, n_threads) as server:
        rows = [measure_streams(server, protocol, options.slots, options.tokens) for protocol in PROTOCOLS]
    return rows, {"wrong_streams": sum(row["wrong_texts"] + row["wrong_ends"] for row in rows)}


def _requests(options: argparse.Namespace, _deep: Path, n_threads: int) -> _Found:
    with serving(gguf_factory.EMBER, min(8, options.slots), n_threads) as server:
        row = measure_requests(server, options)
    growth = max(row["server_mib_growth"], row["engine_mib_growth"])
    return [row], {"memory_growth_mib_max": growth, "busy_slots_after": row["busy_slots"]}


def _agent(options: argparse.Namespace, _deep: Path, n_threads: int) -> _Found:
    rows: list[ReportRow] = []
    for template in (None, *options.templates):
        more = ["--reasoning-budget", _THOUGHT_TOKENS]
        if template is not None:
            more += ["--chat-template-file", str(template)]
        with serving(gguf_factory.EMBER, 1, n_threads, *more, n_ctx=_AGENT_CTX) as server:
            rows += measure_agent(server, template.stem if template else "ember", options.turns)
    return rows, {"agent_reused_min": min(row["reused_min"] for row in rows)}


_PARTS = {"ttft": _ttft, "rate": _rate, "streams": _streams, "requests": _requests, "agent": _agent}


@contextmanager
def _engine(model: Path, n_slots: int, n_threads: int) -> Iterator[EngineSide]:
    with tempfile.TemporaryDirectory() as folder:
        engine = EngineSide(model, n_slots, n_threads, Path(folder))
        try:
            yield engine
        finally:
            engine.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these")
    parser.add_argument(
        "--rounds", type=int, default=5, help="a tenth of the turns of ttft, and sets of streams for rate"
    )
    parser.add_argument("--tokens", type=int, default=96, help="tokens of a reply, where streams are compared")
    parser.add_argument("--slots", type=int, default=64, choices=range(1, 65), metavar="N", help="most streams at once")
    add_options(parser)
    parser.add_argument("--requests", type=int, default=10_000, help="small requests, at least 20")
    parser.add_argument("--turns", type=int, default=20, help="turns of the agent")
    parser.add_argument(
        "--templates",
        type=Path,
        nargs="*",
        default=[],
        metavar="FILE",
        help="chat templates for the agent, beside Ember's",
    )
    parser.add_argument("--threads", type=int, default=None, help="threads of both sides (default: all cores)")
    return parser


if __name__ == "__main__":
    raise SystemExit(run_bench("api", measure, _parser()))
