"""Offers kept prompts beside the message and beside the instructions of a chat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMenu, QWidget

from ui.chat.prompts.prompt_form import PromptForm
from ui.chat.prompts.prompt_library import PromptLibrary
from ui.chat.prompts.prompts_dialog import PromptsDialog
from ui.chat.prompts.variables import variables_of
from ui.client.chat_records import Prompt, title_of
from ui.language import tr
from ui.widgets.elided_label import on_button
from ui.widgets.page_layout import open_menu

MOST_SHOWN = 20  # prompts in the menu; the others are in the dialog
Take = Callable[[str], object]


class PromptMenu(QObject):
    """Opens menus over the library, and the forms behind them."""

    def __init__(self, library: PromptLibrary, models: Callable[[], list[str]], page: QWidget) -> None:
        super().__init__(page)
        self._library, self._models, self._page = library, models, page

    def offer(self, button: QWidget, is_system: bool, take: Take, written: str) -> QMenu:
        """Show what can be taken at ``button``; ``written`` is what stands there and may be kept."""
        menu = QMenu(button)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        prompts = self._library.texts(is_system)
        for prompt in prompts[:MOST_SHOWN]:
            menu.addAction(on_button(prompt.name), partial(self.use, prompt, take))
        if prompts:
            menu.addSeparator()
        else:
            menu.addAction(tr("No prompts yet")).setEnabled(False)
        if written.strip():
            new = Prompt(0, title_of(written), written, is_system)
            menu.addAction(tr("Keep what is written…"), lambda: self.manage(new))
        if prompts:
            menu.addAction(tr("All prompts…"), self.manage)
        else:
            menu.addAction(tr("Write a prompt…"), lambda: self.manage(Prompt(0, "", "", is_system)))
        open_menu(menu, button, is_above=True)
        return menu

    def use(self, prompt: Prompt, take: Take) -> None:
        """Take a prompt, once its variables have values."""
        if not variables_of(prompt.text):
            take(prompt.text)
            return
        form = PromptForm(prompt, self._page.window())
        form.filled.connect(take)
        form.open()

    def manage(self, begin: Prompt | None = None) -> None:
        """Show all prompts."""
        PromptsDialog(self._library, self._models(), self._page.window(), begin).open()
