"""Sequences without a model, for tests of what only decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from core.kv_cache.slot import Slot
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.sequence import Sequence
from core.values.request import Lane, Request


def sequence(order: int, n_pending: int, n_past: int = 0, lane: Lane = Lane.STANDARD, at: float = 0.0) -> Sequence:
    """Return the request ``str(order)`` with so many tokens in the cache and to evaluate; it came at ``at``."""
    sampler = cast(Any, SimpleNamespace(seed=1))
    prompt = np.zeros(n_past + n_pending, np.int32)
    made = Sequence(PreparedRequest(Request(str(order), "x", lane=lane), prompt, sampler), order=order, submitted_at=at)
    made.slot = Slot(order)
    made.n_past += n_past
    return made
