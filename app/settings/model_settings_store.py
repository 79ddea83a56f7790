"""What users have set for their models, and when each was used and chosen last. A moved or renamed file keeps that."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from app.environment.paths import model_settings_file, usage_file
from core.values.model_settings import ModelSettings, settings_from
from models.facts.split_files import parts
from models.files.integrity import identity
from models.files.json_store import JsonStore, StoreRefused
from models.formatting.sentence import Sentence

_log = logging.getLogger("slipstream.library")
_RECOMMENDED = ModelSettings()
_Stamp = tuple[int, int]


class ModelSettingsStore:
    """Settings of models in the file ``path``; what was read is remembered until the file changes. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path, what=Sentence("The settings of models"))
        self._lock = threading.Lock()
        self._entries: dict[str, Any] = {}
        self._identities = Identities()
        self._made: dict[tuple[Path, _Stamp | None], ModelSettings] = {}

    @property
    def problem(self) -> str | None:
        """The sentence about a file that could not be read, None without one."""
        return self._store.problem

    def of(self, model: Path) -> ModelSettings:
        """The settings of the model that begins at ``model``; a model that cannot be read has none."""
        with self._lock:
            if (entries := self._store.changed()) is not None:
                self._entries = entries
                self._made.clear()
                if self._store.problem:
                    _log.warning("%s", self._store.problem)
            if not self._entries:
                return _RECOMMENDED
            key = (model, _stamp(model))
            if key not in self._made:
                self._made[key] = self._make(model)
            return self._made[key]

    def _make(self, model: Path) -> ModelSettings:
        entry = _entry(self._entries, model, self._identities)
        if entry is None:
            return _RECOMMENDED
        settings, problems = settings_from(entry.get("settings"))
        for problem in problems:
            _log.warning("%s: %s", model.name, problem)
        return settings

    def change(self, model: Path, name: str, change: Callable[[ModelSettings], ModelSettings]) -> ModelSettings:
        """Change the settings of a model and keep them; what is set for others stays.

        Raises what ``change`` raises, StoreRefused, and OSError for a model that cannot be read.
        """
        key = identity(parts(model))
        changed = ModelSettings()

        def apply(entries: dict[str, Any]) -> None:
            nonlocal changed
            before = entries.get(key)
            old, _ = settings_from(before.get("settings", {}) if isinstance(before, dict) else {})
            changed = change(old)
            entries.pop(key, None)
            if changed.given:
                entries[key] = {"name": name, "n_bytes": model.stat().st_size, "settings": changed.given}

        self._store.update(apply)
        return changed


def settings_of(model: Path) -> ModelSettings:
    """The settings of the model that begins at ``model``, as its next load takes them."""
    return user_settings().of(model)


def user_settings() -> ModelSettingsStore:
    """The settings in the user's folder; one store for all who ask in this process."""
    return _store(model_settings_file())


@cache
def _store(path: Path) -> ModelSettingsStore:
    return ModelSettingsStore(path)


def note_use(model: Path) -> None:
    """Remember that the model is in use now. Nothing depends on it: on a full disk it is only logged."""
    _note(model, "last_used")


def note_choice(model: Path) -> None:
    """Remember that the user chooses the model now; as for ``note_use``."""
    _note(model, "last_chosen")


def _note(model: Path, what: str) -> None:
    try:
        model_usage().note(model, what)
    except StoreRefused as error:
        _log.warning("%s", error)


def model_usage() -> UsageStore:
    """When each model was used last; one store for all who ask in this process."""
    return _usage(usage_file())


@cache
def _usage(path: Path) -> UsageStore:
    return UsageStore(path)


class UsageStore:
    """When each model was used last, and chosen by the user, in the file ``path``. Thread-safe."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._store = JsonStore(path, what=Sentence("When models were used last"))
        self._clock = clock
        self._identities = Identities()

    def note(self, model: Path, what: str = "last_used") -> None:
        """This model is in use, or chosen, now. Raises StoreRefused; a model that cannot be read is not noted."""
        key, stamp = self._identities.of(model), _stamp(model)
        if key is not None and stamp is not None:
            news = {"n_bytes": stamp[1], what: self._clock()}

            def note(entries: dict[str, Any]) -> None:
                known = entries.get(key)
                entries[key] = (known if isinstance(known, dict) else {}) | news

            self._store.update(note)

    def all(self) -> LastUsed:
        """Return when each model was used last, read once."""
        return LastUsed(self._store.read(), self._identities)


class LastUsed:
    """When models were used and chosen last, in seconds since the epoch; None for never, as far as is known."""

    def __init__(self, entries: dict[str, Any], identities: Identities) -> None:
        self._entries, self._identities = entries, identities

    @property
    def is_known(self) -> bool:
        """Whether the use of any model is known."""
        return bool(self._entries)

    def of(self, model: Path) -> float | None:
        """When the model was used."""
        return self._when(model, "last_used")

    def choice_of(self, model: Path) -> float | None:
        """When the user chose the model; None also where it has never run."""
        return self._when(model, "last_chosen") if self.of(model) is not None else None

    def _when(self, model: Path, what: str) -> float | None:
        entry = _entry(self._entries, model, self._identities)
        when = entry.get(what) if entry is not None else None
        return float(when) if isinstance(when, int | float) and when > 0 else None


class Identities:
    """Identities of models, remembered until a file changes."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamp, str]] = {}

    def of(self, model: Path) -> str | None:
        """The identity of the model that begins at ``model``, None if it cannot be read."""
        stamp = _stamp(model)
        if stamp is None:
            return None
        known = self._known.get(model)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, identity(parts(model)))
            except OSError:
                return None
            self._known[model] = known
        return known[1]


def _entry(entries: dict[str, Any], model: Path, identities: Identities) -> dict[str, Any] | None:
    """Return what is kept of a model. Its content is only looked at where a model of the same size is known."""
    stamp = _stamp(model)
    if stamp is None or not any(isinstance(e, dict) and e.get("n_bytes") == stamp[1] for e in entries.values()):
        return None
    entry = entries.get(identities.of(model) or "")
    return entry if isinstance(entry, dict) else None


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
