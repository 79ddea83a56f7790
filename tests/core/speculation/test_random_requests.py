"""Whatever is asked, drafted, cancelled and preempted beside it: a request says what it says alone and plainly.

Token for token and to the last bit of each log probability, on a processor.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.engine.engine import Engine
from core.scheduler.sequence import Sequence
from core.values.messages import FinishReason, TokenLogprob
from core.values.request import ANY_OBJECT, Constraint, Lane, Request, SamplingParams
from tests.support.engines import Ledger, open_engine
from tests.support.heads import hybrid
from tests.support.prompts import EMBER, EMBER_DRAFT, PROMPTS, SURE, words
from tools.model_factory import gguf_factory, recurrent_factory

TEXTS = (*PROMPTS, SURE, "1, 2, 3, 1, 2, 3, 1, 2, 3, 1,", "The cat sat on the mat. The dog sat on the mat. The cat")
GRAMMARS = (
    Constraint("json_schema", ANY_OBJECT),
    Constraint("regex", r"(yes|no|maybe so), because [a-z ]{5,60}\."),
    Constraint("gbnf", 'root ::= "the quick brown " [a-z]+ ("," [0-9]+)* "."'),
)
N_CTX, N_REQUESTS = 192, 6
OPTIONS: dict[str, dict[str, Any]] = {
    "ember": {"draft_path": str(EMBER_DRAFT)},
    "window": {"n_ubatch": 64},
    "qwen35": {},
    "qwen3next": {},
    "mamba": {},
}


class Said(NamedTuple):
    """What came of a request."""

    text: str
    tokens: list[int]
    logprobs: list[TokenLogprob]
    reason: FinishReason
    stop: str | None


def path_of(name: str) -> Path:
    if name == "ember":
        return EMBER
    if name == "window":
        return gguf_factory.cached_file("window.gguf", lambda path: recurrent_factory.gemma3(path, 32))
    if name == "mamba":
        return gguf_factory.cached_file("mamba.gguf", recurrent_factory.mamba)
    return hybrid(name).path


def random_request(choose: random.Random, number: int) -> Request:
    prompt = words(choose.choice([1, 5, 90]), choose.randrange(3)) if choose.random() < 0.3 else choose.choice(TEXTS)
    rare = choose.random() < 0.3
    sampling = SamplingParams(
        seed=choose.randrange(-3, 3),
        temperature=choose.choice([0.0, 0.2, 1.0, 5.0]),
        top_k=choose.choice([0, 1, 40]),
        top_p=choose.choice([0.5, 0.95, 1.0]),
        min_p=choose.choice([0.0, 0.05]),
        repeat_penalty=choose.choice([0.8, 1.0, 1.1]) if rare else 1.0,
        dry_multiplier=0.8 if rare else 0.0,
        mirostat=choose.choice([0, 0, 0, 2]),
        logit_bias=((choose.randrange(4096), choose.choice([-100.0, 5.0])),) if rare else (),
        ignore_eos=choose.random() < 0.3,
        logprobs=choose.random() < 0.4,
    )
    return Request(
        str(number),
        prompt,
        max_tokens=choose.choice([0, 1, 7, 40, None]),
        stop=choose.choice([(), (), ("fox", "."), ("the",)]),
        sampling=sampling,
        constraint=choose.choice(GRAMMARS) if choose.random() < 0.3 else None,
        lane=choose.choice(list(Lane)),
    )


def said(ledger: Ledger, sequence: Sequence) -> Said:
    ended, events = ledger.ended[sequence.id], ledger.tokens.get(sequence.id, [])
    assert ended.failure is None
    tokens = sequence.tokens.view[sequence.n_prompt :].tolist()
    logprobs = [entry for event in events for entry in event.logprobs]
    return Said(ledger.text[sequence.id], tokens, logprobs, ended.reason, ended.stop)


def run_all(engine: Engine, requests: list[tuple[int, Request]], cancelled: dict[str, int]) -> dict[str, Said]:
    """Submit each request before the step of its number, and cancel some; return what came of them."""
    ledger, sequences, n_steps = Ledger(), dict[str, Sequence](), 0
    while len(sequences) < len(requests) or not engine.is_idle:
        for first, request in requests:
            if request.id not in sequences and (first <= n_steps or engine.is_idle):
                sequences[request.id] = engine.submit(engine.prepare(request))
        for request_id, step in cancelled.items():
            if step == n_steps:
                engine.cancel(request_id)
        ledger.add(engine.step())
        n_steps += 1
    return {name: said(ledger, sequence) for name, sequence in sequences.items()}


@pytest.fixture(scope="module")
def alone() -> Iterator[Callable[[str], Engine]]:
    """Returns an engine that drafts nothing, by the name of a model."""
    opened: list[Any] = []

    @cache
    def open_one(name: str) -> Engine:
        manager = open_engine(path_of(name), n_slots=1, n_ctx=N_CTX, speculation="off", cache_ram=0)
        opened.append(manager)
        engine: Engine = manager.__enter__()
        return engine

    yield open_one
    for manager in opened:
        manager.__exit__(None, None, None)


@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=2)
@given(seed=st.integers(0, 1 << 32), depth=st.sampled_from([1, 4, 16]), n_slots=st.integers(2, 4))
def test_a_request_says_what_it_says_alone(
    alone: Callable[[str], Engine], name: str, seed: int, depth: int, n_slots: int
) -> None:
    choose, plain = random.Random(seed), alone(name)
    requests = [random_request(choose, number) for number in range(N_REQUESTS)]
    wanted: dict[str, Said] = {}
    for request in requests:
        plain.forget_texts()
        wanted |= run_all(plain, [(0, replace(request, speculates=False))], {})
    cells = choose.choice([N_CTX, 2 * N_CTX])
    with open_engine(
        path_of(name), n_slots=n_slots, n_ctx=N_CTX, n_cells=cells, draft_depth=depth, **OPTIONS[name]
    ) as engine:
        for _ in range(2):
            first = [(choose.choice([0, choose.randrange(30)]), request) for request in requests]
            cancelled = {request.id: choose.randrange(30) for request in requests if choose.random() < 0.15}
            for number, found in run_all(engine, first, cancelled).items():
                if found.reason is not FinishReason.CANCELLED:
                    assert found == wanted[number], requests[int(number)]
                else:
                    assert found.tokens == wanted[number].tokens[: len(found.tokens)]
