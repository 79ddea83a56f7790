"""The bench that compares checkouts: a small run of one checkout beside itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("checkouts", str(ROOT), "--parts", "cache", "--layers", "4", "--rounds", "2")
    assert [(row["workload"], row["checkout"]) for row in report["rows"]] == [("turns", "control")]
    assert report["summary"][f"control_vs_{ROOT.name}_min"] > 0


def test_a_folder_that_is_not_set_up_is_refused(refuse: Callable[..., str], tmp_path: Path) -> None:
    assert "is no checkout that is set up" in refuse("checkouts", str(tmp_path))
