"""This machine as models are judged for it, looked at now and then: a look at GPUs takes half a second."""

from __future__ import annotations

import threading
import time

from app.judging import Here, machine_now

FRESH_SECONDS = 20.0


class MachineWatch:
    """Remembers the last look for some seconds; may be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here: Here | None = None
        self._looked = 0.0

    def now(self) -> Here:
        """Return this machine, as it was some seconds ago at most."""
        with self._lock:
            if self._here is None or time.monotonic() - self._looked > FRESH_SECONDS:
                self._here, self._looked = machine_now(), time.monotonic()
            return self._here
