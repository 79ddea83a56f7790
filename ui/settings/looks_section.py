"""The section of looks: theme, accent, size of text, language, and the tint of drafted words."""

from __future__ import annotations

from functools import partial

from models.formatting.figures import percent
from ui.language import LANGUAGES, tr
from ui.settings.setting_line import SettingLine, SettingSection, choice, switch
from ui.settings.window_settings import TINT, WindowSettings
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.colours import Dressed, colours
from ui.theme.icons import icon
from ui.theme.text_size import PERCENTS
from ui.theme.tokens import ACCENTS

THEMES = (
    (ThemeChoice.SYSTEM.value, tr("Like the system")),
    (ThemeChoice.LIGHT.value, tr("Light")),
    (ThemeChoice.DARK.value, tr("Dark")),
    (ThemeChoice.CONTRAST.value, tr("High contrast")),
)
ACCENT_NAMES = {
    "Teal": tr("Teal"), "Blue": tr("Blue"), "Violet": tr("Violet"), "Rose": tr("Rose"), "Amber": tr("Amber"),
    "Graphite": tr("Graphite"),
}  # fmt: skip
LANGUAGE_WORDS = tr("English German translation")
TEXT_WORDS = tr("font zoom bigger letters")  # as what is changed is called elsewhere
DOT = 16  # pixels of the colour of an accent


class LooksSection(Dressed, SettingSection):
    """Changes how the app looks, and shows what was changed elsewhere in the window."""

    def __init__(self, kept: WindowSettings, appearance: Appearance) -> None:
        super().__init__(tr("Appearance"))
        self._kept, self._appearance = kept, appearance
        look = partial(kept.change_looks, appearance)
        self.theme = choice(THEMES, appearance.choice.value, partial(look, "theme"))
        self.accent = choice(list(ACCENT_NAMES.items()), appearance.accent, partial(look, "accent"))
        self.text = choice(
            [(str(size), percent(size / 100)) for size in PERCENTS],
            str(appearance.percent),
            partial(look, "textSize"),
        )
        self.language = choice(
            [("", tr("Like the system")), *LANGUAGES.items()], self._language, partial(kept.keep, "language")
        )
        tint = tr("Tint drafted words")
        self.tint = switch(tint, self._tints, partial(kept.keep, TINT))
        for name, help, control, *words in (
            (
                tr("Theme"),
                tr("High contrast draws edges and text as strong as they can be, light or dark."),
                self.theme,
            ),
            (tr("Accent"), tr("The one colour beside grey; high contrast has its own."), self.accent),
            (tr("Text size"), tr("Also Ctrl with + or −, and Ctrl+0 for 100%."), self.text, TEXT_WORDS),
            (
                tint,
                tr("In new replies, words that were drafted and found right have a coloured background."),
                self.tint,
            ),
            (tr("Language"), tr("Takes effect when Slipstream is started next."), self.language, LANGUAGE_WORDS),
        ):
            self.add(SettingLine(name, help, control, *words))
        self.dress()
        self.show_looks()
        kept.changed.connect(self._on_kept)
        appearance.changed.connect(lambda palette: self.show_looks())

    @property
    def _language(self) -> str:
        return str(self._kept.value("language") or "")

    @property
    def _tints(self) -> bool:
        return self._kept.is_on(TINT, usually=False)

    def dress(self) -> None:
        """Draw the accents."""
        for at, accent in enumerate(ACCENTS.values()):
            self.accent.setItemIcon(at, icon("dot", accent[colours().is_dark], size=DOT))

    def show_looks(self) -> None:
        """Show what is chosen."""
        appearance = self._appearance
        for field, value in (
            (self.theme, appearance.choice.value),
            (self.accent, appearance.accent),
            (self.text, str(appearance.percent)),
            (self.language, self._language),
        ):
            field.setCurrentIndex(field.findData(value))
        self.accent.setEnabled(appearance.choice is not ThemeChoice.CONTRAST)

    def _on_kept(self, name: str) -> None:
        if name == TINT:
            self.tint.setChecked(self._tints)
