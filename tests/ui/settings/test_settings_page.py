"""The settings page: what is chosen counts at once, is kept, is found, and can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.cli.main import build
from app.environment.paths import models_folder
from tools.stand_ins.library_server import LibraryServer
from ui.client.api import Api, ServerState
from ui.platform.desktop_entry import DesktopEntry
from ui.settings.engine_options import ENGINE_OPTIONS, PROCESSOR
from ui.settings.setting_line import SettingLine, choice, switch
from ui.settings.settings_page import SettingsPage
from ui.settings.window_settings import WindowSettings
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.text_size import scaled
from ui.theme.tokens import ACCENTS, Type, sized
from ui.widgets.fields import ChoiceField
from ui.window.main_window import MainWindow


@pytest.fixture
def page(window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SettingsPage:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    window.show_page("settings")
    assert window.settings is not None
    window.settings.complete()
    return window.settings


def pick(field: ChoiceField, value: str) -> None:
    field.setCurrentIndex(field.findData(value))
    field.activated.emit(field.currentIndex())


def shown(page: SettingsPage) -> list[str]:
    lines = [line for section in page.sections if section.isVisible() for line in section.lines]
    return [line.name.text() for line in lines if line.isVisible()]


def test_looks_count_at_once_and_after_a_restart(
    window: MainWindow, page: SettingsPage, appearance: Appearance, tmp_path: Path
) -> None:
    pick(page.looks.language, "de")
    assert WindowSettings(tmp_path / "window.ini").value("language") == "de"
    pick(page.looks.theme, "dark")
    pick(page.looks.accent, "Rose")
    pick(page.looks.text, "125")
    assert (appearance.palette.is_dark, appearance.palette.accent) == (True, ACCENTS["Rose"][1])
    assert appearance.percent == 125
    appearance.wear(ThemeChoice.LIGHT, "Teal", 100)
    WindowSettings(tmp_path / "window.ini").dress(appearance)
    assert (appearance.choice, appearance.accent, appearance.percent) == (ThemeChoice.DARK, "Rose", 125)
    window.resize_text(100)
    assert page.looks.text.currentData() == "100"
    window.kept.keep("tintDrafts", True)
    assert page.looks.tint.isChecked()
    page.reset()
    assert (page.looks.theme.currentData(), page.looks.accent.currentData()) == ("system", "Teal")
    assert not page.looks.tint.isChecked()
    assert not window.tools.style.tints_drafts


def test_what_is_hidden_at_the_start_has_the_kept_size_of_text_too(
    qtbot, window: MainWindow, appearance: Appearance, library: Api, tmp_path: Path
) -> None:
    window.kept.keep("textSize", 150)
    window.close()
    again = MainWindow(Api(), appearance, tmp_path / "chats.db", tmp_path / "window.ini", library)
    qtbot.addWidget(again)
    again.show()
    again.open_palette()
    assert again.palette_card.field.font().pixelSize() == scaled(Type.BODY) == sized(Type.BODY, 150)
    again.palette_card.close_up()
    again.chats.storage_banner.show()
    assert again.chats.storage_banner.findChild(QLabel).font().pixelSize() == scaled(Type.BODY)
    again.close()


def test_drafted_words_are_tinted_at_the_next_start_too(
    qtbot, window: MainWindow, appearance: Appearance, library: Api, tmp_path: Path
) -> None:
    window.kept.keep("tintDrafts", True)
    window.close()
    again = MainWindow(Api(), appearance, tmp_path / "chats.db", tmp_path / "window.ini", library)
    qtbot.addWidget(again)
    assert again.tools.style.tints_drafts
    again.close()


def test_an_opened_field_shows_all_its_choices(page: SettingsPage) -> None:
    page.looks.text.showPopup()
    view = page.looks.text.view()
    seen = [view.viewport().rect().contains(view.visualRect(view.model().index(row, 0))) for row in range(6)]
    page.looks.text.hidePopup()
    assert page.looks.text.count() == 6
    assert all(seen)


def test_high_contrast_has_its_own_accent(
    window: MainWindow, appearance: Appearance, page: SettingsPage, tmp_path: Path
) -> None:
    assert page.looks.accent.isEnabled()
    window.choose_theme(ThemeChoice.CONTRAST)
    assert not page.looks.accent.isEnabled()
    made = SettingsPage(window.kept, appearance, window.link, window.watch, DesktopEntry(), tmp_path / "chats.db")
    made.complete()
    assert not made.looks.accent.isEnabled(), "also where it was chosen before"
    window.choose_theme(ThemeChoice.LIGHT)


@pytest.mark.parametrize("act", [MainWindow.prepare_pages, lambda window: window.show_page("settings")])
def test_the_page_is_made_in_pieces_before_it_is_wanted_and_when_it_is(qtbot, window: MainWindow, act) -> None:
    act(window)
    page = window.settings
    assert page is not None
    assert page.sections == []
    qtbot.waitUntil(lambda: len(page.sections) == 7)
    whole = list(page.offers())
    assert "All settings of this page" in [name for name, _ in whole]
    window.show_page("settings")
    assert list(page.offers()) == whole


@pytest.mark.parametrize("name", ["theme", "accent", "textSize", "engine/slots", "sidebar", "geometry"])
def test_a_file_that_says_nonsense_is_as_if_it_said_nothing(appearance: Appearance, tmp_path: Path, name: str) -> None:
    kept = WindowSettings(tmp_path / "other.ini")
    kept.keep(name, "nonsense")
    kept.dress(appearance)
    assert appearance.percent == 100
    assert kept.engine_arguments == []


def test_a_search_leaves_what_has_all_its_words(page: SettingsPage) -> None:
    everything = shown(page)
    for words, found in (
        ("telemetry", ["No telemetry"]),
        ("HUB account", ["Hugging Face Hub"]),
        ("GPU processor", ["Runs on"]),
        ("REPLIES at once", ["Replies at once"]),
        ("deutsch", ["Language"]),
        ("violet", ["Accent"]),
        ("proxy", ["Hugging Face Hub"]),
        ("nothing like this", []),
    ):
        page.search.setText(words)
        assert shown(page) == found, words
        assert page.state.isVisible() is not bool(found), words
        if not found:
            page.state.button.click()
        page.search.clear()
        assert shown(page) == everything, words


def test_options_of_the_engine_count_after_a_restart_which_the_page_offers(
    qtbot, window: MainWindow, page: SettingsPage
) -> None:
    assert not page.engine.note.isVisible()
    pick(page.engine.fields["slots"], "8")
    pick(page.engine.fields["cache_disk"], "0")
    assert page.engine.note.isVisible()
    pick(page.engine.fields["slots"], "")
    with qtbot.waitSignal(window.restart_wanted) as restart:
        page.engine.note.button.click()
    assert restart.args == [["--cache-disk", "0"]]
    assert "restarts" in page.engine.note.words.text()
    assert not page.engine.note.button.isVisible()
    window.watch.state_changed.emit(ServerState(phase="unknown"))
    assert page.engine.note.isVisible(), "it does not answer yet"
    window.watch.state_changed.emit(ServerState(phase="loading"))
    assert not page.engine.note.isVisible()
    with qtbot.waitSignal(window.restart_wanted) as restart:
        window.use_recommended_engine()
    assert restart.args == [[]]
    assert page.engine.fields["cache_disk"].currentData() == ""


def test_what_is_chosen_stays_where_it_is_while_the_note_above_comes_and_goes(
    qtbot, window: MainWindow, page: SettingsPage
) -> None:
    window.resize(800, 600)
    field = page.engine.fields["cache_disk"]
    page.show_setting("Texts kept on disk")
    qtbot.waitUntil(lambda: is_seen(field))
    place, bar = field.mapTo(window, QPoint()), page.area.verticalScrollBar()
    moved: list[int] = []
    bar.valueChanged.connect(moved.append)
    for value, is_shown in (("0", True), ("", False)):
        moved.clear()
        pick(field, value)
        qtbot.waitUntil(lambda: moved != [])
        assert page.engine.note.isVisible() is is_shown
        assert field.mapTo(window, QPoint()) == place


def test_a_device_that_the_engine_has_can_be_chosen(page: SettingsPage) -> None:
    page.engine.offer(("CUDA0", "CPU"))
    field = page.engine.fields["device"]
    assert [field.itemData(at) for at in range(field.count())] == ["", PROCESSOR, "CUDA0"]


@pytest.mark.parametrize("name", ENGINE_OPTIONS)
def test_serve_understands_every_choice(name: str) -> None:
    commands: Any = typer.main.get_command(build(is_pretty=False, typed=["serve"]))
    option = ENGINE_OPTIONS[name]
    for value in (*dict(option.choices), *(("CUDA0",) if option.is_open else ())):
        # Raises a usage error where an option or its value is unknown.
        assert commands.commands["serve"].make_context("serve", option.arguments(value)).params


def test_every_setting_can_be_reached_with_the_keyboard(window: MainWindow, page: SettingsPage) -> None:
    names = [name for name, _ in page.offers()]
    for name in names:
        page.show_setting(name)
        assert page.isAncestorOf(window.focusWidget())
    assert len(set(names)) == len(names)


def test_the_desktops_menus_and_the_start_at_login(qtbot, page: SettingsPage, tmp_path: Path) -> None:
    if not DesktopEntry().is_offered:
        pytest.skip("menus of XDG desktops")
    for is_there in (True, False):
        page.computer.login.setChecked(is_there)
        page.computer.menu_button.setFocus()
        page.computer.menu_button.click()
        qtbot.waitUntil(page.computer.menu_button.isEnabled)
        assert page.window().focusWidget() is page.computer.menu_button
        assert (tmp_path / "config" / "autostart" / "slipstream.desktop").exists() is is_there
        assert (tmp_path / "share" / "applications" / "slipstream.desktop").exists() is is_there
    (tmp_path / "config" / "autostart").rmdir()
    (tmp_path / "config" / "autostart").write_text("in the way")
    page.computer.login.click()
    assert "cannot be written" in page.banner.text
    assert not page.computer.login.isChecked()


def test_folders_are_shown_imported_and_forgotten(
    qtbot, library_server: LibraryServer, page: SettingsPage, tmp_path: Path
) -> None:
    qtbot.waitUntil(page.folders.models_button.isEnabled)
    folder = tmp_path / "mine"
    folder.mkdir()
    page.folders.import_folder(str(folder))
    qtbot.waitUntil(lambda: any(str(folder) in line.help.text() for line in page.folders.lines))
    line = next(line for line in page.folders.lines if str(folder) in line.help.text())
    assert line.control is not None
    qtbot.mouseClick(line.control, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not any(str(folder) in line.help.text() for line in page.folders.lines))
    page.folders.import_folder(str(tmp_path / "missing"))
    qtbot.waitUntil(lambda: "does not exist" in page.banner.text)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the folder of models of a new home."""
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    models_folder().mkdir(parents=True)
    (models_folder() / "notes.txt").write_text("mine")
    return models_folder() / "notes.txt"


def test_the_models_are_moved_and_the_server_starts_again(
    qtbot, notes: Path, library_server: LibraryServer, window: MainWindow, page: SettingsPage, tmp_path: Path
) -> None:
    qtbot.waitUntil(page.folders.move_button.isEnabled)

    def said() -> str:
        return " ".join(line.help.text() for line in page.folders.lines)

    page.folders.move_models(str(notes.parent / "below"))
    assert page.folders.move_button.text() == "Cancel"
    qtbot.waitUntil(lambda: "is inside the present folder" in page.banner.text)
    assert page.folders.move_button.text() == "Move…"
    assert str(notes.parent) in said()
    with qtbot.waitSignal(window.restart_wanted):
        page.folders.move_models(str(tmp_path / "new"))
    assert page.banner.text == f"The models are in {tmp_path / 'new'} now."
    assert f"Downloads go to {tmp_path / 'new'}" in said()
    assert (tmp_path / "new" / "notes.txt").read_text() == "mine"
    assert not notes.exists()
    assert models_folder() == tmp_path / "new"


def is_seen(widget: QWidget | None) -> bool:
    return widget is not None and not widget.visibleRegion().isEmpty()


def test_what_has_the_keyboard_stays_in_sight(qtbot, window: MainWindow, page: SettingsPage) -> None:
    window.resize(1180, 780)
    last = page.reset_button
    last.setFocus()
    page.area.ensureWidgetVisible(last)
    qtbot.waitUntil(lambda: is_seen(last))
    for size, percent in (((800, 480), 100), ((1180, 780), 150), ((640, 400), 100)):
        window.resize(*size)
        window.resize_text(percent)
        qtbot.waitUntil(lambda: is_seen(last))
    bar = page.area.verticalScrollBar()
    bar.setValue(0)  # the user scrolled it away
    room = bar.maximum()
    window.resize(640, 480)
    qtbot.waitUntil(lambda: bar.maximum() != room)
    assert (bar.value(), is_seen(last)) == (0, False)
    page.search.setText("nothing is called so")
    page.state.button.setFocus()
    page.state.button.click()
    assert window.focusWidget() is page.search
    assert page.search.text() == ""


def test_in_a_narrow_window_a_field_goes_below_its_words_and_a_box_stays_beside_them(qtbot) -> None:
    box = SettingLine("Notices", "When a download ends while you look elsewhere.", switch("Notices", True, bool))
    field = SettingLine("Theme", "Light or dark, or like the system.", choice([("a", "A")], "a", bool))
    for line in (box, field):
        qtbot.addWidget(line)
        line.resize(300, 160)
        line.show()
    qtbot.waitUntil(lambda: field.control.geometry().top() > field.help.geometry().bottom())
    assert box.control.geometry().top() < box.help.geometry().bottom()
