"""Settings of single models, as the library shows and changes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from app.fit_reports.fit_reports import CurrentMachine, report_file
from app.library.find_model import find_draft, usable
from app.library_service.machine import MachineService
from app.library_service.models import ModelService
from app.pairing.decision import names_no_model
from app.pairing.service import pairing
from app.settings.model_settings_store import user_settings
from app.settings.worker_tokens import known_workers
from core.values.errors import SlipstreamError
from core.values.model_settings import NAMES, BadSetting, ModelSettings, recommended, setting_name
from models.catalog.catalog import ModelEntry
from models.library.values import SettingsSheet, SettingText, SettingValue


class SettingsService:
    """Shows and changes settings. Methods raise UnknownModel, UnusableModel, and OSError for a model that is gone."""

    def __init__(self, shelf: ModelService, machine: MachineService) -> None:
        self._shelf, self._machine = shelf, machine
        self._store = user_settings()

    def sheet(self, name: str) -> SettingsSheet:
        """Return all settings of a model."""
        entry = usable(self._shelf.entry(name))
        return self._sheet(entry, self._store.of(entry.path))

    def change(self, name: str, changes: tuple[SettingText, ...]) -> SettingsSheet:
        """Change some settings, or none where one of them is wrong: then the answer says what is of each.

        Raises StoreRefused too.
        """
        entry = usable(self._shelf.entry(name))
        texts = {setting_name(change.name): change.text for change in changes}
        problems = {key: problem for key, text in texts.items() if (problem := self._why_not(entry, key, text))}
        if problems:
            return self._sheet(entry, self._store.of(entry.path), texts, problems)
        resets = tuple(key for key, text in texts.items() if text is None)
        given = {key: text for key, text in texts.items() if text is not None}
        changed = self._store.change(entry.path, entry.name, lambda old: old.without(resets).with_texts(given))
        return self._sheet(entry, changed)

    def _why_not(self, entry: ModelEntry, name: str, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            asked = ModelSettings().with_texts({name: text})
            if asked.ctx is not None:
                self._check_context(entry, asked.ctx)
            if asked.threads is not None and asked.threads > (n_threads := os.cpu_count() or 1):
                raise BadSetting(
                    "This machine runs {n_threads} threads at once: choose that many or fewer.", n_threads=n_threads
                )
            if name == "draft" and not names_no_model(entry, text):
                draft = find_draft(text, self._shelf.catalog)
                if draft.path.resolve() == entry.path.resolve():
                    raise BadSetting("{name} cannot draft for itself.", name=entry.name)
        except BadSetting as error:
            return error.message
        except SlipstreamError as error:
            return str(error)
        return None

    def _check_context(self, entry: ModelEntry, n_ctx: int) -> None:
        """Raise BadSetting for a context that can never be loaded, or in which the model's text would be useless."""
        facts = entry.facts
        if facts is None:
            return
        if 0 < facts.n_ctx_train < n_ctx:
            raise BadSetting(
                "{name} was trained for {n_ctx:,} tokens of context: choose that many or fewer.",
                name=entry.name,
                n_ctx=facts.n_ctx_train,
            )
        # Memory that other programs use now may be free when the model is loaded.
        here = self._machine.now()
        devices = tuple(replace(device, free=device.total) for device in here.machine.devices)
        whole = CurrentMachine(replace(here.machine, devices=devices), here.runs)
        longest = report_file(facts, entry.path, whole, n_ctx=n_ctx, is_quick=True).fitting
        if longest is not None:
            raise BadSetting(
                "This machine does not hold {n_ctx:,} tokens of context for {name}: {n_fitting:,} fit into its memory.",
                n_ctx=n_ctx,
                name=entry.name,
                n_fitting=longest.setting.n_ctx,
            )

    def _sheet(
        self,
        entry: ModelEntry,
        settings: ModelSettings,
        typed: Mapping[str, str | None] | None = None,
        problems: Mapping[str, str] | None = None,
    ) -> SettingsSheet:
        texts = {name: _text(value) for name, value in settings.given.items()} | dict(typed or {})
        listed = tuple(
            SettingValue(name, texts.get(name), recommended(name), (problems or {}).get(name)) for name in NAMES
        )
        drafts = tuple(found.name for found in pairing(entry, self._shelf.catalog).partners if found.is_usable)
        return SettingsSheet(entry.name, listed, drafts, known_workers())


def _text(value: float | str) -> str:
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
