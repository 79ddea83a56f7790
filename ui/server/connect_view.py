"""How other programs reach this server: on or off, its address and key, what to enter in each client, and keys."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import quote

from PySide6.QtCore import QMimeData, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from core.values.addresses import origins_of
from core.values.errors import BadOption
from ui.client.api import Api, ServerState
from ui.client.server_watch import ServerWatch
from ui.language import day, tr
from ui.platform.desktop_notices import has_tray
from ui.server.endpoint import Endpoint, EndpointState
from ui.server.snippets import Address, snippets
from ui.theme.colours import Dressed
from ui.theme.layouts import STRETCH, fill
from ui.theme.text_size import scaled
from ui.theme.tokens import Space
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.fields import CheckField, ChoiceField, CopyLine, Eye, FieldGrid, WholeField
from ui.widgets.icon_button import TextButton
from ui.widgets.note_card import CALM, WARNING, NoteCard
from ui.widgets.page_layout import PageColumn, ProblemLabel, ask_first, disable, plain_label

OFF, ON = tr("Off: only this window uses the models."), tr("On while this window is open.")
AWAITED = tr("It opens when the server has started.")
LAN = tr(
    "Every machine of this network that has a key can use the models. What it sends and gets is not encrypted: allow "
    "this only in a network that you trust."
)
USES, MANAGES = tr("uses models"), tr("manages models")
ALLOW, DISALLOW = tr("Allow managing"), tr("Disallow managing")
PORT_WIDTH = 76
HIDDEN = "•" * 12  # in place of a key
_LINES = 16  # of a snippet that are shown at once: as many as the second longest has


class ConnectView(Dressed, PageColumn):
    """Three sections: the switch with address and key, the snippets, the keys of other clients."""

    def __init__(self, api: Api, endpoint: Endpoint, watch: ServerWatch) -> None:
        super().__init__()
        self._api, self._endpoint, self._watch = api, endpoint, watch
        self._is_filling = False
        self._add_switch()
        self._add_snippets()
        self._add_keys()
        endpoint.changed.connect(self._show_endpoint)
        endpoint.kept.changed.connect(lambda name: self._show_staying() if name == "keepsRunning" else None)
        watch.state_changed.connect(self._on_state)
        watch.models_changed.connect(lambda models: self._show_snippet())
        self._show_endpoint(endpoint.state)
        self.dress()

    def _add_switch(self) -> None:
        section = self.add_section(
            tr("Use the models in other programs"), tr("Editors, agents and scripts on this machine.")
        )
        self.switch = CheckField(tr("Let them use the models"))
        self.switch.setAccessibleName(tr("Let other programs use this server"))
        self.switch.toggled.connect(self._on_changed)
        self.lan = CheckField(tr("Also from other machines in this network"))
        self.lan.toggled.connect(self._on_changed)
        self.lan_note, self.problem = NoteCard(WARNING), NoteCard(WARNING)
        self.stays = CheckField(tr("Also while the window is closed"))
        for long in (self.lan, self.stays):  # in a tiny window with large text they are cut, and the rest is not
            long.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.stays.setToolTip(tr("Closing it leaves an icon in the tray"))
        self.stays.toggled.connect(lambda is_on: self._endpoint.kept.keep("keepsRunning", is_on))
        self.problem.button.clicked.connect(self._on_way_out)
        self.address, self.outside = CopyLine(tr("Address")), CopyLine(tr("Address in the network"))
        self.key = CopyLine(tr("Key"), is_secret=True)
        self.port = WholeField(tr("Port"))
        self.port.setRange(1_024, 65_535)
        self.port.setAlignment(Qt.AlignmentFlag.AlignLeft)  # as the lines around it
        self.port.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.port.setToolTip(tr("Programs keep the address: change it only where another program has this port"))
        self.port.editingFinished.connect(self._on_changed)
        self.origins = QLineEdit()
        self.origins.setAccessibleName(tr("Web pages"))
        self.origins.setPlaceholderText(tr("none, or as https://example.com"))
        self.origins.setToolTip(
            tr("Pages of these addresses may use the server from a browser, with the key; several with commas")
        )
        self.origins.editingFinished.connect(self._on_changed)
        self.origins_problem = ProblemLabel()
        self.new_key = TextButton(tr("New key"))
        self.new_key.setToolTip(tr("Make another key; programs that have the old one are refused"))
        self.new_key.clicked.connect(self._ask_for_new_key)
        self.grid = QWidget()
        grid = FieldGrid()
        self._lines = (
            (grid.add(tr("Address"), self.address), self.address),
            (grid.add(tr("In the network"), self.outside), self.outside),
            (grid.add(tr("Key"), self.key, self.new_key), self.key),
        )
        grid.add(tr("Port"), self.port)
        grid.add(tr("Web pages"), self.origins)
        grid.addWidget(self.origins_problem, grid.rowCount(), 1)
        fill(QVBoxLayout(self.grid), grid, margins=(0, Space.XS, 0, Space.XS))
        self.how = plain_label(OFF, "caption")
        for widget in (self.switch, self.how, self.problem, self.grid, self.lan, self.lan_note, self.stays):
            section.addWidget(widget)

    def _add_snippets(self) -> None:
        section = self.add_section(
            tr("Connect a program"), tr("With this server's address, key and model: copy it as it is.")
        )
        self.client = ChoiceField(tr("Client"))
        self.client.setToolTip(tr("The program that is to use this server"))
        self.client.addItems([snippet.client for snippet in snippets(Address("", "", "", 0))])
        self.client.currentIndexChanged.connect(self._show_snippet)
        self.copy = TextButton(tr("Copy"), tr("Copy this text"))
        self.copy.setToolTip(tr("Copy this text"))
        self.copy.clicked.connect(self._on_copy)
        self.eye = Eye(tr("Show the key in this text"), tr("Hide the key in this text"))
        self.eye.changed.connect(self._show_snippet)
        row = fill(QHBoxLayout(), self.client, STRETCH, self.eye, self.copy)
        self.place = plain_label(tone="caption", can_select=True)
        self.text = _Snippet(readOnly=True)
        self.text.setObjectName("snippet")
        self.text.setAccessibleName(tr("What to enter there"))
        self.text.setTabChangesFocus(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.horizontalScrollBar().rangeChanged.connect(self._fit_text)
        fill(section, row, self.place, self.text)

    def _add_keys(self) -> None:
        section = self.add_section(
            tr("Keys for others"),
            tr(
                "A key of its own for each person or machine, so that one can be taken back alone. It uses models, and "
                "manages them only if you allow that."
            ),
        )
        self.key_rows = ActionRows(tr("Keys"), tr("No keys yet."))
        self.key_rows.wanted.connect(self._on_wanted)
        self.key_name = QLineEdit()
        self.key_name.setPlaceholderText(tr("Whose key, as “laptop” or “Ana”"))
        self.key_name.setAccessibleName(tr("Whose key"))
        self.key_name.setMaxLength(64)
        self.key_name.returnPressed.connect(self._on_add)
        self.add = QPushButton(tr("Make a key"))
        self.add.setToolTip(tr("Make a key of this name"))
        self.add.clicked.connect(self._on_add)
        row = fill(QHBoxLayout(), (self.key_name, 1), self.add)
        self._new = ""
        self.made = NoteCard(CALM, tr("Copy the key"))
        self.made.button.clicked.connect(self._on_copy_key)
        self.key_problem = ProblemLabel()
        for widget in (self.made, self.key_rows, self.key_problem):
            section.addWidget(widget)
        section.addLayout(row)

    def look(self) -> None:
        """Ask for the keys, and show what is known."""
        self._show_snippet()
        self._api.ask("GET", "/slipstream/keys", None, self._on_keys, self._say_key_problem)

    def dress(self) -> None:
        """Leave room for the text."""
        self.port.setFixedWidth(scaled(PORT_WIDTH))
        self._fit_text()

    # The port.

    def _on_changed(self) -> None:
        if not self._is_filling:
            self._change()

    def _ask_for_new_key(self) -> None:
        more = tr("Programs that have the present key are refused until they get the new one.")
        ask_first(self, tr("Make another key?"), more, tr("New key"), lambda: self._change(new_key=True))

    def _change(self, new_key: bool = False) -> None:
        now = self._endpoint.state
        is_open = now.is_open or self._endpoint.is_awaited
        wanted = (self.switch.isChecked(), self.lan.isChecked(), self.port.value(), self._wanted_origins())
        if new_key or wanted != (is_open, now.is_lan, now.port, now.origins):
            self.problem.hide()
            is_open, is_lan, port, origins = wanted
            self._endpoint.change(is_open=is_open, is_lan=is_lan, port=port, origins=origins, new_key=new_key)

    def _wanted_origins(self) -> tuple[str, ...]:
        """Return the web pages that were entered, or those of before where one cannot be; then it is said why."""
        try:
            found = origins_of(one for one in re.split(r"[,\s]+", self.origins.text()) if one)
        except BadOption as error:
            self.origins_problem.say(error.message)
            return self._endpoint.state.origins
        self.origins_problem.hide()
        return found

    def _show_endpoint(self, state: EndpointState) -> None:
        self._is_filling = True
        self.switch.setChecked(state.is_open or self._endpoint.is_awaited)
        self.lan.setChecked(state.is_lan)
        self.port.setValue(state.port)
        if not self.origins_problem.isVisibleTo(self):
            self.origins.setText(", ".join(state.origins))
        self._is_filling = False
        self._show_problem(state)
        self._show_staying()
        self.grid.setVisible(state.is_open or bool(state.problem))
        self.lan.setVisible(state.is_open)
        self.lan_note.say(LAN if state.is_open and state.is_lan else "")
        outside = state.urls[1] if len(state.urls) > 1 else ""
        self.address.show_text(f"{state.urls[0]}/v1" if state.urls else "")
        self.outside.show_text(f"{outside}/v1" if outside else "")
        self.key.show_text(state.key)
        for label, line in self._lines:  # while it is shut there is only a port to choose
            label.setVisible(bool(line.field.text()))
            line.setVisible(bool(line.field.text()))
        self.new_key.setVisible(state.is_open)
        self._show_snippet()

    def _show_staying(self) -> None:
        """Say for how long it is on: an editor that works with it does not see that a window was closed."""
        is_open, stays = self._endpoint.state.is_open, self._endpoint.kept.keeps_running
        self.stays.setChecked(stays)
        self.stays.setVisible(is_open and has_tray())
        self.how.setText(ON if is_open else AWAITED if self._endpoint.is_awaited else OFF)
        self.how.setVisible(not (is_open and stays and has_tray()))

    def _show_problem(self, state: EndpointState) -> None:
        """Say why it is shut, with what can mend that."""
        sentence, free = state.problem, state.free_port
        if state.needs_port and free is None:
            sentence = tr("{sentence} Choose another port below and switch it on again.", sentence=sentence)
        self.problem.say(sentence)
        self.problem.button.setText(tr("Use port {port}", port=str(free)) if free else tr("Try again"))
        self.problem.button.setVisible(free is not None or not state.needs_port)

    def _on_way_out(self) -> None:
        state = self._endpoint.state
        self.switch.setFocus()  # the button goes away
        if state.free_port is None:
            self._endpoint.try_again()
            return
        self.port.setValue(state.free_port)
        self.switch.setChecked(True)

    # The snippets.

    def _on_state(self, state: ServerState) -> None:
        self._show_snippet()

    def _show_snippet(self) -> None:
        state, server = self._endpoint.state, self._watch.state
        url = state.urls[0] if state.urls else f"http://127.0.0.1:{state.port}"
        self.text.key = state.key or "KEY"
        key = HIDDEN if state.key and not self.eye.shows else self.text.key
        sees = any("vision" in (one.can or ()) for one in self._watch.models if one.name == server.model)
        to = Address(url, key, server.model or "MODEL", server.n_ctx or 4_096, sees)
        shown = snippets(to)[max(0, self.client.currentIndex())]
        self.place.setText(
            shown.place if state.is_open else tr("Switch the server on first. {place}", place=shown.place)
        )
        self.copy.setEnabled(state.is_open)
        text = shown.text.rstrip()  # the end of its last line would be seen as an empty one
        self.eye.setVisible(bool(state.key) and key in text)  # some ask for the key themselves
        if self.text.toPlainText() != text:
            self.text.setPlainText(text)
            self._fit_text()

    def _fit_text(self) -> None:
        self.text.ensurePolished()  # the style sheet sets its font, also while it is hidden
        n_lines = min(self.text.blockCount(), _LINES)
        line = self.text.blockBoundingRect(self.text.document().firstBlock()).height()  # may be more than the font's
        sideways = self.text.horizontalScrollBar()
        bar = sideways.sizeHint().height() if sideways.maximum() else 0  # it would cover the last line
        self.text.setFixedHeight(round(n_lines * line) + 2 * Space.M + bar)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText().replace(HIDDEN, self.text.key))
        self.copy.say(tr("Copied"))

    # The keys.

    def _on_keys(self, found: dict[str, Any]) -> None:
        self.key_problem.hide()
        self.key_rows.show_rows([_key_row(key) for key in found.get("data") or ()])

    def _on_add(self) -> None:
        if not self.add.isEnabled():
            return  # Enter, while one is made: each is shown before the next
        name = self.key_name.text().strip()
        if not name:
            self._say_key_problem(tr("Give the key a name first."))
            return
        self._enable = disable(self.add)
        self._api.ask("POST", "/slipstream/keys", {"name": name}, partial(self._on_added, name), self._on_not_added)

    def _on_not_added(self, sentence: str) -> None:
        self._enable()
        self._say_key_problem(sentence)

    def _on_added(self, name: str, found: dict[str, Any]) -> None:
        self._enable()
        self._new = str(found.get("key"))
        if self.key_name.text().strip() == name:  # else the next one is being typed
            self.key_name.clear()
        self.made.button.setText(tr("Copy the key"))
        self.made.say(tr("The key “{name}”, which is shown this once:\n{new}", name=found.get("name"), new=self._new))
        QTimer.singleShot(0, self, lambda: self.ensureWidgetVisible(self.made))  # it is shown this once
        self.look()

    def _on_copy_key(self) -> None:
        QGuiApplication.clipboard().setText(self._new)
        self.made.button.setText(tr("Copied"))

    def _on_wanted(self, key: str, action: str) -> None:
        if action == ALLOW:
            more = tr("Programs that have it can then load, unload, download, change and remove models.")
            ask_first(
                self, tr("Let the key “{name}” manage models?", name=key), more, action, lambda: self._let(key, True)
            )
        elif action == DISALLOW:
            self._let(key, False)
        else:
            self._ask_to_revoke(key, action)

    def _let(self, key: str, may_manage: bool) -> None:
        body = {"may_manage": may_manage}
        self._api.ask("POST", _path(key), body, lambda found: self.look(), self._say_key_problem)

    def _ask_to_revoke(self, key: str, action: str) -> None:
        more = tr("Programs that have it are refused from now on. It cannot be brought back; another can be made.")
        ask_first(self, tr("Revoke the key “{name}”?", name=key), more, action, lambda: self._revoke(key))

    def _revoke(self, key: str) -> None:
        self.made.hide()
        self._api.ask("DELETE", _path(key), None, lambda found: self.look(), self._say_key_problem)

    def _say_key_problem(self, sentence: str) -> None:
        self.key_problem.say(sentence)


class _Snippet(QPlainTextEdit):
    """A text in which the key may be hidden; what is copied of it has the key."""

    key = ""

    def createMimeDataFromSelection(self) -> QMimeData:
        # Qt's own is filled: the clipboard outlives Python at exit.
        copied = super().createMimeDataFromSelection()
        text = copied.text().replace(HIDDEN, self.key)
        for name in copied.formats():
            copied.removeFormat(name)
        copied.setText(text)
        return copied


def _path(key: str) -> str:
    return f"/slipstream/keys/{quote(key, safe='')}"


def _key_row(key: dict[str, Any]) -> ActionRow:
    may_manage = key.get("may_manage") is True
    used = tr("used last on {day}", day=day(key["used"])) if key.get("used") else tr("not used yet")
    return ActionRow(
        str(key["name"]),
        str(key["name"]),
        tr("{may}, made on {day}, {used}", may=MANAGES if may_manage else USES, day=day(key["made"]), used=used),
        (DISALLOW if may_manage else ALLOW, tr("Revoke")),
    )
