"""Runs batches one after the other, each line through this server's own routes in the batch lane.

What is finished is in the result file, so that a batch goes on where it was after a restart or a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from starlette.types import ASGIApp, Receive, Scope, Send

from app.jobs.batch.batch_run import BatchRun, BatchSettings, BatchWork, look_through
from app.jobs.batch.endpoint import BatchEndpoint
from app.jobs.batch.job_file import JobFile
from app.jobs.batch.result_file import ResultFile, Tally
from app.server.batches.file_store import FileStore, Record, RecordFolder
from app.server.chat.deep import DeepReplyProgress, progress_listener
from app.server.http.keys import caller_id
from app.server.http.limits import INTERNAL
from core.values.errors import BadRequest, SlipstreamError
from models.formatting.system_error import lacks_space

_log = logging.getLogger("slipstream.server")
OPEN = ("validating", "in_progress", "finalizing")
NOT_OVER = (*OPEN, "cancelling")
_LINES_PER_SLOT = 2
# A batch for whose results the disk has no room, or that another server of this user runs, is looked at again then.
_AGAIN_SECONDS = 30.0


class BatchRunner:
    """The batches of one server."""

    def __init__(self, folder: Path, files: FileStore, application: ASGIApp, n_slots: Callable[[], int]) -> None:
        """``n_slots`` says how many requests run at once."""
        self.batches = RecordFolder(folder)
        self._files, self._application, self._n_slots = files, application, n_slots
        self._line: asyncio.Queue[str] = asyncio.Queue()
        self._working: asyncio.Task[None] | None = None
        self._running: str | None = None
        self._one: asyncio.Task[None] | None = None
        self._deep: dict[object, DeepReplyProgress] = {}  # by the line of the running batch that is answered deeply
        # Records are changed on the event loop and on threads; the results of a batch are given out once.
        self._changing, self._giving_out = threading.Lock(), threading.Lock()

    def start(self) -> None:
        """Go on with the batches that are not over."""
        records = self.batches.all()
        for record in reversed(records):
            if record["status"] in OPEN and not record.get("paused"):
                self._line.put_nowait(record["id"])
        cancelled = [record["id"] for record in records if record["status"] == "cancelling"]
        self._working = asyncio.ensure_future(self._work(cancelled))

    async def close(self) -> None:
        """Stop; what is not over goes on after the next start."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    def add(self, record: Record) -> None:
        """Take a new batch into the line. Raises OSError."""
        self.batches.put(record)
        self._line.put_nowait(record["id"])

    def deep_replies(self, batch_id: str) -> list[dict[str, Any]]:
        """Return how far the deep replies of a batch are that are at work."""
        return [progress.wire() for progress in self._deep.values()] if batch_id == self._running else []

    async def cancel(self, batch_id: str) -> None:
        """End a batch early; what is finished of it is kept. Raises OSError, and then it can be cancelled again."""
        self._set(batch_id, "cancelling")
        if self._running == batch_id:
            await self._end_running()
        await asyncio.to_thread(self._give_out, batch_id, "cancelled")

    async def pause(self, batch_id: str) -> None:
        """Let a batch wait until ``resume``, also after a restart; what is finished of it is kept. Raises OSError."""
        self._set(batch_id, None, paused=True)
        if self._running == batch_id:
            await self._end_running()

    def resume(self, batch_id: str) -> None:
        """Let a paused batch go on at the end of the line. Raises OSError."""
        self._set(batch_id, None, paused=False)
        self._line.put_nowait(batch_id)

    async def _end_running(self) -> None:
        if self._one is not None:
            self._one.cancel()
            await asyncio.gather(self._one, return_exceptions=True)

    async def _work(self, cancelled: list[str]) -> None:
        for batch_id in cancelled:
            with contextlib.suppress(OSError):  # a disk that is full: again at the next start
                await asyncio.to_thread(self._give_out, batch_id, "cancelled")
        task = asyncio.current_task()
        assert task is not None
        while True:
            self._running = await self._line.get()
            record = self.batches.get(self._running)
            if record is None or record["status"] not in OPEN or record.get("paused"):
                continue
            self._one = asyncio.ensure_future(self._run(record))
            try:
                # Shielded: that this loop is cancelled must reach the batch, and the other way round must not.
                await asyncio.shield(self._one)
            except asyncio.CancelledError:
                if task.cancelling():
                    await self._end_running()
                    raise
            self._running = None

    async def _run(self, record: Record) -> None:
        batch_id = record["id"]
        caller_id.set(record.get("made_by"))  # its lines see what their batch's key may see
        try:
            await self._answer(record)
        except (SlipstreamError, OSError) as error:
            if lacks_space(error):
                _log.warning("batch %s waits: %s", batch_id, error)
                self._try_again(batch_id)
                return
            _log.warning("batch %s ended: %s", batch_id, error)
            problem = {"code": "batch_failed", "message": str(error), "param": None, "line": None}
            await self._fail(batch_id, errors={"object": "list", "data": [problem]})
        except Exception:
            _log.exception("batch %s ended", batch_id)
            await self._fail(batch_id)

    async def _fail(self, batch_id: str, **fields: Any) -> None:
        """End a batch that cannot go on; its finished lines are given out, where the disk lets them."""
        try:
            await asyncio.to_thread(self._give_out, batch_id, "failed", **fields)
        except OSError:
            self._note(batch_id, "failed", **fields)

    def _try_again(self, batch_id: str) -> None:
        asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._line.put_nowait, batch_id)

    async def _answer(self, record: Record) -> None:
        batch_id = record["id"]
        try:
            results = ResultFile(self._result_path(batch_id))
        except BadRequest:
            self._try_again(batch_id)  # another server may leave before it is over
            return
        jobs: JobFile | None = None
        try:
            now = self.batches.get(batch_id)
            if now is None or now["status"] not in OPEN:
                results.withdraw()
                return
            jobs = JobFile(str(self._files.path(record["input_file_id"])))
            work = await asyncio.to_thread(look_through, jobs, results)
            results.begin(work.history)
            self._set(batch_id, "in_progress", request_counts=_counts(work.history.tally, work.n_lines))
            n_parallel = _LINES_PER_SLOT * self._n_slots()
            import httpx

            transport = httpx.ASGITransport(self._inside, raise_app_exceptions=False)
            endpoint = BatchEndpoint("http://localhost", {"Content-Type": "application/json"}, n_parallel, transport)
            run = BatchRun(work, results, endpoint, BatchSettings(n_parallel), self._noter(batch_id, work))
            await run.run()
        finally:
            results.close()
            if jobs is not None:
                jobs.close()
        self._set(batch_id, "finalizing", request_counts=_counts(work.history.tally, work.n_lines))
        await asyncio.to_thread(self._give_out, batch_id, "completed")

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call this server's own routes; whoever made the batch has shown a key."""
        line = object()
        progress_listener.set(partial(self._deep.__setitem__, line))
        try:
            await self._application({**scope, INTERNAL: True}, receive, send)
        finally:
            self._deep.pop(line, None)

    def _noter(self, batch_id: str, work: BatchWork) -> Callable[[Tally], None]:
        last = time.monotonic()

        def note(tally: Tally) -> None:
            nonlocal last
            if time.monotonic() - last >= 1.0:  # a file each second, however many lines
                last = time.monotonic()
                self._note(batch_id, None, request_counts=_counts(tally, work.n_lines))

        return note

    def _note(self, batch_id: str, status: str | None, **fields: Any) -> None:
        """Change a batch where the disk lets it; the result file says what is finished."""
        with contextlib.suppress(OSError):
            self._set(batch_id, status, **fields)

    def _set(self, batch_id: str, status: str | None, **fields: Any) -> bool:
        """Change a batch that is not over; False where it is over. Raises OSError, and then it is as before."""
        with self._changing:
            record = self.batches.get(batch_id)
            if record is None or record["status"] not in NOT_OVER:
                return False
            if status is not None and record["status"] != status:
                fields |= {"status": status, f"{status}_at": int(time.time())}
            self.batches.put(record | fields)
            return True

    def _result_path(self, batch_id: str) -> Path:
        return self.batches.folder / f"{batch_id}.results"

    def _give_out(self, batch_id: str, status: str, **fields: Any) -> None:
        """End a batch: give its finished lines out as two files, those that were answered and those that were not.

        Its record gets ``fields`` too. Whoever ends it first does so. The result file goes last: without it,
        all lines would be run again.
        Raises OSError, and then no file is given out.
        """
        with self._giving_out:
            found = self.batches.get(batch_id)
            if found is None or found["status"] not in NOT_OVER:
                return
            path = self._result_path(batch_id)
            caller_id.set(found.get("made_by"))  # the files are whose the batch is, whoever ends it
            given: Record = {}
            try:
                for field, is_good in (("output_file_id", True), ("error_file_id", False)):
                    name = f"{batch_id}_{'output' if is_good else 'error'}.jsonl"
                    record = self._files.add(name, "batch_output", _writer(path, is_good))
                    if record["bytes"]:
                        given[field] = record["id"]
                    else:
                        self._files.delete(record["id"])
                self._set(batch_id, status, **fields, **given)
            except OSError:
                for file_id in given.values():
                    self._files.delete(file_id)
                raise
            path.unlink(missing_ok=True)


def _writer(path: Path, is_good: bool) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        with path.open("rb") if path.exists() else io.BytesIO() as lines:
            file.writelines(line for line in lines if _is_answered(line) is is_good)

    return write


def _is_answered(line: bytes) -> bool | None:
    """Return whether a line of results has an answer; None for one that was torn by a crash."""
    try:
        response = json.loads(line)["response"]
    except (ValueError, KeyError):
        return None
    return response is not None and response["status_code"] == 200


def _counts(tally: Tally, n_lines: int) -> dict[str, int]:
    return {"total": n_lines, "completed": tally.n_done, "failed": tally.n_failed}
