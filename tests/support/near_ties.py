"""Greedy runs compared: they are the same, or part where two tokens are nearly equally likely."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from app.jobs.verify.near_tie import NEAR_TIE
from core.engine.engine import Engine
from core.values.messages import Ended
from core.values.request import SamplingParams
from tests.support.engines import Ledger, complete
from tests.support.prompts import FOX

GREEDY_WITH_LOGPROBS = SamplingParams(temperature=0, logprobs=True, top_logprobs=2)


def greedy(engine: Engine, prompt: str | tuple[int, ...] = FOX, **fields: Any) -> tuple[list[tuple[int, float]], Ended]:
    """Run one request alone, greedily; return what ``greedy_tokens`` says of it, and its end."""
    _, ended, ledger = complete(engine, prompt, sampling=GREEDY_WITH_LOGPROBS, **fields)
    return greedy_tokens(ledger, "only"), ended


_MOST_EXPECTED = 40
_said: WeakKeyDictionary[Engine, dict[str, list[tuple[int, float]]]] = WeakKeyDictionary()


def expected(plain: Engine, prompt: str, n: int) -> list[tuple[int, float]]:
    """Return the first ``n`` of ``greedy_tokens`` of a plain run of ``prompt``, which is made once for each engine."""
    assert n <= _MOST_EXPECTED
    said = _said.setdefault(plain, {})
    if prompt not in said:
        said[prompt], _ = greedy(plain, prompt, max_tokens=_MOST_EXPECTED)
    return said[prompt][:n]


def greedy_tokens(ledger: Ledger, request_id: str) -> list[tuple[int, float]]:
    """Return (token, distance in log probability to the second choice) of a run with ``GREEDY_WITH_LOGPROBS``."""
    entries = [entry for token in ledger.tokens[request_id] for entry in token.logprobs]
    return [(entry.chosen.token, entry.top[0].logprob - entry.top[1].logprob) for entry in entries]


def assert_same_up_to_a_near_tie(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> None:
    """Hold that two greedy runs agree, or first differ where two tokens are nearly equally likely."""
    for (token, _), (other, gap) in zip(found, expected, strict=False):
        if token != other:
            assert gap < NEAR_TIE, f"token {token} instead of {other}, which was ahead by {gap:.3f}"
            return
    assert len(found) == len(expected)
