"""``slipstream bench``."""

from __future__ import annotations


def bench() -> None:
    """To be written."""
