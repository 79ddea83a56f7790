"""Shows a newcomer which models suit the machine, until one is there or the card is closed."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from ui.chat.welcome import Welcome
from ui.client.library_link import LibraryLink
from ui.client.server_watch import ModelChoice, ServerWatch
from ui.library.first_start import FirstStart
from ui.settings.window_settings import WindowSettings

_CLOSED = "firstStartClosed"


class Newcomer(QObject):
    """Places the card on the page of an empty chat. It is made when it is first wanted."""

    use_wanted = Signal(str)  # the file of a model that has arrived
    library_wanted = Signal()
    find_wanted = Signal()  # models that are not here yet
    file_chosen = Signal(str)  # a model file of this machine

    def __init__(
        self, link: LibraryLink, watch: ServerWatch, welcome: Welcome, kept: WindowSettings, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._link, self._watch, self._welcome, self._kept = link, watch, welcome, kept
        self.card: FirstStart | None = None
        watch.models_changed.connect(self._on_models)
        welcome.models_wanted.connect(self.show)

    def show(self) -> None:
        """Show the card, and measure what is not known of the machine."""
        self._kept.keep(_CLOSED, False)
        if self.card is None:
            self.card = FirstStart(self._link)
            self.card.imported.connect(self._on_imported)
            self.card.use_wanted.connect(self._on_arrived)
            self.card.find_wanted.connect(self.find_wanted)
            self.card.file_chosen.connect(self.file_chosen)
            self.card.closed.connect(self._on_closed)
        self._welcome.show_card(self.card)
        self._welcome.models.hide()
        self.card.begin()

    def _on_models(self, models: tuple[ModelChoice, ...]) -> None:
        is_alone = bool(models) and all(model.is_toy for model in models)
        is_shown = self.card is not None and not self.card.isHidden()
        if is_alone and not is_shown and not self._kept.is_on(_CLOSED, usually=False):
            self.show()
        elif not is_alone and is_shown and self.card is not None and not self.card.is_busy:
            self._welcome.show_card(None)
        self._welcome.models.setVisible(is_alone and (self.card is None or self.card.isHidden()))

    def _on_imported(self) -> None:
        """Show the models of another program where one of them is chosen."""
        self._watch.look_at_models()
        self.library_wanted.emit()

    def _on_arrived(self, file: str) -> None:
        self._welcome.show_card(None)
        self.use_wanted.emit(file)

    def _on_closed(self) -> None:
        self._kept.keep(_CLOSED, True)
        self._welcome.show_card(None)
        self._welcome.models.show()
