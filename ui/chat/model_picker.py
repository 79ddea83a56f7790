"""Which model answers: a button with a menu, and how far loading is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QToolButton, QWidget

from models.formatting.figures import count, parameters, percent
from models.formatting.safe_text import one_line
from ui.client.api import ServerState
from ui.client.server_watch import ModelChoice
from ui.language import dotted, tr
from ui.theme.colours import Dressed, colours
from ui.theme.icons import set_icon
from ui.theme.layouts import against_reading
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.elided_label import ElidedLabel, in_tip, on_button
from ui.widgets.icon_button import TextButton
from ui.widgets.page_layout import add_choices, open_menu, set_menu

AROUND = 84  # pixels beside the names and the figures of the menu
WIDEST = 420  # pixels of a name in the menu: what stands behind it is to be seen in a small window too
LONG_MS = 700  # a load that is over sooner needs no button to end it
TOY_NOTE = tr(
    "Ember is a tiny model that comes with Slipstream, a toy to try everything with.\n"
    "It tells little stories and is wrong about most other things."
)


class ModelPicker(Dressed, QWidget):
    """Shows the model of the chat and lets another be chosen."""

    chosen = Signal(str)
    opened = Signal()  # the menu is about to show
    cancelled = Signal()  # the load of the model
    settings_wanted = Signal(str)  # a model's
    unload_wanted = Signal(str)
    find_wanted = Signal()  # models that are not here yet

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[ModelChoice, ...] = ()
        self._state = ServerState()
        self._wanted: str | None = None
        self._has_answered = self._is_asked = False
        self.figure_of: Callable[[str], str] = lambda name: ""  # what stands behind a model's name in the menu
        self.button = QToolButton()
        self.button.setProperty("kind", "picker")
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setLayoutDirection(against_reading())
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.menu = _Menu(self.button)
        self.menu.aboutToShow.connect(self.fill_menu)
        self.menu.aboutToShow.connect(self.opened)
        set_menu(self.button, self.menu)
        self.badge = QLabel(tr("toy"))
        self.badge.setProperty("tone", "badge")
        self.badge.setToolTip(TOY_NOTE)
        self.badge.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.status = ElidedLabel()
        self.status.setProperty("tone", "caption")
        # As wide as its words, so that what can be done about them stands beside them.
        self.status.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.cancel = TextButton(tr("Cancel"), tr("Cancel the loading of the model"))
        self.cancel.clicked.connect(self.cancelled)
        self.cancel.hide()
        self._long = QTimer(self, singleShot=True, interval=LONG_MS)
        self._long.timeout.connect(self.cancel.show)
        self._long.timeout.connect(self._fit)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(Space.S)
        row.addWidget(self.button)
        row.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.status)
        row.addWidget(self.cancel)
        row.addStretch(1)
        self._show()
        self.dress()

    @property
    def shown_model(self) -> str | None:
        """The model of this chat: the one it asks for, else the one that is loaded."""
        return self._wanted or self._state.model

    @property
    def is_toy(self) -> bool:
        """Whether that is a toy."""
        name = self.shown_model
        if name is not None and name == self._state.model and self._state.is_toy:
            return True
        return any(model.is_toy for model in self._models if model.name == name)

    @property
    def remote(self) -> str | None:
        """The server that has the model of this chat, where it is another one."""
        first, slash, _ = (self._wanted or "").partition("/")
        if slash and first in self._state.remotes:
            return first
        return next((model.remote for model in self._models if model.name == self._wanted), None)

    def set_models(self, models: tuple[ModelChoice, ...]) -> None:
        """Offer other models."""
        self._models = models
        self._show()

    def set_state(self, state: ServerState) -> None:
        """Show where the server stands."""
        self._state = state
        self._show()

    def set_wanted(self, model: str | None) -> None:
        """Show the model that the chat asks for."""
        self._wanted, self._has_answered = model, False
        self._show()

    def set_answered(self) -> None:
        """Remember that the model has answered: beside the one of the state it is loaded too."""
        if not self._has_answered:
            self._has_answered = True
            self._show()

    def set_asked(self, is_asked: bool) -> None:
        """Say whether the model is to answer now: one that is not loaded is loaded for that."""
        self._is_asked = is_asked
        self._show()

    @property
    def is_loading(self) -> bool:
        """Whether the model is not there yet; to answer it may also be loaded beside the one of the state."""
        is_beside = self._state.phase in ("ready", "empty") and self._state.model != self.shown_model
        is_awaited = is_beside and self._is_asked and not self._has_answered
        return self.remote is None and (self._state.phase == "loading" or is_awaited)

    @property
    def _nameless(self) -> str:
        """What stands in place of the name: there may be a model where the server has not yet said which."""
        return tr("Model") if self._state.phase == "unknown" else tr("No model yet")

    def dress(self) -> None:
        """Draw the arrow, and leave room for the text."""
        set_icon(self.button, "down", colours().muted, size=14)
        self._fit()

    def _show(self) -> None:
        name = self.shown_model
        self.button.setAccessibleName(tr("Model: {name}", name=name) if name else self._nameless)
        self.status.setText(self._status())
        self._offer_cancel()
        self._fit()
        self.refill_menu()

    def minimumSizeHint(self) -> QSize:
        """Be as narrow as the chat is: a long name would hold it wide."""
        return QSize(0, super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Find out how much room there is."""
        super().showEvent(event)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room that there is."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Let a name that has no room end in an ellipsis; the state of the server and the badge give way before it."""
        name, button = one_line(self.shown_model or self._nameless), self.button
        button.setText(on_button(name))
        self.badge.setVisible(self.is_toy)
        if self.isVisible():
            metrics = button.fontMetrics()
            parts = [part for part in (self.badge, self.status, self.cancel) if part.isVisible()]
            beside = sum(part.sizeHint().width() for part in parts if part is not self.status) + len(parts) * Space.S
            room = self.width() - beside - (button.sizeHint().width() - metrics.horizontalAdvance(name))
            if room < metrics.horizontalAdvance(name) and self.badge in parts:
                self.badge.hide()
                room += self.badge.sizeHint().width() + Space.S
            button.setText(on_button(metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)))
        button.setToolTip("" if button.text() == on_button(name) else in_tip(name))

    def refill_menu(self) -> None:
        """Show in an open menu what is known by now."""
        if self.menu.isVisible():
            self.fill_menu()

    def _offer_cancel(self) -> None:
        if self._state.phase not in ("loading", "restarting") or self.remote is not None:
            self._long.stop()
            self.cancel.hide()
        elif self.cancel.isHidden() and not self._long.isActive():
            self._long.start()

    def _status(self) -> str:
        state = self._state
        if self.remote is not None:
            return tr("Runs on {remote}", remote=self.remote)
        match state.phase:
            case "unknown":
                return tr("Starting the engine…")
            case "loading" if state.progress >= 1:  # the file is read; what follows takes seconds
                return tr("Preparing {model}…", model=one_line(state.model or tr("the model")))
            case "loading":
                share = f" {percent(state.progress)}" if 0 < state.progress < 1 else ""
                return tr("Loading {model}…{percent}", model=one_line(state.model or tr("the model")), percent=share)
            case "gone":
                return tr("No server")
            case "restarting":
                return tr("The engine stopped and is starting again…")
            case "failed":
                return tr("Not loaded")
            case "ready" if state.model == self.shown_model:
                return _facts(state)
            case "ready" | "empty":
                if self.is_loading:
                    return tr("Loading {model}…{percent}", model=one_line(self.shown_model or ""), percent="")
                if self._has_answered or self.shown_model is None:
                    return ""
                is_here = not self._models or any(model.name == self.shown_model for model in self._models)
                return tr("Loads with the next message") if is_here else tr("Not here any more")
            case _:
                return ""

    def open(self) -> None:
        """Show the models, for one to be chosen."""
        self.fill_menu()  # its place depends on its width
        open_menu(self.menu, self.button)

    def fill_menu(self) -> None:
        """Offer the models there are. It is done when the menu opens: thousands take a while."""
        self.menu.clear()
        shown, choose, room = self.shown_model, self.chosen.emit, self._room_in_menu()
        add_choices(
            self.menu,
            ((self._in_menu(one, room), one.name == shown, partial(choose, one.name)) for one in self._models),
        )
        if not self._models:
            self.menu.addAction(tr("No models yet")).setEnabled(False)
        self._add_deeds()

    def _room_in_menu(self) -> int:
        """Return the pixels for a name, so that the figures behind it are on the screen too."""
        advance = self.menu.fontMetrics().horizontalAdvance
        figures = max((advance(self.figure_of(model.name)) for model in self._models), default=0)
        return min(scaled(WIDEST), self.screen().availableGeometry().width() - figures - scaled(AROUND))

    def _in_menu(self, model: ModelChoice, room: int) -> str:
        name = self.menu.fontMetrics().elidedText(one_line(model.name), Qt.TextElideMode.ElideMiddle, room)
        words = on_button(tr("{name}   (toy)", name=name) if model.is_toy else name)
        figures = self.figure_of(model.name)
        return f"{words}\t{on_button(figures)}" if figures else words  # after a tab, in a column of its own

    def _add_deeds(self) -> None:
        """Offer what can be done with the model that is shown, and where there are more."""
        self.menu.addSeparator()
        name = self.shown_model
        if name is not None and any(model.name == name and model.remote is None for model in self._models):
            self.menu.addAction(tr("Settings of this model…"), lambda: self.settings_wanted.emit(name))
            if self._state.phase == "ready" and name == self._state.model:
                self.menu.addAction(tr("Unload this model"), lambda: self.unload_wanted.emit(name))
        self.menu.addAction(tr("Find more models…")).triggered.connect(self.find_wanted)


class _Menu(QMenu):
    """Opens where its button begins. Qt goes by the direction of the button, which is turned for its arrow."""

    def __init__(self, button: QToolButton) -> None:
        super().__init__(button)
        self._button = button
        self.setLayoutDirection(QGuiApplication.layoutDirection())

    def showEvent(self, event: QShowEvent) -> None:
        """Move there, as far as the screen has room."""
        super().showEvent(event)
        edge, screen = self._button.mapToGlobal(QPoint(0, 0)).x(), self.screen().availableGeometry()
        left = edge + self._button.width() - self.width() if self.isRightToLeft() else edge
        self.move(max(screen.left(), min(left, screen.right() + 1 - self.width())), self.y())


def _facts(state: ServerState) -> str:
    parts = [tr("{n_params} parameters", n_params=parameters(state.n_params)) if state.n_params else ""]
    parts.append(tr("{n_ctx} tokens of context", n_ctx=count(state.n_ctx)) if state.n_ctx else "")
    return dotted(*parts)
