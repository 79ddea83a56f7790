"""Other machines: servers whose models are used here like our own, and workers that lend their memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget

from models.formatting.figures import size
from models.formatting.program import PROGRAM
from ui.client.api import Api
from ui.client.server_watch import ServerWatch
from ui.language import tr
from ui.server.connect_view import LABELS
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Palette, Space
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.fields import CopyLine
from ui.widgets.page_layout import PageColumn, ask_first, plain_label, tell

WORKER = "rpc://"
HOW_TO_LEND = tr(
    "A worker is another machine with Slipstream that lends its memory and its GPU to a model that fits neither "
    "machine alone. In a terminal there, in Slipstream's folder, this command prints its address and a token:"
)
HOW_TO_USE = tr(
    "Add it here by that address. Then choose it in the settings of a model, in the library: “Also use worker”. What "
    "is computed crosses the network unencrypted, prompts and replies too: do this in a network that you trust."
)
TRYING = tr("Trying it…")
LEND = f"{PROGRAM} worker --host ADDRESS-OF-THAT-MACHINE"


class MachinesView(PageColumn):
    """Lists remote servers, adds and removes them, and says how a worker is used."""

    def __init__(self, api: Api, watch: ServerWatch, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._api, self._watch = api, watch
        section = self.add_section(
            tr("Other servers"),
            tr(
                "Their models are in the list of models as NAME/MODEL: another Slipstream, vLLM, llama-server, or a "
                "service that speaks OpenAI's protocol. What you send to them leaves this machine."
            ),
        )
        self.remotes = ActionRows(tr("Other servers"), tr("None yet: add one by its address."))
        self.remotes.wanted.connect(self._on_wanted)
        self.name, self.url, self.key = QLineEdit(), QLineEdit(), QLineEdit()
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        grid = QGridLayout()
        grid.setHorizontalSpacing(Space.M)
        grid.setColumnMinimumWidth(0, LABELS)
        rows = (
            (tr("Name"), self.name, tr("A name of your choice, as rack")),
            (tr("Address"), self.url, "http://192.168.1.20:8642/v1"),
            (tr("Key"), self.key, tr("Empty where it needs none")),
        )
        for at, (words, field, example) in enumerate(rows):
            label = QLabel(words)
            label.setProperty("tone", "caption")
            label.setBuddy(field)
            field.setPlaceholderText(example)
            field.setAccessibleName(tr("{words} of the other server", words=words))
            field.returnPressed.connect(self._on_add)
            grid.addWidget(label, at, 0)
            grid.addWidget(field, at, 1)
        self.add = QPushButton(tr("Add this server"))
        self.add.setToolTip(tr("Ask the server for its models, and keep it"))
        self.add.clicked.connect(self._on_add)
        self.problem = plain_label(tone="problem")
        self.problem.hide()
        foot = fill(QHBoxLayout(), self.add, STRETCH)
        fill(section, self.remotes, grid, self.problem, foot)
        section = self.add_section(tr("Workers"), HOW_TO_LEND)
        self.lend = CopyLine(tr("Command for the worker"))
        self.lend.show_text(LEND)
        self.workers = ActionRows(tr("Workers"), tr("None yet: add one by its address and its token."))
        self.workers.wanted.connect(self._on_worker_wanted)
        self.worker, self.token = QLineEdit(), QLineEdit()
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        form = QGridLayout()
        form.setHorizontalSpacing(Space.M)
        form.setColumnMinimumWidth(0, LABELS)
        fields = (
            (tr("Address"), self.worker, "rpc://192.168.1.20:8643"),
            (tr("Token"), self.token, tr("As it is shown there")),
        )
        for at, (words, field, example) in enumerate(fields):
            label = QLabel(words)
            label.setProperty("tone", "caption")
            label.setBuddy(field)
            field.setPlaceholderText(example)
            field.setAccessibleName(tr("{words} of the worker", words=words))
            field.returnPressed.connect(self._on_add_worker)
            form.addWidget(label, at, 0)
            form.addWidget(field, at, 1)
        self.add_worker = QPushButton(tr("Add this worker"))
        self.add_worker.setToolTip(tr("Try the worker with its token, and keep both"))
        self.add_worker.clicked.connect(self._on_add_worker)
        self.worker_problem = plain_label(tone="problem")
        self.worker_problem.hide()
        foot = fill(QHBoxLayout(), self.add_worker, STRETCH)
        fill(section, self.lend, plain_label(HOW_TO_USE), self.workers, form, self.worker_problem, foot)
        self._remotes: list[dict[str, Any]] = []
        self._found: list[dict[str, Any]] = []
        self._lent: list[str] = []  # devices of workers that the loaded model uses
        self._model = ""

    def look(self) -> None:
        """Ask for the servers and workers, and whether they answer."""
        self._api.ask("GET", "/slipstream/remotes", None, self._on_remotes, self._say)
        self._api.ask("GET", "/slipstream/workers", None, self._on_workers, self._say_of_worker)

    def show_state(self, found: dict[str, Any]) -> None:
        """Show which workers the loaded model uses."""
        self._lent = [str(device) for device in found.get("devices") or () if WORKER in str(device)]
        self._model = str(found.get("model") or "")
        self._show_workers()

    def set_palette(self, palette: Palette) -> None:
        """Draw for another palette."""
        self.lend.set_palette(palette)

    def _on_remotes(self, found: dict[str, Any]) -> None:
        self._remotes = list(found.get("data") or ())
        self.remotes.show_rows([_remote_row(one) for one in self._remotes])
        self._watch.look_at_models()

    def _on_add(self) -> None:
        name, url, key = (field.text().strip() for field in (self.name, self.url, self.key))
        if not name or not url:
            self._say(tr("A server needs a name and an address."))
            return
        self.problem.hide()
        self.add.setEnabled(False)
        self.add.setText(TRYING)
        body = {"name": name, "url": url, "key": key or None}
        self._api.ask("POST", "/slipstream/remotes", body, self._on_added, self._on_not_added)

    def _may_add(self) -> None:
        self.add.setEnabled(True)
        self.add.setText(tr("Add this server"))

    def _on_added(self, found: dict[str, Any]) -> None:
        self._may_add()
        for field in (self.name, self.url, self.key):
            field.clear()
        self.look()

    def _on_not_added(self, sentence: str) -> None:
        self._may_add()
        self._say(sentence)

    def _on_wanted(self, name: str, action: str) -> None:
        path = f"/slipstream/remotes/{quote(name, safe='')}"
        if action == tr("Remove"):
            ask_first(
                self,
                tr("Remove {name}?", name=name),
                tr("Its models leave the list, and its key is forgotten. Nothing changes on that server."),
                action,
                lambda: self._api.ask("DELETE", path, None, lambda found: self.look(), self._say),
            )
        else:
            self.problem.hide()
            rows = [_remote_row(one, is_tried=one.get("name") == name) for one in self._remotes]
            self.remotes.show_rows(rows)
            self._api.ask("POST", f"{path}/test", {}, lambda found: self.look(), self._on_not_tried)

    def _on_not_tried(self, sentence: str) -> None:
        self._say(sentence)
        self.remotes.show_rows([_remote_row(one) for one in self._remotes])

    # Workers.

    def _on_workers(self, found: dict[str, Any]) -> None:
        self._found = [one for one in found.get("data") or () if isinstance(one, dict)]
        self._show_workers()

    def _show_workers(self, tried: str = "") -> None:
        rows = [_worker_row(one, self._model if self._uses(str(one["address"])) else "") for one in self._found]
        rows = [replace(row, line=TRYING, actions=(), problem="") if row.key == tried else row for row in rows]
        known = {row.key for row in rows}
        # Those that the server was started with are in no list.
        others = sorted({device.rpartition("/")[0] for device in self._lent} - known)
        self.workers.show_rows(
            [*rows, *(ActionRow(name, name, tr("used by {model}", model=self._model)) for name in others)]
        )

    def _uses(self, address: str) -> bool:
        return any(device.startswith(f"{address}/") for device in self._lent)

    def _on_add_worker(self) -> None:
        address, token = self.worker.text().strip(), self.token.text().strip()
        if not address or not token:
            self._say_of_worker(tr("A worker needs an address and its token."))
            return
        self.worker_problem.hide()
        self.add_worker.setEnabled(False)
        self.add_worker.setText(TRYING)
        body = {"address": address, "token": token}
        self._api.ask("POST", "/slipstream/workers", body, self._on_worker_added, self._on_worker_refused)

    def _on_worker_added(self, found: dict[str, Any]) -> None:
        self._may_add_worker()
        for field in (self.worker, self.token):
            field.clear()
        self.look()

    def _on_worker_refused(self, sentence: str) -> None:
        self._may_add_worker()
        self._say_of_worker(sentence)

    def _may_add_worker(self) -> None:
        self.add_worker.setEnabled(True)
        self.add_worker.setText(tr("Add this worker"))

    def _on_worker_wanted(self, address: str, action: str) -> None:
        if action == tr("Remove"):
            place = quote(address.removeprefix(WORKER), safe="")
            path, done = f"/slipstream/workers/{place}", lambda found: self.look()
            ask_first(
                self,
                tr("Remove {name}?", name=address),
                tr("Its token is forgotten. Nothing changes on that machine."),
                action,
                lambda: self._api.ask("DELETE", path, None, done, self._say_of_worker),
            )
        else:
            self.worker_problem.hide()
            self._show_workers(tried=address)
            self.look()

    def _say_of_worker(self, sentence: str) -> None:
        tell(self.worker_problem, sentence)

    def _say(self, sentence: str) -> None:
        tell(self.problem, sentence)


def _worker_row(one: dict[str, Any], model: str) -> ActionRow:
    devices = [
        tr(
            "{name}: {free} free of {total}",
            name=device.get("name"),
            free=size(int(device.get("free") or 0)),
            total=size(int(device.get("total") or 0)),
        )
        for device in one.get("devices") or ()
    ]
    link = tr("{bandwidth:,.0f} MB/s", bandwidth=float(one["bandwidth"]) / 1000000.0) if one.get("bandwidth") else ""
    use = tr("used by {model}", model=model) if model else tr("used by another program") if one.get("is_busy") else ""
    line = "  ·  ".join(part for part in (*devices, link, use) if part)
    address = str(one["address"])
    return ActionRow(address, address, line, (tr("Try again"), tr("Remove")), problem=str(one.get("problem") or ""))


def _remote_row(one: dict[str, Any], *, is_tried: bool = False) -> ActionRow:
    if is_tried:
        return ActionRow(str(one["name"]), str(one["name"]), TRYING)
    models = one.get("models") or ()
    line = f"{one.get('url')}  ·  {tr('1 model') if len(models) == 1 else tr('{n:,} models', n=len(models))}"
    return ActionRow(
        str(one["name"]), str(one["name"]), line, (tr("Try again"), tr("Remove")), problem=str(one.get("problem") or "")
    )
