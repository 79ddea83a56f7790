"""Who drafts for a model: the choice, who else could and who cannot, what could be downloaded, and a test."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QVBoxLayout, QWidget

from models.formatting.safe_text import lines, one_line
from models.library import requests as ask
from models.library.values import Choosing, DraftOffers, ModelRow, OfferRow, PairStep, PartnerRow, Partners, Trouble
from ui.client.library_link import LibraryLink
from ui.language import dotted, tr
from ui.library.labels import offer_line, partner_gain, size_of
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import STRETCH, against_reading, fill
from ui.theme.tokens import Space
from ui.widgets.elided_label import in_tip, on_button
from ui.widgets.facts_grid import FactsGrid
from ui.widgets.note_card import CALM, NoteCard
from ui.widgets.page_layout import ThinProgressBar, add_choices, announce, plain_label, set_menu, style_as

MOST_REFUSED = 4
MOST_TESTED = 3
STAGES = {"loading": tr("Loading {}…"), "measuring": tr("Measuring with {}…")}
WAITING = {
    "replies": tr(
        "A reply is being written on this machine. The test begins when that is done: beside it, its figures "
        "would be wrong and the reply slower."
    ),
    "a load": tr(
        "A model is being loaded on this machine. The test begins when that is done: beside it, its figures "
        "would be wrong."
    ),
}
STOPPED = tr("Stopped. What had been measured is kept; who drafts is as before.")
WHO = tr("Who drafts when this model is loaded")
WHO_BY_SETTINGS = tr("The model's settings name it. What is chosen here takes its place.")
HOLDS = tr("This takes effect when the model is loaded next.")
RESET = tr("The draft in the model's settings is reset.")
NO_OFFER = tr("There is nothing to download that is known to fit.")


class PartnersCard(Dressed, QWidget):
    """Shows the partners of one model. A test goes on when another model is shown, and is found again with its own."""

    changed = Signal()  # another drafts now, or more is known of the gains

    def __init__(self, link: LibraryLink) -> None:
        super().__init__()
        self._link = link
        self._name = self._tested = ""
        self._asked = self._asked_offers = 0
        self._was_stopped = False
        self._results: dict[str, str] = {}
        self.shown: Partners | None = None
        title = QLabel(tr("Drafts for it"))
        title.setProperty("tone", "section")
        self.why, self.refused, self.result, self.stage = (
            plain_label(tone=tone, can_select=True) for tone in ("", "muted", "", "caption")
        )
        self.facts = FactsGrid()
        self.choice, self.test = QPushButton(tr("Automatic")), QPushButton(tr("Test this pair"))
        self.choice.setToolTip(WHO)
        self.choice.setLayoutDirection(against_reading())
        self.test.setToolTip(tr("Measures on this machine and keeps the fastest; takes about a minute for each"))
        self.test.clicked.connect(self._on_test)
        self.wait = NoteCard(CALM, tr("Test anyway"))
        self.wait.button.clicked.connect(lambda: self._link.ask(ask.BeginPairTest()))
        self._waits_for = ""
        self.bar = ThinProgressBar(tr("Test of the pair"))
        self.offers = QVBoxLayout()
        self._offered: list[QWidget] = []
        self._lay_out(title)
        self.dress()

    def dress(self) -> None:
        """Draw the arrow of the choice."""
        set_icon(self.choice, "down", colours().muted, size=12)

    def _lay_out(self, title: QLabel) -> None:
        buttons = fill(QHBoxLayout(), self.choice, self.test, STRETCH, spacing=Space.S)
        self.offers.setSpacing(Space.XS)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.XS + 2)
        for part in (title, self.why, self.facts):
            column.addWidget(part)
        column.addSpacing(Space.XS)
        column.addLayout(buttons)
        column.addSpacing(Space.XS)
        column.addWidget(self.wait)
        column.addWidget(self.stage)
        column.addWidget(self.bar)
        column.addWidget(self.result)
        column.addWidget(self.refused)
        column.addLayout(self.offers)
        self._show_test()

    def show_model(self, row: ModelRow) -> None:
        """Show a model's partners; one that cannot be used has none."""
        self.setVisible(row.problem is None)
        is_other = row.name != self._name
        self._name = row.name if row.problem is None else ""
        if is_other:
            self.shown = None
            self._say_loading()
        self._show_test()
        self.look()

    def look(self) -> None:
        """Ask for the partners again."""
        self._link.forget(self._asked)
        if self._name:
            self._asked = self._link.ask(ask.ShowPartners(self._name), self._on_partners, self._on_trouble)

    # What came.

    def _say_loading(self) -> None:
        self.why.setText(tr("Comparing with the models here…"))
        for part in (self.facts, self.refused, self.choice, self.test):
            part.hide()
        self._clear_offers()

    def _on_partners(self, found: Partners) -> None:
        if found.name != self._name:
            return
        self.shown = found
        usable = [partner for partner in found.partners if partner.problem is None]
        self.why.setText(one_line(" ".join((*found.notices, found.why))))
        self.facts.show_facts([(partner.name, _partner_line(partner)) for partner in usable])
        is_said = [partner.name in found.why and partner_gain(partner) in found.why for partner in usable]
        self.facts.setVisible(not all(is_said))  # the sentence alone says as much of a single one
        self._show_refused([partner for partner in found.partners if partner.problem is not None])
        self._show_choice(found, usable)
        n_tested = min(len(usable), MOST_TESTED)
        self.test.setText(tr("Test this pair") if n_tested == 1 else tr("Test the best {n_tested}", n_tested=n_tested))
        self._show_test()
        self._link.forget(self._asked_offers)
        if found.has_worthy:
            self._clear_offers()
        else:
            self._clear_offers(tr("Looking for a small model to download…"))
            request = ask.FindOffers(self._name)
            self._asked_offers = self._link.ask(request, self._on_offers, self._on_no_offers)

    def _on_trouble(self, trouble: Trouble) -> None:
        self.why.setText(trouble.sentence)

    def _show_refused(self, refused: list[PartnerRow]) -> None:
        lines = [
            tr("{name} cannot draft. {problem}", name=partner.name, problem=partner.problem)
            for partner in refused[:MOST_REFUSED]
        ]
        if len(refused) > MOST_REFUSED:
            n_more = len(refused) - MOST_REFUSED
            more = tr("{n_refused} more cannot either.", n_refused=n_more)
            lines.append(tr("1 more cannot either.") if n_more == 1 else more)
        self.refused.setText("\n".join(map(one_line, lines)))
        self.refused.setToolTip(in_tip("\n".join(f"{one_line(one.name)}: {one.problem}" for one in refused[:40])))
        self.refused.setVisible(bool(lines))

    def _show_choice(self, found: Partners, usable: list[PartnerRow]) -> None:
        now = {Choosing.AUTOMATIC: tr("Automatic"), Choosing.NONE: tr("None")}.get(
            found.choosing, found.used or tr("None")
        )
        is_set = found.choosing is Choosing.SETTINGS
        self.choice.setVisible(bool(usable) or is_set)
        self.choice.setText(on_button(tr("{now}, by its settings", now=now) if is_set else now))
        self.choice.setToolTip(WHO_BY_SETTINGS if is_set else WHO)
        self.choice.setAccessibleName(tr("Who drafts: {now}", now=now))
        menu = QMenu(self)
        ways = [(tr("Automatic"), found.choosing is Choosing.AUTOMATIC, partial(self.choose, Choosing.AUTOMATIC))]
        ways.append((tr("None"), found.choosing is Choosing.NONE, partial(self.choose, Choosing.NONE)))
        for name in (one.name for one in usable):
            is_used = found.choosing is Choosing.NAMED and name == found.used
            ways.append((on_button(name), is_used, partial(self.choose, Choosing.NAMED, name)))
        add_choices(menu, ways)
        before = self.choice.menu()
        set_menu(self.choice, menu)
        if before is not None:
            before.deleteLater()

    def _on_offers(self, found: DraftOffers) -> None:
        if found.name != self._name:
            return
        self._clear_offers()
        for offer in found.offers:
            self._add_offer(offer)
        notes = [note for note in found.notes if self.shown is None or note not in self.shown.why]
        if not found.offers:
            notes.insert(0, NO_OFFER)
        self._add_note(" ".join(notes))

    def _on_no_offers(self, trouble: Trouble) -> None:
        self._clear_offers(trouble.sentence)

    def _add_offer(self, offer: OfferRow) -> None:
        words, button = plain_label(tone="", can_select=True), QPushButton(tr("Download"))
        words.setText(one_line(offer_line(offer)))
        button.clicked.connect(lambda: self._download(offer, button))
        holder = QWidget()
        fill(QHBoxLayout(holder), (words, 1), (button, 0, Qt.AlignmentFlag.AlignTop), spacing=Space.S, margins=0)
        self._offer(holder)

    def _offer(self, widget: QWidget) -> None:
        self._offered.append(widget)
        self.offers.addWidget(widget)

    def _download(self, offer: OfferRow, button: QPushButton) -> None:
        button.setEnabled(False)
        button.setText(tr("In the queue"))
        self._link.ask(ask.StartDownload(offer.repo_id, offer.wanted), failed=self._on_refused)

    def _add_note(self, text: str) -> None:
        if text:
            self._offer(plain_label(text, can_select=True))

    def _clear_offers(self, note: str = "") -> None:
        self._link.forget(self._asked_offers)
        for widget in self._offered:
            self.offers.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self._offered.clear()
        self._add_note(note)

    # What the user does.

    def choose(self, way: Choosing, partner: str = "") -> None:
        """Choose who drafts; that takes the place of what the settings name."""
        was_set = self.shown is not None and self.shown.choosing is Choosing.SETTINGS
        said = f"{RESET} {HOLDS}" if was_set else HOLDS
        request = ask.ChoosePartner(self._name, way.value, partner)
        self._link.ask(request, lambda found: self._on_chosen(found, said), self._on_refused)

    def _on_chosen(self, found: Partners, said: str) -> None:
        self._on_partners(found)
        self._say_result(found.name, said)
        self.changed.emit()

    def _on_refused(self, trouble: Trouble) -> None:
        self._say_result(self._name, trouble.sentence, "problem")
        self.look()

    def _on_test(self) -> None:
        if self._tested:
            self._was_stopped, self._waits_for = True, ""
            self.stage.setText(tr("Stopping…"))
            self._show_test()
            self._link.ask(ask.StopPairTest())
            return
        name = self._tested = self._name
        self._was_stopped = False
        self._results.pop(name, None)
        self.stage.setText(tr("Starting…"))
        self._waits_for = ""
        self.bar.show_share(0.0)
        self._show_test()
        self._link.ask(
            ask.TestPair(name),
            lambda nothing: self._on_tested(),
            lambda trouble: self._on_tested(STOPPED if self._was_stopped else trouble.sentence),
            self._on_step,
        )

    def _on_step(self, step: PairStep) -> None:
        if step.results:
            self._results[self._tested] = "\n".join(step.results[:-1])  # who drafts is said above
            return
        if self._was_stopped:
            return  # what comes later is of before
        self._waits_for = WAITING.get(step.stage, "")
        self.stage.setText(STAGES.get(step.stage, "").format(one_line(step.partner)))
        self.bar.show_share(step.share, is_loading=step.stage == "loading")
        self._show_test()

    def _on_tested(self, problem: str = "") -> None:
        name, self._tested = self._tested, ""
        if problem:
            self._say_result(name, problem, "muted" if self._was_stopped else "problem")
        else:
            self._say_result(name, self._results.get(name, ""), "")
        self._show_test()
        if name == self._name:
            announce(self, self.result.text())
        self.look()
        self.changed.emit()

    def _say_result(self, name: str, words: str, tone: str = "muted") -> None:
        self._results[name] = words
        style_as(self.result, "tone", tone)
        self._show_test()

    def _show_test(self) -> None:
        """The button tests or stops; of another model's test, only that it runs is said."""
        is_own = bool(self._tested) and self._tested == self._name
        has_usable = self.shown is not None and any(one.problem is None for one in self.shown.partners)
        if is_own:
            self.test.setText(tr("Stop the test"))
        elif has_usable and self.test.text() == tr("Stop the test"):
            self.test.setText(tr("Test again"))
        self.test.setVisible(is_own or has_usable)
        self.test.setEnabled(is_own or not self._tested)
        self.choice.setEnabled(not self._tested)
        self.wait.say(self._waits_for if is_own else "")
        self.bar.setVisible(is_own and not self._waits_for)
        self.stage.setVisible(is_own and not self._waits_for)
        words = self._results.get(self._name, "")
        self.result.setText(lines(words))
        self.result.setVisible(bool(words) and not is_own)


def _partner_line(partner: PartnerRow) -> str:
    return dotted(partner_gain(partner), size_of(partner.n_bytes) or partner.kind)
