"""The engine's snapshot as the server sends it. No Qt here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from core.values.snapshot import Bottleneck, Snapshot

_NAMES = frozenset(field.name for field in fields(Snapshot))


def snapshot_from(found: object) -> Snapshot | None:
    """Read the server's object; None where it is not one. What has another type keeps its default."""
    if not isinstance(found, dict):
        return None
    known = {name: value for name, value in found.items() if name in _NAMES}
    return Snapshot(**{name: kept for name, value in known.items() if (kept := _fitting(name, value)) is not None})


def _fitting(name: str, value: object) -> Any:
    if name == "bound":
        return next((bound for bound in Bottleneck if bound.value == value), None)
    if name.endswith("_at"):
        return tuple(int(count) for count in value) if isinstance(value, list) else None
    if name.startswith("is_"):
        return value if isinstance(value, bool) else None
    return value if isinstance(value, int | float) else None
