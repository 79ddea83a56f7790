"""One model of this machine: what it is, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from models.download.progress import DownloadPhase
from models.formatting.safe_text import one_line
from models.library.values import Download, ModelRow, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.library.labels import header_rows, model_facts
from ui.library.machine_card import MachineCard
from ui.library.partners_card import PartnersCard
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.facts_grid import FactsGrid
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.note_card import WARNING, NoteCard
from ui.widgets.page_layout import ScrollColumn, ask_first, plain_label, style_as

TOY_NOTE = tr("A toy that comes with Slipstream, to try everything with. It is wrong about most things.")
AGAIN, ON_ITS_WAY = tr("Download again"), tr("Show in downloads")
MENDING = tr("It is being downloaded again. The changed file stays until the right one is whole.")


class ModelDetailsPane(ScrollColumn):
    """Shows a model; asks before it removes."""

    use_wanted = Signal(str)  # the name
    remove_wanted = Signal(str)
    settings_wanted = Signal(str)
    smaller_wanted = Signal(str)
    mend_wanted = Signal(str)
    downloads_wanted = Signal()

    def __init__(self, link: LibraryLink) -> None:
        super().__init__(QWidget())
        self.row: ModelRow | None = None
        self._downloads: tuple[Download, ...] = link.downloads
        self.title, self.note = (plain_label(tone=tone, can_select=True) for tone in ("title", ""))
        self.use = QPushButton(tr("Use"))
        self.use.setProperty("kind", "primary")
        self.use.setToolTip(tr("Load this model and chat with it"))
        self.reveal = QPushButton(tr("Reveal in folder"))
        self.remove = QPushButton(tr("Remove…"))
        self.settings, self.smaller = QPushButton(tr("Settings…")), QPushButton(tr("Make a smaller copy…"))
        self.settings.clicked.connect(lambda: self.row and self.settings_wanted.emit(self.row.name))
        self.smaller.clicked.connect(lambda: self.row and self.smaller_wanted.emit(self.row.name))
        self.mending = NoteCard(WARNING, AGAIN)
        self.mending.button.clicked.connect(self._on_again)
        self.facts, self.header = FactsGrid(), FactsGrid()
        self.machine, self.partners = MachineCard(link), PartnersCard(link)
        self.partners.changed.connect(self.machine.look)
        self._header_title = QLabel(tr("From its header"))
        self._header_title.setProperty("tone", "section")
        self.use.clicked.connect(lambda: self.row and self.use_wanted.emit(self.row.name))
        self.reveal.clicked.connect(self._on_reveal)
        self.remove.clicked.connect(self._on_remove)
        self.setFocusProxy(self.use)
        self._lay_out()

    def _lay_out(self) -> None:
        column = fill(QVBoxLayout(self.body), self.title, spacing=Space.XS, margins=Space.L)
        fill(column, Space.XS, self.note, Space.S, self.mending, Space.XS)
        for row in ((self.use, self.reveal, self.remove), (self.settings, self.smaller)):
            flow = FlowLayout(spacing=Space.S)  # large text has no room for long words beside each other
            for button in row:
                flow.addWidget(button)
            fill(column, flow, Space.XS)
        for part in (self.machine, self.partners):
            column.addSpacing(Space.M)
            column.addWidget(part)
        fill(column, Space.M, self.facts, Space.M, self._header_title, Space.XS, self.header, STRETCH)

    def show_row(self, row: ModelRow, is_used: bool) -> None:
        """Show a model."""
        is_other = self.row is None or self.row.name != row.name
        self.row = row
        self.title.setText(one_line(row.name))
        self._note(row)
        self._show_mending()
        self.use.setVisible(row.problem is None)
        self.use.setText(tr("In use") if is_used else tr("Use"))
        self.use.setEnabled(not is_used)
        self.setFocusProxy(self.reveal if is_used or row.problem is not None else self.use)
        self.remove.setVisible(row.can_remove)
        self.settings.setVisible(row.problem is None)
        self.smaller.setVisible(row.problem is None)
        self.facts.show_facts(model_facts(row))
        self.header.show_facts(header_rows(row))
        for part in (self._header_title, self.header):
            part.setVisible(row.problem is None)
        if is_other:
            self.verticalScrollBar().setValue(0)

    def look(self) -> None:
        """Judge the model that is shown, and look for partners."""
        if self.row is not None:
            self.machine.show_model(self.row)
            self.partners.show_model(self.row)

    def show_trouble(self, trouble: Trouble) -> None:
        """Say why something could not be done."""
        style_as(self.note, "tone", "problem")
        self.note.setText(trouble.sentence)
        self.note.show()

    def _note(self, row: ModelRow) -> None:
        text = row.problem or (TOY_NOTE if row.is_toy else "")
        tone = "problem" if row.problem else "muted"
        style_as(self.note, "tone", tone)
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def show_downloads(self, downloads: tuple[Download, ...]) -> None:
        """Follow the downloads: what is mended already is not asked for again."""
        self._downloads = downloads
        self._show_mending()

    def _show_mending(self) -> None:
        row, is_coming = self.row, self._is_on_its_way
        words = row.mending if row is not None else ""
        self.mending.say(MENDING if words and is_coming else words)
        self.mending.button.setVisible(row is not None and bool(row.repo_id))
        self.mending.button.setText(ON_ITS_WAY if is_coming else AGAIN)

    @property
    def _is_on_its_way(self) -> bool:
        row = self.row
        mine = [one for one in self._downloads if row and (one.repo_id, one.wanted) == (row.repo_id, row.wanted)]
        return any(one.phase not in (DownloadPhase.DONE, DownloadPhase.FAILED) for one in mine)

    def _on_again(self) -> None:
        if self._is_on_its_way:
            self.downloads_wanted.emit()
        elif self.row is not None:
            self.mend_wanted.emit(self.row.name)

    def _on_reveal(self) -> None:
        if self.row is None:
            return
        folder = str(Path(self.row.path).parent)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(folder)):
            self.show_trouble(Trouble(tr("No program here shows folders. It is {folder}.", folder=folder)))

    def _on_remove(self) -> None:
        row = self.row
        if row is None:
            return
        question = tr("Move {name} to the trash?", name=one_line(row.name))
        what = tr("All files of this model are moved. Chats that used it stay.")
        ask_first(self, question, what, tr("Move to trash"), lambda: self.remove_wanted.emit(row.name))
