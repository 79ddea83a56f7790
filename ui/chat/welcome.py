"""What an empty chat shows: a greeting, what model answers, and things to try."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui.language import tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import pixmap
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import COLUMN, Space
from ui.widgets.page_layout import ScrollColumn

TOY_EXAMPLES = (
    (tr("Tell me a story about a fox."), tr("A short story")),
    (tr("What is a token?"), tr("A question it knows")),
    (tr("List the planets."), tr("A list")),
    (tr("Write a Python function that reverses a string."), tr("Some code")),
)
EXAMPLES = (
    (tr("Explain in three sentences how you work."), tr("Explain")),
    (tr("Write a Python script that finds duplicate files."), tr("Code")),
    (tr("Summarise a text that I paste next."), tr("Summarise")),
    (tr("Draft a friendly reply that declines an invitation."), tr("Write")),
)
TOY_TEXT = tr(
    "<p style='line-height: 140%'>You are talking to <b>Ember</b>, a tiny model that comes with Slipstream "
    "so that you can try everything at once. "
    "It is a toy: good for little stories, wrong about most other things.</p>"
)
TEXT = tr("Everything you write stays on this computer.")
TWO_COLUMNS = 560
LOW = 380  # below this height the greeting is all there is room for above the examples


class Welcome(Dressed, ScrollColumn):
    """Greets, and offers examples that can be sent with one click."""

    tried = Signal(str)
    models_wanted = Signal()

    def __init__(self) -> None:
        body = QWidget()
        super().__init__(body)
        self.mark = QLabel()
        self.mark.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        title = QLabel(tr("What shall we try?"))
        title.setProperty("tone", "hero")
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        title.setWordWrap(True)  # on one line it would hold a narrow page wide
        self.note = QLabel(TEXT)
        self.note.setProperty("tone", "muted")
        self.note.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.note.setWordWrap(True)
        self.note.setTextFormat(Qt.TextFormat.RichText)
        self.note.setMaximumWidth(680)
        self.grid = QGridLayout()
        self.grid.setSpacing(Space.S)
        self.examples: list[_Example] = []
        self._slot = QVBoxLayout()
        self._has_card = False
        self.models = QPushButton(tr("Which models suit this machine?"))
        self.models.setProperty("kind", "flat")
        self.models.clicked.connect(self.models_wanted)
        self.models.hide()
        column = fill(QVBoxLayout(body), (STRETCH, 2), self.mark)
        fill(column, Space.S, title, Space.S)
        note_row = QGridLayout()
        note_row.addWidget(self.note, 0, 0)
        column.addLayout(note_row)
        column.addSpacing(Space.L)
        column.addLayout(self._slot)
        column.addLayout(self.grid)
        column.addSpacing(Space.S)
        column.addWidget(self.models, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)
        self._column = column
        self._n_columns = 0
        self._is_toy: bool | None = None
        self.set_toy(False)
        self.dress()

    def set_toy(self, is_toy: bool) -> None:
        """Say whether the model is only a toy, and offer what it can do."""
        if is_toy == self._is_toy:
            return
        self._is_toy = is_toy
        self.note.setText(TOY_TEXT if is_toy else TEXT)
        for button in self.examples:
            self.grid.removeWidget(button)
            button.hide()  # it is deleted a moment later
            button.deleteLater()
        self.examples = [_Example(*example) for example in (TOY_EXAMPLES if is_toy else EXAMPLES)]
        for button in self.examples:
            button.tried.connect(self.tried)
        self._n_columns = 0
        self._fit()

    def show_card(self, card: QWidget | None) -> None:
        """Show a card above the examples; None takes it away, and a button asks for it again."""
        if (shown := self._slot.takeAt(0)) is not None and (before := shown.widget()) is not None:
            before.hide()
        self._slot.setContentsMargins(0, 0, 0, Space.M if card is not None else 0)
        self._has_card = card is not None
        if card is not None:
            self._slot.addWidget(card)
            card.show()
        self._fit()

    def dress(self) -> None:
        """Draw the mark, and leave room for the text."""
        self._fit()
        self.mark.setPixmap(pixmap("stream", colours().accent, 44, self.devicePixelRatioF()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Leave room for what has grown in it."""
        if watched is self.body and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:
        """Leave room for what has grown out of sight, where layouts do not tell."""
        super().showEvent(event)
        self._column.invalidate()
        self._fit()
        self.verticalScrollBar().setValue(0)  # a new chat begins at its top

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the examples in a readable column."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.centre(self._column, COLUMN, Space.L)
        self.mark.setVisible(self.height() >= LOW and not self._has_card)
        self._arrange()
        # A scroll area asks for the least height at any width, where the note would have one line.
        height = self._column.heightForWidth(self.viewport().width())
        if height != self.body.minimumHeight():
            self.body.setMinimumHeight(height)

    def _arrange(self) -> None:
        n_columns = 2 if self.width() >= TWO_COLUMNS else 1
        if n_columns == self._n_columns:
            return
        self._n_columns = n_columns
        for number, button in enumerate(self.examples):
            self.grid.addWidget(button, number // n_columns, number % n_columns)


class _Example(QPushButton):
    """A prompt to try."""

    tried = Signal(str)

    def __init__(self, prompt: str, kind: str) -> None:
        super().__init__()
        self.prompt = prompt
        self.setProperty("kind", "example")
        self.setAccessibleName(tr("Try: {prompt}", prompt=prompt))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setMinimumHeight(66)
        head, text = QLabel(kind), QLabel(prompt)
        text.setWordWrap(True)
        head.setProperty("tone", "caption")
        for label in (head, text):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        text.setAlignment(Qt.AlignmentFlag.AlignTop)  # heads stand side by side, however long a text is
        fill(QVBoxLayout(self), head, (text, 1), spacing=Space.XS, margins=(Space.M + 2, Space.M + 2, Space.M, Space.S))
        self.clicked.connect(lambda: self.tried.emit(self.prompt))
