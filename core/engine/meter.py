"""Counts what each step reads and yields, beside what this machine can do; and lets others learn from steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from core.cost.cost_model import CostModel, ReadCost, attended
from core.cost.threads import SUSPICIOUS
from core.kv_cache.slot_table import SlotTable
from core.scheduler.planner import StepPlan
from core.scheduler.sequence import RequestCost
from core.values.engine_options import DEFAULT_KV_TYPE
from core.values.messages import Bottleneck, Snapshot

# Snapshots describe the last second, and come ten times a second.
_WINDOW_SECONDS = 1.0
_SNAPSHOT_SECONDS = 0.1  # as often as a gauge can be read
# A limit is named where it accounts for at least this share of a step.
_LIMITING = 0.5
# Rows are called cheap while a step takes at most _CHEAP times the time of one row; counted up to _MOST_CHEAP rows.
_CHEAP, _MOST_CHEAP = 1.75, 16


@dataclass(slots=True)
class StepReading:
    """One step: its rows, the ``kv`` tokens that they attend to altogether, the bytes it read, its seconds.

    ``n_sequences`` of them decode. ``decode`` are the seconds of the target's decode, ``seconds`` those since the
    previous step. ``plain`` are the decode seconds of the same step without drafts, predicted by the cost model.
    ``seen`` are the seconds of the same step without drafts, observed in plain steps, ``seen_each`` those of each
    further token; None if too few were observed, or if another program held the step up. ``began`` and ``ended`` are on
    the engine's clock. ``has_waited``: the step was over when its time was taken; if not, the rest is part of a later
    step's time. What the step yields is counted when it is committed: ``n_sampled`` tokens, including those that end a
    text, and drafted tokens.
    """

    n_rows: int
    n_prefill: int
    n_sequences: int
    kv: int
    n_bytes: int
    decode: float
    seconds: float
    plain: float
    seen: float | None = None
    seen_each: float | None = None
    began: float = 0.0
    ended: float = 0.0
    has_waited: bool = True
    n_sampled: int = 0
    n_drafted: int = 0
    n_accepted: int = 0

    def plain_seconds(self, n_tokens: float) -> float | None:
        """Return the seconds that a sequence's ``n_tokens`` take without drafts; None if that is not known."""
        if self.seen is None or n_tokens == 1:
            return self.seen
        return None if self.seen_each is None else self.seen + (n_tokens - 1) * self.seen_each

    def book(self, account: RequestCost, n_tokens: int) -> None:
        """Add the step to the account of a request that took ``n_tokens`` from it."""
        account.n_tokens += n_tokens
        plain = self.plain_seconds(n_tokens)
        if plain is not None:
            account.n_compared += n_tokens
            account.n_steps += 1
            account.plain += plain
            account.spent += self.seconds
        account.n_bytes += self.n_bytes / max(self.n_sequences, 1)
        if not self.n_prefill:
            account.n_whole += 1
            account.all_bytes += self.n_bytes
            account.all_rows += self.n_rows
            account.all_kv += self.kv
            account.seconds += self.seconds


class Meter:
    """Takes a reading of each step and makes a snapshot of the last second ten times a second."""

    def __init__(
        self,
        cost: CostModel,
        reads: ReadCost,
        *,
        cache_bytes: int = 0,
        kv_type: str = DEFAULT_KV_TYPE,
    ) -> None:
        """``cache_bytes`` is the size of the last-level cache, ``kv_type`` the type of the KV cache."""
        self.peak: float | None = None  # the measured bandwidth in bytes per second, where it is known
        self.kv_type = kv_type
        self.is_in_cache = reads.step(1, 0) < cache_bytes
        self._cost = cost
        self.reads = reads
        self._steps: deque[StepReading] = deque()
        self._kv_per_row = 0
        self._published_at = float("-inf")
        self._was_idle = True

    @property
    def is_disturbed(self) -> bool:
        """True while other programs take cores away: what steps take now says little of later."""
        return self._cost.is_slowed

    def read(
        self, shares: StepPlan, decode: float, draft: float, draft_bytes: int = 0, seconds: float = 0.0
    ) -> StepReading:
        """Return the reading of a step before it is committed.

        All times are seconds. ``seconds`` have gone by since the previous step was committed, or, if the engine was
        idle before, since this one began.
        """
        n_rows = n_prefill = n_sequences = n_cells = n_drafted = kv = plain_kv = prefill_kv = 0
        for sequence, own, draft_tokens in shares:
            past, drafted = sequence.n_past, len(draft_tokens)
            rows = own + drafted
            n_rows += rows
            n_drafted += drafted
            n_cells += past + rows
            kv += attended(rows, past)
            plain_kv += attended(own, past)
            if sequence.n_pending == 1:
                n_sequences += 1
            elif sequence.is_prefilling:
                n_prefill += own
                prefill_kv += attended(own, past)
            else:
                # Replayed rows are a cost of drafting: plain decoding has none.
                n_sequences += 1
                n_drafted += own - 1
                plain_kv += past + own - attended(own, past)
        n_bytes = self.reads.step(n_rows, n_cells, len(shares)) + draft_bytes
        cost, seconds = self._cost, max(seconds, decode + draft)
        if not n_drafted:
            # This is a plain step itself, apart from the time for deciding not to draft.
            reading = StepReading(n_rows, n_prefill, n_sequences, kv, n_bytes, decode, seconds, decode, seconds - draft)
            reading.seen_each = reading.seen
            return reading
        plain = cost.time(n_rows - n_drafted, plain_kv)
        reading = StepReading(n_rows, n_prefill, n_sequences, kv, n_bytes, decode, seconds, plain)
        each = cost.plain.seconds(n_sequences, plain_kv - prefill_kv)
        if each is not None and not n_prefill and seconds - draft > SUSPICIOUS * each * cost.time(n_rows, kv) / plain:
            return reading  # it had to wait, as a plain step would have: no fault of its drafts
        reading.seen = reading.seen_each = each
        if each is not None and n_prefill:
            # The time with drafts was measured; the cost model gives the share of it without them.
            reading.seen = min(plain / cost.time(n_rows, kv), 1.0) * seconds
        return reading

    def record(self, reading: StepReading) -> None:
        """Keep a committed step for a second."""
        steps = self._steps
        self._was_idle = False
        self._kv_per_row = reading.kv // reading.n_rows
        steps.append(reading)
        while steps[0].ended < reading.ended - _WINDOW_SECONDS:
            steps.popleft()

    def is_due(self, now: float, is_idle: bool) -> bool:
        """Return whether a snapshot should be published: ten times a second, and once at the end of work."""
        if is_idle:
            return not self._was_idle
        return not 0.0 <= now - self._published_at < _SNAPSHOT_SECONDS

    def mark_changed(self) -> None:
        """Make a snapshot due: something changed although there was no work."""
        self._was_idle = False

    def snapshot(self, now: float, known: Snapshot) -> Snapshot:
        """Return a snapshot of the last second; ``known`` is what is not measured here. An idle engine has no rates."""
        self._published_at, self._was_idle = now, known.is_idle
        if known.is_idle:
            self._steps.clear()
        steps = [step for step in self._steps if step.ended >= now - _WINDOW_SECONDS]
        rate = self._bytes_per_second(steps)
        if self.peak is not None and rate > self.peak and not self.is_in_cache:
            self.peak = rate  # the lower one was measured on a busy machine
        n_sampled = sum(step.n_sampled for step in steps)
        span = max(steps[-1].ended - steps[0].began, 1e-9) if steps else 1.0
        return replace(
            known,
            decode_rate=n_sampled / span,
            prefill_rate=sum(step.n_prefill for step in steps) / span,
            bytes_per_second=rate,
            peak=self.peak,
            peak_share=self.share_of_peak(rate) if steps else None,
            is_in_cache=self.is_in_cache,
            limited_by=self._limited_by(steps, rate),
            n_drafted=sum(step.n_drafted for step in steps),
            n_accepted=sum(step.n_accepted for step in steps),
            speedup=_speedup(steps),
            cheap_rows=self._cost.widest(_CHEAP, self._kv_per_row, _MOST_CHEAP),
        )

    def share_of_peak(self, bytes_per_second: float) -> float | None:
        """Return the share of the peak, at most 1; None where the peak is not known."""
        if not self.peak or bytes_per_second <= 0:
            return None
        return min(bytes_per_second / self.peak, 1.0)

    def limit_of(self, account: RequestCost) -> Bottleneck:
        """Name what took most of the time of the steps in which a request decoded."""
        if not account.n_whole:
            return Bottleneck.UNKNOWN
        rows, kv = round(account.all_rows / account.n_whole), account.all_kv // account.n_whole
        return self._limit(self._computing(rows, kv), account.bytes_per_second)

    def _bytes_per_second(self, steps: list[StepReading]) -> float:
        """Return the rate of the steps that only decode, of all where there are none: reading prompts is computing."""
        decoding = [step for step in steps if not step.n_prefill] or steps
        seconds = sum(step.ended - step.began for step in decoding)
        return sum(step.n_bytes for step in decoding) / seconds if seconds > 0 else 0.0

    def _limited_by(self, steps: list[StepReading], rate: float) -> Bottleneck:
        """Name what took most of the time. Rows of a prompt share the reading of its cached tokens."""
        seconds = sum(step.ended - step.began for step in steps)
        if seconds <= 0:
            return Bottleneck.UNKNOWN
        computing = 0.0
        for step in steps:
            share = self._computing(step.n_rows, 0 if step.n_prefill else step.kv)
            computing += share * min(step.seconds, step.ended - step.began)
        return self._limit(computing / seconds, rate)

    def _computing(self, n_rows: int, kv: int) -> float:
        """Return the share of a step's time that computing takes.

        All rows of a step share the reading of weights. So if twice the rows take much longer, computing takes the
        time.
        """
        return min(self._cost.extra(n_rows, n_rows) / max(self._cost.time(n_rows, kv), 1e-9), 1.0)

    def _limit(self, computing: float, bytes_per_second: float) -> Bottleneck:
        if computing >= _LIMITING:
            return Bottleneck.COMPUTE
        if self.peak is not None and bytes_per_second / self.peak < _LIMITING:
            return Bottleneck.OVERHEAD
        if self.is_in_cache:
            return Bottleneck.COMPUTE  # what the processor's cache holds is read as fast as it can compute
        return Bottleneck.UNKNOWN if self.peak is None else Bottleneck.BANDWIDTH


def _speedup(steps: list[StepReading]) -> float | None:
    """Return how many times faster than plain decoding the steps that only decode were; None: not known."""
    plain = spent = n_tokens = 0.0
    n_steps = 0
    for step in steps:
        if not step.n_sequences or step.n_prefill:
            continue
        each = step.n_sampled / step.n_sequences
        taken = step.plain_seconds(each)
        if taken is not None:
            plain += taken
            spent += step.seconds
            n_tokens += each
            n_steps += 1
    return min(plain / spent, n_tokens / n_steps) if spent > 0 else None


# Steps are learnt from after this many seconds, or this many steps.
_LONGEST, _MOST = 0.05, 16


@dataclass(slots=True)
class StepStats:
    """Counts since the start, and seconds: of all steps, and what of them the target, drafting and planning took."""

    n_steps: int = 0
    n_shares: int = 0  # requests in all steps
    n_drafts: int = 0
    n_sampled: int = 0
    total: float = 0.0
    decode: float = 0.0
    draft: float = 0.0
    plan: float = 0.0

    @property
    def own(self) -> float:
        """Seconds of our own Python in planning and committing."""
        return self.total - self.decode - self.draft


class StepFeedback:
    """Collects steps, and lets cost model, threads, meter and cache learn from several at once.

    Right after a step the processor's caches hold weights and nothing else. So learning from eight steps takes hardly
    longer than from one. Steps with drafts or prompts are learnt from at once, because the next step's drafts and
    prefill chunk depend on them.
    """

    def __init__(
        self, cost: CostModel, observe: Callable[[int, int, float], None], meter: Meter, slots: SlotTable
    ) -> None:
        """``observe`` is called with the rows, KV tokens and seconds of each step."""
        self.observe = observe
        self._cost = cost
        self._meter = meter
        self._slots = slots
        self._steps: list[StepReading] = []
        # Steps that were not over when their time was taken.
        self._unfinished: list[StepReading] = []

    def add(self, step: StepReading) -> None:
        """Add a committed step."""
        steps = self._steps
        steps.append(step)
        is_plain = step.n_rows == step.n_sequences
        if not is_plain or len(steps) >= _MOST or step.ended - steps[0].began >= _LONGEST:
            self.flush()

    def flush(self) -> None:
        """Learn from the steps that were added."""
        steps = self._steps
        if not steps:
            return
        self._steps = []
        slots = self._slots
        idle_cost, n_idle = 0.0, slots.n_idle
        for step in steps:
            self._learn(step)
            self._meter.record(step)
            if n_idle:
                idle_cost += self._cost.idle_time(step.n_rows, n_idle)
        slots.charge_idle(idle_cost)

    def stop(self) -> None:
        """Learn from the steps that were added, before a time without steps."""
        self.flush()
        self._unfinished.clear()

    def _learn(self, step: StepReading) -> None:
        """Learn from a step that is over, and from those before it whose times were taken before they were over.

        Only the time of all of them together is known: each gets its expected share of it.
        """
        self._unfinished.append(step)
        if not step.has_waited:
            return
        steps, self._unfinished = self._unfinished, []
        if len(steps) == 1:
            self.observe(step.n_rows, step.kv, step.decode)
            return
        expected = [self._cost.time(one.n_rows, one.kv) for one in steps]
        ratio = sum([one.decode for one in steps]) / sum(expected)
        for one, seconds in zip(steps, expected, strict=True):
            self.observe(one.n_rows, one.kv, ratio * seconds)
