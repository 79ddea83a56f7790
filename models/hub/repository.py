"""Repositories of the Hub as values: files grouped as models by their names, with sizes and quantisations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from urllib.parse import unquote

from models.facts.projector import projectors_of
from models.facts.split_files import model_name, parts


class FileRole(StrEnum):
    """The role of a file."""

    MODEL = "model"
    PROJECTOR = "projector"
    DRAFT = "draft"
    OTHER = "other"


class Access(StrEnum):
    """Who may download a repository."""

    OPEN = "open"
    GATED = "gated"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository: its path there, bytes, and content hash ("sha256:..." or "git:...")."""

    path: str
    n_bytes: int
    content: str

    @property
    def name(self) -> str:
        """The path's last part."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class HubModel:
    """One item to download: a model in one quantisation, or a projector or draft. Parts are in order.

    ``missing`` counts parts that the repository does not have.
    """

    name: str
    role: FileRole
    quantisation: str
    files: tuple[HubFile, ...]
    missing: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """The Hub's description of a repository. Fields that it leaves out are None, 0 or empty."""

    repo_id: str
    downloads: int
    likes: int
    modified: datetime | None
    access: Access
    architecture: str | None
    n_params: int
    n_ctx_train: int
    licence: str | None
    base_models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundRepository(RepositoryFacts):
    """One result of a search, with how many models it has and in which quantisations."""

    n_models: int
    quantisations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Repository(RepositoryFacts):
    """One repository at one commit. ``asked_as`` is the requested name, which differs if it was renamed."""

    asked_as: str
    commit: str
    models: tuple[HubModel, ...]

    @property
    def was_renamed(self) -> bool:
        """Whether the Hub redirected to another name."""
        return self.repo_id.casefold() != self.asked_as.casefold()

    def with_role(self, role: FileRole) -> tuple[HubModel, ...]:
        """The items with this role."""
        return tuple(model for model in self.models if model.role is role)


_PROJECTOR = re.compile(r"(^|[-._/])mmproj([-._]|$)", re.IGNORECASE)
_DRAFT = re.compile(r"(^|[-._/])(draft|eagle-?3?|dflash|medusa)([-._/]|$)", re.IGNORECASE)
# Prediction heads alone are "mtp-NAME" or lie in a folder "mtp"; elsewhere, "mtp" means that a model has heads.
_HEADS_ALONE = re.compile(r"(^|/)mtp([-._/]|$)", re.IGNORECASE)
_OTHER = re.compile(r"(^|[-._/])(imatrix|lora|vocab)([-._]|$)", re.IGNORECASE)
_ROLES = (
    (_PROJECTOR, FileRole.PROJECTOR),
    (_OTHER, FileRole.OTHER),
    (_DRAFT, FileRole.DRAFT),
    (_HEADS_ALONE, FileRole.DRAFT),
)
_TOKEN = re.compile(
    r"(?:^|[-._/ ])(?P<name>(?:UD-)?(?:"
    r"I?Q\d(?:_(?:\d(?:_\d)+|[01K]|NL|XXS|XS|S|M|L|XL))(?:_(?:XXS|XS|S|M|L|XL))?"
    r"|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|F16|FP16|F32|FP32|Q\d))(?=$|[-._/ ])",
    re.IGNORECASE,
)


# An address of the Hub's website, as it is copied from a browser, or from other programs with a choice behind it.
_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?(?:huggingface|hf)\.co/(?P<repo>[^/:?#]+/[^/:?#]+)"
    r"(?:/(?:blob|resolve|tree)/(?P<revision>[^/:?#]+)(?:/(?P<file>[^?#]+))?)?/?(?:[?#].*|:(?P<choice>.+))?",
    re.IGNORECASE,
)


def parsed_name(name: str) -> tuple[str, str, str | None]:
    """Repository, choice ("": none) and revision (None: the newest) of ``REPO[:CHOICE]`` or of an address."""
    address = _ADDRESS.fullmatch(name.strip())
    if address is None:
        repo_id, _, choice = name.partition(":")
        return repo_id, choice, None
    revision = address["revision"]
    choice = address["choice"] or unquote(address["file"] or "").strip("/")
    return address["repo"], choice, None if revision == "main" else revision


def group(files: Iterable[HubFile]) -> tuple[HubModel, ...]:
    """The GGUF files as items, models first, each kind from small to large."""
    by_path = {file.path: file for file in files if file.path.lower().endswith(".gguf")}
    items = []
    while by_path:
        path = next(iter(by_path))
        expected = [str(part) for part in parts(PurePosixPath(path))]
        found = tuple(by_path.pop(part) for part in expected if part in by_path)
        items.append(_item(path, found, len(expected) - len(found)))
    order = list(FileRole)
    return tuple(sorted(items, key=lambda item: (order.index(item.role), item.n_bytes, item.name.lower())))


def choose(models: Iterable[HubModel], wanted: str) -> tuple[HubModel, ...]:
    """The items that ``wanted`` (a quantisation, a file, an item's name or the end of one) may mean."""
    models = tuple(models)
    name = wanted.casefold()
    for fits in (
        lambda item: any(name in (file.path.casefold(), file.name.casefold()) for file in item.files),
        lambda item: name == item.name.casefold(),
        lambda item: item.role is FileRole.MODEL and item.quantisation.casefold() == name,
        lambda item: item.role is FileRole.MODEL and is_same(item.quantisation, wanted),
        lambda item: item.name.casefold().endswith(name),
    ):
        chosen = tuple(item for item in models if fits(item))
        if chosen:
            return chosen
    return ()


def choice_of(item: HubModel, models: Sequence[HubModel]) -> str:
    """The shortest text by which ``choose`` finds this item alone among ``models``: quantisation, name or file."""
    texts = (item.quantisation, item.name)
    return next((text for text in texts if text and choose(models, text) == (item,)), item.files[0].path)


def with_projector(model: HubModel, models: Iterable[HubModel]) -> HubModel:
    """Return a model with the files of its projector added, if the repository has one."""
    if model.role is not FileRole.MODEL:
        return model
    whole = [item for item in models if item.role is FileRole.PROJECTOR and not item.missing]
    found = {PurePosixPath(item.files[0].path): item for item in whole}
    chosen = projectors_of(PurePosixPath(model.files[0].path), found)
    return replace(model, files=(*model.files, *found[chosen[0]].files)) if chosen else model


def role_of(path: str) -> FileRole:
    """The role of a file, by words in its name (``draft``, ``mmproj``)."""
    for pattern, role in _ROLES:
        if pattern.search(path.removesuffix(".gguf")):
            return role
    return FileRole.MODEL


def _item(path: str, files: tuple[HubFile, ...], missing: int) -> HubModel:
    stem = model_name(PurePosixPath(path))
    folder = PurePosixPath(path).parent.name
    quantisation = quantisation_of(stem) or quantisation_of(folder)
    return HubModel(stem, role_of(path), quantisation, files, missing)


def quantisation_of(stem: str) -> str:
    """The quantisation named in a file's stem (the last one, in capitals), or "" if it names none."""
    found = [match["name"] for match in _TOKEN.finditer(stem)]
    return found[-1].upper().replace("FP16", "F16").replace("FP32", "F32") if found else ""


def is_same(name: str, wanted: str) -> bool:
    """Whether a quantisation is the one that a user typed: any case, with or without "UD-"."""
    return name.casefold().removeprefix("ud-") == wanted.casefold().removeprefix("ud-")


def without_quantisation(stem: str) -> str:
    """The stem without the quantisation it names."""
    matches = list(_TOKEN.finditer(stem))
    return stem[: matches[-1].start()] + stem[matches[-1].end() :] if matches else stem
