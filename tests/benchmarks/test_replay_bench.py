"""Decisions on recorded texts of Ember: as good as the best fixed depth and the better proposer, on every curve."""

from __future__ import annotations

import pytest

from benchmarks import prompts
from benchmarks.contenders import AUTO, Way
from benchmarks.replay import RecordedEngine, RecordedText, record, rows_of, summarise
from benchmarks.simulation import CURVES


@pytest.fixture(scope="module")
def texts() -> list[RecordedText]:
    return record([one for kind in prompts.KINDS for one in prompts.of_kind(kind)[:3]], n_tokens=48)


def test_each_place_of_a_reply_has_a_guess_that_is_right_or_wrong(texts: list[RecordedText]) -> None:
    assert [text.kind for text in texts] == [kind for kind in prompts.KINDS for _ in range(3)]
    for text in texts:
        assert len(text.guesses) == len(text.reply) > 3
    right = [
        guess.token == token for text in texts for guess, token in zip(text.guesses, text.reply, strict=True) if guess
    ]
    assert 0.4 < sum(right) / len(right) < 0.98


def test_two_runs_are_equal_and_plain_decoding_is_as_fast_as_plain_decoding(texts: list[RecordedText]) -> None:
    first, second = (
        [RecordedEngine("cpu", AUTO).decode(text) for text in texts],
        [RecordedEngine("cpu", AUTO).decode(text) for text in texts],
    )
    assert first == second
    plain = [RecordedEngine("cpu", Way("plain")).decode(text) for text in texts]
    assert plain == pytest.approx([1.0] * len(texts))


@pytest.mark.parametrize("curve", CURVES)
def test_deciding_is_no_loss_on_any_curve(texts: list[RecordedText], curve: str) -> None:
    """Three texts of a kind are few to learn from, so the bounds are wide; the bench has more."""
    summary = summarise(rows_of(texts, curve, n_orders=2))
    assert summary["adaptive_vs_plain_min"] > 0.97
    assert summary["adaptive_vs_best_fixed_min"] > 0.9
    assert summary["auto_vs_best_part_min"] > 0.9
