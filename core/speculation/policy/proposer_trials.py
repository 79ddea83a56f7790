"""Tries paid proposers out where they are not used, as far as that may be risked."""

from __future__ import annotations

from functools import partial

from core.scheduler.sequence import Sequence
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_states import DraftStates
from core.speculation.proposer import CostlyProposer

_LONGEST_PROBE = 256


class ProposerTrials:
    """Lets proposers read along now and then, each time later."""

    def __init__(self, growth: DraftGrowth, records: DraftStates) -> None:
        """What probes take is at risk like what ``growth`` takes; ``records`` say how much that may be."""
        self._growth = growth
        self._records = records

    def run(self, proposer: CostlyProposer, sequences: list[Sequence]) -> None:
        """Let a proposer read along where it is time for that, to learn whether it would pay."""
        for sequence in sequences:
            record = self._records.by_id[sequence.id]
            trial = record.trials[proposer.name]
            if record.n_verified - trial.tried_at < trial.interval or not self._records.can_ask(proposer, sequence):
                continue
            seconds = proposer.catch_up_seconds(proposer.n_unread(sequence)) + proposer.first_round_seconds(1)
            if not self._records.can_spend(proposer, sequence, seconds):
                continue
            if not self._growth.catch_up(proposer, sequence):
                continue
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)
            if not self._growth.run_charged(proposer, [sequence], partial(proposer.read_along, sequence)):
                trial.tried_at = record.n_verified
                record.thoughts.n_left = 0
