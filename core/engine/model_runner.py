"""Evaluates a plan, or as much of it as the KV cache has room for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from core.engine.committer import RequestFinisher
from core.kv_cache.branches import Branches
from core.llama.batch import Batch
from core.llama.context import Context, DecodeStatus
from core.scheduler.draft import TreeShape
from core.scheduler.planner import Share, StepPlan, drop_drafts, halve_prefill, has_drafts, has_prefill
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.values.errors import SlipstreamError
from core.values.messages import RequestEvent

_log = logging.getLogger(__name__)
_FAILURES_BEFORE_RESTART = 2


class EngineBroken(SlipstreamError):
    """llama.cpp failed to compute repeatedly: only a fresh process can help."""


class ModelRunner:
    """Fills the batch, decodes it, and climbs down the ladder of less work while there is no room.

    ``seconds`` is the time inside ``llama_decode`` since the start, ``n_rows`` the rows given to it.
    """

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        branches: Branches,
        finisher: RequestFinisher,
        clock: Callable[[], float],
    ) -> None:
        """Run on ``context``, for the requests of ``scheduler``; ``finisher`` ends those that cannot go on.

        Each leaf of a tree but the first is lent an id of ``branches``: to be released once the tokens are chosen.
        """
        self.seconds = 0.0
        self.n_rows = 0
        self.capacity = context.n_batch
        self._context = context
        self._scheduler = scheduler
        self._branches = branches
        self._finisher = finisher
        self._clock = clock
        self._batch = Batch(context.n_batch)
        self._n_failures = 0

    def run(self, shares: StepPlan, events: list[RequestEvent]) -> StepPlan:
        """Return what was evaluated; requests that cannot go on are ended in ``events``. Raises EngineBroken."""
        while shares:
            status = self._decode(shares)
            if status is DecodeStatus.OK:
                self._n_failures = 0
                return shares
            self._release_branches(shares)
            if status is DecodeStatus.NO_KV_SLOT:
                shares = self._make_room(shares, events)
                continue
            self._resync(shares)
            if status is DecodeStatus.INVALID_BATCH:
                for share in shares:
                    self._fail(share.sequence, "The engine made an invalid batch. This is a bug in Slipstream.", events)
            elif status is not DecodeStatus.ABORTED:
                self._count_failure(status)
            return ()
        return ()

    def _decode(self, shares: StepPlan) -> DecodeStatus:
        batch = self._batch
        batch.clear()
        for share in shares:
            sequence = share.sequence
            slot, past = sequence.slot, sequence.n_past
            assert slot is not None
            if sequence.n_pending == 1:
                if share.shape is not None:
                    self._add_tree(share, share.shape, slot.id)
                    continue
                batch.add(sequence.tokens.last, past, slot.id)
                for offset, token in enumerate(share.draft, 1):
                    batch.add(token, past + offset, slot.id)
            else:
                rows = sequence.tokens.view[past : past + share.n_rows]
                batch.add_run(rows, past, slot.id, share.wants_output)
                for offset, token in enumerate(share.draft, share.n_rows):
                    batch.add(token, past + offset, slot.id)
        began = self._clock()
        status = self._context.decode(batch)
        if status is DecodeStatus.OK and batch.n_outputs:
            self._context.synchronize()
        self.seconds += self._clock() - began
        self.n_rows += batch.n_tokens
        return status

    def _add_tree(self, share: Share, shape: TreeShape, slot: int) -> None:
        """Add a sequence's row and its tree: each row is part of the sequences of all leaves below it."""
        past = share.sequence.n_past
        ids = [slot, *[self._branches.fork(slot, slot, past) for _ in range(shape.n_leaves - 1)]]
        tokens = (share.sequence.tokens.last, *share.draft)
        for token, depth, leaves in zip(tokens, shape.depths, shape.leaves_below, strict=True):
            if len(leaves) == 1:
                self._batch.add(token, past + depth, ids[leaves[0]])
            else:
                self._batch.add_shared(token, past + depth, tuple([ids[leaf] for leaf in leaves]))

    def _release_branches(self, shares: StepPlan) -> None:
        """Nothing came of the trees: what was computed of them must not stay."""
        for share in shares:
            if share.shape is not None:
                assert share.sequence.slot is not None
                self._branches.release(share.sequence.slot.id, share.sequence.n_past)

    def _make_room(self, shares: StepPlan, events: list[RequestEvent]) -> StepPlan:
        """No KV cells were free: spill an idle slot, else drop drafts, prefill less, push back a request.

        It is the latest of the lowest lane.
        """
        if self._scheduler.slots.evict_idle():
            return shares
        if has_drafts(shares):
            return drop_drafts(shares)
        less = halve_prefill(shares)
        if less and has_prefill(shares):
            return less
        victim = max(self._scheduler.running, key=lambda sequence: (sequence.lane.rank, sequence.order))
        if len(self._scheduler.running) == 1:
            self._fail(
                victim,
                f"The KV cache is full: {len(victim.tokens)} tokens do not fit. Load the model with more cells.",
                events,
            )
            return ()
        assert victim.slot is not None
        self._branches.trim(victim.slot.id, 0)
        self._scheduler.preempt_for_memory(victim, self._clock())
        return tuple(share for share in shares if share.sequence is not victim)

    def _fail(self, sequence: Sequence, message: str, events: list[RequestEvent]) -> None:
        self._finisher.fail(sequence, message, events, self._clock())

    def _resync(self, shares: StepPlan) -> None:
        """After a failed decode, believe the cache about what it holds."""
        slots = self._scheduler.slots
        for share in shares:
            sequence, slot = share.sequence, share.sequence.slot
            assert slot is not None
            held = self._context.last_position(slot.id) + 1
            # The last pending token must be evaluated again: its logits are lost. A running state is lost as a whole.
            sequence.n_past = min(held, len(sequence.tokens) - 1)
            if not slots.can_go_back(slot, sequence.n_past):
                sequence.n_past = 0
            sequence.n_replay = 0
            is_longer = held > sequence.n_past or not slots.can_cut
            if is_longer and not self._context.remove(slot.id, sequence.n_past):
                slots.clear(slot)
                sequence.n_past = 0
            slot.n_resident = sequence.n_past

    def _count_failure(self, status: DecodeStatus) -> None:
        self._n_failures += 1
        _log.error("llama_decode failed with %s (%d in a row)", status.name, self._n_failures)
        if self._n_failures >= _FAILURES_BEFORE_RESTART:
            raise EngineBroken(f"llama.cpp failed to compute: {status.name.lower().replace('_', ' ')}")
