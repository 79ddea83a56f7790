"""Smaller copies in the window, made by the real process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.jobs.quantise.job import QuantiseJob
from models.facts.model_facts import read_model
from models.quantise.plan import make_plan
from models.quantise.progress import QuantisePhase
from tests.support.quantised import ember_f16
from tools.model_factory.gguf_factory import Recipe, cached
from tools.stand_ins.library_server import LibraryServer
from ui.client.library_link import LOST
from ui.library.library_page import DOWNLOADS, LibraryPage
from ui.library.quantise_dialog import QuantiseDialog


@pytest.fixture
def fox(models_folder: Path) -> Path:
    """An unquantised model."""
    return placed(ember_f16(), models_folder)


@pytest.fixture
def slow_fox(models_folder: Path) -> Path:
    """One with so many layers that it can be caught in the middle."""
    return placed(cached(Recipe(tensor_type="F16", n_layers=48)), models_folder)


def placed(source: Path, folder: Path) -> Path:
    """Copy a model so that it is there whole or not at all: the window may be looking already."""
    return Path(shutil.copy(source, folder / "fox.copying")).rename(folder / "fox-F16.gguf")


def opened(qtbot, page: LibraryPage, name: str = "fox-F16") -> QuantiseDialog:
    qtbot.waitUntil(lambda: name in listed(page))
    page.models.list.choose(name)
    page.models.details.smaller.click()
    dialog = page.window().findChildren(QuantiseDialog)[-1]
    qtbot.waitUntil(lambda: dialog.offer is not None)
    return dialog


def listed(page: LibraryPage) -> list[str]:
    return [row.key for row in page.models.list.rows.rows]


def closed(qtbot, page: LibraryPage) -> None:
    qtbot.waitUntil(lambda: page.window().findChildren(QuantiseDialog) == [])


def is_at_work(dialog: QuantiseDialog) -> bool:
    return dialog.row.bar.isVisible() and dialog.row.bar.value() > 0


def begun(qtbot, page: LibraryPage) -> QuantiseDialog:
    dialog = opened(qtbot, page)
    dialog.make.click()
    qtbot.waitUntil(lambda: is_at_work(dialog))
    return dialog


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.gguf"))


def test_types_are_offered_best_first_with_the_usual_one_chosen(qtbot, page: LibraryPage, fox: Path) -> None:
    dialog = opened(qtbot, page)
    rows = dialog.list.rows.rows
    assert [row.key for row in rows][:2] == ["Q8_0", "Q6_K"]
    assert all(row.line.endswith(".") and row.right.startswith("about") for row in rows)
    assert dialog.list.key == "Q4_K_M"
    assert dialog.name.placeholderText() == "fox-Q4_K_M"
    dialog.list.choose("Q8_0")
    assert dialog.name.placeholderText() == "fox-Q8_0"
    assert "free" in dialog.room.text()
    assert not dialog.warning.isVisible()
    assert dialog.make.isEnabled()
    assert dialog.make.isDefault()


def test_a_copy_is_made_and_shown_by_the_keyboard_alone(qtbot, page: LibraryPage, fox: Path) -> None:
    dialog = opened(qtbot, page)
    QTest.keyClick(dialog.list, Qt.Key.Key_Down)
    wanted = dialog.name.placeholderText()
    dialog.list.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)  # where the mouse rests is no matter
    QTest.keyClick(dialog.list, Qt.Key.Key_Return)
    qtbot.waitUntil(dialog.show_it.isVisible)
    assert "loads" in dialog.row.line.text()
    assert dialog.show_it.isDefault()
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    closed(qtbot, page)
    qtbot.waitUntil(lambda: page.models.list.key == wanted)
    assert fox.exists()


def test_what_is_quantised_already_needs_a_word(qtbot, page: LibraryPage) -> None:
    dialog = opened(qtbot, page, "ember-q8_0")
    assert dialog.warning.isVisible()
    assert not dialog.make.isEnabled()
    QTest.keyClick(dialog.list, Qt.Key.Key_Return)
    assert dialog.stack.currentWidget() is dialog.chooser
    QTest.keyClick(dialog.anyway, Qt.Key.Key_Space)
    assert dialog.make.isEnabled()
    dialog.make.click()
    qtbot.waitUntil(dialog.show_it.isVisible)
    qtbot.waitUntil(lambda: "ember-Q4_K_M" in listed(page))


def test_a_refused_name_is_a_sentence_and_another_can_be_given(qtbot, page: LibraryPage, fox: Path) -> None:
    dialog = opened(qtbot, page)
    dialog.name.setFocus()
    QTest.keyClicks(dialog.name, "../fox")
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "cannot be a model's name" in dialog.problem.text()
    dialog.name.selectAll()
    QTest.keyClicks(dialog.name, "vixen")
    assert not dialog.problem.isVisible()
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "vixen" in listed(page))


@pytest.mark.slow
def test_closing_the_dialog_does_not_end_the_copy(qtbot, page: LibraryPage, slow_fox: Path) -> None:
    dialog = begun(qtbot, page)
    assert dialog.close_button.isDefault()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    closed(qtbot, page)
    assert page.tabs[DOWNLOADS].text().endswith("1")
    again = opened(qtbot, page)
    assert again.stack.currentWidget() is again.follower
    again.reject()
    page.show_tab(DOWNLOADS)
    (row,) = page.downloads.copies.rows.values()
    assert row.isVisible()
    qtbot.waitUntil(lambda: row.quantising.phase == QuantisePhase.DONE)
    assert page.tabs[DOWNLOADS].text() == DOWNLOADS
    qtbot.waitUntil(lambda: "fox-Q4_K_M" in listed(page))
    row.cancel.click()
    qtbot.waitUntil(lambda: page.downloads.copies.rows == {})
    assert page.downloads.stack.currentWidget() is page.downloads.state


@pytest.mark.slow
def test_a_cancelled_copy_leaves_nothing_and_another_can_be_chosen(
    qtbot, page: LibraryPage, slow_fox: Path, models_folder: Path
) -> None:
    dialog = begun(qtbot, page)
    dialog.stop.click()
    qtbot.waitUntil(lambda: dialog.stack.currentWidget() is dialog.chooser)
    qtbot.waitUntil(lambda: files_of(models_folder) == ["fox-F16.gguf"])
    qtbot.waitUntil(dialog.make.isEnabled)
    assert not dialog.problem.isVisible()


@pytest.mark.slow
def test_a_library_that_dies_says_so_and_leaves_nothing(
    qtbot, page: LibraryPage, library_server: LibraryServer, slow_fox: Path, models_folder: Path
) -> None:
    dialog = begun(qtbot, page)
    library_server.process.kill()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert dialog.problem.text() == LOST
    assert dialog.stack.currentWidget() is dialog.chooser
    qtbot.waitUntil(lambda: page.window().link.quantisings == ())  # the stream of news may end a moment later
    qtbot.waitUntil(lambda: files_of(models_folder) == ["fox-F16.gguf"])


def test_a_copy_that_fails_is_a_sentence_and_another_can_be_chosen(
    qtbot, page: LibraryPage, fox: Path, models_folder: Path
) -> None:
    dialog = opened(qtbot, page)
    (models_folder / ".partial").mkdir(exist_ok=True)
    shutil.rmtree(models_folder / ".partial" / "quantised", ignore_errors=True)
    (models_folder / ".partial" / "quantised").write_text("a file where a folder belongs")
    dialog.make.click()
    qtbot.waitUntil(dialog.row.problem.isVisible)
    assert "quantised" in dialog.row.problem.text()
    dialog.stop.click()
    qtbot.waitUntil(lambda: dialog.stack.currentWidget() is dialog.chooser)


@pytest.mark.slow
def test_the_smallest_model_says_that_it_cannot_be_made_smaller(qtbot, page: LibraryPage, models_folder: Path) -> None:
    facts = read_model(ember_f16())
    QuantiseJob(make_plan(facts, name="fox-F16", type_name="Q2_K", folder=models_folder), models_folder).run()
    dialog = opened(qtbot, page, "fox-Q2_K")
    assert "as small as it can be made here" in dialog.problem.text()
    assert dialog.list.rows.rowCount() == 0
    assert not dialog.warning.isVisible()
    assert not dialog.make.isEnabled()
