"""The truth bench: what its figures mean, and a small run of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.truth import StoppedClock, TruthSample, summarise
from core.values.receipt import Receipt


def test_a_sample_says_how_far_its_receipt_is_from_the_truth() -> None:
    receipt = Receipt(n_generated=61, n_drafted=50, n_accepted=40, decode=0.5, speedup=2.2)
    sample = TruthSample(receipt, 125.0, 62.5)
    assert sample.truth == 2.0
    assert sample.speedup_error == pytest.approx(0.1)
    assert sample.rate_error == pytest.approx(0.04)
    assert sample.over_bound == pytest.approx(2.2 / (61 / 20))
    assert TruthSample(Receipt(n_generated=61, n_drafted=50, speedup=None), 125.0, 62.5).speedup_error is None


def test_the_summary_is_over_all_replies() -> None:
    one = {"replies": 3, "speedup_errors": [0.01, 0.02], "rate_error_p90": 0.01, "prediction_error": 0.08}
    other = {"replies": 1, "speedup_errors": [0.2], "rate_error_p90": 0.03}
    assert summarise([one, other]) == {
        "speedup_error_p50": 0.02,
        "speedup_error_p90": 0.2,
        "speedup_known_share": 0.75,
        "rate_error_p90_max": 0.03,
        "prediction_after_one_run_error": 0.08,
    }
    assert summarise([])["speedup_error_p50"] is None


def test_a_clock_stands_still_while_the_other_side_works(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("benchmarks.truth.time.perf_counter", lambda: now)
    clock = StoppedClock()
    now = 105.0
    with clock:
        began = clock()
        now = 107.0
    now = 120.0
    with clock:
        assert clock() - began == 2.0


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("truth", "--layers", "8", "--replies", "2", "--tokens", "30", "--clients", "2", "--conditions",
                       "quiet", "--drafts", "realistic", "none")  # fmt: skip
    assert [(row["draft"], row["clients"]) for row in report["rows"]] == [("realistic", 2), ("none", 2)]
    assert all(row["most_over_bound"] <= 1.0 for row in report["rows"])
    assert report["rows"][1]["with_speedup"] == report["rows"][1]["replies"], "1.0 where nothing is drafted"
    assert report["summary"].keys() >= {"speedup_error_p50", "speedup_error_p90", "prediction_after_one_run_error"}
