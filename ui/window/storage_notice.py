"""What the window says where chats cannot be kept or read, and the ways out of that."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from ui.chat.storage.chat_archive import ChatArchive
from ui.language import day, tr
from ui.widgets.banner import Banner
from ui.widgets.page_layout import Way, offer_ways


class StorageNotice(QObject):
    """Tells of problems of the ``archive`` in a banner."""

    export_wanted = Signal()  # all chats are to be kept elsewhere
    chats_changed = Signal()  # there are chats that were not there, or could not be saved
    brought_back = Signal(str)  # what was found, in words

    def __init__(self, archive: ChatArchive, banner: Banner, parent: QWidget) -> None:
        """``parent`` is the window."""
        super().__init__(parent)
        self._archive, self._banner, self._window = archive, banner, parent
        self._was_failing = False

    def show_problem(self, problem: str | None) -> None:
        """Say that chats cannot be kept or read; None: they can again."""
        was_failing, self._was_failing = self._was_failing, self._archive.is_failing
        # Not where chats cannot be read: they would be read again, which fails again.
        if problem is None or self._was_failing != was_failing:
            self.chats_changed.emit()
        if problem is None:
            self._banner.hide()
            return
        way_out: Way | None = None
        if self._archive.is_new:
            way_out = tr("Bring chats back…"), self._offer_here
        elif self._archive.is_in_memory:
            way_out = tr("Export all chats…"), self.export_wanted.emit
        self._banner.say(problem, "warning", way_out)

    @property
    def ways_back(self) -> list[Way]:
        """What can be done with the files of lost chats that are kept."""
        damaged, backup = self._archive.damaged, self._archive.backup
        ways = list[Way]()
        for path in damaged:
            words = tr("Save what can be read of the damaged file of {day}", day=day(path.stat().st_mtime))
            ways.append((words, partial(self._bring_back, path)))
        if damaged and backup is not None:
            made = day(backup.stat().st_mtime)
            words = tr("Take the chats of the backup of {day}", day=made)
            ways.append((words, partial(self._bring_back, backup)))
        return ways

    def offer_ways_back(self, button: QWidget) -> None:
        """Offer at a button what can be done with the files of lost chats that are kept."""
        offer_ways(self.ways_back, button, self._window, tr("No file of lost chats is here any more"))

    def _offer_here(self) -> None:
        self.offer_ways_back(self._banner.action)

    def _bring_back(self, source: Path) -> None:
        self._banner.say(tr("Reading the chats of {source}…", source=source), "plain", can_close=False)
        self._archive.bring_back(source, partial(self._on_brought_back, source))

    def _on_brought_back(self, source: Path, n_chats: int) -> None:
        self.chats_changed.emit()
        if not n_chats:
            words = tr("{source} has no chat that is not here and can be read.", source=source)
            others = (tr("Other ways…"), self._offer_here) if len(self.ways_back) > 1 else None
            self._banner.say(words, "warning", others)
            return
        self._banner.hide()
        one = n_chats == 1
        self.brought_back.emit(tr("1 chat is back") if one else tr("{n_chats:,} chats are back", n_chats=n_chats))
