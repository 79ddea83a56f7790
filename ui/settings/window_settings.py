"""What the user has set for the window and its private server, as it is kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Signal

from ui.language import chosen
from ui.settings.engine_options import ENGINE_OPTIONS
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.text_size import USUAL, read_percent
from ui.theme.tokens import ACCENTS, USUAL_ACCENT

TINT = "tintDrafts"  # the switch that tints drafted words
_ENGINE = "engine/"
_FIGURES = "figures"


class WindowSettings(QObject):
    """Reads and writes the file. What it names wrongly is as if it were not set."""

    changed = Signal(str)  # the name of a value that was kept or forgotten
    engine_changed = Signal()

    def __init__(self, file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = QSettings(str(file), QSettings.Format.IniFormat)
        # What the private server was started with last.
        self.engine_in_use = self.engine_arguments

    def beside(self, name: str) -> Path:
        """Return the path of another file in the folder of this one."""
        return Path(self._file.fileName()).with_name(name)

    def value(self, name: str) -> object:
        """Return what is kept under a name, None where nothing is."""
        return self._file.value(name)

    def keep(self, name: str, value: object) -> None:
        """Keep a value under a name."""
        self._file.setValue(name, value)
        self.changed.emit(name)

    def is_on(self, name: str, *, usually: bool) -> bool:
        """Return whether a switch is on."""
        return str(self._file.value(name, usually)).lower() == "true"

    @property
    def keeps_running(self) -> bool:
        """Whether closing the window is to leave the app running."""
        return self.is_on("keepsRunning", usually=False)

    # Fit and speed of models, by name: judging them takes seconds after a start.

    @property
    def figures(self) -> dict[str, str]:
        """Return what was kept in this language."""
        try:
            language, said = json.loads(str(self._file.value(_FIGURES)))
            return {name: str(words) for name, words in said.items()} if language == chosen() else {}
        except (ValueError, TypeError, AttributeError):
            return {}

    def keep_figures(self, figures: Mapping[str, str]) -> None:
        """Keep what is said of each model."""
        self.keep(_FIGURES, json.dumps([chosen(), dict(figures)]))

    # Looks.

    def change_looks(self, appearance: Appearance, name: str, value: object) -> None:
        """Keep the theme, the accent or the size of text, and let the app look like it."""
        self.keep(name, value)
        self.dress(appearance)

    def dress(self, appearance: Appearance) -> None:
        """Let the app look as it was set."""
        theme = str(self._file.value("theme", ThemeChoice.SYSTEM.value))
        appearance.wear(
            ThemeChoice(theme) if theme in set(ThemeChoice) else ThemeChoice.SYSTEM,
            accent if (accent := str(self._file.value("accent"))) in ACCENTS else USUAL_ACCENT,
            read_percent(self._file.value("textSize", USUAL)),
        )

    # The engine.

    def engine_choice(self, name: str) -> str:
        """Return what is chosen for an option of the engine; "" is what is recommended."""
        kept = str(self._file.value(_ENGINE + name, ""))
        return kept if ENGINE_OPTIONS[name].knows(kept) else ""

    def choose_engine(self, name: str, choice: str) -> None:
        """Choose for an option of the engine; "" is what is recommended."""
        self._file.setValue(_ENGINE + name, choice)
        self.engine_changed.emit()

    @property
    def engine_arguments(self) -> list[str]:
        """What the command line of the private server gets for the choices."""
        return [part for name, option in ENGINE_OPTIONS.items() for part in option.arguments(self.engine_choice(name))]

    def forget_engine(self) -> None:
        """Take what is recommended for all options of the engine."""
        self._file.remove(_ENGINE.rstrip("/"))
        self.engine_changed.emit()

    def forget(self) -> None:
        """Forget everything that was set; what follows from use, as the window's place, stays."""
        for name in ("theme", "accent", "textSize", "language", TINT, "notices", "keepsRunning"):
            self._file.remove(name)
            self.changed.emit(name)
        self.forget_engine()
