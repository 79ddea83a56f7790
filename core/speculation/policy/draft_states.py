"""What speculation knows of the sequences that decode."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series
from dataclasses import replace

from core.scheduler.sequence import Sequence
from core.speculation.acceptance import SequenceAcceptance
from core.speculation.draft_tree import DraftTree, TreeProposer
from core.speculation.policy.draft_state import Backoff, DraftState, TrialSchedule
from core.speculation.policy.risk_budget import RiskBudget
from core.speculation.proposer import CostlyProposer, DraftChain, ExpectedGain, Proposer

_START_MEAN = 0.6
# How much the speed that one text came at says about the next.
_MOST_SPEEDUP_WEIGHT = 0.3
# So many seconds of decoding the budget of all texts remembers.
_MEMORY = 20.0
# Of what a proposer may lose on all texts before it has won anything, it may lose such a part on one.
_OF_ONE_TEXT = 0.5
# A text whose proposers are all of the other kind is never asked about: it rests for longer than it can get.
_FOR_EVER = 1 << 40
# Where paid drafting promises nothing, it is thought about anew every so many steps, or later where steps are short.
SHORT_REST = 8


class DraftStates:
    """A record for each sequence, ``by_id`` of its request; it begins with what those before it have shown."""

    def __init__(
        self, proposers: Series[Proposer], paid: Series[CostlyProposer], credit: float, *, looks: bool
    ) -> None:
        """Know how often ``proposers`` are right, and when those that are ``paid`` were tried.

        ``looks``: there is a lookup among them. Each may lose ``credit`` seconds before it has won anything.
        """
        self.by_id: dict[str, DraftState] = {}
        self.budget = RiskBudget(credit, _MEMORY)
        self.longest_thought = SHORT_REST
        self._proposers = tuple(proposers)
        self._paid = tuple(paid)
        self._looks = looks
        self._means = {proposer.name: _START_MEAN for proposer in self._proposers}
        # Of texts before.
        self._speedup = 1.0
        self._thoughts, self._looks_length = Backoff(), 0

    def admit(self, sequence: Sequence) -> None:
        """Begin a record."""
        acceptance = {name: SequenceAcceptance(mean) for name, mean in self._means.items()}
        trials = {proposer.name: TrialSchedule() for proposer in self._paid}
        self.by_id[sequence.id] = DraftState(
            acceptance,
            trials,
            RiskBudget(_OF_ONE_TEXT * self.budget.credit),
            thoughts=replace(self._thoughts) if self._paid else Backoff(_FOR_EVER),
            looks=Backoff(length=self._looks_length) if self._looks else Backoff(_FOR_EVER),
            speedup=math.sqrt(self._speedup),
        )

    def forget(self, sequence: Sequence) -> None:
        """End a sequence's record; what it taught stays."""
        record = self.by_id.pop(sequence.id)
        weight = min(_MOST_SPEEDUP_WEIGHT, record.n_verified / 100.0)
        self._speedup += weight * (record.speedup - self._speedup)
        self._thoughts, self._looks_length = record.thoughts, record.looks.length
        for name, seen in record.acceptance.items():
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[name] += weight * (seen.mean - self._means[name])

    def begin_step(self, sequences: list[Sequence]) -> bool:
        """A step begins: return whether there is one for whom to think about paid drafting; the others rest."""
        is_awake = False
        for sequence in sequences:
            record = self.by_id[sequence.id]
            looks, thoughts = record.looks, record.thoughts
            if looks.n_left:
                looks.n_left -= 1
            if thoughts.n_left:
                thoughts.n_left -= 1
            is_awake = is_awake or not thoughts.n_left
        if is_awake and len(sequences) > 1:
            # A round is shared: those whose turn would come soon are thought about with the others.
            for sequence in sequences:
                thoughts = self.by_id[sequence.id].thoughts
                if thoughts.n_left <= thoughts.length // 2:
                    thoughts.n_left = 0
        return is_awake

    def skip_steps(self, sequences: list[Sequence]) -> int:
        """Return for how many further steps nobody is to be asked; they are taken off everybody's rest at once."""
        records = [self.by_id[sequence.id] for sequence in sequences]
        rests = [rest for record in records for rest in (record.looks, record.thoughts)]
        n_steps = max(min([rest.n_left for rest in rests]) - 1, 0)
        for rest in rests:
            rest.n_left -= n_steps
        return n_steps

    def due_for_lookup(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return those for whom to look for what costs next to nothing."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].looks.n_left]

    def due_for_proposers(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return those for whom to think about paid drafting."""
        return [sequence for sequence in sequences if not self.by_id[sequence.id].thoughts.n_left]

    def fail(self, sequence: Sequence, proposer: Proposer) -> None:
        """A proposer could not do its work for a sequence."""
        record = self.by_id[sequence.id]
        record.trials[proposer.name].fail(record.n_verified)

    def can_ask(self, proposer: Proposer, sequence: Sequence) -> bool:
        """Return whether a proposer is to be asked about a sequence: not soon after it has failed there."""
        record = self.by_id[sequence.id]
        trial = record.trials.get(proposer.name)
        return trial is None or record.n_verified >= trial.resumes_at

    def chain(self, sequence: Sequence, proposer: Proposer) -> DraftChain:
        """Return an empty chain."""
        record = self.by_id[sequence.id]
        return DraftChain(sequence, proposer, record.acceptance[proposer.name], caution=self._caution(record, proposer))

    def tree(self, sequence: Sequence, tree_proposer: TreeProposer, promise: ExpectedGain | None = None) -> DraftTree:
        """Return an empty tree, of which so much is expected."""
        record = self.by_id[sequence.id]
        return DraftTree(
            sequence,
            tree_proposer,
            record.acceptance[tree_proposer.name],
            caution=self._caution(record, tree_proposer),
            promise=promise,
            siblings=record.siblings,
        )

    def _caution(self, record: DraftState, proposer: Proposer) -> float:
        """Return how many times its price a draft must be worth: by what was lost on this text, and on all."""
        return max(self.budget.required_return(proposer.name), record.budget.required_return(proposer.name))

    def can_spend(self, proposer: Proposer, sequence: Sequence, seconds: float) -> bool:
        """Return whether a proposer may spend ``seconds`` on a text without knowing what comes of it."""
        of_text = self.by_id[sequence.id].budget
        return of_text.can_spend(proposer.name, seconds) and self.budget.can_spend(proposer.name, seconds)

    def book(self, record: DraftState, proposer: str, seconds: float) -> None:
        """Book what a proposer has won on a text, or lost."""
        record.budget.book(proposer, seconds)
        self.budget.book(proposer, seconds)

    def collect_samples(self) -> None:
        """Learn what proposers have seen in passing."""
        for proposer in self._proposers:
            for sequence_id, evidence, was_right in proposer.take_samples():
                record = self.by_id.get(sequence_id)
                rate = proposer.table.rate(evidence)
                proposer.table.learn(evidence, was_right)
                if record is not None:
                    record.acceptance[proposer.name].learn(evidence, rate, was_right)
