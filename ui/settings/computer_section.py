"""The section of this computer: how Slipstream stands on its desktop, also while its window is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from ui.language import tr
from ui.platform.desktop_entry import DesktopEntry, EntryRefused
from ui.platform.desktop_notices import has_tray
from ui.platform.gui_thread import GuiThread
from ui.settings.setting_line import SettingLine, SettingSection, button, switch
from ui.settings.window_settings import WindowSettings
from ui.widgets.banner import Banner
from ui.widgets.page_layout import disable


class ComputerSection(SettingSection):
    """Notifications, the tray, and the desktop's menus. What cannot be done is said in the page's banner."""

    def __init__(self, kept: WindowSettings, desktop: DesktopEntry, banner: Banner) -> None:
        super().__init__(tr("This computer"))
        self._kept, self._desktop, self._banner = kept, desktop, banner
        self._gui = GuiThread(self)
        self.notices = switch(
            tr("Desktop notifications"), kept.is_on("notices", usually=True), partial(kept.keep, "notices")
        )
        self.add(
            SettingLine(
                tr("Desktop notifications"),
                tr("When a download or a long reply ends, or a tool waits for you, while you look elsewhere."),
                self.notices,
                tr("alerts messages"),
            )
        )
        stays = tr("Keep running without the window")
        self.stays = switch(stays, kept.keeps_running, partial(kept.keep, "keepsRunning"))
        self._stays_line = self.add(SettingLine(stays, "", self.stays))
        self.look()
        if desktop.is_offered:
            self.login = switch(tr("Start at login"), desktop.starts_at_login, self._on_login)
            self.add(
                SettingLine(
                    tr("Start at login"),
                    tr("The window opens when you log in to your desktop."),
                    self.login,
                    tr("autostart startup boot"),
                )
            )
            self.menu_button = button("", self._on_menu)
            self._menu_line = self.add(SettingLine(tr("In the desktop's menus"), "", self.menu_button))
            self._show_menu_line()
        kept.changed.connect(self._on_kept)

    def look(self) -> None:
        """Offer to keep running where an icon can show it; a tray may come after the window."""
        self.stays.setEnabled(has_tray())
        self._stays_line.explain(
            tr("Closing it leaves an icon in the tray, and other programs reach the models as before.")
            if has_tray()
            else tr("This desktop has no tray, in which an icon could show that Slipstream still runs.")
        )

    def reset(self) -> None:
        """Reset what is kept in the settings; the desktop's menus stay as they are."""
        self.notices.setChecked(True)
        self.stays.setChecked(False)

    def _on_kept(self, name: str) -> None:
        """Show what was set elsewhere in the window."""
        if name == "keepsRunning":
            self.stays.setChecked(self._kept.keeps_running)

    def _on_login(self, is_wanted: bool) -> None:
        try:
            self._desktop.start_at_login(is_wanted)
            self._banner.hide()
        except EntryRefused as refused:
            self._banner.say(str(refused), "danger", (tr("Try again"), lambda: self.login.setChecked(is_wanted)))
            self.login.blockSignals(True)
            self.login.setChecked(not is_wanted)
            self.login.blockSignals(False)

    def _on_menu(self) -> None:
        # The desktop's indexes are renewed by programs that take a moment.
        enable = disable(self.menu_button)
        act = self._desktop.uninstall if self._desktop.is_installed else self._desktop.install
        threading.Thread(target=self._change_menus, args=(act, enable), daemon=True).start()

    def _change_menus(self, act: Callable[[], object], enable: Callable[[], None]) -> None:
        problem = ""
        try:
            act()
        except EntryRefused as refused:
            problem = str(refused)
        self._gui.post(lambda: self._on_menus(problem, enable))

    def _on_menus(self, problem: str, enable: Callable[[], None]) -> None:
        enable()
        if problem:
            self._banner.say(problem, "danger", (tr("Try again"), self._on_menu))
        else:
            self._banner.hide()
        self._show_menu_line()

    def _show_menu_line(self) -> None:
        if self._desktop.is_installed:
            self._menu_line.explain(tr("Slipstream is among your programs, and opens .gguf files."))
            self.menu_button.setText(tr("Remove"))
        else:
            self._menu_line.explain(
                tr("Adds Slipstream to your programs, with its icon, and lets it open .gguf files.")
            )
            self.menu_button.setText(tr("Add"))
        where = tr("In the desktop's menus")
        self.menu_button.setAccessibleName(f"{self.menu_button.text()}: {where}")
        self.login.setChecked(self._desktop.starts_at_login)
