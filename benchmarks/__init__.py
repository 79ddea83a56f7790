"""Benchmarks: what is compared runs side by side in one run, so that a busy machine does not distort the ratios."""

from __future__ import annotations

import os
import signal
import sys
from types import TracebackType


def _without_interrupts(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


# No traceback for Ctrl-C during a benchmark's imports.
sys.excepthook = _without_interrupts
if os.name == "posix":
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # `bench` has blocked it while Python started
