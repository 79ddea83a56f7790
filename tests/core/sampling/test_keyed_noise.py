"""Noise keyed by (seed, position, token)."""

from __future__ import annotations

import numpy as np

from core.sampling.keyed_noise import gumbel, uniform


def test_the_same_key_gives_the_same_number_and_another_key_another() -> None:
    assert uniform(1, 2) == uniform(1, 2)
    assert len({uniform(1, 2), uniform(1, 3), uniform(2, 2), uniform(1, 2, 1)}) == 4


def test_a_tokens_noise_does_not_depend_on_its_neighbours() -> None:
    many = gumbel(7, 11, np.arange(100, dtype=np.int32))
    few = gumbel(7, 11, np.array([42, 3], np.int32))
    assert few.tolist() == [many[42], many[3]]


def test_negative_and_huge_seeds_are_keys_too() -> None:
    assert 0 < uniform(-5, 1) < 1
    assert 0 < uniform(2**64 - 1, 1) < 1


def test_uniforms_fill_the_unit_interval_evenly() -> None:
    values = np.array([uniform(3, position) for position in range(4000)])
    counts, _ = np.histogram(values, bins=20, range=(0, 1))
    chi_square = float(((counts - 200) ** 2 / 200).sum())
    assert chi_square < 43.8  # 19 degrees of freedom, p = 0.001


def test_gumbel_max_draws_from_the_softmax() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    ids = np.array([10, 20, 30, 40], np.int32)
    draws = [int((logits + gumbel(99, position, ids)).argmax()) for position in range(8000)]
    counts = np.bincount(draws, minlength=4)
    expected = 8000 * np.exp(logits)
    assert float(((counts - expected) ** 2 / expected).sum()) < 16.27  # 3 degrees of freedom, p = 0.001
