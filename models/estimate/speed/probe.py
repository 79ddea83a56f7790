"""The probe of one device, measured in a few seconds: how fast it multiplies each tensor type, and its overheads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Far above the number of tensor types.
_MOST_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class Probe:
    """Measurements of one device.

    ``weights`` maps tensor types to bytes per second of a matrix times one row, ``cached`` KV types to bytes per second
    of attention. ``node`` is the seconds of a tiny operation, which is all overhead. ``row`` is the time that a further
    row adds, as a share of a step of one row. ``cache`` is how many bytes of weights stay in the device's cache between
    two reads (0: none), ``near`` is ``weights`` for matrices that fit there.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    cached: Mapping[str, float] = field(default_factory=dict)
    node: float = 0.0
    row: float = 0.0
    near: Mapping[str, float] = field(default_factory=dict)
    cache: float = 0.0

    @property
    def is_possible(self) -> bool:
        """Whether these values are possible."""
        tables = (self.weights, self.cached, self.near)
        rates = [rate for table in tables for rate in table.values()]
        is_sane = min(self.node, self.row, self.cache) >= 0 and min(rates, default=0.0) > 0
        return is_sane and max(map(len, tables)) <= _MOST_ENTRIES and bool(self.weights)
