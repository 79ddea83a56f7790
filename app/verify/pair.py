"""Which model is verified, and which one drafts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.model_choice import find_draft, find_model
from app.paths import starter_folder
from core.errors import BadOption

if TYPE_CHECKING:
    from models.catalog import ModelEntry

STARTER, STARTER_DRAFT = "ember-q8_0.gguf", "ember-draft-q8_0.gguf"


@dataclass(frozen=True, slots=True)
class Pair:
    """A model and its draft model; without one, texts are looked up."""

    model: ModelEntry
    draft: ModelEntry | None


def choose_pair(model: str | None, draft: str | None, *, is_lookup_only: bool) -> Pair:
    """Return the models that are named; the bundled model, where it is meant, comes with the bundled draft model.

    Raises UnknownModel, UnusableModel, and BadOption where both a draft and lookups alone are asked for.
    """
    if draft is not None and is_lookup_only:
        raise BadOption("--draft names a draft model and --lookup-only uses none: leave out one of them.")
    target = find_model(model if model is not None else str(starter_folder() / STARTER))
    if is_lookup_only:
        return Pair(target, None)
    if draft is not None:
        return Pair(target, find_draft(draft))
    if target.path.resolve() == (starter_folder() / STARTER).resolve():
        return Pair(target, find_model(str(starter_folder() / STARTER_DRAFT)))
    return Pair(target, None)
