"""Acceptance tables and records of texts: what was seen decides."""

from __future__ import annotations

import random

import pytest

from core.scheduler.sequence import Sequence
from core.speculation.draft_state import Backoff, DraftState, DraftStates, ProposerRecord
from core.speculation.proposer_choice import DraftGrowth
from core.speculation.proposers.proposer import AcceptanceTable, SequenceAcceptance
from tests.support.proposers import RandomProposer
from tests.support.sequences import sequence


def test_a_table_begins_with_its_priors_and_learns_and_follows_a_change() -> None:
    table = AcceptanceTable((0.2, 0.9))
    assert (table.rate(0), table.rate(1)) == pytest.approx((0.2, 0.9))
    rng = random.Random(1)
    for _ in range(400):
        table.learn(0, rng.random() < 0.7)
    assert table.rate(0) == pytest.approx(0.7, abs=0.08)
    assert table.rate(1) == pytest.approx(0.9), "other bins are not touched"
    table = AcceptanceTable((0.5,))
    for _ in range(2000):
        table.learn(0, True)
    for _ in range(800):
        table.learn(0, False)
    assert table.rate(0) < 0.35


def test_a_table_knows_how_much_its_evidence_tells() -> None:
    telling, mute = AcceptanceTable((0.5, 0.5)), AcceptanceTable((0.5, 0.5))
    assert telling.resolution == mute.resolution == 0.0
    for count in range(1000):
        is_right = count % 10 < 7
        telling.learn(int(is_right), is_right)
        mute.learn(count % 2, is_right)
    assert telling.resolution > 0.9
    assert mute.resolution < 0.05


def test_a_sequence_finds_its_own_mean_and_is_never_certain() -> None:
    sequence = SequenceAcceptance(0.6)
    for _ in range(12):
        sequence.learn(0, 0.6, False)
    assert sequence.mean < 0.2
    assert sequence.expect(0, 0.6) < 0.5
    for _ in range(40):
        sequence.learn(0, 0.6, True)
    assert sequence.mean > 0.9
    assert sequence.expect(0, 0.6) > 0.7
    sequence = SequenceAcceptance(0.9)
    for _ in range(500):
        sequence.learn(0, 0.995, True)
    assert sequence.expect(0, 0.995) < 1.0


def test_what_a_bin_shows_in_a_sequence_counts_more_than_its_neighbours() -> None:
    sequence = SequenceAcceptance(0.6)
    for _ in range(40):
        sequence.learn(0, 0.3, True)
        sequence.learn(1, 0.9, False)
    assert sequence.expect(0, 0.3) > 0.6
    assert sequence.expect(1, 0.9) < 0.4
    assert sequence.expect(0, 0.3) > sequence.expect(2, 0.3) - 0.2, "a bin that was not seen follows the rest"


def test_few_tokens_of_a_bin_do_not_outweigh_what_all_texts_showed() -> None:
    sequence = SequenceAcceptance(0.6)
    for _ in range(3):
        sequence.learn(0, 0.4, False)
        sequence.learn(1, 0.4, True)
    assert sequence.expect(0, 0.4) == pytest.approx(0.4, abs=0.1)


def state(speedup: float = 1.0) -> DraftState:
    return DraftState({}, Backoff(), Backoff(), speedup=speedup)


def test_the_speed_of_a_text_is_tokens_by_time_and_follows_the_last_steps() -> None:
    known = state(3.0)
    known.learn_speed(1, 0.01, 0.01)
    assert 2.0 < known.speedup < 3.0, "what others came at counts as two steps"
    for _ in range(60):
        known.learn_speed(4, 0.01, 0.02)
        known.learn_speed(1, 0.01, 0.01)
    assert known.speedup == pytest.approx(5 * 0.01 / 0.03, rel=0.1), "not the mean of 2 and 1"
    for _ in range(30):
        known.learn_speed(1, 0.01, 0.015)
    assert known.speedup == 1.0, "time is never worth less than plain decoding makes of it"


def test_a_suspended_machine_does_not_make_time_worthless() -> None:
    known = state(2.0)
    for _ in range(20):
        known.learn_speed(2, 0.01, 0.01)
    known.learn_speed(2, 0.01, 3600.0)
    for _ in range(40):
        known.learn_speed(2, 0.01, 0.01)
    assert known.speedup > 1.5


def test_a_wait_for_ngrams_is_a_step_shorter_with_each_step() -> None:
    states, one = DraftStates((), (), 0.0, has_ngrams=True), sequence(0, 1)
    states.admit(one)
    assert states.due_for_ngrams([one]) == [one], "a text begins without a wait"
    for _ in range(3):
        states.by_id[one.id].ngram_backoff.back_off(100)
    due = []
    for _ in range(7):
        due.append(states.due_for_ngrams([one]))
        states.begin_step([one])
    assert due == [[]] * 7
    assert states.due_for_ngrams([one]) == [one]


def test_a_proposer_that_fails_is_left_alone_twice_as_long_each_time_up_to_a_limit() -> None:
    record, pauses = ProposerRecord(SequenceAcceptance(0.5)), []
    for n_steps in range(0, 9_000, 1_000):
        record.fail(n_steps)
        pauses.append(record.resumes_at - n_steps)
    assert pauses == [8, 16, 32, 64, 128, 256, 512, 512, 512]


def growth_of(one: Sequence) -> tuple[DraftGrowth, DraftStates, RandomProposer]:
    """What lets drafts of a text grow; tokens are right in half of all cases."""
    proposer = RandomProposer(100)
    proposer.table = AcceptanceTable((0.5,))
    states = DraftStates((proposer,), (proposer,), 0.0, has_ngrams=False)
    states.admit(one)
    growth = DraftGrowth(states, n_ctx=10_000, most=16, end_tokens=(), checkpoints=None, clock=lambda: 0.0)
    growth.least_reach = 0.1
    return growth, states, proposer


def test_what_reading_a_text_took_is_booked_over_a_reply_of_usual_length() -> None:
    one = sequence(0, 1)
    growth, states, _ = growth_of(one)
    states.by_id[one.id].records["draft"].debt = 1.0
    growth.amortise(one, 32)
    assert [seconds for _, seconds in growth.times] == [0.25], "32 of 128 tokens"
    growth.amortise(one, 1_000)
    assert sum(seconds for _, seconds in growth.times) == 1.0


def test_a_draft_that_is_hardly_ever_right_to_its_end_stops_growing() -> None:
    one = sequence(0, 1)
    growth, states, proposer = growth_of(one)
    chain = states.chain(one, proposer)
    growth.extend_free(chain, 16, is_lawful=True)
    assert chain.probability < 0.1 <= chain.reach[-2]
