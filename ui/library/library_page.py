"""The library: models of this machine, finding others, and downloads."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import Signal

from models.hub.repository import without_quantisation
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.library.downloads_view import DownloadsView
from ui.library.find_view import FindView
from ui.library.hub_dialog import HubDialog
from ui.library.labels import downloads_at_work
from ui.library.models_view import ModelsView
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import TabPage
from ui.widgets.toast import Toast

HERE, FIND, DOWNLOADS = tr("On this machine"), tr("Find"), tr("Downloads")


class LibraryPage(TabPage):
    """Three views."""

    use_wanted = Signal(str)  # the name of a model
    file_chosen = Signal(str)  # the file of one
    judged = Signal(object)  # tuple[ModelRow, ...]: what models of this machine are here

    def __init__(self, link: LibraryLink, watch: ServerWatch) -> None:
        super().__init__({HERE: lambda: self.models, FIND: lambda: self.finder, DOWNLOADS: lambda: self.downloads})
        self._link, self._watch = link, watch
        self.settings_button = IconButton("panel", tr("Hub settings…"))
        self.settings_button.clicked.connect(self.show_settings)
        self.top.row.addWidget(self.settings_button)
        self.toast = Toast(self)
        link.downloads_changed.connect(lambda downloads: self._count())
        link.quantisings_changed.connect(lambda quantisings: self._count())
        self._count()

    @cached_property
    def models(self) -> ModelsView:
        """The models of this machine."""
        view = ModelsView(self._link)
        view.judged.connect(self.judged)
        view.set_used(self._watch.state.model)
        self._watch.state_changed.connect(lambda state: view.set_used(state.model))
        view.use_wanted.connect(self.use_wanted)
        view.find_wanted.connect(self.search_hub)
        view.downloads_wanted.connect(self.show_downloads)
        view.told.connect(self.toast.tell)
        view.removed.connect(lambda name: self.toast.tell(tr("{name} is in the trash", name=name)))
        return self.placed(HERE, view)

    @cached_property
    def finder(self) -> FindView:
        """Those of the Hub."""
        view = FindView(self._link)
        view.downloads_wanted.connect(self.show_downloads)
        view.settings_wanted.connect(self.show_settings)
        view.use_wanted.connect(self.file_chosen)
        return self.placed(FIND, view)

    @cached_property
    def downloads(self) -> DownloadsView:
        """What is on its way."""
        view = DownloadsView(self._link)
        view.find_wanted.connect(self.search_hub)
        view.use_wanted.connect(self.file_chosen)
        return self.placed(DOWNLOADS, view)

    def search_hub(self, words: str = "") -> None:
        """Show the models of the Hub, those that ``words`` find where there are any: maybe the name of a file."""
        self.show_tab(FIND)
        words = without_quantisation(words).strip("-._")
        if words:
            self.finder.field.setText(words)

    def show_downloads(self) -> None:
        """Show what is on its way."""
        self.show_tab(DOWNLOADS)

    def focus_search(self) -> None:
        """Give the keyboard to the field that searches the models that are shown: those here, or those of the Hub."""
        if self.tabs[HERE].isChecked():
            self.models.panes.uncover()
            self.models.filter.setFocus()
        else:
            self.search_hub()
            self.finder.panes.uncover()
            self.finder.field.setFocus()

    def show_settings(self) -> None:
        """Let the Hub's settings be changed."""
        dialog = HubDialog(self._link, self.window())
        dialog.changed.connect(self.finder.look)
        dialog.open()

    def _count(self) -> None:
        n_copies = sum(not one.is_over for one in self._link.quantisings)
        n_working = downloads_at_work(self._link.downloads) + n_copies
        self.top.write(DOWNLOADS, f"{DOWNLOADS}  {n_working}" if n_working else DOWNLOADS)
