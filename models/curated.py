"""A short list of models to begin with. It is a file of this project, so it is there without a network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "curated.json"


@dataclass(frozen=True, slots=True)
class CuratedDraft:
    """A smaller model with the same vocabulary that may draft."""

    repo_id: str
    quantisation: str


@dataclass(frozen=True, slots=True)
class CuratedModel:
    """One recommendation. ``kind`` is "dense" or "moe"; ``is_tested`` says whether it has run here."""

    title: str
    repo_id: str
    quantisation: str
    n_params: int
    n_active_params: int
    kind: str
    licence: str
    good_for: str
    draft: CuratedDraft | None
    is_tested: bool


@dataclass(frozen=True, slots=True)
class CuratedList:
    """The list with its date and where it comes from; models from small to large."""

    date: str
    source: str
    models: tuple[CuratedModel, ...]


@cache
def curated() -> CuratedList:
    """Read the list."""
    read = json.loads(_FILE.read_bytes())
    models = [
        CuratedModel(**{**item, "draft": CuratedDraft(**item["draft"]) if item["draft"] else None})
        for item in read["models"]
    ]
    return CuratedList(read["date"], read["source"], tuple(sorted(models, key=lambda model: model.n_params)))
