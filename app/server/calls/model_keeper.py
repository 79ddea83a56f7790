"""What is kept of each model between runs: the user's settings, and when it was used last."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from app.environment.paths import model_settings_file, usage_file
from app.settings.model_settings_store import ModelSettingsStore, UsageStore
from core.values.model_settings import ModelSettings
from models.files.json_store import StoreRefused

_log = logging.getLogger("slipstream.server")
_NOTHING = ModelSettings()


class ModelPreferences(Protocol):
    """Asked by the host of the models."""

    def settings_of(self, model: Path) -> ModelSettings:
        """What is set for the model in this file."""

    def note_use(self, model: Path) -> None:
        """The model is in use."""


class NoPreferences:
    """Keeps nothing."""

    def settings_of(self, model: Path) -> ModelSettings:
        """The recommended ones."""
        return _NOTHING

    def note_use(self, model: Path) -> None:
        """Nothing is noted."""


class UserPreferences:
    """Keeps in the user's folders."""

    def __init__(self) -> None:
        self._settings = ModelSettingsStore(model_settings_file())
        self._usage = UsageStore(usage_file())

    def settings_of(self, model: Path) -> ModelSettings:
        """What the user has set for the model in this file; a change counts at once."""
        return self._settings.of(model)

    def note_use(self, model: Path) -> None:
        """Remember that the model is in use now. Nothing depends on it, so a full disk is no problem of the reply's."""
        try:
            self._usage.note(model)
        except StoreRefused as error:
            _log.warning("%s", error)
