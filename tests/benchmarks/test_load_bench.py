from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.machine.measurements import physical_cores


@pytest.mark.slow
@pytest.mark.skipif(physical_cores() < 2, reason="there is nothing to choose on one core")
def test_the_bench_compares_with_each_fixed_number_of_threads(run_bench: Callable[..., dict[str, Any]]) -> None:
    sizes = ("--layers", "8", "--rounds", "1", "--seconds", "0.1", "--patience", "3", "--threads", "2")
    report = run_bench("load", *sizes)
    assert [(row["model"], row["busy_processes"]) for row in report["rows"]] == [
        ("ember", 0),
        ("ember", 1),
        ("deep-ember", 0),
        ("deep-ember", 1),
    ]
    for row in report["rows"]:
        assert row["best_threads"] in (1, 2)
        assert row["threads_1_tokens_per_s"] > 0
        assert row["threads_2_tokens_per_s"] > 0
    ratios = [row["governed_vs_best_fixed"] for row in report["rows"]]
    assert report["summary"]["unloaded_vs_fixed"] == min(ratios[0::2])
    assert report["summary"]["loaded_vs_best_fixed_min"] == min(ratios[1::2])
