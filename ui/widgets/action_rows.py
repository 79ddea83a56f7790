"""Rows of things that can be acted on: a title, a line, how far it is, and a button for each thing to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QVBoxLayout, QWidget

from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.elided_label import ElidedLabel, in_tip
from ui.widgets.flow_layout import BUTTONS_SHARE, FlowLayout
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ThinProgressBar, leave_keyboard, plain_label, style_as


@dataclass(frozen=True, slots=True)
class ActionRow:
    """What a row shows. ``actions`` are the words on its buttons; ``share`` is how far it is, None where it is over.

    ``is_calm``: nothing happens on it just now. ``problem`` is a sentence on what went wrong, ``note`` one on what did
    not.
    """

    key: str
    title: str
    line: str
    actions: tuple[str, ...] = ()
    share: float | None = None
    is_calm: bool = False
    problem: str = ""
    note: str = ""


class ActionRows(QWidget):
    """Shows rows, or a sentence where there are none; a row stays the same widget while its key is there."""

    wanted = Signal(str, str)  # the key of a row, the words on its button

    def __init__(self, name: str, empty: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.rows: dict[str, _RowView] = {}
        self._column = fill(QVBoxLayout(self), spacing=0, margins=0)
        self.empty = plain_label(empty, "caption")
        self._column.addWidget(self.empty)

    def show_rows(self, rows: Sequence[ActionRow]) -> None:
        """Show other rows."""
        keys = {row.key for row in rows}
        left: int | None = None  # where a row was that had the keyboard and is gone
        for key in [key for key in self.rows if key not in keys]:
            view = self.rows.pop(key)
            if view.has_keyboard:
                left = self._column.indexOf(view)
            self._column.removeWidget(view)
            view.hide()
            view.deleteLater()
        for place, row in enumerate(rows):
            view = self.rows.get(row.key) or self._make(row.key)
            if self._column.indexOf(view) != place:
                self._column.insertWidget(place, view)
            view.show_row(row)
        self.empty.setVisible(not rows)
        if left is not None and rows:
            self.rows[rows[min(left, len(rows) - 1)].key].take_keyboard()
        elif left is not None:
            leave_keyboard(self)

    def _make(self, key: str) -> _RowView:
        view = _RowView()
        view.wanted.connect(lambda action: self.wanted.emit(key, action))
        self.rows[key] = view
        return view


class _RowView(QFrame):
    wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("actionRow")
        self._shown: ActionRow | None = None
        self.title, self.line, self.problem = ElidedLabel(), ElidedLabel(), plain_label(tone="problem")
        self.line.setProperty("tone", "caption")
        self.bar = ThinProgressBar(tr("Progress"))
        self.buttons: dict[str, TextButton] = {}
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._row.setSpacing(0)
        self._side = QWidget()
        self._flow = FlowLayout(self._side)
        words = fill(QVBoxLayout(), self.title, self.line, spacing=Space.XS)
        self._row.addLayout(words, 1)
        self._row.addWidget(self._side, 0, Qt.AlignmentFlag.AlignVCenter)
        fill(
            QVBoxLayout(self), self._row, self.bar, self.problem, spacing=Space.XS + 2, margins=(0, Space.S, 0, Space.S)
        )

    def show_row(self, row: ActionRow) -> None:
        if row == self._shown:
            return
        if self._shown is None or self._shown.actions != row.actions:
            self._show_actions(row)
        self._shown = row
        self.setAccessibleName(row.title)
        self.title.setText(row.title)
        self.title.setToolTip(in_tip(row.title))
        self.line.setText(row.line)
        self.line.setToolTip(in_tip(row.line))
        self.line.setVisible(bool(row.line))
        self.bar.setVisible(row.share is not None)
        self.bar.setAccessibleName(tr("Progress of {title}", title=row.title))
        self.bar.show_share(row.share or 0.0, is_calm=row.is_calm)
        self.problem.setText(row.problem or row.note)
        style_as(self.problem, "tone", "problem" if row.problem else "muted")
        self.problem.setVisible(bool(row.problem or row.note))

    @property
    def has_keyboard(self) -> bool:
        return any(button.hasFocus() for button in self.buttons.values())

    def take_keyboard(self, at: int = 0) -> None:
        buttons = list(self.buttons.values())
        if buttons:
            button = buttons[min(at, len(buttons) - 1)]
            button.show()  # a new one would be shown later, and what is hidden takes no keyboard
            button.setFocus(Qt.FocusReason.TabFocusReason)

    def _show_actions(self, row: ActionRow) -> None:
        # Whoever presses a button that becomes another goes on from there.
        pressed = next((at for at, button in enumerate(self.buttons.values()) if button.hasFocus()), None)
        was_kept = pressed is not None and list(self.buttons)[pressed] in row.actions
        for action in [action for action in self.buttons if action not in row.actions]:
            button = self.buttons.pop(action)
            button.hide()
            button.deleteLater()
        while self._flow.count():
            self._flow.takeAt(0)
        for action in row.actions:
            if action not in self.buttons:
                button = TextButton(action, f"{action}: {row.title}")
                button.setToolTip(f"{action} {row.title}")
                button.clicked.connect(lambda checked=False, action=action: self.wanted.emit(action))
                self.buttons[action] = button
            self._flow.addWidget(self.buttons[action])
        self.buttons = {action: self.buttons[action] for action in row.actions}
        if pressed is not None and not was_kept:
            self.take_keyboard(pressed)
        self._side.setVisible(bool(row.actions))
        self._place_buttons()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons where there is room for them."""
        super().resizeEvent(event)
        self._place_buttons()

    def _place_buttons(self) -> None:
        width = sum(button.sizeHint().width() for button in self.buttons.values())
        is_beside = width <= self.width() * BUTTONS_SHARE
        ways = QBoxLayout.Direction
        self._row.setDirection(ways.LeftToRight if is_beside else ways.TopToBottom)
        self._side.setMinimumWidth(width if is_beside else 0)
