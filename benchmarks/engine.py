"""Engine against a bare llama_decode loop, and HTTP against the engine, on Ember and deep Ember."""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path

from core.openmp import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: the same for both sides, and what the engine process uses

import numpy as np

from app.server_process import ServerProcess
from benchmarks.http_load import run_load
from benchmarks.report import Report, Row, median, run_bench, say
from core.engine import Engine
from core.llama import log
from core.llama.batch import Batch
from core.llama.context import DecodeStatus
from core.loading import load_engine
from core.measurements import physical_cores
from core.options import EngineOptions
from core.request import Request
from core.sampling_params import SamplingParams
from tests.support import gguf_factory

WIDTHS = (1, 2, 4, 8, 16)
PROMPT = "<|im_start|>user\nTell me a story about a fox.<|im_end|>\n<|im_start|>assistant\n"
N_CTX = 512
GREEDY = SamplingParams(temperature=0, ignore_eos=True)
_STEPS_WARM = 4


def bare_rate(engine: Engine, n_sequences: int, n_steps: int) -> float:
    """Return tokens/s of ``llama_decode`` and arg-max alone, on the engine's own (idle) context."""
    context = engine._context
    while engine._slots.drop_idle():
        pass
    prompt = engine.vocab.tokenize(PROMPT)
    batch = Batch(max(n_sequences, len(prompt)))
    tokens = np.zeros(n_sequences, np.int64)
    for sequence in range(n_sequences):
        batch.clear()
        batch.add_run(prompt, 0, sequence, want_last=True)
        assert context.decode(batch) is DecodeStatus.OK
        context.synchronize()
        tokens[sequence] = context.logits(1)[0].argmax()
    position = len(prompt)
    began = 0.0
    for step in range(_STEPS_WARM + n_steps):
        if step == _STEPS_WARM:
            began = time.perf_counter()
        batch.clear()
        for sequence in range(n_sequences):
            batch.add(int(tokens[sequence]), position, sequence)
        context.decode(batch)
        context.synchronize()
        tokens = context.logits(n_sequences).argmax(axis=1)
        position += 1
    seconds = time.perf_counter() - began
    context.clear()
    return n_sequences * n_steps / seconds


def engine_rate(engine: Engine, n_sequences: int, n_steps: int) -> tuple[float, float, float]:
    """Return tokens/s of the engine's steps, its own µs per step, and µs inside llama_decode per step."""
    while engine._slots.drop_idle():
        pass
    for index in range(n_sequences):
        request = Request(f"r{index}", PROMPT, N_CTX, sampling=GREEDY)
        engine.submit(request, engine.tokenize(request))
    while any(sequence.n_generated < 1 + _STEPS_WARM for sequence in engine._roster.running) or engine.n_waiting:
        engine.step()
    stats = engine.stats
    steps, own, decode = stats.n_steps, stats.own, stats.decode
    began = time.perf_counter()
    for _ in range(n_steps):
        engine.step()
    seconds = time.perf_counter() - began
    steps = stats.n_steps - steps
    for index in range(n_sequences):
        engine.cancel(f"r{index}")
    engine.step()
    return n_sequences * n_steps / seconds, (stats.own - own) / steps * 1e6, (stats.decode - decode) / steps * 1e6


def measure_width(engine: Engine, n_sequences: int, n_steps: int, rounds: int) -> Row:
    """Return the row of one width: medians over rounds in which both sides take turns."""
    bare, mine, ratios, own, inside = [], [], [], [], []
    for turn in range(rounds):
        # Whoever goes first alternates, so that a drifting clock favours nobody.
        if turn % 2:
            rate, own_us, decode_us = engine_rate(engine, n_sequences, n_steps)
            loop = bare_rate(engine, n_sequences, n_steps)
        else:
            loop = bare_rate(engine, n_sequences, n_steps)
            rate, own_us, decode_us = engine_rate(engine, n_sequences, n_steps)
        bare.append(loop)
        mine.append(rate)
        ratios.append(rate / loop)
        own.append(own_us)
        inside.append(decode_us)
    return {
        "sequences": n_sequences,
        "bare_tokens_per_s": round(median(bare), 1),
        "engine_tokens_per_s": round(median(mine), 1),
        "engine_vs_bare": round(median(ratios), 4),
        "python_us_per_step": round(median(own), 1),
        "python_us_budget": 150 + 30 * n_sequences,
        "decode_us_per_step": round(median(inside), 1),
    }


def engine_load(engine: Engine, n_clients: int, n_tokens: int) -> float:
    """Return tokens/s of ``n_clients`` whole requests, prefill included, without HTTP."""
    while engine._slots.drop_idle():
        pass
    began = time.perf_counter()
    for index in range(n_clients):
        request = Request(f"r{index}", _prompt(index), n_tokens, sampling=GREEDY)
        engine.submit(request, engine.tokenize(request))
    while not engine.is_idle:
        engine.step()
    return n_clients * n_tokens / (time.perf_counter() - began)


_fresh = itertools.count()


def _prompt(index: int) -> str:
    """Return a prompt that no cache has seen."""
    return PROMPT.replace("fox", f"fox number {next(_fresh)} of {index}")


def measure_http(model: Path, engine: Engine, n_threads: int, n_tokens: int, rounds: int) -> list[Row]:
    """Return rows of HTTP beside the engine at 1 and 16 clients, in turns."""
    rows: list[Row] = []
    arguments = ["--model", str(model), "--parallel", "16", "--ctx", str(N_CTX), "--threads", str(n_threads)]
    arguments += ["--speculation", "off"]  # plain against plain
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


def measure(options: argparse.Namespace) -> Report:
    """Run the bench."""
    log.silence()
    n_threads = options.threads or physical_cores()
    report = Report(
        "engine",
        settings={"rounds": options.rounds, "steps": options.steps, "layers": options.layers, "threads": n_threads},
    )
    deep = gguf_factory.cached(gguf_factory.Recipe(n_layers=options.layers))
    for name, model in (("deep", deep), ("ember", gguf_factory.EMBER)):
        say(f"{name}: loading {model.name}")
        engine, _ = load_engine(
            EngineOptions(str(model), n_slots=16, n_ctx=N_CTX, n_threads=n_threads, speculation="off"),
            cache_folder=None,
        )
        for width in WIDTHS:
            # Narrow steps are short: more of them make turns that are long enough to compare.
            row = measure_width(engine, width, options.steps * max(1, 4 // width), options.rounds)
            say(f"{name}: {width} sequences, engine {row['engine_vs_bare']:.3f} of the bare loop")
            report.rows.append({"model": name, **row})
        if name == "deep":
            for row in measure_http(model, engine, n_threads, options.tokens, min(options.rounds, 9)):
                say(f"{name}: {row['clients']} clients, HTTP {row['http_vs_engine']:.3f} of the engine")
                report.rows.append({"model": name, **row})
        engine.close()
    deep_rows = [row for row in report.rows if row["model"] == "deep"]
    widths = [row for row in deep_rows if "engine_vs_bare" in row]
    report.summary = {
        "engine_vs_bare_min": min(row["engine_vs_bare"] for row in widths),
        "http_vs_engine": next(row["http_vs_engine"] for row in deep_rows if row.get("clients") == 16),
        "python_us_per_step": widths[-1]["python_us_per_step"],
        "python_us_per_step_1": widths[0]["python_us_per_step"],
        "python_share_of_budget_max": round(
            max(row["python_us_per_step"] / row["python_us_budget"] for row in widths), 3
        ),
    }
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=60, help="layers of deep Ember")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each side; medians are reported")
    parser.add_argument("--steps", type=int, default=30, help="decode steps of a turn")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each reply over HTTP")
    parser.add_argument("--threads", type=int, default=None, help="threads of both sides (default: all cores)")
    raise SystemExit(run_bench("engine", measure, parser))
