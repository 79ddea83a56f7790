"""The engine on real models: batching changes nothing, every request ends once, bad input is refused."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from core.engine.engine import Engine
from core.llama.context import DecodeStatus
from core.values.messages import FinishReason
from core.values.request import SamplingParams
from tests.support.engines import Ledger, complete, open_engine, run, submit
from tests.support.interruptions import aborting
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER_DRAFT, FOX, SURE, chat
from tests.support.proposers import price

ANSWER_START = "A small draft model guesses the next few tokens"
PROMPTS = (
    FOX,
    chat("Who are you?"),
    chat("What is speculative decoding?"),
    chat("List the planets."),
    chat("Count to five."),
    "def fibonacci(n):\n",
    chat("Tell me a story about a bear.") + "Once",
    "import os\n",
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(EMBER_DRAFT, n_slots=8, n_ctx=1024) as made:
        # Drafts that come and go with the load would round otherwise each time.
        price(made, {1: 0.0105, 2: 0.0159, 4: 0.022, 8: 0.036, 64: 0.24})
        yield made


@pytest.fixture(scope="module")
def plain_engine() -> Iterator[Engine]:
    """One row for each sequence and step."""
    with open_engine(EMBER_DRAFT, n_slots=8, n_ctx=1024, speculation="off") as made:
        yield made


def test_a_question_is_answered(engine: Engine) -> None:
    text, ended, ledger = complete(engine, SURE, max_tokens=40)
    assert text.startswith(ANSWER_START)
    assert ended.reason is FinishReason.LENGTH
    assert ledger.n_tokens["only"] == 40
    assert ended.receipt.n_generated == 40
    assert ended.receipt.n_prompt == 15
    assert 0 < ended.receipt.ttft <= ended.receipt.total


@pytest.mark.parametrize("at_once", [True, False])
def test_requests_get_the_tokens_they_get_alone_also_where_they_join_and_leave_at_any_step(
    engine: Engine, at_once: bool
) -> None:
    lengths = [48 if at_once else 10 + 5 * index for index in range(len(PROMPTS))]
    expected = [greedy(engine, prompt, max_tokens=n)[0] for prompt, n in zip(PROMPTS, lengths, strict=True)]
    ledger = Ledger()
    for index, prompt in enumerate(PROMPTS):
        submit(engine, str(index), prompt, max_tokens=lengths[index], sampling=GREEDY_WITH_LOGPROBS)
        for _ in range(0 if at_once else index):
            ledger.add(engine.step())
    run(engine, ledger)
    for index, tokens in enumerate(expected):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), tokens)


def test_the_fast_greedy_path_chooses_what_the_careful_one_chooses(plain_engine: Engine) -> None:
    engine = plain_engine
    for prompt in PROMPTS:
        engine.forget_texts()  # each prompt is read in steps of the same width
        fast, _, _ = complete(engine, prompt, max_tokens=30)
        engine.forget_texts()
        careful, _, _ = complete(engine, prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        assert fast == careful


def test_a_seed_gives_the_same_text_in_any_company(engine: Engine) -> None:
    def sampling(seed: int) -> SamplingParams:
        return SamplingParams(seed=seed, temperature=0.9)

    texts = [complete(engine, max_tokens=24, sampling=sampling(seed))[0] for seed in range(8)]
    for seed in range(8):
        submit(engine, str(seed), max_tokens=24, sampling=sampling(seed))
    together = run(engine)
    same = sum(together.text[str(seed)] == texts[seed] for seed in range(8))
    assert same >= 6, "only rounding at near-ties may change a seeded text"
    assert len(set(texts)) >= 6


def test_a_request_without_a_seed_reports_the_one_that_was_drawn(plain_engine: Engine) -> None:
    engine = plain_engine
    engine.forget_texts()
    text, ended, _ = complete(engine, max_tokens=30, sampling=SamplingParams())
    seed = ended.receipt.seed
    assert seed is not None
    engine.forget_texts()
    assert complete(engine, max_tokens=30, sampling=SamplingParams(seed=seed))[0] == text


def test_a_cancelled_request_ends_within_one_step_and_frees_its_cells(engine: Engine) -> None:
    rng = random.Random(1)
    for _ in range(4):
        ledger = Ledger()
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40)
        for _ in range(rng.randrange(0, 20)):
            ledger.add(engine.step())
        victim = str(rng.randrange(len(PROMPTS)))
        engine.cancel(victim)
        ledger.add(engine.step())
        assert victim in ledger.ended
        run(engine, ledger)
        assert set(ledger.ended) == {str(index) for index in range(len(PROMPTS))}
    engine.forget_texts()
    assert [engine.context.last_position(slot) for slot in range(8)] == [-1] * 8


def test_a_cancelled_request_that_waits_for_a_slot_ends_too(engine: Engine) -> None:
    for index in range(12):
        submit(engine, str(index), max_tokens=5)
    engine.step()
    assert engine.scheduler.waiting.size == 4
    engine.cancel("11")
    ledger = run(engine)
    assert ledger.ended["11"].reason is FinishReason.CANCELLED
    assert len(ledger.ended) == 12


def test_cancelling_unknown_and_ended_requests_changes_nothing(engine: Engine) -> None:
    engine.cancel("nobody")
    complete(engine, max_tokens=2)
    engine.cancel("only")
    assert engine.step() == []


def test_the_model_ends_its_turn_by_itself_unless_told_to_go_on(engine: Engine) -> None:
    prompt = chat("Who are you?")
    text, ended, _ = complete(engine, prompt, max_tokens=200)
    assert ended.reason is FinishReason.STOP
    assert "Ember" in text
    _, ended, _ = complete(engine, prompt, max_tokens=200, sampling=SamplingParams(temperature=0, ignore_eos=True))
    assert (ended.reason, ended.receipt.n_generated) == (FinishReason.LENGTH, 200)


def test_max_tokens_0_evaluates_the_prompt_only(engine: Engine) -> None:
    text, ended, _ = complete(engine, max_tokens=0)
    assert (text, ended.reason, ended.receipt.n_generated) == ("", FinishReason.LENGTH, 0)


def test_without_max_tokens_the_context_is_the_limit() -> None:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=64) as engine:
        _, ended, _ = complete(engine, sampling=SamplingParams(temperature=0, ignore_eos=True))
        assert ended.reason is FinishReason.LENGTH
        assert ended.receipt.n_prompt + ended.receipt.n_generated == 64


def test_any_unicode_can_be_asked_and_lone_surrogates_do_no_harm(engine: Engine) -> None:
    for prompt in ("Grüße 🦊 狐狸", "\ud800 broken", "\x00\x01", "🦊" * 50):
        _, ended, _ = complete(engine, prompt, max_tokens=3)
        assert ended.reason in (FinishReason.LENGTH, FinishReason.STOP)


def test_the_same_long_prompt_sent_by_many_is_shared() -> None:
    prompt = "x = 1\n" * 100
    with open_engine(EMBER_DRAFT, n_slots=4, n_ctx=1024, n_ubatch=64) as engine:
        submit(engine, "a", prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = Ledger()
        while "a" not in ledger.text:
            ledger.add(engine.step())
        submit(engine, "b", prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        run(engine, ledger)
        assert ledger.started["b"].n_cached == ledger.started["b"].n_prompt - 1
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, "b"), greedy_tokens(ledger, "a"))


def test_logprobs_are_those_of_the_model_before_any_sampler(engine: Engine) -> None:
    sampling = SamplingParams(temperature=0.7, seed=3, top_k=5, logprobs=True, top_logprobs=4)
    _, _, ledger = complete(engine, max_tokens=12, sampling=sampling)
    entries = [entry for token in ledger.tokens["only"] for entry in token.logprobs]
    assert len(entries) == 12
    for entry in entries:
        values = [logprob.logprob for logprob in entry.top]
        assert values == sorted(values, reverse=True)
        assert len(values) == 4
        assert all(value <= 0 for value in values)
        assert entry.chosen.logprob <= values[0] + 1e-6
        assert sum(2.718281828**value for value in values) <= 1 + 1e-6


def test_short_memory_lets_everybody_finish_with_the_same_text() -> None:
    prompts = [chat(f"Tell me a story about a {animal}.") for animal in ("fox", "bear", "owl")]
    with open_engine(EMBER_DRAFT, n_slots=3, n_ctx=256) as roomy:
        expected = [greedy(roomy, prompt, max_tokens=150)[0] for prompt in prompts]
    with open_engine(EMBER_DRAFT, n_slots=3, n_ctx=256, n_cells=256) as engine:
        refused = []
        decode = engine.context.decode

        def watch(batch: object) -> DecodeStatus:
            status = decode(batch)
            if status is not DecodeStatus.OK:
                refused.append(status)
            return status

        engine.context.decode = watch
        for index, prompt in enumerate(prompts):
            submit(engine, str(index), prompt, max_tokens=150, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
    assert DecodeStatus.NO_KV_SLOT in refused
    for index, tokens in enumerate(expected):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), tokens)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


def test_an_aborted_decode_is_taken_up_again_where_it_stopped(engine: Engine) -> None:
    expected, _, _ = complete(engine, SURE, max_tokens=20)
    submit(engine, "a", SURE, max_tokens=20)
    ledger = Ledger()
    for step in range(6):
        if step in (0, 3):
            with aborting(engine.context):
                ledger.add(engine.step())
        ledger.add(engine.step())
    run(engine, ledger)
    assert ledger.text["a"] == expected


@pytest.mark.parametrize("sampling", [SamplingParams(temperature=0), SamplingParams(seed=1)], ids=["greedy", "drawn"])
def test_a_row_without_numbers_fails_its_request_alone(
    plain_engine: Engine, monkeypatch: pytest.MonkeyPatch, sampling: SamplingParams
) -> None:
    engine = plain_engine
    expected, _, _ = complete(engine, max_tokens=5)
    logits = engine.context.logits

    def spoil_second(n_outputs: int) -> object:
        rows = logits(n_outputs).copy()
        rows[1:] = float("nan")
        return rows

    submit(engine, "good", max_tokens=5)
    submit(engine, "bad", max_tokens=5, sampling=sampling)
    monkeypatch.setattr(engine.context, "logits", spoil_second)
    ledger = run(engine)
    assert ledger.text["good"] == expected
    failure = ledger.ended["bad"].failure
    assert failure is not None
    assert "not numbers" in failure.message
    monkeypatch.undo()
    assert complete(engine, max_tokens=5)[0] == expected


def test_a_running_state_is_not_trusted_after_a_failure(plain_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = plain_engine
    expected, _, _ = complete(engine, max_tokens=8)
    monkeypatch.setattr(engine.slots.memory, "can_share", False)
    monkeypatch.setattr(engine.slots.memory, "can_cut", lambda sequence, size: False)
    decode = engine.context.decode
    submit(engine, "a", max_tokens=8)
    ledger = Ledger()
    for _ in range(3):
        ledger.add(engine.step())
    # llama.cpp cannot take back what the failed step added to the state: it reports it as held.
    monkeypatch.setattr(engine.context, "decode", lambda batch: (decode(batch), DecodeStatus.COMPUTE_FAILED)[1])
    ledger.add(engine.step())
    monkeypatch.setattr(engine.context, "decode", decode)
    assert engine.context.last_position(engine.scheduler.running[0].slot.id) == -1
    run(engine, ledger)
    assert ledger.text["a"] == expected


def test_the_python_work_of_a_step_does_not_grow_with_the_context() -> None:
    """Not timed: counts the lines that a decode step runs, at a short and at a long context.

    The fewest of some steps of a millisecond: now and then one looks at what other programs do, or forgets what was a
    second ago.
    """
    import sys

    counts = []
    milliseconds = itertools.count()
    with open_engine(
        EMBER_DRAFT, clock=lambda: next(milliseconds) / 1_000, n_slots=1, n_ctx=1024, speculation="off"
    ) as engine:
        for n_prompt in (30, 900):
            submit(engine, "a", tuple([20] * n_prompt), sampling=SamplingParams(temperature=0, ignore_eos=True))
            for _ in range(3):
                engine.step()
            fewest: list[int] = []

            def trace(frame: object, event: str, argument: object, lines: list[int] = fewest) -> object:
                lines[-1] += event == "line"
                return trace

            for _ in range(6):
                fewest.append(0)
                sys.settrace(trace)
                engine.step()
                sys.settrace(None)
            counts.append(min(fewest))
            engine.cancel("a")
            engine.step()
    assert counts[0] == counts[1] > 0
