"""What speculation may draft in the next step: for whom, in how many rows, and with a way back."""

from __future__ import annotations

from collections.abc import Callable

from core.kv_cache.branches import Branches
from core.kv_cache.rollback import MOST_REPLAYED, Rollback
from core.llama.context import Context
from core.scheduler.planner import step_latency_target
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.policy.speculator import Speculator
from core.speculation.policy.step_capacity import StepCapacity
from core.speculation.proposer import DraftChain


class Drafting:
    """Asks the speculator for drafts, and makes sure that the cache can go back behind them."""

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        branches: Branches,
        rollback: Rollback,
        speculator: Speculator | None,
        clock: Callable[[], float],
        *,
        has_state: bool,
    ) -> None:
        """Draft for requests of ``scheduler`` in ``context``; ``has_state``: of a model with a running state."""
        self.speculator = speculator
        self._context = context
        self._scheduler = scheduler
        self._branches = branches
        self._rollback = rollback
        self._clock = clock
        self._has_state = has_state
        self._most_rows = min(context.n_outputs, context.n_batch)

    def draft(self, decoding: list[Sequence], chunk: int) -> tuple[dict[str, DraftChain], float]:
        """Return what to verify for the requests that decode beside ``chunk`` prefill rows, and the seconds it took."""
        if self.speculator is None:
            return {}, 0.0
        # The first token is on its way with the prompt's last one.
        decoding = [sequence for sequence in decoding if sequence.n_generated]
        speculating = [sequence for sequence in decoding if sequence.request.speculates]
        if not speculating:
            return {}, 0.0
        began = self._clock()
        if not self.speculator.begin_step(speculating):
            return {}, self._clock() - began
        kv = sum([sequence.n_past + 1 for sequence in decoding])
        scheduler = self._scheduler
        room = self._most_rows - len(scheduler.running)
        if not scheduler.slots.can_cut:
            return self._draft_with_way_back(speculating, decoding, chunk, kv, room), self._clock() - began
        # Where cells become few, trees must not push anything out: chains take fewer.
        branches = self._branches
        n_branches = branches.count if kv + room <= self._context.n_cells else 0
        step = StepCapacity(
            len(decoding) + chunk,
            kv,
            room,
            n_branches,
            branches.seconds_each if n_branches else 0.0,
            beside=_without(decoding, speculating),
            target=step_latency_target(decoding),
        )
        chains = self.speculator.draft(speculating, step)
        return chains, self._clock() - began

    def _draft_with_way_back(
        self, speculating: list[Sequence], decoding: list[Sequence], chunk: int, kv: int, room: int
    ) -> dict[str, DraftChain]:
        """Draft where the cache cannot be cut: rows that a rejection loses are replayed in the next step."""
        assert self.speculator is not None
        n_replay = sum([sequence.n_replay for sequence in decoding])
        # What is drafted now may have to be replayed beside requests that only come then.
        room -= n_replay + len(self._scheduler.slots) - len(self._scheduler.running)
        speculating = [sequence for sequence in speculating if sequence.n_replay <= MOST_REPLAYED]
        if not speculating:
            return {}
        n_even = len(decoding) if self._has_state and len(decoding) > 1 else 0
        self._rollback.is_shared = n_even > 0
        beside = _without(decoding, speculating)
        n_rows = len(decoding) + n_replay + chunk
        step = StepCapacity(n_rows, kv, room, n_even=n_even, beside=beside, target=step_latency_target(decoding))
        chains = self.speculator.draft(speculating, step)
        self._mark([chain.sequence for chain in chains.values()])
        return chains

    def _mark(self, sequences: list[Sequence]) -> None:
        """Make sure that there is a way back to where sequences are now. One that replays has just come back here."""
        for sequence in sequences:
            if not sequence.n_replay:
                assert sequence.slot is not None
                self._rollback.mark(sequence.slot.id, sequence.n_past)


def _without(sequences: list[Sequence], left_out: list[Sequence]) -> list[Sequence]:
    """Return those of ``sequences`` that are not ``left_out``."""
    if len(left_out) == len(sequences):
        return []
    names = {sequence.id for sequence in left_out}
    return [sequence for sequence in sequences if sequence.id not in names]
