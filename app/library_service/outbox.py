"""Where answers and news leave for the server: whole lines of JSON, from any thread.

{"id": 3, "value": ..., "more": false}     an answer; its parts but the last have "more"
{"id": 3, "trouble": {"sentence": "..."}}
{"news": "downloads", "value": [...]}      or "quantisings", or "judged": what was found of some rows
{"news": "models"}                         the list has changed
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from models.formatting.json_values import plain
from models.library.values import Trouble

NEWS_SECONDS = 0.2  # between two news; a reader sees no more
_Step = TypeVar("_Step")
_Result = TypeVar("_Result")


class Outbox:
    """Writes to a pipe. When nobody reads any more, the process has nothing left to do."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def answer(self, number: int, value: Any, *, has_more: bool = False) -> None:
        """Send an answer, or a part of one."""
        self._send({"id": number, "value": plain(value), "more": has_more})

    def refuse(self, number: int, trouble: Trouble) -> None:
        """Say why a request cannot be answered."""
        self._send({"id": number, "trouble": plain(trouble)})

    def tell(self, news: str, value: Any) -> None:
        """Send a piece of news."""
        self._send({"news": news, "value": plain(value)})

    def _send(self, message: dict[str, Any]) -> None:
        # Names of files may hold what UTF-8 cannot; ASCII carries everything, and no line feed of its own.
        left = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            try:
                while left:
                    left = left[os.write(self._pipe, left) :]
            except OSError:
                os._exit(0)


class ChangeNotifier:
    """Calls ``tell``, from a thread, after something has changed: soon, and not more often than it can be shown."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._telling = tell, threading.Lock()
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

    def tell(self) -> None:
        """Tell at once; what was told before is older."""
        with self._telling:
            self._tell()

    def _tell_of_changes(self) -> None:
        while True:
            self._changed.wait()
            if self._is_over.is_set():
                return
            self._changed.clear()
            self.tell()
            self._is_over.wait(NEWS_SECONDS)


class Stop:
    """Ends a piece of work that was asked for, also before it has begun; may be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._ends: list[Callable[[], object]] = []

    def set(self) -> None:
        """End the work."""
        with self._lock:
            self._is_set = True
            ends, self._ends = self._ends, []
        for end in ends:
            end()

    def is_set(self) -> bool:
        """Whether it is wanted no more."""
        return self._is_set

    def calls(self, end: Callable[[], object]) -> None:
        """Call ``end``, once, as soon as the work is wanted no more: at once where that is so already."""
        with self._lock:
            if not self._is_set:
                self._ends.append(end)
                return
        end()


def steps_of(run: Callable[[Callable[[_Step], None]], _Result]) -> Generator[_Step, None, _Result]:
    """Run on a thread: yield the steps that it reports and return its result; raises what it raises."""
    steps: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
    threads = ThreadPoolExecutor(1, "followed")
    try:
        result = threads.submit(run, steps.put)
        result.add_done_callback(lambda _: steps.put(None))  # behind the last step
        yield from iter(steps.get, None)
        return result.result()
    finally:
        threads.shutdown(wait=False)
