"""What a request waits for before it takes a slot, because waiting saves computing."""

from __future__ import annotations

from typing import Protocol

from core.kv_cache.slot import Slot


class PlacementWait(Protocol):
    """A reason to wait, which ends by itself."""

    @property
    def is_over(self) -> bool:
        """True where there is nothing to wait for any more."""


class SharedPrefixWait:
    """Another request is computing the beginning that this one has in common with it."""

    def __init__(self, leader: Slot, size: int) -> None:
        """Wait until ``leader`` holds ``size`` tokens, or has another request."""
        self._leader = leader
        self._tenancy = leader.n_tenants
        self._size = size

    @property
    def is_over(self) -> bool:
        """True where the leader is there, or left."""
        leader = self._leader
        return leader.is_free or leader.n_tenants != self._tenancy or leader.n_resident >= self._size
