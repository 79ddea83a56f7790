"""What a chat says of the server: why there is no model, what a model does without, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from ui.chat.attachments.chip import short
from ui.client.api import ServerState
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.widgets.banner import Banner
from ui.widgets.page_layout import Way


class ServerNotice(QObject):
    """Tells of the server in a banner. ``enlarged`` is the model that was given a larger context in this chat."""

    other_wanted = Signal()  # another model
    model_wanted = Signal(str)
    usual_context_wanted = Signal(str)  # of a model

    def __init__(self, watch: ServerWatch, banner: Banner, parent: QObject) -> None:
        super().__init__(parent)
        self.enlarged = ""
        self._watch, self._banner = watch, banner
        self._told: tuple[str | None, tuple[str, ...]] = (None, ())
        self._tells_failure = False  # the banner says why the model could not be loaded
        watch.models_changed.connect(lambda models: self._show_models())

    def show_state(self, state: ServerState) -> None:
        """Say why the model could not be loaded, or what it does without."""
        if state.phase == "failed":
            self._say(state.problem or tr("The model could not be loaded."), "danger", self._way_out(state.model or ""))
            self._told = (None, ())
            self._tells_failure = True
            return
        if self._tells_failure:  # it is tried again
            self._tells_failure = False
            self._banner.take_back(self)
        if state.phase == "ready":
            self._show_notices(state)

    def _show_models(self) -> None:
        """Offer what helps now: the file of the model that could not be loaded may be gone, or back."""
        if self._tells_failure and self._banner.says_of(self):
            self.show_state(self._watch.state)

    def unload(self, model: str) -> None:
        """Unload a model, and say where that fails."""
        again = (tr("Try again"), self._closing(lambda: self.unload(model)))
        self._watch.unload(model, lambda sentence: self._say(sentence, "danger", again))

    def show_load_failed(self, sentence: str, model: str, is_here: bool) -> None:
        """Say that a model could not be loaded; where it is not here, another one must be chosen."""
        again = (tr("Try again"), self._closing(lambda: self._watch.load(model)))
        self._say(sentence, "danger", again if is_here else (tr("Choose another model"), self.other_wanted.emit))

    def show_load_cancelled(self, model: str, before: str) -> None:
        """Say that no model is loaded; ``before`` was until then, "" for none."""
        words = tr("The loading of {name} was cancelled, so no model is loaded.", name=short(model, 60))
        if before:
            way_on = tr("Load {name}", name=short(before, 40)), self._closing(lambda: self.model_wanted.emit(before))
        else:
            way_on = tr("Load it"), self._closing(lambda: self._watch.load(model))
        self._say(words, "plain", way_on)

    def _show_notices(self, state: ServerState) -> None:
        """Say what the loaded model does without, once."""
        told = (state.model, state.notices)
        if not state.notices:
            self._banner.take_back(self)
        elif told != self._told:
            again = (tr("Load it again"), lambda: self._watch.load(state.model or ""))
            self._say(" ".join(state.notices), "warning", again if state.left_out else None)
        self._told = told

    def _say(self, words: str, tone: str, way: Way | None) -> None:
        self._banner.say(words, tone, way, by=self)

    def _way_out(self, model: str) -> Way:
        if model and model == self.enlarged:
            return tr("Use the usual context"), lambda: self.usual_context_wanted.emit(model)
        if self._watch.models and all(one.name != model for one in self._watch.models):
            return tr("Choose another model"), self.other_wanted.emit
        return tr("Try again"), lambda: self._watch.load(model)

    def _closing(self, act: Callable[[], object]) -> Callable[[], None]:
        """Return what closes the banner and then does this."""

        def close_and_act() -> None:
            self._banner.hide()
            act()

        return close_and_act
