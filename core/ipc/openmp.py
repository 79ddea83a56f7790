"""How llama.cpp's OpenMP threads wait for each other; the library reads it once, when it is loaded."""

from __future__ import annotations

WAITING = {
    # Waiting threads must sleep in the end: by default they spin and take cores from other programs.
    "OMP_WAIT_POLICY": "passive",
    # But a step has hundreds of short waits, and sleeping and waking at each of them costs more than the step itself.
    # With a short spin first, steps on two cores were 1.4 (one row) to 1.9 times (16 rows) as fast as on one; with
    # immediate sleep they were 6 times slower. This count is a fraction of a millisecond, as long as the engine's own
    # work between two steps, so that the threads still spin when the next step begins.
    "GOMP_SPINCOUNT": "100000",
}
"""Environment of a process that computes."""
