"""The interface of every proposer, and the draft that it extends token by token."""

from __future__ import annotations

from collections.abc import Sequence as Series
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable, SequenceAcceptance


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
    """A proposer could not evaluate its batch for ``sequences`` (empty: all); it can go on with others."""

    def __init__(self, sequences: Series[Sequence] = ()) -> None:
        super().__init__()
        self.sequences = tuple(sequences)


class Evaluated(NamedTuple):
    """The rows of a sequence that the target evaluated in a step: ``n_rows`` from position ``start`` on, and a draft.

    ``choices`` are the target's own tokens after the last of the rows: the first ``n_accepted`` of them were drafted.
    The last one may be an end token. There are no choices while the prompt is not complete.
    """

    sequence: Sequence
    start: int
    n_rows: int
    draft: tuple[int, ...] = ()
    choices: Series[int] = ()
    n_accepted: int = 0


class Proposer(Protocol):
    """Proposes tokens one at a time, for any number of sequences at once."""

    name: str
    table: AcceptanceTable

    def begin(self, sequence: Sequence) -> None:
        """A sequence starts to decode."""

    def end(self, sequence: Sequence) -> None:
        """A sequence has ended."""

    def clear(self) -> None:
        """Drop all that is kept of ended texts."""

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        """Return the next token of each chain, or None for a chain. May raise DraftFailed."""

    def take_samples(self) -> list[AcceptanceSample]:
        """Return the samples since the last call."""


class CostlyProposer(Proposer, Protocol):
    """A proposer whose time is not negligible: a draft must be worth its cost."""

    def n_unread(self, sequence: Sequence) -> int:
        """Return how many tokens of a sequence the proposer has not read."""

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round, in which each chain grows by a token."""

    def first_round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds that the first round of ``n_chains`` takes beyond a later one.

        Proposers of whole blocks do all their work there.
        """

    def catch_up_seconds(self, n_behind: int) -> float:
        """Return the expected seconds of reading ``n_behind`` tokens."""

    def catch_up(self, sequence: Sequence, seconds: float) -> bool:
        """Read unread tokens of a sequence for about ``seconds``; return whether a draft can begin now.

        May raise DraftFailed.
        """

    def read_along(self, sequence: Sequence) -> None:
        """Read the new tokens of a sequence, and note how often the proposer would have been right.

        May raise DraftFailed.
        """

    def take_bytes_read(self) -> int:
        """Return the bytes read since the last call."""

    def close(self) -> None:
        """Free what the proposer holds."""


@runtime_checkable
class TargetObserver(Protocol):
    """A proposer that uses what the target computes."""

    def observe(self, evaluated: Series[Evaluated]) -> None:
        """Take in the rows that the target has just evaluated, in batch order."""


@dataclass(slots=True)
class DraftChain:
    """A chain of tokens drafted for one sequence in one step.

    ``reach`` holds, for each token, the chance that it and all before it are accepted. ``next`` is the first proposed
    token that is not verified; it is compared with the target's token all the same. Tokens must be worth ``caution``
    times their cost. ``rival`` is what a draft is worth that was found already, in tokens.
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
