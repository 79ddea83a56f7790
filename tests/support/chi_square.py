"""Whether two engines draw tokens from the same distribution: chi-square over many seeds."""

from __future__ import annotations

from collections import Counter

import numpy as np

from core.engine.engine import Engine
from core.values.request import SamplingParams
from tests.support.engines import Ledger, run, submit
from tests.support.prompts import FOX


def third_tokens(engine: Engine, seeds: range) -> Counter[str]:
    """Return how often each beginning of three words comes after a fixed prompt, over ``seeds``."""
    ledger = Ledger()
    for seed in seeds:
        submit(engine, str(seed), FOX, max_tokens=4, sampling=SamplingParams(seed=seed, temperature=1.0, top_k=20))
    run(engine, ledger)
    return Counter(" ".join(ledger.text[str(seed)].split()[:3]) for seed in seeds)


def assert_same_distribution(found: Counter[str], wanted: Counter[str]) -> None:
    """Hold that two counts of equal size come from one distribution, p = 0.0005."""
    n_seeds = found.total()
    assert n_seeds == wanted.total()
    tokens = [token for token, count in (found + wanted).items() if count >= 20]
    rest = (n_seeds - sum(found[t] for t in tokens), n_seeds - sum(wanted[t] for t in tokens))
    a = np.array([*(found[token] for token in tokens), rest[0]], float)
    b = np.array([*(wanted[token] for token in tokens), rest[1]], float)
    kept = a + b > 0
    statistic = float(((a - b)[kept] ** 2 / (a + b)[kept]).sum())
    freedom = int(kept.sum()) - 1
    assert freedom >= 2, "the prompt must leave a choice"
    # Wilson and Hilferty: the cube root of chi-square over its freedom is nearly normal.
    spread = 2 / (9 * freedom)
    assert ((statistic / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5 < 3.29
