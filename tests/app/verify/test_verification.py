"""Verifying that drafts change nothing: differences are found, judged rightly, and decoding both ways is fair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.jobs.verify import verification
from app.jobs.verify.near_tie import FAR, NEAR_TIE
from app.jobs.verify.verification import (
    Comparison,
    DecodedReply,
    Mode,
    ReplyComparer,
    TokenIds,
    Verification,
    Verifier,
    paired_speedup,
)
from core.engine.engine import Engine
from core.sampling.sampler import Sampler
from core.speculation.proposers.free_proposers import NgramProposer
from core.values.errors import SlipstreamError
from core.values.request import Request, SamplingParams
from tests.support.engines import complete, open_engine
from tests.support.interruptions import take_wrongly
from tests.support.prompts import EMBER_DRAFT, FOX, chat

GREEDY, SAMPLED = Mode(), Mode(seed=1)
END = 9
PROMPT = np.array([1, 2, 3], np.int32)
COPY = chat(
    "Repeat this: Ella was a happy bear who lived near the market. Ella had a blue kite and loved it very much. "
    "One sunny morning, Ella went to the market."
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=1, n_ctx=512, draft_path=str(EMBER_DRAFT), draft_depth=4) as engine:
        yield engine


def reply(*tokens: int, has_ended: bool = False, **fields: Any) -> DecodedReply:
    return DecodedReply(tokens, has_ended, **fields)


def run(engine: Engine, *texts: str, modes: tuple[Mode, ...] = (GREEDY, SAMPLED), n_tokens: int = 40) -> Verification:
    shares: list[float] = []
    tokens = [engine.tokenize(Request("x", text)) for text in texts]
    found = Verifier(engine, 0.0).run(tokens, modes, n_tokens, shares.append)
    assert shares == sorted(shares)
    return found


# -- pure -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "drafted", "position"),
    [
        (reply(4, 5, 6), reply(4, 5, 6), None),
        (reply(4, 5, has_ended=True), reply(4, 5, has_ended=True), None),
        (reply(4, 5, 6), reply(4, 7, 6), 1),
        (reply(4, 5, 6), reply(4, 5, has_ended=True), 2),
        (reply(4, 5, has_ended=True), reply(4, 5), 2),
        (reply(4, 5), reply(4, 5, 6), 2),
        (reply(has_ended=True), reply(4), 0),
    ],
)
def test_the_first_difference(plain: DecodedReply, drafted: DecodedReply, position: int | None) -> None:
    assert plain.first_difference(drafted) == position
    assert drafted.first_difference(plain) == position


@pytest.mark.parametrize(
    ("speedups", "is_slower"),
    [([0.96] * 8, True), ([0.96] * 7, False), ([0.5] * 3 + [0.98] * 5, False), ([0.9] * 5 + [2.0] * 4, True)],
)
def test_drafting_that_costs_time_is_called_slower_where_enough_was_timed(
    speedups: list[float], is_slower: bool
) -> None:
    def compared(speedup: float) -> Comparison:
        plain, drafted = (reply(*range(10), rate=rate) for rate in (100.0, 100.0 * speedup))
        return Comparison(0, GREEDY, plain, drafted, None, paired_speedup([plain], [drafted]))

    assert Verification(tuple(map(compared, speedups))).is_slower is is_slower
    plain = [reply(*range(10), rate=rate) for rate in (100.0, 50.0, 100.0)]
    drafted = [reply(*range(10), rate=rate) for rate in (120.0, 60.0, 60.0)]
    assert paired_speedup(plain, drafted) == pytest.approx(1.2), "the machine was slow for one turn and one reply"


def test_replies_that_are_too_short_to_be_timed_are_decoded_once(engine: Engine) -> None:
    before = engine.stats.n_steps
    found = Verifier(engine, 60.0).run([engine.tokenize(Request("x", FOX))], [GREEDY], 7, lambda share: None)
    assert engine.stats.n_steps - before < 60
    assert (found.speedups, found.controls) == ((), ())


def test_plain_decoding_is_compared_with_itself_from_turn_to_turn(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = engine.tokenize(Request("x", FOX))
    once = Verifier(engine, 0.0).run([prompt], [GREEDY], 12, lambda share: None)
    assert len(once.speedups) == 1
    assert once.controls == (), "there was one turn"
    monkeypatch.setattr(verification, "MOST_TURNS", 2)
    twice = Verifier(engine, 60.0).run([prompt], [GREEDY], 12, lambda share: None)
    assert len(twice.controls) == 1
    assert 0.0 < twice.controls[0] < float("inf")


def judge(logits: dict[int, float], seen: list[list[int]] | None = None) -> ReplyComparer:
    def next_logits(tokens: TokenIds) -> Any:
        if seen is not None:
            seen.append(tokens.tolist())
        row = np.full(10, -20.0, np.float32)
        for token, value in logits.items():
            row[token] = value
        return row

    return ReplyComparer(next_logits, {END})


def test_a_wrong_text_is_caught_and_a_near_tie_is_not_called_wrong() -> None:
    seen: list[list[int]] = []
    found = judge({5: 7.0, 6: 6.9, 7: 2.0}, seen)
    near = found.compare(PROMPT, GREEDY, reply(4, 5), reply(4, 6), str)
    assert near is not None
    assert near.is_near_tie
    assert (near.position, near.plain.token, near.drafted.token, near.drafted.text) == (1, 5, 6, "6")
    assert near.gap == pytest.approx(0.1, abs=1e-5)
    wrong = found.compare(PROMPT, GREEDY, reply(4, 5), reply(4, 7), str)
    assert wrong is not None
    assert not wrong.is_near_tie
    assert wrong.gap == pytest.approx(5.0)
    assert seen == [[1, 2, 3, 4]] * 2, "what is evaluated is what both have in common"
    far_from_best = judge({4: 9.0, 5: 2.0, 6: 2.0}).compare(PROMPT, GREEDY, reply(5), reply(6), str)
    assert far_from_best is not None
    assert far_from_best.gap == pytest.approx(7.0), "although they are near each other"


def test_the_end_of_a_text_is_judged_as_a_token() -> None:
    found = judge({5: 7.0, END: 6.95})
    near = found.compare(PROMPT, GREEDY, reply(4, 5), reply(4, has_ended=True), str)
    assert near is not None
    assert near.is_near_tie
    assert near.drafted.token == END
    cut_off = found.compare(PROMPT, GREEDY, reply(4, 5), reply(4), str)
    assert cut_off is not None
    assert (cut_off.drafted.token, cut_off.gap) == (None, FAR)


def test_sampled_texts_are_judged_by_what_the_sampler_compares() -> None:
    # Far apart as logits, but with noise either may win: what counts is the distance after the noise.
    logits = {5: 7.0, 6: 5.5}
    gaps = []
    for seed in range(60):
        difference = judge(logits).compare(PROMPT, Mode(seed), reply(5), reply(6), str)
        assert difference is not None
        gaps.append(difference.gap)
    assert min(gaps) < NEAR_TIE < max(gaps)
    never = judge({5: 7.0, 6: 1.0}).compare(PROMPT, SAMPLED, reply(5), reply(6), str)
    assert never is not None
    assert never.gap > 6.0 + np.log(0.05) - 1e-6, "min-p leaves it out, whatever the noise"


def test_totals() -> None:
    long, fast = reply(*range(10), rate=100.0), reply(*range(10), rate=150.0, n_drafted=8, n_accepted=6)
    short = reply(1, 2, has_ended=True, rate=50.0)
    difference = judge({1: 9.0, 8: 3.0}).compare(PROMPT, GREEDY, reply(1), reply(8), str)
    slow = reply(*range(10), rate=80.0)
    found = Verification(
        (
            Comparison(0, GREEDY, long, fast, None, paired_speedup([long], [fast])),
            Comparison(1, GREEDY, long, slow, difference, paired_speedup([long], [slow])),
            Comparison(0, SAMPLED, short, short, None, paired_speedup([short], [short])),
        )
    )
    assert (found.identical_share("greedy"), found.identical_share("sampled")) == (0.5, 1.0)
    assert found.speedups == (1.5, 0.8), "what is too short says nothing of speed"
    assert found.median_speedup == pytest.approx(1.15)
    assert (found.n_wrong, found.largest_gap) == (1, pytest.approx(6.0))
    assert (found.n_drafted, found.n_accepted) == (8, 6)
    empty = Verification(())
    assert (empty.identical_share("greedy"), empty.median_speedup, empty.largest_gap, empty.n_wrong) == (None,) * 3 + (
        0,
    )


# -- on a real model ------------------------------------------------------------------------------------------------


def test_drafts_change_nothing_but_near_ties(engine: Engine) -> None:
    found = run(engine, FOX, COPY, "def add(a, b):\n", FOX, n_tokens=48)
    assert (len(found.comparisons), found.n_repeated) == (6, 1), "prompts that come again are left out"
    assert found.n_wrong == 0
    assert found.n_drafted > found.n_accepted > 20
    assert all(one.plain.n_drafted == 0 < one.drafted.n_drafted for one in found.comparisons)
    assert len(found.speedups) >= 4
    logits = engine.next_logits(engine.tokenize(Request("x", FOX)))
    assert logits.shape == (engine.vocab.n_tokens,)
    text, _, _ = complete(engine, max_tokens=1)
    assert engine.vocab.pieces[int(logits.argmax())].decode() == text


def test_an_engine_that_takes_a_wrong_token_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    take_wrongly(monkeypatch, 6)
    with open_engine(n_slots=1, n_ctx=256) as engine:
        found = run(engine, FOX)
    assert [difference.position for difference in found.differences] == [6, 6]
    assert [difference.drafted.token for difference in found.differences] == [77, 77]
    assert found.n_wrong == 2


def test_a_prompt_is_as_new_in_each_mode_as_in_the_first() -> None:
    """Lookups must not know a reply from an earlier mode, and no run may find its prompt in a cache."""
    sampling = SamplingParams(temperature=0)
    with open_engine(n_slots=1, n_ctx=256, draft_depth=4) as engine:
        first, again = run(engine, FOX, modes=(GREEDY, GREEDY), n_tokens=60).comparisons
        assert (first.drafted.n_drafted, first.drafted.n_accepted) == (
            again.drafted.n_drafted,
            again.drafted.n_accepted,
        )
        engine.forget_texts()
        _, cold, _ = complete(engine, max_tokens=60, sampling=sampling)
        _, warm, _ = complete(engine, max_tokens=60, sampling=sampling)
        assert warm.receipt.n_accepted > cold.receipt.n_accepted, "without forgetting, a repeat is drafted from memory"
        assert warm.receipt.n_cached > 0
        engine.forget_texts()
        _, forgotten, _ = complete(engine, max_tokens=60, sampling=sampling)
        assert forgotten.receipt.n_cached == 0


def test_a_request_that_fails_ends_the_verification(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "choose", _broken)
    with pytest.raises(SlipstreamError, match="values that are not numbers"):
        run(engine, FOX, modes=(SAMPLED,))
    assert engine.is_idle


def _broken(*_: Any) -> Any:
    from core.values.errors import BrokenLogits

    raise BrokenLogits


def test_a_request_that_does_not_speculate_teaches_the_proposers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine(n_slots=2, n_ctx=256, draft_depth=4) as engine:
        speculator = engine.speculator
        assert speculator is not None
        for index in range(2):
            request = Request(str(index), COPY, 30, sampling=SamplingParams(temperature=0), speculates=bool(index))
            engine.submit(engine.prepare(request))
        receipts = {}
        while not engine.is_idle:
            for event in engine.step():
                if hasattr(event, "receipt"):
                    receipts[event.request_id] = event.receipt
        assert receipts["0"].n_drafted == 0 < receipts["1"].n_drafted
        learnt: list[list[int]] = []
        monkeypatch.setattr(NgramProposer, "add_text", lambda _, tokens, salt: learnt.append(tokens))
        complete(engine, COPY, max_tokens=30, speculates=False)
        assert learnt == []
