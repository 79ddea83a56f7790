"""What all tests stand on."""

from __future__ import annotations

import os
import signal

import pytest

# A shell ignores Ctrl-C in what it starts in the background, and so would every program that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_MOST_WORKERS = 4


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many a test waits for a process that it started."""
    return min((os.cpu_count() or 1) + 1, _MOST_WORKERS)
