"""One download: how far it is, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from models.library.values import Download
from ui.library.labels import download_line, share
from ui.theme.tokens import Palette, Space
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton
from ui.widgets.plain_words import in_tip

RESUMABLE = ("paused", "failed")
ENDED = "done"


class DownloadRow(QFrame):
    """Shows a download; its buttons report what the user wants."""

    pause_wanted = Signal(int)
    resume_wanted = Signal(int)
    cancel_wanted = Signal(int)
    moved = Signal(int, int)  # number, by how many places

    def __init__(self, download: Download, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.download = download
        self.setObjectName("downloadCard")
        self.title, self.line, self.problem = ElidedLabel(), ElidedLabel(), QLabel()
        self.title.setProperty("tone", "strong")
        self.line.setProperty("tone", "caption")
        self.problem.setProperty("tone", "problem")
        self.problem.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setObjectName("downloadBar")
        self.bar.setRange(0, 1_000)
        self.bar.setTextVisible(False)
        self.up, self.down = IconButton("up", "Earlier", size=16), IconButton("down", "Later", size=16)
        self.toggle = IconButton("pause", "Pause", size=16)
        self.cancel = IconButton("close", "Cancel and remove what has arrived", size=16)
        number = download.number
        self.up.clicked.connect(lambda: self.moved.emit(number, -1))
        self.down.clicked.connect(lambda: self.moved.emit(number, 1))
        self.toggle.clicked.connect(self._on_toggle)
        self.cancel.clicked.connect(lambda: self.cancel_wanted.emit(number))
        self._lay_out()
        self.show_download(download)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(0)
        head.addWidget(self.title, 1)
        for button in (self.up, self.down, self.toggle, self.cancel):
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.L, Space.S, Space.S, Space.M)
        column.setSpacing(Space.XS + 2)
        column.addLayout(head)
        inner = QVBoxLayout()
        inner.setContentsMargins(0, 0, Space.S, 0)
        inner.setSpacing(Space.XS + 2)
        for widget in (self.bar, self.line, self.problem):
            inner.addWidget(widget)
        column.addLayout(inner)

    def show_download(self, download: Download) -> None:
        """Show where it stands now."""
        self.download = download
        name = f"{download.repo_id}  ·  {download.wanted}" if download.wanted else download.repo_id
        self.title.setText(name)
        self.title.setToolTip(in_tip(name))
        self.setAccessibleName(name)
        self.line.setText(download_line(download))
        self.bar.setValue(round(share(download) * 1_000))
        self.bar.setProperty("tone", "calm" if download.phase in (*RESUMABLE, "queued") else "busy")
        self.bar.style().polish(self.bar)
        self.problem.setText(download.problem or "")
        self.problem.setVisible(bool(download.problem))
        is_over = download.phase == ENDED
        self.bar.setVisible(not is_over)
        for button in (self.up, self.down, self.toggle, self.cancel):
            button.setVisible(not is_over)
        if download.phase in RESUMABLE:
            self.toggle.show_as("play", "Try again" if download.phase == "failed" else "Resume")
        else:
            self.toggle.show_as("pause", "Pause")

    def set_place(self, is_first: bool, is_last: bool) -> None:
        """Say which moves there are."""
        self.up.setEnabled(not is_first)
        self.down.setEnabled(not is_last)

    def set_palette(self, palette: Palette) -> None:
        """Draw the icons for another palette."""
        for button in (self.up, self.down, self.toggle, self.cancel):
            button.set_palette(palette)

    def _on_toggle(self) -> None:
        wanted = self.resume_wanted if self.download.phase in RESUMABLE else self.pause_wanted
        wanted.emit(self.download.number)
