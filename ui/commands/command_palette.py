"""A field that finds commands, chats, models and settings by a few letters, and the list of what it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QLineEdit, QVBoxLayout, QWidget

from ui.commands.command import Command, ranked
from ui.language import tr
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.page_layout import announce
from ui.widgets.row_list import ListRow, RowList

WIDTH, ROW = 560, 36
MOST_ROWS = 9  # in sight
SHOWN = 60  # found ones that are listed; who wants others types another letter
TURN_SECONDS = 0.008  # thousands of chats do not hold up the window
SEARCH = tr("Search commands, chats, models and settings")
_MOVES = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: MOST_ROWS, Qt.Key.Key_PageUp: -MOST_ROWS}


class CommandPalette(QFrame):
    """Floats over the window until something is chosen, Escape is pressed, or the keyboard goes elsewhere."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("palette")
        self._window = window
        self._commands: list[Command] = []
        self._found: list[Command] = []
        self._before: QWidget | None = None
        self._told = ""
        self._coming: Iterator[Command] = iter(())
        self._take = QTimer(self, interval=0)
        self._take.timeout.connect(self._take_some)
        self.field, self.list = QLineEdit(), RowList(tr("Found"), row_height=ROW)
        self.nothing, self.hint = QLabel(tr("Nothing like that")), QLabel(tr("Ctrl+Enter opens it beside this chat"))
        self.field.installEventFilter(self)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.nothing.setProperty("tone", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setProperty("tone", "caption")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.hint.hide()
        fill(QVBoxLayout(self), self.field, self.list, self.nothing, self.hint, spacing=Space.S, margins=Space.S)
        self.field.textChanged.connect(lambda text: self._fill())
        self.list.opened.connect(self._on_opened)
        self.list.chosen.connect(lambda key: self._place())
        window.installEventFilter(self)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)
        self.hide()

    def open(self, commands: Sequence[Command], search: str = SEARCH) -> Callable[[Iterable[Command]], None]:
        """Show what can be done; return what takes more of it later, as it is made. ``search`` says what is found."""
        self._take.stop()
        self._coming = iter(())
        self._before = self._window.focusWidget()
        self._commands, self._told = list(commands), ""
        self.field.setPlaceholderText(search)
        self.field.setAccessibleName(search)
        self.field.clear()
        self.show()
        self._fill()
        self.raise_()
        self.field.setFocus()
        return partial(self._add, self._commands)

    def _add(self, to: list[Command], more: Iterable[Command]) -> None:
        if self._commands is to:  # it was not closed, nor opened anew
            self._coming = chain(more, self._coming)
            self._take.start()
            self._take_some()

    def _take_some(self) -> None:
        """Take in some of what comes; show it when there is enough for the list, and when all is there."""
        was_short, until = len(self._commands) < SHOWN, time.monotonic() + TURN_SECONDS
        for command in self._coming:
            self._commands.append(command)
            if time.monotonic() > until:
                break
        else:
            self._take.stop()
        if was_short or not self._take.isActive():
            self._fill(keeps_choice=True)

    def close_up(self) -> None:
        """Go away and give the keyboard back."""
        if not self.isHidden():
            before, self._before = self._before, None
            self._take.stop()
            self.hide()
            self._commands, self._found = [], []
            if before is not None and before.isVisible():
                before.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the field's keys walk through the list, and stay in the middle of the window."""
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._on_key(event)
        if watched is self._window and event.type() == QEvent.Type.Resize and not self.isHidden():
            self._place()
        return super().eventFilter(watched, event)

    def _on_key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key in _MOVES:
            self._move(_MOVES[key])
        elif key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            self._move(1 if key == Qt.Key.Key_Tab else -1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(is_beside=bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))
        elif key == Qt.Key.Key_Escape:
            self.close_up()
        else:
            return False
        return True

    def _move(self, by: int) -> None:
        n_rows = len(self._found)
        if n_rows:
            at = int(self.list.key or 0) + by
            # One step goes round, a page stays within.
            self.list.choose(str(at % n_rows if abs(by) == 1 else min(max(at, 0), n_rows - 1)))
            self._tell_choice()

    @property
    def _chosen(self) -> Command | None:
        return self._found[int(self.list.key)] if self.list.key is not None else None

    def _on_opened(self, key: str) -> None:
        keys = QApplication.keyboardModifiers()
        self._run(is_beside=bool(keys & Qt.KeyboardModifier.ControlModifier))

    def _run(self, *, is_beside: bool) -> None:
        command = self._chosen
        if command is not None:
            self.close_up()
            (command.beside or command.act if is_beside else command.act)()

    def _fill(self, *, keeps_choice: bool = False) -> None:
        # The first one is only kept where somebody has walked to it: better ones may have come.
        walked_to = int(self.list.key or 0) if keeps_choice else 0
        chosen = self._found[walked_to] if walked_to else None
        self._found = ranked(self._commands, self.field.text(), SHOWN)
        self.list.choose(None)
        self.list.show_rows([_row(at, command) for at, command in enumerate(self._found)])
        self.list.setVisible(bool(self._found))
        self.nothing.setVisible(not self._found)
        if self._found:
            self.list.choose(str(self._found.index(chosen) if chosen in self._found else 0))
        self._place()
        self._tell_choice()

    def _tell_choice(self) -> None:
        """Let a screen reader say what Enter would do: the keyboard stays in the field."""
        key = self.list.key
        words = self.nothing.text() if key is None else self.list.rows.rows[int(key)].words
        if words != self._told:
            self._told = words
            announce(self, words)

    def _place(self) -> None:
        row = scaled(ROW)
        room = max(1, (self._window.height() - 4 * Space.XXL) // row)
        self.list.setFixedHeight(row * max(1, min(len(self._found), MOST_ROWS, room)))
        self.nothing.setFixedHeight(row)
        self.hint.setVisible(self._chosen is not None and self._chosen.beside is not None)
        self.setFixedWidth(min(scaled(WIDTH), self._window.width() - 2 * Space.L))
        self.adjustSize()
        self.move((self._window.width() - self.width()) // 2, min(Space.XXL * 2, self._window.height() // 8))

    def _on_focus(self, old: QWidget | None, now: QWidget | None) -> None:
        # ``None`` is another window: then it stays, for when the user comes back.
        if now is not None and not self.isHidden() and now is not self and not self.isAncestorOf(now):
            if now.window() is self._window:  # a dialog gives it back
                self._before = None
            self.close_up()


def _row(at: int, command: Command) -> ListRow:
    keys = QKeySequence(command.keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if command.keys else ""
    return ListRow(str(at), command.name, "", keys or command.kind)
