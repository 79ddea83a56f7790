"""News at a pace that a window can show."""

from __future__ import annotations

import threading
from collections.abc import Callable

NEWS_SECONDS = 0.2


class ChangeNotifier:
    """Calls ``tell``, from a thread, after something has changed: soon, and not more often than it can be shown."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._changed, self._is_over = threading.Event(), threading.Event()

    def start(self) -> None:
        """Tell from now on."""
        threading.Thread(target=self._tell_of_changes, daemon=True).start()

    def stop(self) -> None:
        """Tell no more."""
        self._is_over.set()
        self._changed.set()

    def note(self) -> None:
        """Something has changed."""
        self._changed.set()

    def _tell_of_changes(self) -> None:
        while True:
            self._changed.wait()
            if self._is_over.is_set():
                return
            self._changed.clear()
            self._tell()
            self._is_over.wait(NEWS_SECONDS)
