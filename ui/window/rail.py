"""The slim bar at the edge that leads from page to page."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QStyle, QVBoxLayout

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import AROUND_ICON, ICON, Space
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import style_as

AROUND = 20  # pixels beside a button, both sides together
# Each with its name, its keys, and other words for what is there.
PAGES = {
    "chat": (tr("Chat"), "Ctrl+Shift+C", tr("conversation")),
    "library": (
        tr("Library"),
        "Ctrl+Shift+L",
        tr("models downloads delete remove disk storage quantise quantize convert shrink pair draft GGUF"),
    ),
    "speed": (
        tr("Speed"),
        "Ctrl+Shift+G",
        tr(
            "fast slow performance benchmark measure test verify GPU CPU cores graphics card processor memory RAM VRAM "
            "bandwidth tokens"
        ),
    ),
    "server": (
        tr("Server"),
        "Ctrl+Shift+S",
        tr(
            "API key endpoint address URL localhost port network LAN phone OpenAI Anthropic VSCode editor code logs "
            "errors requests remote workers cluster"
        ),
    ),
    "jobs": (tr("Jobs"), "Ctrl+Shift+J", tr("batch queue file background deep question")),
    "settings": (tr("Settings"), "Ctrl+,", tr("preferences options configuration")),
}
AT_THE_FOOT = ("settings",)


def named_pages() -> list[tuple[str, str, str, str]]:
    """Return each page with its name, its keys, and other words for it."""
    return [(page, *about) for page, about in PAGES.items()]


def _tip(page: str) -> str:
    name, keys, _ = PAGES[page]
    return f"{name} ({QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)})"


class NavigationRail(Dressed, QFrame):
    """A button for each page."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("rail")
        self.buttons = {page: _PageButton(page, _tip(page)) for page in PAGES}
        column = fill(QVBoxLayout(self), spacing=Space.XS, margins=Space.S)
        above, below = QVBoxLayout(), QVBoxLayout()
        for page, button in self.buttons.items():
            button.clicked.connect(lambda checked=False, page=page: self.chosen.emit(page))
            (below if page in AT_THE_FOOT else above).addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        fill(column, above, STRETCH, below)
        self.dress()

    def show_page(self, page: str) -> None:
        """Mark the page that is shown."""
        for name, button in self.buttons.items():
            button.show_as(name, _tip(name), "accent" if name == page else "muted")
            button.set_shown(name == page)

    def set_busy(self, page: str, is_busy: bool) -> None:
        """Put a dot on a page's button while something goes on there."""
        self.buttons[page].set_busy(is_busy)

    def dress(self) -> None:
        """Be as wide as the buttons need."""
        self.setFixedWidth(scaled(ICON) + AROUND_ICON + AROUND)


class _PageButton(IconButton):
    """An icon, with a dot where something goes on."""

    def __init__(self, icon_name: str, name: str) -> None:
        super().__init__(icon_name, name)
        self._is_busy = False

    def set_shown(self, is_shown: bool) -> None:
        # To be checked would make it a box to tick for those who do not see it.
        style_as(self, "shown", is_shown)
        if is_shown:
            self.setAccessibleName(tr("{name}, shown", name=self.accessibleName()))

    def set_busy(self, is_busy: bool) -> None:
        if is_busy != self._is_busy:
            self._is_busy = is_busy
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_busy:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours().accent))
            corner = QRect(self.width() - 10, 4, 6, 6)
            painter.drawEllipse(QStyle.visualRect(self.layoutDirection(), self.rect(), corner))
