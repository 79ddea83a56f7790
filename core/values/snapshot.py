"""The engine's present state, as figures for its gauges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Bottleneck(StrEnum):
    """What sets the speed of the steps."""

    BANDWIDTH = "bandwidth"  # reading weights and KV: more rows are nearly free
    COMPUTE = "compute"  # arithmetic: time grows in proportion to the rows
    OVERHEAD = "overhead"  # neither: kernel launches, and work between steps
    UNKNOWN = "unknown"  # the peak of this device was not measured


@dataclass(frozen=True, slots=True)
class LaneCount:
    """Requests of one lane that have a slot, and requests that wait for one."""

    lane: str
    n_running: int
    n_waiting: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Rates are of the last second of work; they are 0 while the engine is idle.

    ``bytes_per_second`` is computed: the weights and the KV that each step must read, over its time. ``peak`` is the
    measured bandwidth (None where it is not known) and ``peak_share`` at most 1. ``is_in_cache``: the model is so small
    that the processor's cache may hold it, so that steps do not read from memory. ``drafted_at[d]`` counts tokens
    drafted at depth d since the model was loaded, ``accepted_at[d]`` the accepted ones of them; ``n_drafted`` and
    ``n_accepted`` are of the last second. ``n_idle_cells`` hold cached prompts that no running request uses;
    ``cache_ram_bytes`` and ``cache_disk_bytes`` are the prompt cache outside of the KV cache. ``n_hit_tokens`` counts
    prompt tokens found in any cache since the model was loaded. ``speedup`` compares with observed plain steps (None:
    too few). ``cheap_rows`` is how many rows a step can have within 1.75
    times the time of one row, by the cost model.
    """

    is_idle: bool = True
    decode_rate: float = 0.0
    prefill_rate: float = 0.0
    bytes_per_second: float = 0.0
    peak: float | None = None
    peak_share: float | None = None
    is_in_cache: bool = False
    bound: Bottleneck = Bottleneck.UNKNOWN
    n_active: int = 0
    n_waiting: int = 0
    lanes: tuple[LaneCount, ...] = ()
    n_cells_used: int = 0
    n_cells: int = 0
    n_idle_cells: int = 0
    n_hit_tokens: int = 0
    cache_ram_bytes: int = 0
    cache_disk_bytes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    drafted_at: tuple[int, ...] = ()
    accepted_at: tuple[int, ...] = ()
    speedup: float | None = None
    cheap_rows: int = 1

    @property
    def acceptance(self) -> float | None:
        """Share of drafted tokens that were accepted in the last second; None where none were drafted."""
        return self.n_accepted / self.n_drafted if self.n_drafted else None
