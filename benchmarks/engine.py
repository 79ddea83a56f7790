"""Engine against a bare llama_decode loop, and HTTP against the engine, on Ember and deep Ember."""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

from core.process.child_process import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: the same for both sides, and what the engine process uses

import numpy as np
import numpy.typing as npt

from app.client.server_process import ServerProcess
from app.settings.worker_tokens import tokens_for
from benchmarks.bare_loop import BareLoop
from benchmarks.http_load import run_load
from benchmarks.report import BenchReport, ReportRow, median, run_bench, say
from benchmarks.target import add_options, settings_of, target_file
from core.engine.engine import Engine
from core.llama.library import silence_log
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.values.addresses import is_worker
from core.values.engine_options import EngineOptions
from core.values.request import Request, SamplingParams
from tools.model_factory import gguf_factory

WIDTHS = (1, 2, 4, 8, 16)
PROMPT = "<|im_start|>user\nTell me a story about a fox.<|im_end|>\n<|im_start|>assistant\n"
N_CTX = 512
GREEDY = SamplingParams(temperature=0, ignore_eos=True)
_STEPS_WARM = 2
# Positions after which both sides restart: attention over a long context would hide the overhead.
_SITTING = 120


class EngineLoop:
    """Requests that run on the engine, a step at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: list[str] = []

    def start(self, prompt: str, n_sequences: int) -> None:
        """Submit ``n_sequences`` requests and step until each has its first token."""
        self.stop()
        self._names = [f"r{index}" for index in range(n_sequences)]
        for name in self._names:
            request = Request(name, prompt, N_CTX, sampling=GREEDY)
            self._engine.submit(self._engine.prepare(request))
        running = self._engine.scheduler.running
        while self._engine.scheduler.waiting.size or any(not sequence.n_generated for sequence in running):
            self._engine.step()

    @property
    def texts(self) -> list[npt.NDArray[np.int32]]:
        """The cached tokens of each request."""
        return [sequence.tokens.view[: sequence.n_past] for sequence in self._engine.scheduler.running]

    def step(self) -> None:
        """Run one step of the engine."""
        self._engine.step()

    def stop(self) -> None:
        """Cancel the requests and drop their cached texts."""
        for name in self._names:
            self._engine.cancel(name)
        if self._names:
            self._engine.step()
        self._engine.forget_texts()


def measure_width(engine: Engine, bare: BareLoop, n_sequences: int, n_steps: int, rounds: int) -> ReportRow:
    """Return the row of one width: medians over rounds of ``n_steps`` steps of each side, in turns."""
    mine = EngineLoop(engine)
    contenders: tuple[EngineLoop | BareLoop, ...] = (mine, bare)
    rows: list[tuple[float, float, float, float]] = []
    per_sitting = max(1, _SITTING // n_steps)
    for turn in range(rounds):
        if turn % per_sitting == 0:
            mine.start(PROMPT, n_sequences)
            # Start from the engine's state: requests submitted together did not start to decode together.
            bare.start(mine.texts)
            for contender in contenders:
                for _ in range(_STEPS_WARM):
                    contender.step()
        stats = engine.stats
        own, decode = stats.own, stats.decode
        # The first side alternates: the clock rate drifts, and each turn starts with the CPU caches of the other side.
        seconds = [_seconds(contender, n_steps) for contender in contenders[:: -1 if turn % 2 else 1]]
        mine_s, bare_s = seconds[:: -1 if turn % 2 else 1]
        rows.append((bare_s, mine_s, stats.own - own, stats.decode - decode))
    mine.stop()
    bare_s, mine_s, own_s, decode_s = (median(list(column)) / n_steps for column in zip(*rows, strict=True))
    return {
        "sequences": n_sequences,
        "bare_tokens_per_s": round(n_sequences / bare_s, 1),
        "engine_tokens_per_s": round(n_sequences / mine_s, 1),
        "engine_vs_bare": round(median([row[0] / row[1] for row in rows]), 4),
        "python_us_per_step": round(own_s * 1e6, 1),
        "python_us_budget": 150 + 30 * n_sequences,
        "decode_us_per_step": round(decode_s * 1e6, 1),
    }


def _seconds(contender: EngineLoop | BareLoop, n_steps: int) -> float:
    began = time.perf_counter()
    for _ in range(n_steps):
        contender.step()
    return time.perf_counter() - began


def engine_load(engine: Engine, n_clients: int, n_tokens: int) -> float:
    """Return tokens/s of ``n_clients`` whole requests, prefill included, without HTTP."""
    engine.forget_texts()
    began = time.perf_counter()
    for index in range(n_clients):
        request = Request(f"r{index}", _prompt(index), n_tokens, sampling=GREEDY)
        engine.submit(engine.prepare(request))
    while not engine.is_idle:
        engine.step()
    return n_clients * n_tokens / (time.perf_counter() - began)


_fresh = itertools.count()


def _prompt(index: int) -> str:
    """Return a prompt that no cache has seen."""
    return PROMPT.replace("fox", f"fox number {next(_fresh)} of {index}")


def measure_http(
    model: Path, engine: Engine, devices: Sequence[str], n_threads: int, n_tokens: int, rounds: int
) -> list[ReportRow]:
    """Return rows of HTTP beside the engine at 1 and 16 clients, in turns."""
    rows: list[ReportRow] = []
    arguments = ["--model", str(model), "--parallel", "16", "--ctx", str(N_CTX), "--threads", str(n_threads)]
    arguments += [part for device in devices for part in ("--device", device)]
    arguments += ["--speculation", "off", "--cache-disk", "0"]  # plain against plain
    with ServerProcess(arguments) as server:
        url = server.wait_listening()
        for n_clients in (1, 16):
            direct, http, ratios, ttfts = [], [], [], []
            for turn in range(rounds + 1):
                rate = engine_load(engine, n_clients, n_tokens)
                bodies: list[dict[str, object]] = [
                    {"prompt": _prompt(index), "max_tokens": n_tokens, "temperature": 0, "ignore_eos": True}
                    for index in range(n_clients)
                ]
                load = run_load(url, bodies, server.api_key)
                assert load.n_tokens == n_clients * n_tokens, "a reply came back short"
                if not turn:
                    continue  # the first round warms both sides up
                direct.append(rate)
                http.append(load.rate)
                ratios.append(load.rate / rate)
                ttfts.append(median([reply.ttft for reply in load.replies]))
            rows.append(
                {
                    "clients": n_clients,
                    "engine_tokens_per_s": round(median(direct), 1),
                    "http_tokens_per_s": round(median(http), 1),
                    "http_vs_engine": round(median(ratios), 4),
                    "ttft_ms_p50": round(median(ttfts) * 1e3, 1),
                }
            )
    return rows


def measure(options: argparse.Namespace) -> BenchReport:
    """Run the bench."""
    silence_log()
    n_threads, devices = options.threads or core_count(), tuple(options.device)
    report = BenchReport(
        "engine",
        settings={
            "rounds": options.rounds,
            "steps": options.steps,
            **settings_of(options),
            "threads": n_threads,
            "devices": list(devices),
        },
    )
    deep = target_file(options)
    for name, model in (("deep", deep), ("ember", gguf_factory.EMBER)):
        say(f"{name}: loading {model.name}")
        engine, _ = load_engine(
            EngineOptions(
                str(model),
                n_slots=16,
                n_ctx=N_CTX,
                n_threads=n_threads,
                speculation="off",
                devices=devices,
                worker_tokens=tokens_for(devices, options.worker_token_file),
            ),
            cache_folder=None,
        )
        bare = BareLoop(engine, n_sequences=WIDTHS[-1], n_threads=n_threads)
        for width in WIDTHS:
            # Narrow steps are short: more of them make turns that are long enough to compare.
            row = measure_width(engine, bare, width, max(2, options.steps // width), options.rounds)
            say(f"{name}: {width} sequences, engine {row['engine_vs_bare']:.3f} of the bare loop")
            report.rows.append({"model": name, **row})
        bare.close()
        if name == "deep" and not any(map(is_worker, devices)):  # a worker lends to one process at a time
            for row in measure_http(model, engine, devices, n_threads, options.tokens, min(options.rounds, 9)):
                say(f"{name}: {row['clients']} clients, HTTP {row['http_vs_engine']:.3f} of the engine")
                report.rows.append({"model": name, **row})
        engine.close()
    deep_rows = [row for row in report.rows if row["model"] == "deep"]
    widths = [row for row in deep_rows if "engine_vs_bare" in row]
    report.summary = {
        "engine_vs_bare_min": min(row["engine_vs_bare"] for row in widths),
        "http_vs_engine": next((row["http_vs_engine"] for row in deep_rows if row.get("clients") == 16), None),
        "python_us_per_step": widths[-1]["python_us_per_step"],
        "python_us_per_step_1": widths[0]["python_us_per_step"],
        "python_share_of_budget_max": round(
            max(row["python_us_per_step"] / row["python_us_budget"] for row in widths), 3
        ),
    }
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=81, help="turns of each side; medians are reported")
    parser.add_argument(
        "--steps",
        type=int,
        default=12,
        help="decode steps of a turn at width 1, fewer where wider",
    )
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each reply over HTTP")
    parser.add_argument("--threads", type=int, default=None, help="threads of both sides (default: all cores)")
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        help="use this device, as doctor names it, or those of a worker, as rpc://HOST:PORT; may be repeated",
    )
    parser.add_argument("--worker-token-file", type=Path, default=None, help="file with the token of the workers")
    raise SystemExit(run_bench("engine", measure, parser))
