"""The receipt of one reply: the figures shown under it."""

from __future__ import annotations

from dataclasses import dataclass

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
