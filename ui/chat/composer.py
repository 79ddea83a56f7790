"""Where the user writes: a card that grows, the speed, and a button that sends or stops."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from ui.chat.speed_picker import SpeedPicker
from ui.theme.tokens import Palette, Space
from ui.widgets.growing_edit import GrowingEdit
from ui.widgets.icon_button import IconButton

PLACEHOLDER, SHORT_PLACEHOLDER = "Write a message", "Message"
NARROW = 300


class Composer(QFrame):
    """A field, a speed and one button. While a reply comes in the button stops it, and what was written waits."""

    sent = Signal(str)
    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composerCard")
        self.setProperty("focused", False)
        self._is_running = False
        self.field = GrowingEdit(lambda text: self._on_enter())
        self.field.setPlaceholderText(PLACEHOLDER)
        self.field.setAccessibleName("Message")
        self.field.textChanged.connect(self._show_button)
        self.field.installEventFilter(self)
        self.button = IconButton("send", "Send", size=20)
        self.button.setProperty("kind", "send")
        self.button.setFixedSize(32, 32)
        self.button.clicked.connect(self._on_button)
        self.speed = SpeedPicker()
        row = QHBoxLayout(self)
        row.setContentsMargins(Space.L, Space.S + 1, Space.S + 1, Space.S + 1)
        row.setSpacing(Space.S)
        row.addWidget(self.field, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.speed, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
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

    def set_running(self, is_running: bool) -> None:
        """Offer to stop instead of to send."""
        self._is_running = is_running
        self._show_button()

    def set_palette(self, palette: Palette) -> None:
        """Draw the buttons for another palette."""
        self.button.set_palette(palette)
        self.speed.set_palette(palette)
        self._show_button()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say what belongs here in as many words as there is room for."""
        super().resizeEvent(event)
        self.field.setPlaceholderText(SHORT_PLACEHOLDER if self.width() < NARROW else PLACEHOLDER)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show on the whole card that the field has the keyboard."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("focused", event.type() == QEvent.Type.FocusIn)
            self.style().polish(self)
        return super().eventFilter(watched, event)

    def _can_send(self) -> bool:
        return not self._is_running and bool(self.text.strip())

    def _show_button(self) -> None:
        if self._is_running:
            self.button.show_as("stop", "Stop", "on_accent")
        else:
            self.button.show_as("send", "Send", "on_accent")
        self.button.setEnabled(self._is_running or self._can_send())

    def _on_button(self) -> None:
        if self._is_running:
            self.stopped.emit()
        else:
            self._on_enter()

    def _on_enter(self) -> None:
        if self._can_send():
            text = self.text
            self.field.clear()
            self.sent.emit(text)
