"""Sampling: every setting does what its name says, and the draws follow the distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core.llama.library import silence_log
from core.llama.model import Model, Vocab
from core.llama.sampler_chain import Candidates
from core.sampling.grammar import GrammarCompiler, GrammarMatcher
from core.sampling.sampler import Sampler, gumbel, uniform
from core.values.errors import BrokenLogits
from core.values.request import Constraint, SamplingParams
from tests.support.prompts import EMBER
from tools.model_factory.gguf_factory import Recipe, cached

Logits = npt.NDArray[np.float32]
OFF: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "temperature": 1.0}
LIKELY = (100, 200, 300, 400, 500)
PROBABILITIES = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
N_LARGE = 20_000


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    silence_log()
    made = Model(str(EMBER))
    yield made
    made.close()


@pytest.fixture(scope="module")
def vocab(model: Model) -> Vocab:
    return model.vocab


class Seen(Candidates):
    """Counts the tokens that the samplers get to see."""

    n_seen = 0

    def fill(self, tokens: npt.NDArray[np.integer], logits: Logits) -> None:
        self.n_seen = len(tokens)
        super().fill(tokens, logits)


class Bench:
    """Draws tokens at many positions from fixed logits."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.candidates = Seen(model.vocab.n_tokens)

    def sampler(self, seed: int = 1, grammar: GrammarMatcher | None = None, **settings: Any) -> Sampler:
        return Sampler(self._model, SamplingParams(**{**OFF, **settings}), seed, 1024, grammar)

    def draw(self, sampler: Sampler, logits: Logits, n: int = 300, start: int = 0) -> list[int]:
        return [sampler.choose(logits.copy(), position, self.candidates) for position in range(start, start + n)]

    def seen(self, logits: Logits, used: tuple[int, ...] = (), **settings: Any) -> set[int]:
        sampler = self.sampler(**settings)
        for token in used:
            sampler.accept(token)
        try:
            return set(self.draw(sampler, logits))
        finally:
            sampler.close()


@pytest.fixture
def bench(model: Model) -> Bench:
    return Bench(model)


@pytest.fixture
def logits(vocab: Vocab) -> Logits:
    values = np.full(vocab.n_tokens, -30.0, np.float32)
    values[list(LIKELY)] = np.log(PROBABILITIES)
    return values


def chi_square(draws: list[int], probabilities: npt.NDArray[np.float64], tokens: Sequence[int] = LIKELY) -> float:
    counts = np.array([draws.count(token) for token in tokens])
    assert counts.sum() == len(draws)
    expected = len(draws) * probabilities
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("settings", [{}, {"top_k": 40, "top_p": 0.9999}], ids=["whole vocabulary", "top-k"])
def test_draws_follow_the_models_distribution(bench: Bench, logits: Logits, settings: dict[str, Any]) -> None:
    draws = bench.draw(bench.sampler(**settings), logits, n=1500)
    assert chi_square(draws, PROBABILITIES) < 18.47  # 4 degrees of freedom, p = 0.001


def test_draws_from_more_candidates_than_get_noise_each_follow_it_too(
    bench: Bench, logits: Logits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.sampling.sampler._GUMBEL_LIMIT", 3)
    draws = bench.draw(bench.sampler(), logits, n=1500)
    assert chi_square(draws, PROBABILITIES) < 18.47


@pytest.mark.parametrize("limit", [4096, 3])
def test_what_a_grammar_leaves_is_drawn_by_its_share(
    bench: Bench, vocab: Vocab, logits: Logits, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("core.sampling.sampler._GUMBEL_LIMIT", limit)
    letters = [int(vocab.tokenize(letter, add_special=False)[0]) for letter in "ABCDE"]
    logits[:] = -30.0
    logits[letters] = np.log(PROBABILITIES)
    grammar = GrammarCompiler(vocab).matcher(Constraint("regex", "[B-E]"))
    draws = bench.draw(bench.sampler(grammar=grammar), logits, n=1500)
    left = PROBABILITIES[1:] / PROBABILITIES[1:].sum()
    assert chi_square(draws, left, letters[1:]) < 16.27  # 3 degrees of freedom, p = 0.001


def test_temperature_sharpens_and_flattens(bench: Bench, logits: Logits) -> None:
    for temperature in (0.5, 2.0):
        expected = PROBABILITIES ** (1 / temperature)
        settings = {"temperature": temperature, "top_k": 5}
        assert chi_square(bench.draw(bench.sampler(**settings), logits, n=1500), expected / expected.sum()) < 18.47


def test_a_temperature_next_to_0_takes_the_most_likely(bench: Bench, vocab: Vocab) -> None:
    logits = np.linspace(1.0, 9.0, vocab.n_tokens, dtype=np.float32)
    for settings in ({}, {"mirostat": 2}, {"top_k": 2}):
        assert bench.seen(logits, temperature=1e-310, **settings) == {vocab.n_tokens - 1}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "settings", [{"min_p": 0.05}, {}, {"mirostat": 2}, {"temperature": 0.0, "logit_bias": ((1, 1.0),)}], ids=str
)
def test_values_that_are_no_numbers_are_refused(bench: Bench, vocab: Vocab, settings: Any, value: float) -> None:
    logits = np.full(vocab.n_tokens, value, np.float32)
    with pytest.raises(BrokenLogits):
        bench.seen(logits, **settings)


def test_one_value_that_is_no_number_spoils_all(bench: Bench, logits: Logits) -> None:
    logits[9] = math.nan
    with pytest.raises(BrokenLogits):
        bench.seen(logits, top_k=40)


def test_temperature_0_takes_the_most_likely(bench: Bench, logits: Logits) -> None:
    assert bench.seen(logits, temperature=0.0) == {100}
    assert bench.sampler(temperature=0.0).is_plain_greedy


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"top_k": 2}, {100, 200}),
        ({"top_p": 0.7}, {100, 200}),
        ({"min_p": 0.2}, {100, 200, 300}),
        ({"typical_p": 0.2}, {200}),
        ({"typical_p": 0.2, "logit_bias": ((7, -math.inf),)}, {200}),
        ({"top_n_sigma": 1.5}, {100, 200, 300}),
        ({"top_n_sigma": 1.5, "top_k": 2}, {100, 200}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, {200, 300, 400, 500}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.1}, {300, 400, 500}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.6}, {100, 200, 300, 400, 500}),
        ({"logit_bias": ((100, -math.inf), (200, -100.0)), "top_k": 2}, {300, 400}),
        ({"logit_bias": ((7, 100.0),)}, {7}),
        ({"temperature": 0.0, "logit_bias": ((7, 100.0),)}, {7}),
    ],
    # Two processes can disagree on the order of a set.
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_truncation(bench: Bench, logits: Logits, settings: dict[str, Any], expected: set[int]) -> None:
    assert bench.seen(logits, **settings) == expected


def test_xtc_strikes_with_its_probability(bench: Bench, logits: Logits) -> None:
    draws = bench.draw(bench.sampler(xtc_probability=0.5, xtc_threshold=0.1), logits, n=1000)
    # Untouched half of the time; else the two likeliest of three are out and 300 has 0.15 of 0.25.
    assert 0.5 * 0.5 - 0.05 < draws.count(100) / 1000 < 0.5 * 0.5 + 0.05


@pytest.mark.parametrize(
    "settings", [{"repeat_penalty": 5.0}, {"frequency_penalty": 2.0}, {"presence_penalty": 2.0}], ids=str
)
def test_penalties_hit_what_was_used(bench: Bench, vocab: Vocab, settings: dict[str, Any]) -> None:
    logits = np.full(vocab.n_tokens, -30.0, np.float32)
    logits[[100, 200]] = 2.0, 1.0
    used = (100, 100, 100)
    assert bench.seen(logits, temperature=0.0) == {100}
    assert bench.seen(logits, used=used, temperature=0.0, **settings) == {200}
    assert bench.seen(logits, used=used, temperature=0.0, repeat_last_n=0, **settings) == {100}


def test_penalties_forget_what_is_long_ago(bench: Bench, vocab: Vocab) -> None:
    logits = np.full(vocab.n_tokens, -30.0, np.float32)
    logits[[100, 200]] = 2.0, 1.0
    settings: dict[str, Any] = {"temperature": 0.0, "repeat_penalty": 5.0, "repeat_last_n": 2}
    assert bench.seen(logits, used=(100, 3), **settings) == {200}
    assert bench.seen(logits, used=(100, 3, 4), **settings) == {100}


def test_dry_stops_a_repetition_and_breakers_reset_it(bench: Bench, vocab: Vocab) -> None:
    logits = np.full(vocab.n_tokens, -30.0, np.float32)
    logits[[900, 901]] = 1.5, 1.0
    repetition = (700, 701, 702, 703, 900, 700, 701, 702, 703)
    dry: dict[str, Any] = {"temperature": 0.0, "dry_multiplier": 1.0}
    assert bench.seen(logits, used=repetition, **dry) == {901}
    assert bench.seen(logits, used=repetition, **{**dry, "dry_allowed_length": 9}) == {900}
    breaker = vocab.tokenize("\n", add_special=False)[0]
    broken = (700, 701, 702, int(breaker), 900, 700, 701, 702, int(breaker))
    assert bench.seen(logits, used=broken, **dry) == {900}


def test_mirostat_learns_from_its_surprise(bench: Bench, logits: Logits) -> None:
    sampler = bench.sampler(mirostat=2, mirostat_tau=0.5, mirostat_eta=0.5)
    assert set(bench.draw(sampler, logits)) == {100}, "only tokens of at most 2 tau = 1 bit"
    certain = np.where(logits == logits.max(), logits, -30.0)
    sampler.accept(100, certain)  # no surprise: tokens of up to 1 + 0.5 * 0.5 bits may come now
    shares = {100: 0.45, 200: 0.43, 300: 0.12}  # 1.15, 1.22 and 3.06 bits
    logits[[*shares]] = np.log([*shares.values()])
    logits[[400, 500]] = -30.0
    assert set(bench.draw(sampler, logits)) == {100, 200}
    logits[[*shares]] = np.log([0.42, 0.41, 0.17])  # 1.25, 1.29 and 2.56 bits
    assert set(bench.draw(sampler, logits)) == {100}
    logits[list(LIKELY)] = np.log(PROBABILITIES)
    for _ in range(20):
        sampler.accept(100, logits)
    assert set(bench.draw(sampler, logits)) > {100}


def test_ignoring_the_end_never_draws_it(bench: Bench, vocab: Vocab, logits: Logits) -> None:
    logits[list(vocab.end_tokens)] = 10.0
    assert bench.seen(logits, top_k=3) <= vocab.end_tokens
    assert not bench.seen(logits, ignore_eos=True) & vocab.end_tokens
    assert bench.seen(logits, ignore_eos=True, temperature=0.0) == {100}


def test_choosing_twice_at_one_position_gives_the_same_token(bench: Bench, logits: Logits) -> None:
    sampler = bench.sampler(top_k=5)
    assert bench.draw(sampler, logits) == bench.draw(sampler, logits)
    assert bench.draw(sampler, logits) != bench.draw(bench.sampler(seed=2, top_k=5), logits)


def test_the_penalties_memory_is_as_long_as_asked(bench: Bench) -> None:
    assert bench.sampler().memory_length == 0
    assert bench.sampler(repeat_penalty=1.1).memory_length == 64
    assert bench.sampler(repeat_penalty=1.1, repeat_last_n=200).memory_length == 200
    assert bench.sampler(dry_multiplier=1.0, dry_penalty_last_n=-1).memory_length >= 1 << 20


@pytest.mark.parametrize("limit", [0, 1 << 30], ids=["large", "small"])
def test_skipping_unlikely_tokens_changes_no_draw(
    bench: Bench, vocab: Vocab, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("core.sampling.sampler.LARGE_VOCABULARY", limit)
    logits = np.random.default_rng(5).normal(0, 4, vocab.n_tokens).astype(np.float32)
    for settings in (
        {},
        {"top_k": 40, "top_p": 0.95},
        {"top_p": 0.6},
        {"xtc_probability": 0.5},
        {"temperature": 1.7},
    ):
        quick = bench.sampler(min_p=0.01, **settings)
        whole = bench.sampler(min_p=0.01, top_n_sigma=1e6, **settings)  # which keeps all, and looks at all
        assert bench.draw(quick, logits) == bench.draw(whole, logits)


@pytest.fixture(scope="module")
def large() -> Iterator[Bench]:
    """A vocabulary in which the best are found by groups."""
    silence_log()
    made = Model(str(cached(Recipe(n_vocab=N_LARGE))))
    yield Bench(made)
    made.close()


def spread_logits(seed: int, spread: float, middle: float = 0.0) -> Logits:
    return np.random.default_rng(seed).normal(middle, spread, N_LARGE).astype(np.float32)


@pytest.mark.parametrize(
    ("top_k", "settings"),
    [
        (40, {}),
        (1, {}),
        (300, {"temperature": 2.0}),
        (40, {"repeat_penalty": 1.3}),
        (40, {"presence_penalty": 1.5, "frequency_penalty": 0.5}),
        (5, {"repeat_penalty": 0.5}),
        (1, {"temperature": 0.0, "repeat_penalty": 1.3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("middle", [0.0, -30.0])
def test_of_a_large_vocabulary_the_samplers_see_the_best(
    large: Bench, top_k: int, settings: dict[str, Any], middle: float
) -> None:
    for position in range(20):
        logits = spread_logits(position, 3.0, middle)
        sampler = large.sampler(7, top_k=top_k, **settings)
        params = sampler.params
        # The best are penalised; others are lifted where a penalty is below 1.
        used = [*np.argsort(-logits)[:30].tolist(), N_LARGE - 1]
        for token in used:
            sampler.accept(token)
        chosen = sampler.choose(logits.copy(), position, large.candidates)
        sampler.close()

        values = logits.astype(np.float64)
        before = values[used]
        values[used] = np.where(before > 0, before / params.repeat_penalty, before * params.repeat_penalty)
        values[used] -= params.frequency_penalty + params.presence_penalty
        best = np.argsort(-values, kind="stable")[:top_k].astype(np.int32)
        scores = values[best] + params.temperature * gumbel(7, position, best)
        assert chosen == best[int(scores.argmax())]
        assert (large.candidates.n_seen < 1_000) == (params.repeat_penalty >= 1.0)


@pytest.mark.parametrize("n_allowed", [5_000, N_LARGE])
@pytest.mark.parametrize("temperature", [1.0, 0.8])
def test_a_draw_from_many_takes_the_first_that_reaches_its_share(
    large: Bench, n_allowed: int, temperature: float
) -> None:
    sampler = large.sampler(3, temperature=temperature)
    large.candidates.n_seen = 0
    for position in range(36):
        logits = spread_logits(position, float(position % 9))
        logits[n_allowed:] = -np.inf
        sums = np.exp((logits.astype(np.float64) - logits.max()) / temperature).cumsum()
        share = uniform(3, position, 2) * sums[-1]
        assert sampler.choose(logits, position, large.candidates) == np.searchsorted(sums, share)
    assert not large.candidates.n_seen, "no sampler is needed"
    sampler.close()


def test_a_large_vocabulary_shows_its_best_log_probabilities(large: Bench) -> None:
    sampler = large.sampler(logprobs=True, top_logprobs=20)
    for seed in range(20):
        logits = spread_logits(seed, 3.0)
        expected = np.argsort(-logits, kind="stable")[:20].tolist()
        assert [entry.token for entry in sampler.logprobs(logits, 5).top] == expected
    sampler.close()


@pytest.mark.parametrize("settings", [{}, {"top_k": 3}, {"temperature": 0}, {"logit_bias": ((LIKELY[2], 3.0),)}])
def test_a_draft_draws_what_the_target_would(bench: Bench, logits: Logits, settings: dict[str, Any]) -> None:
    sampler, candidates = bench.sampler(**settings), bench.candidates
    for position in range(50):
        guess = sampler.guess(logits.copy(), position, candidates)
        assert guess == sampler.choose(logits.copy(), position, candidates)
    sampler.close()


def test_a_draft_draws_nothing_from_numbers_that_are_none(bench: Bench, logits: Logits) -> None:
    sampler = bench.sampler()
    logits[:] = -np.inf
    assert sampler.guess(logits, 0, bench.candidates) is None
    sampler.close()


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
