"""What speculation knows of the sequences that decode."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series
from dataclasses import replace

from core.scheduler.sequence import Sequence
from core.speculation.acceptance import SequenceAcceptance
from core.speculation.policy.draft_state import Backoff, DraftState, RiskBudget, TrialSchedule
from core.speculation.proposer import CostlyProposer, DraftChain, Proposer

_START_MEAN = 0.6
# How much the speed-up of one text says about the next.
_MOST_SPEEDUP_WEIGHT = 0.3
# So many seconds of decoding the budget of all texts remembers.
_MEMORY = 20.0
# Of what a proposer may lose on all texts before it has won anything, it may lose such a part on one.
_OF_ONE_TEXT = 0.5
# Steps to wait for a kind of proposer that there is none of: more than any text has.
_FOR_EVER = 1 << 40
# Where paid drafting promises nothing, it is considered anew every so many steps, or later where steps are short.
SHORT_REST = 8


class DraftStates:
    """A state for each sequence, ``by_id`` of its request; it begins with what those before it have shown."""

    def __init__(
        self, proposers: Series[Proposer], paid: Series[CostlyProposer], credit: float, *, has_ngrams: bool
    ) -> None:
        """``paid`` are those of ``proposers`` that take time. Each may lose ``credit`` seconds first."""
        self.by_id: dict[str, DraftState] = {}
        self.budget = RiskBudget(credit, _MEMORY)
        self.longest_rest = SHORT_REST
        self._proposers = tuple(proposers)
        self._paid = tuple(paid)
        self._has_ngrams = has_ngrams
        self._means = {proposer.name: _START_MEAN for proposer in self._proposers}
        # Of texts before.
        self._speedup = 1.0
        self._paid_backoff, self._ngram_backoff_length = Backoff(), 0

    def admit(self, sequence: Sequence) -> None:
        """Begin a state."""
        self.by_id[sequence.id] = DraftState(
            {name: SequenceAcceptance(mean) for name, mean in self._means.items()},
            {proposer.name: TrialSchedule() for proposer in self._paid},
            RiskBudget(_OF_ONE_TEXT * self.budget.credit),
            paid_backoff=replace(self._paid_backoff) if self._paid else Backoff(_FOR_EVER),
            ngram_backoff=Backoff(length=self._ngram_backoff_length) if self._has_ngrams else Backoff(_FOR_EVER),
            speedup=math.sqrt(self._speedup),
        )

    def forget(self, sequence: Sequence) -> None:
        """End a sequence's state; what it taught stays."""
        state = self.by_id.pop(sequence.id)
        for name, debt in state.debts.items():
            self.budget.book(name, -debt)
        weight = min(_MOST_SPEEDUP_WEIGHT, state.n_verified / 100.0)
        self._speedup += weight * (state.speedup - self._speedup)
        self._paid_backoff, self._ngram_backoff_length = state.paid_backoff, state.ngram_backoff.length
        for name, seen in state.acceptance.items():
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[name] += weight * (seen.mean - self._means[name])

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
        if is_awake and len(sequences) > 1:
            # A round is shared: those whose turn would come soon are considered with the others.
            for sequence in sequences:
                paid = self.by_id[sequence.id].paid_backoff
                if paid.n_left <= paid.length // 2:
                    paid.n_left = 0
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
        state.trials[proposer.name].fail(state.n_verified)

    def can_ask(self, proposer: Proposer, sequence: Sequence) -> bool:
        """Return whether a proposer is to be asked about a sequence: not soon after it has failed there."""
        state = self.by_id[sequence.id]
        trial = state.trials.get(proposer.name)
        return trial is None or state.n_verified >= trial.resumes_at

    def chain(self, sequence: Sequence, proposer: Proposer) -> DraftChain:
        """Return an empty chain; its caution is by what was lost on this text, and on all."""
        state, name = self.by_id[sequence.id], proposer.name
        caution = max(self.budget.required_return(name), state.budget.required_return(name))
        return DraftChain(sequence, proposer, state.acceptance[name], caution=caution)

    def can_spend(self, proposer: Proposer, sequence: Sequence, seconds: float) -> bool:
        """Return whether a proposer may spend ``seconds`` on a text without knowing what comes of it."""
        of_text = self.by_id[sequence.id].budget
        return seconds <= min(of_text.available(proposer.name), self.budget.available(proposer.name))

    def book(self, state: DraftState, proposer: str, seconds: float) -> None:
        """Book what a proposer has won on a text, or lost."""
        state.budget.book(proposer, seconds)
        self.budget.book(proposer, seconds)

    def collect_samples(self) -> None:
        """Learn what proposers have seen in passing."""
        for proposer in self._proposers:
            for sequence_id, evidence, was_right in proposer.take_samples():
                state = self.by_id.get(sequence_id)
                rate = proposer.table.rate(evidence)
                proposer.table.learn(evidence, was_right)
                if state is not None:
                    state.acceptance[proposer.name].learn(evidence, rate, was_right)
