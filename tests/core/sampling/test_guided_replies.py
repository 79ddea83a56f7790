"""Replies that follow a grammar: always, by the right distribution, with drafts too, and without harm to others."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from core.engine.engine import Engine
from core.values.messages import FailureKind, FinishReason
from core.values.request import ANY_OBJECT, Constraint, SamplingParams
from tests.support.engines import complete, open_engine, run, submit
from tests.support.prompts import EMBER_DRAFT, FOX, GREEDY, SURE, chat

PERSON = Constraint(
    "json_schema",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "age": {"type": "integer", "minimum": 0, "maximum": 120},
                "likes": {"type": "array", "items": {"enum": ["tea", "jam"]}, "maxItems": 3},
            },
            "required": ["name", "age", "likes"],
            "additionalProperties": False,
        }
    ),
)
PHONE = Constraint("regex", r"[0-9]{3}-[0-9]{4}")
ANYTHING = Constraint("regex", "(?s:.*)")
SAMPLINGS = (
    GREEDY,
    SamplingParams(seed=1),
    SamplingParams(seed=2, temperature=1.5, top_k=0, min_p=0, top_p=1.0),
    SamplingParams(seed=3, mirostat=2),
    SamplingParams(seed=4, typical_p=0.8, xtc_probability=0.5),
    SamplingParams(seed=5, repeat_penalty=1.3, dry_multiplier=0.8),
    SamplingParams(temperature=0, frequency_penalty=1.0),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=8, speculation="off") as engine:
        yield engine


@pytest.fixture(scope="module")
def drafting() -> Iterator[Engine]:
    with open_engine(n_slots=8, draft_path=str(EMBER_DRAFT), draft_depth=4) as engine:
        yield engine


def check_person(text: str) -> None:
    person = json.loads(text)
    assert set(person) == {"name", "age", "likes"}
    assert isinstance(person["age"], int)
    assert 0 <= person["age"] <= 120
    assert len(person["name"]) <= 12
    assert set(person["likes"]) <= {"tea", "jam"}


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("drafts", [False, True])
def test_every_reply_follows_its_grammar(
    engine: Engine, drafting: Engine, sampling: SamplingParams, drafts: bool
) -> None:
    used = drafting if drafts else engine
    text, ended, _ = complete(used, FOX, max_tokens=200, sampling=sampling, constraint=PERSON)
    assert ended.reason is FinishReason.STOP
    check_person(text)
    text, ended, _ = complete(used, FOX, max_tokens=200, sampling=sampling, constraint=PHONE)
    assert ended.reason is FinishReason.STOP
    assert re.fullmatch(PHONE.text, text)


def test_a_grammar_that_allows_everything_changes_nothing(engine: Engine) -> None:
    for sampling in SAMPLINGS:
        engine.forget_texts()  # each prompt is read in steps of the same width
        free, _, _ = complete(engine, FOX, max_tokens=40, sampling=sampling)
        engine.forget_texts()
        guided, _, _ = complete(engine, FOX, max_tokens=40, sampling=sampling, constraint=ANYTHING)
        assert guided == free


def test_tokens_come_by_the_models_own_distribution_among_those_allowed(engine: Engine) -> None:
    prompt = chat("Who are you?")
    choice = Constraint("regex", "(A|B|C|D|E)")
    tokens = [int(engine.vocab.tokenize(letter, add_special=False)[0]) for letter in "ABCDE"]
    engine.forget_texts()
    logits = engine.next_logits(engine.vocab.tokenize(prompt))[tokens].astype(np.float64)
    temperature = 3.0
    weights = np.exp((logits - logits.max()) / temperature)
    expected = 400 * weights / weights.sum()
    counts: Counter[str] = Counter()
    for seed in range(400):
        sampling = SamplingParams(seed=seed, temperature=temperature, top_k=0, top_p=1.0, min_p=0)
        submit(engine, str(seed), prompt, max_tokens=4, sampling=sampling, constraint=choice)
    for text in run(engine).text.values():
        counts[text] += 1
    observed = np.array([counts[letter] for letter in "ABCDE"], np.float64)
    assert observed.sum() == 400
    enough = expected >= 5
    assert np.count_nonzero(enough) >= 3
    statistic = float((((observed - expected) ** 2) / expected)[enough].sum())
    assert statistic < 18.5, "the 99.9th percentile of chi-square with 4 degrees of freedom"


def test_a_reply_that_is_cut_short_says_so(engine: Engine) -> None:
    text, ended, _ = complete(engine, FOX, max_tokens=3, sampling=GREEDY, constraint=PERSON)
    assert ended.reason is FinishReason.LENGTH
    assert text
    _, ended, _ = complete(engine, FOX, max_tokens=200, sampling=GREEDY, constraint=PHONE, stop=("-",))
    assert (ended.reason, ended.stop) == (FinishReason.STOP, "-")


def test_a_complete_reply_needs_no_end_token(engine: Engine) -> None:
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    text, ended, _ = complete(engine, FOX, max_tokens=200, sampling=sampling, constraint=Constraint("regex", "yes"))
    assert (text, ended.reason) == ("yes", FinishReason.STOP)


def test_parameters_that_exclude_all_that_is_allowed_end_the_request_alone(engine: Engine) -> None:
    letters = [int(engine.vocab.tokenize(letter, add_special=False)[0]) for letter in "AB"]
    sampling = SamplingParams(temperature=0, logit_bias=tuple((token, float("-inf")) for token in letters))
    submit(engine, "stuck", FOX, max_tokens=9, sampling=sampling, constraint=Constraint("regex", "[AB]"))
    submit(engine, "other", FOX, max_tokens=9, sampling=GREEDY)
    ledger = run(engine)
    failure = ledger.ended["stuck"].failure
    assert failure is not None
    assert (failure.kind, failure.param) == (FailureKind.BAD_REQUEST, "grammar")
    assert "excluded by other parameters" in failure.message
    assert ledger.ended["other"].failure is None


def test_guided_and_free_requests_share_their_steps(drafting: Engine) -> None:
    expected = {}
    kinds = {"free": None, "person": PERSON, "phone": PHONE, "json": Constraint("json_schema", ANY_OBJECT)}
    for name, constraint in kinds.items():
        expected[name], _, _ = complete(drafting, SURE, max_tokens=50, sampling=GREEDY, constraint=constraint)
    for name, constraint in kinds.items():
        submit(drafting, name, SURE, max_tokens=50, sampling=GREEDY, constraint=constraint)
    text = run(drafting).text
    assert text["free"] == expected["free"], "an answer without near-ties"
    assert sum(text[name] == expected[name] for name in kinds) >= 3, "only rounding at near-ties may change a text"
    check_person(text["person"])
    assert re.fullmatch(PHONE.text, text["phone"])
    assert text["json"].startswith("{")


def test_logprobs_are_those_before_the_grammar(engine: Engine) -> None:
    sampling = SamplingParams(temperature=0, logprobs=True, top_logprobs=3)
    text, _, ledger = complete(engine, FOX, max_tokens=20, sampling=sampling, constraint=PHONE)
    entries = [entry for token in ledger.tokens["only"] for entry in token.logprobs]
    assert b"".join(entry.chosen.piece for entry in entries).decode() == text
    assert entries[0].top[0].token != entries[0].chosen.token, "a story does not begin with a digit"
    assert entries[0].chosen.logprob < entries[0].top[0].logprob


def test_a_cancelled_guided_request_leaves_a_sound_engine(drafting: Engine) -> None:
    for n_steps in range(1, 5):
        submit(drafting, "gone", FOX, max_tokens=100, sampling=GREEDY, constraint=PERSON)
        for _ in range(n_steps):
            drafting.step()
        drafting.cancel("gone")
        assert run(drafting).ended["gone"].reason is FinishReason.CANCELLED
    text, _, _ = complete(drafting, FOX, max_tokens=200, sampling=GREEDY, constraint=PERSON)
    check_person(text)
