"""The small model that drafts: one decode for all requests, nothing read twice, and a failure that costs no text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.llama.context import Batch, Context, DecodeStatus
from core.speculation.proposers.draft_model import DraftModelProposer
from tests.support.engines import Ledger, complete, open_engine, run, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER_DRAFT, ENDLESS, FOX, SURE, chat
from tests.support.proposers import price

PROMPTS = (FOX, SURE, chat("Who are you?"))
DEPTH = 3


@contextmanager
def drafting(**options: Any) -> Iterator[tuple[Engine, DraftModelProposer]]:
    options = {"n_slots": 3, "n_ctx": 512, "draft_depth": DEPTH, **options}
    with open_engine(draft_path=str(EMBER_DRAFT), speculation="draft", **options) as engine:
        model = engine.draft_model
        assert model is not None
        yield engine, model


def watch(
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
    status: Callable[[DecodeStatus], DecodeStatus] = lambda one: one,
) -> list[list[int]]:
    """Return a list that will have the sequence of each row of each batch that the draft model decodes.

    ``status`` makes another outcome of each.
    """
    batches: list[list[int]] = []
    decode = Context.decode

    def watched(context: Context, batch: Batch) -> DecodeStatus:
        if context is engine.context:
            return decode(context, batch)
        batches.append([batch.c.seq_id[row][0] for row in range(batch.n_tokens)])
        return status(decode(context, batch))

    monkeypatch.setattr(Context, "decode", watched)
    return batches


def test_each_round_is_one_decode_for_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    with drafting() as (engine, _):
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=60, sampling=ENDLESS)
        for _ in range(4):
            engine.step()
        batches = watch(monkeypatch, engine)
        n_steps = 6
        for _ in range(n_steps):
            engine.step()
    assert len(batches) == n_steps * DEPTH
    assert all(set(rows) == {0, 1, 2} for rows in batches)
    assert any(len(rows) > 3 for rows in batches), "what was accepted beyond what it had read is read on the way"


def test_the_next_turn_goes_on_from_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with drafting(n_slots=1) as (engine, _):
        first = engine.vocab.tokenize(FOX).tolist()
        tokens, _ = greedy(engine, tuple(first), max_tokens=30)
        said = [token for token, _ in tokens]
        batches = watch(monkeypatch, engine)
        more = [7, 8, 9, 10]
        complete(engine, (*first, *said, *more), max_tokens=4, sampling=ENDLESS)
        # The new tokens, the first of this reply, and what the last one ended with unread.
        assert len(batches[0]) <= len(more) + 3
        batches.clear()
        complete(engine, (*first, *said[:10], *more), max_tokens=4, sampling=ENDLESS)
        assert len(batches[0]) <= len(more) + 3, "back to where the texts part"
        batches.clear()
        complete(engine, tuple(reversed(first)), max_tokens=4, sampling=ENDLESS)
        assert len(batches[0]) >= len(first) - 1


def test_what_was_read_for_another_salt_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with drafting(n_slots=1) as (engine, _):
        batches = watch(monkeypatch, engine)
        n_read = []
        for salt in ("a", "b", "b", "", "a"):
            complete(engine, max_tokens=4, sampling=ENDLESS, salt=salt)
            n_read.append(len(batches[0]))
            batches.clear()
    assert n_read[0] == n_read[1] == n_read[3] == n_read[4] > n_read[2]


def test_what_idle_slots_hold_makes_way_for_the_text_that_is_drafted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft model has room for one of these conversations."""
    prompts = [chat(f"Tell me a story about a {animal}. " * 35) for animal in ("fox", "bear", "duck")]
    with open_engine(n_slots=3, n_ctx=512, n_cells=512, speculation="off") as plain:
        wanted = [greedy_tokens(said(plain, prompt), "only") for prompt in prompts]
    with drafting(n_slots=3, n_ctx=512, n_cells=512) as (engine, _):
        assert len(engine.vocab.tokenize(prompts[0])) > 256
        batches = watch(monkeypatch, engine)
        for prompt, expected in zip(prompts, wanted, strict=True):
            ledger = said(engine, prompt)
            assert ledger.ended["only"].receipt.n_drafted > 10
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected)
    assert len({rows[0] for rows in batches}) == 3, "each in a slot of its own"


def test_where_cells_are_for_one_of_two_texts_one_is_drafted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model shares the cells of what they have in common, the draft model does not."""
    prompts = [chat("Tell me a story about a fox. " * 35 + word) for word in ("Now", "Soon")]
    with drafting(n_slots=2, n_ctx=512, n_cells=512) as (engine, _):
        failed: list[DecodeStatus] = []

        def noting(status: DecodeStatus) -> DecodeStatus:
            failed.extend([status] * (status is not DecodeStatus.OK))
            return status

        watch(monkeypatch, engine, noting)
        for index, prompt in enumerate(prompts):
            submit(engine, str(index), prompt, max_tokens=60, sampling=ENDLESS)
        ledger = run(engine)
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert [receipt.n_generated for receipt in receipts] == [60, 60]
    assert max(receipt.n_drafted for receipt in receipts) > 30
    assert set(failed) == {DecodeStatus.NO_KV_SLOT}
    assert len(failed) < 8, "it is not tried in each step"


def test_on_a_gpu_what_is_unread_is_read_in_decodes_of_recorded_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Context.__init__

    def begun(context: Context, *given: Any, **options: Any) -> None:
        begin(context, *given, **options)
        context.is_asynchronous = True

    with drafting(n_slots=1) as (engine, _):
        expected, _ = greedy(engine, FOX, max_tokens=30)
    monkeypatch.setattr(Context, "__init__", begun)
    with drafting(n_slots=1) as (engine, _):
        batches = watch(monkeypatch, engine)
        tokens, _ = greedy(engine, FOX, max_tokens=30)
        n_prompt = len(engine.vocab.tokenize(FOX))
    assert max(len(rows) for rows in batches) <= 8 < n_prompt
    assert sum(len(rows) == 8 for rows in batches) >= n_prompt // 8
    assert_same_up_to_a_near_tie(tokens, expected)


def test_a_long_prompt_is_read_in_pieces_that_hold_up_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = {"short": FOX, "long": chat("Tell me a story about a fox. " * 70)}
    with open_engine(n_slots=2, n_ctx=1024, speculation="off") as plain:
        expected = both(plain, prompts)
    with drafting(n_slots=2, n_ctx=1024, draft_depth=None) as (engine, model):
        assert len(engine.vocab.tokenize(prompts["long"])) > 500
        price(engine, {1: 0.010, 2: 0.011, 16: 0.012})
        # Of 512 rows, each at half a millisecond, a third fits into what is left of a tenth of a second.
        model.cost = CostModel(Calibration({1: 0.0005, 512: 0.256}))
        batches = watch(monkeypatch, engine)
        ledger = both(engine, prompts)
    assert max(len(rows) for rows in batches) * 0.0005 <= 0.1 - 0.010
    n_read = sum(len(rows) >= 16 for rows in batches)
    assert n_read >= 4, "the long one"
    assert all(len(ledger.ended) == 2 and ended.receipt.n_accepted > 5 for ended in ledger.ended.values())
    for name in prompts:
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, name), greedy_tokens(expected, name))


def both(engine: Engine, prompts: dict[str, str]) -> Ledger:
    for name, prompt in prompts.items():
        submit(engine, name, prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
    return run(engine)


def said(engine: Engine, prompt: str) -> Ledger:
    return complete(engine, prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)[2]


@pytest.mark.parametrize("every", [1, 7])
def test_a_draft_model_that_fails_costs_no_text(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    with open_engine(n_slots=3, n_ctx=512, speculation="off") as plain:
        for index, prompt in enumerate(PROMPTS):
            submit(plain, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        expected = run(plain)
    n_decodes = 0

    def now_and_then(status: DecodeStatus) -> DecodeStatus:
        nonlocal n_decodes
        n_decodes += 1
        return DecodeStatus.COMPUTE_FAILED if n_decodes % every == 0 else status

    with drafting() as (engine, _):
        watch(monkeypatch, engine, now_and_then)
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
        assert engine.speculator is not None
        n_drafted = sum(engine.speculator.stats.drafted_at)
    assert n_decodes > 5
    assert (n_drafted > 0) is (every > 1)
    for name, ended in ledger.ended.items():
        assert ended.failure is None
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, name), greedy_tokens(expected, name))
