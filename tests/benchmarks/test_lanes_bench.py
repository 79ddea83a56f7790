"""The lanes bench: its summary, and a small run of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.lanes import LanePace, summarise


def test_two_runs_are_one() -> None:
    joined = LanePace(0.01, (0.01, 0.02), 5, 1.0).joined(LanePace(0.03, (0.03,), 1, 2.0))
    assert joined == LanePace(0.02, (0.01, 0.02, 0.03), 6, 3.0)


def test_the_summary_is_of_the_way_that_keeps_the_promise_least() -> None:
    fast = [
        {"measure": "fast lane", "itl_ratio": ratio, "gap_p50_ratio": 1.0, "gap_p95_ratio": ratio}
        for ratio in (1.02, 1.07)
    ]
    batch = [{"measure": "batch lane", "batch_share": share} for share in (0.99, 0.97)]
    planning = [{"measure": "planning", "plan_us_16": 40.0, "plan_us_256": 41.0}]
    assert summarise(fast + batch + planning) == {
        "fast_lane_itl_ratio": 1.07,
        "fast_lane_p50_ratio": 1.0,
        "fast_lane_p95_ratio": 1.07,
        "batch_lane_share": 0.97,
        "plan_us_16": 40.0,
        "plan_us_256": 41.0,
    }


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("lanes", "--layers", "8", "--rounds", "1", "--tokens", "24", "--slots", "2", "--ways", "drafted")
    assert [row["measure"] for row in report["rows"]] == ["fast lane", "batch lane", "planning"]
    assert all(value > 0 for value in report["summary"].values())
