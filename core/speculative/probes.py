"""Tries paid drafters out where they are not used, as far as that may be risked."""

from __future__ import annotations

from collections.abc import Sequence as Series
from functools import partial

from core.sequence import Sequence
from core.speculative.drafter import PaidDrafter
from core.speculative.growth import Growth
from core.speculative.purse import Purse
from core.speculative.record import Trial
from core.speculative.records import Records

_LONGEST_PROBE = 256
# How often a probe has shown that drafting pays: what may be risked on the next one depends on it.
_CHANCE, _CHANCE_WEIGHT, _LEAST_CHANCE = 0.5, 0.2, 0.02


class Probes:
    """Lets drafters read along now and then, each time later, and remembers how often that has shown that they pay."""

    def __init__(self, paid: Series[PaidDrafter], growth: Growth, records: Records, purse: Purse) -> None:
        """Pay from ``purse``; what probes take is at risk like what ``growth`` takes."""
        self._growth = growth
        self._records = records
        self._purse = purse
        self._chance = {drafter.name: _CHANCE for drafter in paid}

    def make(self, drafter: PaidDrafter, sequences: list[Sequence]) -> None:
        """Let a drafter read along where it is time for that, to learn whether it would pay."""
        for sequence in sequences:
            record = self._records.by_id[sequence.id]
            trial = record.trials[drafter.name]
            if record.n_verified - trial.tried_at < trial.interval or not self._records.may_ask(drafter, sequence):
                continue
            seconds = drafter.catch_up_seconds(drafter.n_behind(sequence)) + drafter.start_seconds(1)
            if not self._purse.may_risk(seconds, self._chance[drafter.name]):
                continue
            if not self._growth.catch_up(drafter, sequence):
                continue
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)
            if self._growth.at_risk(drafter, [sequence], partial(drafter.shadow, sequence)):
                self.judge(trial, drafter.name, 0.0)
                continue
            trial.tried_at = record.n_verified
            trial.is_new = True
            record.look_again()

    def judge(self, trial: Trial, name: str, promise: float) -> None:
        """Learn from what the drafter ``name`` promises after a trial."""
        trial.is_new = False
        chance = self._chance[name]
        chance += _CHANCE_WEIGHT * (float(promise > 0.0) - chance)
        self._chance[name] = max(chance, _LEAST_CHANCE)
