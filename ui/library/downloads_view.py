"""The queue of downloads."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from models.library import requests as ask
from models.library.values import Download, Trouble
from ui.client.library_link import LibraryLink
from ui.library.download_row import ENDED, DownloadRow
from ui.library.quantise_rows import QuantiseRows
from ui.theme.tokens import COLUMN, LIGHT, Palette, Space
from ui.widgets.banner import Banner
from ui.widgets.icon_button import TextButton
from ui.widgets.state_pane import StatePane

MADE_AT_ONCE = 4  # rows in one turn of the event loop


class DownloadsView(QWidget):
    """Shows all downloads in their order; a row stays the same widget for as long as its download is there."""

    find_wanted = Signal()

    def __init__(self, link: LibraryLink, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link, self._palette = link, LIGHT
        self.rows: dict[int, DownloadRow] = {}
        self._shown: tuple[Download, ...] = ()
        self.banner = Banner()
        self.copies = QuantiseRows(link)
        self.state = StatePane()
        self.stack = QStackedWidget()
        self.clear = TextButton("Clear finished")
        self.clear.clicked.connect(lambda: link.ask(ask.ClearEnded()))
        self._lay_out()
        link.downloads_changed.connect(self.show_downloads)
        self.copies.changed.connect(self._show_others)
        link.lost.connect(self._on_lost)
        link.returned.connect(self.banner.hide)
        link.gave_up.connect(self._on_gave_up)
        self.show_downloads(link.downloads)

    def _lay_out(self) -> None:
        body = QWidget()
        body.setObjectName("downloadsBody")
        self._body = QVBoxLayout(body)
        self._body.setSpacing(Space.S)
        self._body.addWidget(self.copies)
        self._column = QVBoxLayout()
        self._column.setSpacing(Space.S)
        self._body.addLayout(self._column)
        foot = QHBoxLayout()
        foot.addStretch()
        foot.addWidget(self.clear)
        self._column.addLayout(foot)
        self._column.addStretch()
        self.area = QScrollArea()
        self.area.setObjectName("downloadsArea")
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(body)
        self.stack.addWidget(self.area)
        self.stack.addWidget(self.state)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.banner)
        whole.addWidget(self.stack, 1)

    def show_downloads(self, downloads: tuple[Download, ...]) -> None:
        """Show where all downloads stand."""
        self._shown = downloads
        n_made = 0
        numbers = [download.number for download in downloads]
        for number in [number for number in self.rows if number not in numbers]:
            self._drop(number)
        for place, download in enumerate(downloads):
            row = self.rows.get(download.number)
            if row is None and n_made == MADE_AT_ONCE:
                QTimer.singleShot(0, self, self._show_others)
                break
            if row is None:
                n_made += 1
                row = self._make(download)
                self._column.insertWidget(place, row)
            elif self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            if row.download != download:
                row.show_download(download)
            row.set_place(place == 0, place == len(downloads) - 1)
        self.clear.setVisible(any(download.phase == ENDED for download in downloads))
        is_empty = not downloads and not self._link.quantisings
        if is_empty:
            text = "Models that you download are here, with their speed and how long they take."
            self.state.say("download", "Nothing is downloaded", text, ("Find models", self.find_wanted.emit))
        self.stack.setCurrentWidget(self.state if is_empty else self.area)

    def _show_others(self) -> None:
        self.show_downloads(self._shown)

    def set_palette(self, palette: Palette) -> None:
        """Draw for another palette."""
        self._palette = palette
        self.banner.set_palette(palette)
        self.copies.set_palette(palette)
        self.state.set_palette(palette)
        for row in self.rows.values():
            row.set_palette(palette)

    def resizeEvent(self, event: object) -> None:
        """Keep the rows readable."""
        side = max(Space.L, (self.width() - COLUMN) // 2)
        self._body.setContentsMargins(side, Space.L, side, Space.L)

    def _make(self, download: Download) -> DownloadRow:
        row = DownloadRow(download)
        row.set_palette(self._palette)
        row.pause_wanted.connect(lambda number: self._ask(ask.PauseDownload(number)))
        row.resume_wanted.connect(lambda number: self._ask(ask.ResumeDownload(number)))
        row.cancel_wanted.connect(lambda number: self._ask(ask.CancelDownload(number)))
        row.moved.connect(self._on_moved)
        self.rows[download.number] = row
        return row

    def _drop(self, number: int) -> None:
        row = self.rows.pop(number)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _on_moved(self, number: int, by: int) -> None:
        at = next((at for at, one in enumerate(self._link.downloads) if one.number == number), None)
        if at is not None:
            self._ask(ask.MoveDownload(number, at + by))

    def _ask(self, request: ask.LibraryRequest) -> None:
        self._link.ask(request, failed=self._on_trouble)

    def _on_trouble(self, trouble: Trouble) -> None:
        self.banner.say(trouble.sentence, "danger")

    def _on_lost(self) -> None:
        self.banner.say("The library stopped and is starting again. Downloads go on where they were.", can_close=False)

    def _on_gave_up(self, sentence: str) -> None:
        self.banner.say(sentence, "danger", ("Try again", self._on_again), can_close=False)

    def _on_again(self) -> None:
        self.banner.hide()
        self._link.start()
