"""What speculation knows of the sequences that decode, and the budget that keeps drafting from becoming a loss."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series
from dataclasses import dataclass, replace

from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import CostlyProposer, DraftChain, Proposer, SequenceAcceptance

# A proposer is first probed after this many steps without a draft of its own. Not tokens: a lookup brings up to 32 in a
# step, and there would be a probe in nearly every step.
FIRST_PROBE = 8
# After a failure a proposer is left alone for this many steps, each time for twice as many.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 512
# A draft of n-grams has at most _NGRAM_LIMIT tokens, or _NGRAM_GROWTH times as many as were right in the text's last
# one. So a text that is copied with changes does not cost many wrong tokens before the changes show.
_NGRAM_LIMIT, _NGRAM_GROWTH = 8, 2
# A new sequence starts with the speed-up of others, which counts as _FIRST_STEPS steps; each step fades by _FADE.
_FIRST_STEPS, _FADE = 2.0, 0.9
# A proposer may cost at most this share of the time that was spent decoding.
_RISK_SHARE = 0.01
# Beyond that, a draft must be worth _CAUTION times its cost, and _MORE_CAUTION times more for each further such share,
# up to _MOST_CAUTION times.
_CAUTION, _MORE_CAUTION, _MOST_CAUTION = 1.3, 4.0, 100.0
# Each proposer may lose the time of this many plain steps before it has won any.
_CREDIT_STEPS = 2.0
# Old bookings fade each time this share of the memory has passed: fading in each step would take too long.
_FADED_AT_ONCE = 0.01
# A step is charged at most this many times a plain one. Drafting never costs more: the machine was suspended, or the
# clock has jumped.
HICCUP = 8.0
# Gains and losses fade within this many seconds of decoding, or this many plain steps if they are short. So old gains
# do not pay for long losses, and old losses do not forbid drafts that pay now. What may be risked in many short steps
# is not lost in one reply.
_MEMORY, _MEMORY_STEPS = 20.0, 1000
# Gains of more than this many plain steps are not kept for later losses.
_MOST_KEPT_STEPS = 20
_START_MEAN = 0.6  # expected acceptance of a proposer that was never used
# The most weight of one text in the speed-up that the next one starts with.
_MOST_SPEEDUP_WEIGHT = 0.3
# Steps to wait for a kind of proposer that this engine lacks: more than any text has.
_FOR_EVER = 1 << 40
# Weight of the latest measurement in the mean time of our own code. While nothing is drafted, nothing is measured:
# then the mean fades by _OWN_FADE, so that one busy moment does not forbid drafts for ever.
_OWN_WEIGHT, _OWN_FADE = 0.1, 0.99
# While paid drafting promises nothing, it is considered every SHORT_REST steps, or more rarely if steps are short.
SHORT_REST = 8


class RiskBudget:
    """Bounds what each proposer may lose, on all texts, to a small share of the decoding time.

    A gain is the seconds that plain decoding takes for the additional tokens, minus the seconds that drafting them
    took. Each proposer has a balance of its own. It also has one for each number ``n_even`` of texts that must draft
    equally many tokens, so that gains of free texts do not pay for losses of those.
    """

    def __init__(self, plain_step: float) -> None:
        """A plain step of one text takes about ``plain_step`` seconds."""
        self.credit = _CREDIT_STEPS * plain_step
        self.n_even = 0
        self._memory = min(_MEMORY, _MEMORY_STEPS * plain_step)
        self._most_kept = _MOST_KEPT_STEPS * plain_step
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

        Beyond that the predictions were wrong: steps with drafts take longer than predicted, or tokens are right less
        often. The return grows with the loss until the loss grows no more.
        """
        over = -self.balance(proposer) / max(self._allowance, 1e-9)
        if over <= 1.0:
            return 1.0
        return min(_CAUTION * math.pow(_MORE_CAUTION, min(over, _MOST_CAUTION) - 1.0), _MOST_CAUTION)

    def book(self, proposer: str, seconds: float) -> None:
        """Add the seconds that a proposer has won; negative ones are lost."""
        self._balances[proposer, self.n_even] = min(self.balance(proposer) + seconds, self._most_kept)

    def add_elapsed(self, seconds: float) -> None:
        """Add seconds of decoding."""
        self._elapsed[self.n_even] = self._elapsed.get(self.n_even, 0.0) + seconds
        self._unfaded += seconds
        if self._unfaded > _FADED_AT_ONCE * self._memory:
            fade = max(0.0, 1.0 - self._unfaded / self._memory)
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
    """One proposer on one text: how often it is right, when it was tried, and the seconds that it owes.

    ``tried_at`` and, after a failure, ``resumes_at`` count the text's steps; below 0 it was in an earlier text.
    ``debt`` are seconds of reading the text that are not booked yet: they are spread over the whole reply.
    """

    acceptance: SequenceAcceptance
    tried_at: int = 0
    interval: int = FIRST_PROBE
    resumes_at: int = 0
    debt: float = 0.0
    _pause: int = 0

    def fail(self, n_steps: int) -> None:
        """The proposer failed: leave it alone for a while, longer each time."""
        self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
        # From then on it may draft; the next probe is an interval later.
        self.resumes_at = self.tried_at = n_steps + self._pause


@dataclass(slots=True)
class Backoff:
    """For how many steps something is not considered: about twice as many each time it was useless."""

    n_left: int = 0
    length: int = 0

    def back_off(self, longest: int) -> None:
        """It was useless: wait about twice as many steps as the last time, at most ``longest``."""
        self.length = min(2 * self.length + 1, longest)
        self.n_left = self.length

    def reset(self) -> None:
        """It was of use: consider it in each step."""
        self.n_left = self.length = 0


@dataclass(slots=True)
class Rest:
    """Steps in which no proposer is asked. They are learnt from together when it is over.

    ``n_left`` are still to come, for the ``n_texts`` texts that decode. ``is_now``: the present step is one of them.
    ``n_steps`` have been, and took ``seconds``.
    """

    n_left: int = 0
    n_texts: int = 0
    is_now: bool = False
    n_steps: int = 0
    seconds: float = 0.0

    def count(self, seconds: float) -> None:
        """Count the present step as one of the rest."""
        self.is_now = False
        self.n_steps += 1
        self.seconds += seconds


@dataclass(slots=True)
class OwnTime:
    """The mean seconds of our own code beyond its prediction.

    In short steps they decide whether drafts pay: for a round of 0.1 ms our own code takes as long again.
    """

    seconds: float = 0.0

    def learn(self, taken: float, most: float) -> None:
        """Learn from ``taken`` seconds, capped at ``most``: what is beyond that was chance."""
        self.seconds += _OWN_WEIGHT * (min(max(taken, 0.0), most) - self.seconds)

    def fade(self) -> None:
        """Nothing was drafted, so nothing was measured."""
        self.seconds *= _OWN_FADE


@dataclass(slots=True)
class DraftState:
    """What speculation knows of one sequence; ``records`` are by proposer.

    ``speedup`` is the latest speed of its text relative to plain decoding. Free drafts (n-grams) and paid proposers
    back off separately; in the last ``n_rested`` steps neither was considered. ``drafted_by`` names the last proposer.
    A draft of n-grams may have ``ngram_limit`` tokens.
    """

    records: dict[str, ProposerRecord]
    paid_backoff: Backoff
    ngram_backoff: Backoff
    speedup: float = 1.0
    n_steps: int = 0
    drafted_by: str = ""
    n_rested: int = 0
    ngram_limit: int = _NGRAM_LIMIT
    _plain: float = 0.0
    _spent: float = 0.0

    def learn_ngram(self, n_accepted: int) -> None:
        """Learn from a draft of n-grams with ``n_accepted`` right tokens."""
        self.ngram_limit = max(_NGRAM_LIMIT, _NGRAM_GROWTH * n_accepted)

    @property
    def is_backing_off(self) -> bool:
        """True if no proposer is asked in the next step."""
        return self.ngram_backoff.n_left > 0 and self.paid_backoff.n_left > 0

    def learn_speed(self, n_new: int, plain_step: float, spent: float) -> None:
        """Learn from a step of ``spent`` seconds that gave this text ``n_new`` tokens, ``plain_step`` seconds each."""
        self._add(_FADE, plain_step * n_new, min(spent, HICCUP * plain_step), plain_step)

    def settle_backoff(self, plain_step: float) -> None:
        """Learn from the steps in which no proposer was asked, all of them plain ones."""
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


class DraftStates:
    """A state for each sequence, ``by_id`` of its request; it begins with what was learnt from earlier ones."""

    def __init__(
        self, proposers: Series[Proposer], paid: Series[CostlyProposer], plain_step: float, *, has_ngrams: bool
    ) -> None:
        """``paid`` are those of ``proposers`` that take time. A plain step takes about ``plain_step`` seconds."""
        self.by_id: dict[str, DraftState] = {}
        self.budget = RiskBudget(plain_step)
        self.longest_rest = SHORT_REST
        self._proposers = tuple(proposers)
        self._paid = tuple(paid)
        self._has_ngrams = has_ngrams
        # From earlier texts, by proposer: its mean acceptance, and ``tried_at`` and ``interval`` of its record.
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
        """Drop a sequence's state. What was learnt from it stays."""
        state = self.by_id.pop(sequence.id)
        weight = min(_MOST_SPEEDUP_WEIGHT, sequence.n_generated / 100.0)
        self._speedup += weight * (state.speedup - self._speedup)
        self._paid_backoff, self._ngram_backoff_length = state.paid_backoff, state.ngram_backoff.length
        for name, record in state.records.items():
            self.budget.book(name, -record.debt)
            mean, seen = self._known[name][0], record.acceptance
            mean += min(0.5, seen.n_seen / 100.0) * (seen.mean - mean)
            # The wait for the next probe goes on in the next text. A failure counts for this text only.
            self._known[name] = mean, record.tried_at - state.n_steps, record.interval

    def begin_step(self, sequences: list[Sequence]) -> bool:
        """Count a step; return whether paid drafting is to be considered for any of the sequences."""
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
        """Return for how many further steps no proposer is asked; subtract them from all waits at once.

        The one that is due first waits for others that are soon due too: to wake up once costs less than twice.
        """
        states = [self.by_id[sequence.id] for sequence in sequences]
        waits = [wait for state in states for wait in (state.ngram_backoff, state.paid_backoff)]
        first = min(waits, key=lambda wait: wait.n_left)
        if not first.n_left:
            return 0
        latest = first.n_left + first.length // 2
        n_steps = max([wait.n_left for wait in waits if wait.n_left <= latest]) - 1
        for wait in waits:
            wait.n_left = max(wait.n_left - n_steps, 1)
        return n_steps

    def due_for_ngrams(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return the sequences for which to look for n-grams."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].ngram_backoff.n_left]

    def due_for_paid(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return the sequences for which to consider paid drafting."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].paid_backoff.n_left]

    def fail(self, sequence: Sequence, proposer: Proposer) -> None:
        """A proposer has failed for a sequence."""
        state = self.by_id[sequence.id]
        state.records[proposer.name].fail(state.n_steps)

    def can_ask(self, proposer: Proposer, sequence: Sequence) -> bool:
        """Return whether a proposer may be asked about a sequence: not soon after it has failed there."""
        state = self.by_id[sequence.id]
        return state.n_steps >= state.records[proposer.name].resumes_at

    def chain(self, sequence: Sequence, proposer: Proposer) -> DraftChain:
        """Return an empty chain, with the caution that the proposer's losses demand."""
        acceptance = self.by_id[sequence.id].records[proposer.name].acceptance
        return DraftChain(sequence, proposer, acceptance, caution=self.budget.required_return(proposer.name))

    def collect_samples(self) -> None:
        """Learn from what proposers have seen while they read along."""
        for proposer in self._proposers:
            for sequence_id, evidence, was_right in proposer.take_samples():
                state = self.by_id.get(sequence_id)
                rate = proposer.table.rate(evidence)
                proposer.table.learn(evidence, was_right)
                if state is not None:
                    state.records[proposer.name].acceptance.learn(evidence, rate, was_right)
