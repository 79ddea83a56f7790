"""What is kept of each model between runs: the user's settings, and when it was used last."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from app.model_choice import find_draft
from app.model_settings import ModelSettingsStore, UsageStore
from app.paths import model_settings_file, usage_file
from core.errors import SlipstreamError
from core.model_settings import ModelSettings
from models.json_store import StoreRefused

_log = logging.getLogger("slipstream.server")
_NOTHING = ModelSettings()


class ModelKeeper(Protocol):
    """Asked by the host of the models."""

    def settings_of(self, model: Path) -> ModelSettings:
        """What is set for the model in this file."""

    def draft_of(self, settings: ModelSettings) -> Path | None:
        """The file of the draft model that the settings name, None where it is not there."""

    def note_use(self, model: Path) -> None:
        """The model is in use."""


class NoKeeper:
    """Keeps nothing."""

    def settings_of(self, model: Path) -> ModelSettings:
        """The recommended ones."""
        return _NOTHING

    def draft_of(self, settings: ModelSettings) -> Path | None:
        """None."""
        return None

    def note_use(self, model: Path) -> None:
        """Nothing is noted."""


class UserKeeper:
    """Keeps in the user's folders."""

    def __init__(self) -> None:
        self._settings = ModelSettingsStore(model_settings_file())
        self._usage = UsageStore(usage_file())

    def settings_of(self, model: Path) -> ModelSettings:
        """What the user has set for the model in this file; a change counts at once."""
        return self._settings.of(model)

    def draft_of(self, settings: ModelSettings) -> Path | None:
        """The file of the draft model that the settings name, None where it is not there any more."""
        if settings.draft is None:
            return None
        try:
            return find_draft(settings.draft).path
        except SlipstreamError as error:
            _log.warning("The draft model that is set is not used: %s", error.message)
            return None

    def note_use(self, model: Path) -> None:
        """Remember that the model is in use now. Nothing depends on it, so a full disk is no problem of the reply's."""
        try:
            self._usage.note(model)
        except StoreRefused as error:
            _log.warning("%s", error.message)
