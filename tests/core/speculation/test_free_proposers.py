"""Prompt lookup, and what grammars force."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.sequence import Sequence
from core.speculation.proposers.free_proposers import _PIECE, GrammarProposer, NgramIndex, NgramProposer
from core.speculation.proposers.proposer import DraftChain, SequenceAcceptance
from core.speculation.speculator import Speculator
from core.values.messages import FinishReason
from core.values.request import Constraint, Request, SamplingParams
from tests.support.engines import complete, open_engine
from tests.support.prompts import FOX, GREEDY, chat
from tests.support.proposers import replace_speculator


def sequence(tokens: list[int], name: str = "a") -> Sequence:
    sampler = cast(Any, SimpleNamespace(seed=1))
    return Sequence(PreparedRequest(Request(name, "x"), np.array(tokens, np.int32), sampler), order=0, submitted_at=0.0)


def draft(lookup: NgramProposer, of: Sequence, n: int) -> list[int]:
    chain = DraftChain(of, lookup, SequenceAcceptance(0.6))
    for _ in range(n):
        (guess,) = lookup.extend([chain])
        if guess is None:
            break
        chain.add(guess)
    return chain.tokens


def test_a_repeated_passage_is_continued_from_its_latest_place() -> None:
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, 5, 6, 9, 1, 2, 3])
    lookup.begin(text)
    assert draft(lookup, text, 4) == [4, 5, 6, 9]
    lookup, text = NgramProposer(), sequence([7, 8, 9, 7, 8, 9, 7, 8, 9])
    lookup.begin(text)
    assert draft(lookup, text, 8) == [7, 8, 9, 7, 8, 9, 7, 8]
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3])
    lookup.begin(text)
    assert draft(lookup, text, 1) == [5]
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, 5, 6])
    lookup.begin(text)
    assert draft(lookup, text, 4) == []


def test_a_longer_match_is_better_evidence() -> None:
    lookup = NgramProposer()
    short, long = sequence([1, 2, 3, 9, 8, 1, 2, 3], "short"), sequence([*range(40), *range(35)], "long")
    lookup.begin(short)
    lookup.begin(long)
    chains = [DraftChain(text, lookup, SequenceAcceptance(0.6)) for text in (short, long)]
    first, second = lookup.extend(chains)
    assert first is not None
    assert second is not None
    assert second.evidence > first.evidence
    assert lookup.table.rate(second.evidence) > lookup.table.rate(first.evidence)


NAME, OTHER, THIRD = 90, 91, 92
PASSAGE = [1, 2, 3, 4, NAME, 5, 6, 7, NAME, 8, 9, 10, NAME, 11, 12, NAME]


def say(lookup: NgramProposer, text: Sequence, tokens: list[int], *, one_by_one: bool) -> None:
    """Let a text go on; at rest its tokens are read later, and together."""
    for token in tokens:
        text.tokens.append(token)
        if one_by_one:
            lookup.advance(text, [token], 0)
    lookup.has_match(text)


@pytest.mark.parametrize("one_by_one", [True, False])
def test_a_passage_is_followed_on_where_a_name_in_it_is_replaced(one_by_one: bool) -> None:
    lookup, text = NgramProposer(), sequence([*PASSAGE, 50, 1, 2, 3])
    lookup.begin(text)
    assert draft(lookup, text, 4) == [4, NAME, 5, 6]
    say(lookup, text, [4], one_by_one=one_by_one)
    say(lookup, text, [OTHER], one_by_one=one_by_one)
    assert draft(lookup, text, 4) == [], "it is not known how that goes on"
    say(lookup, text, [5], one_by_one=one_by_one)
    assert draft(lookup, text, 6) == [6, 7, OTHER, 8, 9, 10]
    say(lookup, text, [6, 7, OTHER, 8], one_by_one=one_by_one)
    assert draft(lookup, text, 4) == [9, 10, OTHER, 11]
    say(lookup, text, [9, 10, NAME], one_by_one=one_by_one)
    assert draft(lookup, text, 3) == [11, 12, NAME], "it is itself again"


def test_a_name_of_several_tokens_may_be_replaced() -> None:
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, NAME, 70, 5, 6, 7, NAME, 70, 8, 50, 1, 2, 3])
    lookup.begin(text)
    say(lookup, text, [4, OTHER, 71, 5], one_by_one=True)
    assert draft(lookup, text, 5) == [6, 7, OTHER, 71, 8]


def test_a_text_that_strays_further_from_a_passage_follows_it_no_longer() -> None:
    lookup, text = NgramProposer(), sequence([*PASSAGE, 50, 1, 2, 3])
    lookup.begin(text)
    say(lookup, text, [4, OTHER, THIRD, THIRD, THIRD, 7], one_by_one=True)
    assert draft(lookup, text, 4) == []
    say(lookup, text, [5, 6, 7, NAME, 8], one_by_one=True)
    assert draft(lookup, text, 3) == [9, 10, NAME], "nothing was taken for a replacement"


def test_tokens_that_come_are_indexed_and_unused_lookups_are_judged() -> None:
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, 1, 2, 3])
    lookup.begin(text)
    lookup.advance(text, [4, 1], 0)
    observed = lookup.take_samples()
    assert [seen.was_right for seen in observed] == [True, True]
    assert lookup.take_samples() == []
    lookup.advance(text, [77], 0)
    assert [seen.was_right for seen in lookup.take_samples()] == [False]


def test_tokens_of_its_own_chain_are_not_judged_twice() -> None:
    lookup, text = NgramProposer(), sequence([1, 2, 3, 4, 1, 2, 3])
    lookup.begin(text)
    lookup.advance(text, [4, 1], 2)
    assert lookup.take_samples() == []


def test_a_finished_text_helps_the_next_request() -> None:
    lookup, first = NgramProposer(), sequence([5], "first")
    lookup.begin(first)
    said = [11, 12, 13, 14, 15, 16]
    first.tokens.extend(np.array(said, np.int32))
    lookup.advance(first, said, 0)
    lookup.end(first)
    second = sequence([11, 12, 13, 14], "second")
    lookup.begin(second)
    assert draft(lookup, second, 2) == [15, 16]


def test_a_finished_text_helps_requests_with_its_salt_only() -> None:
    with open_engine(n_slots=1, n_ctx=512, draft_depth=4) as engine:
        drafted = [complete(engine, max_tokens=60, salt=salt)[1].receipt.n_drafted for salt in ("", "a", "b", "a", "")]
    assert drafted[0] == drafted[1] == drafted[2]
    assert drafted[3] == drafted[4] > drafted[2] + 20


def test_what_followed_each_time_in_other_requests_is_better_evidence_than_what_changes() -> None:
    lookup = NgramProposer()
    for said in ([1, 2, 3, 4, 9], [1, 2, 3, 4, 9], [11, 12, 13, 14, 15], [5, 6, 7, 8, 9], [5, 6, 7, 8, 10]):
        lookup.add_text(said)
    texts = [sequence(said, str(said)) for said in ([1, 2, 3, 4], [11, 12, 13, 14], [5, 6, 7, 8])]
    for text in texts:
        lookup.begin(text)
    guesses = lookup.extend([DraftChain(text, lookup, SequenceAcceptance(0.6)) for text in texts])
    assert [guess.token for guess in guesses if guess is not None] == [9, 15, 10]
    twice, once, changed = [lookup.table.rate(guess.evidence) for guess in guesses if guess is not None]
    assert twice > once > changed


def test_no_step_indexes_more_than_a_piece_of_a_long_prompt() -> None:
    """What is looked up waits until all is indexed, and is then the same as if that had been done at once."""
    n_pieces = 6
    prompt = [*range(1, _PIECE * (n_pieces - 1)), 1, 2, 3]
    lookup, text = NgramProposer(), sequence(prompt)
    lookup.begin(text)
    # The text goes on meanwhile.
    text.tokens.append(4)
    lookup.advance(text, [4], 0)
    found = [draft(lookup, text, 3) for _ in range(n_pieces)]
    assert found[: n_pieces - 2] == [[]] * (n_pieces - 2)
    assert found[-1] == [5, 6, 7]
    text.tokens.append(5)
    lookup.advance(text, [5], 1)
    assert draft(lookup, text, 2) == [6, 7]


@given(st.lists(st.integers(0, 2), max_size=60), st.lists(st.integers(0, 2), max_size=30), st.integers(0, 30))
def test_indexing_at_once_in_pieces_and_token_by_token_is_the_same(
    start: list[int], more: list[int], n_in_one: int
) -> None:
    whole, in_pieces, grown = NgramIndex(start + more), NgramIndex(list(start)), NgramIndex(list(start))
    in_pieces.extend(more[:n_in_one])
    in_pieces.extend(more[n_in_one:])
    for token in more:
        grown.append(token)
    for further in (*more[:3], 0, 1, 2):
        assert in_pieces.find() == grown.find() == whole.find()
        for index in (whole, in_pieces, grown):
            index.append(further)
    assert in_pieces.tokens == grown.tokens == whole.tokens


KEYS = ("favourite_breakfast", "greatest_adventure_so_far", "what_the_neighbours_say")
SCHEMA = Constraint(
    "json_schema",
    json.dumps(
        {
            "type": "object",
            "properties": {key: {"type": "string", "maxLength": 8} for key in KEYS},
            "required": list(KEYS),
            "additionalProperties": False,
        }
    ),
)
SENTENCE = Constraint(
    "gbnf", 'root ::= "The quick brown fox jumps over the lazy dog and then it " ("ran" | "slept") "."'
)
CONSTANT = Constraint("json_schema", '{"const": {"kind": "a perfectly ordinary animal", "legs": [1, 2, 3, 4]}}')
SAMPLINGS = (
    GREEDY,
    SamplingParams(seed=1),
    SamplingParams(seed=2, temperature=1.5, top_k=0, min_p=0, top_p=1.0),
    SamplingParams(seed=5, repeat_penalty=1.3, dry_multiplier=0.8),
)


@pytest.fixture(scope="module")
def plain() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512, speculation="off") as engine:
        yield engine


@pytest.fixture(scope="module")
def drafting() -> Iterator[Engine]:
    """An engine for which rows cost nothing, and which drafts only what is forced."""
    with open_engine(n_slots=4, n_ctx=512) as engine:
        flat = CostModel(Calibration({1: 0.01, 64: 0.01}))
        flat.observe = lambda *_: None
        replace_speculator(engine, Speculator(flat, n_ctx=512, memory=engine.slots.memory))
        yield engine


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("constraint", [SCHEMA, SENTENCE, CONSTANT])
def test_the_text_is_the_same_in_fewer_steps(
    plain: Engine, drafting: Engine, sampling: SamplingParams, constraint: Constraint
) -> None:
    for engine in (plain, drafting):
        engine.forget_texts()  # the prompt is read in steps of the same width
    before = plain.stats.n_steps
    expected, end, _ = complete(plain, FOX, max_tokens=200, sampling=sampling, constraint=constraint)
    plain_steps = plain.stats.n_steps - before
    before = drafting.stats.n_steps
    found, ended, _ = complete(drafting, FOX, max_tokens=200, sampling=sampling, constraint=constraint)
    assert found == expected
    assert (end.reason, ended.reason) == (FinishReason.STOP, FinishReason.STOP)
    assert ended.receipt.n_drafted >= ended.receipt.n_accepted > 5
    assert drafting.stats.n_steps - before <= plain_steps - ended.receipt.n_accepted + 1


def test_most_of_what_is_forced_is_accepted(drafting: Engine) -> None:
    _, ended, _ = complete(drafting, chat("Describe yourself as JSON."), max_tokens=200, constraint=SCHEMA)
    assert ended.receipt.n_accepted >= 0.8 * ended.receipt.n_drafted


def test_a_model_that_spells_otherwise_is_right(plain: Engine, drafting: Engine) -> None:
    """Favour a piece that is the beginning of one that the tokenizer uses: the draft is rejected there."""
    pieces = plain.vocab.pieces
    usual = plain.vocab.tokenize(SENTENCE.text.split('"')[1], add_special=False).tolist()
    longest = max([pieces[token] for token in usual[2:]], key=len)
    favoured = max(token for token, piece in enumerate(pieces) if len(piece) > 1 and longest[:-1].startswith(piece))
    sampling = SamplingParams(temperature=0, logit_bias=((favoured, 100.0),))
    for engine in (plain, drafting):
        engine.forget_texts()
    expected, _, _ = complete(plain, FOX, max_tokens=60, sampling=sampling, constraint=SENTENCE)
    found, ended, _ = complete(drafting, FOX, max_tokens=60, sampling=sampling, constraint=SENTENCE)
    assert found == expected
    assert found.startswith("The quick brown fox jumps over the lazy dog")
    assert 0 < ended.receipt.n_accepted < ended.receipt.n_drafted


def test_a_reply_that_is_cut_inside_a_forced_run_has_the_right_length(plain: Engine, drafting: Engine) -> None:
    for limit in (1, 4, 8, 11):
        expected, _, _ = complete(plain, FOX, max_tokens=limit, sampling=GREEDY, constraint=SENTENCE)
        found, ended, ledger = complete(drafting, FOX, max_tokens=limit, sampling=GREEDY, constraint=SENTENCE)
        assert found == expected
        assert ledger.n_tokens["only"] == limit
        assert ended.reason is FinishReason.LENGTH


def test_nothing_is_kept_of_replies_that_have_ended(drafting: Engine) -> None:
    speculator = drafting.speculator
    assert speculator is not None
    complete(drafting, FOX, max_tokens=60, constraint=SENTENCE)
    (forced,) = speculator.proposers
    assert isinstance(forced, GrammarProposer)
    assert "only" not in repr(vars(forced))
