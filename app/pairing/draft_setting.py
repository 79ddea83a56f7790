"""The draft that a model's own settings name."""

from __future__ import annotations

from pathlib import Path

from app.environment.exit_codes import ExitCode
from app.library.hub_access import LibraryError
from app.settings.model_settings_store import settings_of, user_settings
from models.catalog.catalog import ModelEntry
from models.files.json_store import StoreRefused
from models.pairing.forecast import MTP

NONE = "none"


def names_no_model(entry: ModelEntry, text: str) -> bool:
    """Return whether a draft that is set is none of the models: "none", or "mtp" for the heads in the model's file."""
    has_heads = entry.facts is not None and entry.facts.n_mtp_layers > 0
    return text.casefold() == NONE or (text.casefold() == MTP and has_heads)


def own_draft(model: Path) -> str | None:
    """Return what is set for the model in this file: a name or path, "none", "mtp", or None where nothing is."""
    return settings_of(model).draft


def forget_own_draft(entry: ModelEntry) -> bool:
    """Reset that setting, so that another choice counts; say whether it was set. Raises LibraryError."""
    if own_draft(entry.path) is None:
        return False
    try:
        user_settings().change(entry.path, entry.name, lambda settings: settings.without(("draft",)))
    except (StoreRefused, OSError) as error:
        raise LibraryError(f"The settings of {entry.name} cannot be changed: {error}", ExitCode.ERROR) from error
    return True
