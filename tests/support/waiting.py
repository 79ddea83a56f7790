"""Waiting for something that happens elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar("_Found")


def until(find: Callable[[], _Found], seconds: float = 60.0, pause: float = 0.02) -> _Found:
    """Return what ``find`` gives as soon as that is true; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain"
        time.sleep(pause)
    return found
