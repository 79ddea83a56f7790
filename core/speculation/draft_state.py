"""What speculation knows of the sequences that decode, and the budget that keeps drafting from becoming a loss."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series
from dataclasses import dataclass, replace
from typing import NamedTuple

from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import CostlyProposer, DraftChain, Proposer, SequenceAcceptance

# A proposer is first tried after so many verified tokens without a draft of its own.
FIRST_PROBE = 8
# Where a proposer has failed, it is asked again after so many tokens, twice as many each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 512
# A draft of n-grams has at most so many tokens, or this many times as many as were right in the text's last one: only
# that tells a text that is copied from one that is copied with changes before many wrong tokens were verified.
_NGRAM_LIMIT, _NGRAM_GROWTH = 8, 2
# A new sequence starts with the speed-up of others, which counts as so many steps; each step fades by this factor.
_FIRST_STEPS, _FADE = 2.0, 0.9
# A proposer may cost at most this share of the time that was spent decoding.
_RISK_SHARE = 0.015
# Beyond that, only what is worth so many times its cost, and so many times more for each further such share.
_CAUTION, _MORE_CAUTION, _MOST_CAUTION = 1.3, 4.0, 100.0
# Old bookings fade whenever this share of the memory has passed: to fade in each step would cost too much.
_FADED_AT_ONCE = 0.01
# A step that took more than this many times the plain one met a suspended machine or a jump of the clock: drafting
# never costs that much, and must not be forbidden for it.
HICCUP = 8.0
# What was won and lost fades within so many seconds of decoding: so old gains do not pay for long losses, nor do old
# losses forbid what pays now.
_MEMORY = 20.0
_START_MEAN = 0.6
# How much the speed-up of one text says about the next.
_MOST_SPEEDUP_WEIGHT = 0.3
# Steps to wait for a kind of proposer that there is none of: more than any text has.
_FOR_EVER = 1 << 40
# What our own code takes is a mean in which the latest time has this weight. Where nothing is drafted none is measured:
# then it fades, so that a busy moment does not forbid drafts for ever.
_OWN_WEIGHT, _OWN_FADE = 0.1, 0.99
# Where paid drafting promises nothing, it is considered anew every so many steps, or later where steps are short.
SHORT_REST = 8


class RiskBudget:
    """Each proposer may only be tried while what it lost, on all texts, stays a small share of the decoding time.

    Booked is what plain decoding takes for the tokens that came beyond plain ones, less what drafts for them took
    (seconds). What one proposer has won is not there for another to lose. Nor does what it has won for texts that each
    draft as they like pay for losses where ``n_even`` texts must draft alike: each such number has its own account.
    """

    def __init__(self, credit: float) -> None:
        """``credit`` seconds may be risked before anything was won."""
        self.credit = credit
        self.n_even = 0
        self._unfaded = 0.0
        self._elapsed: dict[int, float] = {}
        self._balances: dict[tuple[str, int], float] = {}

    def balance(self, proposer: str) -> float:
        """Return the seconds that a proposer has won (positive) or lost lately."""
        return self._balances.get((proposer, self.n_even), 0.0)

    def available(self, proposer: str) -> float:
        """Return the seconds that may be spent on what has no known gain; negative where too much is lost."""
        return self.balance(proposer) + self._allowance

    def required_return(self, proposer: str) -> float:
        """Return how many times its cost a draft must be worth: 1 while no more was lost than may be risked.

        Beyond that the predictions were wrong: steps with drafts take longer here than their rows say, or tokens are
        right less often than expected. However wrong they are, caution grows until the loss stays where it is.
        """
        over = -self.balance(proposer) / max(self._allowance, 1e-9)
        if over <= 1.0:
            return 1.0
        return min(_CAUTION * math.pow(_MORE_CAUTION, min(over, _MOST_CAUTION) - 1.0), _MOST_CAUTION)

    def book(self, proposer: str, seconds: float) -> None:
        """Add what a proposer has won, or lost where it is negative."""
        self._balances[proposer, self.n_even] = self.balance(proposer) + seconds

    def add_elapsed(self, seconds: float) -> None:
        """Add seconds of decoding."""
        self._elapsed[self.n_even] = self._elapsed.get(self.n_even, 0.0) + seconds
        self._unfaded += seconds
        if self._unfaded > _FADED_AT_ONCE * _MEMORY:
            fade = max(0.0, 1.0 - self._unfaded / _MEMORY)
            self._unfaded = 0.0
            for n_even in self._elapsed:
                self._elapsed[n_even] *= fade
            for key in self._balances:
                self._balances[key] *= fade

    @property
    def _allowance(self) -> float:
        return _RISK_SHARE * self._elapsed.get(self.n_even, 0.0) + self.credit


@dataclass(slots=True)
class ProposerRecord:
    """What is known of one proposer on one text: how often it is right, when it was tried, and what it owes.

    ``tried_at`` and ``resumes_at``, where it has failed, count the text's verified tokens; below 0: in a text before.
    ``debt`` are the seconds in which it has read the text that are not booked yet: they pay over the whole reply.
    """

    acceptance: SequenceAcceptance
    tried_at: int = 0
    interval: int = FIRST_PROBE
    resumes_at: int = 0
    debt: float = 0.0
    _pause: int = 0

    def fail(self, n_verified: int) -> None:
        """The proposer failed: leave it alone for a while, longer each time."""
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        # By then it may draft where that promises something. To learn whether it does has time.
        self.resumes_at = self.tried_at = n_verified + self._pause


@dataclass(slots=True)
class Backoff:
    """For how many steps something is not considered: ever more each time that it came to nothing, up to a limit."""

    n_left: int = 0
    length: int = 0

    def back_off(self, longest: int) -> None:
        """It came to nothing: wait about twice as many steps as the last time, at most ``longest``."""
        self.length = min(2 * self.length + 1, longest)
        self.n_left = self.length

    def reset(self) -> None:
        """It came to something: consider it in each step."""
        self.n_left = self.length = 0


@dataclass(slots=True)
class OwnTime:
    """The seconds that our own code takes, beyond what is predicted of it, by the latest times.

    In short steps they decide whether drafts pay: around a round of 0.1 ms our own code takes as long again.
    """

    seconds: float = 0.0

    def learn(self, taken: float, most: float) -> None:
        """It took so many seconds; more than ``most`` was chance."""
        self.seconds += _OWN_WEIGHT * (min(max(taken, 0.0), most) - self.seconds)

    def fade(self) -> None:
        """Nothing was drafted, so nothing was measured."""
        self.seconds *= _OWN_FADE


@dataclass(slots=True)
class DraftState:
    """What speculation knows of one sequence; ``records`` are by proposer.

    ``speedup`` is how many times as fast as plain decoding its text has come lately: where a story comes three times as
    fast, time is worth three times as much as in code of which little can be guessed. Free drafts (n-grams) and paid
    proposers back off on their own; in the last ``n_rested`` steps neither was considered. ``drafted_by`` names who
    drafted last. A draft of n-grams may have ``ngram_limit`` tokens.
    """

    records: dict[str, ProposerRecord]
    paid_backoff: Backoff
    ngram_backoff: Backoff
    speedup: float = 1.0
    n_verified: int = 0
    drafted_by: str = ""
    n_rested: int = 0
    ngram_limit: int = _NGRAM_LIMIT
    _plain: float = 0.0
    _spent: float = 0.0

    def learn_ngram(self, n_accepted: int) -> None:
        """So many tokens of a draft of n-grams were right."""
        self.ngram_limit = max(_NGRAM_LIMIT, _NGRAM_GROWTH * n_accepted)

    @property
    def is_backing_off(self) -> bool:
        """True where nobody is to be asked what to draft in the next step."""
        return self.ngram_backoff.n_left > 0 < self.paid_backoff.n_left

    def learn_speed(self, n_new: int, plain_step: float, spent: float) -> None:
        """A step of ``spent`` seconds brought this text ``n_new`` tokens, each of which is a plain step otherwise."""
        self._add(_FADE, plain_step * n_new, min(spent, HICCUP * plain_step), plain_step)

    def settle_backoff(self, plain_step: float) -> None:
        """Learn from the steps in which nobody was asked: they were plain ones."""
        if self.n_rested:
            kept = _FADE**self.n_rested
            seconds = plain_step * (1.0 - kept) / (1.0 - _FADE)
            self._add(kept, seconds, seconds, plain_step)
            self.n_rested = 0

    def _add(self, kept: float, plain: float, spent: float, plain_step: float) -> None:
        if not self._spent:
            self._plain, self._spent = _FIRST_STEPS * plain_step * self.speedup, _FIRST_STEPS * plain_step
        self._plain = self._plain * kept + plain
        self._spent = self._spent * kept + spent
        self.speedup = max(1.0, self._plain / self._spent)


class DraftingTime(NamedTuple):
    """Seconds that a proposer took for a text, which would not have been spent without drafts."""

    state: DraftState
    proposer: str
    seconds: float


class DraftStates:
    """A state for each sequence, ``by_id`` of its request; it begins with what those before it have shown."""

    def __init__(
        self, proposers: Series[Proposer], paid: Series[CostlyProposer], credit: float, *, has_ngrams: bool
    ) -> None:
        """``paid`` are those of ``proposers`` that take time. Each may lose ``credit`` seconds first."""
        self.by_id: dict[str, DraftState] = {}
        self.budget = RiskBudget(credit)
        self.longest_rest = SHORT_REST
        self._proposers = tuple(proposers)
        self._paid = tuple(paid)
        self._has_ngrams = has_ngrams
        # Of texts before: a mean for each proposer, and when it was tried.
        self._known = {proposer.name: (_START_MEAN, 0, FIRST_PROBE) for proposer in self._proposers}
        self._speedup = 1.0
        self._paid_backoff, self._ngram_backoff_length = Backoff(), 0

    def admit(self, sequence: Sequence) -> None:
        """Begin a state."""
        self.by_id[sequence.id] = DraftState(
            {name: ProposerRecord(SequenceAcceptance(mean), *tried) for name, (mean, *tried) in self._known.items()},
            paid_backoff=replace(self._paid_backoff) if self._paid else Backoff(_FOR_EVER),
            ngram_backoff=Backoff(length=self._ngram_backoff_length) if self._has_ngrams else Backoff(_FOR_EVER),
            speedup=math.sqrt(self._speedup),
        )

    def forget(self, sequence: Sequence) -> None:
        """End a sequence's state; what it taught stays."""
        state = self.by_id.pop(sequence.id)
        weight = min(_MOST_SPEEDUP_WEIGHT, state.n_verified / 100.0)
        self._speedup += weight * (state.speedup - self._speedup)
        self._paid_backoff, self._ngram_backoff_length = state.paid_backoff, state.ngram_backoff.length
        for name, record in state.records.items():
            self.budget.book(name, -record.debt)
            mean, seen = self._known[name][0], record.acceptance
            mean += min(0.5, seen.n_seen / 100.0) * (seen.mean - mean)
            # The wait for the next probe goes on in the next text. A failure concerns this one alone.
            self._known[name] = mean, record.tried_at - state.n_verified, record.interval

    def begin_step(self, sequences: list[Sequence]) -> bool:
        """A step begins: return whether there is a sequence for which to consider paid drafting."""
        is_awake = False
        for sequence in sequences:
            state = self.by_id[sequence.id]
            ngrams, paid = state.ngram_backoff, state.paid_backoff
            if ngrams.n_left:
                ngrams.n_left -= 1
            if paid.n_left:
                paid.n_left -= 1
            is_awake = is_awake or not paid.n_left
        return is_awake

    def skip_steps(self, sequences: list[Sequence]) -> int:
        """Return for how many further steps nobody is to be asked; they are taken off everybody's wait at once."""
        states = [self.by_id[sequence.id] for sequence in sequences]
        waits = [wait for state in states for wait in (state.ngram_backoff, state.paid_backoff)]
        n_steps = max(min([wait.n_left for wait in waits]) - 1, 0)
        for wait in waits:
            wait.n_left -= n_steps
        return n_steps

    def due_for_ngrams(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return those for whom to look for n-grams."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].ngram_backoff.n_left]

    def due_for_paid(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return those for whom to consider paid drafting."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].paid_backoff.n_left]

    def fail(self, sequence: Sequence, proposer: Proposer) -> None:
        """A proposer could not do its work for a sequence."""
        state = self.by_id[sequence.id]
        state.records[proposer.name].fail(state.n_verified)

    def can_ask(self, proposer: Proposer, sequence: Sequence) -> bool:
        """Return whether a proposer is to be asked about a sequence: not soon after it has failed there."""
        state = self.by_id[sequence.id]
        return state.n_verified >= state.records[proposer.name].resumes_at

    def chain(self, sequence: Sequence, proposer: Proposer) -> DraftChain:
        """Return an empty chain; its caution is by what the proposer has lost."""
        acceptance = self.by_id[sequence.id].records[proposer.name].acceptance
        return DraftChain(sequence, proposer, acceptance, caution=self.budget.required_return(proposer.name))

    def collect_samples(self) -> None:
        """Learn what proposers have seen in passing."""
        for proposer in self._proposers:
            for sequence_id, evidence, was_right in proposer.take_samples():
                state = self.by_id.get(sequence_id)
                rate = proposer.table.rate(evidence)
                proposer.table.learn(evidence, was_right)
                if state is not None:
                    state.records[proposer.name].acceptance.learn(evidence, rate, was_right)
