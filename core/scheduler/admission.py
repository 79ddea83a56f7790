"""How a request enters the engine: it gets a slot, and its start is said."""

from __future__ import annotations

from core.kv_cache.branches import Branches
from core.kv_cache.divergence import Divergence
from core.llama.vocab import Vocab
from core.scheduler.fast_lane import PiggybackScheduler
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.values.cache_miss import CacheMiss
from core.values.events import RequestEvent, Started


class Admission:
    """Gives slots to waiting requests."""

    def __init__(self, scheduler: Scheduler, branches: Branches, piggyback: PiggybackScheduler, vocab: Vocab) -> None:
        """Move requests of ``scheduler``. Who loses a slot leaves ``branches``; ``piggyback`` counts rides anew."""
        self._scheduler = scheduler
        self._branches = branches
        self._piggyback = piggyback
        self._vocab = vocab

    def admit(self, events: list[RequestEvent], now: float) -> None:
        """Place whom there is a slot for, and those of higher lanes in place of batch requests."""
        scheduler = self._scheduler
        while (sequence := scheduler.place_next(now)) is not None:
            self._start(sequence, events, now)
        while (victim := scheduler.preemption_victim(now)) is not None:
            assert victim.slot is not None
            self._branches.trim(victim.slot.id, 0)
            newcomer = scheduler.preempt(victim, now)
            if newcomer is not None:
                self._start(newcomer, events, now)

    def _start(self, sequence: Sequence, events: list[RequestEvent], now: float) -> None:
        """A request has a slot; it says so the first time."""
        sequence.rode_at = self._piggyback.n_rides
        if not sequence.was_started:
            sequence.was_started = True
            sequence.started_at = now
            sequence.n_cached = sequence.n_past
            sequence.cache_miss = self._cache_miss(sequence.divergence)
            events.append(Started(sequence.id, sequence.n_prompt, sequence.n_cached))

    def _cache_miss(self, divergence: Divergence | None) -> CacheMiss | None:
        if divergence is None:
            return None
        pieces = self._vocab.pieces
        stored, prompt = (
            b"".join([pieces[token] for token in tokens]).decode("utf-8", "replace")
            for tokens in (divergence.stored, divergence.prompt)
        )
        return CacheMiss(divergence.position, stored, prompt)
