"""The page with all settings of the app, and a field that searches them. What is changed counts at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from models.formatting.figures import percent
from ui.client.library_link import LibraryLink
from ui.language import LANGUAGES, tr
from ui.library.hub_dialog import HubDialog
from ui.platform.desktop_entry import DesktopEntry
from ui.settings.computer_section import ComputerSection
from ui.settings.engine_options import ENGINE_OPTIONS
from ui.settings.folder_section import FolderSection
from ui.settings.setting_line import SettingLine, SettingSection, button, choice, switch
from ui.settings.window_settings import WindowSettings
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.colours import Dressed, colours
from ui.theme.icons import icon
from ui.theme.layouts import fill
from ui.theme.text_size import PERCENTS, scaled
from ui.theme.tokens import ACCENTS, TOP_BAR, Space
from ui.widgets.banner import Banner
from ui.widgets.fields import ChoiceField, SearchField
from ui.widgets.note_card import CALM, NoteCard
from ui.widgets.page_layout import PageColumn, ask_first
from ui.widgets.state_pane import StatePane

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
DOT = 16  # pixels of the colour of an accent
PRIVACY = tr(
    "Slipstream sends no telemetry: nothing about you, your chats or your use leaves this machine. It asks the Hub "
    "when you search or download, and other servers only where you add one. Links open in your browser after a "
    "question."
)
OLD_ENGINE = tr(
    "The server still runs as it was started. A restart takes a few seconds; replies that are being written end, and "
    "what has come of them is kept."
)


class SettingsPage(Dressed, QWidget):
    """Sections of settings, one below the other."""

    restart_wanted = Signal(object)  # the arguments of the private server, list[str]

    def __init__(
        self, kept: WindowSettings, appearance: Appearance, link: LibraryLink, desktop: DesktopEntry, chats: Path
    ) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._kept, self._appearance, self._link, self._desktop = kept, appearance, link, desktop
        self._chats = chats
        self.search = SearchField(tr("Search settings"))
        self.area = PageColumn()
        self.banner, self.state, self.stack = Banner(), StatePane(), QStackedWidget()
        self.engine_note = NoteCard(CALM, tr("Restart the server"))
        self.sections: list[SettingSection] = []
        self._lay_out()
        # Made section by section: all at once would be seen as a jerk.
        self._making, self._is_made = self._make(), False
        self._devices: tuple[str, ...] = ()
        self._next = QTimer(self, interval=0)
        self._next.timeout.connect(self._make_next)

    def prepare(self) -> None:
        """Make the sections one by one, each in a moment of its own."""
        if not self._is_made:
            self._next.start()

    def complete(self) -> None:
        """Make now what is not made yet."""
        while not self._is_made:
            self._make_next()

    def _make_next(self) -> None:
        if next(self._making, None) is None:
            self._next.stop()
            self._offer_devices()
            if self.isVisible():
                self.look()

    def _make(self) -> Iterator[bool]:
        for add in (self._add_looks, self._add_folders, self._add_computer, self._add_engine, self._add_the_rest):
            add()
            yield True
        self._connect_signals()
        self._is_made = True
        self.dress()
        self._show_looks()
        self._show_engine_note()

    def _lay_out(self) -> None:
        top = QFrame()
        top.setObjectName("topBar")
        top.setFixedHeight(TOP_BAR)
        self._top = fill(QHBoxLayout(top), self.search)
        self.area.column.setSpacing(0)
        self.stack.addWidget(self.area)
        self.stack.addWidget(self.state)
        fill(QVBoxLayout(self), top, self.banner, (self.stack, 1), spacing=0, margins=0)
        self.area.installEventFilter(self)
        self.setFocusProxy(self.search)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the field as wide as what is below it."""
        if watched is self.area and event.type() in (QEvent.Type.Resize, QEvent.Type.StyleChange):
            fill(self._top, margins=(self.area.side, 0, self.area.side, 0))
        return super().eventFilter(watched, event)

    def _connect_signals(self) -> None:
        self.search.textChanged.connect(self._on_search)
        self._kept.engine_changed.connect(self._show_engine_note)
        self._kept.changed.connect(self._on_kept)
        self.engine_note.button.clicked.connect(self._on_restart)
        self._appearance.changed.connect(lambda palette: self._show_looks())

    def _on_kept(self, name: str) -> None:
        """Show what was set elsewhere in the window."""
        if name == "tintDrafts":
            self.tint.setChecked(self._tints)

    # The sections.

    def _section(self, title: str) -> SettingSection:
        made = SettingSection(title)
        self._place(made)
        return made

    def _place(self, section: SettingSection) -> None:
        self.sections.append(section)
        self.area.column.insertWidget(self.area.column.count() - 1, section)

    def _add_looks(self) -> None:
        looks, appearance = self._section(tr("Appearance")), self._appearance
        dots = [icon("dot", accent[colours().is_dark], size=DOT) for accent in ACCENTS.values()]
        self.theme = choice(THEMES, appearance.choice.value, lambda value: self._look("theme", value))
        self.accent = choice(
            list(ACCENT_NAMES.items()), appearance.accent, lambda value: self._look("accent", value), dots
        )
        self.text = choice(
            [(str(size), percent(size / 100)) for size in PERCENTS],
            str(appearance.percent),
            lambda value: self._look("textSize", value),
        )
        self.language = choice(
            [("", tr("Like the system")), *LANGUAGES.items()],
            str(self._kept.value("language") or ""),
            lambda code: self._kept.keep("language", code),
        )
        looks.add(
            SettingLine(
                tr("Theme"),
                tr("High contrast draws edges and text as strong as they can be, light or dark."),
                self.theme,
            )
        )
        looks.add(SettingLine(tr("Accent"), tr("The one colour beside grey; high contrast has its own."), self.accent))
        looks.add(SettingLine(tr("Text size"), tr("Also Ctrl with + or −, and Ctrl+0 for 100%."), self.text))
        tint = tr("Tint drafted words")
        self.tint = switch(tint, self._tints, partial(self._kept.keep, "tintDrafts"))
        looks.add(
            SettingLine(
                tint,
                tr("In new replies, words that were drafted and found right have a coloured background."),
                self.tint,
            )
        )
        looks.add(SettingLine(tr("Language"), tr("Takes effect when Slipstream is started next."), self.language))

    @property
    def _tints(self) -> bool:
        return self._kept.is_on("tintDrafts", usually=False)

    def _add_folders(self) -> None:
        self.folders = FolderSection(self._link, self._chats, self.banner)
        # The server has the models of the old folder in mind.
        self.folders.moved.connect(lambda: self.restart_wanted.emit(self._kept.engine_in_use))
        self.folders.changed.connect(lambda: self._on_search(self.search.text()))
        self._place(self.folders)

    def _add_computer(self) -> None:
        self.computer = ComputerSection(self._kept, self._desktop, self.banner)
        self._place(self.computer)

    def _add_engine(self) -> None:
        self.engine = self._section(tr("Engine"))
        self.engine_fields: dict[str, ChoiceField] = {}
        self.engine.column.addWidget(self.engine_note)
        self.engine.column.addSpacing(Space.XS)
        for name, option in ENGINE_OPTIONS.items():
            field = choice(option.choices, self._kept.engine_choice(name), partial(self._kept.choose_engine, name))
            self.engine_fields[name] = field
            self.engine.add(SettingLine(option.label, option.help, field))

    def _add_the_rest(self) -> None:
        hub = self._section(tr("Hub account"))
        self.hub_button = button(tr("Account and address…"), self._open_hub)
        hub.add(
            SettingLine(
                tr("Hugging Face Hub"),
                tr(
                    "An access token opens models whose licence has to be accepted. It is kept in the system's keyring."
                ),
                self.hub_button,
            )
        )
        self._section(tr("Privacy")).add(SettingLine(tr("No telemetry"), PRIVACY))
        self.reset_button = button(tr("Reset…"), self._ask_reset, tr("Reset all settings"))
        self._section(tr("Reset")).add(
            SettingLine(
                tr("All settings of this page"),
                tr(
                    "Resets appearance, notifications and the engine to what is recommended. Chats, models, their "
                    "own settings, folders and your account stay."
                ),
                self.reset_button,
            )
        )

    # From outside.

    def dress(self) -> None:
        """Draw the accents."""
        if not self._is_made:
            return  # it is dressed when it is whole
        for at, accent in enumerate(ACCENTS.values()):
            self.accent.setItemIcon(at, icon("dot", accent[colours().is_dark], size=DOT))
        for field in self.findChildren(ChoiceField):  # all are as wide as if they had icons
            field.setIconSize(QSize(scaled(DOT), scaled(DOT)))

    def look(self) -> None:
        """Ask again for what can change behind the page's back: the tray, folders."""
        if not self._is_made:
            return  # it looks when it is whole
        self.computer.look()
        self.folders.look()

    def set_devices(self, devices: Sequence[str]) -> None:
        """Offer the devices that the engine runs on."""
        self._devices = tuple(devices)
        if self._is_made:
            self._offer_devices()

    def _offer_devices(self) -> None:
        field = self.engine_fields["device"]
        for name in self._devices:
            if name != "CPU" and field.findData(name) < 0:
                field.addItem(tr("{name} only", name=name), name)

    def show_setting(self, name: str) -> None:
        """Show one setting and give it the keyboard."""
        self.search.clear()
        for section in self.sections:
            for line in section.lines:
                if line.name.text() == name:
                    self.area.ensureWidgetVisible(line)
                    (line.control or self.search).setFocus(Qt.FocusReason.OtherFocusReason)

    def names(self) -> Iterator[str]:
        """Yield what can be shown, as its sections are made."""
        at = 0
        while at < len(self.sections) or not self._is_made:
            if at == len(self.sections):
                self._make_next()
                continue
            yield from [line.name.text() for line in self.sections[at].lines]
            at += 1

    # What the user does.

    def _on_search(self, text: str) -> None:
        words = text.casefold().split()
        found = [section.search(words) for section in self.sections]
        if any(found):
            self.stack.setCurrentWidget(self.area)
        else:
            hint = tr("What belongs to one model is set in the library, with the model.")
            self.state.say("search", tr("No setting like that"), hint, (tr("Show all settings"), self._show_all))
            self.stack.setCurrentWidget(self.state)

    def _show_all(self) -> None:
        self.search.setFocus()  # the button goes away
        self.search.clear()

    def _look(self, name: str, value: str) -> None:
        self._kept.keep(name, value)
        self._kept.dress(self._appearance)

    def _show_looks(self) -> None:
        appearance = self._appearance
        for field, value in (
            (self.theme, appearance.choice.value),
            (self.accent, appearance.accent),
            (self.text, str(appearance.percent)),
            (self.language, str(self._kept.value("language") or "")),
        ):
            field.setCurrentIndex(field.findData(value))
        self.accent.setEnabled(appearance.choice is not ThemeChoice.CONTRAST)

    def _show_engine_note(self) -> None:
        for name, field in self.engine_fields.items():
            field.setCurrentIndex(field.findData(self._kept.engine_choice(name)))
        is_old = self._kept.engine_arguments != self._kept.engine_in_use
        self.engine_note.say(OLD_ENGINE if is_old else "")

    def _on_restart(self) -> None:
        self._kept.engine_in_use = self._kept.engine_arguments
        self._show_engine_note()
        self.restart_wanted.emit(self._kept.engine_in_use)

    def _open_hub(self) -> None:
        HubDialog(self._link, self.window()).open()

    def _ask_reset(self) -> None:
        stays = tr("Chats, models, their own settings, folders and your account stay.")
        ask_first(self, tr("Reset all settings of this page?"), stays, tr("Reset"), self.reset)

    def reset(self) -> None:
        """Reset everything to what is recommended."""
        self.computer.reset()
        self._kept.forget()
        self._kept.dress(self._appearance)
        self._show_looks()
