"""The interface of every proposer, the draft that it extends token by token, and how likely its tokens are accepted.

The chances are learnt from what was accepted before.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence as Series
from dataclasses import dataclass, field
from typing import NamedTuple

from core.scheduler.sequence import Sequence
from core.values.engine_options import MAX_DRAFT_DEPTH

# Old observations count less: a bin remembers about this many.
_MEMORY = 400.0
# A prior is worth this many observations.
_PRIOR_WEIGHT = 2.0
# The resolution is a mean over about _RESOLUTION_MEMORY tokens; the prior counts like _RESOLUTION_PRIOR of them.
_RESOLUTION_MEMORY, _RESOLUTION_PRIOR = 200.0, 16.0
# Least weight of the latest token in a sequence's mean, which so follows about the last eight.
_MEAN_WEIGHT = 0.12
# Step size of the gradient descent, in log odds: for the first token of a sequence, and at least.
_FIRST_STEP, _SLOWEST_STEP = 1.0, 0.15
# Bound of a sequence's offset, in log odds: four make 0.98 of 0.5, from which there is a way back.
_MOST_OFFSET = 4.0
# The corrected table counts like _TRUST_IN_TABLE tokens of the sequence itself, which remembers about _OWN_MEMORY.
_TRUST_IN_TABLE = 10.0
_OWN_MEMORY = 30.0
# Bounds of every rate: nothing is certain, and log odds stay finite.
_LOWEST, _HIGHEST = 0.005, 0.995


class AcceptanceTable:
    """Measured acceptance rates of a proposer's tokens by evidence bin, over all requests.

    A proposer sorts each token that it proposes into a bin by what it knows of it: a draft model by the token's
    probability, an n-gram proposer by the length of the match. The table says how often such tokens were accepted.
    """

    def __init__(self, priors: tuple[float, ...]) -> None:
        """``priors`` are the expected acceptance rates of the bins before anything was seen."""
        self._accepted = [prior * _PRIOR_WEIGHT for prior in priors]
        self._total = [_PRIOR_WEIGHT] * len(priors)
        self._mean_rate = sum(priors) / len(priors)
        self._mean_square = sum([prior * prior for prior in priors]) / len(priors)
        self._n_resolved = _RESOLUTION_PRIOR

    @property
    def resolution(self) -> float:
        """How much the evidence tells on average: with 0 nothing, with 1 whether a token is right.

        It is the variance of the bins' rates over that of being right (Murphy 1973, A new vector partition of the
        probability score).
        """
        mean = min(max(self._mean_rate, _LOWEST), _HIGHEST)
        return min(max(self._mean_square - self._mean_rate**2, 0.0) / (mean * (1.0 - mean)), 1.0)

    def rate(self, evidence: int) -> float:
        """Return the acceptance rate of a bin."""
        return min(max(self._accepted[evidence] / self._total[evidence], _LOWEST), _HIGHEST)

    def learn(self, evidence: int, was_accepted: bool) -> None:
        """Count one token of a bin."""
        rate = self.rate(evidence)
        self._n_resolved = min(self._n_resolved + 1.0, _RESOLUTION_MEMORY)
        self._mean_rate += (rate - self._mean_rate) / self._n_resolved
        self._mean_square += (rate * rate - self._mean_square) / self._n_resolved
        if self._total[evidence] > _MEMORY:
            self._total[evidence] *= 0.5
            self._accepted[evidence] *= 0.5
        self._total[evidence] += 1.0
        self._accepted[evidence] += was_accepted


class SequenceAcceptance:
    """The acceptance rate of one proposer on one sequence.

    ``mean`` is the expected acceptance of its next token before the token and its evidence are known. ``offset``
    corrects the table for this sequence, in log odds: logistic regression with the table's rate as its only input,
    learnt by stochastic gradient descent. The rate of a bin in this sequence itself gains weight only slowly: on
    recorded drafts of a draft model and of n-grams, more trust in few tokens made the log loss 3 to 4 % worse.
    """

    def __init__(self, mean: float) -> None:
        """Start with the mean of other sequences."""
        self.mean = mean
        self.offset = 0.0
        self.n_seen = 0
        self._own: dict[int, tuple[float, float]] = {}

    def expect(self, evidence: int, rate: float) -> float:
        """Return the expected acceptance of a token in bin ``evidence``, whose rate in the table is ``rate``."""
        accepted, total = self._own.get(evidence, (0.0, 0.0))
        expected = (accepted + _TRUST_IN_TABLE * self._corrected(rate)) / (total + _TRUST_IN_TABLE)
        return min(max(expected, _LOWEST), _HIGHEST)

    def _corrected(self, rate: float) -> float:
        odds = math.log(rate / (1.0 - rate)) + self.offset
        return 1.0 / (1.0 + math.exp(-odds))

    def learn(self, evidence: int, rate: float, was_accepted: bool) -> None:
        """Learn from one token in bin ``evidence``, whose rate in the table was ``rate``."""
        accepted, total = self._own.get(evidence, (0.0, 0.0))
        fade = 1.0 if total < _OWN_MEMORY else 1.0 - 1.0 / _OWN_MEMORY
        self._own[evidence] = (accepted * fade + float(was_accepted), total * fade + 1.0)
        self.n_seen += 1
        # The first tokens of a sequence say more about it than anything seen elsewhere.
        weight = max(_MEAN_WEIGHT, 1.0 / (self.n_seen + 3.0))
        self.mean += weight * (float(was_accepted) - self.mean)
        step = max(_SLOWEST_STEP, _FIRST_STEP / (1.0 + 0.1 * self.n_seen))
        self.offset += step * (float(was_accepted) - self._corrected(rate))
        self.offset = min(max(self.offset, -_MOST_OFFSET), _MOST_OFFSET)


@dataclass(slots=True)
class DraftStats:
    """Totals of tokens drafted and accepted, by depth."""

    drafted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)
    accepted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT_DEPTH)

    def count(self, n_drafted: int, n_accepted: int) -> None:
        """Count a verified draft of ``n_drafted`` tokens."""
        for depth in range(n_drafted):
            self.drafted_at[depth] += 1
        for depth in range(n_accepted):
            self.accepted_at[depth] += 1


class ProposedToken(NamedTuple):
    """A proposed next token and the bin of evidence it falls into (see ``AcceptanceTable``)."""

    token: int
    evidence: int


class AcceptanceSample(NamedTuple):
    """Whether a proposer's token for an earlier position equals the target's."""

    sequence_id: str
    evidence: int
    was_right: bool


class DraftFailed(Exception):
    """A proposer could not evaluate its batch for ``sequences`` (empty: all); it still works for others."""

    def __init__(self, sequences: Series[Sequence] = ()) -> None:
        super().__init__()
        self.sequences = tuple(sequences)


@dataclass(slots=True)
class Evaluated:
    """The rows of a sequence that the target evaluated in a step: ``n_rows`` from position ``start`` on, and a draft.

    ``choices`` are the target's own tokens after the last of the rows: the first ``n_accepted`` of them were drafted.
    The last one may be an end token. There are no choices while the prompt is not complete.
    """

    sequence: Sequence
    start: int
    n_rows: int
    draft: tuple[int, ...] = ()
    choices: list[int] = field(default_factory=list)
    n_accepted: int = 0


class Proposer(ABC):
    """Proposes tokens one at a time, for any number of sequences at once."""

    name: str

    def __init__(self, priors: tuple[float, ...]) -> None:
        """``priors`` are those of the bins of evidence."""
        self.table = AcceptanceTable(priors)
        self._samples: list[AcceptanceSample] = []

    def begin(self, sequence: Sequence) -> None:  # noqa: B027 - by default nothing is kept of texts
        """A sequence starts to decode."""

    def end(self, sequence: Sequence) -> None:  # noqa: B027 - as above
        """A sequence has ended."""

    def clear(self) -> None:  # noqa: B027 - as above
        """Drop all that is kept of ended texts."""

    @abstractmethod
    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain, or None for a chain. May raise DraftFailed."""

    def take_samples(self) -> list[AcceptanceSample]:
        """Return the samples since the last call."""
        taken, self._samples = self._samples, []
        return taken


class CostlyProposer(Proposer):
    """A proposer whose time is not negligible: a draft must be worth its cost."""

    @abstractmethod
    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens are to be read before the next one of a sequence can be drafted."""

    @abstractmethod
    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round, in which each chain grows by a token."""

    def first_round_seconds(self, n_chains: int) -> float:
        """Return the additional seconds of a first round: proposers that draft whole blocks do all their work there."""
        return 0.0

    @abstractmethod
    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""

    def catch_up(self, sequence: Sequence, seconds: float) -> bool:
        """Read for ``seconds``; return whether a draft can begin, which by default reads all. May raise DraftFailed."""
        return True

    @abstractmethod
    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens, and note how often it would have been right. May raise DraftFailed."""

    def take_bytes_read(self) -> int:
        """Return the bytes read since the last call."""
        return 0

    def share_cores(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute."""

    def close(self) -> None:
        """Free what the proposer holds."""


@dataclass(slots=True)
class DraftChain:
    """A chain of tokens drafted for one sequence in one step.

    ``reach`` holds, for each token, the chance that it and all before it are accepted. ``next`` is the first proposed
    token that is not verified; it is compared with the target's token all the same. Tokens must be worth ``caution``
    times their cost. ``rival`` is the worth of the free draft that it would replace, in tokens.
    """

    sequence: Sequence
    proposer: Proposer
    acceptance: SequenceAcceptance
    tokens: list[int] = field(default_factory=list)
    evidence: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    reach: list[float] = field(default_factory=list)
    is_done: bool = False
    next: ProposedToken | None = None
    caution: float = 1.0
    rival: float = 0.0

    @property
    def probability(self) -> float:
        """Chance that every token so far is accepted."""
        return self.reach[-1] if self.reach else 1.0

    @property
    def position(self) -> int:
        """Position of the next token to draft."""
        return len(self.sequence.tokens) + len(self.tokens)

    def learn(self, choices: Series[int], n_accepted: int) -> None:
        """Learn from a step in which the target chose ``choices``, of which the first ``n_accepted`` were drafted."""
        for depth in range(min(len(choices), len(self.tokens))):
            was_accepted = depth < n_accepted
            self.proposer.table.learn(self.evidence[depth], was_accepted)
            self.acceptance.learn(self.evidence[depth], self.rates[depth], was_accepted)

    def add(self, guess: ProposedToken) -> None:
        """Append a token."""
        rate = self.proposer.table.rate(guess.evidence)
        self.tokens.append(guess.token)
        self.evidence.append(guess.evidence)
        self.rates.append(rate)
        self.reach.append(self.probability * self.acceptance.expect(guess.evidence, rate))

    def close(self, guess: ProposedToken | None) -> None:
        """End the chain; ``guess`` is a proposed token that is not verified, if any."""
        self.next = guess
        self.is_done = True

    def truncate(self, size: int) -> None:
        """Keep the first ``size`` tokens."""
        if size >= len(self.tokens):
            return
        self.next = ProposedToken(self.tokens[size], self.evidence[size])
        del self.tokens[size:], self.evidence[size:], self.rates[size:], self.reach[size:]
