"""Drafts of the next step: for which requests, and in how many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from core.kv_cache.memory import MOST_REPLAYED
from core.llama.context import Context
from core.scheduler.planner import NO_DRAFTS, step_latency_target
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import StepCapacity
from core.speculation.speculator import Speculator


class Drafting:
    """Asks the speculator for drafts, and makes sure that the cache can drop rejected ones."""

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        speculator: Speculator | None,
        clock: Callable[[], float],
    ) -> None:
        """Draft for requests of ``scheduler`` in ``context``."""
        self.speculator = speculator
        self._context = context
        self._scheduler = scheduler
        self._memory = scheduler.slots.memory
        self._clock = clock
        self._most_rows = min(context.n_outputs, context.n_batch)

    def draft(self, decoding: list[Sequence], chunk: int) -> tuple[Mapping[str, tuple[int, ...]], float]:
        """Return the drafts by request id, beside ``chunk`` prefill rows, and the seconds that drafting took."""
        if self.speculator is None or self.speculator.rest(decoding):
            return NO_DRAFTS, 0.0
        # A request without a token yet still evaluates the last row of its prompt.
        decoding = [sequence for sequence in decoding if sequence.n_generated]
        speculating = [sequence for sequence in decoding if sequence.request.may_draft]
        if not speculating:
            return NO_DRAFTS, 0.0
        began = self._clock()
        n_rows, memory = len(decoding) + chunk, self._memory
        memory.n_decoding = len(decoding)
        room = self._most_rows - len(self._scheduler.running)
        if memory.replays:
            # Rows that a rejection loses are replayed in the next step, where new requests may need rows too.
            n_replay = sum([sequence.n_replay for sequence in decoding])
            room -= n_replay + len(self._scheduler.slots) - len(self._scheduler.running)
            n_rows += n_replay
            speculating = [sequence for sequence in speculating if sequence.n_replay <= MOST_REPLAYED]
        drafts: Mapping[str, tuple[int, ...]] = NO_DRAFTS
        if speculating:
            kv = sum([sequence.n_past + 1 for sequence in decoding])
            target = step_latency_target(decoding)
            step = StepCapacity(n_rows, kv, room, memory.n_even, _without(decoding, speculating), target)
            drafts = self.speculator.propose(speculating, step)
            if drafts and memory.replays:
                self._mark([sequence for sequence in speculating if sequence.id in drafts])
        return drafts, self._clock() - began

    def _mark(self, sequences: list[Sequence]) -> None:
        """Save the state of the sequences for a rejection. One that replays has its state saved already."""
        for sequence in sequences:
            if not sequence.n_replay:
                self._memory.mark(sequence.slot.id, sequence.n_past)


def _without(sequences: list[Sequence], left_out: list[Sequence]) -> list[Sequence]:
    """Return those of ``sequences`` that are not ``left_out``."""
    if len(left_out) == len(sequences):
        return []
    names = {sequence.id for sequence in left_out}
    return [sequence for sequence in sequences if sequence.id not in names]
