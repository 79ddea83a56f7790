"""The library: models of this machine, finding others, and downloads."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.library.downloads_view import DownloadsView
from ui.library.find_view import FindView, downloads_at_work
from ui.library.hub_dialog import HubDialog
from ui.library.models_view import ModelsView
from ui.theme.colours import Dressed
from ui.theme.layouts import fill
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import PageTabs, PrepareTimer
from ui.widgets.toast import Toast

HERE, FIND, DOWNLOADS = tr("On this machine"), tr("Find"), tr("Downloads")


class LibraryPage(Dressed, QWidget):
    """Three views, one at a time; Ctrl+1 to Ctrl+3 choose.

    Each view is made when it is first wanted, or by ``prepare`` while nothing else happens: all at once would hold up
    the window.
    """

    use_wanted = Signal(str)  # the name of a model
    file_chosen = Signal(str)  # the file of one
    judged = Signal(object)  # tuple[ModelRow, ...]: what models of this machine are here

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self.setObjectName("libraryPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._link, self._used = link, ""
        self._models: ModelsView | None = None
        self._finder: FindView | None = None
        self._downloads: DownloadsView | None = None
        self.stack = QStackedWidget()
        self._top = PageTabs((HERE, FIND, DOWNLOADS), self)
        self.tabs = self._top.tabs
        self._holders: dict[str, QVBoxLayout] = {}
        self.settings_button = IconButton("panel", tr("How the Hub is reached"))
        self.settings_button.clicked.connect(self.show_settings)
        self._lay_out()
        self.toast = Toast(self)
        self._prepare = PrepareTimer(self, lambda: self.models, lambda: self.finder, lambda: self.downloads)
        link.downloads_changed.connect(lambda downloads: self._count())
        link.quantisings_changed.connect(lambda quantisings: self._count())
        self._count()

    def _lay_out(self) -> None:
        for name in self.tabs:
            holder = QWidget()
            self._holders[name] = QVBoxLayout(holder)
            self._holders[name].setContentsMargins(0, 0, 0, 0)
            self.stack.addWidget(holder)
        self._top.chosen.connect(self.show_tab)
        self._top.row.addWidget(self.settings_button)
        fill(QVBoxLayout(self), self._top, (self.stack, 1), spacing=0, margins=0)

    @property
    def models(self) -> ModelsView:
        """The models of this machine."""
        if self._models is None:
            self._models = view = ModelsView(self._link)
            view.judged.connect(self.judged)
            view.set_used(self._used or None)
            view.use_wanted.connect(self.use_wanted)
            view.find_wanted.connect(lambda: self.show_tab(FIND))
            view.downloads_wanted.connect(lambda: self.show_tab(DOWNLOADS))
            view.told.connect(self.toast.tell)
            view.removed.connect(lambda name: self.toast.tell(tr("{name} is in the trash", name=name)))
            self._place(HERE, view)
        return self._models

    @property
    def finder(self) -> FindView:
        """Those of the Hub."""
        if self._finder is None:
            self._finder = view = FindView(self._link)
            view.downloads_wanted.connect(lambda: self.show_tab(DOWNLOADS))
            view.settings_wanted.connect(self.show_settings)
            self._place(FIND, view)
        return self._finder

    @property
    def downloads(self) -> DownloadsView:
        """What is on its way."""
        if self._downloads is None:
            self._downloads = view = DownloadsView(self._link)
            view.find_wanted.connect(lambda: self.show_tab(FIND))
            view.use_wanted.connect(self.file_chosen)
            self._place(DOWNLOADS, view)
        return self._downloads

    def prepare(self) -> None:
        """Make the views one by one, each in a moment of its own."""
        self._prepare.start()

    def show_tab(self, name: str) -> None:
        """Show one of the three views."""
        self.tabs[name].setChecked(True)
        self.stack.setCurrentIndex(list(self.tabs).index(name))
        self.focus_view()

    def focus_view(self) -> None:
        """Give the keyboard to the view that is shown."""
        shown = list(self.tabs)[self.stack.currentIndex()]
        (self.models if shown == HERE else self.finder if shown == FIND else self.downloads).setFocus()

    def focus_search(self) -> None:
        """Give the keyboard to the field that searches the models that are shown: those here, or those of the Hub."""
        if self.tabs[HERE].isChecked():
            self.models.panes.uncover()
            self.models.filter.setFocus()
        else:
            self.show_tab(FIND)
            self.finder.panes.uncover()
            self.finder.field.setFocus()

    def show_settings(self) -> None:
        """Let the Hub's settings be changed."""
        dialog = HubDialog(self._link, self.window())
        dialog.changed.connect(self.finder.look)
        dialog.open()

    def set_used(self, name: str | None) -> None:
        """Mark the model that is loaded."""
        self._used = name or ""
        if self._models is not None:
            self._models.set_used(name)

    def dress(self) -> None:
        """Leave room for the names of the tabs."""
        self._top.fit()

    def _place(self, name: str, view: QWidget) -> None:
        self._holders[name].addWidget(view)
        # Otherwise it is only shown in the next turn of the event loop, and cannot take the keyboard before.
        view.show()

    def _count(self) -> None:
        n_copies = sum(not one.is_over for one in self._link.quantisings)
        n_working = downloads_at_work(self._link.downloads) + n_copies
        self._top.write(DOWNLOADS, f"{DOWNLOADS}  {n_working}" if n_working else DOWNLOADS)
