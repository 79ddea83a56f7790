"""Lets cost model, threads, meter and cache learn from steps, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.cost.cost_model import CostModel
from core.engine.meter import Meter, StepReading
from core.kv_cache.slot_table import SlotTable

# Steps are learnt from after this many seconds, or this many steps.
_LONGEST, _MOST = 0.05, 16


@dataclass(slots=True)
class StepStats:
    """Counts of all steps since the start, and where the time went.

    Seconds in all, in the target's decode, drafting, and planning: placing requests and choosing rows.
    """

    n_steps: int = 0
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
            self.observe(step.n_rows, step.kv, step.decode)
            self._meter.record(step)
            if n_idle:
                idle_cost += self._cost.idle_time(step.n_rows, n_idle)
        slots.charge_idle(idle_cost)
