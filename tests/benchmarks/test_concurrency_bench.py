"""The concurrency bench: its rows, its summary, and a small run of the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.concurrency import ConcurrencySample, rows_of, summarise
from benchmarks.contenders import AUTO, PLAIN, ContenderRun, ReplyOutcome
from benchmarks.report import percentile
from core.values.messages import Receipt

PNG = b"\x89PNG\r\n"
WAY_BACK = {"ember": None, "qwen35": "RecurrentMemory", "qwen3next": "CheckpointMemory"}


def run(seconds: float, *gaps: float) -> ContenderRun:
    receipt = Receipt(n_generated=11, n_drafted=20, n_accepted=5, ttft=0.5, decode=1.0)
    return ContenderRun((ReplyOutcome("a", receipt, list(gaps)), ReplyOutcome("b", receipt, list(gaps))), seconds)


def test_a_row_holds_medians_of_its_runs() -> None:
    samples = [
        ConcurrencySample("random", AUTO, 2, run(seconds, 0.1, 0.1, 0.9), ratio)
        for seconds, ratio in ((1, 1.0), (2, 0.9))
    ]
    samples.append(ConcurrencySample("random", PLAIN, 2, run(1, 0.1), 1.0))
    row, plain = rows_of(samples)
    assert (row["tokens_per_s"], row["vs_plain"], row["ttft_ms_p50"]) == (16.5, 0.95, 500.0)
    assert (row["itl_ms_p50"], row["itl_ms_p95"], row["ms_per_token_p50"]) == (100.0, 900.0, 100.0)
    assert row["acceptance"] == 0.25
    assert (plain["way"], plain["vs_plain"]) == ("plain", 1.0)


def test_the_summary_is_the_worst_for_each_number_of_clients() -> None:
    rows = [
        {"way": way, "clients": clients, "vs_plain": ratio}
        for way, clients, ratio in (("plain", 1, 0.5), ("auto", 1, 1.4), ("auto", 1, 1.1), ("auto", 16, 0.98))
    ]
    expected = {"drafted_vs_plain_min_1": 1.1, "drafted_vs_plain_min_16": 0.98, "draft_vs_plain_min": 0.98}
    assert summarise(rows) == expected
    assert summarise([]) == {"draft_vs_plain_min": None}


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, share) for share in (0.01, 0.5, 0.6, 0.95, 1.0)] == [1.0, 3.0, 3.0, 5.0, 5.0]


@pytest.mark.slow
@pytest.mark.parametrize("model", WAY_BACK)
def test_a_small_run(run_bench: Callable[..., dict[str, Any]], tmp_path: Path, model: str) -> None:
    picture = tmp_path / "concurrency.png"
    options = f"--model {model} --layers 6 --rounds 1 --tokens 12 --clients 1 3 --plot".split()
    report = run_bench("concurrency", *options, str(picture))
    cells = {(row["draft"], row["way"], row["clients"]) for row in report["rows"]}
    assert cells == {(d, w, n) for d in ("realistic", "random") for w in ("plain", "auto") for n in (1, 3)}
    assert all(row["tokens_per_s"] > 0 and row["ttft_ms_p50"] > 0 for row in report["rows"])
    assert report["settings"]["model"] == model
    assert WAY_BACK[model] in (None, report["settings"].get("way_back"))
    assert report["summary"].keys() == {"drafted_vs_plain_min_1", "drafted_vs_plain_min_3", "draft_vs_plain_min"}
    assert picture.read_bytes().startswith(PNG)
