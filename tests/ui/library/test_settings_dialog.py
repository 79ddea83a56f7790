"""The settings of a model in the window, kept by the real process."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionComboBox

from app.settings.model_settings_store import ModelSettingsStore
from core.values.model_settings import NAMES, ModelSettings
from models.catalog.catalog import STARTER_FOLDER
from models.formatting import figures
from models.library.values import SettingValue
from tools.model_factory import head_factory
from ui.library.library_page import LibraryPage
from ui.library.settings.setting_row import NumberField, OneOf, PromptField
from ui.library.settings.setting_words import LOADING, REPLIES
from ui.library.settings.settings_dialog import SettingsDialog
from ui.widgets.fields import ChoiceField

EMBER = STARTER_FOLDER / "ember-q8_0.gguf"


@pytest.fixture
def store(tmp_path: Path) -> ModelSettingsStore:
    return ModelSettingsStore(tmp_path / "slipstream" / "config" / "models.json")


def opened(qtbot, page: LibraryPage, name: str = "ember-q8_0") -> SettingsDialog:
    qtbot.waitUntil(lambda: name in [row.key for row in page.models.list.rows.rows])
    page.models.list.choose(name)
    page.models.details.settings.click()
    dialog = page.window().findChildren(SettingsDialog)[-1]
    qtbot.waitUntil(dialog.form.isEnabled)
    return dialog


def typed(dialog: SettingsDialog, name: str, text: str) -> None:
    field = dialog.rows[name].field
    assert isinstance(field, NumberField)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)


def closed(qtbot, page: LibraryPage) -> None:
    qtbot.waitUntil(lambda: page.window().findChildren(SettingsDialog) == [])


def test_every_setting_is_there_with_what_is_recommended(qtbot, page: LibraryPage) -> None:
    dialog = opened(qtbot, page)
    assert {*LOADING, *REPLIES} == set(dialog.rows) == set(NAMES)
    temperature, kv_type = dialog.rows["temperature"].field, dialog.rows["kv_type"].field
    assert isinstance(temperature, NumberField)
    assert isinstance(kv_type, OneOf)
    assert (temperature.text(), temperature.placeholderText()) == ("", "0.8")
    assert kv_type.currentText() == "Automatic (recommended)"
    draft = dialog.rows["draft"].field
    assert isinstance(draft, OneOf)
    assert [draft.itemText(at) for at in range(draft.count())] == [
        "Automatic (recommended)",
        "None",
        "ember-draft-q8_0",
    ]
    assert not dialog.reset_all.isEnabled()
    assert dialog.changes == ()


def test_heads_in_the_file_can_be_chosen(
    qtbot, page: LibraryPage, models_folder: Path, store: ModelSettingsStore
) -> None:
    path = head_factory.mtp_counter(models_folder / "counter.gguf")
    page.models.look()
    dialog = opened(qtbot, page, "counter")
    draft = dialog.rows["draft"].field
    assert isinstance(draft, OneOf)
    draft.setCurrentIndex(draft.findText("Heads in its file"))
    draft.activated.emit(draft.currentIndex())
    dialog.save.click()
    closed(qtbot, page)
    assert store.of(path).draft == "mtp"


def test_what_is_changed_is_kept_and_said(qtbot, page: LibraryPage, store: ModelSettingsStore) -> None:
    dialog = opened(qtbot, page)
    typed(dialog, "ctx", "512")
    typed(dialog, "temperature", "0.3")
    system, draft = dialog.rows["system"].field, dialog.rows["draft"].field
    assert isinstance(system, PromptField)
    assert isinstance(draft, OneOf)
    system.setFocus()
    QTest.keyClicks(system, "Be brief.")
    QTest.keyClick(system, Qt.Key.Key_Return)  # a new line, not Save
    QTest.keyClicks(system, "Please.")
    QTest.keyClick(draft, Qt.Key.Key_Down)
    dialog.save.click()
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings(ctx=512, temperature=0.3, system="Be brief.\nPlease.", draft="none")
    qtbot.waitUntil(lambda: "are saved" in page.toast.text)
    assert "loaded next" in page.toast.text
    again = opened(qtbot, page)
    assert again.rows["draft"].value == "none"
    typed(again, "temperature", "0.4")
    again.save.click()
    closed(qtbot, page)
    qtbot.waitUntil(lambda: page.toast.text == "The settings of ember-q8_0 are saved.")


def test_numbers_are_taken_as_they_are_written_in_any_language(
    qtbot, page: LibraryPage, store: ModelSettingsStore
) -> None:
    dialog = opened(qtbot, page)
    for name, text in (("ctx", "1.024"), ("top_k", "1,000"), ("temperature", "0,7"), ("top_p", "0.5")):
        typed(dialog, name, text)
    dialog.save.click()
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings(ctx=1024, top_k=1000, temperature=0.7, top_p=0.5)
    figures.use_comma(True)
    try:
        again = opened(qtbot, page)
        assert (again.rows["temperature"].field.text(), again.rows["temperature"].value) == ("0,7", "0.7")
        assert not any(row.is_changed for row in again.rows.values())
    finally:
        figures.use_comma(False)


def test_a_wrong_value_has_its_sentence_beside_it_and_nothing_is_kept(
    qtbot, page: LibraryPage, store: ModelSettingsStore
) -> None:
    dialog = opened(qtbot, page)
    typed(dialog, "top_p", "3")
    typed(dialog, "threads", "2")
    assert "Top P must be" in dialog.rows["top_p"].problem.text()  # when the field is left
    dialog.rows["top_p"].say(None)
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    qtbot.waitUntil(dialog.rows["top_p"].problem.isVisible)
    assert "Top P must be" in dialog.rows["top_p"].problem.text()
    assert not dialog.rows["threads"].problem.isVisible()
    assert store.of(EMBER) == ModelSettings()
    assert dialog.rows["top_p"].field.hasFocus()
    typed(dialog, "top_p", "0.5")
    assert not dialog.rows["top_p"].problem.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings(top_p=0.5, threads=2)


def test_enter_on_a_button_presses_that_one(qtbot, page: LibraryPage, store: ModelSettingsStore) -> None:
    dialog = opened(qtbot, page)
    typed(dialog, "top_p", "0.5")
    dialog.cancel.setFocus()
    QTest.keyClick(dialog.cancel, Qt.Key.Key_Return)
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings(), "Save is what Enter does elsewhere"


def test_one_or_all_are_reset(qtbot, page: LibraryPage, store: ModelSettingsStore) -> None:
    kept = ModelSettings(ctx=512, speed="fast", top_k=5, system="Rhyme.")
    store.change(EMBER, "ember-q8_0", lambda old: kept)
    dialog = opened(qtbot, page)
    typed(dialog, "top_k", "7")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    closed(qtbot, page)
    assert store.of(EMBER) == kept, "Escape keeps nothing"
    dialog = opened(qtbot, page)
    assert dialog.rows["ctx"].value == "512"
    dialog.rows["ctx"].reset.click()
    assert not dialog.rows["ctx"].reset.isVisible()
    dialog.save.click()
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings(speed="fast", top_k=5, system="Rhyme.")
    dialog = opened(qtbot, page)
    dialog.reset_all.click()
    dialog.save.click()
    closed(qtbot, page)
    assert store.of(EMBER) == ModelSettings()


def test_a_file_that_cannot_be_written_is_told_and_the_dialog_stays(qtbot, page: LibraryPage, tmp_path: Path) -> None:
    dialog = opened(qtbot, page)
    (tmp_path / "slipstream" / "config").write_text("a file where a folder belongs")
    typed(dialog, "top_k", "7")
    dialog.save.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "models.json" in dialog.problem.text()
    assert dialog.save.isEnabled()


def test_the_keyboard_reaches_every_field_in_their_order(qtbot, page: LibraryPage) -> None:
    dialog = opened(qtbot, page)
    dialog.activateWindow()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is dialog.rows["ctx"].field)
    for name in list(dialog.rows)[1:]:
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is dialog.rows[name].field, name


def test_what_is_recommended_keeps_its_capitals(qtbot) -> None:
    field = NumberField(is_whole=True)
    qtbot.addWidget(field)
    field.put(SettingValue("threads", None, "für diesen Rechner gewählt"))
    assert field.placeholderText() == "Für diesen Rechner gewählt"


def test_a_choice_that_is_too_long_for_its_field_ends_in_an_ellipsis(qtbot) -> None:
    field = ChoiceField("Draft")
    qtbot.addWidget(field)
    field.addItem("Automatic (recommended)")
    field.resize(field.sizeHint().width() * 2, field.sizeHint().height())
    option = QStyleOptionComboBox()
    field.initStyleOption(option)
    assert option.currentText == "Automatic (recommended)"
    field.resize(field.sizeHint().width() * 2 // 3, field.height())
    field.initStyleOption(option)
    shown, cut = option.currentText, field.grab().toImage()
    assert "…" in shown
    field.setItemText(0, shown)
    assert field.grab().toImage() == cut
