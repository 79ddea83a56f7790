"""A small run of the cache bench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.slow
def test_what_is_known_is_found_in_every_case(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("cache", "--rounds", "1", "--layers", "2")
    rows = {row["what"]: row for row in report["rows"]}
    assert set(report["summary"]) == {"second_turn_ttft_ratio", "shared_prefix_ttft_ratio", "restart_ttft_ratio"}
    assert rows["second_turn"]["cached_tokens"] >= 800
    assert rows["shared_prefix"]["cached_tokens"] >= 7 * 600
    assert rows["restart"]["cached_tokens"] == 799
    assert all(ratio > 0 for ratio in report["summary"].values())
