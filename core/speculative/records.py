"""What speculation knows of the sequences that decode."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series

from core.sequence import Sequence
from core.speculative.acceptance import SequenceAcceptance
from core.speculative.drafter import Chain, Drafter, PaidDrafter
from core.speculative.record import Record, Trial
from core.speculative.tree import Forker, Tree

_START_MEAN = 0.6
# How much the speed that one text came at says about the next.
_MOST_SPEEDUP_WEIGHT = 0.3


class Records:
    """A record for each sequence, ``by_id`` of its request; it begins with what those before it have shown."""

    def __init__(self, drafters: Series[Drafter], paid: Series[PaidDrafter]) -> None:
        """Know how often ``drafters`` are right, and when those that are ``paid`` were tried."""
        self.by_id: dict[str, Record] = {}
        self._drafters = tuple(drafters)
        self._paid = tuple(paid)
        self._means = {drafter.name: _START_MEAN for drafter in self._drafters}
        # Of texts before.
        self._speedup = 1.0
        self._rest_length = 0

    def admit(self, sequence: Sequence) -> None:
        """Begin a record."""
        acceptance = {name: SequenceAcceptance(mean) for name, mean in self._means.items()}
        trials = {drafter.name: Trial() for drafter in self._paid}
        self.by_id[sequence.id] = Record(
            acceptance, trials, speedup=math.sqrt(self._speedup), rest_length=self._rest_length
        )

    def forget(self, sequence: Sequence) -> None:
        """End a sequence's record; what it taught stays."""
        record = self.by_id.pop(sequence.id)
        weight = min(_MOST_SPEEDUP_WEIGHT, record.n_verified / 100.0)
        self._speedup += weight * (record.speedup - self._speedup)
        self._rest_length = record.rest_length
        for name, seen in record.acceptance.items():
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[name] += weight * (seen.mean - self._means[name])

    def awake(self, sequences: list[Sequence]) -> list[Sequence]:
        """Return those for whom to think about paid drafting in this step; the others rest."""
        awake = []
        for sequence in sequences:
            record = self.by_id[sequence.id]
            record.rest -= record.rest > 0
            if not record.rest:
                awake.append(sequence)
        return awake

    def fail(self, sequence: Sequence, drafter: Drafter) -> None:
        """A drafter could not do its work for a sequence."""
        record = self.by_id[sequence.id]
        record.trials[drafter.name].fail(record.n_verified)

    def may_ask(self, drafter: Drafter, sequence: Sequence) -> bool:
        """Return whether a drafter is to be asked about a sequence: not soon after it has failed there."""
        record = self.by_id[sequence.id]
        trial = record.trials.get(drafter.name)
        return trial is None or record.n_verified >= trial.resumes_at

    def chain(self, sequence: Sequence, drafter: Drafter) -> Chain:
        """Return an empty chain."""
        return Chain(sequence, drafter, self.by_id[sequence.id].acceptance[drafter.name])

    def tree(self, sequence: Sequence, forker: Forker) -> Tree:
        """Return an empty tree."""
        record = self.by_id[sequence.id]
        return Tree(sequence, forker, record.acceptance[forker.name], siblings=record.siblings)

    def collect_observations(self) -> None:
        """Learn what drafters have seen in passing."""
        for drafter in self._drafters:
            for sequence_id, evidence, was_right in drafter.take_observations():
                record = self.by_id.get(sequence_id)
                rate = drafter.table.rate(evidence)
                drafter.table.learn(evidence, was_right)
                if record is not None:
                    record.acceptance[drafter.name].learn(evidence, rate, was_right)
