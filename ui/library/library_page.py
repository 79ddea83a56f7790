"""The library: models of this machine, finding others, and downloads."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from models.library.values import Download
from ui.icon_button import IconButton
from ui.library.downloads_view import DownloadsView
from ui.library.find_view import FindView, downloads_at_work
from ui.library.hub_dialog import HubDialog
from ui.library.library_link import LibraryLink
from ui.library.models_view import ModelsView
from ui.theme import TOP_BAR, Palette, Space
from ui.toast import Toast

HERE, FIND, DOWNLOADS = "On this machine", "Find", "Downloads"


class LibraryPage(QWidget):
    """Three views, one at a time; Ctrl+1 to Ctrl+3 choose."""

    use_wanted = Signal(str)  # the name of a model

    def __init__(self, link: LibraryLink, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("libraryPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._link = link
        self.models, self.finder, self.downloads = ModelsView(link), FindView(link), DownloadsView(link)
        self.stack = QStackedWidget()
        self.tabs: dict[str, QPushButton] = {}
        self.settings_button = IconButton("panel", "How the Hub is reached")
        self._lay_out()
        self._connect_signals()
        self.toast = Toast(self)
        self._on_downloads(link.downloads)

    def _lay_out(self) -> None:
        top = QFrame()
        top.setObjectName("topBar")
        top.setFixedHeight(TOP_BAR)
        bar = QHBoxLayout(top)
        bar.setContentsMargins(Space.M, 0, Space.S, 0)
        bar.setSpacing(Space.XS)
        group = QButtonGroup(self)
        views: dict[str, QWidget] = {HERE: self.models, FIND: self.finder, DOWNLOADS: self.downloads}
        for number, (name, view) in enumerate(views.items(), 1):
            tab = QPushButton(name)
            tab.setProperty("kind", "tab")
            tab.setCheckable(True)
            tab.setCursor(Qt.CursorShape.PointingHandCursor)
            tab.setToolTip(f"{name} (Ctrl+{number})")
            tab.clicked.connect(lambda checked=False, name=name: self.show_tab(name))
            QShortcut(QKeySequence(f"Ctrl+{number}"), self, lambda name=name: self.show_tab(name))
            group.addButton(tab)
            bar.addWidget(tab)
            self.stack.addWidget(view)
            self.tabs[name] = tab
        bar.addStretch()
        bar.addWidget(self.settings_button)
        self.tabs[HERE].setChecked(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(top)
        column.addWidget(self.stack, 1)

    def _connect_signals(self) -> None:
        self.models.use_wanted.connect(self.use_wanted)
        self.models.find_wanted.connect(lambda: self.show_tab(FIND))
        self.models.removed.connect(lambda name: self.toast.tell(f"{name} is in the trash"))
        self.finder.downloads_wanted.connect(lambda: self.show_tab(DOWNLOADS))
        self.finder.settings_wanted.connect(self.show_settings)
        self.downloads.find_wanted.connect(lambda: self.show_tab(FIND))
        self.settings_button.clicked.connect(self.show_settings)
        self._link.downloads_changed.connect(self._on_downloads)

    def show_tab(self, name: str) -> None:
        """Show one of the three views."""
        self.tabs[name].setChecked(True)
        self.stack.setCurrentIndex(list(self.tabs).index(name))
        self.focus_view()

    def focus_view(self) -> None:
        """Give the keyboard to the view that is shown."""
        (self.models, self.finder, self.downloads)[self.stack.currentIndex()].setFocus()

    def show_settings(self) -> None:
        """Let the Hub's settings be changed."""
        dialog = HubDialog(self._link, self.window())
        dialog.changed.connect(self.finder.look)
        dialog.open()

    def set_used(self, name: str | None) -> None:
        """Mark the model that is loaded."""
        self.models.set_used(name)

    def set_palette(self, palette: Palette) -> None:
        """Draw for another palette."""
        for part in (self.models, self.finder, self.downloads, self.settings_button):
            part.set_palette(palette)

    def _on_downloads(self, downloads: tuple[Download, ...]) -> None:
        n_working = downloads_at_work(downloads)
        self.tabs[DOWNLOADS].setText(f"{DOWNLOADS}  {n_working}" if n_working else DOWNLOADS)
