"""What a grammar forces is drafted: the same text in fewer steps, whatever the pieces it is spelled in."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.speculation.proposers.free_proposers import GrammarProposer
from core.speculation.speculator import Speculator
from core.values.messages import FinishReason
from core.values.request import Constraint, SamplingParams
from tests.support.engines import complete, open_engine, run, submit
from tests.support.prompts import FOX, GREEDY, SURE, chat
from tests.support.proposers import replace_speculator

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
        flat.observe = lambda *_: None  # type: ignore[method-assign]
        replace_speculator(engine, Speculator(flat, n_ctx=512))
        yield engine


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("constraint", [SCHEMA, SENTENCE, CONSTANT])
def test_the_text_is_the_same_in_fewer_steps(
    plain: Engine, drafting: Engine, sampling: SamplingParams, constraint: Constraint
) -> None:
    for engine in (plain, drafting):
        engine.forget_texts()  # the prompt is read in steps of the same width
    before = plain.n_steps
    expected, end, _ = complete(plain, FOX, max_tokens=200, sampling=sampling, constraint=constraint)
    plain_steps = plain.n_steps - before
    before = drafting.n_steps
    found, ended, _ = complete(drafting, FOX, max_tokens=200, sampling=sampling, constraint=constraint)
    assert found == expected
    assert (end.reason, ended.reason) == (FinishReason.STOP, FinishReason.STOP)
    assert ended.receipt.n_drafted >= ended.receipt.n_accepted > 5
    assert drafting.n_steps - before <= plain_steps - ended.receipt.n_accepted + 1


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


def test_guided_and_free_requests_are_drafted_for_side_by_side(plain: Engine, drafting: Engine) -> None:
    requests = {"json": SCHEMA, "sentence": SENTENCE, "free": None}
    expected = {
        name: complete(plain, SURE, max_tokens=60, sampling=GREEDY, constraint=constraint)[0]
        for name, constraint in requests.items()
    }
    for name, constraint in requests.items():
        submit(drafting, name, SURE, max_tokens=60, constraint=constraint)
    ledger = run(drafting)
    assert ledger.text == expected
    assert ledger.ended["free"].receipt.n_drafted == 0


def test_a_reply_that_is_cut_inside_a_forced_run_has_the_right_length(plain: Engine, drafting: Engine) -> None:
    for limit in range(1, 12):
        expected, _, _ = complete(plain, FOX, max_tokens=limit, sampling=GREEDY, constraint=SENTENCE)
        found, ended, ledger = complete(drafting, FOX, max_tokens=limit, sampling=GREEDY, constraint=SENTENCE)
        assert found == expected
        assert ledger.n_tokens["only"] == limit
        assert ended.reason is FinishReason.LENGTH


def test_cancelled_inside_a_forced_run_the_engine_stays_sound(drafting: Engine) -> None:
    for n_steps in range(1, 4):
        submit(drafting, "gone", FOX, max_tokens=100, constraint=SENTENCE)
        for _ in range(n_steps):
            drafting.step()
        drafting.cancel("gone")
        assert run(drafting).ended["gone"].reason is FinishReason.CANCELLED


def test_nothing_is_kept_of_replies_that_have_ended(drafting: Engine) -> None:
    speculator = drafting.speculator
    assert speculator is not None
    complete(drafting, FOX, max_tokens=60, constraint=SENTENCE)
    (forced,) = speculator.proposers
    assert isinstance(forced, GrammarProposer)
    assert forced._runs == {}
