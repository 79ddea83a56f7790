"""How the Hub is reached, and as whom: address, proxy, access token."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from models.library import requests as ask
from models.library.values import HubFacts, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.page_layout import ProblemLabel, plain_label

SIZE = (440, 0)  # as high as what is in it
NOTE = tr(
    "HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE in the environment go before what is set here. "
    "The token is kept in the system's keyring."
)

KEYRING = "the system keyring"
# Where an access token comes from, in the words of the window.
ORIGINS = {KEYRING: tr("the system keyring"), "Hugging Face's token file": tr("Hugging Face's token file")}
NOBODY = tr("Not logged in.")
ACCOUNT = tr(
    "Models whose licence has to be accepted, and private ones, need an access token. You make one on huggingface.co, "
    "in Settings."
)


class HubDialog(Dialog):
    """Shows and changes the Hub's settings."""

    changed = Signal()

    def __init__(self, link: LibraryLink, parent: QWidget) -> None:
        super().__init__(tr("Hub settings"), SIZE, parent)
        self._link = link
        self.address, self.proxy, self.token = QLineEdit(), QLineEdit(), QLineEdit()
        self.address.setPlaceholderText("https://huggingface.co")
        self.proxy.setPlaceholderText(tr("Like the system"))
        self.token.setPlaceholderText(tr("Paste an access token: hf_…"))
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.who, self.problem, note = plain_label(tone="caption"), ProblemLabel(), plain_label(NOTE, "caption")
        self.log_in, self.log_out = QPushButton(tr("Log in")), QPushButton(tr("Log out"))
        self.save, self.close_button = primary(tr("Save")), QPushButton(tr("Close"))
        self._is_waiting, self._said = False, ""
        self.log_in.clicked.connect(lambda checked: self._on_log_in())
        self.log_out.clicked.connect(lambda: self._ask(ask.LogOut(), self._on_changed))
        self.save.clicked.connect(self._on_save)
        self.close_button.clicked.connect(self.close)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(Space.XL, Space.XL, Space.XL, Space.L)
        column.setSpacing(Space.S)
        column.addWidget(plain_label(ACCOUNT))
        row = fill(QHBoxLayout(), (self.who, 1), self.log_in, self.log_out)
        # First what most people come for.
        for words, field, more in (
            (tr("Access token"), self.token, (row,)),
            (tr("Address"), self.address, ()),
            (tr("Proxy"), self.proxy, ()),
        ):
            label = QLabel(words)
            label.setProperty("tone", "section")
            label.setBuddy(field)
            field.setAccessibleName(words)
            fill(column, label, field, *more, Space.XS)
        fill(column, note, self.problem)
        column.addSpacing(Space.S)
        ends = fill(QHBoxLayout(), STRETCH, self.close_button, self.save)
        column.addLayout(ends)
        self.log_out.hide()  # until it is known who is logged in
        self._fit()
        link.ask(ask.ShowHub(), self._on_first_facts, self._on_trouble, asker=self)

    def _on_first_facts(self, facts: HubFacts) -> None:
        for field, kept in ((self.address, facts.address), (self.proxy, facts.proxy or "")):
            if not field.isModified():  # the library may have taken long to start
                field.setText(kept)
        self._on_facts(facts)

    def _on_facts(self, facts: HubFacts) -> None:
        self.problem.hide()
        offline = tr(" HF_HUB_OFFLINE is set: the Hub is not asked.") if facts.is_offline else ""
        who = tr("Logged in by {token}.", token=ORIGINS.get(facts.token, facts.token)) if facts.token else NOBODY
        self._said = who + offline
        self.who.setText(self._said)
        self.log_out.setVisible(facts.token == KEYRING)
        self._fit()

    def _on_trouble(self, trouble: Trouble) -> None:
        self.who.setText(self._said)
        self.problem.say(trouble.sentence)
        self._fit()

    def _fit(self) -> None:
        """Grow with what is said: a sentence may take several lines."""
        self.resize(self.width(), max(self.height(), self._column.totalHeightForWidth(self.width())))

    def _on_log_in(self, then: Callable[[], object] = lambda: None) -> None:
        """Log in by the token, which stays in its field where it is refused: it can be mended there."""

        def done(facts: HubFacts) -> None:
            self.token.clear()
            self._on_changed(facts)
            then()

        self._ask(ask.LogIn(self.token.text()), done)

    def _on_save(self) -> None:
        self._ask(ask.ChangeHub(self.address.text().strip(), self.proxy.text().strip()), self._on_saved)

    def _on_saved(self, facts: HubFacts) -> None:
        self._on_changed(facts)
        if self.token.text().strip():  # Enter in its field saves, too
            self._on_log_in(self.accept)
        else:
            self.accept()

    def _ask(self, request: object, done: Callable[[HubFacts], object]) -> None:
        """Ask, one thing at a time, and say so meanwhile: the Hub may be far away."""
        if self._is_waiting:
            return

        def ended(tell: Callable[[Any], object], answer: object) -> None:
            self._is_waiting = False
            tell(answer)

        self._is_waiting = True
        self.problem.hide()
        self.who.setText(tr("Asking the Hub…"))
        self._link.ask(request, partial(ended, done), partial(ended, self._on_trouble), asker=self)

    def _on_changed(self, facts: HubFacts) -> None:
        self._on_facts(facts)
        self.changed.emit()
