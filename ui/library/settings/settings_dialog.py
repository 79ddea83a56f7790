"""The settings of one model."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from models.formatting.safe_text import one_line
from models.library import requests as ask
from models.library.values import SettingsSheet, SettingText, Trouble
from ui.client.library_link import LibraryLink
from ui.language import tr
from ui.library.settings.setting_row import SettingRow
from ui.library.settings.setting_words import LOADING, REPLIES, SettingWords
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.dialogs import Dialog, primary
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import ProblemLabel, ScrollColumn, plain_label

SIZE = (560, 640)
LOADING_NOTE = tr("These take effect when the model is loaded next.")
REPLIES_NOTE = tr("These take effect at once, unless a chat or a request says otherwise.")


class SettingsDialog(Dialog):
    """Shows and changes what is set for a model. Nothing is kept before Save."""

    saved = Signal(str)  # a sentence about what was saved

    def __init__(self, link: LibraryLink, model: str, parent: QWidget) -> None:
        super().__init__(tr("Settings of {model}", model=model), SIZE, parent)
        self._link, self._model = link, model
        self.title = plain_label(tr("Settings of {model}", model=one_line(model)), "title")
        self.problem = ProblemLabel()
        self.rows: dict[str, SettingRow] = {}
        self.form = QWidget()
        self.area = ScrollColumn(self.form)
        self.reset_all = TextButton(tr("Reset all"))
        self.reset_all.setToolTip(tr("Reset everything to what is recommended"))
        self.save, self.cancel = primary(tr("Save")), QPushButton(tr("Cancel"))
        self.reset_all.clicked.connect(self._on_reset_all)
        self.cancel.clicked.connect(self.reject)
        self.save.clicked.connect(self._on_save)
        self._lay_out()
        self._enable(False)
        link.ask(ask.GetSettings(model), self._on_sheet, self._on_trouble, asker=self)

    def _lay_out(self) -> None:
        form = fill(QVBoxLayout(self.form), spacing=Space.S, margins=(Space.XL, Space.M, Space.L, Space.L))
        self._add_section(form, tr("Loading"), LOADING_NOTE, LOADING)
        form.addSpacing(Space.M)
        self._add_section(form, tr("Replies"), REPLIES_NOTE, REPLIES)
        form.addStretch()
        head, foot = QVBoxLayout(), QVBoxLayout()
        head.setContentsMargins(Space.XL, Space.L, Space.XL, Space.M)
        head.addWidget(self.title)
        buttons = fill(QHBoxLayout(), self.reset_all, STRETCH, self.cancel, self.save, spacing=Space.S)
        fill(foot, self.problem, buttons, spacing=Space.S, margins=(Space.L, Space.M, Space.XL, Space.L))
        fill(QVBoxLayout(self), head, _line(), (self.area, 1), _line(), foot, spacing=0, margins=0)

    def _add_section(self, form: QVBoxLayout, title: str, note: str, words: Mapping[str, SettingWords]) -> None:
        name, what = QLabel(title), plain_label(note, "caption")
        name.setProperty("tone", "strong")
        form.addWidget(name)
        form.addWidget(what)
        for setting, its_words in words.items():
            row = self.rows[setting] = SettingRow(setting, its_words)
            row.changed.connect(self._show_buttons)
            form.addWidget(row)

    @property
    def changes(self) -> tuple[SettingText, ...]:
        """What is other than what is kept."""
        return tuple(SettingText(name, row.value) for name, row in self.rows.items() if row.is_changed)

    def _on_sheet(self, sheet: SettingsSheet) -> None:
        others = {"draft": sheet.drafts, "worker": sheet.workers}
        for setting in sheet.settings:
            self.rows[setting.name].show_setting(setting, others.get(setting.name, ()))
        self._enable(True)
        self.rows["ctx"].field.setFocus()

    def _on_trouble(self, trouble: Trouble) -> None:
        self._show_buttons()
        self.problem.say(trouble.sentence)

    def _on_save(self) -> None:
        changes = self.changes
        if not changes:
            self.accept()
            return
        self.problem.hide()
        self.save.setEnabled(False)
        wish = ask.ChangeSettings(self._model, changes)
        self._link.ask(wish, lambda sheet: self._on_answer(sheet, changes), self._on_trouble, asker=self)

    def _on_answer(self, sheet: SettingsSheet, changes: tuple[SettingText, ...]) -> None:
        if not sheet.is_refused:
            waits = any(change.name in LOADING for change in changes)
            later = tr(" Those under Loading take effect when it is loaded next.") if waits else ""
            self.saved.emit(tr("The settings of {model} are saved.{later}", model=self._model, later=later))
            self.accept()
            return
        self.save.setEnabled(True)
        wrong = [setting for setting in sheet.settings if setting.problem is not None]
        for setting in wrong:
            self.rows[setting.name].say(setting.problem)
        first = self.rows[wrong[0].name]
        first.field.setFocus()
        # Its sentence is laid out in the next turn of the event loop.
        QTimer.singleShot(0, first, lambda: self.area.ensureWidgetVisible(first))

    def _on_reset_all(self) -> None:
        for row in self.rows.values():
            row.clear()

    def _enable(self, is_there: bool) -> None:
        self.form.setEnabled(is_there)
        self.save.setEnabled(is_there)
        self._show_buttons()

    def _show_buttons(self) -> None:
        self.save.setEnabled(self.form.isEnabled())
        self.reset_all.setEnabled(any(row.value is not None for row in self.rows.values()))


def _line() -> QFrame:
    line = QFrame()
    line.setObjectName("dialogLine")
    line.setFixedHeight(1)
    return line
