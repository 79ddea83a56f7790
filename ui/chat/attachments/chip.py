"""One file as a small card: its name, its size, and its tokens."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QToolButton

from models.formatting.figures import size as bytes_in_words
from ui.client.attachments import FOUND, Attachment, SentParts, spans
from ui.client.speeds import tokens_of
from ui.language import dotted, tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import fill
from ui.theme.tokens import Space
from ui.widgets.elided_label import in_tip, on_button
from ui.widgets.icon_button import IconButton
from ui.widgets.page_layout import set_menu

NAME = 26  # letters of a name


def facts(attachment: Attachment) -> str:
    """Return size, tokens and choice in a few words."""
    words = [bytes_in_words(attachment.n_bytes)]
    if not attachment.image:
        tokens = tokens_of(attachment.tokens)
        is_exact = attachment.is_counted and attachment.sent is None
        words.append(tokens if is_exact else tr("about {tokens}", tokens=tokens))
    if attachment.choice is SentParts.PASSAGES:
        words[-1] = tr("passages that fit")
    elif attachment.sent is not None:
        words.append(short(spans(attachment.sent_labels), NAME))
    return dotted(*words)


def short(text: str, length: int) -> str:
    """Return a text of at most ``length`` letters, its middle left out where it is longer."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


def how_chosen(attachment: Attachment) -> str:
    """Return in a sentence what of the file is sent."""
    if attachment.image:
        return tr("Sent as an image.")
    if attachment.choice is SentParts.PASSAGES:
        return tr("When you send, the passages that fit your question are chosen.")
    if attachment.sent is None:
        return tr("Sent whole.")
    how = {
        SentParts.PAGES: tr("You chose"),
        SentParts.BY_WORDS: tr("Chosen by the words of the question:"),
        SentParts.BY_MEANING: tr("Chosen by meaning:"),
    }.get(attachment.choice, tr("Sent:"))
    n_all = len(attachment.labels)
    return tr(
        "{how} {spans}, of {n_all} {words}.",
        how=how,
        spans=spans(attachment.sent_labels),
        n_all=n_all,
        words=tr("part") if n_all == 1 else tr("parts"),
    )


class Chip(Dressed, QFrame):
    """A file that will be sent; while it is read it says how far that is."""

    removed = Signal()
    whole_wanted = Signal()
    pages_wanted = Signal()
    passages_wanted = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName("chip")
        self.name = name
        self.attachment: Attachment | None = None
        self.button = QToolButton()
        self.button.setProperty("kind", "chip")
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.remove = IconButton("close", tr("Remove {name}", name=name), size=12)
        self.remove.clicked.connect(self.removed)
        fill(QHBoxLayout(self), self.button, self.remove, spacing=0, margins=(Space.XS, 2, 2, 2))
        self.show_progress(0.0)
        self.dress()

    def show_progress(self, share: float) -> None:
        """Say how far the reading is."""
        self._say(tr("reading {share:.0%}", share=share) if share else tr("reading…"))

    def show_attachment(self, attachment: Attachment) -> None:
        """Show what was read, and offer what can be chosen of it."""
        self.attachment = attachment
        self._say(facts(attachment))
        self.dress()
        self.button.setToolTip(in_tip(f"{self.name}\n{how_chosen(attachment)}"))
        if attachment.is_long and self.button.menu() is None:
            set_menu(self.button, self._menu())

    def dress(self) -> None:
        """Draw the icon."""
        is_image = self.attachment is not None and bool(self.attachment.image)
        set_icon(self.button, "image" if is_image else "file", colours().muted, size=16)

    def _say(self, words: str) -> None:
        self.button.setText(on_button(f"{short(self.name, NAME)}   {words}"))
        self.button.setAccessibleName(f"{self.name}, {words}")
        self.updateGeometry()

    def _menu(self) -> QMenu:
        menu = QMenu(self.button)
        entries = ((tr("Send all of it"), self.whole_wanted), (tr("Choose pages or parts…"), self.pages_wanted),
                   (tr("Send the passages that fit the question"), self.passages_wanted))  # fmt: skip
        actions = [QAction(words, menu) for words, _ in entries]
        for action, (_, wanted) in zip(actions, entries, strict=True):
            action.setCheckable(True)
            action.triggered.connect(wanted)
            menu.addAction(action)
        menu.aboutToShow.connect(lambda: self._check(actions))
        return menu

    def _check(self, actions: list[QAction]) -> None:
        choice = self.attachment.choice if self.attachment is not None else SentParts.ALL
        chosen = 2 if choice in FOUND else 1 if choice is SentParts.PAGES else 0
        for at, action in enumerate(actions):
            action.setChecked(at == chosen)
