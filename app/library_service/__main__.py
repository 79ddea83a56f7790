"""``python -m app.library_service``: answers requests on stdin, one line of JSON each, until stdin ends.

The server writes them, with fields that it has checked: {"id": 3, "ask": "ShowModel", "with": {"name": "..."}}
"""

from __future__ import annotations

import json
import os
import sys

from app.library_service.outbox import Outbox
from app.library_service.service import LibraryService
from models.formatting.json_values import value_of
from models.library.requests import ROUTES


def main() -> None:
    """Serve until stdin ends; then leave at once: what has arrived of a download is on disk."""
    if hasattr(os, "nice"):
        os.nice(5)  # hashing a model must not slow the one that answers
    outbox = Outbox(os.dup(sys.stdout.fileno()))
    # What a library prints must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    service = LibraryService(outbox)
    service.start()
    kinds = {route.request.__name__: route.request for route in ROUTES}
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        service.take(asked["id"], value_of(kinds[asked["ask"]], asked["with"]))
    service.stop()
    # Threads may wait for the network longer than anybody waits for them.
    os._exit(0)


if __name__ == "__main__":
    main()
