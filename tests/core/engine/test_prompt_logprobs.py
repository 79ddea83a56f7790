"""Log probabilities of a prompt's tokens: each as if its token had been chosen after those before it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest

from core.engine.engine import Engine
from core.llama.context import Batch, DecodeStatus
from core.values.messages import PromptScored, RequestEvent
from core.values.request import Lane, SamplingParams
from tests.support.engines import complete, open_engine, run, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS
from tests.support.prompts import EMBER_DRAFT, FOX, SURE

TEXT = tuple(range(300, 500))  # more tokens than a step has outputs, and none is likely
NEAR = 0.05  # steps of other widths round otherwise


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024) as made:
        yield made


def score(engine: Engine, prompt: tuple[int, ...], **fields: object) -> list[float]:
    """Return the log probability of each token of ``prompt``, while whatever was submitted before runs too."""
    submit(engine, "scored", prompt, max_tokens=0, sampling=GREEDY_WITH_LOGPROBS, prompt_logprobs=True, **fields)
    events: list[RequestEvent] = []
    while not engine.is_idle:
        events += engine.step()
    entries = [one for event in events if isinstance(event, PromptScored) for one in event.logprobs]
    assert [one.chosen.token for one in entries] == list(prompt)
    assert all(len(one.top) == 2 for one in entries[1:])
    return [one.chosen.logprob for one in entries]


def one_by_one(engine: Engine, prompt: tuple[int, ...], places: range) -> list[float]:
    """Return the log probabilities of the tokens at ``places``, each forced after all before it."""
    found = []
    for place in places:
        forced = SamplingParams(temperature=0, logprobs=True, logit_bias=((prompt[place], 100.0),))
        _, _, ledger = complete(engine, prompt[:place], max_tokens=1, sampling=forced)
        found.append(ledger.tokens["only"][0].logprobs[0].chosen.logprob)
    return found


@pytest.fixture(scope="module")
def alone(engine: Engine) -> list[float]:
    engine.forget_texts()
    return score(engine, TEXT)


def test_each_token_is_as_likely_as_after_those_before_it(engine: Engine, alone: list[float]) -> None:
    assert math.isnan(alone[0])
    places = range(1, len(TEXT), 23)
    assert [alone[place] for place in places] == pytest.approx(one_by_one(engine, TEXT, places), abs=NEAR)


def test_the_cache_hides_no_token(engine: Engine, alone: list[float]) -> None:
    assert score(engine, TEXT)[1:] == pytest.approx(alone[1:], abs=NEAR)


@pytest.mark.parametrize("lane", Lane)
def test_neither_drafts_nor_other_lanes_change_them(engine: Engine, alone: list[float], lane: Lane) -> None:
    engine.forget_texts()
    submit(engine, "beside", SURE, max_tokens=60, lane=Lane.FAST)
    assert score(engine, TEXT, lane=lane)[1:] == pytest.approx(alone[1:], abs=NEAR)


def test_a_prompt_that_has_to_wait_is_told_once(engine: Engine, alone: list[float]) -> None:
    engine.forget_texts()
    numbers = itertools.count()
    events: list[RequestEvent] = []
    fields = {"max_tokens": 0, "sampling": GREEDY_WITH_LOGPROBS, "prompt_logprobs": True, "lane": Lane.BATCH}
    submit(engine, "scored", TEXT, **fields)
    while not engine.is_idle:
        events += engine.step()
        if engine.scheduler.running and next(numbers) < 3:
            victim = engine.scheduler.running[0]
            engine.scheduler.preempt_for_memory(victim, 0.0)
    entries = [one for event in events if isinstance(event, PromptScored) for one in event.logprobs]
    assert next(numbers) > 3
    assert [one.chosen.token for one in entries] == list(TEXT)
    assert [one.chosen.logprob for one in entries[1:]] == pytest.approx(alone[1:], abs=NEAR)


def test_a_decode_that_failed_costs_no_tokens(
    engine: Engine, alone: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.forget_texts()
    decode, n_calls = engine.context.decode, itertools.count(1)

    def fails_once(batch: Batch) -> DecodeStatus:
        status = decode(batch)
        return DecodeStatus.ABORTED if next(n_calls) == 1 else status

    monkeypatch.setattr(engine.context, "decode", fails_once)
    assert score(engine, TEXT)[1:] == pytest.approx(alone[1:], abs=NEAR)
    assert next(n_calls) > 2


def test_the_reply_goes_on_as_it_would(engine: Engine) -> None:
    expected, *_ = complete(engine, FOX, max_tokens=12)
    found, ended, _ = complete(engine, FOX, max_tokens=12, prompt_logprobs=True, sampling=GREEDY_WITH_LOGPROBS)
    assert found == expected
    assert ended.receipt.n_cached == 0


def test_a_prompt_of_one_token_has_nothing_to_predict(engine: Engine) -> None:
    assert [math.isnan(value) for value in score(engine, (300,))] == [True]
    assert run(engine).ended == {}
