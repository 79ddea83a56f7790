"""Which attention a model on the processor gets: the faster one, where there is room for it and nobody said which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.attention_choice import choose_attention
from core.llama.attention_probe import AttentionProbe, AttentionTimes, Heads, probe_attention
from core.measurements import Measurements
from core.options import EngineOptions
from models.model_facts import ModelFacts, read_model
from tests.support.engines import (
    EMBER,
    GREEDY_WITH_LOGPROBS,
    SURE,
    assert_same_up_to_a_near_tie,
    complete,
    greedy_tokens,
    open_engine,
)

FACTS = read_model(EMBER)
OPTIONS = EngineOptions(str(EMBER), n_slots=1)


# A layer of Ember takes 0.1 ms for its weights at this rate.
RATE = FACTS.active_weights.read_by(1) / (FACTS.n_layers * 1e-4)


class Prober:
    """Stands for the probe: seconds by flash attention and by products, behind few cells and behind many."""

    def __init__(self, few: tuple[float, float], many: tuple[float, float], rate: float = RATE) -> None:
        self.found: AttentionProbe | None = AttentionProbe(AttentionTimes(*few), AttentionTimes(*many), rate)
        self.asked: list[tuple[Heads, int]] = []

    def __call__(self, heads: Heads, n_threads: int) -> AttentionProbe | None:
        self.asked.append((heads, n_threads))
        return self.found


BETTER = ((1e-5, 1e-5), (2e-4, 1e-4))


def chosen(
    probe: Prober,
    facts: ModelFacts = FACTS,
    options: EngineOptions = OPTIONS,
    n_cells: int = 1024,
    n_gpu_layers: int = 0,
    measured: Measurements | None = None,
) -> str:
    found = choose_attention(facts, options, n_cells, n_gpu_layers, measured or Measurements(None), probe)
    assert replace(found, flash_attention=options.flash_attention) == options
    return found.flash_attention


@pytest.mark.parametrize(
    ("few", "many", "rate", "choice"),
    [
        (*BETTER, RATE, "off"),
        ((1e-5, 1e-5), (1e-4, 2e-4), RATE, "auto"),
        ((1e-5, 1e-5), (1e-4, 0.95e-4), RATE, "auto"),  # too little to be worth the memory
        ((1e-5, 4e-5), (2e-4, 1e-4), RATE, "auto"),  # a loss in short texts
        ((1e-5, 4e-5), (20e-4, 10e-4), RATE / 100, "off"),  # which a larger model does not feel
    ],
)
def test_products_must_win_in_long_texts_and_not_lose_in_short_ones(
    few: tuple[float, float], many: tuple[float, float], rate: float, choice: str
) -> None:
    assert chosen(Prober(few, many, rate)) == choice


def test_what_cannot_be_measured_stays_as_it_is() -> None:
    probe = Prober(*BETTER)
    probe.found = None
    assert chosen(probe) == "auto"


def test_it_is_measured_once_for_the_heads_and_threads_of_a_model() -> None:
    measured, probe = Measurements(None), Prober(*BETTER)
    assert [chosen(probe, measured=measured) for _ in range(3)] == ["off"] * 3
    assert [heads for heads, _ in probe.asked] == [Heads(6, 3, 64, 64)]
    assert chosen(probe, options=replace(OPTIONS, n_threads=7), measured=measured) == "off"
    assert [n_threads for _, n_threads in probe.asked][1:] == [7]


ZERO = {"few": [1, 1], "many": [2, 1], "bytes_per_second": 0}


@pytest.mark.parametrize(
    "nonsense", [{}, {"few": 1, "many": 2}, {"few": [1, 2], "many": ["x", 2], "bytes_per_second": 1}, ZERO]
)
def test_what_was_kept_and_cannot_be_is_measured_anew(
    nonsense: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Prober(*BETTER)
    monkeypatch.setattr(Measurements, "recall", lambda _self, _key: nonsense)
    assert chosen(probe) == "off"
    assert len(probe.asked) == 1


def test_what_was_asked_for_and_what_must_be_is_not_changed() -> None:
    probe = Prober(*BETTER)
    for options in (replace(OPTIONS, flash_attention="on"), replace(OPTIONS, flash_attention="off")):
        assert chosen(probe, options=options) == options.flash_attention
    assert chosen(probe, options=replace(OPTIONS, kv_type="q8_0")) == "auto"
    assert chosen(probe, n_gpu_layers=-1) == "auto"
    assert chosen(probe, options=replace(OPTIONS, n_slots=2)) == "auto"
    assert chosen(probe, replace(FACTS, n_heads=0)) == "auto"
    assert chosen(probe, replace(FACTS, caches=tuple(replace(layer, n_v=0) for layer in FACTS.caches))) == "auto"
    assert probe.asked == []


def test_where_scores_would_take_the_memory_it_is_not_thought_about() -> None:
    probe = Prober(*BETTER)
    assert chosen(probe, n_cells=20_000_000) == "auto"
    assert probe.asked == []


def test_both_ways_take_time_and_longer_with_more_cells() -> None:
    found = probe_attention(Heads(6, 3, 64, 64), n_threads=1)
    assert found is not None
    assert 0 < found.few.flash < found.many.flash
    assert 0 < found.few.products < found.many.products
    assert found.bytes_per_second > 1e8


def test_both_ways_say_the_same() -> None:
    found = []
    for flash_attention in ("on", "off"):
        with open_engine(n_ctx=512, speculation="off", flash_attention=flash_attention) as engine:
            found.append(greedy_tokens(complete(engine, SURE, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)[2], "only"))
    assert_same_up_to_a_near_tie(*found)
