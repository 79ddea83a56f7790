"""All smaller copies that are being made."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from models.library import requests as ask
from models.library.values import Quantising
from ui.client.library_link import LibraryLink
from ui.library.quantise_dialog import QuantiseRow
from ui.theme.layouts import fill
from ui.theme.tokens import Space


class QuantiseRows(QWidget):
    """A row for each copy; hidden while there is none."""

    changed = Signal()

    def __init__(self, link: LibraryLink, parent: QWidget) -> None:
        super().__init__(parent)
        self._link = link
        self.rows: dict[int, QuantiseRow] = {}
        self._column = fill(QVBoxLayout(self), spacing=Space.S, margins=0)
        link.quantisings_changed.connect(self.show_quantisings)
        self.show_quantisings(link.quantisings)

    def show_quantisings(self, quantisings: tuple[Quantising, ...]) -> None:
        """Show where all of them stand."""
        numbers = {quantising.number for quantising in quantisings}
        for number in [number for number in self.rows if number not in numbers]:
            row = self.rows.pop(number)
            row.hide()
            row.deleteLater()
        for quantising in quantisings:
            if quantising.number in self.rows:
                self.rows[quantising.number].show_quantising(quantising)
            else:
                self._add(quantising)
        self.setVisible(bool(quantisings))
        self.changed.emit()

    def _add(self, quantising: Quantising) -> None:
        row = QuantiseRow(quantising)
        row.cancel_wanted.connect(lambda number: self._link.ask(ask.CancelQuantise(number)))
        self.rows[quantising.number] = row
        self._column.addWidget(row)
