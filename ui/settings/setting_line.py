"""One setting of the page: what it is called, what it does, and the control that changes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from models.formatting.safe_text import one_line
from ui.theme.layouts import against_reading, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.fields import CheckField, ChoiceField
from ui.widgets.page_layout import plain_label

BESIDE = 420  # narrower than this the control stands below its words
LETTERS = 17  # of a choice that can be read whole


class SettingLine(QWidget):
    """A name with its explanation, and a control at the end, or below where there is no room."""

    def __init__(self, name: str, help: str, control: QWidget | None = None, words: str = "") -> None:
        """``words`` are others that it may be looked for by."""
        super().__init__()
        self.control, self._words = control, words
        self.name, self.help = plain_label(name, ""), plain_label(help, "caption")
        column = fill(QVBoxLayout(), self.name, self.help, spacing=2)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        fill(self._row, (column, 1), spacing=Space.XL, margins=(0, Space.S, 0, Space.S))
        self.help.setVisible(bool(help))
        if control is not None:
            self._row.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
            self.name.setBuddy(control)
            control.setAccessibleDescription(help)
            if not isinstance(control, QAbstractButton):
                control.setAccessibleName(name)

    def explain(self, help: str) -> None:
        """Give another explanation."""
        self.help.setText(help)
        self.help.setVisible(bool(help))
        if self.control is not None:
            self.control.setAccessibleDescription(help)

    @property
    def text(self) -> str:
        """What can be looked for: all that this says, what can be chosen, and other words for it."""
        field = self.control
        choices = [field.itemText(at) for at in range(field.count())] if isinstance(field, ChoiceField) else []
        return " ".join((self.name.text(), self.help.text(), *choices, self._words))

    def holds(self, words: Sequence[str]) -> bool:
        """Return whether each of these words, in small letters, can be looked for."""
        text = self.text.casefold()
        return all(word in text for word in words)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the control where there is room."""
        super().resizeEvent(event)
        is_wide = self.width() >= scaled(BESIDE) or isinstance(self.control, CheckField)  # a box has room everywhere
        way = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        if self._row.direction() != way:
            self._row.setDirection(way)
            self._row.setSpacing(Space.XL if is_wide else Space.S)
        if self.control is not None:
            self._row.setAlignment(
                self.control, Qt.AlignmentFlag.AlignVCenter if is_wide else Qt.AlignmentFlag.AlignLeft
            )


class SettingSection(QWidget):
    """Settings that belong together, below their title."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.lines: list[SettingLine] = []
        head = QLabel(title)
        head.setProperty("tone", "title")
        self.column = fill(QVBoxLayout(self), head, spacing=0, margins=(0, 0, 0, Space.XL))
        self.column.addSpacing(Space.XS)

    def add(self, line: SettingLine) -> SettingLine:
        """Add a setting at the end."""
        self.lines.append(line)
        self.column.addWidget(line)
        return line

    def take(self, line: SettingLine) -> None:
        """Take a setting away."""
        self.lines.remove(line)
        line.hide()
        line.deleteLater()

    def search(self, words: Sequence[str]) -> bool:
        """Show the settings with these words; all where the title has them. Return whether any is left."""
        is_meant = all(word in self.title.casefold() for word in words)
        for line in self.lines:
            line.setVisible(is_meant or line.holds(words))
        has_any = any(not line.isHidden() for line in self.lines)
        self.setVisible(has_any)
        return has_any


def choice(choices: Sequence[tuple[str, str]], chosen: str, choose: Callable[[str], object]) -> ChoiceField:
    """Return a field to choose one of (value, words); where ``chosen`` is none of them it is one more."""
    field = ChoiceField("")
    field.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    field.setMinimumContentsLength(LETTERS)
    for value, words in choices:
        field.addItem(words, value)
    if field.findData(chosen) < 0:
        field.addItem(one_line(chosen), chosen)
    field.setCurrentIndex(field.findData(chosen))
    field.activated.connect(lambda at: choose(field.itemData(at)))
    return field


def switch(name: str, is_on: bool, turn: Callable[[bool], object]) -> CheckField:
    """Return a box to tick."""
    field = CheckField()
    field.setAccessibleName(name)
    field.setChecked(is_on)
    field.setLayoutDirection(against_reading())  # the box at the end, below those of the other lines
    field.setCursor(Qt.CursorShape.PointingHandCursor)
    field.toggled.connect(turn)
    return field


def button(words: str, act: Callable[[], object], name: str = "") -> QPushButton:
    """Return a button; ``name`` says more than its words to those who do not see what stands beside it."""
    made = QPushButton(words)
    made.setAccessibleName(name or words)
    made.clicked.connect(lambda checked=False: act())
    return made
