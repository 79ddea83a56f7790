"""The side with the system prompt and the sampling of a chat."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from core.values.request import SamplingParams
from models.formatting import figures
from models.formatting.safe_text import one_line
from ui.chat.chat_page import ChatPage
from ui.chat.tools.tool_box import cannot_call
from ui.client.chat_records import ChatSettings
from ui.client.server_watch import ServerWatch
from ui.client.speeds import CHOICES, Speed
from ui.language import tr
from ui.theme.colours import Dressed
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import PANEL, TOP_BAR, Space
from ui.widgets.fields import ChoiceField, DecimalField, NoWheelSlider, WholeField
from ui.widgets.icon_button import IconButton, TextButton
from ui.widgets.page_layout import ScrollColumn, plain_label

MAX_INT = 2_147_483_647
TYPING_MS = 300
PROMPT_HEIGHT, DIAL_WIDTH, NUMBER_WIDTH = 132, 68, 112
SCROLL_BAR = 16
UNSET = tr("Auto")
_DEFAULTS = SamplingParams()


@dataclass(frozen=True, slots=True)
class Dial:
    """A number that can be set: its field in the settings, and in which range."""

    field: str
    label: str
    low: float
    high: float
    step: float
    help: str


DIALS = (
    Dial(
        "temperature",
        tr("Temperature"),
        0.0,
        2.0,
        0.05,
        tr("0 always takes the most likely token; higher is more varied."),
    ),
    Dial("top_k", tr("Top K"), 0, 200, 1, tr("Only the K most likely tokens are considered; 0 considers all.")),
    Dial("top_p", tr("Top P"), 0.0, 1.0, 0.01, tr("Only the most likely tokens that together reach this probability.")),
    Dial(
        "min_p",
        tr("Min P"),
        0.0,
        1.0,
        0.01,
        tr("Only tokens at least this likely, measured against the most likely one."),
    ),
    Dial(
        "repeat_penalty", tr("Repeat penalty"), 0.5, 2.0, 0.01, tr("Above 1 makes recent tokens less likely; 1 is off.")
    ),
)


class TuningPanel(Dressed, QFrame):
    """Edits the settings of the chat on one page."""

    close_wanted = Signal()

    def __init__(self, page: ChatPage, watch: ServerWatch) -> None:
        super().__init__()
        self._page, self._watch = page, watch
        self.setObjectName("panel")
        self.setFixedWidth(PANEL)
        self._settings = ChatSettings()
        self.close_button = IconButton("close", tr("Close the panel"), size=16)
        self.close_button.clicked.connect(self.close_wanted)
        self.model, self.speed = ChoiceField(tr("Model of this chat")), ChoiceField(tr("Speed of this chat"))
        for field in (self.model, self.speed):
            field.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            field.setMinimumContentsLength(8)
        for choice in CHOICES:
            self.speed.addItem(choice.name, choice.speed)
        self.model.activated.connect(lambda at: self._page.choose_model(self.model.itemData(at)))
        self.speed.activated.connect(lambda at: self._page.choose_speed(Speed(self.speed.itemData(at))))
        self.prompts = TextButton(tr("Kept instructions…"), tr("Kept instructions"))
        self.prompts.setToolTip(tr("Take instructions that you have kept, or keep these"))
        self.tools = TextButton(tr("MCP servers…"), tr("MCP servers"))
        self.tools.setToolTip(tr("Programs that give models tools, in all chats"))
        self.no_tools = plain_label("", "caption")
        self.prompt = QPlainTextEdit()
        self.prompt.setProperty("kind", "field")
        self.prompt.setPlaceholderText(tr("How should the model behave?"))
        self.prompt.setAccessibleName(tr("System prompt"))
        self.prompt.setTabChangesFocus(True)
        self._typing = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._typing.timeout.connect(self._read)
        self.prompt.textChanged.connect(self._typing.start)
        self.rows = {dial.field: _DialRow(dial) for dial in DIALS}
        self.max_tokens = _number(tr("Max tokens"), 0, MAX_INT, tr("No limit"))
        self.max_tokens.setToolTip(tr("The reply ends after this many tokens."))
        self.seed = _number(tr("Seed"), -1, MAX_INT, tr("Random"))
        self.seed.setToolTip(tr("The same seed, prompt and settings give the same reply."))
        self.reset = QPushButton(tr("Reset to defaults"))
        self.reset.clicked.connect(self._on_reset)
        for row in self.rows.values():
            row.changed.connect(self._read)
        self.max_tokens.valueChanged.connect(lambda value: self._read())
        self.seed.valueChanged.connect(lambda value: self._read())
        self._lay_out()
        page.settings_shown.connect(self._show_settings)
        watch.models_changed.connect(lambda models: self._show_model())
        watch.state_changed.connect(lambda state: self._show_model())
        self._show_settings(page.settings)
        self.dress()

    def _lay_out(self) -> None:
        title = QLabel(tr("Chat settings"))
        title.setProperty("tone", "title")
        top = QFrame()
        top.setObjectName("panelHead")
        top.setFixedHeight(TOP_BAR)
        fill(QHBoxLayout(top), (title, 1), self.close_button, margins=(Space.L, 0, Space.S, 0))
        body = QWidget()
        form = QVBoxLayout(body)
        form.setContentsMargins(Space.L, Space.M, Space.L, Space.L)
        form.setSpacing(Space.M)
        form.addWidget(_section(tr("Model and speed")))
        form.addWidget(self.model)
        form.addWidget(self.speed)
        form.addSpacing(Space.S)
        fill(form, _section(tr("System prompt")), self.prompt, (self.prompts, 0, Qt.AlignmentFlag.AlignLeft))
        form.addSpacing(Space.S)
        form.addWidget(_section(tr("Sampling")))
        for row in self.rows.values():
            form.addWidget(row)
        form.addLayout(_labelled(tr("Max tokens"), self.max_tokens))
        form.addLayout(_labelled(tr("Seed"), self.seed))
        form.addSpacing(Space.S)
        form.addWidget(self.reset)
        form.addSpacing(Space.S)
        fill(form, _section(tr("Tools")), (self.tools, 0, Qt.AlignmentFlag.AlignLeft), self.no_tools, STRETCH)
        fill(QVBoxLayout(self), top, (ScrollColumn(body), 1), spacing=0, margins=0)

    def follow(self, page: ChatPage) -> None:
        """Edit the settings of another page's chat; what was typed a moment ago is for the one before."""
        self.take_typed()
        self._page.settings_shown.disconnect(self._show_settings)
        self._page = page
        page.settings_shown.connect(self._show_settings)
        self._show_settings(page.settings)

    def _show_settings(self, settings: ChatSettings) -> None:
        self._typing.stop()
        self._settings = settings
        if self.prompt.toPlainText() != settings.system_prompt:
            self.prompt.setPlainText(settings.system_prompt)
        self._typing.stop()
        self._show_model()
        self.speed.setCurrentIndex(max(0, self.speed.findData(settings.speed)))
        for name, row in self.rows.items():
            row.show_value(getattr(settings, name))
        for field, shown in ((self.max_tokens, settings.max_tokens or 0), (self.seed, settings.seed)):
            field.blockSignals(True)
            field.setValue(-1 if shown is None else shown)
            field.blockSignals(False)
        self._show_reset()

    def _show_model(self) -> None:
        """Show the model that the chat asks for, or gets where it asks for none, among those that there are."""
        wanted = self._settings.model or self._watch.state.model or ""
        names = [model.name for model in self._watch.models]
        names = names if wanted in names or not wanted else [wanted, *names]
        if names != [self.model.itemData(at) for at in range(self.model.count())]:
            self.model.clear()
            for name in names:
                self.model.addItem(one_line(name), name)
        self.model.setCurrentIndex(self.model.findData(wanted))
        self.model.setEnabled(bool(names))
        self.no_tools.setText(cannot_call(wanted))
        self.no_tools.setVisible(not self._watch.calls_tools(wanted))

    def take_typed(self) -> None:
        """Take what was typed a moment ago without waiting longer."""
        if self._typing.isActive():
            self._typing.stop()
            self._read()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape goes back to the chat."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_wanted.emit()
        else:
            super().keyPressEvent(event)

    def fit(self, window: int) -> None:
        """Be as wide as text of this size needs, and leave half of a window of this width to the chat."""
        width = max(PANEL, min(scaled(PANEL), window // 2 - Space.XXL))
        self.setFixedWidth(width)
        room = width - 2 * Space.L - SCROLL_BAR
        room -= self.fontMetrics().horizontalAdvance(self.max_tokens.accessibleName())
        for field in (self.max_tokens, self.seed):
            # Names are measured in whole pixels and laid out in parts of them.
            field.setFixedWidth(min(scaled(NUMBER_WIDTH), room - Space.S - 2))

    def dress(self) -> None:
        """Leave room for the text."""
        self.prompt.setFixedHeight(scaled(PROMPT_HEIGHT))
        for row in self.rows.values():
            row.field.setFixedWidth(scaled(DIAL_WIDTH))

    def _read(self) -> None:
        values = {field: row.value for field, row in self.rows.items()}
        if values["top_k"] is not None:
            values["top_k"] = int(values["top_k"])
        settings = replace(
            self._settings,
            system_prompt=self.prompt.toPlainText(),
            max_tokens=self.max_tokens.value() or None,
            seed=None if self.seed.value() < 0 else self.seed.value(),
            **values,  # type: ignore[arg-type]  # each is a float but top_k
        )
        if settings != self._settings:
            self._settings = settings
            self._show_reset()
            self._page.change_settings(settings)

    def _on_reset(self) -> None:
        defaults = self._defaults()
        self._show_settings(defaults)
        self._page.change_settings(defaults)

    def _show_reset(self) -> None:
        self.reset.setEnabled(self._settings != self._defaults())

    def _defaults(self) -> ChatSettings:
        chosen = self._settings
        return ChatSettings(
            model=chosen.model,
            system_prompt=chosen.system_prompt,
            speed=chosen.speed,
            begins_at=chosen.begins_at,
        )


class _DialRow(QWidget):
    """A name, a number field and a slider, which agree with each other.

    Below its lowest number the field is unset: then the slider stands at the default.
    """

    changed = Signal()

    def __init__(self, dial: Dial) -> None:
        super().__init__()
        self._dial = dial
        self._default = float(getattr(_DEFAULTS, dial.field))
        decimals = 0 if dial.step >= 1 else 2
        usual = figures.in_marks(f"{self._default:.{decimals}f}")
        help = f"{dial.help}\n" + tr("{unset}: as is set for the model, else {usual}.", unset=UNSET, usual=usual)
        self.setToolTip(help)
        self.field = DecimalField(dial.label)
        self.field.setDecimals(decimals)
        self._unset = dial.low - dial.step
        self.field.setRange(self._unset, dial.high)
        self.field.setSpecialValueText(UNSET)
        self.field.setSingleStep(dial.step)
        self.field.setFixedWidth(DIAL_WIDTH)
        self.field.setAccessibleDescription(help)
        self.slider = NoWheelSlider(tr("{label} slider", label=dial.label))
        self.slider.setRange(0, round((dial.high - dial.low) / dial.step))
        self.field.valueChanged.connect(lambda value: self._on_field())
        self.slider.valueChanged.connect(self._on_slider)
        head = fill(QHBoxLayout(), (QLabel(dial.label), 1), self.field)
        fill(QVBoxLayout(self), head, self.slider, spacing=Space.XS, margins=0)

    @property
    def value(self) -> float | None:
        return None if self.field.value() < self._dial.low else self.field.value()

    def show_value(self, value: float | None) -> None:
        self.field.blockSignals(True)
        self.field.setValue(self._unset if value is None else value)
        self.field.blockSignals(False)
        self._move_slider(value)

    def _on_field(self) -> None:
        self._move_slider(self.value)
        self.changed.emit()

    def _on_slider(self, at: int) -> None:
        self.field.setValue(self._dial.low + at * self._dial.step)

    def _move_slider(self, value: float | None) -> None:
        value = self._default if value is None else value
        self.slider.blockSignals(True)
        self.slider.setValue(round((value - self._dial.low) / self._dial.step))
        self.slider.blockSignals(False)


def _number(name: str, low: int, high: int, special: str) -> WholeField:
    field = WholeField(name)
    field.setRange(low, high)
    field.setSpecialValueText(special)
    field.setFixedWidth(NUMBER_WIDTH)
    return field


def _section(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("tone", "section")
    return label


def _labelled(text: str, field: QWidget) -> QHBoxLayout:
    row = fill(QHBoxLayout(), (QLabel(text), 1), field)
    return row
