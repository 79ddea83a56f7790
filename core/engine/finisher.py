"""How a request leaves the engine: its slot, its drafts and its sampler are given back, and its end is said."""

from __future__ import annotations

from dataclasses import replace

from core.engine.meter import Meter
from core.kv_cache.branches import Branches
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.policy.speculator import Speculator
from core.values.events import Ended, Failure, FailureKind, FinishReason, RequestEvent
from core.values.receipt import Receipt


class RequestFinisher:
    """Ends requests, each once."""

    def __init__(self, scheduler: Scheduler, branches: Branches, meter: Meter, speculator: Speculator | None) -> None:
        """Take requests off ``scheduler`` and out of ``branches`` and ``speculator``; ``meter`` knows the peak."""
        self.speculator = speculator
        self._scheduler = scheduler
        self._branches = branches
        self._meter = meter

    def finish(
        self,
        sequence: Sequence,
        reason: FinishReason,
        events: list[RequestEvent],
        now: float,
        failure: Failure | None = None,
    ) -> None:
        """Free what a request holds and append its end to ``events``; ``now`` is on the engine's clock."""
        if self.speculator is not None:
            self.speculator.forget(sequence)
        if sequence.slot is not None:
            self._branches.trim(sequence.slot.id, 0)
        self._scheduler.remove(sequence)
        text = sequence.text.flush()
        events.append(Ended(sequence.id, reason, text, sequence.text.stop, failure, self._receipt(sequence, now)))
        sequence.sampler.close()

    def fail(self, sequence: Sequence, message: str, events: list[RequestEvent], now: float) -> None:
        """End a request for a reason that is not its own."""
        self.finish(sequence, FinishReason.FAILED, events, now, Failure(FailureKind.INTERNAL, message))

    def _receipt(self, sequence: Sequence, now: float) -> Receipt:
        account = sequence.account
        share = self._meter.share_of_peak(account.bytes_per_second)
        return replace(
            sequence.receipt(now),
            bytes_per_token=account.bytes_per_token,
            peak_share=None if self._meter.is_in_cache else share,
            speedup=account.speedup if sequence.n_drafted else 1.0,
            plain_seconds=None if self._meter.is_disturbed else account.plain_seconds,
            kv_type=self._meter.kv_type,
        )
