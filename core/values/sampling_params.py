"""Sampling parameters of a request: a frozen value with llama-server's defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from core.values.errors import BadRequest

MAX_TOP_LOGPROBS = 20
# Each breaker costs a pass over the vocabulary when the request begins.
MAX_BREAKERS = 32


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one request.

    Defaults are those of llama-server (``common_params_sampling`` in llama.cpp's ``common/common.h``).
    ``temperature`` 0 means greedy. ``seed`` None lets the engine draw one, which the receipt then reports.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    ignore_eos: bool = False
    logprobs: bool = False
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadRequest(f"{rule.name} must be a finite number, not {value}.", param=rule.name)
        _between(self, "temperature", 0.0, 100.0)
        _between(self, "top_k", -(2**31), 2**31 - 1)
        _between(self, "top_p", 0.0, 1.0)
        _between(self, "min_p", 0.0, 1.0)
        _between(self, "typical_p", 0.0, 1.0)
        _between(self, "xtc_probability", 0.0, 1.0)
        _between(self, "xtc_threshold", 0.0, 1.0)
        _between(self, "dry_multiplier", 0.0, 100.0)
        _between(self, "dry_base", 0.0, 100.0)
        _between(self, "dry_allowed_length", 0, 1_000_000)
        _between(self, "dry_penalty_last_n", -1, 1_000_000)
        _between(self, "repeat_penalty", 0.01, 100.0)
        _between(self, "repeat_last_n", -1, 1_000_000)
        _between(self, "frequency_penalty", -2.0, 2.0)
        _between(self, "presence_penalty", -2.0, 2.0)
        _between(self, "mirostat_tau", 0.0, 100.0)
        _between(self, "mirostat_eta", 0.0, 1.0)
        _between(self, "top_logprobs", 0, MAX_TOP_LOGPROBS)
        if self.mirostat not in (0, 2):
            raise BadRequest(f"mirostat must be 0 (off) or 2, not {self.mirostat}.", param="mirostat")
        if self.seed is not None:
            _between(self, "seed", -(2**63), 2**64 - 1)
        if self.top_logprobs and not self.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true.", param="top_logprobs")
        _check_breakers(self.dry_sequence_breakers)
        for token, bias in self.logit_bias:
            if token < 0 or math.isnan(bias):
                raise BadRequest(
                    f"logit_bias maps token ids (0 or more) to numbers, not {token} to {bias}.", param="logit_bias"
                )

    @property
    def is_greedy(self) -> bool:
        """True where the most likely token is always taken."""
        return self.temperature == 0.0


def _between(params: SamplingParams, name: str, low: float, high: float) -> None:
    value = getattr(params, name)
    if not low <= value <= high:
        raise BadRequest(f"{name} must be between {low} and {high}, not {value}.", param=name)


def _check_breakers(breakers: tuple[str, ...]) -> None:
    field = "dry_sequence_breakers"
    if len(breakers) > MAX_BREAKERS:
        raise BadRequest(f"{field} takes at most {MAX_BREAKERS} texts, not {len(breakers)}.", param=field)
    if any("\0" in text or text != text.encode(errors="replace").decode() for text in breakers):
        raise BadRequest(f"{field} must be texts without NUL characters and halves of surrogate pairs.", param=field)
