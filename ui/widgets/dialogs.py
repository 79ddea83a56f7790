"""Dialogs: what all of them have, and one to read: a title, what scrolls, and a button that closes it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QPushButton, QVBoxLayout, QWidget

from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.page_layout import ScrollColumn, open_size, plain_label

EDGE = 2  # pixels, of the border around what is read, which shows that it has the keyboard


class Dialog(QDialog):
    """Is gone when it is closed."""

    def __init__(self, name: str, size: tuple[int, int], parent: QWidget) -> None:
        """``name`` is that of the window; ``size`` is in pixels at the usual size of text, as far as there is room."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(name)
        open_size(self, *size, parent)


def primary(words: str) -> QPushButton:
    """Return the button of a dialog that does what it is there for, which Enter presses too."""
    button = QPushButton(words)
    button.setProperty("kind", "primary")
    button.setDefault(True)
    return button


class ReadingDialog(Dialog):
    """What is to be read goes into ``form``, which scrolls in ``area``."""

    def __init__(self, name: str, title: str, size: tuple[int, int], parent: QWidget) -> None:
        super().__init__(name, size, parent)
        self.form = QWidget()
        self.area = ScrollColumn(self.form)
        self.area.setAccessibleName(name)
        self.area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # nothing in it takes the keys that scroll
        self.area.setProperty("kind", "reading")
        close = QPushButton(tr("Close"))
        close.clicked.connect(self.accept)
        close.setDefault(True)
        head, foot = QVBoxLayout(), QVBoxLayout()
        for outside in (head, foot):
            outside.setContentsMargins(Space.XL + EDGE, 0, Space.XL + EDGE, 0)
        head.addWidget(plain_label(title, "title"))
        foot.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        fill(QVBoxLayout(self), head, (self.area, 1), foot, margins=(0, Space.L, 0, Space.L))
        close.setFocus()
