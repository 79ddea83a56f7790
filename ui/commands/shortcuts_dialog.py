"""The list of all keys that do something."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QFrame, QGridLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from ui.commands.command import Command
from ui.language import tr
from ui.theme.text_size import scaled
from ui.theme.tokens import Space

WIDTH, HEIGHT = 480, 560
# What widgets do by themselves.
IN_PLACE = (
    (tr("Send the message"), ("Enter",)),
    (tr("Start a new line"), ("Shift+Enter",)),
    (tr("Stop the reply"), ("Esc",)),
    (tr("Views of the library"), ("Ctrl+1", "Ctrl+2", "Ctrl+3")),
    (tr("Next control, or the one before"), ("Tab", "Shift+Tab")),
    (tr("Rename a chat of the list"), ("F2",)),
    (tr("Delete a chat of the list"), ("Del",)),
)


class ShortcutsDialog(QDialog):
    """What each key does."""

    def __init__(self, commands: Sequence[Command], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.lines = [(one.name, one.keys) for one in commands if one.keys] + list(IN_PLACE)
        room = parent.size()
        self.resize(min(scaled(WIDTH), room.width() - 2 * Space.L), min(scaled(HEIGHT), room.height() - 2 * Space.L))
        form = QWidget()
        form.setObjectName("dialogForm")
        grid = QGridLayout(form)
        grid.setContentsMargins(Space.XL, Space.M, Space.XL, Space.M)
        grid.setVerticalSpacing(Space.S)
        grid.setHorizontalSpacing(Space.L)
        grid.setColumnStretch(0, 1)
        for at, (name, keys) in enumerate(self.lines):
            what, how = QLabel(name), QLabel("  ·  ".join(_native(key) for key in keys))
            what.setWordWrap(True)
            how.setProperty("tone", "muted")
            how.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
            grid.addWidget(what, at, 0)
            grid.addWidget(how, at, 1)
        grid.setRowStretch(len(self.lines), 1)
        self.area = QScrollArea()
        self.area.setObjectName("dialogArea")
        self.area.setAccessibleName(tr("Keyboard shortcuts"))
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(form)
        title, close = QLabel(tr("Keyboard shortcuts")), QPushButton(tr("Close"))
        title.setProperty("tone", "title")
        close.clicked.connect(self.accept)
        close.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, Space.L, 0, Space.L)
        head, foot = QVBoxLayout(), QVBoxLayout()
        head.setContentsMargins(Space.XL, 0, Space.XL, 0)
        foot.setContentsMargins(Space.XL, 0, Space.XL, 0)
        head.addWidget(title)
        foot.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        column.addLayout(head)
        column.addWidget(self.area, 1)
        column.addLayout(foot)
        close.setFocus()


def _native(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
