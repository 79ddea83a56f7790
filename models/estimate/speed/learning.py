"""How runs move the constants of a machine. Pure.

Maximum a posteriori for log-normal constants and log-normal errors, by Gauss-Newton, with Huber's weights (Huber 1964),
so that runs on a busy machine do little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from models.estimate.speed.efficiency import Constant, Efficiency, Observation

# Spread of the factor that all constants share, and of runs of one thing on a machine that others use too (standard
# deviations of the logarithm).
_COMMON_SPREAD, _NOISE = 0.25, 0.08
_HUBER = 1.5
_ROUNDS = 40


def learn(before: Mapping[str, Constant], runs: Sequence[Observation]) -> Efficiency:
    """Move the constants as far as the runs say so: those that the runs tell apart, and all of them together."""
    known = [run for run in runs if run.seconds > 0 and run.amounts and run.amounts.keys() <= before.keys()]
    if not known:
        return Efficiency(before)
    names = sorted({name for run in known for name in run.amounts})
    parts = np.array([[run.amounts.get(name, 0.0) * before[name].seconds for name in names] for run in known])
    measured = np.log([run.seconds for run in known])
    # The last one moves all constants: a machine that runs slower today does so with every type.
    spread = np.array([*(before[name].spread for name in names), _COMMON_SPREAD])
    moves = _fit(parts, measured, spread)
    common = float(np.exp(moves[-1]))
    moved = {
        name: Constant(before[name].seconds * common * float(np.exp(move)), before[name].spread)
        for name, move in zip(names, moves[:-1], strict=True)
    }
    # What no run has used moves with its device's others.
    rest = {name: Constant(value.seconds * common, value.spread) for name, value in before.items()}
    return Efficiency(rest | moved, len(known))


def _fit(
    parts: npt.NDArray[np.float64], measured: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Logarithms of the factors, one per column of ``parts`` and a common one, that explain what was measured best."""
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
