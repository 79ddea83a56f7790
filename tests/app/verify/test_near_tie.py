"""How far a token was from being chosen, held against what the sampler really chooses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from app.jobs.verify.near_tie import FAR, shortfall
from core.llama.library import silence_log
from core.llama.model import Model
from core.llama.sampler_chain import Candidates
from core.sampling.sampler import Sampler
from core.values.request import SamplingParams
from tests.support.prompts import EMBER, GREEDY

SETTINGS = (
    SamplingParams(temperature=0.8),
    SamplingParams(temperature=1.5, top_p=0.8, min_p=0.0),
    SamplingParams(temperature=0.5, top_k=5, top_p=1.0, min_p=0.3),
    SamplingParams(temperature=1.0, top_k=1),
)


class Chooser:
    """Chooses with the engine's own sampler."""

    def __init__(self) -> None:
        silence_log()
        self._model = Model(str(EMBER))
        self.n_vocab = self._model.vocab.n_tokens
        self._candidates = Candidates(self.n_vocab)

    def choose(self, logits: np.ndarray, params: SamplingParams, seed: int, position: int) -> int:
        sampler = Sampler(self._model, params, seed, 512)
        token = sampler.choose(logits.copy(), position, self._candidates)
        sampler.close()
        return token

    def close(self) -> None:
        self._model.close()


@pytest.fixture(scope="module")
def chooser() -> Iterator[Chooser]:
    made = Chooser()
    yield made
    made.close()


def test_a_token_beyond_an_edge_lacks_its_way_back() -> None:
    logits = np.array([1.0, 4.5, 4.25, -np.inf], np.float32)
    assert [shortfall(logits, token, GREEDY) for token in range(3)] == [3.5, 0.0, 0.25]
    assert shortfall(logits, 3, GREEDY) >= FAR
    logits = np.array([5.0, 4.0, 0.0, -1.0], np.float32)
    only_min_p = SamplingParams(temperature=1.0, top_k=4, top_p=1.0, min_p=0.1)
    assert shortfall(logits, 2, only_min_p, 1, 0) >= 5.0 + np.log(0.1) - 1e-6
    only_top_k = SamplingParams(temperature=1.0, top_k=2, top_p=1.0, min_p=0.0)
    assert shortfall(logits, 2, only_top_k, 1, 0) >= 4.0


def random_logits(seed: int, n_vocab: int, spread: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, spread, n_vocab).astype(np.float32)


@pytest.mark.parametrize("params", SETTINGS, ids=range(len(SETTINGS)))
@pytest.mark.parametrize("spread", [0.5, 2.0, 5.0])
def test_what_the_sampler_chooses_lacks_nothing_and_all_else_does(
    chooser: Chooser, params: SamplingParams, spread: float
) -> None:
    for seed in range(3):
        logits = random_logits(seed, chooser.n_vocab, spread)
        chosen = chooser.choose(logits, params, seed, position=7)
        assert shortfall(logits, chosen, params, seed, 7) <= 1e-6
        others = [token for token in np.argsort(-logits)[:20].tolist() if token != chosen]
        assert min(shortfall(logits, token, params, seed, 7) for token in others) > 0


@pytest.mark.parametrize("params", SETTINGS, ids=range(len(SETTINGS)))
@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_a_smaller_change_than_the_shortfall_never_changes_the_choice_to_a_token(
    chooser: Chooser, params: SamplingParams, spread: float
) -> None:
    n_moved = 0
    for seed in range(60):
        logits = random_logits(seed, chooser.n_vocab, spread)
        generator = np.random.default_rng(1_000 + seed)
        change = generator.choice([0.02, 0.1, 0.3])
        moved = logits + generator.uniform(0, change, chooser.n_vocab).astype(np.float32)
        chosen = chooser.choose(moved, params, seed, position=3)
        n_moved += chosen != chooser.choose(logits, params, seed, position=3)
        assert shortfall(logits, chosen, params, seed, 3) <= change + 1e-5
    assert n_moved, "some choices must move, or nothing was tried"
