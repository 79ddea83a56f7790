"""One setting of a model: its label, its field, what is wrong with it, and a way back to what is recommended."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from core.values.model_settings import BadSetting, ModelSettings
from models.formatting.figures import in_marks
from models.library.values import SettingValue
from ui.language import tr
from ui.library.settings.setting_words import AUTOMATIC, CHOICES, HEADS, SettingWords
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.fields import ChoiceField
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ProblemLabel, style_as

WHOLE = ("ctx", "gpu_layers", "threads", "top_k", "repeat_last_n")
_GROUPED, _DECIMAL = re.compile(r"\d{1,3}([.,]\d{3})+"), re.compile(r"-?\d+\.\d+")
LABEL_WIDTH = 160
PROMPT_HEIGHT = 88
RESET_WIDTH = 58


class NumberField(QLineEdit):
    """A number as it is written in any language; empty is what is recommended."""

    edited = Signal()
    left = Signal()

    def __init__(self, *, is_whole: bool) -> None:
        super().__init__()
        self._is_whole = is_whole
        self.textEdited.connect(lambda text: self.edited.emit())
        self.editingFinished.connect(self.left)

    @property
    def value(self) -> str | None:
        """What is set."""
        text = self.text().strip()
        if not self._is_whole:
            text = text.replace(",", ".")
        elif _GROUPED.fullmatch(text):
            text = re.sub("[.,]", "", text)
        return text or None

    def put(self, setting: SettingValue) -> None:
        """Show a setting."""
        words = setting.recommended[:1].upper() + setting.recommended[1:]
        self.setPlaceholderText(in_marks(words) if _DECIMAL.fullmatch(words) else words)
        self.setText(in_marks(setting.text or ""))

    def clear_value(self) -> None:
        """Go back to what is recommended."""
        self.clear()


class PromptField(QPlainTextEdit):
    """Several lines; empty is what is recommended."""

    edited = Signal()
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "field")
        self.setTabChangesFocus(True)
        self.setFixedHeight(scaled(PROMPT_HEIGHT))
        self.textChanged.connect(self.edited)

    @property
    def value(self) -> str | None:
        """What is set."""
        return self.toPlainText() if self.toPlainText().strip() else None

    def put(self, setting: SettingValue) -> None:
        """Show a setting."""
        self.setPlaceholderText(tr("None. How should the model behave?"))
        self.setPlainText(setting.text or "")

    def clear_value(self) -> None:
        """Go back to what is recommended."""
        self.clear()


class OneOf(ChoiceField):
    """One of a few; the first is what is recommended."""

    edited = Signal()
    left = Signal()

    def __init__(self, name: str, choices: tuple[tuple[str, str], ...], automatic: str = "") -> None:
        super().__init__(name)
        self._choices, self._automatic = choices, automatic
        self.activated.connect(lambda index: self.edited.emit())

    @property
    def value(self) -> str | None:
        """What is set."""
        found = self.currentData()
        return found if isinstance(found, str) else None

    def put(self, setting: SettingValue, others: tuple[str, ...] = ()) -> None:
        """Show a setting. ``others`` can be chosen too, and so can the present value, even if it is not among them."""
        words = dict(self._choices) | {other: dict([HEADS]).get(other, other) for other in others}
        self.clear()
        self.addItem(
            self._automatic or tr("{name} (recommended)", name=words.get(setting.recommended, setting.recommended)),
            None,
        )
        if setting.text is not None and setting.text not in words:
            words[setting.text] = setting.text
        for value, label in words.items():
            self.addItem(label, value)
        self.setCurrentIndex(0 if setting.text is None else self.findData(setting.text))

    def clear_value(self) -> None:
        """Go back to what is recommended."""
        self.setCurrentIndex(0)


class SettingRow(QWidget):
    """Edits one setting. Nothing is kept before somebody saves."""

    changed = Signal()

    def __init__(self, name: str, words: SettingWords) -> None:
        super().__init__()
        self.name, self._words = name, words
        self._before: str | None = None
        self.field = _field(name, words)
        self.field.setAccessibleName(words.label)
        self.field.setAccessibleDescription(words.help)
        self.field.setToolTip(words.help)
        self.label, self.problem = QLabel(words.label), ProblemLabel("field problem")
        self.label.setToolTip(words.help)
        self.label.setBuddy(self.field)
        self.label.setFixedWidth(scaled(LABEL_WIDTH))
        self.reset = TextButton(tr("Reset"), tr("Reset {label}", label=words.label))
        self.reset.setToolTip(tr("As recommended again"))
        self.reset.clicked.connect(self.clear)
        self.field.edited.connect(self._on_edited)
        self.field.left.connect(self._check)
        self._lay_out()
        self._show_reset()

    def _lay_out(self) -> None:
        row = fill(QHBoxLayout(), spacing=Space.S)
        is_tall = isinstance(self.field, PromptField)
        self.label.setContentsMargins(0, Space.S if is_tall else 0, 0, 0)
        row.addWidget(self.label, 0, Qt.AlignmentFlag.AlignTop if is_tall else Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.field, 1)
        place = fill(QHBoxLayout(), self.reset)
        holder = QWidget()
        holder.setFixedWidth(scaled(RESET_WIDTH))
        place.setContentsMargins(0, 0, 0, 0)
        holder.setLayout(place)
        row.addWidget(holder, 0, Qt.AlignmentFlag.AlignTop if is_tall else Qt.AlignmentFlag.AlignVCenter)
        below = fill(QHBoxLayout(), self.problem, margins=(scaled(LABEL_WIDTH) + Space.S, 0, scaled(RESET_WIDTH), 0))
        fill(QVBoxLayout(self), row, below, spacing=Space.XS, margins=0)

    @property
    def value(self) -> str | None:
        """What is set; None is what is recommended."""
        return self.field.value

    @property
    def is_changed(self) -> bool:
        """Whether it is other than what is kept."""
        return self.value != self._before

    def show_setting(self, setting: SettingValue, others: tuple[str, ...] = ()) -> None:
        """Show what is kept."""
        self.field.blockSignals(True)
        if isinstance(self.field, OneOf):
            self.field.put(setting, others)
        else:
            self.field.put(setting)
        self.field.blockSignals(False)
        self._before = self.value
        self.say(setting.problem)
        self._show_reset()

    def say(self, problem: str | None) -> None:
        """Say what is wrong, or that nothing is."""
        text = problem or ""
        # The sentence stands beside the label: it begins with the same words.
        if text.casefold().startswith(f"{self.name} "):
            text = self._words.label + text[len(self.name) :]
        self.problem.say(text)
        style_as(self.field, "wrong", bool(text))

    def clear(self) -> None:
        """Go back to what is recommended."""
        had_focus = self.reset.hasFocus()
        self.field.clear_value()
        self._on_edited()
        if had_focus:
            self.field.setFocus()

    def _on_edited(self) -> None:
        self.say(None)
        self._show_reset()
        self.changed.emit()

    def _check(self) -> None:
        if self.value is None or not self.is_changed:
            return
        try:
            ModelSettings().with_texts({self.name: self.value})
        except BadSetting as error:
            self.say(error.message)

    def _show_reset(self) -> None:
        self.reset.setVisible(self.value is not None)


def _field(name: str, words: SettingWords) -> NumberField | PromptField | OneOf:
    if name == "system":
        return PromptField()
    if name in CHOICES:
        return OneOf(words.label, CHOICES[name], AUTOMATIC.get(name, ""))
    return NumberField(is_whole=name in WHOLE)
