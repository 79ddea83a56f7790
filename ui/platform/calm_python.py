"""Settings of the Python runtime that keep it from making the window stand still."""

from __future__ import annotations

import gc
import sys

SWITCH_SECONDS = 0.0005


def tune_python() -> None:
    """Tune the collector and the switching of threads for a window.

    A collection that goes through all that was imported takes tens of milliseconds. And each call into Qt gives other
    threads a turn: by default a busy one keeps it for 5 ms, hundreds of times a second.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
