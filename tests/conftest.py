"""What all tests stand on."""

from __future__ import annotations

import signal

# A shell ignores Ctrl-C in what it starts in the background, and so would every program that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
