"""What a proposer's cache holds for slots that it works for no longer: it makes way for those at work."""

from __future__ import annotations

from collections.abc import Callable

from core.kv_cache.slot import Slot
from core.llama.batch import Batch
from core.llama.context import Context, DecodeStatus


class DraftCacheEviction:
    """Knows for which request each slot was last read.

    The next turn of a conversation begins with what is held of the last one, so that is kept for as long as there is
    room: a proposer has as many cells as its target, and shares none of them between slots.
    """

    def __init__(self, context: Context, drop: Callable[[int], None]) -> None:
        """Texts are in ``context``; ``drop`` frees the cells of a slot."""
        self._context = context
        self._drop = drop
        self._tenancies: dict[int, tuple[Slot, int]] = {}

    def use(self, slot: Slot | None) -> None:
        """A slot is read for the request that has it now."""
        assert slot is not None
        self._tenancies[slot.id] = slot, slot.n_tenants

    def decode(self, batch: Batch) -> bool:
        """Evaluate a batch, False where that fails. While there is no room for it, the oldest idle texts leave."""
        status = self._context.decode(batch)
        while status is DecodeStatus.NO_KV_SLOT and (slot := self._oldest()) is not None:
            del self._tenancies[slot.id]
            self._drop(slot.id)
            status = self._context.decode(batch)
        return status is DecodeStatus.OK

    def _oldest(self) -> Slot | None:
        """Return the slot left longest ago; one that has another request by now only where no other is left."""
        idle = [slot for slot, tenancy in self._tenancies.values() if slot.is_free or slot.n_tenants != tenancy]
        return min(idle, key=lambda slot: (not slot.is_free, slot.last_used), default=None)
