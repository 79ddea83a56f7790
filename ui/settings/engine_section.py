"""The section of the engine: how the private server is started, and its restart where that has changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal

from ui.client.api import ServerState
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.settings.engine_options import ENGINE_OPTIONS, RESTARTING
from ui.settings.setting_line import SettingLine, SettingSection, choice
from ui.settings.window_settings import WindowSettings
from ui.theme.tokens import Space
from ui.widgets.note_card import CALM, NoteCard

OLD_ENGINE = tr(
    "The server still runs as it was started. A restart takes a few seconds. Replies that are being written stop there."
)


class EngineSection(SettingSection):
    """Keeps options of the engine, which count from its next start."""

    restart_wanted = Signal(object)  # the arguments of the private server, list[str]
    moving = Signal()  # what is below the note is about to move

    def __init__(self, kept: WindowSettings, watch: ServerWatch) -> None:
        super().__init__(tr("Engine"))
        self._kept, self._restarts = kept, False
        self.note = NoteCard(CALM, tr("Restart the server"))
        self.column.addSpacing(Space.XS)
        self.column.addWidget(self.note)
        self.fields = {
            name: choice(option.choices, kept.engine_choice(name), partial(kept.choose_engine, name))
            for name, option in ENGINE_OPTIONS.items()
        }
        for name, option in ENGINE_OPTIONS.items():
            self.add(SettingLine(option.label, option.help, self.fields[name]))
        self.offer(watch.state.devices)
        self._show()
        watch.state_changed.connect(self._on_state)
        kept.engine_changed.connect(self._show)
        self.note.button.clicked.connect(self._on_restart)

    def offer(self, devices: Sequence[str]) -> None:
        """Offer the devices that the engine runs on."""
        field = self.fields["device"]
        for name in devices:
            if name != "CPU" and field.findData(name) < 0:
                field.addItem(tr("{name} only", name=name), name)

    def _show(self) -> None:
        for name, field in self.fields.items():
            field.setCurrentIndex(field.findData(self._kept.engine_choice(name)))
        is_old = self._kept.engine_arguments != self._kept.engine_in_use
        words = OLD_ENGINE if is_old else RESTARTING if self._restarts else ""
        if bool(words) == self.note.isHidden():
            self.moving.emit()
        self.note.say(words)
        self.note.button.setVisible(is_old)

    def _on_state(self, state: ServerState) -> None:
        self.offer(state.devices)
        if self._restarts and state.phase != "unknown":  # it answers, or will not
            self._restarts = False
            self._show()

    def _on_restart(self) -> None:
        self.fields["slots"].setFocus()  # the button goes away
        self._kept.engine_in_use, self._restarts = self._kept.engine_arguments, True
        self._show()
        self.restart_wanted.emit(self._kept.engine_in_use)
