"""Downloads that the protocols of other servers ask for: what a name means, and how far its download is."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.environment.paths import models_folder
from app.server.calls.model_pool import ModelPool
from app.server.http.errors import ModelNotFound, refuse
from app.server.library.worker import LibraryStopped, LibraryTrouble, LibraryWorker
from models.catalog.catalog import ModelEntry
from models.catalog.curated import curated
from models.download.progress import AT_REST, DownloadPhase
from models.files.errors import NothingToChoose
from models.files.provenance import read_record
from models.formatting.json_values import value_of
from models.hub.repository import Repository

_HUB_NAMES = re.compile(r"(?:https?://)?(?:hf\.co|huggingface\.co)/(.+)", re.IGNORECASE)
_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+?)(?::([\w./-]+))?")


class Pull(NamedTuple):
    """What is downloaded: a file or a quantisation of a repository of the Hub."""

    repo_id: str
    wanted: str

    @property
    def digest(self) -> str:
        """A hash that identifies the download; that of the file is not known before it is here."""
        return hashlib.sha256(f"{self.repo_id}:{self.wanted}".encode()).hexdigest()


class PullState(NamedTuple):
    """How far a download is, as the library lists it: ``problem`` is why it does not go on, "" where it does.

    ``silence`` is how many seconds ago the last byte came, while bytes are waited for.
    """

    pull: Pull
    number: int
    phase: DownloadPhase
    n_done: int
    n_total: int
    bytes_per_second: float
    eta: float | None
    problem: str
    files: tuple[str, ...]
    silence: float

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it by itself."""
        return self.phase in AT_REST


async def asked(library: LibraryWorker, request: str, **fields: Any) -> Any:
    """Return an answer of the library that comes in one part."""
    parts = [part async for part in library.ask(request, fields)]
    return parts[-1] if parts else None


async def meant(library: LibraryWorker, pool: ModelPool, name: str) -> Pull | None:
    """Return what a name stands for; None for a model that is here. Raises ApiError, also for what the Hub lacks."""
    found, _ = _repository_in(name)
    try:
        entry = await asyncio.to_thread(pool.find, name.removesuffix(":latest"))
    except ModelNotFound:
        pass
    else:
        if await asyncio.to_thread(may_be, name, entry):
            return None
    if found is None:
        plain = _plain(name.removesuffix(":latest"))
        model = next((model for model in curated().models if _plain(model.title) == plain), None)
        if model is None:
            raise refuse(
                404,
                f"No model is known as {name[:200]!r}: name a repository of the Hugging Face Hub, as "
                "hf.co/OWNER/REPOSITORY:QUANTISATION, or a model of /slipstream/library/suggestions, as qwen3.5:4b.",
                param="model",
            )
        repo_id, wanted = model.repo_id, model.files[0].quantisation
    else:
        repo_id, wanted = found[1], found[2] or ""
    try:
        if wanted in ("", "latest"):
            return Pull(repo_id, await _recommended(library, repo_id))
        await _check(library, repo_id, wanted)
    except LibraryTrouble as trouble:
        trouble.param = "model" if trouble.answer.status < 500 else None
        raise
    return Pull(repo_id, wanted)


def _repository_in(name: str) -> tuple[re.Match[str] | None, bool]:
    """Return the repository and quantisation that a name gives, and whether it says that they are on the Hub."""
    on_hub = _HUB_NAMES.fullmatch(name)
    return _REPOSITORY.fullmatch(on_hub[1].rstrip("/") if on_hub else name), on_hub is not None


def may_be(name: str, entry: ModelEntry) -> bool:
    """Return whether a model that was found can be what a name means: many makers have one of the same name."""
    name = name.removesuffix(":latest")
    found, is_on_hub = _repository_in(name)
    is_named = entry.name.casefold() in (name.casefold(), name.rpartition("/")[2].casefold())
    if found is None or (is_named and not is_on_hub):
        return True
    record = read_record(models_folder(), entry.path)
    return record is None or record.repo_id.casefold() == found[1].casefold()


async def _recommended(library: LibraryWorker, repo_id: str) -> str:
    advice = await asked(library, "Recommend", repo_id=repo_id)
    if advice["name"] is None and advice["sentence"]:
        raise refuse(400, value_of(str, advice["sentence"]), param="model")
    if advice["name"] is None:
        await _check(library, repo_id, "")  # says what is there instead of models
    return str(advice["name"] or "")


async def _check(library: LibraryWorker, repo_id: str, wanted: str) -> None:
    """Raise ApiError where a repository has no such model: a client that is told of a download waits for it."""
    from models.download.model_download import choose_one  # the hub's client takes its time

    repository = value_of(Repository, await asked(library, "ShowRepository", repo_id=repo_id))
    try:
        choose_one(repository, wanted)
    except NothingToChoose as error:
        raise refuse(404, str(error), param="model") from None


async def begin(library: LibraryWorker, pull: Pull) -> None:
    """Start a download, or go on with it. Raises ApiError."""
    await asked(library, "StartDownload", repo_id=pull.repo_id, wanted=pull.wanted)


async def remove(library: LibraryWorker, pool: ModelPool, entry: ModelEntry) -> None:
    """Move a downloaded model to the trash; calls that have it are waited for. Raises ApiError."""
    async with pool.without(lambda file: file == entry.path and not entry.is_toy):
        await asked(library, "RemoveModel", name=entry.name)


async def states(library: LibraryWorker) -> list[PullState]:
    """Return the downloads that are listed, also where the library has to be started again. Raises ApiError."""
    while True:
        try:
            return [pull_state(job) for job in await asked(library, "ListDownloads")]
        except LibraryStopped as stopped:
            if not stopped.answer.may_retry:
                raise


async def find_pull(library: LibraryWorker, pull: Pull) -> PullState | None:
    """Return how far a download is; None where it was taken off the list. Raises ApiError."""
    found = [one for one in await states(library) if one.pull == pull]
    return max(found, key=lambda one: one.number, default=None)


def pull_state(job: Mapping[str, Any]) -> PullState:
    """Return what the library lists of a download."""
    progress, phase = job["progress"], DownloadPhase(job["progress"]["phase"])
    problem = ""
    if job["trouble"]:
        problem = value_of(str, job["trouble"]["sentence"])
    elif phase in AT_REST and phase is not DownloadPhase.DONE:
        problem = f"The download of {job['repo_id']} is {phase.value}."
    return PullState(
        Pull(job["repo_id"], job["wanted"]),
        int(job["number"]),
        phase,
        progress["n_done"],
        progress["n_total"],
        progress["bytes_per_second"],
        progress["eta"],
        problem,
        tuple(job["done"]["files"]) if job["done"] else (),
        progress["silence"] if phase is DownloadPhase.DOWNLOADING else 0.0,
    )


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-")
