"""Kinds of steps by their rows; each kind has its own number of threads and cost."""

from __future__ import annotations

from enum import IntEnum

MANY_ROWS = 32


class StepKind(IntEnum):
    """Kinds of steps by their rows; each has its own number of threads."""

    DECODE = 0  # one row
    FEW = 1
    MANY = 2  # ``MANY_ROWS`` or more


def kind_of(rows: int) -> StepKind:
    """Return the kind of a step of ``rows`` rows."""
    if rows == 1:
        return StepKind.DECODE
    return StepKind.FEW if rows < MANY_ROWS else StepKind.MANY
