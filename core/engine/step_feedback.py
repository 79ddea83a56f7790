"""Lets cost model, threads, meter and cache learn from steps, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from core.cost.cost_model import CostModel
from core.engine.meter import Meter, StepReading
from core.kv_cache.slot_table import SlotTable


@dataclass(slots=True)
class StepStats:
    """Counts of all steps since the start, and where the time went.

    Seconds in all, in the target's decode, drafting, and planning: placing requests and choosing rows.
    """

    n_steps: int = 0
    n_tokens: int = 0
    n_sampled: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    total: float = 0.0
    decode: float = 0.0
    draft: float = 0.0
    plan: float = 0.0

    @property
    def own(self) -> float:
        """Seconds of our own Python in planning and committing."""
        return self.total - self.decode - self.draft


class StepYield(NamedTuple):
    """Tokens of a step. ``n_sampled`` counts end-of-generation tokens too, ``n_tokens`` does not."""

    n_tokens: int
    n_sampled: int
    n_drafted: int
    n_accepted: int


# Steps are learnt from after this many seconds, or this many steps.
_LONGEST, _MOST = 0.05, 16


class _Entry(NamedTuple):
    reading: StepReading
    gain: StepYield
    began: float
    ended: float


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
        self._entries: list[_Entry] = []

    def add(self, reading: StepReading, gain: StepYield, began: float, ended: float) -> None:
        """Add a step."""
        entries = self._entries
        entries.append(_Entry(reading, gain, began, ended))
        is_plain = reading.n_rows == reading.n_sequences
        if not is_plain or len(entries) >= _MOST or ended - entries[0].began >= _LONGEST:
            self.flush()

    def flush(self) -> None:
        """Learn from the steps that were added."""
        entries = self._entries
        if not entries:
            return
        self._entries = []
        slots = self._slots
        idle_cost, n_idle = 0.0, slots.n_idle
        for reading, gain, began, ended in entries:
            rows, kv = reading.n_rows, reading.kv
            self.observe(rows, kv, reading.decode)
            self._meter.record(reading, began, ended, gain.n_sampled, gain.n_drafted, gain.n_accepted)
            if n_idle:
                idle_cost += self._cost.idle_time(rows, n_idle)
        slots.charge_idle(idle_cost)
