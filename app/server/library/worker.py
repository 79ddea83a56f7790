"""The library's process as the server sees it: started when it is first needed, and again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from app.client.server_process import library_command, library_environment
from app.server.http.errors import INVALID, SERVER, ApiError, ErrorAnswer
from models.formatting.json_values import plain, value_of
from models.formatting.program import PROGRAM_FOLDER
from models.formatting.sentence import Sentence
from models.library.values import TroubleKind

if TYPE_CHECKING:
    from fastapi import Request as HttpRequest

BACK_OFF_SECONDS = (0.5, 1.0, 2.0, 4.0)
STEADY_SECONDS = 60.0  # a process that lived this long may fail again as often as a new one
LEAVE_SECONDS = 2.0
WORDS_SECONDS = 0.5
# A line holds a hundred models or a repository at most; this is far beyond both.
MAX_LINE_BYTES = 64 << 20
MOST_NEWS = 10_000  # of a client that reads none of it
LOST, RETURNED, GAVE_UP = "lost", "returned", "gave_up"
STOPPED = Sentence("The library stopped in the middle of this and is starting again. Try again.")
STATUSES = {
    TroubleKind.SETTING: 400,
    TroubleKind.REFUSED: 400,
    TroubleKind.UNUSABLE: 400,
    TroubleKind.CANCELLED: 400,
    TroubleKind.OTHER: 400,
    TroubleKind.ACCESS: 403,
    TroubleKind.MISSING: 404,
    TroubleKind.FAILED: 500,
    TroubleKind.OFFLINE: 503,
}
_log = logging.getLogger("slipstream.library")
News = dict[str, Any]


class LibraryTrouble(ApiError):
    """The library could not do what it was asked for; ``code`` is the kind of trouble."""

    def __init__(self, trouble: Mapping[str, Any]) -> None:
        """``trouble`` is a ``Trouble`` as JSON has it."""
        kind = TroubleKind(trouble["kind"])
        status = STATUSES[kind]
        super().__init__(
            ErrorAnswer(status, SERVER if status >= 500 else INVALID, kind.value), value_of(str, trouble["sentence"])
        )
        self._remedies = {name: trouble[name] for name in ("remedies", "about") if trouble.get(name)}

    def body(self) -> dict[str, Any]:
        """Return the JSON object of the error, with what helps."""
        body = super().body()
        body["error"] |= self._remedies
        return body


class LibraryStopped(ApiError):
    """The library's process is not there; where it is on its way again, the same request may succeed."""

    def __init__(self, sentence: str = STOPPED, *, may_retry: bool = True) -> None:
        super().__init__(ErrorAnswer(503, SERVER, "library_stopped", may_retry), sentence)


class LibraryWorker:
    """Asks the library's process. Used from the event loop alone."""

    def __init__(
        self,
        command: Callable[[], list[str]] = library_command,
        environment: Callable[[], Mapping[str, str]] = library_environment,
        back_off: tuple[float, ...] = BACK_OFF_SECONDS,
    ) -> None:
        self._command, self._environment, self._back_off = command, environment, back_off
        self._process: Process | None = None
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_words: deque[str] = deque(maxlen=30)
        self._began = 0.0
        self._n_failures, self._number = 0, 0
        self._asked: dict[int, asyncio.Queue[News]] = {}
        self._listeners: set[asyncio.Queue[News | None]] = set()
        # The work that is going on, for clients that begin to listen later.
        self._now: dict[str, Any] = {"downloads": [], "quantisings": []}
        self._closing = asyncio.Event()

    async def ask(self, name: str, fields: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the parts of the answer as JSON has them; raises LibraryTrouble and LibraryStopped.

        Where nobody waits for the end of it, what can be stopped is.
        """
        process = await self._running()
        self._number += 1
        number, answers, is_over = self._number, asyncio.Queue[News](), False
        self._asked[number] = answers
        try:
            await _write(process, {"id": number, "ask": name, "with": fields})
            while True:
                answer = await answers.get()
                is_over = not answer.get("more")
                if "stopped" in answer:
                    raise LibraryStopped
                if (trouble := answer.get("trouble")) is not None:
                    raise LibraryTrouble(trouble)
                if answer.get("more"):
                    yield answer["value"]
                    continue
                if answer.get("value") is not None:
                    yield answer["value"]
                return
        finally:
            self._asked.pop(number, None)
            if not is_over and process.stdin is not None and not process.stdin.is_closing():
                process.stdin.write(_line({"id": number}))

    async def news(self) -> AsyncGenerator[News, None]:
        """Yield what is going on, and then what happens, until the server is stopped.

        While somebody listens, the process is started again when it dies.
        """
        await self._running()
        heard: asyncio.Queue[News | None] = asyncio.Queue(MOST_NEWS)
        for name, value in self._now.items():
            heard.put_nowait({"news": name, "value": value})
        self._listeners.add(heard)
        try:
            while (news := await heard.get()) is not None:
                yield news
        finally:
            self._listeners.discard(heard)

    def close(self) -> None:
        """Begin to leave: whoever waits or listens is told so."""
        self._closing.set()
        self._fail_open()
        for heard in self._listeners:
            with contextlib.suppress(asyncio.QueueFull):
                heard.put_nowait(None)

    async def end(self) -> None:
        """End the process; what has arrived of downloads is on disk."""
        self.close()
        async with self._starting:
            process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), LEAVE_SECONDS)
            except TimeoutError:
                _kill(process)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _running(self) -> Process:
        """Return the process, started if need be; raises LibraryStopped."""
        async with self._starting:
            if self._process is None:
                self._process = await self._started()
            self._refuse_if_closing()  # also where that came while it started
            return self._process

    async def _started(self) -> Process:
        if self._n_failures > len(self._back_off):
            self._n_failures = len(self._back_off)  # the next who asks tries again
            raise self._no_hope()
        if self._n_failures:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._back_off[self._n_failures - 1])
        self._refuse_if_closing()
        try:
            process = await self._spawned()
        except OSError as error:
            self._last_words.append(str(error))
            raise self._no_hope() from error
        self._began = time.monotonic()
        self._follow(self._read(process))
        return process

    def _refuse_if_closing(self) -> None:
        if self._closing.is_set():
            raise LibraryStopped(Sentence("The server is stopping."), may_retry=False)

    async def _spawned(self) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=MAX_LINE_BYTES,
            cwd=PROGRAM_FOLDER,
            env=self._environment(),
            # Ctrl-C in a terminal is the server's to understand.
            start_new_session=sys.platform != "win32",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def _no_hope(self) -> LibraryStopped:
        words = next((line for line in reversed(self._last_words) if line), "it ended without a word")
        return LibraryStopped(Sentence("The library cannot start: {words}", words=words), may_retry=False)

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        words = asyncio.create_task(self._read_words(process))
        try:
            async for line in process.stdout:
                self._take(line)
        except Exception:
            # Its output cannot be read, so no request would ever get an answer.
            _log.exception("the library's process is ended")
            _kill(process)
        await process.wait()
        # Its own children may hold its stderr open for longer.
        await asyncio.wait({words}, timeout=WORDS_SECONDS)
        words.cancel()
        self._on_end()

    async def _read_words(self, process: Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            words = line.decode("utf-8", "replace").rstrip()
            self._last_words.append(words)
            _log.info("%s", words)

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if "news" not in message:
            asked = self._asked.get(message["id"])
            if asked is not None:
                asked.put_nowait(message)
            return
        if message["news"] in self._now:
            self._now[message["news"]] = message["value"]
        self._tell(message)

    def _tell(self, news: News) -> None:
        for heard in tuple(self._listeners):
            if heard.qsize() < MOST_NEWS - 1:
                heard.put_nowait(news)
            else:
                self._listeners.discard(heard)
                heard.put_nowait(None)

    def _on_end(self) -> None:
        self._process = None
        self._n_failures = 1 if time.monotonic() - self._began > STEADY_SECONDS else self._n_failures + 1
        self._fail_open()
        if self._closing.is_set():
            return
        self._tell({"news": LOST, "value": None})
        # Downloads go on in the next process; these are gone.
        self._now["quantisings"] = []
        self._tell({"news": "quantisings", "value": []})
        self._follow(self._revive())

    async def _revive(self) -> None:
        if not self._listeners:
            return
        try:
            await self._running()
        except LibraryStopped as stopped:
            self._tell({"news": GAVE_UP, "value": plain(stopped.message)})
        else:
            self._tell({"news": RETURNED, "value": None})

    def _fail_open(self) -> None:
        for answers in self._asked.values():
            answers.put_nowait({"stopped": True})


def library_of(http: HttpRequest) -> LibraryWorker:
    """Return the library of the server that a request came to."""
    library: LibraryWorker = http.app.state.library
    return library


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        process.kill()


async def _write(process: Process, message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(_line(message))
        await process.stdin.drain()
    except ConnectionError:
        raise LibraryStopped from None


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
