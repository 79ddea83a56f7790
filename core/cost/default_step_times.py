"""Assumed step times for models that have not been measured and must not be."""

from __future__ import annotations

from core.cost.cost_model import Calibration
from core.cost.read_cost import ReadCost
from core.values.engine_options import EngineOptions

# Bytes per second from memory: a first guess, which the first steps correct.
_CPU_RATE, _GPU_RATE = 1e10, 3e11
# Step times by rows, relative to one row (dense 8-bit models; measured on x86 with two cores): few CPUs compute as fast
# as they read. On a GPU rows are nearly free up to a few dozen.
_CPU_SHARES = {1: 1.0, 2: 1.4, 4: 2.0, 8: 3.5, 16: 6.0, 64: 20.0}
_GPU_SHARES = {1: 1.0, 16: 1.1, 64: 1.5}


def assumed_for(options: EngineOptions, reads: ReadCost, n_gpu_layers: int) -> Calibration | None:
    """Return assumed step times if ``options`` forbid measuring, else None."""
    return None if options.calibrates else assumed_steps(reads, is_on_gpu=n_gpu_layers > 0)


def assumed_steps(reads: ReadCost, *, is_on_gpu: bool) -> Calibration:
    """Return assumed step times of a model whose steps read as many bytes as ``reads`` says."""
    rate, shares = (_GPU_RATE, _GPU_SHARES) if is_on_gpu else (_CPU_RATE, _CPU_SHARES)
    one = max(reads.weights.read_by(1), 1)
    # Further rows add computing time, and the time to read further experts.
    seconds = {rows: (reads.weights.read_by(rows) + (share - 1.0) * one) / rate for rows, share in shares.items()}
    return Calibration(seconds, reads.cell / rate)
