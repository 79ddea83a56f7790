"""Measures how long a context's steps take, in a fraction of a second or in few steps, or remembers it."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from core.cost.cost_model import SHARED_READ, Calibration, CostModel, ReadCost, attended, interpolate
from core.cost.threads import ThreadControl
from core.llama.build import KEPT_GRAPHS, OWN_ATTENTION, features
from core.llama.context import Batch, Context, DecodeStatus
from core.llama.devices import list_devices
from core.llama.model import Model
from core.machine.known_machine import Measurements, measurement_key

_log = logging.getLogger(__name__)

# Narrow steps matter most: drafting decides between them. The first four are always measured, wider ones while time is
# left. Kernels take rows in fours or eights, so a fifth row may cost as much as a whole step.
_WIDTHS = (1, 4, 8, 5, 2, 16, 3, 6, 12, 64, 9, 32, 24, 128)
_ALWAYS = _WIDTHS[:4]
_BUDGET_SECONDS = 0.3
# The first step of a width builds its graph, which takes a millisecond or two. Where steps are shorter than _SHORT_STEP
# (seconds), drafts save less than that, so the graphs of the usual draft widths are built in advance. On a GPU too:
# CUDA starts kernels one by one until it records a graph, which it does in the third step that is like the one before
# (ggml_backend_cuda_graph_compute), and first drafts would look as if they did not pay.
_SHORT_STEP, USUAL_WIDTHS = 0.002, range(2, 9)
_STEPS_TO_RECORD = 3
# The widest batch whose graph the builds keep (``slipstream_keeps`` in their patches), and the seconds for recording
# these graphs: enough for a model whose steps take 7 ms.
_WIDEST_KEPT, _RECORDING_SECONDS = 32, 0.5
_REPEATS = 3
# How long a row takes per cached token: measured with _KV_ROWS rows after _FILL tokens, where filling the cache takes
# at most _FILL_SHARE of the budget. Fewer than _LEAST_FILL tokens are too few to measure.
_KV_ROWS, _FILL, _LEAST_FILL, _FILL_SHARE = 4, 256, 128, 0.35
# Bounds of the measured time, relative to the time for reading as many bytes of weights. On a GPU rows share what they
# read; on a CPU each head reads the keys on its own, at a rate below that of weights.
_LEAST_KV, _MOST_KV = 0.25, 20.0
# Cost of a masked cell, as a share of an attended one: in a build with Slipstream's own attention, and in a build that
# goes over cells one by one (measured: 0.01 to 0.02, and 0.2).
_SKIPPED_SHARE, _SKIPPED_SHARE_OF_OTHERS = 0.02, 0.2


@dataclass(frozen=True, slots=True)
class MeasuredContext:
    """A context, the cost of its steps, and the ``clock`` of everything that works on it.

    It has at least ``n_slots`` sequences. ``cost`` predicts the time of its steps, ``reads`` the bytes that they read.
    ``threads`` None keeps its threads.
    """

    context: Context
    cost: CostModel
    n_slots: int
    reads: ReadCost
    threads: ThreadControl | None = None
    clock: Callable[[], float] = time.perf_counter

    @property
    def observe(self) -> Callable[[int, int, float], None]:
        """The function that learns from each step's rows, KV tokens and seconds."""
        return self.threads.observe if self.threads is not None else self.cost.observe


def steps_key(path: str, model: Model, n_gpu_layers: int, *conditions: object) -> str:
    """Return the key of a model's step times: by file, devices, llama.cpp's build, way and ``conditions``."""
    gpus = tuple(device.description for device in list_devices() if device.is_gpu) if n_gpu_layers else ()
    way = (_ALWAYS, SHARED_READ)
    return measurement_key(Path(path).name, model.n_bytes, n_gpu_layers, gpus, features(), way, *conditions)


def cost_model_of(
    context: Context,
    n_ubatch: int,
    measured: Measurements,
    key: str,
    reads: ReadCost,
    make_batch: Callable[[int], Batch] = Batch,
    *,
    skips_masked: bool = False,
    assumed: Calibration | None = None,
) -> CostModel:
    """Return the cost model of a context from the measurement kept under ``key``; without one, measure now.

    ``reads`` is how many bytes its steps read. ``skips_masked`` is for kernels that skip cells that a row does not
    attend to. With ``assumed`` times nothing is measured.
    """
    known = measured.recall(key)
    n_recording = _STEPS_TO_RECORD - 1 if context.is_asynchronous else 0
    try:
        if known is not None:
            seconds = {int(rows): float(took) for rows, took in known["seconds"].items()}
            calibration = Calibration(seconds, float(known["kv_seconds"]), float(known["idle_share"]), n_recording)
            _make_graphs(context, n_ubatch, make_batch, calibration)
            return CostModel(calibration)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        _log.warning("A kept calibration could not be read")
    kv_share = reads.cell / max(reads.weights.read_by(1), 1)
    calibration = assumed or calibrate(context, n_ubatch, kv_share, make_batch=make_batch)
    calibration = replace(calibration, n_recording=n_recording)
    if skips_masked:
        share = _SKIPPED_SHARE if OWN_ATTENTION in features() else _SKIPPED_SHARE_OF_OTHERS
        calibration = replace(calibration, idle_share=share)
    if assumed is None:
        measured.keep(key, asdict(calibration))
        _make_graphs(context, n_ubatch, make_batch, calibration)
    return CostModel(calibration)


def calibrate(
    context: Context,
    n_ubatch: int,
    kv_share: float = 0.0,
    budget: float = _BUDGET_SECONDS,
    make_batch: Callable[[int], Batch] = Batch,
) -> Calibration:
    """Measure the step times of an empty context and return them; the context is empty again afterwards.

    Four widths up to eight rows are always measured; the cost of cached tokens and further widths while ``budget``
    (seconds) lasts. Beyond the widest one, times grow as those that are assumed. A cached token has ``kv_share`` of the
    bytes of the weights. ``make_batch`` makes a batch of a given capacity: rows for draft heads also carry a hidden
    state.
    """
    widest = min(context.n_outputs, n_ubatch, context.n_cells // 2)
    limit = min(n_ubatch, context.n_cells // 2)
    batch = make_batch(max(limit, 1))
    deadline = time.perf_counter() + budget
    seconds: dict[int, float] = {}
    behind = 0.0
    _run(context, batch, 1, 0, widest)
    for width in _WIDTHS:
        if width > limit or (width not in _ALWAYS and time.perf_counter() > deadline):
            continue
        is_short = min(seconds.values(), default=math.inf) < _SHORT_STEP
        seconds[width] = _fastest(context, batch, width, 0, widest, deadline, is_short=is_short)
        if width == _KV_ROWS:
            behind = _kv_slope(context, batch, seconds[width], widest, budget)
    context.clear()
    by_bytes = kv_share * min(seconds.values())
    kv_seconds = min(max(behind, _LEAST_KV * by_bytes), _MOST_KV * by_bytes) if behind else by_bytes
    shares = _GPU_SHARES if context.is_asynchronous else _CPU_SHARES
    return Calibration(plausible(_continued(seconds, shares)), kv_seconds)


def _continued(seconds: Mapping[int, float], shares: Mapping[int, float]) -> dict[int, float]:
    """Return measured times, and beyond the widest step times that grow from there as ``shares`` do."""
    widest = max(seconds)
    scale = seconds[widest] / interpolate(shares, widest)
    return dict(seconds) | {rows: scale * share for rows, share in shares.items() if rows > widest}


def _make_graphs(context: Context, n_ubatch: int, make_batch: Callable[[int], Batch], calibration: Calibration) -> None:
    widest = min(context.n_outputs, n_ubatch, context.n_cells // 2)
    n_each, step = _STEPS_TO_RECORD if context.is_asynchronous else 1, min(calibration.seconds.values())
    takes_long = n_each * len(USUAL_WIDTHS) * step > _BUDGET_SECONDS
    if (step < _SHORT_STEP or context.is_asynchronous) and USUAL_WIDTHS[-1] <= widest and not takes_long:
        batch = make_batch(USUAL_WIDTHS[-1])
        for width in USUAL_WIDTHS:
            for _ in range(n_each):
                _run(context, batch, width, 0, widest)
        context.clear()


def record_graphs(context: Context, n_ubatch: int, cost: CostModel) -> None:
    """Let CUDA record the graphs of all widths that this build keeps, while there is time; the context is empty.

    Else drafts would seem slow in the first steps of each width. Call it when everything else has its memory.
    """
    widest = min(_WIDEST_KEPT, n_ubatch // 4, context.n_outputs, context.n_cells // 2)
    records = context.is_asynchronous and {"CUDA", KEPT_GRAPHS} <= set(features()) and sys.platform != "win32"
    usual = _STEPS_TO_RECORD * len(USUAL_WIDTHS) * cost.time(USUAL_WIDTHS[-1])
    if not records or widest <= USUAL_WIDTHS[-1] or usual > _RECORDING_SECONDS:
        return
    batch, deadline = Batch(widest), time.perf_counter() + _RECORDING_SECONDS
    # Where a GPU has no room for all, those used last stay: the usual ones.
    for width in (*range(USUAL_WIDTHS[-1] + 1, widest + 1), *USUAL_WIDTHS):
        if width in USUAL_WIDTHS or time.perf_counter() < deadline:
            for _ in range(_STEPS_TO_RECORD):
                _run(context, batch, width, 0, widest)
    context.clear()


def _fastest(
    context: Context, batch: Batch, width: int, position: int, widest: int, deadline: float, *, is_short: bool
) -> float:
    """Return the shortest of a few runs, since a disturbance only makes a run longer.

    Where steps are short (``is_short``), one is faster right after another of its width than where steps of one row
    come between, as they mostly do.
    """
    best = float("inf")
    for _ in range(_REPEATS):
        if is_short:
            _run(context, batch, 1, position, widest)
        best = min(best, _run(context, batch, width, position, widest))
        if time.perf_counter() > deadline:
            break
    return best


def _run(context: Context, batch: Batch, width: int, position: int, widest: int) -> float:
    if not context.remove(0, position):
        # A recurrent state cannot be cut back to a position: compute it again.
        _run(context, batch, position, 0, widest)
    batch.clear()
    if width <= widest:
        for row in range(width):
            batch.add(row, position + row, 0)
    else:
        batch.add_run(np.zeros(width, np.int32), position, 0, n_wanted=1)
    began = time.perf_counter()
    if context.decode(batch) is not DecodeStatus.OK:
        raise RuntimeError(f"a step of {width} rows could not be measured")
    context.synchronize()
    return time.perf_counter() - began


def _kv_slope(context: Context, batch: Batch, empty: float, widest: int, budget: float) -> float:
    """Return the seconds that a cached token adds to a row (0: measuring takes too long); ``empty`` is without any."""
    affordable = int(_FILL_SHARE * budget * _KV_ROWS / empty)
    fill = min(_FILL, batch.capacity, context.n_cells // 2, affordable)
    if fill < _LEAST_FILL:
        return 0.0
    _run(context, batch, fill, 0, widest)
    deadline = time.perf_counter() + _FILL_SHARE * budget
    full = _fastest(context, batch, _KV_ROWS, fill, widest, deadline, is_short=empty < _SHORT_STEP)
    return max(full - empty, 0.0) / (attended(_KV_ROWS, fill) - attended(_KV_ROWS, 0))


def plausible(seconds: dict[int, float]) -> dict[int, float]:
    """Return measured times by rows, with impossible values corrected (those steps were disturbed).

    More rows never take less time than fewer rows, and never more time than the same rows split into several narrower
    steps.
    """
    monotone: dict[int, float] = {}
    ceiling = math.inf
    for width in sorted(seconds, reverse=True):
        ceiling = min(ceiling, seconds[width])
        monotone[width] = ceiling
    result: dict[int, float] = {}
    for width in sorted(monotone):
        in_parts = [math.ceil(width / narrower) * took for narrower, took in result.items()]
        result[width] = min([monotone[width], *in_parts])
    return result


# Bytes per second from memory: a first guess, which the first steps correct.
_CPU_RATE, _GPU_RATE = 1e10, 3e11
# Step times by rows, relative to one row (dense 8-bit models; measured on x86 with two cores): few CPUs compute as fast
# as they read. On a GPU rows are nearly free up to a few dozen.
_CPU_SHARES = {1: 1.0, 2: 1.4, 4: 2.0, 8: 3.5, 16: 6.0, 64: 20.0}
_GPU_SHARES = {1: 1.0, 16: 1.1, 64: 1.5}


def assumed_steps(reads: ReadCost, *, is_on_gpu: bool) -> Calibration:
    """Return assumed step times of a model whose steps read as many bytes as ``reads`` says."""
    rate, shares = (_GPU_RATE, _GPU_SHARES) if is_on_gpu else (_CPU_RATE, _CPU_SHARES)
    one = max(reads.weights.read_by(1), 1)
    # Further rows add computing time, and the time to read further experts.
    seconds = {rows: (reads.weights.read_by(rows) + (share - 1.0) * one) / rate for rows, share in shares.items()}
    return Calibration(seconds, reads.cell / rate)
