"""The list of chats, the chats that are open, and the settings of one, side by side."""

from __future__ import annotations

from PySide6.QtWidgets import QSplitter, QWidget

from ui.chat.history.history_panel import HistoryPanel
from ui.chat.tuning_panel import TuningPanel
from ui.settings.window_settings import WindowSettings
from ui.theme.appearance import Appearance
from ui.theme.text_size import scaled
from ui.theme.tokens import LINE, NARROW, PANEL, SIDEBAR

LEAST = 180  # the rail and the narrowest chat


class Sides(QSplitter):
    """Shows and hides the sides. A narrow window shows the chat first; both sides stay one key away.

    One that is wider has room for both beside the chat unless text is large: then the settings take the place of the
    list. In the narrowest windows with large text they take the place of the chat.
    """

    def __init__(self, history: HistoryPanel, chats: QWidget, tuning: TuningPanel, appearance: Appearance) -> None:
        super().__init__()
        self._wants_history = True  # the list of chats is to be seen where there is room
        self._is_narrow = self._is_tight = self._holds_one = False
        self._history, self._chats, self._tuning, self._appearance = history, chats, tuning, appearance
        self.setChildrenCollapsible(False)
        self.setHandleWidth(LINE)
        for at, part in enumerate((history, chats, tuning)):
            self.addWidget(part)
            self.setStretchFactor(at, int(part is chats))
        self.handle(2).setEnabled(False)  # the settings are as wide as their text needs
        tuning.hide()
        self.splitterMoved.connect(lambda position, handle: self._keep_width())

    def restore(self, kept: WindowSettings) -> None:
        """Be as the last time."""
        width = str(kept.value("sidebarWidth"))
        self._history.wanted_width = int(width) if width.isascii() and width.isdigit() else SIDEBAR
        self._wants_history = kept.is_on("sidebar", usually=True)
        # Qt keeps a list of one as the one.
        closed = kept.value("closedFolders")
        names = closed if isinstance(closed, list) else [closed] if closed else []
        self._history.model.closed = frozenset(str(name) for name in names)

    def keep(self, kept: WindowSettings) -> None:
        """Keep how this is for the next time."""
        kept.keep("sidebar", self._wants_history)
        kept.keep("sidebarWidth", self._history.wanted_width)
        kept.keep("closedFolders", sorted(self._history.model.closed))

    def _keep_width(self) -> None:
        """Take the width to which the list of chats was dragged; a window without room gives it less."""
        if self._history.isVisible():
            self._history.wanted_width = self._history.width()

    def toggle_history(self) -> None:
        """Show or hide the chats."""
        is_shown = self._history.isHidden()
        self._history.setVisible(is_shown)
        if self._is_tight and is_shown:
            self._tuning.hide()
        if not self._is_narrow:
            self._wants_history = is_shown
        self._share()

    def toggle_settings(self, width: int) -> bool:
        """Show or hide the settings in a window of ``width`` pixels; return whether they are shown now."""
        is_shown = self._tuning.isHidden()
        if is_shown and self._appearance.dress(self._tuning):  # before it takes its size
            self._tuning.fit(width)
        self._tuning.setVisible(is_shown)
        if is_shown and self._is_narrow:
            self._history.hide()
        self._share()
        return is_shown

    def uncover(self) -> None:
        """Hide what leaves no room for a chat."""
        if self._is_narrow:
            self._history.hide()
        if self._holds_one:
            self._tuning.hide()
            self._share()

    def fit(self, width: int) -> None:
        """Fit into a window of ``width`` pixels."""
        self._tuning.fit(width)
        was_narrow, self._is_narrow = self._is_narrow, width < NARROW
        self._is_tight = width < max(NARROW, scaled(NARROW))
        self._holds_one = width < PANEL + scaled(LEAST)
        if self._is_narrow and not was_narrow:
            self._history.hide()
            self._tuning.hide()
        self._share()

    def _share(self) -> None:
        self._chats.setVisible(not self._holds_one or self._tuning.isHidden())
        if not self._is_narrow:
            self._history.setVisible(self._wants_history and not (self._is_tight and not self._tuning.isHidden()))
