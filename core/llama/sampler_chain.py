"""A chain of llama.cpp's samplers that narrows candidates without choosing one."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from core.llama.library import L
from core.llama.model import Model
from core.values.request import SamplingParams

TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Candidates:
    """A reusable ``llama_token_data_array`` over numpy memory. Samplers shorten and reorder it.

    ``tokens`` has every token of the vocabulary, ``c`` is the reference that ``llama_sampler_apply`` takes.
    """

    def __init__(self, n_vocab: int) -> None:
        self.tokens = np.arange(n_vocab, dtype=np.int32)
        self._data = np.zeros(n_vocab, TOKEN_DATA)
        self._ids = self._data.view(np.int32)[0::3]
        self._logits = self._data.view(np.float32)[1::3]
        self._array = L.llama_token_data_array()
        self._address = self._data.ctypes.data
        self.c: Any = ctypes.byref(self._array)

    def fill(self, tokens: npt.NDArray[np.integer], logits: npt.NDArray[np.float32]) -> None:
        """Take ``tokens`` with their logits, both of the same length."""
        size = len(tokens)
        self._ids[:size] = tokens
        self._logits[:size] = logits
        self._array.data = ctypes.cast(self._address, L.llama_token_data_p)
        self._array.size = size
        self._array.selected = -1
        self._array.sorted = False

    def view(self) -> npt.NDArray[np.void]:
        """Return the remaining candidates: fields id, logit, p. Valid until the next ``fill``."""
        address = ctypes.cast(self._array.data, ctypes.c_void_p).value
        size = int(self._array.size)
        if address == self._address:
            return self._data[:size]
        # A sampler may return its own buffer.
        raw = (ctypes.c_byte * (size * TOKEN_DATA.itemsize)).from_address(int(address or 0))
        return np.ndarray((size,), TOKEN_DATA, buffer=memoryview(raw))


# Candidates that a truncating sampler keeps at least (``min_keep``).
_FEWEST = 1
# Typical sampling takes the logarithm of every probability: one that is zero as a float makes all of them NaN.
_NEARLY_ZERO = 1e-30


class SamplerChain:
    """The truncating samplers of a request, in llama-server's order (``common_sampler_init``).

    Penalties, DRY, top-n-sigma, top-k, typical, top-p, min-p. XTC, temperature and the choice itself are not in C:
    their randomness is keyed by position (see ``core.sampling.sampler``).
    """

    def __init__(self, model: Model, params: SamplingParams, n_ctx: int) -> None:
        """Build only the samplers that ``params`` enable. Raises nothing; close it explicitly."""
        self._chain: Any = L.llama_sampler_chain_init(L.llama_sampler_chain_default_params())
        self.has_memory = False
        self.is_empty = True
        if params.mirostat == 0:
            self._add_penalties(model, params, n_ctx)
            self._add_truncation(params)

    def apply(self, candidates: Candidates) -> None:
        """Shorten, reorder and reweigh the candidates in place."""
        L.llama_sampler_apply(self._chain, candidates.c)

    def accept(self, token: int) -> None:
        """Tell the penalties that ``token`` was used."""
        if self.has_memory:
            L.llama_sampler_accept(self._chain, token)

    def close(self) -> None:
        """Free the samplers."""
        if self._chain:
            L.llama_sampler_free(self._chain)
            self._chain = None

    def _add(self, sampler: Any) -> None:
        L.llama_sampler_chain_add(self._chain, sampler)
        self.is_empty = False

    def _add_penalties(self, model: Model, params: SamplingParams, n_ctx: int) -> None:
        repeat_last_n = _length(params.repeat_last_n, n_ctx)
        penalties = (params.repeat_penalty, params.frequency_penalty, params.presence_penalty)
        if repeat_last_n and penalties != (1.0, 0.0, 0.0):
            self._add(L.llama_sampler_init_penalties(model.vocab.n_tokens, repeat_last_n, *penalties))
            self.has_memory = True
        dry_last_n = _length(params.dry_penalty_last_n, n_ctx)
        if params.dry_multiplier > 0 and dry_last_n:
            breakers = [text.encode() for text in params.dry_sequence_breakers if text]
            array = (ctypes.c_char_p * max(len(breakers), 1))(*breakers)
            self._add(
                L.llama_sampler_init_dry(
                    model.vocab.c,
                    params.dry_multiplier,
                    params.dry_base,
                    params.dry_allowed_length,
                    dry_last_n,
                    ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p)),
                    len(breakers),
                )
            )
            self.has_memory = True

    def _add_truncation(self, params: SamplingParams) -> None:
        if params.is_greedy:
            return  # the most likely token survives every sampler below
        if params.top_n_sigma > 0:
            self._add(L.llama_sampler_init_top_n_sigma(params.top_n_sigma))
        if params.top_k > 0:
            self._add(L.llama_sampler_init_top_k(params.top_k))
        if params.typical_p < 1.0:
            self._add(L.llama_sampler_init_min_p(_NEARLY_ZERO, _FEWEST))
            self._add(L.llama_sampler_init_typical(params.typical_p, _FEWEST))
        if params.top_p < 1.0:
            self._add(L.llama_sampler_init_top_p(params.top_p, _FEWEST))
        if params.min_p > 0.0:
            self._add(L.llama_sampler_init_min_p(params.min_p, _FEWEST))


def _length(last_n: int, n_ctx: int) -> int:
    """Return how many tokens to remember, at most ``n_ctx``, since the memory is allocated at once."""
    return n_ctx if last_n < 0 else min(last_n, n_ctx)
