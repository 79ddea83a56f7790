"""Proposers that do not care what is right."""

from __future__ import annotations

import math
import random
from typing import Any

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import CostlyProposer, DraftChain, ProposedToken
from core.speculation.speculator import Speculator


class RandomProposer(CostlyProposer):
    """Proposes any tokens at all: stands in for the draft model, to which every law must hold too."""

    name = "draft"

    def __init__(self, n_vocab: int, seed: int = 1) -> None:
        super().__init__((0.9,))
        self.cost = CostModel(Calibration({1: 1e-6}))
        self._random = random.Random(seed)
        self._n_vocab = n_vocab

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        return [ProposedToken(self._random.randrange(self._n_vocab), 0) for _ in chains]

    def n_unread(self, sequence: Sequence) -> int:
        return 1

    def round_seconds(self, n_chains: int) -> float:
        return 0.0

    def catch_up_seconds(self, n_behind: int) -> float:
        return 0.0

    def read_along(self, sequence: Sequence) -> None:
        pass


class OracleProposer(RandomProposer):
    """Proposes the tokens of a text it was told, and now and then a wrong one."""

    def __init__(self, n_vocab: int, text: list[int], wrong_every: int = 5) -> None:
        super().__init__(n_vocab)
        self._text = text
        self._wrong_every = wrong_every

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        return [self._next(chain) for chain in chains]

    def _next(self, chain: DraftChain) -> ProposedToken | None:
        place = chain.position
        if place >= len(self._text):
            return None
        token = self._text[place]
        return ProposedToken((token + 1) % self._n_vocab if place % self._wrong_every == 0 else token, 0)


def replace_speculator(engine: Engine, speculator: Speculator) -> None:
    """Let ``speculator`` draft for an engine from now on."""
    if engine.speculator is not None:
        engine.speculator.close()
    engine.speculator = engine.finisher.speculator = speculator


def use_proposer(engine: Engine, proposer: Any, depth: int | None = None) -> Speculator:
    """Let ``proposer`` draft for an engine: always ``depth`` tokens, or as many as pay."""
    speculator = Speculator(
        engine.cost,
        n_ctx=engine.n_ctx,
        paid=(proposer,),
        fixed_depth=depth,
        memory=engine.slots.memory,
        end_tokens=engine.vocab.end_tokens,
    )
    replace_speculator(engine, speculator)
    return speculator


def price(
    engine: Engine, rows: dict[int, float], draft: float | None = None, *, credit: float = math.inf
) -> Speculator:
    """Let the engine's own choice of drafts go by these seconds for so many rows, and for a step of what drafts.

    What steps take beside other programs then teaches nothing, and forbids nothing as long as there is ``credit``.
    """
    speculator = engine.speculator
    assert speculator is not None
    speculator.cost = CostModel(Calibration(rows))
    speculator.budget.credit = credit
    for proposer in speculator.paid if draft is not None else ():
        proposer.cost = CostModel(Calibration({1: draft}))
    return speculator
