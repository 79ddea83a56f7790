"""What the window says where chats cannot be kept or read, and the ways out of that."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from ui.chat.storage.chat_archive import ChatArchive, disk_reason
from ui.chat.storage.rescue import Rescue
from ui.chat.storage.store import is_large
from ui.language import day, tr
from ui.platform.helper_process import HelperProcess
from ui.settings.window_settings import WindowSettings
from ui.widgets.banner import Banner
from ui.widgets.page_layout import Way, offer_ways

CHECK = "ui.chat.storage.late_check"
FOUND_WHOLE = "chatsFoundWhole"  # which file was, and when
WHOLE_SECONDS = 7 * 86_400.0  # so long it is taken for whole


class StorageNotice(QObject):
    """Tells of problems of the ``archive`` in a banner."""

    export_wanted = Signal()  # all chats are to be kept elsewhere
    chats_changed = Signal()  # there are chats that were not there, or could not be saved
    brought_back = Signal(str)  # what was found, in words
    quit_wanted = Signal()

    def __init__(self, archive: ChatArchive, banner: Banner, kept: WindowSettings, parent: QWidget) -> None:
        """``parent`` is the window."""
        super().__init__(parent)
        self._archive, self._banner, self._kept, self._window = archive, banner, kept, parent
        self._check: HelperProcess | None = None
        self._rescue: Rescue | None = None
        self._was_failing = self._is_damaged = self._is_left = False
        self._problem: str | None = None  # that was told last

    def show_problem(self, problem: str | None) -> None:
        """Say that chats cannot be kept or read; None: they can again."""
        was_failing, self._was_failing = self._was_failing, self._archive.is_failing
        # Not where chats cannot be read: they would be read again, which fails again.
        if problem is None or self._was_failing != was_failing:
            self.chats_changed.emit()
        self._problem = problem
        if problem is None:
            self._banner.take_back(self._archive)
            return
        way_out: Way | None = None
        if self._archive.is_new and not self._was_failing:
            way_out = tr("Bring chats back…"), self._offer_here
        elif self._archive.is_in_memory:
            way_out = tr("Export all chats…"), self.export_wanted.emit
        self._banner.say(problem, "warning", way_out, by=self._archive)

    # A large file is looked through while it is in use: at the start that would keep the window waiting.

    def look_through(self) -> None:
        """Look for damage in a file that was too large for it at the start, unless it was found whole lately."""
        # The start may still be checking the file, and set it aside.
        self._archive.ask(lambda store: store.checked_at, self._look_through, 0.0)

    def _look_through(self, checked_at: float) -> None:
        archive, path = self._archive, self._archive.path
        if self._is_left or self.is_looking or archive.is_new or archive.is_in_memory:
            return
        try:
            file = path.stat().st_ino
            if not is_large(path) or self._was_found_whole(file):
                return
        except OSError:
            return  # saving says so
        if time.time() - checked_at < WHOLE_SECONDS:
            self._kept.keep(FOUND_WHOLE, json.dumps([file, checked_at]))
            return
        self._check = HelperProcess(CHECK, [str(path)], self)
        self._check.said.connect(lambda line: self._on_looked_through(file, json.loads(line)))
        self._check.ended.connect(self._on_end)
        self._check.start()

    @property
    def is_looking(self) -> bool:
        """Whether the file is being looked through."""
        return self._check is not None

    def _on_end(self) -> None:
        self._check = None

    def _was_found_whole(self, file: int) -> bool:
        try:
            known, when = json.loads(str(self._kept.value(FOUND_WHOLE)))
            return bool(known == file and 0 <= time.time() - when < WHOLE_SECONDS)
        except (ValueError, TypeError):
            return False

    def _on_looked_through(self, file: int, damage: str | None) -> None:
        if damage:
            self._tell_of_damage()
        elif damage is not None:
            self._kept.keep(FOUND_WHOLE, json.dumps([file, time.time()]))

    def _tell_of_damage(self) -> None:
        self._is_damaged = True
        try:
            self._archive.mark_damaged()
        except OSError as error:
            words = tr(
                "A part of the file with your chats is damaged. It is left as it is. For the next start to mend that, "
                "a note is needed in {parent}, which cannot be written: {reason}",
                parent=self._archive.path.parent,
                reason=disk_reason(error),
            )
            self._banner.say(words, "warning", (tr("Try again"), self._tell_of_damage), by=self)
            return
        words = tr(
            "A part of the file with your chats is damaged. It is left as it is, and you can go on. The next start "
            "keeps it and offers to bring back every chat that can be read: do that soon."
        )
        self._banner.say(words, "warning", (tr("Quit"), self.quit_wanted.emit), by=self)

    def leave(self) -> None:
        """End what is at work."""
        self._is_left = True
        for work in (self._check, self._rescue):
            if work is not None:
                work.stop()

    # Lost chats.

    @property
    def ways_back(self) -> list[Way]:
        """What can be done with the files of lost chats that are kept; one thing at a time.

        Nothing is brought into a file that is damaged or that cannot be written.
        """
        if self._rescue is not None or self._is_damaged or self._archive.is_failing:
            return []
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
        rescue = self._rescue = Rescue(source)
        self._banner.hide()
        self._show_rescue(rescue)
        self._archive.bring_back(rescue, partial(self._show_rescue, rescue), partial(self._on_brought_back, rescue))

    def _show_rescue(self, rescue: Rescue) -> None:
        if self._is_warned(rescue):
            return
        words = tr("Reading the chats of {source}…", source=rescue.source)
        if rescue.share is not None:
            words = tr("Bringing back the chats of {source}…  {share:.0%}", source=rescue.source, share=rescue.share)
        self._banner.say(words, "plain", (tr("Stop"), rescue.stop), can_close=False, by=rescue)

    def _is_warned(self, rescue: Rescue) -> bool:
        """Return whether there is a warning that came since the rescue began: it stays."""
        return not self._banner.isHidden() and not self._banner.says_of(rescue)

    def _on_brought_back(self, rescue: Rescue, is_taken: bool) -> None:
        self._rescue = None
        self.chats_changed.emit()
        n_chats, is_warned = rescue.n_chats, self._is_warned(rescue)
        self._banner.take_back(rescue)
        if self._archive.is_in_memory and not is_warned:
            self.show_problem(self._problem)  # it made room for the rescue
            is_warned = True
        if not n_chats and is_taken and not rescue.is_stopped:
            words = tr("{source} has no chat that is not here and can be read.", source=rescue.source)
            if is_warned:
                self.brought_back.emit(words)
                return
            others = (tr("Other ways…"), self._offer_here) if len(self.ways_back) > 1 else None
            self._banner.say(words, "warning", others)
            return
        back = tr("1 chat is back") if n_chats == 1 else tr("{n_chats:,} chats are back", n_chats=n_chats)
        if rescue.is_stopped:
            back = tr("Stopped. {back}, and the file that they come from is kept.", back=back)
        if n_chats or rescue.is_stopped:
            self.brought_back.emit(back)
