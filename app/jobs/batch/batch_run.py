"""Runs the lines that are not finished: many at once, each until it has its one line in the output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.environment.exit_codes import ExitCode
from app.jobs.batch.endpoint import BatchEndpoint, EndpointAnswer, RetryVerdict, ServerGone
from app.jobs.batch.job_file import MAX_LINE, BadBatchLine, BatchRequest, InputLine, JobFile, parse
from app.jobs.batch.result_file import FinishedLines, ResultFile, Tally
from core.values.errors import BadRequest, SlipstreamError

# A line whose request ended with a fault of the server or a dead engine is tried so often altogether.
MAX_TRIES = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 8.0
_SYNC_SECONDS = 5.0  # of answers that a loss of power may cost
_LINES_PER_BREATH = 256  # some milliseconds of reading


class BatchStopped(SlipstreamError):
    """The batch cannot go on now; ``exit_code`` says why to a script."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How a batch is run.

    ``model`` replaces what lines name (None keeps that), ``speed`` is for lines that do not say theirs (None: none).
    ``return_seconds`` is how long a server that went away may take to come back; ``patience_seconds`` how long it may
    turn every line away before the batch ends.
    """

    n_parallel: int
    model: str | None = None
    speed: str | None = "batch"
    return_seconds: float = 60.0
    patience_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class BatchWork:
    """The lines of a batch: ``n_lines`` in all, and what earlier runs have finished of them."""

    jobs: JobFile
    history: FinishedLines
    n_lines: int

    @property
    def n_left(self) -> int:
        """Lines that are not finished."""
        return self.n_lines - self.history.tally.n_lines


def look_through(jobs: JobFile, results: ResultFile) -> BatchWork:
    """Return what there is to do. Raises BadRequest where the output answers an input that is not this one."""
    history = results.read()
    n_lines = n_found = 0
    for line in jobs.lines():
        n_lines += 1
        digest = history.digest(line.number)
        if digest not in (0, line.digest):
            raise BadRequest(
                f"Line {line.number} of {jobs.name} is not the one that {results.path} answers: the input has changed "
                "since. Choose another output file, or give the input back the lines it had (more may be added below)."
            )
        n_found += digest != 0
    n_missing = history.tally.n_lines - n_found
    if n_missing:
        raise BadRequest(
            f"{results.path} answers {n_missing} line{'s' if n_missing > 1 else ''} that {jobs.name} does not have any "
            "more: the input has changed since. Choose another output file, or give the input back what it had."
        )
    return BatchWork(jobs, history, n_lines)


@dataclass(slots=True)
class BatchRun:
    """One run over what is left. ``on_change`` is called after each line and each second."""

    work: BatchWork
    results: ResultFile
    endpoint: BatchEndpoint
    settings: BatchSettings
    on_change: Callable[[Tally], None]
    # Each custom_id with the line that had it first.
    _seen: dict[str, int] = field(default_factory=dict)
    # Lines whose engine died run one at a time, so that the one that kills it is found and takes nobody with it twice.
    _suspects: asyncio.Lock = field(default_factory=asyncio.Lock)
    _returning: asyncio.Lock = field(default_factory=asyncio.Lock)
    _moved_at: float = field(default_factory=time.monotonic)

    @property
    def tally(self) -> Tally:
        """The counts of finished lines, earlier runs included."""
        return self.work.history.tally

    async def run(self) -> None:
        """Finish every line. Raises BatchStopped and OutputFailed; whatever was written by then is whole."""
        lines = self._lines_left()
        ticking = asyncio.ensure_future(self._tick())
        workers = [asyncio.ensure_future(self._work(lines)) for _ in range(self.settings.n_parallel)]
        waiting = set(workers)
        try:
            while waiting:
                finished, _ = await asyncio.wait({ticking, *waiting}, return_when=asyncio.FIRST_COMPLETED)
                for one in finished:
                    one.result()
                waiting -= finished
        finally:
            for task in (ticking, *workers):
                task.cancel()
            await asyncio.gather(ticking, *workers, return_exceptions=True)
            await self.endpoint.close()
            self.results.sync()

    def _lines_left(self) -> Iterator[tuple[InputLine, BatchRequest] | None]:
        """Yield the requests to send, and write down the lines that are none. Of finished lines only the ids are read.

        A None now and then lets requests that run go on while many lines are read that need none.
        """
        for n_read, line in enumerate(self.work.jobs.lines(), 1):
            if n_read % _LINES_PER_BREATH == 0:
                yield None
            is_finished = self.work.history.digest(line.number) != 0
            try:
                job = self._job(line)
            except BadBatchLine as bad:
                if not is_finished:
                    self._write_error(line, bad.custom_id, bad.code, bad.message)
                continue
            if not is_finished:
                yield line, job

    def _job(self, line: InputLine) -> BatchRequest:
        if line.data is None:
            raise BadBatchLine("line_too_long", f"The line has more than {MAX_LINE} bytes: send less at once.")
        job = parse(line.data)
        earlier = self._seen.setdefault(job.custom_id, line.number)
        if earlier != line.number:
            # Not under that id: whoever looks an answer up by it must find the answer.
            raise BadBatchLine(
                "duplicate_custom_id", f"The custom_id {job.custom_id[:80]!r} is that of line {earlier} already."
            )
        return job

    async def _work(self, lines: Iterator[tuple[InputLine, BatchRequest] | None]) -> None:
        for one in lines:
            if one is None:
                await asyncio.sleep(0)
                continue
            line, job = one
            await self._finish(line, job, job.adapted(self.settings.model, self.settings.speed))

    async def _finish(self, line: InputLine, job: BatchRequest, body: dict[str, Any]) -> None:
        """Send a line until it has an answer that can be kept."""
        n_tries, wait, is_suspect = 0, _FIRST_WAIT, False
        while True:
            try:
                answer = await self._send(job.url, body, is_suspect)
            except ServerGone as gone:
                await self._wait_for_return()
                n_tries, is_suspect = n_tries + 1, True
                if n_tries >= MAX_TRIES:
                    message = f"The connection to the server broke {n_tries} times ({gone})."
                    self._write_error(line, job.custom_id, "server_gone", message)
                    return
                continue
            verdict = answer.verdict
            if verdict in (RetryVerdict.ENGINE_DIED, RetryVerdict.FAULT):
                n_tries, is_suspect = n_tries + 1, True
            elif verdict is RetryVerdict.NO_ENGINE:
                n_tries += await self._has_engine(line, answer)
            if verdict is RetryVerdict.FINAL or n_tries >= MAX_TRIES:
                self._write_answer(line, job, answer)
                return
            await self._stand_by(line, answer)
            await asyncio.sleep(wait if answer.retry_after is None else max(wait, answer.retry_after))
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _send(self, url: str, body: dict[str, Any], is_suspect: bool) -> EndpointAnswer:
        if not is_suspect:
            return await self.endpoint.post(url, body)
        async with self._suspects:
            return await self.endpoint.post(url, body)

    async def _stand_by(self, line: InputLine, answer: EndpointAnswer) -> None:
        """Return where it makes sense to ask again. Raises BatchStopped where it does not."""
        verdict = answer.verdict
        if verdict is RetryVerdict.LOCKED_OUT:
            raise BatchStopped(answer.message, ExitCode.UNREACHABLE)
        if verdict is RetryVerdict.LEAVING:
            await self._wait_for_return()
        if verdict is RetryVerdict.BUSY and time.monotonic() - self._moved_at > self.settings.patience_seconds:
            minutes = self.settings.patience_seconds / 60
            raise BatchStopped(f"The server has turned every line away for {minutes:.0f} minutes.", ExitCode.ERROR)

    async def _has_engine(self, line: InputLine, answer: EndpointAnswer) -> bool:
        """Return whether other lines could be answered: then only the model that this one names does not load.

        Raises BatchStopped where no line can.
        """
        state = await self.endpoint.state()
        phase = state.get("phase") if state is not None else None
        if state is not None and phase not in ("ready", "loading", "restarting"):
            raise BatchStopped(f"Line {line.number} cannot be answered: {answer.message}", ExitCode.MODEL)
        return phase == "ready"

    async def _wait_for_return(self) -> None:
        """Wait until the server answers again. Raises BatchStopped where it does not."""
        async with self._returning:
            deadline = time.monotonic() + self.settings.return_seconds
            while (state := await self.endpoint.state()) is None or state.get("phase") in ("loading", "restarting"):
                if state is not None:
                    deadline = time.monotonic() + self.settings.return_seconds
                elif time.monotonic() > deadline:
                    raise BatchStopped("The server went away and did not come back.", ExitCode.UNREACHABLE)
                await asyncio.sleep(_FIRST_WAIT)

    async def _tick(self) -> None:
        synced_at = time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            self.on_change(self.tally)
            if time.monotonic() - synced_at >= _SYNC_SECONDS:
                await asyncio.to_thread(self.results.sync)
                synced_at = time.monotonic()

    def _write_answer(self, line: InputLine, job: BatchRequest, answer: EndpointAnswer) -> None:
        response = {"status_code": answer.status, "request_id": answer.request_id, "body": answer.body}
        self._write(line, job.custom_id, response, None)

    def _write_error(self, line: InputLine, custom_id: str | None, code: str, message: str) -> None:
        self._write(line, custom_id, None, {"code": code, "message": message, "line": line.number})

    def _write(self, line: InputLine, custom_id: str | None, response: object, error: object) -> None:
        record = self.results.append(line.number, line.digest, custom_id, response=response, error=error)
        self.work.history.note(line.number, line.digest)
        self.tally.add(record)
        self._moved_at = time.monotonic()
        self.on_change(self.tally)
