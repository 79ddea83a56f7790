"""Random numbers that depend only on (seed, position, token), so that a draw is the same in any batch.

A counter-based generator (the finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
generators", 2014) replaces a random stream, so a seed gives the same text however requests are batched, and two models
that sample with the same key tend to agree.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1  # arithmetic is that of 64 bits
# Constants of SplitMix64; _UNIT scales 53 bits to [0, 1).
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_U_GOLDEN, _U_MIX_1, _U_MIX_2 = np.uint64(_GOLDEN), np.uint64(_MIX_1), np.uint64(_MIX_2)
_S30, _S27, _S31, _S11 = (np.uint64(bits) for bits in (30, 27, 31, 11))
_UNIT = 2.0**-53  # the mantissa of a double


def draw_seed() -> int:
    """Return a fresh 32-bit seed."""
    return secrets.randbits(32)


def _mix(value: int) -> int:
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, position: int, stream: int = 0) -> float:
    """Return one number in (0, 1) for a position; ``stream`` separates several uses at one position."""
    bits = _mix(_mix(_mix(seed & _MASK) ^ position) ^ (stream + 1))
    return ((bits >> 11) + 0.5) * _UNIT


def gumbel(seed: int, position: int, tokens: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return standard Gumbel noise for each token id at a position, shape of ``tokens``.

    The arg-max of logits plus this noise is a draw from their softmax (Gumbel-max).
    """
    key = np.uint64(_mix(_mix(seed & _MASK) ^ position))
    bits = tokens.astype(np.uint64)
    bits *= _U_GOLDEN
    bits ^= key
    bits += _U_GOLDEN
    bits ^= bits >> _S30
    bits *= _U_MIX_1
    bits ^= bits >> _S27
    bits *= _U_MIX_2
    bits ^= bits >> _S31
    uniforms = ((bits >> _S11).astype(np.float64) + 0.5) * _UNIT
    noise: npt.NDArray[np.float64] = -np.log(-np.log(uniforms))
    return noise
