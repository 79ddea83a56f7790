"""What all proposers with a context of their own share: its decodes and their cost, whose texts it holds, samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Series
from typing import NoReturn

from core.cost.calibration import MeasuredContext
from core.kv_cache.slot import Slot
from core.llama.batch import Batch
from core.llama.context import DecodeStatus
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.proposer import AcceptanceSample, DraftFailed, ProposedToken
from core.speculation.proposers.draft_sampler import DraftSampler


class ContextProposer(ABC):
    """Drafts with a context of its own, which it frees.

    The next turn of a conversation begins with what is held of the last one, so that is kept for as long as there is
    room: the context has as many cells as the target's, and shares none of them between slots.
    """

    name: str

    def __init__(self, own: MeasuredContext, priors: tuple[float, ...], n_vocab: int) -> None:
        """Take over ``own``; ``priors`` are those of its bins of evidence, ``n_vocab`` the target's vocabulary."""
        self.table = AcceptanceTable(priors)
        self.cost = own.cost
        self._observe = own.observe
        self._context = own.context
        self._clock = own.clock
        self.reads = own.reads
        self._bytes_read = 0
        self._sampler = DraftSampler(n_vocab)
        self._samples: list[AcceptanceSample] = []
        # The slots that were read, and for which of their requests.
        self._tenancies: dict[int, tuple[Slot, int]] = {}

    @abstractmethod
    def _drop(self, slot: int) -> None:
        """Forget what is held for a slot."""

    def begin(self, sequence: Sequence) -> None:  # noqa: B027 (nothing on purpose)
        """Do nothing yet: a text is read when drafting first pays."""

    def end(self, sequence: Sequence) -> None:  # noqa: B027
        """Keep what is held: the next turn of the conversation begins with it."""

    def round_seconds(self, n_chains: int) -> float:
        """Return the expected seconds of a round."""
        return self.cost.time(n_chains)

    def first_round_seconds(self, n_chains: int) -> float:
        """Return nothing: a first round costs what others cost."""
        return 0.0

    def take_samples(self) -> list[AcceptanceSample]:
        """Return what reading along has shown, once."""
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
        """A slot is read for the request that has it now."""
        slot = sequence.slot
        self._tenancies[slot.id] = slot, slot.n_tenants

    def _decode(self, batch: Batch, sequences: Series[Sequence], n_cells: int | None) -> None:
        """Evaluate a batch for ``sequences``, which attends to ``n_cells`` tokens altogether; None: it reads little.

        While there is no room, the oldest idle texts leave. Raises DraftFailed: nothing is known of these slots then.
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
        """Return the slot left longest ago; one that has another request by now only where no other is left."""
        idle = [slot for slot, tenancy in self._tenancies.values() if slot.is_free or slot.n_tenants != tenancy]
        return min(idle, key=lambda slot: (not slot.is_free, slot.last_used), default=None)

    def _fail(self, sequences: Series[Sequence]) -> NoReturn:
        """After a failed decode nothing is known of these slots; where cells were short, others get theirs."""
        for sequence in sequences:
            self._drop(sequence.slot.id)
        raise DraftFailed(sequences)

    def _compare(self, sequence: Sequence, position: int, guess: ProposedToken | None) -> bool:
        """Note whether a guess is what came at a position; return whether it is."""
        if guess is None:
            return False
        was_right = guess.token == int(sequence.tokens.view[position])
        self._samples.append(AcceptanceSample(sequence.id, guess.evidence, was_right))
        return was_right
