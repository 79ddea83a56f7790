"""The models of this machine: a list that follows the folders, and the details of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from models.library import requests as ask
from models.library.values import FolderPlace, ModelRow, ModelRows, Notice, RowReport, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.library.labels import model_line, model_speed, place_line
from ui.library.model_details import ModelDetailsPane
from ui.library.quantise_dialog import QuantiseDialog
from ui.library.settings.settings_dialog import SettingsDialog
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.banner import Banner
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fields import SearchField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import choose_folder, set_menu
from ui.widgets.row_list import ListRow, RowList
from ui.widgets.state_pane import StatePane
from ui.widgets.two_panes import TwoPanes

LOOK_MS = 5_000  # folders change behind the window's back: how often they are looked at while this is in view


class ModelsView(QWidget):
    """Lists, shows, uses, removes and imports models."""

    use_wanted = Signal(str)
    find_wanted = Signal()
    downloads_wanted = Signal()
    removed = Signal(str)
    told = Signal(str)  # a sentence about what was done
    judged = Signal(object)  # tuple[ModelRow, ...], with what was found of some

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link = link
        # By name and path, in the order of the list.
        self._rows: dict[tuple[str, str], ModelRow] = {}
        self._coming: dict[tuple[str, str], ModelRow] = {}
        self._words: dict[tuple[str, str], _Words] = {}
        self._last = ModelRows(())
        self._is_asking, self._was_asked, self._was_listed = False, False, False
        self._used: str | None = None
        self._to_show: str | None = None
        self._offered: str | None = None  # a folder is offered once
        self.filter = SearchField(tr("Filter models"))
        self.import_button = QPushButton(tr("Import folder…"))
        self.import_button.setToolTip(tr("Use the models of a folder where they are"))
        self.folders_button = TextButton(tr("Imported folders…"))
        set_menu(self.folders_button, QMenu(self))
        self.folders_button.hide()
        self.banner, self.notice = Banner(), Banner()
        self.list = RowList(tr("Models on this machine"))
        self.filter.down_pressed.connect(self.list.enter)
        self.state = StatePane()
        self.stack = QStackedWidget()
        self.foot = ElidedLabel()
        self.foot.setProperty("tone", "caption")
        self.details = ModelDetailsPane(link)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._tell = QTimer(self, singleShot=True, interval=0)  # in a turn of its own
        self._lay_out()
        self._connect_signals()
        self.state.say_loading(tr("Looking for models…"))
        self.stack.setCurrentWidget(self.state)

    def _lay_out(self) -> None:
        tools = QHBoxLayout()
        tools.setContentsMargins(Space.L, Space.M, Space.L, Space.S)
        tools.setSpacing(Space.S)
        tools.addWidget(self.filter, 1)
        tools.addWidget(self.import_button)
        self.stack.addWidget(self.list)
        self.stack.addWidget(self.state)
        listed = QWidget()
        column = fill(QVBoxLayout(listed), tools, self.banner, self.notice, (self.stack, 1), spacing=0, margins=0)
        foot = fill(QHBoxLayout(), (self.foot, 1), self.folders_button, margins=(Space.L, Space.XS, Space.M, Space.S))
        column.addLayout(foot)
        self.panes = TwoPanes(listed, self.details, tr("All models"))
        fill(QVBoxLayout(self), self.panes, margins=0)
        # A list that is not there yet cannot have the keyboard: it would stay elsewhere.
        self.stack.currentChanged.connect(lambda at: listed.setFocusProxy((self.list, self.filter)[at]))
        self.setFocusProxy(self.panes)

    def _connect_signals(self) -> None:
        self._timer.timeout.connect(self._look_if_in_use)
        self._tell.timeout.connect(self._on_told)
        self._link.models_changed.connect(self.look)
        self._link.judged.connect(self._on_judged)
        self._link.returned.connect(self.look)
        self._link.gave_up.connect(lambda sentence: self._on_trouble(Trouble(sentence)))
        self.filter.textChanged.connect(lambda text: self._fill())
        self.import_button.clicked.connect(self._choose_folder)
        self.list.chosen.connect(self._show_details)
        self.list.opened.connect(self._on_opened)
        self.panes.left.connect(lambda: self.list.choose(None))
        self.details.use_wanted.connect(self.use_wanted)
        self.details.remove_wanted.connect(self._remove)
        self.details.settings_wanted.connect(self._change_settings)
        self.details.smaller_wanted.connect(self._make_smaller)
        self.details.mend_wanted.connect(self._mend)
        self.details.downloads_wanted.connect(self.downloads_wanted)
        self._link.downloads_changed.connect(self.details.show_downloads)

    def look(self) -> None:
        """List the models again."""
        if self._is_asking:
            self._was_asked = True
            return
        self._is_asking, self._coming = True, {}
        self._link.ask(ask.ListModels(), self._on_listed, self._on_trouble, self._on_part)

    def set_used(self, name: str | None) -> None:
        """Mark the model that is loaded."""
        if name != self._used:
            self._used = name
            self._fill()

    def showEvent(self, event: QShowEvent) -> None:
        """Look at the folders while they are in view."""
        super().showEvent(event)
        self.look()
        self._link.ask(ask.ListPlaces(), self._on_places)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Leave them alone when not."""
        super().hideEvent(event)
        self._timer.stop()

    # What came.

    def _look_if_in_use(self) -> None:
        if self.window().isActiveWindow():
            self.look()

    def _on_part(self, part: ModelRows) -> None:
        # The words are made while the rows come, in many turns. A row that is as before stays the same object.
        for row in part.rows:
            known = self._words.get((row.name, row.path))
            kept = known.row if known is not None and known.row == row else row
            self._coming[row.name, row.path] = kept
            self._said(kept)
        self._last = part
        if not self._was_listed and not self._rows:  # the first of thousands are seen at once
            self._rows = dict(self._coming)
            self._fill()

    def _on_listed(self, nothing: None) -> None:
        is_first, rows = not self._was_listed, self._coming
        self._is_asking, self._was_listed = False, True
        if is_first or list(rows.values()) != list(self._rows.values()) or self.state.isVisible():
            self._rows = rows
            self._fill()
            self._tell.start()
        if self._to_show is not None and any(name == self._to_show for name, _ in rows):
            self.list.choose(self._to_show)
            self._to_show = None
            self.panes.show_details(True, by_hand=True)  # it was asked for: also where it covers the list
        problems = " ".join(self._last.problems)
        self.foot.setText(problems or tr("Looked for in {names}", names=", ".join(self._last.folders)))
        self.foot.setToolTip("\n".join((*self._last.problems, *self._last.folders)))
        self._show_notices(self._last.notices)
        if self._was_asked:
            self._was_asked = False
            self.look()

    def _on_told(self) -> None:
        if len(self._words) > len(self._rows):
            self._words = {place: words for place, words in self._words.items() if place in self._rows}
        self.judged.emit(tuple(self._rows.values()))

    def _on_judged(self, found: tuple[RowReport, ...]) -> None:
        changed = dict[str, ListRow]()
        for one in found:
            place = one.name, one.path
            if place in self._rows:
                row = self._rows[place] = _judged(self._rows[place], one)
                changed[row.name] = self._said(row).words
        self._tell.start()
        self.list.rows.change_rows(changed)

    def _show_notices(self, notices: tuple[Notice, ...]) -> None:
        """Say what happened to files, one after the other."""
        if not notices:
            self.notice.hide()
            return
        first, n_more = notices[0], len(notices) - 1
        text = first.sentence + (tr(" ({n_more} more)", n_more=n_more) if n_more else "")
        if text == self.notice.text:
            return
        label = tr("Download again") if first.repo_id else "OK"
        self.notice.say(text, "warning", (label, lambda: self._settle(first, brings_back=bool(first.repo_id))))
        self.notice.close_button.clicked.disconnect()
        self.notice.close_button.clicked.connect(lambda: self._settle(first))

    def _settle(self, notice: Notice, brings_back: bool = False) -> None:
        self.notice.hide()
        if brings_back:
            self._try(ask.StartDownload(notice.repo_id, notice.wanted))
        self._try(ask.DismissNotice(notice.path))

    def _try(self, request: object, done: Callable[[], object] = lambda: None) -> None:
        """Ask for something that can be asked for again where it fails."""

        def failed(trouble: Trouble) -> None:
            self.banner.say(trouble.sentence, "danger", (tr("Try again"), again))

        def again() -> None:
            self.banner.hide()
            self._try(request, done)

        self._link.ask(request, lambda answer: done(), failed)

    def _on_trouble(self, trouble: Trouble) -> None:
        self._is_asking = self._was_asked = False
        if not self._rows:
            self.state.say(
                "alert", tr("The models cannot be listed"), trouble.sentence, (tr("Try again"), self._retry), "danger"
            )
            self.stack.setCurrentWidget(self.state)

    def _retry(self) -> None:
        self.state.say_loading(tr("Looking for models…"))
        self._link.start()
        self.look()

    def _fill(self) -> None:
        words = self.filter.text().casefold().split()
        said = [self._said(row) for row in self._rows.values()]
        shown = [one.words for one in said if all(word in one.searched for word in words)]
        self.list.show_rows(shown)
        if shown:
            self.stack.setCurrentWidget(self.list)
        elif words and self._rows:
            self.state.say(
                "search", tr("No model like that here"), "", (tr("Find it on the Hub"), self.find_wanted.emit)
            )
            self.stack.setCurrentWidget(self.state)
        elif self._was_listed:
            text = tr("Download one from the Hub, or import a folder that has GGUF files.")
            self.state.say("library", tr("No models yet"), text, (tr("Find models"), self.find_wanted.emit))
            self.stack.setCurrentWidget(self.state)
        self._show_details(self.list.key)

    def _said(self, row: ModelRow) -> _Words:
        """Return the words of a row; for thousands they take too long to be made each time."""
        is_used = row.name == self._used
        known = self._words.get((row.name, row.path))
        if known is None or known.row is not row or known.is_used is not is_used:
            badge, tone = (tr("in use"), "accent") if is_used else (_badge(row), "warning")
            line = row.problem or model_line(row)
            words = ListRow(row.name, row.name, line, model_speed(row), badge, tone, row.problem is not None)
            known = self._words[row.name, row.path] = _Words(row, is_used, words, _searched(row))
        return known

    # What the user does.

    def _on_opened(self, name: str) -> None:
        self._show_details(name)
        self.panes.show_details(True, by_hand=True)
        if not self.list.underMouse():
            self.details.setFocus()

    def _show_details(self, name: str | None) -> None:
        row = next((row for row in self._rows.values() if row.name == name), None) if name else None
        self.panes.show_details(row is not None)
        if row is None:
            return
        before = self.details.row
        is_other = before is None or _file(before) != _file(row)
        self.details.show_row(row, row.name == self._used)
        if is_other:
            self.details.look()
        elif before is not None and before.measured_rate != row.measured_rate:
            self.details.machine.look()

    def _remove(self, name: str) -> None:
        self._link.ask(ask.RemoveModel(name), lambda done: self.removed.emit(name), self.details.show_trouble)

    def _mend(self, name: str) -> None:
        self._link.ask(ask.RepairModel(name), failed=self.details.show_trouble)

    def _change_settings(self, name: str) -> None:
        dialog = SettingsDialog(self._link, name, self.window())
        dialog.saved.connect(self.told)
        dialog.saved.connect(self.details.look)  # a draft that is named there goes before others
        dialog.open()

    def _make_smaller(self, name: str) -> None:
        dialog = QuantiseDialog(self._link, name, self.window())
        dialog.shown_wanted.connect(self.show_model)
        dialog.open()

    def show_model(self, name: str) -> None:
        """Show a model, as soon as it is in the list."""
        self.filter.clear()
        self._to_show = name
        self.look()

    def _choose_folder(self) -> None:
        choose_folder(self, tr("Import folder"), self.import_folder)

    def import_folder(self, folder: str) -> None:
        """Use the models of a folder."""
        self._link.ask(ask.ImportFolder(folder), lambda done: self._on_imported(), self._on_import_refused)

    def _on_imported(self) -> None:
        self.banner.hide()
        self._link.ask(ask.ListPlaces(), self._on_places)

    def _on_import_refused(self, trouble: Trouble) -> None:
        self.banner.say(trouble.sentence, "danger", (tr("Choose another folder…"), self._choose_folder))

    def forget_folder(self, folder: str) -> None:
        """No longer use the models of an imported folder; its files stay."""
        self._try(ask.ForgetFolder(folder), self._on_imported)

    def _show_folders(self, places: tuple[FolderPlace, ...]) -> None:
        menu = self.folders_button.menu()
        menu.clear()
        imported = [place for place in places if place.is_imported]
        for place in imported:
            action = menu.addAction(tr("Forget {path}", path=place.path))
            action.setToolTip(tr("Its files stay where they are"))
            action.triggered.connect(lambda checked=False, path=place.path: self.forget_folder(path))
        self.folders_button.setVisible(bool(imported))

    def _on_places(self, places: tuple[FolderPlace, ...]) -> None:
        self._show_folders(places)
        other = next((place for place in places if not place.is_imported), None)
        if other is None or self._offered == other.path:
            return
        self._offered = other.path
        self.banner.say(place_line(other), "plain", (tr("Use them"), lambda: self.import_folder(other.path)))


class _Words(NamedTuple):
    """What the list says of a row, and the text in which words of the filter are looked for."""

    row: ModelRow
    is_used: bool
    words: ListRow
    searched: str


def _searched(row: ModelRow) -> str:
    header = row.header
    return " ".join((row.name, row.title, header.architecture, header.quantisation, row.source or "")).casefold()


def _badge(row: ModelRow) -> str:
    return tr("changed") if row.has_changed else tr("toy") if row.is_toy else ""


def _judged(row: ModelRow, found: RowReport) -> ModelRow:
    return replace(row, partners=found.partners, predicted_rate=found.predicted_rate, verdict=found.verdict)


def _file(row: ModelRow) -> ModelRow:
    """Return what a row says of the file, without what is found out by and by."""
    return replace(row, partners=(), predicted_rate=None, measured_rate=None, verdict=None, last_used=None)
