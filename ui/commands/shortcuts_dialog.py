"""The list of all keys that do something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from ui.commands.command import Command
from ui.language import dotted, tr
from ui.theme.tokens import Space
from ui.widgets.dialogs import ReadingDialog
from ui.widgets.page_layout import plain_label

SIZE = (560, 560)
IN_CHAT, ON_CHATS, ON_PAGES, ON_WINDOW = tr("Chat"), tr("Chats"), tr("Pages"), tr("Window")
# What widgets do by themselves.
IN_PLACE = {
    IN_CHAT: (
        (tr("Send the message"), ("Enter",)),
        (tr("Start a new line"), ("Shift+Enter",)),
        (tr("Stop the reply"), ("Esc",)),
        (tr("Scroll the chat"), ("PgUp", "PgDown")),
    ),
    ON_CHATS: ((tr("Rename a chat of the list"), ("F2",)), (tr("Delete a chat of the list"), ("Del",))),
    ON_PAGES: ((tr("Views of the library and the server"), ("Ctrl+1", "Ctrl+2", "Ctrl+3")),),
    ON_WINDOW: ((tr("Next control, or the one before"), ("Tab", "Shift+Tab")),),
}


class ShortcutsDialog(ReadingDialog):
    """What each key does, by what it is about."""

    def __init__(self, commands: Mapping[str, Sequence[Command]], parent: QWidget) -> None:
        title = tr("Keyboard shortcuts")
        super().__init__(title, title, SIZE, parent)
        self.lines = {
            about: [*IN_PLACE.get(about, ()), *((one.name, one.keys) for one in group if one.keys)]
            for about, group in commands.items()
        }
        grid = QGridLayout(self.form)
        grid.setContentsMargins(Space.XL, Space.M, Space.XL, Space.M)
        grid.setVerticalSpacing(Space.S)
        grid.setHorizontalSpacing(Space.L)
        grid.setColumnStretch(0, 1)
        for about, lines in self.lines.items():
            heading = plain_label(about, "section")
            heading.setContentsMargins(0, Space.M if grid.count() else 0, 0, 0)
            grid.addWidget(heading, grid.rowCount(), 0, 1, 2)
            for name, keys in lines:
                what, how = plain_label(name, ""), QLabel(dotted(*map(_native, keys)))
                how.setProperty("tone", "muted")
                how.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
                at = grid.rowCount()
                grid.addWidget(what, at, 0)
                grid.addWidget(how, at, 1)
        grid.setRowStretch(grid.rowCount(), 1)


def _native(key: str) -> str:
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
