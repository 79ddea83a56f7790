"""Tries paid drafters out where they are not used, as far as that may be risked."""

from __future__ import annotations

from functools import partial

from core.scheduler.sequence import Sequence
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_states import DraftStates
from core.speculation.proposer import CostlyProposer

_LONGEST_PROBE = 256


class ProposerTrials:
    """Lets drafters read along now and then, each time later."""

    def __init__(self, growth: DraftGrowth, records: DraftStates) -> None:
        """What probes take is at risk like what ``growth`` takes; ``records`` say how much that may be."""
        self._growth = growth
        self._records = records

    def run(self, drafter: CostlyProposer, sequences: list[Sequence]) -> None:
        """Let a drafter read along where it is time for that, to learn whether it would pay."""
        for sequence in sequences:
            record = self._records.by_id[sequence.id]
            trial = record.trials[drafter.name]
            if record.n_verified - trial.tried_at < trial.interval or not self._records.can_ask(drafter, sequence):
                continue
            seconds = drafter.catch_up_seconds(drafter.n_unread(sequence)) + drafter.first_round_seconds(1)
            if not self._records.can_spend(drafter, sequence, seconds):
                continue
            if not self._growth.catch_up(drafter, sequence):
                continue
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)
            if not self._growth.run_charged(drafter, [sequence], partial(drafter.read_along, sequence)):
                trial.tried_at = record.n_verified
                record.thoughts.n_left = 0
