"""What a newcomer sees first: what this machine is, and the three models that suit it best."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
)

from models.download.progress import DownloadPhase
from models.library import requests as ask
from models.library.values import (
    Download,
    FolderPlace,
    MachineFacts,
    Suggested,
    SuggestedRow,
    SuggestionTier,
    Trouble,
    TroubleKind,
)
from ui.client.library_link import LibraryLink
from ui.language import dotted, of_data, tr
from ui.library.labels import about, download_line, has_bar, place_line, share, size_of, unbroken
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.icon_button import IconButton, TextButton
from ui.widgets.note_card import CALM, WARNING, NoteCard
from ui.widgets.page_layout import ThinProgressBar, announce, file_dialog, plain_label, style_as

AGAIN_MS = 1_000  # beside other work nothing is measured: the first model may still load
REFUSALS = 10  # after so many it is said why the machine is not measured
WORTH_IT = 1.05  # a gain below that is within the spread of what is predicted
SIDE_BY_SIDE = 560  # pixels from which the three stand beside each other
NEW_SECONDS = 0.5  # a click just after an offer came was meant for what was there before
# As long as what is said once it is measured: the card does not grow then.
MEASURING = tr("Measuring how fast its memory is: that sets how fast a model can write.")
_LONGEST = of_data("careful writing and many languages, 32 GB of memory")  # as a model may have; not shown
_TITLES = {
    SuggestionTier.QUICK: tr("Quick"),
    SuggestionTier.BALANCED: tr("Balanced"),
    SuggestionTier.BEST: tr("Best answers"),
}
_AT_REST = (DownloadPhase.PAUSED, DownloadPhase.FAILED)


class FirstStart(QFrame):
    """Measures the machine while it shows, and offers three models to download with one click each.

    Models that another program has on this machine are offered before them.
    """

    imported = Signal()  # models of another program are used from now on
    use_wanted = Signal(str)  # the file of a model that has arrived
    find_wanted = Signal()  # other models
    file_chosen = Signal(str)  # a model file of this machine
    closed = Signal()

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self.setObjectName("downloadCard")
        self._link = link
        self._awaited: tuple[str, str] | None = None  # what is used as soon as it is there
        self._is_measured, self._n_refused = False, 0
        self.machine = plain_label(tone="strong")
        self.speed, self.note = plain_label(tone="caption"), plain_label(tone="caption")
        self.others = NoteCard(CALM, tr("Use them"))
        self._place: FolderPlace | None = None  # of another program
        self.close_button = IconButton("close", tr("Close this card"), size=16)
        self.offers = [OfferedModel(choice) for choice in SuggestionTier]
        self.file = TextButton(tr("Open a model file…"), tr("Use a .gguf file of this machine; this needs no network"))
        self.more = TextButton(tr("All models…"), tr("Find models"))
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._again.timeout.connect(self._measure)
        self._lay_out()
        for offer in self.offers:
            offer.wanted.connect(self._on_wanted)
            offer.again_wanted.connect(lambda number, offer=offer: self._on_again(offer, number))
            offer.cancel_wanted.connect(lambda number, offer=offer: self._on_cancel(offer, number))
        self.others.button.clicked.connect(self._use_others)
        self.file.clicked.connect(self._choose_file)
        self.more.clicked.connect(self.find_wanted)
        self.close_button.clicked.connect(self.closed)
        link.downloads_changed.connect(self._on_downloads)

    def _lay_out(self) -> None:
        head = QLabel(tr("Models for your machine"))
        head.setProperty("tone", "section")
        top = fill(QHBoxLayout(), (head, 1), self.close_button)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._row.setSpacing(Space.S)
        for offer in self.offers:
            self._row.addWidget(offer, 1)
            offer.hide()
        foot = fill(QHBoxLayout(), (self.note, 1), self.file, self.more)
        column = fill(QVBoxLayout(self), top, spacing=Space.XS, margins=(Space.L, Space.S, Space.L, Space.M))
        self._row.setContentsMargins(0, Space.XS, 0, 0)
        fill(column, self.machine, self.speed, Space.S, self.others, self._row, Space.XS, foot)

    def begin(self) -> None:
        """Look at the machine, and measure what is not known of it."""
        self.speed.setText(MEASURING)
        self._explain_figures()
        if not self._is_measured:
            for offer in self.offers:
                offer.keep_room()
        self._link.ask(ask.ListPlaces(), self._on_places)
        self._look()
        self._measure()

    def showEvent(self, event: QShowEvent) -> None:
        """Look again: the machine may have been measured elsewhere."""
        super().showEvent(event)
        if self._is_measured:
            self._look()

    @property
    def is_busy(self) -> bool:
        """True while a model is awaited that was chosen here."""
        return self._awaited is not None

    def minimumSizeHint(self) -> QSize:
        """Return what it needs with the three below each other: beside each other they would hold the page wide."""
        widest = max(offer.minimumSizeHint().width() for offer in self.offers)
        return QSize(widest + 2 * Space.L, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the three below each other where it is narrow."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            for offer in self.offers:
                offer.setMinimumHeight(0)
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Look again where words in them have become longer."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def _arrange(self) -> None:
        needed = [offer.minimumSizeHint().width() + Space.S for offer in self.offers if not offer.isHidden()]
        least = len(needed) * max(needed, default=0) + 2 * Space.L
        is_wide = self.width() >= max(scaled(SIDE_BY_SIDE), least)
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        if self._row.direction() != direction:
            self._row.setDirection(direction)

    # Models that are here already.

    def _on_places(self, places: tuple[FolderPlace, ...]) -> None:
        """Offer those of one program."""
        self._place = place = next((place for place in places if not place.is_imported), None)
        self.others.say(place_line(place) if place is not None else "", CALM)

    def _use_others(self) -> None:
        if self._place is not None:
            self._link.ask(
                ask.ImportFolder(self._place.path),
                lambda done: self._on_imported(),
                lambda trouble: self.others.say(trouble.sentence, WARNING),
            )

    def _on_imported(self) -> None:
        self.others.say("")
        self.imported.emit()

    # The machine.

    def _measure(self) -> None:
        self._link.ask(ask.MeasureMachine(is_first=True), lambda done: self._look(), self._on_not_measured)

    def _on_not_measured(self, trouble: Trouble) -> None:
        self._n_refused += 1
        if self._n_refused >= REFUSALS and not self._is_measured:
            self.speed.setText(trouble.sentence)
            for offer in self.offers:
                offer.setVisible(offer.row is not None)  # no room is kept for what may never come
        self._again.start()

    def _look(self) -> None:
        self._link.ask(ask.ShowMachine(), self._on_machine)

    def _on_machine(self, found: MachineFacts) -> None:
        gpus = [tr("{name} with {memory}", name=gpu.name, memory=size_of(gpu.memory)) for gpu in found.gpus] or [
            tr("no usable GPU")
        ]
        cores = tr("{n} cores", n=found.n_cores) if found.n_cores != 1 else tr("1 core")
        self.machine.setText(
            dotted(
                re.sub(r"\((R|TM)\)", "", found.cpu),
                cores,
                tr("{memory} of memory", memory=size_of(found.memory)),
                *gpus,
            )
        )
        self._is_measured = found.bandwidth is not None
        if found.bandwidth is not None:
            words = _speed_of(found)
            if found.is_estimate:
                words += " " + tr("Other programs were busy, so it is measured again when they are at rest.")
            self.speed.setText(words)
        self._link.ask(ask.ListCurated(), self._on_suggested)  # what it means that there is none is known by now

    def _explain_figures(self) -> None:
        self.note.setText(tr("≈ is an estimate. A token (tok) is a piece of a word; people read about five a second."))

    def _on_suggested(self, found: Suggested) -> None:
        chosen = {row.choice: row for row in found.rows if row.choice is not None}
        if chosen or self._is_measured:
            for offer in self.offers:
                row = chosen.get(offer.choice)
                if row is None or row != offer.row:  # what was said of one stays
                    offer.show_row(row)
        if chosen:
            self._explain_figures()
        elif self._is_measured:
            self.note.setText(tr("None of the usual models fits well into this machine's memory. Smaller ones may."))
        self._on_downloads(self._link.downloads)
        if self._awaited is None:  # one that was begun before the window was closed
            self._awaited = next((offer.key for offer in self.offers if offer.is_coming), None)

    def _choose_file(self) -> None:
        dialog = file_dialog(self, tr("Choose a model"), tr("Models (*.gguf)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.file_chosen)
        dialog.open()

    # The downloads.

    def _on_wanted(self, row: SuggestedRow) -> None:
        key = self._awaited = (row.repo_id, row.quantisation)
        self._link.ask(ask.StartDownload(row.repo_id, row.quantisation), failed=partial(self._on_trouble, key))

    def _on_trouble(self, key: tuple[str, str] | None, trouble: Trouble) -> None:
        for offer in self.offers:
            if offer.key == key:
                offer.show_problem(_sentence_of(trouble))
        self._forget(key)

    def _forget(self, key: tuple[str, str] | None) -> None:
        """Await a model no longer; another one that was chosen since is."""
        if self._awaited == key:
            self._awaited = None

    def _on_again(self, offer: OfferedModel, number: int) -> None:
        key = self._awaited = offer.key
        self._link.ask(ask.ResumeDownload(number), failed=partial(self._on_trouble, key))

    def _on_cancel(self, offer: OfferedModel, number: int) -> None:
        self._forget(offer.key)
        self._link.ask(ask.CancelDownload(number))

    def _on_downloads(self, downloads: tuple[Download, ...]) -> None:
        newest = {(one.repo_id, one.wanted): one for one in downloads}
        for offer in self.offers:
            if offer.key is not None:
                offer.show_download(newest.get(offer.key))
        awaited = newest.get(self._awaited) if self._awaited is not None else None
        if awaited is not None and awaited.phase in (DownloadPhase.DONE, DownloadPhase.FAILED):
            self._awaited = None
        if awaited is not None and awaited.phase is DownloadPhase.DONE:
            self.use_wanted.emit(awaited.model_file)


class OfferedModel(QFrame):
    """One of the three: what it is, how fast it would be, and its download."""

    wanted = Signal(object)  # SuggestedRow
    again_wanted = Signal(int)
    cancel_wanted = Signal(int)

    def __init__(self, choice: SuggestionTier) -> None:
        super().__init__()
        self.setObjectName("offeredModel")
        self.choice = choice
        self.row: SuggestedRow | None = None
        self._download: Download | None = None
        self._came = 0.0  # when it was offered
        self._act: Callable[[], object] = lambda: None
        self.kind, self.title = plain_label(_TITLES[choice], "section"), plain_label(tone="strong")
        self.line, self.speed, self.state = plain_label(tone="caption"), plain_label(), plain_label(tone="caption")
        self.bar = ThinProgressBar()
        self.button = QPushButton()
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        # Who goes on writing after a click must not press it again with each space.
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.clicked.connect(self._on_clicked)
        for part in (self.title, self.speed, self.line, self.button):
            policy = part.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            part.setSizePolicy(policy)
        column = QVBoxLayout(self)
        column.setContentsMargins(Space.M, Space.S + 2, Space.M, Space.M)
        column.setSpacing(Space.XS)
        for label in (self.kind, self.title, self.speed, self.line):
            column.addWidget(label)
        column.addStretch(1)
        column.addWidget(self.bar)
        column.addWidget(self.state)
        column.addSpacing(Space.XS)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)

    @property
    def key(self) -> tuple[str, str] | None:
        """The repository and the quantisation that is downloaded from it."""
        return (self.row.repo_id, self.row.quantisation) if self.row is not None else None

    @property
    def is_coming(self) -> bool:
        """True while it is being downloaded."""
        return self._download is not None and self._download.phase not in (*_AT_REST, DownloadPhase.DONE)

    def keep_room(self) -> None:
        """Stand where a model will be offered, as tall as with it."""
        self.title.setText("…")
        self.speed.setText("…")
        self.line.setText(_LONGEST)
        self._offer(tr("Download  {n_bytes}", n_bytes=f"≈ {size_of(888e6)}"), lambda: None)
        self._show_parts(False)
        self.bar.hide()
        self.state.hide()
        self.show()

    def _show_parts(self, is_offered: bool) -> None:
        for part in (self.title, self.speed, self.line, self.button):
            part.setVisible(is_offered)

    def show_row(self, row: SuggestedRow | None) -> None:
        """Offer a model, or nothing; one that is being downloaded stays."""
        if self._download is not None and self._download.phase is not DownloadPhase.DONE:
            return
        if self.row is None and not self.isHidden():
            self.setMinimumHeight(self.height())  # what is below stays where it is, until the width changes
        before, self.row = self.key, row
        if self.key != before:
            self._came = time.monotonic()
        self.setVisible(row is not None)
        if row is None:
            return
        n_bytes = f"≈ {size_of(row.n_bytes)}" if row.is_size_estimate else size_of(row.n_bytes)
        is_worth_it = row.drafted_rate is not None and row.drafted_rate > WORTH_IT * (row.rate or 0.0)
        is_worth_it = is_worth_it and about(row.drafted_rate) != about(row.rate)
        drafted = tr("{drafted_rate} with its own drafts", drafted_rate=about(row.drafted_rate)) if is_worth_it else ""
        self.title.setText(row.title)
        self.speed.setText(dotted(about(row.rate), drafted))
        good_for = of_data(row.good_for)
        self.line.setText(good_for[:1].upper() + good_for[1:])
        self._show_parts(True)
        self.setAccessibleName(f"{self.kind.text()}: {row.title}, {self.speed.text()}")
        self.bar.setAccessibleName(tr("Progress of {title}", title=row.title))
        self.show_download(None)
        self._offer(tr("Download  {n_bytes}", n_bytes=n_bytes), lambda: self.wanted.emit(row))
        self.button.setAccessibleName(tr("Download {title}, {n_bytes}", title=row.title, n_bytes=n_bytes))

    def show_download(self, download: Download | None) -> None:
        """Show how its download goes; None where there is none."""
        was, self._download = self._download, download
        is_running = download is not None and download.phase is not DownloadPhase.DONE
        self.bar.setVisible(download is not None and has_bar(download))
        self.state.setVisible(download is not None)
        if download is None:
            if was is not None:
                self.show_row(self.row)
            return
        trouble = download.trouble
        self._say(
            _sentence_of(trouble) if trouble else unbroken(download_line(download)), is_problem=trouble is not None
        )
        self.bar.show_share(share(download.progress))
        number = download.number
        if download.phase in _AT_REST:
            self._offer(tr("Try again") if trouble else tr("Go on"), lambda: self.again_wanted.emit(number))
        elif is_running:
            self._offer(tr("Cancel"), lambda: self._ask_to_cancel(download))
        self.button.setVisible(is_running)

    def _ask_to_cancel(self, download: Download) -> None:
        from ui.library.downloads_view import ask_to_cancel  # the window starts without it

        ask_to_cancel(self, self.title.text(), download, lambda: self.cancel_wanted.emit(download.number))

    def show_problem(self, sentence: str) -> None:
        """Say why it cannot be downloaded; the button tries again."""
        self._say(sentence, is_problem=True)
        self.state.show()
        announce(self, sentence)

    def _on_clicked(self) -> None:
        if time.monotonic() - self._came >= NEW_SECONDS:
            self._act()

    def _offer(self, words: str, act: Callable[[], object]) -> None:
        self._act = act
        self.button.setText(words)
        self.button.setAccessibleName("")
        self.button.show()

    def _say(self, words: str, *, is_problem: bool) -> None:
        self.state.setText(words)
        style_as(self.state, "tone", "field problem" if is_problem else "caption")


def _speed_of(found: MachineFacts) -> str:
    """Return how fast the memory is that most models will be read from."""
    gpu = max(found.gpus, key=lambda one: one.bandwidth or 0.0, default=None)
    if gpu is not None and gpu.bandwidth:
        return tr(
            "{name} reads {bandwidth} a second: that sets how fast a model in its memory can write.",
            name=gpu.name,
            bandwidth=size_of(gpu.bandwidth),
        )
    if gpu is not None:
        return tr("How fast {name} reads a model is measured when nothing else is at work.", name=gpu.name)
    return tr(
        "Its memory reads {bandwidth} a second: that sets how fast a model can write.",
        bandwidth=size_of(found.bandwidth or 0.0),
    )


def _sentence_of(trouble: Trouble) -> str:
    """Return what is said of a model that cannot be had; nobody typed its name, so there is none to check."""
    if trouble.kind is TroubleKind.MISSING:
        return tr("The Hub does not have this model any more, or hides it. Take another one, or look for one.")
    return trouble.sentence
