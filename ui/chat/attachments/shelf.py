"""The files that will go with the next message: read, counted, shown, and taken away again."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, Signal
from PySide6.QtGui import QImage, QImageWriter, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from models.formatting.system_error import system_reason
from ui.chat.attachments.chip import Chip
from ui.chat.attachments.file_reading import FileReading
from ui.chat.attachments.pages_dialog import PagesDialog
from ui.client.attachments import Attachment, SentParts
from ui.language import tr
from ui.theme.colours import Dressed
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.flow_layout import FlowLayout
from ui.widgets.icon_button import IconButton, TextButton
from ui.widgets.page_layout import ScrollColumn, announce, plain_label

MOST = 20  # files with one message
COUNTED = 100_000  # letters: the tokens of a longer text follow from its beginning
ROWS = 3  # of files that are seen at once; one in a window of fewer pixels than LOW
LOW = 560
Count = Callable[[str, Callable[[int], None]], None]
COPY = "slipstream-"  # begins the name of the folder of what was pasted
Unread = tuple[int, str, bool]  # in which chat, which file, and whether it and its folder are ours


class Shelf(Dressed, QWidget):
    """Hidden while there is neither a file nor a problem to tell of.

    Files that are still being read when another chat is shown go on being read, and are that chat's.
    """

    changed = Signal()
    read_aside = Signal(object, object)  # the chat that is not shown here now; its Attachment, or why there is none
    file_wanted = Signal()  # another one, in place of one that cannot be attached
    sight_wanted = Signal(object)  # a model that sees images; the button that asks for it
    _kept = Signal(object, object)  # where a pasted image or text lies, and in which chat it was pasted
    _not_kept = Signal(str, object)  # why it lies nowhere

    def __init__(self) -> None:
        super().__init__()
        # Counts the tokens of a text and tells later; the page knows who can.
        self.count: Count = lambda text, then: None
        # Why images cannot be sent, "" where they can.
        self.why_blind: Callable[[], str] = lambda: ""
        # Takes over what is being read for a chat in other places.
        self.readings_elsewhere: Callable[[int], list[FileReading]] = lambda key: []
        self._kept.connect(self._on_kept)
        self._not_kept.connect(self._on_not_kept)
        self._told, self._can_choose = "", False
        self._chips: dict[Chip, FileReading | None] = {}
        self.key = 0  # of the chat that is shown
        self._written: list[int] = []  # by chat what was pasted and is being written
        self._aside: dict[Chip, tuple[int, FileReading]] = {}  # of other chats
        self.problem, self.way_out = plain_label(tone="field problem"), TextButton("")
        self.way_out.clicked.connect(self._on_way_out)
        self.dismiss = IconButton("close", tr("Dismiss"), size=12)
        self.dismiss.clicked.connect(lambda: self.tell(""))
        self._problem_row = QWidget()
        fill(QHBoxLayout(self._problem_row), (self.problem, 1), self.way_out, self.dismiss, margins=0)
        body = QWidget()
        self._flow = FlowLayout(body, spacing=Space.S)
        self._area = ScrollColumn(body)
        fill(QVBoxLayout(self), self._area, self._problem_row, spacing=Space.XS, margins=(0, 0, 0, Space.XS))
        self.tell("")

    @property
    def chips(self) -> list[Chip]:
        """The files, in the order in which they were attached."""
        return list(self._chips)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files that were read."""
        return tuple(chip.attachment for chip in self._chips if chip.attachment is not None)

    @property
    def blind(self) -> str:
        """Why the images that are attached cannot be sent; "" where they can, and where there are none."""
        return self.why_blind() if any(one.image for one in self.attachments) else ""

    @property
    def is_reading(self) -> bool:
        """True while a file is read, or written to be read."""
        return self.key in self._written or any(reading is not None for reading in self._chips.values())

    def add(self, paths: Iterable[Path]) -> None:
        """Read files, one after the other."""
        self.tell("")
        for path in paths:
            if len(self._chips) >= MOST:
                self.tell(tr("A message takes {MOST} files at most: {name} was left out.", MOST=MOST, name=path.name))
                break
            self._read(path, self.key)

    def add_image(self, image: QImage) -> None:
        """Attach an image that was pasted."""

        # Packing a screenshot takes a tenth of a second: not on the window's thread.
        def write(path: Path) -> None:
            # Into memory first: Qt does not say why a file cannot be written.
            packed = QByteArray()
            buffer = QBuffer(packed)
            QImageWriter(buffer, QByteArray(b"PNG")).write(image)
            path.write_bytes(packed.data())

        self._keep(tr("Pasted image.png"), write)

    def add_text(self, text: Callable[[], str]) -> None:
        """Attach a text that was pasted and is too long for a field; it is asked for on a thread.

        Qt keeps Python's lock while it reads HTML, so the window still waits for that: half a second for a megabyte.
        """
        self._keep(tr("Pasted text.txt"), lambda path: path.write_text(text(), encoding="utf-8", errors="replace"))

    def _keep(self, name: str, write: Callable[[Path], object]) -> None:
        """Write a file that only the message has, on a thread, and read it then."""
        self.tell("")
        key = self.key
        self._written.append(key)
        self.changed.emit()

        def keep() -> None:
            folder: str | None = None
            try:
                folder = tempfile.mkdtemp(prefix=COPY)
                write(Path(folder) / name)
            except OSError as error:
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                reason = system_reason(error)
                self._not_kept.emit(tr("What was pasted cannot be attached: {reason}.", reason=reason), key)
            else:
                self._kept.emit(Path(folder) / name, key)

        threading.Thread(target=keep, name=name, daemon=True).start()

    def _on_kept(self, path: Path, key: int) -> None:
        self._written.remove(key)
        self._read(path, key, is_copy=True)

    def _on_not_kept(self, problem: str, key: int) -> None:
        self._written.remove(key)
        if key == self.key:
            self.tell(problem)
            self.changed.emit()
        else:
            self.read_aside.emit(key, problem)

    def _read(self, path: Path, key: int, is_copy: bool = False) -> None:
        self._follow(FileReading(path, self, is_copy), key)

    def _follow(self, reading: FileReading, key: int) -> None:
        chip = self._add_chip(reading.path.name)
        self._chips[chip] = reading
        if key != self.key:
            self._lay_aside(chip, key, reading)
        reading.progressed.connect(chip.show_progress)
        reading.done.connect(lambda found: self._on_read(chip, found))
        reading.failed.connect(lambda problem: self._on_failed(chip, problem, not reading.is_copy))
        self._start_next()
        self._show()
        self.changed.emit()

    def take_read(self, found: Attachment | str) -> None:
        """Show a file of this chat that was read elsewhere, or say why it was not."""
        if isinstance(found, str):
            self._tell_more(found)
        else:
            self._show_read(self._add_chip(found.name), found)

    def show_chat(self, key: int, attachments: Sequence[Attachment], problem: str) -> None:
        """Show the files of another chat, and what went wrong with them."""
        for chip, reading in list(self._chips.items()):
            if reading is not None:
                self._lay_aside(chip, self.key, reading)
        self.key = key
        self.show_attachments(attachments)
        for chip, (its_key, reading) in list(self._aside.items()):
            if its_key == key:
                del self._aside[chip]
                self._chips[chip] = reading
                self._flow.addWidget(chip)
                chip.show()
        for reading in self.readings_elsewhere(key):
            reading.setParent(self)
            self._follow(reading, key)
        self.tell(problem)
        self.count_again()

    def hand_over(self, key: int) -> list[FileReading]:
        """Give away what is being read for a chat that was left: another shelf shows it."""
        given = []
        for chip, (its_key, reading) in list(self._aside.items()):
            if its_key == key:
                for signal in (reading.progressed, reading.done, reading.failed):
                    signal.disconnect()
                del self._aside[chip]
                chip.deleteLater()
                given.append(reading)
        self._start_next()
        return given

    def show_attachments(self, attachments: Sequence[Attachment]) -> None:
        """Show these files, and no others but those that are being read."""
        for chip, reading in list(self._chips.items()):
            if reading is None:
                self._drop(chip)
        for attachment in attachments:
            self._add_chip(attachment.name).show_attachment(attachment)
        self.tell("")
        self.changed.emit()

    def _lay_aside(self, chip: Chip, key: int, reading: FileReading) -> None:
        del self._chips[chip]
        self._aside[chip] = key, reading
        self._flow.removeWidget(chip)
        chip.hide()

    def tell(self, problem: str, can_choose: bool = False) -> None:
        """Say what went wrong, or nothing any more; ``can_choose`` offers to choose another file."""
        self._told, self._can_choose = problem, can_choose
        self.show_problem()

    def show_problem(self) -> None:
        """Say what went wrong, and whether the images that are attached can be sent: another model may see them."""
        blind, before = self.blind, self.problem.text()
        self.problem.setText("\n".join(words for words in (self._told, blind) if words))
        self.way_out.setText(tr("Choose a model that can…") if blind else tr("Choose another file…"))
        self.way_out.setVisible(bool(blind) or self._can_choose)
        self.dismiss.setVisible(bool(self._told))  # without the image the other is not said any more
        self._problem_row.setVisible(bool(self.problem.text()))
        self._show()
        if self.problem.text() != before:
            announce(self, self.problem.text())

    def _on_way_out(self) -> None:
        if self.blind:
            self.sight_wanted.emit(self.way_out)
        else:
            self.file_wanted.emit()

    def choose_passages(self) -> None:
        """Let only those passages of the long files be sent that fit the question."""
        for chip in self._chips:
            if chip.attachment is not None:
                chip.show_attachment(chip.attachment.in_passages())
        self.changed.emit()

    def choose_pages(self, chip: Chip) -> None:
        """Ask which pages of a file are sent."""
        if chip.attachment is not None:
            dialog = PagesDialog(chip.attachment, self.window())
            dialog.chosen.connect(lambda sent: self._choose(chip, SentParts.PAGES, sent))
            dialog.open()

    def count_again(self) -> None:
        """Count tokens that were estimated, now that a model is there."""
        for chip in self._chips:
            if chip.attachment is not None and not chip.attachment.n_tokens:
                self._count(chip, chip.attachment)

    def dress(self) -> None:
        """Leave room for the text."""
        self._fit()

    def close_readings(self) -> list[Unread]:
        """Stop reading: the window closes. Return what is left to be read."""
        shown = ((self.key, reading) for reading in self._chips.values() if reading is not None)
        left = [*self._aside.values(), *shown]
        for _, reading in left:
            reading.cancel(keeps_copy=True)
        return [(key, str(reading.path), reading.is_copy) for key, reading in left]

    def read_again(self, left: Iterable[Unread]) -> None:
        """Read what was left when the window was closed."""
        for key, name, is_copy in left:
            folder = Path(name).parent  # which goes with a copy: what a file of settings says is not enough
            is_ours = is_copy and folder.name.startswith(COPY) and folder.parent == Path(tempfile.gettempdir())
            self._read(Path(name), key, is_ours)

    def _add_chip(self, name: str) -> Chip:
        chip = Chip(name)
        self._chips[chip] = None
        chip.removed.connect(lambda: self._on_removed(chip))
        chip.whole_wanted.connect(lambda: self._choose(chip, SentParts.ALL, None))
        chip.pages_wanted.connect(lambda: self.choose_pages(chip))
        chip.passages_wanted.connect(lambda: self._choose(chip, SentParts.PASSAGES, None))
        self._flow.addWidget(chip)
        return chip

    @property
    def _readings(self) -> list[FileReading]:
        aside = (reading for _, reading in self._aside.values())
        return [*aside, *(reading for reading in self._chips.values() if reading is not None)]

    def _start_next(self) -> None:
        reading = next(iter(self._readings), None)
        if reading is not None and not reading.has_started:
            reading.start()

    def _on_read(self, chip: Chip, attachment: Attachment) -> None:
        if (key := self._drop_aside(chip)) is not None:
            self.read_aside.emit(key, attachment)
            self._start_next()
            return
        self._chips[chip] = None
        self._show_read(chip, attachment)
        self._start_next()

    def _show_read(self, chip: Chip, attachment: Attachment) -> None:
        chip.show_attachment(attachment)
        self.show_problem()
        self._count(chip, attachment)
        self.changed.emit()

    def _on_failed(self, chip: Chip, problem: str, can_choose: bool) -> None:
        if (key := self._drop_aside(chip)) is not None:
            self.read_aside.emit(key, problem)
            self._start_next()
            return
        self._drop(chip)
        self._tell_more(problem, can_choose)
        self._start_next()
        self.changed.emit()

    def _tell_more(self, problem: str, can_choose: bool = True) -> None:
        """Say this too; another file in place of what was pasted is no way out."""
        said = self._told
        told = f"{said}\n{problem}" if said and problem not in said else problem
        self.tell(told, can_choose or (bool(said) and self._can_choose))

    def _on_removed(self, chip: Chip) -> None:
        self._drop(chip)
        self._start_next()
        self.show_problem()
        self.changed.emit()

    def _drop_aside(self, chip: Chip) -> int | None:
        """Forget a file of another chat; return whose it was, None where it is of this one."""
        if chip not in self._aside:
            return None
        key, reading = self._aside.pop(chip)
        self._chips[chip] = reading
        self._drop(chip)
        return key

    def _drop(self, chip: Chip) -> None:
        reading = self._chips.pop(chip)
        if reading is not None:
            reading.cancel()
            reading.deleteLater()
        self._flow.removeWidget(chip)
        chip.hide()
        chip.deleteLater()

    def _choose(self, chip: Chip, choice: SentParts, sent: tuple[int, ...] | None) -> None:
        if chip.attachment is not None:
            chip.show_attachment(replace(chip.attachment, choice=choice, sent=sent))
            self.changed.emit()

    def _count(self, chip: Chip, attachment: Attachment) -> None:
        whole = "".join(part.text for part in attachment.parts)
        if not whole:
            return

        def counted(n_tokens: int) -> None:
            now = chip.attachment if chip in self._chips else None
            if now is not None:
                n_whole = round(n_tokens * max(1.0, len(whole) / COUNTED))
                chip.show_attachment(replace(now, n_tokens=n_whole, is_counted=len(whole) <= COUNTED))
                self.changed.emit()

        self.count(whole[:COUNTED], counted)

    def _show(self) -> None:
        self.setVisible(bool(self._chips) or bool(self.problem.text()))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold the row elsewhere."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show as many rows as the window has room for; more are scrolled to."""
        row = max((chip.sizeHint().height() for chip in self._chips), default=0)
        most = ROWS if self.window().height() >= LOW else 1
        wanted = self._flow.heightForWidth(max(self.width(), 1))
        self._area.setVisible(bool(self._chips))
        self._area.setFixedHeight(min(wanted, most * (row + Space.S)))
