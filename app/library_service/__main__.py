"""``python -m app.library_service``: answers requests on stdin, one line of JSON each, until stdin ends.

The server writes them, with fields that it has checked: {"id": 3, "ask": "ShowModel", "with": {"name": "..."}}
With the number alone, nobody waits for that answer any more: {"id": 3}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

from app.library_service.outbox import Outbox, Stop
from app.library_service.service import LibraryService
from models.formatting.json_values import value_of
from models.library.requests import ROUTES

N_THREADS = 8  # of requests that are answered at the same time: many wait for the network


def main() -> None:
    """Serve until stdin ends; then leave at once: what has arrived of a download is on disk."""
    if hasattr(os, "nice"):
        os.nice(5)  # hashing a model must not slow the one that answers
    outbox = Outbox(os.dup(sys.stdout.fileno()))
    # Output of a library must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    service, threads = LibraryService(outbox.tell), ThreadPoolExecutor(N_THREADS, "library")
    service.start()
    kinds = {route.request.__name__: route.request for route in ROUTES}
    stops: WeakValueDictionary[int, Stop] = WeakValueDictionary()  # of what is going on
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        number = asked["id"]
        if "ask" in asked:
            stops[number] = stop = Stop()
            answer = service.take(value_of(kinds[asked["ask"]], asked["with"]), stop)
            threads.submit(_answer, answer, outbox, number)
        elif (unwanted := stops.get(number)) is not None:
            unwanted.set()
    service.stop()
    threads.shutdown(wait=False, cancel_futures=True)
    # Leave at once: threads may wait for the network much longer.
    os._exit(0)


def _answer(ask: Callable[[], Any], outbox: Outbox, number: int) -> None:
    try:
        answer = ask()
        if isinstance(answer, Iterator):
            for part in answer:
                outbox.answer(number, part, has_more=True)
            answer = None
        outbox.answer(number, answer)
    except Exception as error:
        from app.library.trouble import trouble_of

        # Whatever it was, the client gets a sentence: the traceback of a thread helps nobody.
        outbox.refuse(number, trouble_of(error))


if __name__ == "__main__":
    main()
