"""Steps behind cached tokens: flash attention, products of matrices, and what the engine chooses by itself.

The same deep model is loaded three times. Behind each number of cached tokens, steps of one row and of several are
taken with each of them in turns; a ratio compares steps that follow each other.
"""

from __future__ import annotations

import argparse
import os
import time

from core.openmp import WAITING

os.environ.update(WAITING)  # before llama.cpp is loaded: what the engine process uses

import numpy as np

from benchmarks.report import Report, Row, median, run_bench, say
from core.engine import Engine
from core.llama import log
from core.llama.batch import Batch
from core.llama.context import Context, DecodeStatus
from core.loading import load_engine
from core.options import EngineOptions, FlashAttention
from tests.support import gguf_factory

WAYS: dict[str, FlashAttention] = {"flash": "on", "products": "off", "auto": "auto"}
_CACHED = (128, 1024, 4096)
_ROWS = (1, 4)
_CHUNK = 256


def fill(context: Context, n_tokens: int) -> None:
    """Let sequence 0 hold ``n_tokens``, whatever they are."""
    context.clear()
    tokens = np.random.default_rng(0).integers(20, 4000, n_tokens).astype(np.int32)
    batch = Batch(_CHUNK)
    for start in range(0, n_tokens, _CHUNK):
        batch.clear()
        batch.add_run(tokens[start : start + _CHUNK], start, 0, want_last=True)
        _run(context, batch)


def step(context: Context, n_cached: int, n_rows: int) -> float:
    """Return the seconds of a step of rows behind ``n_cached`` tokens, which is taken back before the next one."""
    context.remove(0, n_cached)
    batch = Batch(n_rows)
    for row in range(n_rows):
        batch.add(100 + row, n_cached + row, 0)
    began = time.perf_counter()
    _run(context, batch)
    return time.perf_counter() - began


def _run(context: Context, batch: Batch) -> None:
    if context.decode(batch) is not DecodeStatus.OK:
        raise SystemExit("llama.cpp could not compute a step.")
    context.synchronize()


def compare(contexts: dict[str, Context], n_cached: int, n_rows: int, rounds: int) -> Row:
    """Return the row of one case."""
    seconds: dict[str, list[float]] = {way: [] for way in contexts}
    for turn in range(rounds + 2):
        for way, context in contexts.items():
            taken = step(context, n_cached, n_rows)
            if turn >= 2:
                seconds[way].append(taken)
    medians = {way: median(values) for way, values in seconds.items()}
    best = min(("flash", "products"), key=lambda way: medians[way])

    def ratio(way: str) -> float:
        return round(median([other / own for other, own in zip(seconds[way], seconds["auto"], strict=True)]), 3)

    return {
        "cached": n_cached,
        "rows": n_rows,
        **{f"{way}_ms": round(1e3 * value, 2) for way, value in medians.items()},
        "auto_vs_flash": ratio("flash"),
        "best": best,
        "auto_vs_best": ratio(best),
    }


def measure(options: argparse.Namespace) -> Report:
    """Run the bench."""
    log.silence()
    report = Report("attention", settings={"rounds": options.rounds, "layers": options.layers})
    path = gguf_factory.cached(gguf_factory.Recipe(n_layers=options.layers))
    cached = [n for n in _CACHED if n <= options.most]
    n_ctx = 2 * max(cached)
    engines: dict[str, Engine] = {}
    try:
        for way, flash_attention in WAYS.items():
            settings = EngineOptions(
                str(path), n_slots=1, n_ctx=n_ctx, n_threads=options.threads, speculation="off",
                flash_attention=flash_attention,
            )  # fmt: skip
            engines[way], _ = load_engine(settings, cache_folder=None)
        contexts = {way: engine._context for way, engine in engines.items()}
        for n_cached in cached:
            for context in contexts.values():
                fill(context, n_cached)
            for n_rows in _ROWS:
                report.rows.append(compare(contexts, n_cached, n_rows, options.rounds))
                say(", ".join(f"{key} {value}" for key, value in report.rows[-1].items()))
    finally:
        for engine in engines.values():
            engine.close()
    report.summary = {
        "auto_vs_best_min": min(row["auto_vs_best"] for row in report.rows),
        **{
            f"auto_vs_flash_{n}": min(row["auto_vs_flash"] for row in report.rows if row["cached"] == n) for n in cached
        },
    }
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="steps of each kind; medians are reported")
    parser.add_argument("--layers", type=int, default=30, help="layers of the deep model")
    parser.add_argument("--most", type=int, default=max(_CACHED), help="no more cached tokens than these")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: measured)")
    raise SystemExit(run_bench("attention", measure, parser))
