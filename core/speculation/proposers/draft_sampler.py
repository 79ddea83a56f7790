"""How a drafting model chooses its next token, and how sure it is of it."""

from __future__ import annotations

import math
from collections.abc import Sequence as Series

import numpy as np
import numpy.typing as npt

from core.llama.candidates import Candidates
from core.scheduler.sequence import Sequence
from core.speculation.proposer import ProposedToken

# Evidence is the probability that the drafting model gives its own token.
_EDGES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997])
_MIDDLES = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 0.965, 0.985, 0.99, 0.995)
_TRUST = 0.9
_N_BINS = len(_MIDDLES)
# Sampled tokens have bins of their own: agreement means something else there.
PRIORS = tuple(middle * _TRUST for middle in _MIDDLES) * 2


class DraftSampler:
    """Chooses draft tokens with the request's own sampler and the same keyed noise as the target's.

    So two models that think alike tend to draw the same token also at temperatures above 0.
    """

    def __init__(self, n_vocab: int) -> None:
        """``n_vocab`` is the size of the target's vocabulary; the drafting model's may differ by padding."""
        self._n_vocab = n_vocab
        self._candidates = Candidates(n_vocab)

    def choose(
        self, sequence: Sequence, logits: npt.NDArray[np.float32], position: int, ahead: Series[int] | None = None
    ) -> ProposedToken | None:
        """Return what ``logits``, one for each token of the drafting model, say of ``position``.

        None where the numbers are none or the grammar allows nothing that is known here. The evidence is a bin of
        ``PRIORS``. ``ahead`` are the tokens drafted so far; None where the sequence went on from here already.
        """
        sampler = sequence.sampler
        if len(logits) != self._n_vocab:
            logits = self._fitted(logits)
        top = float(logits.max())
        if not math.isfinite(top):
            return None
        token: int | None
        if sampler.is_plain_greedy and not sampler.banned:
            token = int(logits.argmax())
            chance = 1.0 / float(np.exp(logits - top).sum())
        else:
            weights = np.exp(logits - top)
            token = sampler.guess(logits, position, self._candidates, ahead)
            if token is None:
                return None
            chance = float(weights[token]) / float(weights.sum())
        first_bin = 0 if sampler.params.is_greedy else _N_BINS
        return ProposedToken(token, first_bin + int(np.searchsorted(_EDGES, chance)))

    def _fitted(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the logits of the target's tokens: it cannot read others, and its samplers expect all of them."""
        n_missing = self._n_vocab - len(logits)
        if n_missing <= 0:
            return logits[: self._n_vocab]
        return np.concatenate((logits, np.full(n_missing, -np.inf, np.float32)))
