"""/v1/files and /v1/batches in OpenAI's shapes."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from fastapi import Request as HttpRequest
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.datastructures import UploadFile

from app.jobs.batch.job_file import URLS
from app.server.batches.batch_runner import NOT_OVER, OPEN, BatchRunner
from app.server.batches.file_store import FileStore, Record, is_seen
from app.server.calls.generation import new_id
from app.server.calls.schemas import Text
from app.server.http.body import Body, asked_page
from app.server.http.errors import ApiError, refuse

PURPOSES = ("batch", "vision", "user_data")  # requests of a batch, and images that responses name
_TIMES = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


async def upload_file(http: HttpRequest) -> Response:
    """Store a file of requests or an image, sent as a form with ``file`` and ``purpose``."""
    if not http.headers.get("content-type", "").startswith("multipart/form-data"):
        raise refuse(415, "Send the file as a form: multipart/form-data with file and purpose.")
    try:
        await http.form(max_files=1, max_fields=10)
    except OSError:  # no room on the disk: a client hears of it once all of its body was read
        async for _ in http.stream():
            pass
        raise
    async with http.form() as form:
        file, purpose = form.get("file"), form.get("purpose")
        if not isinstance(file, UploadFile):
            raise refuse(400, "Missing required field: file.", param="file", code="missing_required_parameter")
        if not isinstance(purpose, str) or purpose not in PURPOSES:
            known = f"{', '.join(PURPOSES[:-1])} or {PURPOSES[-1]}"
            raise refuse(400, f"purpose must be {known}, not {str(purpose)[:40]!r}.", param="purpose")
        # A name in UTF-7 may have half of a surrogate pair, with which no list of files could be sent.
        name = (file.filename or "file")[:200].encode("utf-8", "replace").decode()
        record = await asyncio.to_thread(_files(http).copy, file.file, name, purpose)
    return JSONResponse(_shown(record))


async def list_files(http: HttpRequest) -> Response:
    """List the files, the newest first, with ``order`` asc the oldest."""
    found = await asyncio.to_thread(_files(http).all)
    purpose = http.query_params.get("purpose")
    mine = [_shown(one) for one in found if is_seen(one) and purpose in (None, one["purpose"])]
    return JSONResponse(asked_page(http, mine[::-1] if http.query_params.get("order") == "asc" else mine))


async def get_file(file_id: str, http: HttpRequest) -> Response:
    """Return what is known of a file."""
    return JSONResponse(_shown(_file(file_id, http)))


async def get_file_content(file_id: str, http: HttpRequest) -> Response:
    """Return the bytes of a file."""
    record = _file(file_id, http)
    return FileResponse(_files(http).path(record["id"]), media_type="application/octet-stream")


async def delete_file(file_id: str, http: HttpRequest) -> Response:
    """Delete a file that no batch reads."""
    record = _file(file_id, http)
    open_batches = [one for one in _runner(http).batches.all() if one["status"] in NOT_OVER]
    if any(one["input_file_id"] == record["id"] for one in open_batches):
        raise refuse(400, "A batch still reads this file: wait for its end, or cancel it.", param="file_id")
    await asyncio.to_thread(_files(http).delete, record["id"])
    return JSONResponse({"id": record["id"], "object": "file", "deleted": True})


class BatchBody(Body):
    """The body of POST /v1/batches. A batch is run until it is finished, so that no window closes it."""

    input_file_id: str
    endpoint: str
    completion_window: Literal["24h"]
    metadata: dict[Text, Text] | None = None


async def create_batch(body: BatchBody, http: HttpRequest) -> Response:
    """Take a file of requests into the line."""
    if body.endpoint not in URLS:
        raise refuse(400, f"endpoint must be one of {', '.join(URLS)}.", param="endpoint")
    found = _files(http).get(body.input_file_id)
    if found is None or not is_seen(found):
        raise refuse(400, f"There is no file {body.input_file_id[:80]!r} here.", param="input_file_id")
    record: Record = {
        "id": new_id("batch"),
        "object": "batch",
        "endpoint": body.endpoint,
        "errors": None,
        "input_file_id": body.input_file_id,
        "completion_window": body.completion_window,
        "status": "validating",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": int(time.time()),
        "expires_at": None,
        **{f"{status}_at": None for status in _TIMES},
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
        "metadata": body.metadata,
    }
    _runner(http).add(record)
    return JSONResponse(record)


async def list_batches(http: HttpRequest) -> Response:
    """List the batches, the newest first."""
    found = await asyncio.to_thread(_runner(http).batches.all)
    return JSONResponse(asked_page(http, [_batch_shown(one, http) for one in found if is_seen(one)]))


async def get_batch(batch_id: str, http: HttpRequest) -> Response:
    """Return how far a batch is."""
    return JSONResponse(_batch_shown(_batch(batch_id, http), http))


async def cancel_batch(batch_id: str, http: HttpRequest) -> Response:
    """End a batch early; the lines that are finished are kept."""
    record = _batch(batch_id, http)
    if record["status"] not in NOT_OVER:
        raise refuse(400, f"This batch is {record['status']}, so it cannot be cancelled.", param="batch_id")
    await _runner(http).cancel(record["id"])
    return JSONResponse(_shown(_batch(batch_id, http)))


async def pause_batch(batch_id: str, http: HttpRequest) -> Response:
    """Let a batch wait; the lines that are finished are kept, those that run begin anew later."""
    record = _batch(batch_id, http)
    if record["status"] not in OPEN or record.get("paused"):
        state = "paused already" if record.get("paused") else record["status"]
        raise refuse(400, f"This batch is {state}, so it cannot be paused.", param="batch_id")
    await _runner(http).pause(record["id"])
    return JSONResponse(_shown(_batch(batch_id, http)))


async def resume_batch(batch_id: str, http: HttpRequest) -> Response:
    """Let a paused batch go on."""
    record = _batch(batch_id, http)
    if record["status"] not in OPEN or not record.get("paused"):
        raise refuse(400, "This batch is not paused, so it cannot go on.", param="batch_id")
    _runner(http).resume(record["id"])
    return JSONResponse(_shown(_batch(batch_id, http)))


async def remove_batch(batch_id: str, http: HttpRequest) -> Response:
    """Forget a batch that is over, with its files."""
    record = _batch(batch_id, http)
    if record["status"] in NOT_OVER:
        raise refuse(400, "This batch is not over: cancel it first.", param="batch_id")
    others = [one for one in _runner(http).batches.all() if one["id"] != record["id"]]
    for field in ("input_file_id", "output_file_id", "error_file_id"):
        is_shared = any(one[field] == record[field] for one in others)
        if record[field] and not is_shared and _files(http).get(record[field]) is not None:
            await asyncio.to_thread(_files(http).delete, record[field])
    await asyncio.to_thread(_runner(http).batches.delete, record["id"])
    return JSONResponse({"id": record["id"], "object": "batch", "deleted": True})


def _files(http: HttpRequest) -> FileStore:
    files: FileStore = http.app.state.files
    return files


def _runner(http: HttpRequest) -> BatchRunner:
    runner: BatchRunner = http.app.state.batches
    return runner


def _file(file_id: str, http: HttpRequest) -> Record:
    found = _files(http).get(file_id)
    if found is None or not is_seen(found):
        raise _unknown("file", file_id)
    return found


def _batch(batch_id: str, http: HttpRequest) -> Record:
    found = _runner(http).batches.get(batch_id)
    if found is None or not is_seen(found):
        raise _unknown("batch", batch_id)
    return found


def _shown(record: Record) -> Record:
    """Return a record as clients see it."""
    return {name: value for name, value in record.items() if name != "made_by"}


def _batch_shown(record: Record, http: HttpRequest) -> Record:
    """Return a batch as clients see it, with how far its deep replies are, where any is at work."""
    replies = _runner(http).deep_replies(record["id"])
    return _shown(record) | ({"deep": replies} if replies else {})


def _unknown(kind: str, record_id: str) -> ApiError:
    return refuse(404, f"There is no {kind} {record_id[:80]!r} here.", param=f"{kind}_id")
