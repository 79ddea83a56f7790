"""Which attention a model on the processor gets: the faster one, where there is room for it and nobody said which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.attention_choice import choose_attention
from core.llama.attention_probe import AttentionTimes, Heads, time_attention
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
OPTIONS = EngineOptions(str(EMBER))


class Stopwatch:
    """Stands for the probe: products take ``shares`` of the time of flash attention, by the number of rows."""

    def __init__(self, *shares: float | None) -> None:
        self.shares = list(shares)
        self.asked: list[tuple[Heads, int, int]] = []

    def __call__(self, heads: Heads, n_rows: int, n_cells: int, n_threads: int) -> AttentionTimes | None:
        self.asked.append((heads, n_rows, n_threads))
        share = self.shares.pop(0)
        return None if share is None else AttentionTimes(0.010, 0.010 * share)


def chosen(
    watch: Stopwatch,
    facts: ModelFacts = FACTS,
    options: EngineOptions = OPTIONS,
    n_cells: int = 1024,
    n_gpu_layers: int = 0,
    measured: Measurements | None = None,
) -> str:
    found = choose_attention(facts, options, n_cells, n_gpu_layers, measured or Measurements(None), watch)
    assert replace(found, flash_attention=options.flash_attention) == options
    return found.flash_attention


@pytest.mark.parametrize(
    ("shares", "choice"),
    [((0.5, 0.3), "off"), ((0.9, 0.9), "auto"), ((1.2, 0.2), "auto"), ((2.0, 3.0), "auto"), ((0.99, 0.7), "off")],
)
def test_products_must_pay_on_the_whole_and_lose_nowhere(shares: tuple[float, float], choice: str) -> None:
    assert chosen(Stopwatch(*shares)) == choice


@pytest.mark.parametrize("shares", [(None, 0.1), (0.1, None)])
def test_what_cannot_be_measured_stays_as_it_is(shares: tuple[float | None, ...]) -> None:
    assert chosen(Stopwatch(*shares)) == "auto"


def test_it_is_measured_once_for_the_heads_and_threads_of_a_model() -> None:
    measured, watch = Measurements(None), Stopwatch(0.5, 0.3, 0.9, 0.9)
    assert [chosen(watch, measured=measured) for _ in range(3)] == ["off"] * 3
    assert [n_rows for _, n_rows, _ in watch.asked] == [1, 4]
    assert watch.asked[0][0] == Heads(6, 3, 64, 64)
    other = replace(OPTIONS, n_threads=7)
    assert chosen(watch, options=other, measured=measured) == "auto"
    assert watch.asked[-1][2] == 7


def test_what_was_asked_for_and_what_must_be_is_not_changed() -> None:
    never = Stopwatch()
    for options in (replace(OPTIONS, flash_attention="on"), replace(OPTIONS, flash_attention="off")):
        assert chosen(never, options=options) == options.flash_attention
    assert chosen(never, options=replace(OPTIONS, kv_type="q8_0")) == "auto"
    assert chosen(never, n_gpu_layers=-1) == "auto"
    assert chosen(never, replace(FACTS, n_heads=0)) == "auto"
    assert chosen(never, replace(FACTS, caches=tuple(replace(layer, n_v=0) for layer in FACTS.caches))) == "auto"


def test_where_scores_would_take_the_memory_it_is_not_thought_about() -> None:
    assert chosen(Stopwatch(), n_cells=20_000_000) == "auto"


def test_both_ways_take_time_and_longer_with_more_cells() -> None:
    heads = Heads(6, 3, 64, 64)
    few, many = (time_attention(heads, 1, n_cells, n_threads=1) for n_cells in (256, 8192))
    assert few is not None
    assert many is not None
    assert 0 < few.flash < many.flash
    assert 0 < few.products < many.products


def test_both_ways_say_the_same() -> None:
    found = []
    for flash_attention in ("on", "off"):
        with open_engine(n_ctx=512, speculation="off", flash_attention=flash_attention) as engine:
            found.append(greedy_tokens(complete(engine, SURE, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)[2], "only"))
    assert_same_up_to_a_near_tie(*found)
