"""The common part of proposers with a context of their own: choosing tokens, costs, and making room for texts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence as Series
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from core.cost.calibration import MeasuredContext
from core.kv_cache.slot import Slot
from core.llama.context import Batch, DecodeStatus
from core.llama.sampler_chain import Candidates
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.proposer import AcceptanceSample, DraftFailed, ProposedToken

# Evidence is the probability that the drafting model gives its own token.
_EDGES = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997])
_MIDDLES = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 0.965, 0.985, 0.99, 0.995)
# Before anything was judged, this share of that probability is expected.
_TRUST = 0.9
_N_BINS = len(_MIDDLES)
# Sampled tokens have bins of their own, because there agreement also depends on the noise.
PRIORS = tuple(middle * _TRUST for middle in _MIDDLES) * 2


class DraftSampler:
    """Chooses draft tokens with the request's own sampler and the same keyed noise as the target's.

    So two models with similar probabilities tend to draw the same token also at temperatures above 0.
    """

    def __init__(self, n_vocab: int) -> None:
        """``n_vocab`` is the size of the target's vocabulary; the drafting model's may differ by padding."""
        self._n_vocab = n_vocab
        self._candidates = Candidates(n_vocab)

    def choose(
        self, sequence: Sequence, logits: npt.NDArray[np.float32], position: int, ahead: Series[int] | None = None
    ) -> ProposedToken | None:
        """Return the token for ``position`` by ``logits``, shape (n_vocab of the drafting model,).

        None if the logits are not finite or the grammar allows none of these tokens. The evidence is a bin of
        ``PRIORS``. ``ahead`` are the tokens drafted so far; None if the position is already part of the text.
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
        """Return the logits of exactly the target's vocabulary, which its samplers expect."""
        n_missing = self._n_vocab - len(logits)
        if n_missing <= 0:
            return logits[: self._n_vocab]
        return np.concatenate((logits, np.full(n_missing, -np.inf, np.float32)))


class ContextProposer(ABC):
    """Drafts with a context of its own, which it frees.

    The text of a slot is kept as long as there is room, because the next turn of a conversation begins with it. The
    context has as many cells as the target's, and shares none of them between slots.
    """

    name: str

    def __init__(self, own: MeasuredContext, priors: tuple[float, ...], n_vocab: int) -> None:
        """Take over ``own``; ``priors`` are those of the bins of evidence, ``n_vocab`` the target's vocabulary."""
        self.table = AcceptanceTable(priors)
        self.cost = own.cost
        self._observe = own.observe
        self._context = own.context
        self._clock = own.clock
        self.reads = own.reads
        self._bytes_read = 0
        self._sampler = DraftSampler(n_vocab)
        self._samples: list[AcceptanceSample] = []
        # The slots whose texts are held, each with the number of the request that it had (``Slot.n_tenants``).
        self._tenancies: dict[int, tuple[Slot, int]] = {}

    @abstractmethod
    def _drop(self, slot: int) -> None:
        """Drop the text of a slot."""

    def begin(self, sequence: Sequence) -> None:  # noqa: B027 (nothing on purpose)
        """Do nothing: a text is read when drafting first pays."""

    def end(self, sequence: Sequence) -> None:  # noqa: B027
        """Do nothing: the next turn of the conversation begins with this text."""

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round."""
        return self.cost.time(n_chains)

    def first_round_seconds(self, n_chains: int) -> float:
        """Return 0: a first round costs as much as the others."""
        return 0.0

    def take_samples(self) -> list[AcceptanceSample]:
        """Return the samples since the last call."""
        taken, self._samples = self._samples, []
        return taken

    def take_bytes_read(self) -> int:
        """Return the bytes that were read since this was last asked."""
        taken, self._bytes_read = self._bytes_read, 0
        return taken

    def close(self) -> None:
        """Free the context."""
        self._context.close()

    # -- for those that draft -----------------------------------------------------------------------------------

    def _use(self, sequence: Sequence) -> None:
        """Record that a slot's text is that of its present request."""
        slot = sequence.slot
        self._tenancies[slot.id] = slot, slot.n_tenants

    def _decode(self, batch: Batch, sequences: Series[Sequence], n_cells: int | None) -> None:
        """Evaluate a batch for ``sequences``, which attends to ``n_cells`` tokens altogether; None: count no bytes.

        While there is no room, the oldest idle texts are dropped. Raises DraftFailed; the texts of ``sequences`` are
        dropped then.
        """
        status = self._context.decode(batch)
        while status is DecodeStatus.NO_KV_SLOT and (slot := self._oldest_idle()) is not None:
            del self._tenancies[slot.id]
            self._drop(slot.id)
            status = self._context.decode(batch)
        if status is not DecodeStatus.OK:
            self._fail(sequences)
        if n_cells is not None:
            self._bytes_read += self.reads.step(batch.n_tokens, n_cells, len(sequences))

    def _oldest_idle(self) -> Slot | None:
        """Return the least recently used slot whose request has ended; reused slots come last."""
        idle = [slot for slot, tenancy in self._tenancies.values() if slot.is_free or slot.n_tenants != tenancy]
        return min(idle, key=lambda slot: (not slot.is_free, slot.last_used), default=None)

    def _fail(self, sequences: Series[Sequence]) -> NoReturn:
        """Drop the texts of these slots after a failed decode, which also frees their cells."""
        for sequence in sequences:
            self._drop(sequence.slot.id)
        raise DraftFailed(sequences)

    def _compare(self, sequence: Sequence, position: int, guess: ProposedToken | None) -> bool:
        """Record whether a guess equals the token at a position, and return it."""
        if guess is None:
            return False
        was_right = guess.token == int(sequence.tokens.view[position])
        self._samples.append(AcceptanceSample(sequence.id, guess.evidence, was_right))
        return was_right
