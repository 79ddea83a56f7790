"""The bench of the endpoint: how shares are worked out, and a small run of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.api_agent import CONVERSATIONS, AgentTurn, reread, shares
from benchmarks.api_client import PROTOCOLS


def test_a_share_is_of_the_prompt_and_the_reply_before() -> None:
    turns = [AgentTurn(80, 0, 20), AgentTurn(110, 95, 10), AgentTurn(130, 120, 10)]
    assert shares(turns, drops_thoughts=False) == ([0.95, 1.0], [])
    assert reread(turns) == [5, 0]
    turns = [
        AgentTurn(100, 0, 10),
        *(AgentTurn(110 + 10 * i, 100 + 10 * i, 0) for i in range(4)),
        AgentTurn(120, 90, 10),
    ]
    of_all, of_kept = shares(turns, drops_thoughts=True)
    assert len(of_all) == 4
    assert of_kept == [0.9]


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    options = ("--layers", "4", "--rounds", "1", "--tokens", "6", "--slots", "3", "--requests", "40", "--turns", "3")
    report = run_bench("api", *options)
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        parts.setdefault(row["part"], []).append(row)
    assert all(row["http_ttft_ms"] > 0 and row["engine_ttft_ms"] > 0 for row in parts["ttft"])
    assert {row["streams"] for row in parts["rate"]} == {1, 3}
    assert [row["protocol"] for row in parts["streams"]] == [protocol.name for protocol in PROTOCOLS]
    assert all(row["chunks"] >= row["streams"] for row in parts["streams"])
    assert report["summary"]["wrong_streams"] == 0
    assert parts["requests"][0]["cancelled"] == 2
    assert report["summary"]["busy_slots_after"] == 0
    assert [row["protocol"] for row in parts["agent"]] == list(CONVERSATIONS)
    assert report["summary"]["agent_reused_min"] >= 0.95
