"""What drafting is expected to gain."""

from __future__ import annotations

import pytest

from models.facts.model_facts import WeightBytes
from models.pairing.forecast import CPU_ROW, GPU_ROW
from models.pairing.gain import AcceptanceCounts, ProposerKind, corrected, expected_acceptance, learnt, predict

DENSE = WeightBytes(8_000, 0, 1, 0)


def test_the_formula_is_that_of_the_paper():
    found = predict(DENSE, 0.05, 0.8, row_cost=0.0)
    by_paper = {g: (1 - 0.8 ** (g + 1)) / ((1 - 0.8) * (1 + g * 0.05)) for g in range(1, 9)}
    assert found.gain == pytest.approx(max(by_paper.values()))
    assert by_paper[found.depth] == pytest.approx(found.gain)
    found = predict(DENSE, 1.0, 0.87, CPU_ROW)
    assert (found.depth, found.gain) == (0, 1.0)
    gains = [predict(DENSE, share, 0.75, CPU_ROW).gain for share in (0.5, 0.25, 0.125, 0.025)]
    assert gains == sorted(gains)
    assert gains[-1] > gains[0]


def test_verifying_costs_experts_more_and_rows_are_cheaper_on_a_gpu():
    experts = WeightBytes(2_000, 48_000, 8, 1)
    assert experts.read_by(1) == DENSE.read_by(1)
    assert predict(experts, 0.05, 0.8, CPU_ROW).gain < predict(DENSE, 0.05, 0.8, CPU_ROW).gain
    assert predict(DENSE, 0.05, 0.8, GPU_ROW).gain > predict(DENSE, 0.05, 0.8, CPU_ROW).gain


def test_acceptance_follows_what_was_published():
    assert expected_acceptance(ProposerKind.MODEL, 100_000_000, 137_000_000_000) == pytest.approx(0.61, abs=0.02)
    assert expected_acceptance(ProposerKind.MODEL, 800_000_000, 11_000_000_000) == pytest.approx(0.78, abs=0.02)
    assert expected_acceptance(ProposerKind.MODEL, 1, 10**12) == 0.4
    assert expected_acceptance(ProposerKind.MODEL, 0, 0) <= 0.87
    assert (
        0.5 < expected_acceptance(ProposerKind.EAGLE3, 0, 10**9) < expected_acceptance(ProposerKind.MTP, 0, 10**9) < 1
    )


def test_what_was_judged_here_takes_the_place_of_what_was_published():
    assert learnt(0.8, AcceptanceCounts(0, 0)) == 0.8
    once, often = learnt(0.8, AcceptanceCounts(8, 0)), learnt(0.8, AcceptanceCounts(2_000, 600))
    assert 0.3 < once < 0.8
    assert often == pytest.approx(0.3, abs=0.01)


def test_predictions_learn_slowly_from_what_was_measured():
    assert corrected(1.5, []) == 1.5
    once, often = corrected(1.5, [(1.4, 1.0)]), corrected(1.5, [(1.4, 1.0)] * 8)
    assert 1.0 < often < once < 1.5
    assert corrected(1.1, [(2.0, 0.5)] * 50) == 1.0
    assert corrected(1.5, [(1.0, 1.2)] * 4) > 1.5
