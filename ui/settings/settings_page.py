"""The page with all settings of the app, and a field that searches them. What is changed counts at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from ui.client.library_link import LibraryLink
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.library.hub_dialog import HubDialog
from ui.platform.desktop_entry import DesktopEntry
from ui.settings.computer_section import ComputerSection
from ui.settings.engine_section import EngineSection
from ui.settings.folder_section import FolderSection
from ui.settings.looks_section import DOT, LooksSection
from ui.settings.setting_line import SettingLine, SettingSection, button
from ui.settings.window_settings import WindowSettings
from ui.theme.appearance import Appearance
from ui.theme.colours import Dressed
from ui.theme.layouts import fill
from ui.theme.text_size import scaled
from ui.theme.tokens import TOP_BAR
from ui.widgets.banner import Banner
from ui.widgets.fields import ChoiceField, SearchField
from ui.widgets.page_layout import PageColumn, ask_first
from ui.widgets.state_pane import StatePane

PRIVACY = tr(
    "Slipstream sends no telemetry: nothing about you, your chats or your use leaves this machine. It asks the Hub "
    "when you search or download, and for a draft, by the model's name, when you open a model in the library. It asks "
    "other servers only where you add one. Links open in your browser after a question."
)


class SettingsPage(Dressed, QWidget):
    """Sections of settings, one below the other."""

    restart_wanted = Signal(object)  # the arguments of the private server, list[str]

    def __init__(
        self,
        kept: WindowSettings,
        appearance: Appearance,
        link: LibraryLink,
        watch: ServerWatch,
        desktop: DesktopEntry,
        chats: Path,
    ) -> None:
        super().__init__()
        self.setObjectName("canvas")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._kept, self._appearance, self._desktop, self._chats = kept, appearance, desktop, chats
        self._link, self._watch = link, watch
        self.search = SearchField(tr("Search settings"))
        self.area = PageColumn()
        self.banner, self.state, self.stack = Banner(), StatePane(), QStackedWidget()
        self.sections: list[SettingSection] = []
        self._lay_out()
        # Made section by section: all at once would be seen as a jerk.
        self._making, self._is_made = self._make(), False
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
            if self.isVisible():
                self.look()

    def _make(self) -> Iterator[bool]:
        """Make and place one section after the other."""
        kept = self._kept
        self.looks = LooksSection(kept, self._appearance)
        yield self._place(self.looks)
        self.folders = FolderSection(self._link, self._chats, self.banner)
        # The server has the models of the old folder in mind.
        self.folders.moved.connect(lambda: self.restart_wanted.emit(kept.engine_in_use))
        self.folders.changed.connect(lambda: self._on_search(self.search.text()))
        yield self._place(self.folders)
        self.computer = ComputerSection(kept, self._desktop, self.banner)
        yield self._place(self.computer)
        self.engine = EngineSection(kept, self._watch)
        self.engine.restart_wanted.connect(self.restart_wanted)
        self.engine.moving.connect(self.area.hold_focused)
        yield self._place(self.engine)
        self._add_the_rest()
        self.search.textChanged.connect(self._on_search)
        self._is_made = True
        self.dress()

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

    # The sections.

    def _section(self, title: str) -> SettingSection:
        made = SettingSection(title)
        self._place(made)
        return made

    def _place(self, section: SettingSection) -> bool:
        self.sections.append(section)
        self.area.column.insertWidget(self.area.column.count() - 1, section)
        return True

    def _add_the_rest(self) -> None:
        hub = self._section(tr("Hub account"))
        self.hub_button = button(tr("Hub settings…"), self._open_hub)
        hub.add(
            SettingLine(
                tr("Hugging Face Hub"),
                tr(
                    "An access token opens models whose licence has to be accepted. It is kept in the system's "
                    "keyring. A proxy or another address is set here too."
                ),
                self.hub_button,
                tr("login sign in token password HF"),
            )
        )
        self._section(tr("Privacy")).add(SettingLine(tr("No telemetry"), PRIVACY, words=tr("data offline internet")))
        self.reset_button = button(tr("Reset…"), self._ask_reset, tr("Reset all settings"))
        self._section(tr("Reset")).add(
            SettingLine(
                tr("All settings of this page"),
                tr(
                    "Resets appearance, notifications and the engine to what is recommended. Chats, models, their "
                    "own settings, folders, your account and the start at login stay."
                ),
                self.reset_button,
                tr("defaults factory standard"),
            )
        )

    # From outside.

    def showEvent(self, event: QShowEvent) -> None:
        """Make what is not made yet, and look."""
        super().showEvent(event)
        self.prepare()
        self.look()

    def dress(self) -> None:
        """Let all choices be as wide as if they had icons."""
        for field in self.findChildren(ChoiceField):
            field.setIconSize(QSize(scaled(DOT), scaled(DOT)))

    def look(self) -> None:
        """Ask again for what can change behind the page's back: the tray, folders."""
        if not self._is_made:
            return  # it looks when it is whole
        self.computer.look()
        self.folders.look()

    def show_setting(self, name: str) -> None:
        """Show one setting and give it the keyboard."""
        self.search.clear()
        for section in self.sections:
            for line in section.lines:
                if line.name.text() == name:
                    self.area.ensureWidgetVisible(line)
                    (line.control or self.search).setFocus(Qt.FocusReason.OtherFocusReason)

    def offers(self) -> Iterator[tuple[str, str]]:
        """Yield what can be shown with all words it may be looked for by, as its sections are made."""
        at = 0
        while at < len(self.sections) or not self._is_made:
            if at == len(self.sections):
                self._make_next()
                continue
            section = self.sections[at]
            yield from [(line.name.text(), f"{section.title} {line.text}") for line in section.lines]
            at += 1

    # What the user does.

    def _on_search(self, text: str) -> None:
        words = text.casefold().split()
        found = [section.search(words) for section in self.sections]
        if any(found):
            self.stack.setCurrentWidget(self.area)
        else:
            hint = tr(
                "What belongs to one model is set in the library, what belongs to one chat beside the chat (Ctrl+.), "
                "and keys, the port and the network on the page of the server."
            )
            self.state.say("search", tr("No setting like that"), hint, (tr("Show all settings"), self._show_all))
            self.stack.setCurrentWidget(self.state)

    def _show_all(self) -> None:
        self.search.setFocus()  # the button goes away
        self.search.clear()

    def _open_hub(self) -> None:
        HubDialog(self._link, self.window()).open()

    def _ask_reset(self) -> None:
        stays = tr("Chats, models, their own settings, folders, your account and the start at login stay.")
        ask_first(self, tr("Reset all settings of this page?"), stays, tr("Reset"), self.reset)

    def reset(self) -> None:
        """Reset everything to what is recommended."""
        self.computer.reset()
        self._kept.forget()
        self._kept.dress(self._appearance)
        self.looks.show_looks()
