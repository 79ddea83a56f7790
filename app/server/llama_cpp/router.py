"""Models come and go in the shapes of llama-server's router: load, unload, download, remove, and what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from app.server.calls.model_pool import ModelPool, pool_of
from app.server.calls.schemas import LoadBody
from app.server.chat.model_card import STATUS
from app.server.http.errors import ModelNotFound, refuse
from app.server.http.sse import PING, EventStream, encode_event, while_connected
from app.server.library.pulls import Pull, PullState, asked, begin, meant, pull_state, remove, states
from app.server.library.worker import LibraryWorker, library_of
from app.server.remotes.exchange import model_at_remote
from models.download.progress import DownloadPhase

# How often the engines are looked at, in seconds: often enough for a progress bar.
_LOOK_SECONDS = 0.2
_STAGE = "text_model"  # the parts of a load are not told apart here


async def load_model(body: LoadBody, http: HttpRequest) -> Response:
    """Begin to load a model; GET /models says when it is there."""
    await pool_of(http).request_load(body.model)
    return _done()


async def unload_model(body: LoadBody, http: HttpRequest) -> Response:
    """Unload a model as soon as no call has it, or cancel its download."""
    try:
        await pool_of(http).request_unload(body.model)
    except ModelNotFound:
        running = [one for one in await states(library_of(http)) if not one.is_over and _name(one.pull) == body.model]
        if not running:
            raise
        await asked(library_of(http), "CancelDownload", number=running[0].number)
    return _done()


async def download_model(body: LoadBody, http: HttpRequest) -> Response:
    """Begin to download a model, OWNER/REPOSITORY:QUANTISATION; GET /models/sse says how far it is."""
    there = await model_at_remote(http, body.model)
    pull = None if there else await while_connected(http.receive, meant(library_of(http), pool_of(http), body.model))
    if pull is None:
        raise refuse(400, f"The model {body.model[:200]!r} is here: load it with POST /models/load.", param="model")
    await begin(library_of(http), pull)
    return _done()


async def remove_model(http: HttpRequest) -> Response:
    """Move the downloaded model that the query names to the trash."""
    name = http.query_params.get("model", "")
    if not name:
        raise refuse(400, "Name the model in the query, as DELETE /models?model=NAME.", param="model")
    there = await model_at_remote(http, name)
    if there is not None:
        raise refuse(400, f"{there.name} is a model of a remote, and not removed from here.", param="model")
    await remove(library_of(http), pool_of(http), await asyncio.to_thread(pool_of(http).find, name))
    return _done()


async def model_events(http: HttpRequest) -> Response:
    """Stream loads, downloads and removals as they happen; the library's process is started for it."""
    return EventStream(_events(pool_of(http), library_of(http)))


async def _events(pool: ModelPool, library: LibraryWorker) -> AsyncGenerator[bytes, None]:
    told = _Told(pool, set(await asyncio.to_thread(pool.names)))
    async with aclosing(library.news()) as news:
        yield PING  # the client sees that it is connected
        coming = asyncio.ensure_future(anext(news, None))
        try:
            while not pool.is_closing:
                await asyncio.wait([coming], timeout=_LOOK_SECONDS)
                found = [*told.of_engines()]
                if coming.done():
                    if (one := coming.result()) is None:
                        return
                    if one["news"] == "downloads":
                        found += told.of_downloads([pull_state(job) for job in one["value"]])
                    elif one["news"] == "models":
                        found += told.of_list(set(await asyncio.to_thread(pool.names)))
                    coming = asyncio.ensure_future(anext(news, None))
                for event in found:
                    yield encode_event(event)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


class _Told:
    """What one client was told, so that it hears of changes alone."""

    def __init__(self, pool: ModelPool, names: set[str]) -> None:
        self._pool, self._names = pool, names
        self._engines = dict(_engines(pool))
        self._downloads: dict[Pull, PullState] | None = None  # before the first list

    def of_engines(self) -> Iterator[dict[str, Any]]:
        """Yield what is new of the engines."""
        now = dict(_engines(self._pool))
        for name, data in now.items():
            before = self._engines.get(name)
            if data != before:
                was = before["status"] if before is not None else "unloaded"
                if (was, data["status"]) == ("unloaded", "loaded"):  # between two looks
                    yield {"model": name, "event": "model_status", "data": _loading(1.0)}
                begins = data["status"] == "loading" and was != "loading"
                yield {"model": name, "event": "model_status" if begins else "status_change", "data": data}
        for name, before in self._engines.items():
            if name not in now and before["status"] != "unloaded":
                yield {"model": name, "event": "status_change", "data": {"status": "unloaded", "exit_code": 0}}
        self._engines = now

    def of_downloads(self, listed: list[PullState]) -> Iterator[dict[str, Any]]:
        """Yield what is new of the downloads."""
        before, self._downloads = self._downloads, {one.pull: one for one in listed}
        for pull, one in self._downloads.items():
            earlier = before.get(pull) if before is not None else None
            if one.is_over:
                if earlier is not None and not earlier.is_over:
                    yield _ended(pull, is_good=one.phase is DownloadPhase.DONE)
            elif one != earlier:
                done = {"done": one.n_done, "total": one.n_total}
                data = {"progress": {f"https://huggingface.co/{pull.repo_id}": done}}
                yield {"model": _name(pull), "event": "download_progress", "data": data}
        for pull, earlier in (before or {}).items():
            if pull not in self._downloads and not earlier.is_over:  # cancelled
                yield _ended(pull, is_good=False)

    def of_list(self, names: set[str]) -> Iterator[dict[str, Any]]:
        """Yield which models are gone, and that the list is another."""
        gone, self._names = self._names - names, names
        for name in sorted(gone):
            yield {"model": name, "event": "model_remove"}
        yield {"model": "*", "event": "models_reload"}


def _engines(pool: ModelPool) -> Iterator[tuple[str, dict[str, Any]]]:
    for host in pool.hosts:
        if host.entry is None:
            continue
        status = STATUS[host.state.phase]
        if status == "loading":
            yield host.name, _loading(host.state.progress)
        elif status == "loaded":
            yield host.name, {"status": status}
        else:
            yield host.name, {"status": "unloaded", "exit_code": int(status == "failed")}


def _loading(progress: float) -> dict[str, Any]:
    stages = {"stages": [_STAGE], "current": _STAGE, "value": round(progress, 3)}
    return {"status": "loading", "progress": stages}


def _ended(pull: Pull, *, is_good: bool) -> dict[str, Any]:
    return {"model": _name(pull), "event": "download_finished" if is_good else "download_failed", "data": {}}


def _name(pull: Pull) -> str:
    return f"{pull.repo_id}:{pull.wanted}"


def _done() -> Response:
    return JSONResponse({"success": True})
