"""The chats of the window: one, or two side by side."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QWidget

from ui.chat.chat_page import ChatPage
from ui.chat.chat_sessions import ChatSessions, OpenChat
from ui.settings.window_settings import WindowSettings
from ui.theme.layouts import fill
from ui.theme.text_size import scaled

LEAST = 330  # pixels of each of two chats; with less they take turns
WINDOW = 900  # the least width of a window that shows two


class ChatPanes(QWidget):
    """Places the pages of chats. The one with the keyboard is used: what is chosen elsewhere is for it."""

    used_changed = Signal()  # the other page is used now

    def __init__(self, desk: ChatSessions, make: Callable[[OpenChat], ChatPage]) -> None:
        """``make`` returns a page for a pane, connected; the second is made when it is first wanted."""
        super().__init__()
        self._desk, self._make = desk, make
        self.is_two = False  # two chats are open, shown both or in turns
        self.pages = [make(desk.panes[0])]
        self._line = QFrame()
        self._line.setObjectName("paneLine")
        self._line.setFixedWidth(1)
        self._line.hide()
        self._row = fill(QHBoxLayout(self), (self.pages[0], 1), self._line, spacing=0, margins=0)
        self._used = self.pages[0]
        self.setFocusProxy(self._used)
        desk.current_changed.connect(lambda session: self._show())
        QApplication.instance().focusChanged.connect(self._on_focus)  # type: ignore[union-attr]  # no widget without

    @property
    def page(self) -> ChatPage:
        """The page that is used."""
        return next(page for page in self.pages if page.pane is self._desk.active)

    def restore(self, kept: WindowSettings) -> None:
        """Open the chats of the last time."""
        chat = str(kept.value("chat"))
        if chat.isascii() and chat.isdigit() and int(chat):
            self._desk.open(int(chat))
        beside = str(kept.value("chatBeside"))
        if beside.isascii() and beside.isdigit():
            self.open_beside(int(beside) or None)
            self._desk.activate(self.pages[0].pane)

    def keep(self, kept: WindowSettings) -> None:
        """Keep which chats are open for the next time; one that has not begun is 0."""
        first, *others = [0 if pane.current.is_new else pane.current.chat.id for pane in self._desk.panes]
        kept.keep("chat", first)
        kept.keep("chatBeside", others[0] if self.is_two else "")

    def open_beside(self, chat_id: int | None) -> None:
        """Open a chat in the other pane, or an empty one, and use it."""
        if len(self.pages) < 2:
            page = self._make(self._desk.second_pane())
            page.close_wanted.connect(self.close_beside)
            for one in (self.pages[0], page):
                one.other_wanted.connect(self.switch)
            self.pages.append(page)
            self._row.addWidget(page, 1)
        was_two, self.is_two = self.is_two, True
        if chat_id is not None and self._desk.is_open(chat_id):
            self._desk.open(chat_id)
        else:
            other = self.pages[0] if was_two and self.page is self.pages[1] else self.pages[1]
            like = self.page.pane.current.chat.settings
            self._desk.activate(other.pane)
            if chat_id is not None:
                other.pane.open(chat_id)
            elif not was_two:
                other.pane.begin(like)
            else:
                other.pane.new_chat()
        self._show()
        self.page.composer.setFocus()

    def close_beside(self) -> None:
        """Go back to one chat; a reply in the other goes on."""
        if not self.is_two:
            return
        self.is_two = False
        left, right = self.pages
        right.keep_draft()
        self._desk.activate(left.pane)
        right.pane.new_chat()
        self._show()
        left.composer.setFocus()

    def switch(self) -> None:
        """Use the other one of two chats."""
        if self.is_two:
            other = next(page for page in self.pages if page is not self.page)
            self._desk.activate(other.pane)
            other.composer.setFocus()

    def restyle(self) -> None:
        """Write the messages in another style: that of the tools has changed."""
        for page in self.pages:
            page.transcript.restyle()
            page.fit.bar.updateGeometry()  # hidden, it is told nothing and yet keeps its room

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show both where there is room, else the one that is used."""
        super().resizeEvent(event)
        self._show()

    def _show(self) -> None:
        is_narrow = self.window().width() < WINDOW or self.width() < 2 * scaled(LEAST)
        for page in self.pages:
            is_used = page is self.page
            page.setVisible(is_used if is_narrow or not self.is_two else True)
            page.other_button.setVisible(self.is_two and is_narrow)
            page.keep_foot(self.is_two and not is_narrow)
        self._line.setVisible(self.is_two and not is_narrow)
        self.setFocusProxy(self.page)
        if self._used is not self.page:
            self._used = self.page
            self.used_changed.emit()

    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        if new is None or not self.is_two:
            return
        for page in self.pages:
            if page.isAncestorOf(new):
                self._desk.activate(page.pane)
