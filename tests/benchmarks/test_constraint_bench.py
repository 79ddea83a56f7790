from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import synthetic_vocab
from tests.support.engines import open_engine


def test_made_up_words_are_visible_tokens_and_ember_still_speaks() -> None:
    with open_engine(synthetic_vocab.model(20_000, 6), speculation="off") as engine:
        pieces = engine.vocab.pieces
        assert len(pieces) == 20_000
        assert sum(bool(piece) for piece in pieces) > 19_900
        assert len(set(pieces[10_000:])) == 10_000
        assert any(piece.startswith(b" ") and len(piece) > 6 for piece in pieces[10_000:])
        assert any(b'"' in piece for piece in pieces[10_000:])


@pytest.mark.slow
def test_the_bench_reports_what_it_promises(run_bench: Callable[..., dict[str, Any]]) -> None:
    sizes = ("--layers", "6", "--vocabulary", "20000", "--rounds", "2", "--steps", "6", "--replies", "2")
    report = run_bench("constraint", *sizes, "--threads", "1")
    rows = [row for row in report["rows"] if row["constraint"] != "forced_keys"]
    assert {row["constraint"] for row in rows} == {"json_object", "json_schema", "regex"}
    assert {row["sampling"] for row in rows} == {"greedy", "sampled"}
    promised = [row["overhead"] for row in rows if row["constraint"] != "regex"]
    assert report["summary"]["constraint_overhead"] == max(promised)
    assert all(row["free_step_us"] > 0 for row in rows)
    forced = [row for row in report["rows"] if row["constraint"] == "forced_keys"]
    assert [row["model"] for row in forced] == ["ember", "deep-ember"]
    for row in forced:
        assert 1 <= row["identical_texts"] <= row["replies"] == 2, "near-ties may be decided otherwise"
        assert row["steps_per_token"] <= row["steps_per_token_plain"] == 1.0
        assert row["accepted"] <= row["drafted"]
