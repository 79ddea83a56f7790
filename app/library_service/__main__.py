"""``python -m app.library_service``: answers requests on stdin, one line of JSON each, until stdin ends."""

from __future__ import annotations

import os
import sys

from app.library_service.outbox import LineWriter
from app.library_service.service import LibraryServer


def main() -> None:
    """Serve until stdin ends; then leave at once: what has arrived of a download is on disk."""
    if hasattr(os, "nice"):
        os.nice(5)  # hashing a model must not slow the one that answers
    outbox = LineWriter(os.dup(sys.stdout.fileno()))
    # What a library prints must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    service = LibraryServer(outbox)
    service.start()
    for line in sys.stdin.buffer:
        service.take(line)
    service.stop()
    # Threads may wait for the network longer than anybody waits for them.
    os._exit(0)


if __name__ == "__main__":
    main()
