"""Settings of models over the library's routes: shown, changed, refused field by field."""

from __future__ import annotations

import json
from pathlib import Path

from core.values.model_settings import NAMES
from models.library import requests as ask
from models.library.values import SettingsSheet, SettingText
from tests.support.library_client import LibraryClient

EMBER = "ember-q8_0"


def change(library: LibraryClient, **texts: str | None) -> SettingsSheet:
    return library.get(ask.ChangeSettings(EMBER, tuple(SettingText(name, text) for name, text in texts.items())))


def given(sheet: SettingsSheet) -> dict[str, str]:
    return {setting.name: setting.text for setting in sheet.settings if setting.text is not None}


def problems(sheet: SettingsSheet) -> dict[str, str]:
    return {setting.name: setting.problem for setting in sheet.settings if setting.problem is not None}


def test_a_sheet_has_every_setting_with_what_is_recommended(library: LibraryClient) -> None:
    sheet = library.get(ask.GetSettings(EMBER))
    assert tuple(setting.name for setting in sheet.settings) == NAMES
    assert given(sheet) == {}
    recommended = {setting.name: setting.recommended for setting in sheet.settings}
    assert (recommended["temperature"], recommended["speed"]) == ("0.8", "standard")
    assert recommended["kv_type"] == "chosen for this machine"
    assert sheet.drafts == ("ember-draft-q8_0",)


def test_settings_are_kept_for_every_process_and_reset_one_by_one(open_library, tmp_path: Path) -> None:
    library = open_library()
    kept = change(library, temperature=" 0.5", ctx="512", draft="none", system="Speak as a pirate.\nAlways.")
    assert given(kept) == {"temperature": "0.5", "ctx": "512", "draft": "none", "system": "Speak as a pirate.\nAlways."}
    again = open_library()
    assert given(again.get(ask.GetSettings(EMBER))) == given(kept)
    change(again, draft=None, top_p="0.123456789")
    assert given(library.get(ask.GetSettings(EMBER))) == {
        "temperature": "0.5",
        "ctx": "512",
        "system": "Speak as a pirate.\nAlways.",
        "top_p": "0.123456789",
    }
    assert given(change(library, **dict.fromkeys(NAMES))) == {}
    saved = json.loads((tmp_path / "slipstream" / "config" / "models.json").read_text())
    assert saved["entries"] == {}


def test_each_wrong_field_has_its_sentence_and_nothing_is_kept(library: LibraryClient) -> None:
    sheet = change(
        library, temperature="hot", top_p="3", ctx="4", threads="2", draft="nobody", kv_type="q9", system=" "
    )
    said = problems(sheet)
    assert sorted(said) == ["ctx", "draft", "kv_type", "system", "temperature", "top_p"]
    assert said["temperature"] == "temperature must be a number, not 'hot'."
    assert "at least 16" in said["ctx"]
    assert "no model called 'nobody'" in said["draft"]
    assert given(sheet)["threads"] == "2"
    assert given(library.get(ask.GetSettings(EMBER))) == {}


def test_a_model_that_is_gone_or_broken_is_told(library: LibraryClient, models_folder: Path) -> None:
    models_folder.mkdir(parents=True)
    (models_folder / "broken.gguf").write_bytes(b"no model")
    assert "any more" in library.ask(ask.GetSettings("gone")).sentence
    assert "broken cannot be used" in library.ask(ask.GetSettings("broken")).sentence
    assert "no setting 'size'" in library.ask(ask.ChangeSettings(EMBER, (SettingText("size", "1"),))).sentence


def test_a_file_that_cannot_be_written_is_told(library: LibraryClient, tmp_path: Path) -> None:
    (tmp_path / "slipstream").mkdir()
    (tmp_path / "slipstream" / "config").write_text("a file where a folder belongs")
    trouble = library.ask(ask.ChangeSettings(EMBER, (SettingText("top_k", "3"),)))
    assert "models.json" in trouble.sentence
