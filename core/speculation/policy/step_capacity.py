"""What the next step has anyway, and what drafts may add to it."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series
from typing import NamedTuple

from core.scheduler.sequence import Sequence


class StepCapacity(NamedTuple):
    """A step has ``n_rows`` rows anyway, which attend to ``kv`` tokens; drafts may add ``room`` rows.

    Trees may have ``n_branches`` side branches altogether, each of which adds ``branch_seconds``. ``n_even`` sequences
    have to bring equally many rows (0: as many as each likes), unless a depth is fixed. ``beside`` are requests that
    decode in the step and are not drafted for. The step should take at most ``target`` seconds, with what proposers
    read of long texts.
    """

    n_rows: int
    kv: int
    room: int
    n_branches: int = 0
    branch_seconds: float = 0.0
    n_even: int = 0
    beside: Series[Sequence] = ()
    target: float = math.inf
