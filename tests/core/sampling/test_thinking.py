"""Reasoning budgets: thoughts end in time, whole characters stay whole, and grammars go on behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.engine.engine import Engine
from core.sampling.grammar import GrammarCompiler
from core.sampling.thinking import ThinkingGuide, ThinkingMarkers
from core.values.request import Constraint, SamplingParams, ThinkingBudget
from tests.support.engines import complete, open_engine

BUDGET = ThinkingBudget(3, "<think>", "</think>", begins_inside=True)
SPECIAL = ThinkingBudget(3, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=4) as engine:
        yield engine


def guide_of(engine: Engine, budget: ThinkingBudget, constraint: Constraint | None = None) -> ThinkingGuide:
    grammar = GrammarCompiler(engine.vocab).matcher(constraint) if constraint is not None else None
    markers = ThinkingMarkers(budget, engine.vocab)
    return ThinkingGuide(markers, grammar, budget.n_tokens, begins_inside=budget.begins_inside)


def tokens_of(engine: Engine, text: str) -> list[int]:
    return [int(token) for token in engine.vocab.tokenize(text, add_special=False)]


@pytest.mark.parametrize("sampling", [SamplingParams(temperature=0), SamplingParams(seed=3, temperature=1.5)])
@pytest.mark.parametrize("n_tokens", [0, 1, 9])
def test_a_model_thinks_no_more_than_it_may(engine, sampling, n_tokens):
    budget = ThinkingBudget(n_tokens, "<think>", "</think>", begins_inside=True)
    text = complete(engine, max_tokens=24, sampling=sampling, thinking=budget)[0]
    thought, is_closed, _ = text.partition("</think>")
    assert is_closed
    assert len(tokens_of(engine, thought)) <= n_tokens


def test_drafts_do_not_change_where_thoughts_end(engine):
    sampling = SamplingParams(temperature=0)
    texts = {
        complete(engine, max_tokens=40, sampling=sampling, thinking=BUDGET, speculates=speculates)[0]
        for speculates in (True, False)
    }
    assert len(texts) == 1


def test_thoughts_end_when_somebody_says_so(engine):
    guide = guide_of(engine, ThinkingBudget(2**31 - 1, "<think>", "</think>", begins_inside=True))
    for token in tokens_of(engine, "x y z"):
        guide.accept(token)
    assert guide.forced() == []
    guide.end()
    closing = tokens_of(engine, "</think>")
    assert guide.forced() == closing
    for token in closing:
        guide.accept(token)
    guide.end()
    assert guide.forced() == [], "they are over"


def test_thoughts_that_end_by_themselves_leave_the_budget(engine):
    """Also where the budget ends inside the marker."""
    guide = guide_of(engine, BUDGET)
    for token in tokens_of(engine, "</think>"):
        assert guide.allows(token)
        guide.accept(token)
    assert guide.forced() == []
    assert guide.n_allowed(tokens_of(engine, "a long answer to a short question")) > 5


def test_only_what_ends_the_thoughts_is_allowed_when_they_are_over(engine):
    guide = guide_of(engine, BUDGET)
    closing = tokens_of(engine, "</think>")
    told = tokens_of(engine, "x y z")[:3]
    assert guide.n_allowed([*told, *closing]) == 3 + len(closing)
    assert guide.n_allowed([*told, *told]) == 3
    ahead = guide.after(told)
    assert ahead is not None
    assert ahead.forced() == closing
    assert ahead.allowed().sum() == 1
    assert guide.after([*told, *told]) is None
    assert guide.forced() == []


def test_a_model_that_opens_its_thoughts_itself_is_bound_too(engine):
    opening, closing = tokens_of(engine, SPECIAL.open), tokens_of(engine, SPECIAL.close + SPECIAL.then)
    guide = guide_of(engine, SPECIAL)
    for token in [*opening, *tokens_of(engine, "x y z")[:3]]:
        guide.accept(token)
    assert guide.forced() == closing
    for token in closing:
        guide.accept(token)
    # Where thoughts are messages, more of them may come: nothing is left for those.
    for token in opening:
        guide.accept(token)
    assert guide.forced() == closing


def test_a_marker_that_is_a_special_token_is_written_as_a_whole(engine):
    """Else a grammar that waits for it would take what looks like it for more of the thoughts."""
    budget = ThinkingBudget(2, SPECIAL.open, SPECIAL.close, begins_inside=True)
    guide = guide_of(engine, budget, Constraint("regex", "[0-9]{3}", thought=("", SPECIAL.close)))
    for token in (*tokens_of(engine, "x")[:1], *tokens_of(engine, "<")[-1:]):
        guide.accept(token)
    (closing,) = guide.forced()
    assert engine.vocab.text(closing) == SPECIAL.close
    guide.accept(closing)
    assert [text for text in "1x" if guide.allows(tokens_of(engine, text)[-1])] == ["1"]


def test_thoughts_end_without_a_marker_that_the_grammar_allows_only_the_beginning_of(engine):
    guide = guide_of(engine, BUDGET, Constraint("regex", "[a-z</]{40}"))
    for token in tokens_of(engine, "xyzxyzxyz")[:3]:
        guide.accept(token)
    assert guide.n_allowed(tokens_of(engine, "abc")) == len(tokens_of(engine, "abc"))


def test_a_reply_without_thoughts_is_free(engine):
    guide = guide_of(engine, ThinkingBudget(0, "<think>", "</think>"))
    answer = tokens_of(engine, "Hello <think> is a tag, and so on.")
    assert guide.n_allowed(answer) == len(answer)


def test_a_character_is_not_cut(engine):
    letters = [token for token, piece in enumerate(engine.vocab.pieces) if piece in (b"\xc3", b"\xa9")]
    if len(letters) == 2:
        guide = guide_of(engine, ThinkingBudget(1, "<think>", "</think>", begins_inside=True))
        first, second = sorted(letters, key=lambda token: engine.vocab.pieces[token] != b"\xc3")
        guide.accept(first)
        assert guide.forced() == []
        guide.accept(second)
        assert guide.forced() == tokens_of(engine, "</think>")


def test_the_grammar_follows_the_thoughts(engine):
    constraint = Constraint("regex", "[0-9]{3}", thought=("", "</think>"))
    sampling = SamplingParams(seed=1)
    text, _, _ = complete(engine, max_tokens=40, sampling=sampling, constraint=constraint, thinking=BUDGET)
    answer = text.partition("</think>")[2]
    assert answer.strip().isdigit()
    assert len(answer.strip()) == 3
