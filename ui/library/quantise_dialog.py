"""A smaller copy of a model: which one, and how it goes."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from models.library import requests as ask
from models.library.values import QuantiseOffer, QuantiseTarget, Quantising, Trouble
from models.quantise.progress import QuantisePhase
from ui.client.library_link import LOST, LibraryLink
from ui.language import dotted, tr
from ui.library.labels import quantise_line, share, size_of
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog
from ui.widgets.elided_label import ElidedLabel, in_tip
from ui.widgets.fields import CheckField
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import ProblemLabel, ThinProgressBar, plain_label, style_as
from ui.widgets.row_list import ListRow, RowList


class QuantiseRow(QFrame):
    """Shows one copy; its button ends it, or takes it off the list when it has ended."""

    cancel_wanted = Signal(int)

    def __init__(self, quantising: Quantising) -> None:
        super().__init__()
        self.quantising = quantising
        self.setObjectName("downloadCard")
        self.title, self.line, self.problem = ElidedLabel(), ElidedLabel(), plain_label(tone="")
        self.title.setProperty("tone", "strong")
        self.line.setProperty("tone", "caption")
        self.bar = ThinProgressBar(tr("Making of the copy"))
        self.cancel = IconButton("close", tr("Cancel"), size=16)
        self.cancel.clicked.connect(lambda: self.cancel_wanted.emit(self.quantising.number))
        head = fill(QHBoxLayout(), (self.title, 1), self.cancel, spacing=0)
        inner = fill(QVBoxLayout(), self.bar, self.line, self.problem, spacing=Space.XS + 2, margins=(0, 0, Space.S, 0))
        fill(QVBoxLayout(self), head, inner, spacing=Space.XS + 2, margins=(Space.L, Space.S, Space.S, Space.M))
        self.show_quantising(quantising)

    def show_quantising(self, quantising: Quantising) -> None:
        """Show where it stands now."""
        self.quantising = quantising
        self.title.setText(quantising.name)
        self.title.setToolTip(in_tip(quantising.name))
        self.setAccessibleName(quantising.name)
        self.line.setText(quantise_line(quantising))
        self.bar.show_share(share(quantising.progress), is_calm=quantising.phase is QuantisePhase.QUEUED)
        self.bar.setVisible(not quantising.is_over)
        style_as(self.problem, "tone", "problem" if quantising.problem else "caption")
        words = quantising.problem or quantising.notice or ""
        self.problem.setText(words)
        self.problem.setVisible(bool(words))
        self.cancel.show_as(
            "close", tr("Take off the list") if quantising.is_over else tr("Cancel; nothing of it stays")
        )


SIZE = (520, 600)
FOLLOWED_HEIGHT = 280
LOSES = tr(
    "{model} is quantised already ({type}): quantised again it loses more than the original would when it is quantised "
    "once. A smaller file from the maker, or one made of the F16 or BF16 file, is better."
)
_CENTRE = RowList.ScrollHint.PositionAtCenter
GOES_ON = tr("It goes on when you close this, and is under Downloads. When you quit Slipstream, it ends.")


class QuantiseDialog(Dialog):
    """Offers types, begins, and follows what was begun. Closing it does not end that."""

    shown_wanted = Signal(str)  # the name of a model that was made

    def __init__(self, link: LibraryLink, model: str, parent: QWidget) -> None:
        super().__init__(tr("Make a smaller copy"), SIZE, parent)
        self._link, self._model = link, model
        self.offer: QuantiseOffer | None = None
        self._number: int | None = None
        self._was_told = False  # that it is there: the answer and the news may come in either order
        self._height = self.height()
        self.title, self.about = plain_label(tr("Make a smaller copy"), "title"), plain_label(model, "caption")
        self.list = RowList(tr("Types, the best first"))
        self.list.setObjectName("framedList")
        self.warning, self.anyway = QFrame(), CheckField(tr("Make it all the same"))
        self.name, self.room, self.problem = QLineEdit(), plain_label(tone="caption"), ProblemLabel()
        self.goes_on = plain_label(GOES_ON, "caption")
        self.row = QuantiseRow(Quantising(0, model, "", ""))
        self.row.cancel.hide()
        self.stack, self.chooser, self.follower = QStackedWidget(), QWidget(), QWidget()
        self.make, self.close_button = QPushButton(tr("Make copy")), QPushButton(tr("Cancel"))
        self.stop, self.show_it = QPushButton(tr("Cancel the copy")), QPushButton(tr("Show it"))
        self._dress()
        self._lay_out()
        self._connect_signals()
        running = next((one for one in link.quantisings if one.source == model and not one.is_over), None)
        if running is not None:
            self._number, self._was_told = running.number, True
        self._show_state()
        self._ask_offer()

    def _dress(self) -> None:
        for button in (self.make, self.show_it):
            button.setProperty("kind", "primary")
        self.name.setAccessibleName(tr("Name of the copy"))
        self.warning.setObjectName("warningNote")
        self.warning.hide()

    def _lay_out(self) -> None:
        self._warning_text = plain_label(tone="")
        warned = QVBoxLayout(self.warning)
        warned.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        warned.setSpacing(Space.XS)
        warned.addWidget(self._warning_text)
        warned.addWidget(self.anyway)
        name_label = QLabel(tr("Name"))
        name_label.setProperty("tone", "section")
        name_label.setBuddy(self.name)
        choosing = QVBoxLayout(self.chooser)
        choosing.setContentsMargins(0, 0, 0, 0)
        choosing.setSpacing(Space.S)
        choosing.addWidget(self.list, 1)
        choosing.addWidget(self.warning)
        choosing.addWidget(name_label)
        choosing.addWidget(self.name)
        choosing.addWidget(self.room)
        fill(QVBoxLayout(self.follower), self.row, self.goes_on, STRETCH, spacing=Space.M, margins=0)
        self.stack.addWidget(self.chooser)
        self.stack.addWidget(self.follower)
        buttons = fill(QHBoxLayout(), self.stop, STRETCH, self.close_button, self.make, self.show_it, spacing=Space.S)
        column = fill(
            QVBoxLayout(self), self.title, self.about, spacing=Space.S, margins=(Space.XL, Space.L, Space.XL, Space.L)
        )
        fill(column, Space.XS, (self.stack, 1), self.problem, Space.XS, buttons)

    def _connect_signals(self) -> None:
        self.list.chosen.connect(lambda key: self._show_choice())
        self.list.confirmed.connect(self._begin)
        self.anyway.toggled.connect(lambda is_on: self._show_choice())
        self.name.textEdited.connect(lambda text: self.problem.hide())
        self.make.clicked.connect(self._begin)
        self.close_button.clicked.connect(self.reject)
        self.stop.clicked.connect(self._stop)
        self.show_it.clicked.connect(self._on_show)
        self._link.quantisings_changed.connect(self._on_quantisings)
        self._link.lost.connect(self._on_lost)

    # Choosing.

    @property
    def target(self) -> QuantiseTarget | None:
        """The chosen type."""
        targets = self.offer.targets if self.offer is not None else ()
        return next((target for target in targets if target.type == self.list.key), None)

    def _ask_offer(self) -> None:
        self._link.ask(ask.OfferQuantise(self._model), self._on_offer, self._on_trouble, asker=self)

    def _on_offer(self, offer: QuantiseOffer) -> None:
        self.offer = offer
        self.about.setText(dotted(offer.model, offer.source_type, size_of(offer.n_bytes), tr("stays as it is")))
        self._warning_text.setText(LOSES.format(model=offer.model, type=offer.source_type))
        self.warning.setVisible(not offer.is_original and bool(offer.targets))
        self.list.show_rows([_row(target) for target in offer.targets])
        if offer.problem is not None:
            self._on_trouble(Trouble(offer.problem))
        usual = next((target for target in offer.targets if target.is_usual), None)
        if self.target is None and offer.targets:
            self.list.choose((usual or offer.targets[0]).type)
        self._show_choice()
        if self._number is None:
            self.list.setFocus()
        # The list has its height in the next turn of the event loop.
        QTimer.singleShot(0, self, lambda: self.list.scrollTo(self.list.currentIndex(), _CENTRE))

    def _show_choice(self) -> None:
        offer, target = self.offer, self.target
        self.name.setEnabled(target is not None)
        is_allowed = offer is not None and (offer.is_original or self.anyway.isChecked())
        has_room = offer is not None and target is not None and target.n_bytes < offer.n_free
        self.make.setEnabled(is_allowed and has_room)
        if offer is None or target is None:
            self.room.clear()
            return
        self.name.setPlaceholderText(target.name)
        free = size_of(offer.n_free) or tr("nothing")
        room = tr(
            "Takes about {n_bytes} of the {free} that are free, in {folder}.",
            n_bytes=size_of(target.n_bytes),
            free=free,
            folder=offer.folder,
        )
        if not has_room:
            room = tr(
                "There is no room for it: it takes about {n_bytes}, and {free} is free. Free some.",
                n_bytes=size_of(target.n_bytes),
                free=free,
            )
        self.room.setText(room)
        style_as(self.room, "tone", "caption" if has_room else "problem")

    def _begin(self) -> None:
        target = self.target
        if target is None or not self.make.isEnabled():
            return
        self.problem.hide()
        self.make.setEnabled(False)
        wish = ask.Quantise(self._model, target.type, self.name.text().strip(), self.anyway.isChecked())
        self._link.ask(wish, self._on_begun, self._on_trouble, asker=self)

    # Following.

    def _on_begun(self, begun: Quantising) -> None:
        self._number = begun.number
        known = self._own(self._link.quantisings)
        self._was_told = known is not None
        self.row.show_quantising(known if known is not None else begun)
        self._show_state()

    def _on_quantisings(self, quantisings: tuple[Quantising, ...]) -> None:
        if self._number is None:
            return
        if self._own(quantisings) is not None:
            self._was_told = True
        elif self._was_told:
            # It was cancelled, here or among the downloads: another can be chosen.
            self._number, self._was_told = None, False
            self._ask_offer()
        self._show_state()

    def _own(self, quantisings: tuple[Quantising, ...]) -> Quantising | None:
        return next((one for one in quantisings if one.number == self._number), None)

    def _show_state(self) -> None:
        own = self._own(self._link.quantisings)
        if own is not None:
            self.row.show_quantising(own)
        follows = self._number is not None
        shown = self.row.quantising
        is_over = follows and shown.is_over
        if (self.stack.currentWidget() is self.follower) != follows:
            self.stack.setCurrentWidget(self.follower if follows else self.chooser)
            self._fit(follows)
        self.goes_on.setVisible(not is_over)
        self.make.setVisible(not follows)
        self.stop.setVisible((follows and not is_over) or (is_over and shown.problem is not None))
        self.stop.setText(tr("Choose another") if is_over else tr("Cancel the copy"))
        self.show_it.setVisible(is_over and shown.problem is None)
        self.close_button.setText(tr("Close") if follows else tr("Cancel"))
        default = self.show_it if not self.show_it.isHidden() else self.close_button if follows else self.make
        default.setDefault(True)
        if (follows and self.focusWidget() is None) or self.focusWidget() is self.make:
            default.setFocus()
        self._show_choice()

    def _fit(self, follows: bool) -> None:
        """Be as high as what is shown: the list takes what there is, a row does not."""
        self.resize(self.width(), scaled(FOLLOWED_HEIGHT) if follows else self._height)

    def _stop(self) -> None:
        if self._number is not None:
            self._link.ask(ask.CancelQuantise(self._number), failed=self._on_trouble, asker=self)

    def _on_lost(self) -> None:
        if self._number is not None and not self.row.quantising.is_over:
            self._number, self._was_told = None, False
            self._on_trouble(Trouble(LOST))
            self._show_state()

    def _on_show(self) -> None:
        self.shown_wanted.emit(self.row.quantising.name)
        self.accept()

    def _on_trouble(self, trouble: Trouble) -> None:
        self._show_choice()
        self.problem.say(trouble.sentence)


def _row(target: QuantiseTarget) -> ListRow:
    badge = tr("usual choice") if target.is_usual else ""
    return ListRow(
        target.type,
        target.type,
        target.quality,
        tr("about {n_bytes}", n_bytes=size_of(target.n_bytes)),
        badge,
        "accent",
    )
