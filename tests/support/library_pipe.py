"""The library's process over real pipes, for tests that are no window."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

from app.client.library_process import library_command, library_environment, library_folder
from models.formatting.json_values import value_of
from models.library.lines import LibraryAnswer, LibraryNews, read_message, request_line
from models.library.requests import ROUTES
from models.library.values import Download, Quantising, Trouble
from tests.support.fork_server import CAN_FORK, ForkedLibrary

SECONDS = 60.0
ANSWERS = {route.request: route.answer for route in ROUTES}


class LibraryPipe:
    """Asks and waits; news is kept."""

    def __init__(self, *, is_forked: bool = CAN_FORK, **environment: str) -> None:
        """Start one as the app does, or, in no time, by a fork of one that has its imports behind it."""
        # The environment is the test's, in which no setting of the user is left.
        merged = {**library_environment(), **environment}
        self.process = _forked(merged) if is_forked else _started(merged)
        self.news: list[LibraryNews] = []
        self._answers: dict[int, queue.Queue[LibraryAnswer]] = {}
        self._changed = threading.Condition()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, request: object) -> Any:
        """Return what answers: a value, several parts as a list, or a Trouble."""
        kind, parts = ANSWERS.get(type(request)), []
        with self.asking(request) as answers:
            while True:
                answer = answers.get(timeout=SECONDS)
                if answer.trouble is not None:
                    return answer.trouble
                if answer.value is not None and kind is not None:
                    parts.append(value_of(kind, answer.value))
                if not answer.has_more:
                    return parts[0] if len(parts) == 1 else parts or None

    @contextlib.contextmanager
    def asking(self, request: object) -> Iterator[queue.Queue[LibraryAnswer]]:
        """Ask, and give the answers as they come."""
        self._number += 1
        answers = self._answers[self._number] = queue.Queue()
        self.write(request_line(self._number, request))
        yield answers

    def get(self, request: object) -> Any:
        """Return what answers; trouble fails the test."""
        answer = self.ask(request)
        assert not isinstance(answer, Trouble), answer
        return answer

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The downloads as they were told last."""
        return next((news.downloads for news in reversed(self.news) if news.name == "downloads"), ())

    @property
    def quantisings(self) -> tuple[Quantising, ...]:
        """The copies being made as they were told last."""
        return next((news.quantisings for news in reversed(self.news) if news.name == "quantisings"), ())

    def wait_for(self, reached: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, SECONDS), self.news[-3:]

    def kill(self) -> None:
        os.kill(self.process.pid, 9)
        self.process.wait()

    def close(self) -> int:
        """End it as the window does; return its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it was killed
            self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = read_message(line)
            with self._changed:
                if isinstance(message, LibraryNews):
                    self.news.append(message)
                else:
                    self._answers[message.id].put(message)
                self._changed.notify_all()


def _forked(environment: dict[str, str]) -> ForkedLibrary:
    return ForkedLibrary(library_folder(), environment)


def _started(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(library_command(), cwd=library_folder(), env=environment, stdin=pipe, stdout=pipe)
