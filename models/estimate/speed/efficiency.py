"""The seconds that each kind of work costs on a machine: guessed before the first run, and learnt from runs. Pure.

A decoded token takes the sum of amounts (``work.py``) times constants: bytes of each tensor type over the
rate at which the device reads and multiplies that type, and a time for each layer and each step. Before the first run
the constants come from a probe of the device, or from its bandwidth alone. Each of them is a guess with a spread, and
runs move them (``learn``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from models.estimate.speed.probe import Probe
from models.estimate.speed.work import EXPERT_LAYER, LAYER, LINK, STATE, STEP, Amounts, cached, experts, near, weights
from models.gguf.tensor_types import BY_NAME

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Rate of a matrix times one row as a share of the measured bandwidth: what this probe found on processors with AVX2,
# where unpacking small types takes longer than reading them.
_USUAL_SHARE = {
    "F32": 0.95, "F16": 0.9, "BF16": 0.8, "Q8_0": 0.8, "Q6_K": 0.75, "Q5_K": 0.65, "Q4_K": 0.7, "Q3_K": 0.5,
    "Q2_K": 0.5, "Q4_0": 0.65, "Q4_1": 0.65, "Q5_0": 0.5, "Q5_1": 0.5, "IQ4_NL": 0.6, "IQ4_XS": 0.6, "MXFP4": 0.6,
}  # fmt: skip
_RARE_SHARE = 0.35
_USUAL_CACHED = {"F32": 0.2, "F16": 0.2, "BF16": 0.1, "Q8_0": 0.08, "Q4_0": 0.03}
_RARE_CACHED = 0.05
_CACHE_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
# Operations of a layer and of its experts in llama.cpp's graphs, and those around the layers.
_NODES_PER_LAYER, _NODES_PER_EXPERT_LAYER, _NODES_PER_STEP = 40, 20, 100
_USUAL_NODE = {True: 1.2e-6, False: 2e-6}
# Spread (standard deviation of the logarithm) of what was probed, of what the bandwidth alone says, of overheads.
_PROBED, _GUESSED, _OVERHEAD = 0.15, 0.35, 0.5
# Spread of the factor that all constants share, and of runs of one thing on a machine that others use too (standard
# deviations of the logarithm).
_COMMON_SPREAD, _NOISE = 0.25, 0.08
_HUBER = 1.5
_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Constant:
    """Seconds of one unit of an amount, and the spread of that guess."""

    seconds: float
    spread: float


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured run: the amounts of work of a token in the middle of it, and the seconds per token."""

    amounts: Amounts
    seconds: float


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The constants of a machine, by "DEVICE: AMOUNT", learnt from ``n_runs`` runs."""

    constants: Mapping[str, Constant]
    n_runs: int = 0

    def seconds(self, amounts: Amounts) -> float | None:
        """Seconds of a token with these amounts; None if a constant is unknown."""
        if not amounts or any(name not in self.constants for name in amounts):
            return None
        return sum(amount * self.constants[name].seconds for name, amount in amounts.items())


def prior(key: str, *, is_cpu: bool, bandwidth: float | None, probe: Probe | None) -> dict[str, Constant]:
    """The constants of the device ``key`` before any run; empty without its bandwidth and a probe."""
    rates = _rates(bandwidth, probe)
    if not rates:
        return {}
    node = probe.node if probe is not None and probe.node > 0 else _USUAL_NODE[is_cpu]
    found = {
        STEP: Constant(_NODES_PER_STEP * node, _OVERHEAD),
        LAYER: Constant(_NODES_PER_LAYER * node, _OVERHEAD),
        EXPERT_LAYER: Constant(_NODES_PER_EXPERT_LAYER * node, _OVERHEAD),
        STATE: Constant(2.0 / rates["F32"].bytes_per_second, _OVERHEAD),
    }
    for name, rate in rates.items():
        found[weights(name)] = Constant(1.0 / rate.bytes_per_second, rate.spread)
        found[experts(name)] = Constant(1.0 / rate.bytes_per_second, max(rate.spread, _GUESSED))
        quick = max(probe.near.get(name, 0.0) if probe is not None else 0.0, rate.bytes_per_second)
        found[near(weights(name))] = Constant(1.0 / quick, rate.spread)
        found[near(experts(name))] = Constant(1.0 / quick, max(rate.spread, _GUESSED))
    for name in _CACHE_TYPES:
        measured = probe.cached.get(name) if probe is not None else None
        usual = rates["F16"].bytes_per_second / _USUAL_SHARE["F16"] * _USUAL_CACHED.get(name, _RARE_CACHED)
        found[cached(name)] = Constant(1.0 / (measured or usual), _GUESSED if measured else 2 * _GUESSED)
    return {f"{key}: {name}": constant for name, constant in found.items()}


def over_link(key: str, step: Constant, latency: float, bandwidth: float) -> dict[str, Constant]:
    """The constants of the device ``key`` that the network changes; ``step`` is the one without a network.

    A step waits for one round trip: ggml's RPC sends a graph and its inputs without waiting, then asks for the result.
    """
    return {
        f"{key}: {STEP}": Constant(step.seconds + latency, _OVERHEAD),
        f"{key}: {LINK}": Constant(1.0 / bandwidth, _OVERHEAD),
    }


@dataclass(frozen=True, slots=True)
class _Rate:
    bytes_per_second: float
    spread: float


def _rates(bandwidth: float | None, probe: Probe | None) -> dict[str, _Rate]:
    """Bytes per second of every tensor type: as probed, else its usual share of what the device reads."""
    probed = {name.upper(): rate for name, rate in probe.weights.items()} if probe is not None else {}
    shares = {kind.name: _USUAL_SHARE.get(kind.name, _RARE_SHARE) for kind in BY_NAME.values()}
    reads = [rate / shares[name] for name, rate in probed.items() if name in shares]
    base = median(reads) if reads else bandwidth
    if not base or base <= 0 or not math.isfinite(base):
        return {}
    guessed = {name: _Rate(base * share, _GUESSED) for name, share in shares.items()}
    return guessed | {name: _Rate(rate, _PROBED) for name, rate in probed.items() if name in shares}


def learn(before: Mapping[str, Constant], runs: Sequence[Observation]) -> Efficiency:
    """Fit the constants to the runs: one factor for each that runs have used, and a common one for all.

    Maximum a posteriori for log-normal constants and log-normal errors, by Gauss-Newton, with Huber's weights (Huber
    1964), so that runs on a busy machine do little.
    """
    known = [run for run in runs if run.seconds > 0 and run.amounts and run.amounts.keys() <= before.keys()]
    if not known:
        return Efficiency(before)
    import numpy as np  # slow to import, and a machine without runs does not need it

    names = sorted({name for run in known for name in run.amounts})
    parts = np.array([[run.amounts.get(name, 0.0) * before[name].seconds for name in names] for run in known])
    measured = np.log([run.seconds for run in known])
    # The last one is the common factor: a machine that is slower today is slower with every type.
    spread = np.array([*(before[name].spread for name in names), _COMMON_SPREAD])
    moves = _fit(parts, measured, spread)
    common = float(np.exp(moves[-1]))
    moved = {
        name: Constant(before[name].seconds * common * float(np.exp(move)), before[name].spread)
        for name, move in zip(names, moves[:-1], strict=True)
    }
    # Constants that no run has used get the common factor.
    rest = {name: Constant(value.seconds * common, value.spread) for name, value in before.items()}
    return Efficiency(rest | moved, len(known))


def _fit(
    parts: npt.NDArray[np.float64], measured: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Logarithms of the best factors: one per column of ``parts``, and the common one last."""
    import numpy as np

    moves = np.zeros(len(spread))
    for _ in range(_ROUNDS):
        now = parts * np.exp(moves[:-1] + moves[-1])
        total = now.sum(axis=1)
        errors = measured - np.log(total)
        trust = np.minimum(1.0, _HUBER * _NOISE / np.maximum(np.abs(errors), 1e-12)) / _NOISE**2
        slopes = np.hstack([now / total[:, None], np.ones((len(total), 1))])
        matrix = slopes.T @ (slopes * trust[:, None]) + np.diag(spread**-2)
        step = np.linalg.solve(matrix, slopes.T @ (trust * errors) - moves / spread**2)
        moves += np.clip(step, -0.5, 0.5)
        if np.abs(step).max() < 1e-6:
            break
    return moves
