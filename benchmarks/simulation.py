"""A simulated machine for the decisions of speculation: nothing is computed, and no run differs from another.

The time of a step comes from a recorded curve over its rows. Proposers are right at given positions. So the worth of a
decision shows exactly, while a real machine's noise would hide 5 %.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from core.cost.cost_model import Calibration, CostModel
from core.kv_cache.memory import AttentionMemory
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import StepCapacity
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.proposer import AcceptanceSample, CostlyProposer, DraftChain, Evaluated, ProposedToken
from core.speculation.speculator import Speculator, StepTimes
from core.values.engine_options import MAX_READ_ALONG
from core.values.request import Request

# Seconds of a step by its rows: a graphics card, a processor with a small model, a processor with a large one, and one
# on which a second row costs nearly as much as a step.
CURVES = {
    "gpu": Calibration({1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130}),
    "cpu": Calibration({1: 0.0105, 2: 0.0159, 3: 0.019, 4: 0.022, 8: 0.036, 16: 0.068}),
    "slow": Calibration({1: 0.060, 2: 0.075, 4: 0.105, 16: 0.285}),
    "dear row": Calibration({1: 0.011, 2: 0.020, 3: 0.022, 4: 0.023, 5: 0.028, 9: 0.035, 17: 0.056}),
}
# Seconds of a round of the simulated draft model.
ROUND = 0.001
N_PROMPT, N_CTX = 20, 20_000
_N_VOCAB, _WRONG = 4096, 4095

# Whether a proposer is right about a request's token at a position.
IsRight = Callable[[str, int], bool]
# What was drafted in a step, by request.
Drafted = dict[str, tuple[int, ...]]


def unique_token(position: int) -> int:
    """Return what a text without repetitions says at a position."""
    return position % 4000


def repeated_token(position: int) -> int:
    """Return what a text says at a position that repeats itself every ten tokens."""
    return position % 10


class SimulatedClock:
    """A clock, in seconds, that advances only by the time that proposers take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SimulatedDraftModel(CostlyProposer):
    """A draft model that knows a text without repetitions where ``is_right`` says so.

    With ``knows_itself`` it is sure of exactly the tokens that are right. ``n_asked`` counts the tokens that it was
    asked for, ``n_probes`` how often it read along.
    """

    def __init__(self, name: str, is_right: IsRight, *, knows_itself: bool = False) -> None:
        super().__init__((0.7, 0.7))
        self.name = name
        self.is_right = is_right
        self._knows_itself = knows_itself
        self.clock = SimulatedClock()
        self.n_probes = self.n_asked = 0

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain, right or wrong."""
        self.clock.now += ROUND
        self.n_asked += len(chains)
        found: list[ProposedToken | None] = []
        for chain in chains:
            is_right = self.is_right(chain.sequence.id, chain.position)
            token = self.says(chain.position) if is_right else _WRONG
            found.append(ProposedToken(token, self._evidence(is_right)))
        return found

    def _evidence(self, is_right: bool) -> int:
        return int(self._knows_itself and is_right)

    def says(self, position: int) -> int:
        """Return what it says at a position where it is right."""
        return unique_token(position)

    def n_unread(self, sequence: Sequence) -> int:
        """Return how much is to be read: the last token."""
        return 1

    def round_seconds(self, n_chains: int) -> float:
        """Return the seconds of a round."""
        return ROUND

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the seconds of reading on."""
        return ROUND

    def read_along(self, sequence: Sequence) -> None:
        """Note how often it would have been right lately."""
        self.clock.now += ROUND
        self.n_probes += 1
        end = len(sequence.tokens)
        latest = range(max(end - MAX_READ_ALONG, N_PROMPT), end)
        for place in latest:
            is_right = self.is_right(sequence.id, place)
            self._samples.append(AcceptanceSample(sequence.id, self._evidence(is_right), is_right))


class SimulatedEngine:
    """Requests that decode in steps of simulated length, with the real speculator."""

    def __init__(
        self,
        curve: Calibration,
        *paid: SimulatedDraftModel,
        n_requests: int = 1,
        ngram: NgramProposer | None = None,
        says: Callable[[int], int] = unique_token,
        surcharge: float = 1.0,
        commit_seconds: float = 0.0,
        fixed_depth: int | None = None,
    ) -> None:
        """``says`` is the target's text. Steps with drafts take ``surcharge`` times what the curve says.

        Committing a step with drafts takes ``commit_seconds`` longer than committing a plain step. With
        ``fixed_depth``, that many tokens are drafted in each step.
        """
        self.clock = SimulatedClock()
        for proposer in paid:
            proposer.clock = self.clock
        self.seconds = 0.0
        self.n_sampled = 0
        self.cost = CostModel(curve)
        self.speculator = Speculator(
            self.cost,
            n_ctx=N_CTX,
            memory=AttentionMemory(cast("Any", None)),
            ngram=ngram,
            paid=paid,
            fixed_depth=fixed_depth,
            clock=self.clock,
        )
        self.sequences: list[Sequence] = []
        self._says = says
        self.surcharge = surcharge
        self.commit_seconds = commit_seconds
        self.begin(n_requests)

    def begin(self, n_requests: int = 1) -> None:
        """End the present texts, and begin ``n_requests`` new ones."""
        for sequence in self.sequences:
            self.speculator.forget(sequence)
        self.sequences = [self._new_sequence(index) for index in range(n_requests)]

    def _new_sequence(self, index: int) -> Sequence:
        sampler = cast("Any", SimpleNamespace(seed=1, grammar=None))
        prompt = np.array([self._says(place) for place in range(N_PROMPT)], np.int32)
        prepared = PreparedRequest(Request(str(index), "x"), prompt, sampler)
        return Sequence(prepared, order=index, submitted_at=0.0)

    def run(self, n_steps: int, room: int = 24, *, is_even: bool = False, n_reading: int = 0) -> list[Drafted]:
        """Make ``n_steps`` steps. If ``is_even``, all requests have equally many rows in a step.

        The prompts of ``n_reading`` further requests are said to be read. Return what was drafted in each step.
        """
        return [self._step(room, is_even, n_reading) for _ in range(n_steps)]

    @property
    def speedup(self) -> float:
        """The speed of all steps so far over that of plain decoding."""
        n_texts = len(self.sequences)
        return self.cost.time(n_texts) * self.n_sampled / n_texts / self.seconds

    def _step(self, room: int, is_even: bool, n_reading: int) -> Drafted:
        n, kv = len(self.sequences), sum(len(sequence.tokens) for sequence in self.sequences)
        before = self.clock.now
        drafted: Drafted = {}
        if not self.speculator.rest(self.sequences):
            step = StepCapacity(n, kv, room, n if is_even else 0, n_reading=n_reading)
            drafted = self.speculator.propose(list(self.sequences), step)
        n_drafted = sum(len(tokens) for tokens in drafted.values())
        assert n_drafted <= room
        seconds = self.cost.time(n + n_drafted, kv) * (self.surcharge if drafted else 1.0)
        evaluated = [self._verify(sequence, drafted.get(sequence.id, ())) for sequence in self.sequences]
        if not self.speculator.learn_rest(seconds):
            self.speculator.learn(evaluated, StepTimes(n, self.cost.time(n, kv), seconds))
        if drafted:
            self.speculator.learn_commit(self.commit_seconds, sum([len(one.choices) for one in evaluated]), n)
            self.clock.now += self.commit_seconds
        self.seconds += seconds + self.clock.now - before
        return drafted

    def _verify(self, sequence: Sequence, draft: tuple[int, ...]) -> Evaluated:
        start = len(sequence.tokens)
        choices = self._choices(start, draft)
        for token in choices:
            sequence.tokens.append(token)
        sequence.n_generated += len(choices)
        self.n_sampled += len(choices)
        return Evaluated(sequence, start - 1, 1, draft, choices, len(choices) - 1)

    def _choices(self, start: int, draft: tuple[int, ...]) -> list[int]:
        """Return what the target says from position ``start`` on: as much of a draft as is right, and a token more."""
        choices = [self._says(start)]
        for token in draft:
            if token != choices[-1]:
                break
            choices.append(self._says(start + len(choices)))
        return choices
