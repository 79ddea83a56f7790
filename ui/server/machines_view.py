"""Other machines: servers whose models are used here like our own, and workers that lend their memory."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

from models.formatting.program import PROGRAM
from ui.client.api import Api
from ui.client.server_watch import ServerWatch
from ui.theme.tokens import Palette
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.fields import CopyLine
from ui.widgets.page_layout import PageColumn, plain_label

WORKER = "rpc://"
HOW_TO_LEND = (
    "A worker is another machine with Slipstream that lends its memory and its GPU to a model that fits neither "
    "machine alone. There, this command prints the worker's address and a token:"
)
HOW_TO_USE = (
    "Here, a server in a terminal uses the worker, and asks for the token once. Add that server above, by its address, "
    "and its models are in this window too:"
)
LEND = f"{PROGRAM} worker --host ADDRESS-OF-THAT-MACHINE"
USE = (
    f"{PROGRAM} worker --remember rpc://HOST:8643 && {PROGRAM} serve --port 8650 --device rpc://HOST:8643 --model NAME"
)


class MachinesView(PageColumn):
    """Lists remote servers, adds and removes them, and says how a worker is used."""

    def __init__(self, api: Api, watch: ServerWatch, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._api, self._watch = api, watch
        section = self.add_section(
            "Other servers",
            "Their models are in the list of models as NAME/MODEL: another Slipstream, vLLM, llama-server, or a "
            "service that speaks OpenAI's protocol. What you send to them leaves this machine.",
        )
        self.remotes = ActionRows("Other servers", "None yet: add one by its address.")
        self.remotes.wanted.connect(self._on_wanted)
        self.name, self.url, self.key = QLineEdit(), QLineEdit(), QLineEdit()
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        grid = QGridLayout()
        rows = (
            ("Name", self.name, "As you want to call it: rack"),
            ("Address", self.url, "http://192.168.1.20:8642/v1"),
            ("Key", self.key, "Empty where it needs none"),
        )
        for at, (words, field, example) in enumerate(rows):
            label = QLabel(words)
            label.setProperty("tone", "caption")
            label.setBuddy(field)
            field.setPlaceholderText(example)
            field.setAccessibleName(f"{words} of the other server")
            field.returnPressed.connect(self._on_add)
            grid.addWidget(label, at, 0)
            grid.addWidget(field, at, 1)
        self.add = QPushButton("Add this server")
        self.add.setToolTip("Ask the server for its models, and keep it")
        self.add.clicked.connect(self._on_add)
        self.problem = plain_label(tone="problem")
        self.problem.hide()
        foot = QHBoxLayout()
        foot.addWidget(self.add)
        foot.addStretch()
        section.addWidget(self.remotes)
        section.addLayout(grid)
        section.addWidget(self.problem)
        section.addLayout(foot)
        section = self.add_section("Workers", HOW_TO_LEND)
        self.lend, self.use = CopyLine("Command for the worker"), CopyLine("Command for the server")
        self.lend.show_text(LEND)
        self.use.show_text(USE)
        self.workers = ActionRows("Workers", "No worker is connected to this server.")
        for widget in (self.lend, plain_label(HOW_TO_USE), self.use, self.workers):
            section.addWidget(widget)

    def look(self) -> None:
        """Ask for the servers, and whether they answer."""
        self._api.ask("GET", "/slipstream/remotes", None, self._on_remotes, self._say)

    def show_state(self, found: dict[str, Any]) -> None:
        """Show which workers the loaded model uses."""
        lent = [str(device) for device in found.get("devices") or () if WORKER in str(device)]
        self.workers.show_rows([ActionRow(device, device, f"used by {found.get('model')}") for device in lent])

    def set_palette(self, palette: Palette) -> None:
        """Draw for another palette."""
        for line in (self.lend, self.use):
            line.set_palette(palette)

    def _on_remotes(self, found: dict[str, Any]) -> None:
        self.remotes.show_rows([_remote_row(one) for one in found.get("data") or ()])
        self._watch.look_at_models()

    def _on_add(self) -> None:
        name, url, key = (field.text().strip() for field in (self.name, self.url, self.key))
        if not name or not url:
            self._say("A server needs a name and an address.")
            return
        self.problem.hide()
        self.add.setEnabled(False)
        body = {"name": name, "url": url, "key": key or None}
        self._api.ask("POST", "/slipstream/remotes", body, self._on_added, self._on_not_added)

    def _on_added(self, found: dict[str, Any]) -> None:
        self.add.setEnabled(True)
        for field in (self.name, self.url, self.key):
            field.clear()
        self.look()

    def _on_not_added(self, sentence: str) -> None:
        self.add.setEnabled(True)
        self._say(sentence)

    def _on_wanted(self, name: str, action: str) -> None:
        path = f"/slipstream/remotes/{quote(name, safe='')}"
        if action == "Remove":
            self._api.ask("DELETE", path, None, lambda found: self.look(), self._say)
        else:
            self._api.ask("POST", f"{path}/test", {}, lambda found: self.look(), self._say)

    def _say(self, sentence: str) -> None:
        self.problem.setText(sentence)
        self.problem.show()


def _remote_row(one: dict[str, Any]) -> ActionRow:
    models = one.get("models") or ()
    line = f"{one.get('url')}  ·  {len(models)} {'model' if len(models) == 1 else 'models'}"
    return ActionRow(
        str(one["name"]), str(one["name"]), line, ("Try again", "Remove"), problem=str(one.get("problem") or "")
    )
