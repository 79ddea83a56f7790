"""Repositories of the Hub as values: files grouped as models, with their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
class RemoteFile:
    """One file of a repository: its path there, bytes, and content hash ("sha256:..." or "git:...")."""

    path: str
    n_bytes: int
    content: str

    @property
    def name(self) -> str:
        """The path's last part."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """One item to download: a model in one quantisation, or a projector or draft. Parts are in order.

    ``missing`` counts parts that the repository does not have.
    """

    name: str
    role: FileRole
    quantisation: str
    files: tuple[RemoteFile, ...]
    missing: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class FoundRepository:
    """One result of a search. Fields that the Hub leaves out are None, 0 or empty."""

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
    n_models: int
    quantisations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository at one commit. ``asked_as`` is the requested name, which differs if it was renamed."""

    repo_id: str
    asked_as: str
    commit: str
    access: Access
    downloads: int
    likes: int
    modified: datetime | None
    licence: str | None
    base_models: tuple[str, ...]
    architecture: str | None
    n_params: int
    n_ctx_train: int
    models: tuple[RemoteModel, ...]

    @property
    def was_renamed(self) -> bool:
        """Whether the Hub redirected to another name."""
        return self.repo_id.casefold() != self.asked_as.casefold()

    def with_role(self, role: FileRole) -> tuple[RemoteModel, ...]:
        """The items with this role."""
        return tuple(model for model in self.models if model.role is role)
