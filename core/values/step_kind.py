"""The shape of a step: its kind by the number of rows, and how many outputs it reserves."""

from __future__ import annotations

from enum import IntEnum

# From this many rows on a step counts as wide, as in prefill, and has its own number of threads.
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


def attended(n_rows: int, n_past: int) -> int:
    """Return the KV tokens that ``n_rows`` rows of a text attend to altogether, after ``n_past`` others."""
    return n_rows * n_past + n_rows * (n_rows + 1) // 2


# Bytes of a cache line, and of an output's index.
_LINE_BYTES = 64
_INDEX_BYTES = 4


def whole_lines(n_outputs: int) -> int:
    """Return the next number of outputs whose indices fill whole cache lines.

    All tensors that a step computes follow these indices in one buffer, each aligned to 32 bytes only
    (``TENSOR_ALIGNMENT`` in ggml-backend.cpp). If the indices end in the middle of a line, every second vector read
    crosses a line: with 17 outputs steps of four rows took 2 to 4 % longer than with 16 under flash attention and 8 %
    without it (AVX-512, Q8_0).
    """
    per_line = _LINE_BYTES // _INDEX_BYTES
    return -(-n_outputs // per_line) * per_line
