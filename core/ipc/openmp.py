"""How llama.cpp's OpenMP threads wait for each other: read once, when the library is loaded."""

from __future__ import annotations

WAITING = {
    # Threads that wait must sleep in the end: by default they spin and take the cores from everything else.
    "OMP_WAIT_POLICY": "passive",
    # But a step has hundreds of short waits, and to fall asleep and wake at each of them costs more than the step
    # itself: spinning for a moment first made steps on two cores 1.4 (one row) to 1.9 times (16 rows) as fast as on
    # one, where sleeping at once made them 6 times slower. This count is a fraction of a millisecond: as long as the
    # engine's own work between two steps, so that the next step finds its threads awake.
    "GOMP_SPINCOUNT": "100000",
}
"""Environment of a process that computes."""
