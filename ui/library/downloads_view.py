"""The queue of downloads."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from models.download.progress import DownloadPhase
from models.library import requests as ask
from models.library.values import Download, Remedy, Trouble, TroubleKind
from ui.client.library_link import LibraryLink
from ui.language import dotted, tr
from ui.library.labels import download_line, has_bar, share, size_of
from ui.library.quantise_rows import QuantiseRows
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.banner import Banner
from ui.widgets.elided_label import ElidedLabel, in_tip
from ui.widgets.icon_button import IconButton, TextButton
from ui.widgets.page_layout import PageColumn, ThinProgressBar, announce, ask_first, plain_label
from ui.widgets.state_pane import StatePane

UNMEANT_SECONDS = 0.7  # within which a click was meant for what was there before
RESUMABLE = (DownloadPhase.PAUSED, DownloadPhase.FAILED)


class DownloadRow(QFrame):
    """Shows a download; its buttons report what the user wants."""

    pause_wanted = Signal(int)
    resume_wanted = Signal(int)
    cancel_wanted = Signal(int)
    use_wanted = Signal(str)  # the file of a model that has arrived
    find_wanted = Signal(str)  # another model, by a word
    moved = Signal(int, int)  # number, by how many places

    def __init__(self, download: Download) -> None:
        super().__init__()
        self.download, self._is_alone, self._arrived = download, True, 0.0
        self.setObjectName("downloadCard")
        # Names differ at their ends.
        self.title = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self.line, self.problem = ElidedLabel(), plain_label(tone="problem")
        self.title.setProperty("tone", "strong")
        self.line.setProperty("tone", "caption")
        self.bar = ThinProgressBar()
        self.up, self.down = IconButton("up", tr("Earlier"), size=16), IconButton("down", tr("Later"), size=16)
        self.toggle = IconButton("pause", tr("Pause"), size=16)
        self.cancel = IconButton("close", tr("Cancel and remove what has arrived"), size=16)
        self.use = QPushButton()  # or try again, or find another
        self.use.clicked.connect(self._on_use)
        number = download.number
        self.up.clicked.connect(lambda: self.moved.emit(number, -1))
        self.down.clicked.connect(lambda: self.moved.emit(number, 1))
        self.toggle.clicked.connect(self._on_toggle)
        self.cancel.clicked.connect(lambda: self.cancel_wanted.emit(number))
        self._lay_out()
        self.show_download(download)

    def _lay_out(self) -> None:
        # It ends where the bar does, as icons seem to.
        use = fill(QHBoxLayout(), self.use, margins=(Space.XS, 0, Space.S, 0))
        head = fill(QHBoxLayout(), (self.title, 1), self.up, self.down, self.toggle, self.cancel, use, spacing=0)
        column = fill(QVBoxLayout(self), head, spacing=Space.XS + 2, margins=(Space.L, Space.S, Space.S, Space.M))
        inner = fill(QVBoxLayout(), self.bar, self.line, self.problem, spacing=Space.XS + 2, margins=(0, 0, Space.S, 0))
        column.addLayout(inner)

    def show_download(self, download: Download) -> None:
        """Show where it stands now."""
        is_news = download.phase is not self.download.phase
        if download.phase is DownloadPhase.DONE and is_news:
            self._arrived = time.monotonic()
        self.download = download
        name = dotted(download.repo_id, download.wanted)
        self.title.setText(name)
        self.title.setToolTip(in_tip(name))
        self.setAccessibleName(name)
        self.bar.setAccessibleName(tr("Progress of {title}", title=name))
        self.line.setText(download_line(download))
        rests = download.phase in (*RESUMABLE, DownloadPhase.QUEUED)
        self.bar.show_share(share(download.progress), is_calm=rests)
        self.problem.setText(download.trouble.sentence if download.trouble is not None else "")
        self.problem.setVisible(download.trouble is not None)
        is_over = download.phase is DownloadPhase.DONE
        self.bar.setVisible(has_bar(download))
        has_failed = download.phase is DownloadPhase.FAILED
        now = QApplication.focusWidget()
        self.use.setVisible(has_failed or bool(download.model_file))
        again = tr("Find another") if self._is_missing else tr("Try again")
        self.use.setText(again if has_failed else tr("Use"))
        self.use.setToolTip("" if has_failed else tr("Load this model and chat with it"))
        self.toggle.setVisible(not is_over and not has_failed)
        self.cancel.setVisible(not is_over)
        self._show_moves()
        if now is not None and self.isAncestorOf(now) and now.isHidden():  # it goes on with what came in its place
            (self.toggle if self.use.isHidden() else self.use).setFocus(Qt.FocusReason.TabFocusReason)
        if is_news and (is_over or has_failed):
            announce(self, f"{name}: {self.problem.text() or self.line.text()}")
        if download.phase is DownloadPhase.PAUSED:
            self.toggle.show_as("play", tr("Resume"))
        else:
            self.toggle.show_as("pause", tr("Pause"))

    @property
    def _is_missing(self) -> bool:
        """Whether the Hub has the file no more: to try again does not help, as after logging in to see a repository."""
        trouble = self.download.trouble
        return trouble is not None and trouble.kind is TroubleKind.MISSING and Remedy.SEARCH not in trouble.remedies

    def set_place(self, is_first: bool, is_last: bool) -> None:
        """Say which moves there are: for the only one, none."""
        self._is_alone = is_first and is_last
        self.up.setEnabled(not is_first)
        self.down.setEnabled(not is_last)
        self._show_moves()

    def _show_moves(self) -> None:
        for button in (self.up, self.down):
            button.setVisible(
                not self._is_alone and self.download.phase not in (DownloadPhase.DONE, DownloadPhase.FAILED)
            )

    def _on_use(self) -> None:
        if self.download.phase is DownloadPhase.FAILED and self._is_missing:
            self.find_wanted.emit(self.download.repo_id.rpartition("/")[2])
        elif self.download.phase is DownloadPhase.FAILED:
            self.resume_wanted.emit(self.download.number)
        # It comes up where "Pause" was: who meant that does not want another model.
        elif time.monotonic() - self._arrived > UNMEANT_SECONDS:
            self.use_wanted.emit(self.download.model_file)

    def _on_toggle(self) -> None:
        wanted = self.resume_wanted if self.download.phase is DownloadPhase.PAUSED else self.pause_wanted
        wanted.emit(self.download.number)


MADE_AT_ONCE = 2  # rows in one turn of the event loop
ASKED_FROM = 100_000_000  # bytes: less is there again in some seconds


def ask_to_cancel(parent: QWidget, name: str, download: Download, cancel: Callable[[], object], more: str = "") -> None:
    """Ask first where much has arrived: what a slip of the mouse removes takes long to fetch again."""
    n_done = download.progress.n_done
    if n_done < ASKED_FROM:
        cancel()
        return
    deleted = tr("The {n_done} that have arrived are deleted.", n_done=size_of(n_done))
    question = tr("Remove {name}?", name=name)
    ask_first(parent, question, " ".join(filter(None, (deleted, more))), tr("Remove"), cancel)


class DownloadsView(QWidget):
    """Shows all downloads in their order; a row stays the same widget for as long as its download is there."""

    find_wanted = Signal(str)  # a model of the Hub, by a word or none
    use_wanted = Signal(str)  # the file of a model that has arrived

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link = link
        self.setAccessibleName(tr("Downloads"))
        self.rows: dict[int, DownloadRow] = {}
        self._shown: tuple[Download, ...] = ()
        self._more = QTimer(self, singleShot=True, interval=0)
        self._more.timeout.connect(self._show_others)
        self.banner = Banner()
        self.copies = QuantiseRows(link, self)
        self.state = StatePane()
        self.stack = QStackedWidget()
        self.clear = TextButton(tr("Clear finished"))
        self.clear.clicked.connect(lambda: self._ask(ask.ClearEnded()))
        self._lay_out()
        link.downloads_changed.connect(self.show_downloads)
        self.copies.changed.connect(self._show_others)
        link.lost.connect(self._on_lost)
        link.returned.connect(self.banner.hide)
        link.gave_up.connect(self._on_gave_up)
        self.show_downloads(link.downloads)

    def _lay_out(self) -> None:
        self.area = PageColumn()
        self._column = fill(QVBoxLayout(), fill(QHBoxLayout(), STRETCH, self.clear), spacing=Space.S)
        self.area.column.setSpacing(Space.S)
        self.area.column.insertWidget(0, self.copies)
        self.area.column.insertLayout(1, self._column)
        self.stack.addWidget(self.area)
        self.stack.addWidget(self.state)
        fill(QVBoxLayout(self), self.banner, (self.stack, 1), spacing=0, margins=0)

    def show_downloads(self, downloads: tuple[Download, ...]) -> None:
        """Show where all downloads stand."""
        self._shown = downloads
        n_left = 0 if self._more.isActive() else MADE_AT_ONCE
        numbers = [download.number for download in downloads]
        had_keyboard, now = False, QApplication.focusWidget()
        for number in [number for number in self.rows if number not in numbers]:
            had_keyboard |= now is not None and self.rows[number].isAncestorOf(now)
            self._drop(number)
        for place, download in enumerate(downloads):
            row = self.rows.get(download.number)
            if row is None and not n_left:
                self._more.start()
                break
            if row is None:
                n_left -= 1
                row = self._make(download)
                self._column.insertWidget(place, row)
            elif self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            if row.download != download:
                row.show_download(download)
            row.set_place(place == 0, place == len(downloads) - 1)
        self.clear.setVisible(any(download.phase is DownloadPhase.DONE for download in downloads))
        is_empty = not downloads and not self._link.quantisings
        if is_empty:
            text = tr("Models that you download are here, with their speed and how long they take.")
            find = (tr("Find models"), lambda: self.find_wanted.emit(""))
            self.state.say("download", tr("Nothing is downloaded"), text, find)
        self.stack.setCurrentWidget(self.state if is_empty else self.area)
        if had_keyboard:  # it goes on with what is left
            buttons = (button for row in self.rows.values() for button in (row.toggle, row.use))
            left = next((button for button in buttons if not button.isHidden()), self.clear)
            (self.state.button if is_empty else left).setFocus(Qt.FocusReason.TabFocusReason)

    def _show_others(self) -> None:
        self.show_downloads(self._shown)

    def _make(self, download: Download) -> DownloadRow:
        row = DownloadRow(download)
        row.pause_wanted.connect(lambda number: self._ask(ask.PauseDownload(number)))
        row.resume_wanted.connect(lambda number: self._ask(ask.ResumeDownload(number)))
        row.cancel_wanted.connect(self._on_cancel)
        row.use_wanted.connect(self.use_wanted)
        row.find_wanted.connect(self.find_wanted)
        row.moved.connect(self._on_moved)
        self.rows[download.number] = row
        return row

    def _drop(self, number: int) -> None:
        row = self.rows.pop(number)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _on_cancel(self, number: int) -> None:
        row = self.rows[number]
        keep = "" if row.download.phase in RESUMABLE else tr("Pause it to keep them.")
        ask_to_cancel(self, row.title.text(), row.download, lambda: self._ask(ask.CancelDownload(number)), keep)

    def _on_moved(self, number: int, by: int) -> None:
        at = next((at for at, one in enumerate(self._link.downloads) if one.number == number), None)
        if at is not None:
            self._ask(ask.MoveDownload(number, at + by))

    def _ask(self, request: object) -> None:
        self.banner.hide()
        self._link.ask(request, failed=lambda trouble: self._on_trouble(trouble, request))

    def _on_trouble(self, trouble: Trouble, request: object) -> None:
        self.banner.say(trouble.sentence, "danger", (tr("Try again"), lambda: self._ask(request)))

    def _on_lost(self) -> None:
        self.banner.say(
            tr("The library stopped and is starting again. Downloads go on where they were."), can_close=False
        )

    def _on_gave_up(self, sentence: str) -> None:
        self.banner.say(sentence, "danger", (tr("Try again"), self._on_again), can_close=False)

    def _on_again(self) -> None:
        self.banner.hide()
        self._link.start()
