"""The draft that a model's own settings name."""

from __future__ import annotations

from pathlib import Path

from app.exit_codes import ExitCode
from app.library import LibraryError
from app.model_settings import settings_of, user_settings
from models.catalog import ModelEntry
from models.json_store import StoreRefused

NONE = "none"


def own_draft(model: Path) -> str | None:
    """Return the name or path that is set for the model in this file, "none", or None where nothing is set."""
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
