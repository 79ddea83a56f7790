"""Where the user writes: a card that grows, the files that go along, the speed, and a button that sends or stops."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QGuiApplication, QImage, QResizeEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout

from ui.chat.attachments.shelf import Shelf
from ui.chat.speed_picker import SpeedPicker
from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.growing_edit import GrowingEdit, rich_text, words_of
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import file_dialog

PLACEHOLDER, SHORT_PLACEHOLDER = tr("Write a message"), tr("Message")
NARROW = 360  # pixels at the usual size of text
BEFORE_FIELD = 2  # buttons
_BEHIND_TAG = re.compile(r"(?:^|>)([^<>]+)")
MOST_PASTED = 200_000  # letters: a longer text is attached, for laying it out would hold up the window


class Composer(QFrame):
    """A field, a speed and one button. While a reply comes in the button stops it, and what was written waits."""

    sent = Signal(str)
    stopped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composerCard")
        self.setProperty("focused", False)
        self._is_running = False
        self.field = GrowingEdit(lambda text: self._on_enter())
        self.field.setPlaceholderText(PLACEHOLDER)
        self.field.setAccessibleName(tr("Message"))
        self.field.textChanged.connect(self._show_button)
        self.button = IconButton("send", tr("Send"))
        self.button.setProperty("kind", "send")
        self.button.clicked.connect(self._on_button)
        self.speed = SpeedPicker()
        self.shelf = Shelf()
        self.shelf.changed.connect(self._show_button)
        self.shelf.file_wanted.connect(self.choose_files)
        self.field.take = self.take
        self.attach = IconButton("attach", tr("Attach files (Ctrl+U)"), size=18)
        self.attach.clicked.connect(self.choose_files)
        self.prompts = IconButton("prompts", tr("Prompts (Ctrl+P)"), size=18)
        self._row = fill(QHBoxLayout(), self.attach, self.prompts, (self.field, 1), self.speed, self.button)
        self._column = fill(QVBoxLayout(self), self.shelf, self._row, spacing=Space.XS, margins=Space.S + 1)
        self._row.setSpacing(Space.S)
        self._is_above = False  # whether the field stands above the buttons, not between them
        self.field.textChanged.connect(self._place_field)
        self.field.lines_changed.connect(lambda n_lines: self._place_field())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusProxy(self.field)
        self._show_button()

    @property
    def text(self) -> str:
        """What was written."""
        return self.field.toPlainText()

    def set_text(self, text: str) -> None:
        """Put another text into the field, the cursor at its end."""
        self.field.setPlainText(text)
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def choose_files(self) -> None:
        """Ask for files to attach."""
        dialog = file_dialog(self, tr("Attach files"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda names: self.shelf.add(Path(name) for name in names))
        dialog.open()

    def take(self, source: QMimeData) -> bool:
        """Attach what was pasted or dropped, where that is files, an image or a very long text; else False."""
        paths = files_in(source)
        if paths:
            self.shelf.add(paths)
        elif source.hasImage() and not source.hasText() and isinstance(image := source.imageData(), QImage):
            self.shelf.add_image(image)
        elif len(text := source.text()) > MOST_PASTED:
            self.shelf.add_text(lambda: text)
        elif _has_many_letters(rich := rich_text(source)):
            self.shelf.add_text(lambda: words_of(rich))
        else:
            return False
        self.field.setFocus()  # of two chats the one is used where something was dropped
        return True

    def insert(self, text: str) -> None:
        """Put a text in at the cursor."""
        self.field.textCursor().insertText(text)
        self.field.setFocus()

    def set_running(self, is_running: bool) -> None:
        """Offer to stop instead of to send."""
        self._is_running = is_running
        self._show_button()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say what belongs here in as many words as there is room for."""
        super().resizeEvent(event)
        self.field.setPlaceholderText(SHORT_PLACEHOLDER if self._is_narrow else PLACEHOLDER)
        self._place_field()

    @property
    def _is_narrow(self) -> bool:
        return self.width() < scaled(NARROW)

    def _place_field(self) -> None:
        """Give a message of several lines the whole width, until it is sent or taken back; where it is narrow, any."""
        has_lines = self._is_above or self.field.document().size().height() > 1
        is_above = self._is_narrow or (not self.field.document().isEmpty() and has_lines)
        if is_above is self._is_above:
            return
        self._is_above = is_above
        if is_above:
            self._row.removeWidget(self.field)
            self._row.insertStretch(BEFORE_FIELD, 1)
            self._column.insertWidget(1, self.field)
        else:
            self._column.removeWidget(self.field)
            self._row.takeAt(BEFORE_FIELD)
            self._row.insertWidget(BEFORE_FIELD, self.field, 1)

    def _can_send(self) -> bool:
        is_whole = not self.shelf.is_reading
        return not self._is_running and is_whole and bool(self.text.strip() or self.shelf.attachments)

    def _show_button(self) -> None:
        if self._is_running:
            self.button.show_as("stop", tr("Stop"), "on_accent")
        else:
            self.button.show_as("send", tr("Send"), "on_accent")
        self.button.setEnabled(self._is_running or self._can_send())

    def _on_button(self) -> None:
        if self._is_running:
            self.stopped.emit()
        else:
            QGuiApplication.inputMethod().commit()  # the keyboard stays in the field, where a word may be unfinished
            self._on_enter()

    def _on_enter(self) -> None:
        if self._can_send():
            text = self.text
            self.field.clear()
            self.sent.emit(text)


def _has_many_letters(rich: str) -> bool:
    """Return whether an HTML text is too long for the field, without laying it out: that takes seconds."""
    n_letters = 0
    for piece in _BEHIND_TAG.finditer(rich):
        n_letters += len(piece[1].strip())
        if n_letters > MOST_PASTED:
            return True
    return False


def files_in(source: QMimeData) -> list[Path]:
    """Return the files of this machine that were pasted or dropped; models are left to the window."""
    paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()] if source.hasUrls() else []
    return [path for path in paths if path.suffix.lower() != ".gguf"]
