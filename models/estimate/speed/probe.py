"""What a few seconds of measuring say about one device: how fast it multiplies each tensor type, and what it waits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

_MOST_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class Probe:
    """Measurements of one device.

    ``weights`` maps tensor types to bytes per second of a matrix times one row, ``cached`` KV types to bytes per second
    of attention. ``node`` is the seconds of an operation so small that it only costs being started, and ``row`` what
    a further row adds to a step, as a share of a step of one row. ``cache`` is how many bytes of weights the device
    finds in its own cache when they are read once more (0: none), ``near`` is ``weights`` for such few.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    cached: Mapping[str, float] = field(default_factory=dict)
    node: float = 0.0
    row: float = 0.0
    near: Mapping[str, float] = field(default_factory=dict)
    cache: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rates = {"weights": dict(self.weights), "cached": dict(self.cached), "near": dict(self.near)}
        return {**rates, "node": self.node, "row": self.row, "cache": self.cache}


def probe_of(fields: object) -> Probe | None:
    """The probe in a JSON object; None where it is none, or has values that no machine has."""
    if not isinstance(fields, dict):
        return None
    weights, cached = _rates(fields.get("weights")), _rates(fields.get("cached"))
    node, row, cache = fields.get("node"), fields.get("row"), fields.get("cache", 0.0)
    if not weights or not _is_number(node) or not _is_number(row) or not _is_number(cache):
        return None
    return Probe(weights, cached, node, row, _rates(fields.get("near")), cache)


def _rates(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or len(value) > _MOST_ENTRIES:
        return {}
    return {str(name): rate for name, rate in value.items() if _is_number(rate) and rate > 0}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
