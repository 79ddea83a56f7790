"""The bench of attention, small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_small_run_compares_what_is_chosen_with_both_ways(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("attention", "--rounds", "2", "--layers", "8", "--most", "128", "--threads", "1")
    assert [(row["cached"], row["rows"]) for row in report["rows"]] == [(128, 1), (128, 4)]
    for row in report["rows"]:
        times = {way: row[f"{way}_ms"] for way in ("flash", "products", "auto")}
        assert all(value > 0 for value in times.values())
        assert times[row["best"]] <= min(times["flash"], times["products"]) + 0.01
    assert report["summary"].keys() == {"auto_vs_best_min", "auto_vs_flash_128"}
    assert report["summary"]["auto_vs_best_min"] == min(row["auto_vs_best"] for row in report["rows"])
