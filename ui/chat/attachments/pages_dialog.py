"""Asks which pages or parts of a file are sent."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from ui.client.attachments import Attachment
from ui.client.speeds import tokens_of
from ui.language import dotted, tr
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.fields import TickDelegate
from ui.widgets.page_layout import plain_label, style_as

SIZE = (520, 520)
WORDS = 90  # letters of a page that its line shows
_RANGE = re.compile(r"\s*(\d+)\s*(?:[-–]\s*(\d+))?\s*")


def places_in(text: str, n_all: int) -> list[int] | None:
    """Return the places that "1-3, 7" names, counted from 0; None where it is not of that form."""
    found: set[int] = set()
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= n_all:
            return None
        found.update(range(first - 1, last))
    return sorted(found)


class PagesDialog(Dialog):
    """A list to tick, and a field for "1-3, 7"; both show the same."""

    chosen = Signal(object)  # tuple[int, ...]: the places of the parts

    def __init__(self, attachment: Attachment, parent: QWidget) -> None:
        words = tr("What to send of {name}", name=attachment.name)
        super().__init__(words, SIZE, parent)
        self._attachment = attachment
        self._labels = attachment.labels
        title = plain_label(words, "title")
        self.field = QLineEdit()
        self.field.setAccessibleName(tr("Pages or parts by number"))
        self.field.setPlaceholderText("1-3, 7")
        self.list = QListWidget()
        self.list.setObjectName("tickList")
        self.list.setItemDelegate(TickDelegate(self.list))
        self.list.ensurePolished()  # lines have their height from the first
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName(tr("Pages or parts"))
        self.total = QLabel()
        self.total.setProperty("tone", "caption")
        self.ok, self.cancel = primary(tr("Use these")), QPushButton(tr("Cancel"))
        now = set(attachment.sent_labels) if attachment.sent is not None else set()
        for number, label in enumerate(self._labels, 1):
            words = " ".join(" ".join(part.text for part in attachment.parts if part.label == label)[:400].split())
            name = label if label.rpartition(" ")[2] == str(number) else f"{number}: {label}"
            item = QListWidgetItem(f"{name}   {words[:WORDS]}", self.list)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if label in now else Qt.CheckState.Unchecked)
        self.list.itemChanged.connect(lambda item: self._on_ticked())
        self.field.textEdited.connect(self._on_typed)
        self.ok.clicked.connect(self._on_ok)
        self.cancel.clicked.connect(self.reject)
        foot = fill(QHBoxLayout(), (self.total, 1), self.cancel, self.ok)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        column.setSpacing(Space.M)
        for widget in (title, self.field, self.list):
            column.addWidget(widget)
        column.addLayout(foot)
        self._on_ticked()
        self.field.setFocus()

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the parts that are ticked."""
        labels = {self._labels[row] for row in self._ticked()}
        return tuple(at for at, part in enumerate(self._attachment.parts) if part.label in labels)

    def _ticked(self) -> list[int]:
        rows = range(self.list.count())
        return [row for row in rows if self.list.item(row).checkState() is Qt.CheckState.Checked]

    def _on_ticked(self) -> None:
        if not self.field.hasFocus():
            self.field.setText(_as_ranges(self._ticked()))
        self._show_total()

    def _on_typed(self, text: str) -> None:
        places = places_in(text, len(self._labels)) if text.strip() else []
        style_as(self.field, "wrong", places is None)
        self.list.blockSignals(True)
        for row in range(self.list.count()):
            is_in = row in (places or ())
            self.list.item(row).setCheckState(Qt.CheckState.Checked if is_in else Qt.CheckState.Unchecked)
        self.list.blockSignals(False)
        self._show_total()
        if places is None:
            self.total.setText(tr("Write numbers from 1 to {n_parts}, as 1-3, 7.", n_parts=len(self._labels)))

    def _show_total(self) -> None:
        n_letters = sum(len(self._attachment.parts[at].text) for at in self.places)
        whole = sum(len(part.text) for part in self._attachment.parts) or 1
        n_tokens = round(n_letters / whole * (self._attachment.n_tokens or whole / 4))
        self.total.setText(
            dotted(
                tr("{n_chosen} of {n_parts}", n_chosen=len(self._ticked()), n_parts=len(self._labels)),
                tr("about {tokens}", tokens=tokens_of(n_tokens)),
            )
        )
        self.ok.setEnabled(bool(self.places))

    def _on_ok(self) -> None:
        self.chosen.emit(self.places)
        self.accept()


def _as_ranges(rows: list[int]) -> str:
    """Return rows as people write them, counted from 1: "1-3, 7"."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ", ".join(f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs)
