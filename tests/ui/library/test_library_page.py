"""What a user does in the library, with the real process behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMessageBox

from app.client.discovery import enlist
from app.client.server_process import library_command
from models.catalog.catalog import STARTER_FOLDER
from models.download.progress import Downloaded, DownloadPhase, DownloadProgress
from models.library import requests as ask
from models.library.values import Download, Remedy, Trouble, TroubleKind
from tools.stand_ins.dragging import place
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import LibraryServer
from tools.stand_ins.probed_machine import remember_probe
from ui.client.api import Api, ServerState
from ui.client.remedies import clicked
from ui.language import dotted
from ui.library import downloads_view
from ui.library.hub_dialog import HubDialog
from ui.library.library_page import DOWNLOADS, FIND, HERE, LibraryPage
from ui.library.repository_pane import USE
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.tokens import LIGHT
from ui.widgets.row_list import ListRow, RowList
from ui.window.main_window import MainWindow

REPO = "acme/fox-GGUF"
SMALL = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()


def names(page: LibraryPage) -> list[str]:
    return [row.key for row in page.models.list.rows.rows]


def listed(qtbot, page: LibraryPage, name: str) -> None:
    qtbot.waitUntil(lambda: name in names(page))


def found(qtbot, page: LibraryPage, words: str = "fox") -> None:
    page.show_tab(FIND)
    page.finder.field.setText(words)
    qtbot.waitUntil(lambda: [row.key for row in page.finder.list.rows.rows] == [REPO])


def opened(qtbot, page: LibraryPage) -> None:
    found(qtbot, page)
    page.finder.list.choose(REPO)
    qtbot.waitUntil(lambda: page.finder.pane.repository is not None)


def test_before_the_first_list_came_nobody_is_told_that_there_are_no_models(qtbot, page: LibraryPage) -> None:
    page.models.set_used("ember-q8_0")
    assert page.models.state.title.text() == "Looking for models…"
    listed(qtbot, page, "ember-q8_0")


@pytest.mark.parametrize("library_server", [library_command], indirect=True)
def test_models_of_this_machine_are_listed_and_described(qtbot, page: LibraryPage) -> None:
    listed(qtbot, page, "ember-q8_0")
    assert page.models.panes.side.isHidden()
    page.models.list.choose("ember-q8_0")
    details = page.models.details
    assert details.title.text() == "ember-q8_0", "one name everywhere"
    assert details.header.facts["Name"] == "Ember"
    assert details.facts.facts["Architecture"] == "llama"
    assert "Last used" not in details.facts.facts, "it never was"
    qtbot.waitUntil(details.header.isVisible)
    assert details.header.facts["Chat template"] == "yes"
    assert not details.remove.isVisible()
    qtbot.waitUntil(details.machine.facts.isVisible)
    assert details.machine.facts.facts["Expected"] == "not known yet"
    unknown = "The speed is not known yet: “Measure this machine” finds it out"
    qtbot.waitUntil(lambda: unknown in details.machine.sentence.text())
    # A server that writes replies keeps the machine from being measured, so that the test need not wait for that.
    busy = FakeServer()
    busy.n_active = 1
    enlist(host="127.0.0.1", port=int(busy.url.rpartition(":")[2]), api_key=None, model=None)
    details.machine.measure.click()
    assert details.machine.measure.text() == "Stop measuring"
    assert details.machine.bar.isVisible()
    qtbot.waitUntil(lambda: "at work on replies" in details.machine.problem.text())
    busy.stop()
    qtbot.waitUntil(lambda: details.machine.measure.text() == "Measure this machine")


def test_words_of_rows_are_made_once_since_a_folder_may_have_thousands(qtbot, page: LibraryPage) -> None:
    listed(qtbot, page, "ember-q8_0")
    before = {row.key: row for row in page.models.list.rows.rows}
    page.models.filter.setText("draft")
    page.models.filter.clear()
    assert all(row is before[row.key] for row in page.models.list.rows.rows)
    page.models.set_used("ember-q8_0")
    assert [row.key for row in page.models.list.rows.rows if row is not before[row.key]] == ["ember-q8_0"]


def test_many_downloads_come_into_view_a_few_at_a_time(qtbot, page: LibraryPage) -> None:
    paused = DownloadProgress(DownloadPhase.PAUSED, 1, 100, 0.0, None)
    many = tuple(Download(number, REPO, "Q8_0", paused) for number in range(20))
    for _ in range(5):  # news that come at once
        page.downloads.show_downloads(many)
    assert len(page.downloads.rows) < 5
    qtbot.waitUntil(lambda: list(page.downloads.rows) == list(range(20)))


def test_a_download_to_which_nothing_comes_says_so(page: LibraryPage) -> None:
    silent = DownloadProgress(DownloadPhase.DOWNLOADING, 40_000_000, 100_000_000, 1e6, 60.0, silence=7.0)
    page.downloads.show_downloads((Download(1, REPO, "Q8_0", silent),))
    assert "Nothing has arrived for 7 s, still trying" in page.downloads.rows[1].line.text()
    assert "left" not in page.downloads.rows[1].line.text()


def test_a_download_that_failed_has_a_button_in_words(qtbot, page: LibraryPage) -> None:
    failed = DownloadProgress(DownloadPhase.FAILED, 1, 100, 0.0, None)
    page.show_tab(DOWNLOADS)
    page.downloads.show_downloads((Download(1, REPO, "Q8_0", failed, Trouble("It broke.")),))
    row = page.downloads.rows[1]
    assert (row.use.text(), row.toggle.isHidden()) == ("Try again", True)
    row.use.setFocus()
    with qtbot.waitSignal(row.resume_wanted):
        row.use.click()
    page.downloads.show_downloads((Download(1, REPO, "Q8_0", replace(failed, phase=DownloadPhase.QUEUED)),))
    assert page.window().focusWidget() is row.toggle, "the keyboard stays in the row"
    assert row.use.isHidden()


def test_a_download_that_the_hub_has_no_more_leads_to_others(page: LibraryPage) -> None:
    failed = DownloadProgress(DownloadPhase.FAILED, 1, 100, 0.0, None)
    page.show_tab(DOWNLOADS)
    gone = Trouble("It is gone.", TroubleKind.MISSING)
    page.downloads.show_downloads((Download(1, "acme/fox-GGUF", "Q8_0", failed, gone),))
    use = page.downloads.rows[1].use
    assert use.text() == "Find another"
    use.click()
    assert (page.tabs[FIND].isChecked(), page.finder.field.text()) == (True, "fox-GGUF")
    private = Trouble("There is none, or it is private: log in first.", TroubleKind.MISSING, (Remedy.SEARCH,))
    page.downloads.show_downloads((Download(1, "acme/fox-GGUF", "Q8_0", failed, private),))
    assert use.text() == "Try again"


def test_a_click_that_was_meant_for_pause_uses_no_model(
    qtbot, page: LibraryPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = DownloadProgress(DownloadPhase.DOWNLOADING, 99, 100, 0.0, None)
    page.downloads.show_downloads((Download(1, REPO, "Q8_0", coming),))
    row = page.downloads.rows[1]
    assert row.up.isHidden(), "it is the only one"
    done = Downloaded("fox-Q8_0", REPO, "main", 99, (Path("/models/fox-Q8_0.gguf"),), False)
    arrived = Download(1, REPO, "Q8_0", replace(coming, phase=DownloadPhase.DONE), done=done)
    page.downloads.show_downloads((arrived,))
    with qtbot.assertNotEmitted(page.file_chosen):
        row.use.click()
    monkeypatch.setattr(downloads_view, "UNMEANT_SECONDS", 0.0)
    with qtbot.waitSignal(page.file_chosen):
        row.use.click()


def test_much_that_has_arrived_is_not_deleted_by_a_slip_of_the_mouse(page: LibraryPage) -> None:
    large = DownloadProgress(DownloadPhase.PAUSED, 4_200_000_000, 9_000_000_000, 0.0, None)
    page.downloads.show_downloads((Download(1, REPO, "Q8_0", large),))
    page.downloads.rows[1].cancel.click()
    (box,) = page.window().findChildren(QMessageBox)
    assert box.informativeText() == "The 4.2 GB that have arrived are deleted."
    box.reject()
    window = page.window()
    before = page.tabs[DOWNLOADS].minimumWidth()
    window.link.downloads = (Download(1, REPO, "Q8_0", replace(large, phase=DownloadPhase.DOWNLOADING)),)
    window.link.downloads_changed.emit(window.link.downloads)
    assert page.tabs[DOWNLOADS].text() == f"{DOWNLOADS}  1"
    assert page.tabs[DOWNLOADS].minimumWidth() > before, "it has room for their number"
    page.downloads.rows[1].cancel.click()
    box = next(box for box in window.findChildren(QMessageBox) if box.isVisible())
    assert box.informativeText().endswith("are deleted. Pause it to keep them.")
    box.reject()


def test_a_failure_that_comes_late_is_not_shown_with_another_repository(
    qtbot, page: LibraryPage, hub: HubServer
) -> None:
    hub.add("acme/hen-GGUF", {"hen-Q8_0.gguf": SMALL})
    opened(qtbot, page)
    pane = page.finder.pane
    pane.show_judge_trouble("acme/hen-GGUF", "hen-Q8_0.gguf", Trouble("The hen's header cannot be read."))
    pane.show_judge_trouble(REPO, "fox-of-before.gguf", Trouble("The old fox is gone."))
    assert "hen" not in pane.advice.text()
    assert "old" not in pane.advice.text()
    pane.show_judge_trouble(REPO, pane.list.key or "", Trouble("The fox's header cannot be read."))
    assert pane.advice.text() == "The fox's header cannot be read."


def test_a_model_that_was_removed_can_be_downloaded_again(qtbot, page: LibraryPage, models_folder: Path) -> None:
    opened(qtbot, page)
    pane = page.finder.pane
    qtbot.waitUntil(lambda: pane.list.key == "fox-Q8_0.gguf")
    for _ in range(2):
        pane.download.click()
        qtbot.waitUntil(lambda: pane.download.text() == USE)
        next(models_folder.rglob("fox-Q8_0.gguf")).unlink()
        page.models.look()
        qtbot.waitUntil(lambda: pane.download.text().startswith("Download  "))


def test_larger_text_gives_the_details_more_room(qtbot, page: LibraryPage, window: MainWindow) -> None:
    window.resize(1180, 780)
    listed(qtbot, page, "ember-q8_0")
    page.models.list.choose("ember-q8_0")
    details, side = page.models.details, page.models.panes.side
    qtbot.waitUntil(details.machine.facts.isVisible)
    usual = side.width()
    window.resize_text(150)
    details.settings.setText("Einstellungen…")  # the longest words on its buttons, in German
    details.reveal.setText("Ordner öffnen")
    details.use.setText("Verwenden")
    details.remove.setText("Entfernen…")
    details.remove.show()
    qtbot.waitUntil(lambda: side.width() > usual)
    qtbot.waitUntil(lambda: details.body.width() <= details.viewport().width())
    window.resize_text(100)
    qtbot.waitUntil(lambda: side.width() == usual)


def test_long_words_on_buttons_do_not_make_the_details_wider_than_their_place(
    qtbot, page: LibraryPage, window: MainWindow
) -> None:
    window.resize(1280, 800)
    window.resize_text(150)
    listed(qtbot, page, "ember-q8_0")
    page.models.list.choose("ember-q8_0")
    details = page.models.details
    qtbot.waitUntil(details.machine.facts.isVisible)
    details.smaller.setText("Make a copy of it that is smaller")
    details.settings.setText("All of its settings")
    qtbot.waitUntil(lambda: details.smaller.geometry().top() > details.settings.geometry().bottom())
    assert details.body.width() <= details.viewport().width()


def test_a_line_divides_the_list_from_the_details_where_both_are_seen(
    qtbot, page: LibraryPage, window: MainWindow
) -> None:
    panes = page.models.panes
    listed(qtbot, page, "ember-q8_0")
    assert not panes.line.isVisible()
    page.models.list.choose("ember-q8_0")
    qtbot.waitUntil(lambda: panes.line.isVisible() and panes.line.height() == panes.height())
    window.choose_theme(ThemeChoice.LIGHT)
    assert panes.line.grab().toImage().pixelColor(0, panes.height() - 1).name() == LIGHT.border
    window.resize(640, 480)
    qtbot.waitUntil(panes.side.isVisible)
    assert not panes.line.isVisible()


def test_a_broken_file_says_why_and_cannot_be_used_judged_paired_or_set(
    qtbot, page: LibraryPage, models_folder: Path
) -> None:
    (models_folder / "短い.gguf").write_bytes(SMALL[:50_000])
    listed(qtbot, page, "短い")
    page.models.list.choose("短い")
    details = page.models.details
    assert "incomplete" in details.note.text()
    assert list(details.facts.facts) == ["Size", "Verified"], "nothing else is known"
    for part in (details.use, details.machine, details.partners, details.settings, details.smaller):
        assert not part.isVisible()


def test_files_that_come_and_go_are_noticed(qtbot, page: LibraryPage, models_folder: Path) -> None:
    listed(qtbot, page, "ember-q8_0")
    (models_folder / "new.gguf").write_bytes(SMALL)
    page.models.look()
    listed(qtbot, page, "new")
    page.models.list.choose("new")
    (models_folder / "new.gguf").unlink()
    page.models.look()
    qtbot.waitUntil(lambda: "new" not in names(page))
    assert page.models.panes.side.isHidden()


def test_a_model_is_used_in_the_chat(qtbot, page: LibraryPage, window: MainWindow, server: FakeServer) -> None:
    listed(qtbot, page, "ember-draft-q8_0")
    page.models.list.choose("ember-draft-q8_0")
    page.models.details.use.click()
    assert window.page.isVisible()
    assert window.page.picker.shown_model == "ember-draft-q8_0"
    qtbot.waitUntil(lambda: server.loads == ["ember-draft-q8_0"])
    window.watch.start()
    qtbot.waitUntil(lambda: window.watch.state.model == "ember-draft-q8_0")
    window.show_page("library")
    qtbot.waitUntil(lambda: page.models.details.use.text() == "In use")


@pytest.mark.parametrize(("file", "name"), [("mine.gguf", "mine"), ("m\udcff.gguf", "m%FF")], ids=["mine", "not UTF-8"])
def test_a_model_goes_to_the_trash_only_after_asking(
    qtbot, page: LibraryPage, models_folder: Path, file: str, name: str
) -> None:
    (models_folder / file).write_bytes(SMALL)
    listed(qtbot, page, name)
    page.models.list.choose(name)
    for answer, is_there in ((1, True), (0, False)):
        page.models.details.remove.click()
        box = page.window().findChildren(QMessageBox)[-1]
        assert name in box.text()
        box.buttons()[answer].click()
        qtbot.waitUntil(lambda is_there=is_there: (name in names(page)) is is_there)
    assert not (models_folder / file).exists()
    qtbot.waitUntil(lambda: page.toast.text == f"{name} is in the trash")


def test_a_folder_is_imported_and_forgotten_and_one_that_is_not_there_is_told(
    qtbot, page: LibraryPage, tmp_path: Path
) -> None:
    folder = tmp_path / "of mine"
    folder.mkdir()
    (folder / "own.gguf").write_bytes(SMALL)
    page.models.import_folder(str(folder))
    listed(qtbot, page, "own")
    button = page.models.folders_button
    qtbot.waitUntil(button.isVisible)
    (action,) = button.menu().actions()
    assert action.text() == f"Forget {folder}"
    action.trigger()
    qtbot.waitUntil(lambda: "own" not in names(page))
    qtbot.waitUntil(lambda: not button.isVisible())
    assert (folder / "own.gguf").exists()
    page.models.import_folder(str(tmp_path / "nowhere"))
    qtbot.waitUntil(lambda: "does not exist" in page.models.banner.text)


def test_a_frame_shows_where_the_keyboard_is_but_not_where_the_mouse_led(qtbot, page: LibraryPage) -> None:
    listed(qtbot, page, "ember-q8_0")
    rows, edges = page.models.list, []
    for reason in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.MouseFocusReason):
        page.models.filter.setFocus()
        rows.setFocus(reason)
        assert rows.hasFocus()
        image = rows.viewport().grab().toImage()
        edges.append(image.pixelColor(1, image.height() // 2))
    assert edges[0] == QColor(LIGHT.focus) != edges[1]


def test_the_list_is_filtered(qtbot, page: LibraryPage) -> None:
    listed(qtbot, page, "ember-q8_0")
    page.models.filter.setFocus()
    QTest.keyClicks(page.models.filter, "draft q8")
    assert names(page) == ["ember-draft-q8_0"]
    QTest.keyClick(page.models.filter, Qt.Key.Key_Down)
    assert page.models.list.hasFocus()
    assert page.models.list.key == "ember-draft-q8_0"
    QTest.keyClick(page.models.filter, Qt.Key.Key_Escape)
    assert page.models.filter.text() == ""
    page.models.filter.setText("nothing like it")
    assert page.models.stack.currentWidget() is page.models.state
    page.models.state.button.click()
    assert page.finder.isVisible()


def test_the_list_to_begin_with_has_no_speeds_on_a_machine_nobody_measured_and_a_search_takes_its_place(
    qtbot, page: LibraryPage
) -> None:
    page.show_tab(FIND)
    qtbot.waitUntil(lambda: page.finder.list.rows.rowCount() > 20)
    assert page.finder.head.text() == "To begin with"
    assert {row.right for row in page.finder.list.rows.rows} == {""}
    assert page.finder.foot.text().startswith("Speeds are not known until this machine was measured.")
    found(qtbot, page)
    page.finder.field.setText("nothing has this name")
    qtbot.waitUntil(lambda: page.finder.state.title.text() == "Nothing was found")
    page.finder.state.button.click()
    assert page.finder.field.text() == ""
    qtbot.waitUntil(lambda: page.finder.list.rows.rowCount() > 5)


def test_the_models_to_begin_with_say_fit_and_speed_before_the_hub_is_asked(
    qtbot, page: LibraryPage, hub: HubServer, models_folder: Path
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    page.show_tab(FIND)
    qtbot.waitUntil(lambda: page.finder.list.rows.rowCount() > 20)
    rows = page.finder.list.rows.rows
    for row in rows:
        fits = row.badge in ("fits", "tight")
        assert fits or row.badge == "does not fit"
        assert (row.right.startswith("≈ ") and row.right.endswith(" tok/s")) == fits
    (small,) = (row for row in rows if row.title == "Qwen3.5 0.8B")
    assert small.line.startswith("Small machines  ·  773M  ·  ≈ 548 MB  ·  Q4_K_M")
    assert "heads in its own file, untested" in small.line
    assert not any("does not run" in row.line for row in rows), "nobody asked for what cannot be had"
    assert "Speeds are not known" not in page.finder.foot.text()
    assert "people read about five tokens a second" in page.finder.foot.text()
    page.finder.resize(400, 400)
    assert page.finder.foot.heightForWidth(400) > page.finder.foot.heightForWidth(4000), "none of it is cut"
    assert hub.asked == []
    page.finder.list.choose(small.key)
    qtbot.waitUntil(lambda: bool(hub.asked))


def test_a_narrow_row_leaves_out_facts_and_cuts_none(qtbot) -> None:
    facts = ("Small machines", "773M", "≈ 548 MB", "Q4_K_M")
    lists = []
    for n_facts in range(len(facts), 0, -1):
        lists.append(RowList("Models"))
        qtbot.addWidget(lists[-1])
        lists[-1].show_rows([ListRow("fox", "Fox", dotted(*facts[:n_facts]))])
    seen = []
    for width in range(150, 400, 20):
        for one in lists:
            one.resize(width, 80)
        whole, *fewer = (one.grab().toImage() for one in lists)
        alike = [at for at, image in enumerate(fewer, 1) if image == whole]
        seen.append(alike[-1] if alike else 0)  # how many facts are left out
    assert seen == sorted(seen, reverse=True)
    assert {0, 1, 2, 3} == set(seen)


def test_each_row_says_whether_it_fits_and_how_fast_and_a_header_refines_it(
    qtbot, page: LibraryPage, models_folder: Path, hub: HubServer
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    hub.repos[REPO].n_params = 30_000_000
    hub.add("acme/fox-405B-GGUF", {"fox-Q4_K_M.gguf": SMALL[:9_000]}, n_params=405_000_000_000)
    hub.add("acme/fox-embed-GGUF", {"fox-Q8_0.gguf": SMALL[:9_000]}, architecture="bert")
    page.show_tab(FIND)
    page.finder.field.setText("fox")
    qtbot.waitUntil(lambda: page.finder.list.rows.rowCount() == 3)
    rows = {row.key: row for row in page.finder.list.rows.rows}
    assert (rows[REPO].badge, rows[REPO].right[:2]) == ("fits", "≈ ")
    assert "Q4_K_M" in rows[REPO].line
    assert (rows["acme/fox-405B-GGUF"].badge, rows["acme/fox-405B-GGUF"].right) == ("does not fit", "")
    assert (rows["acme/fox-embed-GGUF"].badge, rows["acme/fox-embed-GGUF"].right) == ("", "")
    assert "like" not in rows["acme/fox-embed-GGUF"].line, "nobody liked it yet"
    assert "estimates" in page.finder.foot.text()
    page.finder.list.choose(REPO)
    at = list(rows).index(REPO)
    qtbot.waitUntil(lambda: page.finder.list.rows.rows[at].right != rows[REPO].right)
    assert "Q8_0" in page.finder.list.rows.rows[at].line
    assert page.finder.list.key == REPO


def test_the_menu_of_models_says_whether_they_fit_and_how_fast(
    qtbot, page: LibraryPage, window: MainWindow, models_folder: Path
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    window.watch.start()
    picker = window.page.picker
    qtbot.waitUntil(lambda: bool(window.watch.models) and "fits  ·  ≈ " in picker.figure_of("ember-q8_0"))

    def shown() -> list[str]:
        return [action.text() for action in picker.menu.actions()]

    picker.menu.popup(picker.mapToGlobal(picker.rect().bottomLeft()))
    assert any("\tfits  ·  ≈ " in words for words in shown())
    before = shown()
    picker.figure_of = lambda name: ""
    assert shown() == before
    picker.menu.close()
    picker.fill_menu()
    assert not any("\t" in words for words in shown())


def test_fit_and_speed_of_the_last_time_are_there_before_models_are_judged_again(
    qtbot, appearance: Appearance, page: LibraryPage, window: MainWindow, models_folder: Path, tmp_path: Path
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    qtbot.waitUntil(lambda: "fits  ·  ≈ " in window.page.picker.figure_of("ember-q8_0"))
    said = window.page.picker.figure_of("ember-q8_0")
    window.close()
    again = MainWindow(Api(), appearance, tmp_path / "chats.db", tmp_path / "window.ini")
    qtbot.addWidget(again)
    assert again.page.picker.figure_of("ember-q8_0") == said
    again.close()


def test_a_repository_is_judged_downloaded_and_used(
    qtbot, page: LibraryPage, window: MainWindow, models_folder: Path
) -> None:
    remember_probe(models_folder.parents[1] / "cache")
    opened(qtbot, page)
    pane = page.finder.pane
    (found,) = [row for row in page.finder.list.rows.rows if row.key == REPO]
    for line in (pane.line.text(), found.line):
        assert "1 download" in line.split("  ·  ")
    assert [(row.title, row.right) for row in pane.list.rows.rows] == [
        ("Q4_K_M", "500 KB"), ("Q8_0", "1.8 MB"), ("mmproj-F16", "9 KB"),
    ]  # fmt: skip
    assert pane.list.key == "fox-Q4_K_M.gguf"
    qtbot.waitUntil(lambda: pane.list.key == "fox-Q8_0.gguf")
    assert pane.recommendation.text().startswith("Recommended here: Q8_0, the best quality that fits")
    assert [row.badge for row in pane.list.rows.rows] == ["", "recommended", ""]
    pane.list.choose("fox-Q4_K_M.gguf")
    qtbot.waitUntil(lambda: "incomplete" in pane.advice.text())
    pane.list.choose("fox-Q8_0.gguf")
    qtbot.waitUntil(pane.facts.isVisible)
    assert pane.facts.facts["Parameters"] == "1.6M"
    expected, full = (pane.facts.facts[label] for label in ("Expected speed", "At 1,024 tokens"))
    assert expected.startswith("≈ ")
    speeds = f"{expected} here, {full} after 1,024 tokens."
    assert pane.recommendation.text().endswith(speeds)
    pane.download.click()
    qtbot.waitUntil(lambda: pane.download.text() == USE)
    page.show_tab(DOWNLOADS)
    (row,) = page.downloads.rows.values()
    assert "Downloaded and verified" in row.line.text()
    with qtbot.waitSignal(page.file_chosen) as chosen:
        row.use.click()
    assert chosen.args == [str(models_folder / REPO / "fox-Q8_0.gguf")]
    qtbot.waitUntil(lambda: window.page.picker.shown_model == "fox-Q8_0")
    window.show_page("library")
    page.show_tab(HERE)
    listed(qtbot, page, "fox-Q8_0")
    page.models.list.choose("fox-Q8_0")
    assert page.models.details.facts.facts["Verified"].startswith("yes")
    page.downloads.clear.click()
    qtbot.waitUntil(lambda: page.downloads.rows == {})


def test_enter_in_the_quantisations_does_what_the_button_would(qtbot, page: LibraryPage, hub: HubServer) -> None:
    opened(qtbot, page)
    pane = page.finder.pane
    qtbot.waitUntil(lambda: pane.list.key == "fox-Q8_0.gguf")
    hub.fault("fox-Q8_0.gguf", Fault(times=1, stall_after=1_000))
    pulled = list[str]()
    pane.pull_wanted.connect(lambda repo_id, file: pulled.append(file))
    row = pane.list.visualRect(pane.list.model().index(0, 0))
    qtbot.mouseClick(pane.list.viewport(), Qt.MouseButton.LeftButton, pos=row.center())
    assert (pane.list.key, pulled) == ("fox-Q4_K_M.gguf", []), "a click chooses"
    pane.list.choose("fox-Q8_0.gguf")
    pane.list.setFocus()
    qtbot.keyClick(pane.list, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: pane.download.text() == "Show in downloads")
    qtbot.keyClick(pane.list, Qt.Key.Key_Return)
    assert page.downloads.isVisible()
    assert len(page.downloads.rows) == 1


def test_the_button_of_a_download_that_failed_says_so(qtbot, page: LibraryPage) -> None:
    opened(qtbot, page)
    pane = page.finder.pane
    qtbot.waitUntil(lambda: pane.list.key == "fox-Q8_0.gguf")
    coming = DownloadProgress(DownloadPhase.DOWNLOADING, 1, 100, 1.0, 9.0)
    pane.show_downloads((Download(1, REPO, "fox-Q8_0.gguf", coming),))
    assert pane.download.text() == "Show in downloads"
    pane.show_downloads((Download(1, REPO, "fox-Q8_0.gguf", replace(coming, phase=DownloadPhase.FAILED)),))
    assert pane.download.text() == "Download failed: see why"
    with qtbot.waitSignal(pane.downloads_wanted):
        pane.download.click()


def test_what_has_arrived_is_used_with_the_button_that_fetched_it(
    qtbot, page: LibraryPage, models_folder: Path
) -> None:
    opened(qtbot, page)
    pane, used = page.finder.pane, list[str]()
    page.file_chosen.connect(used.append)
    qtbot.waitUntil(lambda: pane.list.key == "fox-Q8_0.gguf")
    pane.download.click()
    qtbot.waitUntil(lambda: pane.download.text() == USE)
    pane.download.click()
    assert not used, "a double click on what was there before does not load a model"
    qtbot.waitUntil(lambda: pane.download.click() or bool(used))
    assert used == [str(models_folder / REPO / "fox-Q8_0.gguf")]


def test_a_download_is_paused_resumed_and_cancelled(qtbot, page: LibraryPage, hub: HubServer) -> None:
    hub.fault("fox-Q8_0.gguf", Fault(bytes_per_second=1e5))
    opened(qtbot, page)
    page.finder.pane.list.choose("fox-Q8_0.gguf")
    button = page.window().rail.buttons["library"]
    quiet = button.grab().toImage()
    page.finder.pane.download.click()
    qtbot.waitUntil(lambda: "B/s" in _line(page))
    assert page.tabs[DOWNLOADS].text() == "Downloads  1"
    assert button.grab().toImage() != quiet, "a dot says that something goes on"
    page.show_tab(DOWNLOADS)
    (row,) = page.downloads.rows.values()
    assert 0 < row.bar.value() < 1_000
    row.toggle.click()
    qtbot.waitUntil(lambda: _line(page).startswith("Paused"))
    assert row.toggle.accessibleName() == "Resume"
    row.toggle.click()
    qtbot.waitUntil(lambda: "B/s" in _line(page))
    row.cancel.click()
    qtbot.waitUntil(lambda: page.downloads.stack.currentWidget() is page.downloads.state)


def _line(page: LibraryPage) -> str:
    return next((row.line.text() for row in page.downloads.rows.values()), "")


def test_a_library_that_dies_in_a_download_comes_back_and_goes_on(
    qtbot, page: LibraryPage, library_server: LibraryServer, hub: HubServer, models_folder: Path
) -> None:
    hub.fault("fox-Q8_0.gguf", Fault(bytes_per_second=1e5))
    opened(qtbot, page)
    page.finder.pane.list.choose("fox-Q8_0.gguf")
    page.finder.pane.download.click()
    qtbot.waitUntil(lambda: "B/s" in _line(page))
    library_server.process.kill()
    qtbot.waitUntil(lambda: "starting again" in page.downloads.banner.text)
    hub.heal()
    qtbot.waitUntil(lambda: "Downloaded" in _line(page))
    assert page.downloads.banner.text == ""
    assert (models_folder / REPO / "fox-Q8_0.gguf").read_bytes() == SMALL


def test_without_a_network_the_hub_is_told_and_the_list_to_begin_with_stays(
    qtbot, page: LibraryPage, hub: HubServer
) -> None:
    page.show_tab(FIND)
    hub.fault("/api/models", Fault(status=500))
    page.finder.field.setText("fox")
    qtbot.waitUntil(lambda: "has a problem" in page.finder.state.text.text())
    hub.heal()
    page.finder.state.button.click()
    qtbot.waitUntil(lambda: [row.key for row in page.finder.list.rows.rows] == [REPO])
    page.finder.field.clear()
    qtbot.waitUntil(lambda: page.finder.list.rows.rowCount() > 5)


def test_a_gated_repository_has_the_usual_model_chosen_and_leads_to_the_settings(
    qtbot, page: LibraryPage, hub: HubServer
) -> None:
    hub.repos[REPO].gated = "manual"
    opened(qtbot, page)
    pane = page.finder.pane
    assert "Gated" in pane.note.text()
    qtbot.waitUntil(lambda: "gated" in pane.advice.text())
    assert pane.list.key == "fox-Q4_K_M.gguf"
    assert not pane.recommendation.isVisible()
    page.settings_button.click()
    (dialog,) = page.window().findChildren(HubDialog)
    assert dialog.height() >= dialog.layout().totalHeightForWidth(dialog.width()), "also while the answer is on its way"
    assert dialog.log_out.isHidden(), "it is not known yet who is logged in"
    assert dialog.token.y() < dialog.address.y(), "most people come for it"
    qtbot.keyClicks(dialog.proxy, "http://p")
    qtbot.waitUntil(lambda: dialog.address.text() == hub.address)
    assert dialog.proxy.text() == "http://p", "what is typed before it is known what was set stays"
    dialog.proxy.clear()
    dialog.token.setText("hf_bad")
    dialog.log_in.click()
    qtbot.waitUntil(lambda: "does not accept" in dialog.problem.text())
    assert dialog.token.text() == "hf_bad", "what is refused can be mended"
    said = [label for label in dialog.findChildren(QLabel) if label.isVisible() and label.wordWrap()]
    qtbot.waitUntil(lambda: all(label.height() >= label.heightForWidth(label.width()) for label in said))
    dialog.problem.hide()
    qtbot.keyClick(dialog.token, Qt.Key.Key_Return)  # saves, and does not forget the token
    qtbot.waitUntil(lambda: "does not accept" in dialog.problem.text() and dialog.problem.isVisible())
    dialog.token.clear()
    dialog.save.click()
    qtbot.waitUntil(lambda: not page.window().findChildren(HubDialog))


def test_a_dialog_that_is_closed_before_its_answer_is_told_nothing(qtbot, page: LibraryPage) -> None:
    window, answers = page.window(), list[object]()
    page.settings_button.click()
    (dialog,) = window.findChildren(HubDialog)
    dialog.close_button.click()
    window.link.ask(ask.ShowHub(), answers.append)  # answered behind the dialog's
    qtbot.waitUntil(lambda: answers != [] and window.findChildren(HubDialog) == [])


def test_the_keyboard_is_on_the_page_also_before_there_are_models(page: LibraryPage, window: MainWindow) -> None:
    assert page.models.state.isVisible()
    assert window.focusWidget() is page.models.filter


def test_the_button_to_log_in_is_called_as_sentences_call_it(page: LibraryPage, window: MainWindow) -> None:
    sentence = clicked(Trouble("", remedies=(Remedy.LOG_IN,))).sentence
    window.show_page("settings")
    window.settings.complete()
    for name in (page.settings_button.toolTip(), window.settings.hub_button.text()):
        assert f"“{name}”" in sentence


def test_a_small_window_shows_one_side_at_a_time_and_the_keyboard_leads_through(
    qtbot, page: LibraryPage, window: MainWindow
) -> None:
    window.resize(720, 480)
    listed(qtbot, page, "ember-q8_0")
    page.models.list.setFocus()
    qtbot.keyClick(page.models.list, Qt.Key.Key_Down)
    assert page.models.list.key == "ember-q8_0"
    assert page.models.panes.side.isHidden()
    qtbot.keyClick(page.models.list, Qt.Key.Key_Return)
    assert page.models.panes.side.isVisible()
    assert not page.models.list.isVisible()
    assert window.focusWidget() is page.models.details.use
    page.models.set_used("ember-q8_0")
    page.models.panes.show_details(False)
    page.models.list.setFocus()
    qtbot.keyClick(page.models.list, Qt.Key.Key_Return)
    assert window.focusWidget() is page.models.details.reveal, "what is in use already cannot be used"
    page.models.panes.show_details(False)
    page.models.list.setFocus()
    page.models.panes.show_details(True, by_hand=True)
    assert window.focusWidget() is page.models.panes.back_button, "not the first button of the window"
    page.models.panes.back_button.click()
    assert page.models.list.isVisible()
    window.resize(1180, 780)
    assert window.findChildren(QDialog) == []


def test_the_keyboard_goes_to_what_can_be_done_where_a_repository_cannot_be_shown(
    qtbot, page: LibraryPage, hub: HubServer
) -> None:
    found(qtbot, page)
    hub.fault(f"/api/models/{REPO}", Fault(status=500))
    page.finder.list.setFocus()
    page.finder.list.choose(REPO)
    qtbot.keyClick(page.finder.list, Qt.Key.Key_Return)
    pane = page.finder.pane
    qtbot.waitUntil(pane.state.button.isVisible)
    assert page.window().focusWidget() is pane.state.button
    hub.heal()
    qtbot.keyClick(pane.state.button, Qt.Key.Key_Space)
    qtbot.waitUntil(pane.list.isVisible)
    assert page.window().focusWidget() is pane.list


def test_the_pages_are_reached_by_keys_and_new_chats_lead_back(qtbot, window: MainWindow) -> None:
    window.show_page("library")
    assert window.library is not None
    assert window.library.isVisible()
    window.chats.history.new_wanted.emit()
    assert window.page.isVisible()
    assert window.rail.buttons["chat"].property("shown")


def test_the_recommended_row_is_in_sight_in_a_small_window(
    qtbot, window: MainWindow, page: LibraryPage, hub: HubServer
) -> None:
    kinds = ("Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "F16", "BF16")
    hub.add(
        REPO, {f"fox-{kind}.gguf": SMALL + bytes(1000 * at) for at, kind in enumerate(kinds)} | {"fox-Q8_0.gguf": SMALL}
    )
    window.resize(720, 480)
    opened(qtbot, page)
    page.finder.panes.show_details(True, by_hand=True)
    pane = page.finder.pane
    qtbot.waitUntil(lambda: "Which" not in pane.recommendation.text() and pane.advice.text() != "Reading its header…")
    chosen = pane.list.currentIndex()
    assert pane.list.key == "fox-Q8_0.gguf"
    assert pane.list.viewport().rect().contains(pane.list.visualRect(chosen))
    # Who scrolls away is left alone.
    QTest.qWait(0)
    bar = pane.list.verticalScrollBar()
    bar.setValue(0)
    bar.sliderMoved.emit(0)
    window.resize(720, 500)
    assert bar.value() == 0
    window.resize_text(150)  # then there is no room for all of it, and nothing lies on anything else
    qtbot.waitUntil(lambda: pane.facts.height() >= pane.facts.minimumSizeHint().height())
    window.resize_text(100)


def test_a_model_file_that_is_dropped_or_opened_is_used_where_it_is(qtbot, window: MainWindow, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "fox.gguf"
    file.parent.mkdir()
    file.write_bytes(SMALL)
    dragged = QMimeData()
    dragged.setUrls([QUrl.fromLocalFile(str(file))])
    what = (Qt.DropAction.CopyAction, dragged, Qt.MouseButton.LeftButton, Qt.KeyboardModifier(0))
    enter = QDragEnterEvent(place(QPoint(5, 5)), *what)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    assert not window.page.composer.field.canInsertFromMimeData(dragged), "it is no attachment"
    QApplication.sendEvent(window, QDropEvent(QPointF(5, 5), *what))
    qtbot.waitUntil(lambda: window.page.picker.shown_model == "fox")
    window.chats.open_file(str(tmp_path / "none.gguf"))
    qtbot.waitUntil(lambda: "no model file" in window.page.server_banner.text)
    window.page.server_banner.action.click()
    assert window.library is not None
    assert window.library.isVisible()
    window.chats.open_file(str(tmp_path / "fox \udcff.gguf"))
    banner = window.page.server_banner
    qtbot.waitUntil(lambda: "its name is not UTF-8" in banner.text)
    # At a start others have something to say as well: that comes and goes, and what was asked for stays unanswered.
    loaded = ServerState(phase="ready", model="fox")
    window.watch.take(replace(loaded, notices=("Nothing drafts.",)))
    qtbot.waitUntil(lambda: banner.text == "Nothing drafts.")
    window.watch.take(loaded)
    assert "its name is not UTF-8" in banner.text
    banner.close_button.click()
    assert banner.text == ""


def test_a_model_that_is_asked_for_is_shown_also_where_it_covers_the_list(qtbot, page: LibraryPage) -> None:
    window = page.window()
    window.resize(800, 600)
    window.show_page("speed")
    window.speed.library_wanted.emit("ember-q8_0")
    qtbot.waitUntil(page.models.details.isVisible)
    assert page.models.details.row.name == "ember-q8_0"
    assert not page.models.list.isVisible()
    page.tabs[HERE].click()
    assert window.focusWidget() is page.models.panes.back_button, "not what is covered"
    window.resize(1400, 900)
    qtbot.waitUntil(page.models.list.isVisible)
    assert window.focusWidget() is page.models.list, "the way back is needed no more"
    window.resize(800, 600)
    qtbot.waitUntil(lambda: not page.models.list.isVisible())
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert window.focusWidget() is page.models.filter
    assert page.models.filter.isVisible()
