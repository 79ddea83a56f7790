"""The list of all keys that do something."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from ui.commands.command import Command
from ui.language import tr
from ui.theme.tokens import Space
from ui.widgets.dialogs import ReadingDialog
from ui.widgets.page_layout import plain_label

SIZE = (560, 560)
# What widgets do by themselves.
IN_PLACE = (
    (tr("Send the message"), ("Enter",)),
    (tr("Start a new line"), ("Shift+Enter",)),
    (tr("Stop the reply"), ("Esc",)),
    (tr("Scroll the chat"), ("PgUp", "PgDown")),
    (tr("Views of the library and the server"), ("Ctrl+1", "Ctrl+2", "Ctrl+3")),
    (tr("Next control, or the one before"), ("Tab", "Shift+Tab")),
    (tr("Rename a chat of the list"), ("F2",)),
    (tr("Delete a chat of the list"), ("Del",)),
)


class ShortcutsDialog(ReadingDialog):
    """What each key does."""

    def __init__(self, commands: Sequence[Command], parent: QWidget) -> None:
        title = tr("Keyboard shortcuts")
        super().__init__(title, title, SIZE, parent)
        self.lines = [(one.name, one.keys) for one in commands if one.keys] + list(IN_PLACE)
        grid = QGridLayout(self.form)
        grid.setContentsMargins(Space.XL, Space.M, Space.XL, Space.M)
        grid.setVerticalSpacing(Space.S)
        grid.setHorizontalSpacing(Space.L)
        grid.setColumnStretch(0, 1)
        for at, (name, keys) in enumerate(self.lines):
            what, how = plain_label(name, ""), QLabel("  ·  ".join(_native(key) for key in keys))
            how.setProperty("tone", "muted")
            how.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
            grid.addWidget(what, at, 0)
            grid.addWidget(how, at, 1)
        grid.setRowStretch(len(self.lines), 1)


def _native(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
