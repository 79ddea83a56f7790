"""Figures that are shown: the receipt of one reply, and a snapshot of the engine at work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.values.engine_options import DEFAULT_KV_TYPE


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """The prompt equals a cached one for ``position`` tokens; then the cache has ``stored``, the prompt ``prompt``.

    Both are the text of a few tokens.
    """

    position: int
    stored: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts in tokens, times in seconds on the engine's clock, measured from the moment the engine saw the request.

    ``ttft`` is the time to the first token (0 where none came); ``prefill`` the time from the first prefill step to the
    first token; ``decode`` the time from the first token to the last. ``bytes_per_token`` is the bytes read for each
    decoded token (0 if unknown). ``peak_share`` is the read rate as a share of the measured bandwidth, including the
    requests that ran at the same time. ``speedup`` compares with observed plain steps: 1 if nothing was drafted, None
    if too few were seen. ``plain_seconds`` is the time per token without drafts, from the same steps; it is None also
    while other programs use the cores. ``cache_miss`` is None if the prompt continues a cached one, or shares no
    beginning with any. Of the tokens that draft models and heads proposed, ``n_judged`` could be compared with the
    target's own, and ``n_right`` of them were equal. ``kv_type`` is the type of the KV cache.
    """

    n_prompt: int = 0
    n_cached: int = 0
    n_generated: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    n_judged: int = 0
    n_right: int = 0
    queued: float = 0.0
    ttft: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    total: float = 0.0
    seed: int | None = None
    bytes_per_token: float = 0.0
    peak_share: float | None = None
    speedup: float | None = 1.0
    plain_seconds: float | None = None
    cache_miss: CacheMiss | None = None
    kv_type: str = DEFAULT_KV_TYPE

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens evaluated per second (cached tokens do not count)."""
        return (self.n_prompt - self.n_cached) / self.prefill if self.prefill > 0 else 0.0

    @property
    def decode_rate(self) -> float:
        """Generated tokens per second after the first (OTPS)."""
        return (self.n_generated - 1) / self.decode if self.decode > 0 and self.n_generated > 1 else 0.0


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
