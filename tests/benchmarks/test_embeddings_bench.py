"""What the bench of embeddings works out of two sides."""

from __future__ import annotations

import pytest

from benchmarks.embeddings import OURS, PEER, EmbeddingCase, measure_case


class FakeSide:
    """Answers after a made-up time, with the same vector for every text."""

    def __init__(self, seconds: float, vector: list[float]) -> None:
        self.seconds, self.vector = seconds, vector
        self.sizes: list[tuple[int, int, int]] = []

    def run(self, bodies: list[list[list[int]]]) -> tuple[float, list[list[float]]]:
        self.sizes.append((len(bodies), len(bodies[0]), len(bodies[0][0])))
        return self.seconds, [self.vector for _ in bodies[0]]


def test_rates_ratio_and_cosine_are_those_of_the_same_texts() -> None:
    ours, peer = FakeSide(0.5, [1.0, 0.0]), FakeSide(1.0, [0.6, 0.8])
    row = measure_case(EmbeddingCase(2, 3, 16), {OURS: ours, PEER: peer}, n_rounds=3)  # type: ignore[dict-item]
    assert set(ours.sizes) == set(peer.sizes) == {(2, 3, 16)}
    assert len(ours.sizes) == 4
    assert (row[f"{OURS} texts/s"], row[f"{PEER} texts/s"], row["ratio"]) == (12.0, 6.0, 2.0)
    assert row["cosine"] == pytest.approx(0.6)
