"""Which model is verified, and which one drafts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.library.find_model import catalog, find_draft, find_model
from app.pairing.service import draft_for
from app.settings.server_settings import ServerSettings
from core.values.errors import BadOption

if TYPE_CHECKING:
    from models.catalog.catalog import ModelEntry


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A model and its draft model; without one and with no heads, texts are looked up."""

    model: ModelEntry
    draft: ModelEntry | None
    uses_heads: bool = True


def choose_pair(model: str | None, draft: str | None, *, is_lookup_only: bool) -> ModelPair:
    """Return the models that are named; where no draft is, the one that drafts when the model is loaded.

    Raises UnknownModel, UnusableModel, and BadOption where both a draft and lookups alone are asked for.
    """
    if draft is not None and is_lookup_only:
        raise BadOption("--draft names a draft model and --lookup-only uses none: leave out one of them.")
    from models.catalog.catalog import STARTER

    models = catalog()
    target = find_model(model if model is not None else str(STARTER), models)
    if is_lookup_only:
        return ModelPair(target, None, uses_heads=False)
    if draft is not None:
        return ModelPair(target, find_draft(draft, models))
    found = draft_for(target, models, ServerSettings())
    draft_entry = find_draft(str(found.path), models) if found.path is not None else None
    return ModelPair(target, draft_entry, found.uses_heads)
