"""What a drafting model of a slightly different vocabulary may propose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from core.engine.engine import Engine
from core.scheduler.sequence import Sequence
from core.speculation.proposers.context_proposer import DraftSampler
from core.values.request import Constraint, Request, SamplingParams
from tests.support.engines import open_engine

SAMPLINGS = {
    "greedy": SamplingParams(temperature=0),
    "penalties": SamplingParams(temperature=0, repeat_penalty=1.1),
    "sampled": SamplingParams(temperature=0.5, seed=1),
    "everything": SamplingParams(temperature=0.5, seed=1, min_p=0.0, top_k=0, top_p=1.0),
    "bias": SamplingParams(temperature=0.5, seed=1, logit_bias=((4095, 1.0),)),
}


GREEDY = SAMPLINGS["greedy"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=1, n_ctx=256, speculation="off") as engine:
        yield engine


def sequence(engine: Engine, sampling: SamplingParams) -> Sequence:
    return engine.submit(engine.prepare(Request("only", (1, 2, 3), sampling=sampling)))


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("n_drafted", [4000, 4096, 4160])
def test_only_tokens_that_the_target_knows_are_proposed(
    engine: Engine, sampling: SamplingParams, n_drafted: int
) -> None:
    logits = np.full(n_drafted, -30.0, np.float32)
    logits[77] = 5.0
    logits[4096:] = 40.0
    asking = sequence(engine, sampling)
    guess = DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3)
    engine.cancel("only")
    engine.step()
    assert guess is not None
    assert guess.token == 77


def test_numbers_that_are_none_propose_nothing(engine: Engine) -> None:
    asking = sequence(engine, SAMPLINGS["greedy"])
    logits = np.full(4096, np.nan, np.float32)
    assert DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3) is None
    engine.cancel("only")
    engine.step()


def test_a_grammar_is_followed_from_where_the_draft_stands(engine: Engine) -> None:
    asking = engine.submit(
        engine.prepare(Request("only", (1, 2, 3), sampling=GREEDY, constraint=Constraint("regex", "yes|no")))
    )
    chooser = DraftSampler(engine.vocab.n_tokens)
    yes, rest, other = (int(engine.vocab.tokenize(text, add_special=False)[0]) for text in ("y", "es", "Q"))
    logits = np.zeros(4096, np.float32)
    logits[other], logits[yes], logits[rest] = 9.0, 8.0, 7.0
    guesses = [chooser.choose(asking, logits.copy(), 3, ahead) for ahead in ([], [yes], None)]
    engine.cancel("only")
    engine.step()
    assert [guess.token for guess in guesses if guess is not None] == [yes, rest, other]


def test_a_grammar_that_allows_nothing_known_proposes_nothing(engine: Engine) -> None:
    """The rows that a drafting model of fewer tokens has nothing to say about are minus infinity."""
    asking = engine.submit(engine.prepare(Request("only", (1, 2, 3), constraint=Constraint("regex", "yes|no"))))
    logits = np.full(4096, -np.inf, np.float32)
    logits[77] = 9.0
    found = DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3, [])
    engine.cancel("only")
    engine.step()
    assert found is None
