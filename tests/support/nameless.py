"""Controls that a screen reader would call nothing."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollBar,
    QTextEdit,
    QWidget,
)

_CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit,
    QProgressBar, QTextEdit,
)  # fmt: skip
# Their inner parts are told as themselves.
_WHOLE = (QAbstractSpinBox, QComboBox, QLineEdit)


def nameless(root: QWidget) -> list[str]:
    """Return the controls below ``root`` that have no name, each as the way to it; those of hidden pages too.

    A button without a word is left out: its words come when it is shown, and are its name.
    """
    found = []
    for widget in root.findChildren(QWidget):
        is_part = isinstance(widget, QScrollBar) or any(isinstance(one, _WHOLE) for one in _above(widget))
        is_blank = isinstance(widget, QPushButton) or (isinstance(widget, QCheckBox) and widget.isHidden())
        if isinstance(widget, _CONTROLS) and not is_part and not is_blank and not _name(widget):
            found.append(f"{type(widget).__name__} in {' < '.join(type(one).__name__ for one in _above(widget)[:4])}")
    return found


def _above(widget: QWidget) -> list[QWidget]:
    parent = widget.parentWidget()
    return [] if parent is None else [parent, *_above(parent)]


def _name(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    if isinstance(widget, QComboBox):  # on Linux its name is what is chosen: a label beside it says more, or this
        labels = widget.parentWidget().findChildren(QLabel, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return widget.accessibleDescription() or " ".join(one.text() for one in labels if one.buddy() is widget)
    return str(interface.text(QAccessible.Text.Name)).strip() if interface is not None else ""
