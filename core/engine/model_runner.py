"""Evaluates a plan, or as much of it as the KV cache has room for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from core.engine.committer import RequestFinisher
from core.llama.context import Batch, Context, DecodeStatus, EmbeddingBatch
from core.scheduler.images import ImageEncoder
from core.scheduler.planner import Share, StepPlan, halve_prefill
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.values.errors import SlipstreamError
from core.values.messages import Failure, FailureKind, FinishReason, RequestEvent
from models.formatting.sentence import Sentence

_log = logging.getLogger(__name__)
# Failed decodes in a row after which the process restarts; a single one may be chance.
_FAILURES_BEFORE_RESTART = 2


class EngineBroken(SlipstreamError):
    """llama.cpp failed to compute repeatedly: only a fresh process can help."""


class ModelRunner:
    """Fills the batch and decodes it. While the KV cache has no room, it makes room or takes less work.

    ``seconds`` is the time inside ``llama_decode`` since the start. ``has_waited``: the last batch was over when its
    time was taken.
    """

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        finisher: RequestFinisher,
        clock: Callable[[], float],
        images: ImageEncoder | None,
    ) -> None:
        """Run ``scheduler``'s requests; ``finisher`` ends those that cannot go on, ``images`` has embeddings."""
        self._images = images
        self.seconds = 0.0
        self.has_waited = True
        self.capacity = context.n_batch
        self._context = context
        self._scheduler = scheduler
        self._finisher = finisher
        self._has_heads = finisher.speculator is not None and finisher.speculator.has_heads
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
            if status is DecodeStatus.NO_KV_SLOT:
                shares = self._make_room(shares, events)
                continue
            self._resync(shares)
            if status is DecodeStatus.INVALID_BATCH:
                for share in shares:
                    self._fail(
                        share.sequence,
                        Sentence("The engine made an invalid batch. This is a bug in Slipstream."),
                        events,
                    )
            else:
                self._count_failure(status)
            return ()
        return ()

    def _decode(self, shares: StepPlan) -> DecodeStatus:
        if self._images is not None and shares[0].sequence.image is not None:
            return self._decode_image(shares[0], self._images)
        batch = self._batch
        batch.clear()
        for share in shares:
            sequence = share.sequence
            slot, past = sequence.slot, sequence.n_past
            position = sequence.tokens.position(past)
            if sequence.n_pending == 1:
                batch.add(sequence.tokens.last, position, slot.id)
                for offset, token in enumerate(share.draft, 1):
                    batch.add(token, position + offset, slot.id)
            else:
                rows = sequence.tokens.view[past : past + share.n_rows]
                batch.add_run(rows, position, slot.id, share.n_own_outputs)
                for offset, token in enumerate(share.draft, share.n_rows):
                    batch.add(token, position + offset, slot.id)
        began = self._clock()
        status = self._context.decode(batch)
        # Without outputs a GPU may go on while the next batch is made ready, unless heads read the states of all rows.
        waits = bool(batch.n_outputs) or self._has_heads
        self.has_waited = waits or not self._context.is_asynchronous
        if status is DecodeStatus.OK and waits:
            self._context.synchronize()
        self.seconds += self._clock() - began
        return status

    def _decode_image(self, share: Share, images: ImageEncoder) -> DecodeStatus:
        """Evaluate rows of an image, which a step has alone."""
        sequence = share.sequence
        rows = sequence.image
        assert rows is not None
        first = sequence.n_past - rows.start
        own = slice(first, first + share.n_rows)
        embeddings = images.embeddings(rows, sequence.encodings[rows.id])
        batch = EmbeddingBatch(embeddings[own], rows.positions[..., own], sequence.slot.id)
        began = self._clock()
        status = self._context.decode(batch, is_causal=images.is_causal)
        self.has_waited = True
        if status is DecodeStatus.OK:
            self._context.synchronize()
        self.seconds += self._clock() - began
        return status

    def _make_room(self, shares: StepPlan, events: list[RequestEvent]) -> StepPlan:
        """Return the plan to try next after no KV cells were free.

        An idle slot leaves the device. If there is none, drafts go, then half of the prefill. Then the latest request
        of the lowest lane goes back to the queue.
        """
        if self._scheduler.slots.evict_idle():
            return shares
        if any(share.draft for share in shares):
            return tuple(share._replace(draft=()) for share in shares)
        less = halve_prefill(shares)
        if less and less != shares and not self._is_whole(shares[0]):
            return less
        victim = max(self._scheduler.running, key=lambda sequence: (sequence.lane.rank, sequence.order))
        if len(self._scheduler.running) == 1:
            self._fail(
                victim,
                Sentence(
                    "The KV cache is full: {n_tokens} tokens do not fit. Load the model with more cells.",
                    n_tokens=len(victim.tokens),
                ),
                events,
            )
            return ()
        self._scheduler.preempt_for_memory(victim, self._clock())
        return tuple(share for share in shares if share.sequence is not victim)

    def _is_whole(self, share: Share) -> bool:
        """Return whether a share is an image whose rows attend to each other, so that it cannot be split."""
        return self._images is not None and not self._images.is_causal and share.sequence.image is not None

    def _fail(self, sequence: Sequence, message: str, events: list[RequestEvent]) -> None:
        failure = Failure(FailureKind.INTERNAL, message)
        self._finisher.finish(sequence, FinishReason.FAILED, events, self._clock(), failure)

    def _resync(self, shares: StepPlan) -> None:
        """After a failed decode, take over what the cache says it holds."""
        slots = self._scheduler.slots
        for share in shares:
            sequence, slot = share.sequence, share.sequence.slot
            # The last pending token must be evaluated again: its logits are lost. So are those of all rows to be
            # scored. A recurrent state is lost as a whole.
            n_known = sequence.n_scored if sequence.is_scoring else len(sequence.tokens)
            sequence.n_past = slots.resync(slot, n_known - 1)
            sequence.n_replay = 0

    def _count_failure(self, status: DecodeStatus) -> None:
        self._n_failures += 1
        _log.error("llama_decode failed with %s (%d in a row)", status.name, self._n_failures)
        if self._n_failures >= _FAILURES_BEFORE_RESTART:
            raise EngineBroken(f"llama.cpp failed to compute: {status.name.lower().replace('_', ' ')}")
