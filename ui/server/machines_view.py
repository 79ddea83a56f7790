"""Other machines: servers whose models are used here like our own, and workers that lend their memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from models.formatting.figures import size
from ui.client.api import Api
from ui.client.server_watch import ServerWatch
from ui.language import dotted, tr
from ui.theme.layouts import STRETCH, fill
from ui.theme.tokens import Space
from ui.widgets.action_rows import ActionRow, ActionRows
from ui.widgets.fields import CopyLine, FieldGrid
from ui.widgets.page_layout import PageColumn, ProblemLabel, ask_first, disable, plain_label

WORKER = "rpc://"
REMOTES, WORKERS = "/slipstream/remotes", "/slipstream/workers"  # the server's routes
HOW_TO_LEND = tr(
    "A worker is another machine with Slipstream that lends its memory and its GPU to a model that fits neither "
    "machine alone. In a terminal there, in Slipstream's folder, this command prints its address and a token:"
)
HOW_TO_USE = tr(
    "Add it here by that address. Then choose it in the settings of a model, in the library: “Also use worker”. What "
    "is computed crosses the network unencrypted, prompts and replies too: do this in a network that you trust."
)
TRYING = tr("Trying it…")
LEND = "./slipstream worker --host ADDRESS-OF-THAT-MACHINE"  # there: where Slipstream is here says nothing


class MachineForm(QWidget):
    """Asks for what the server has to know of a machine, and lets it try and keep that; what it refuses stays here."""

    added = Signal()

    def __init__(self, api: Api, path: str, button: str, tip: str, needs: str) -> None:
        """``path`` is the server's, for what is entered; ``needs`` is said where a field that must be filled is not."""
        super().__init__()
        self._api, self._path, self._button, self._needs = api, path, button, needs
        self.fields: dict[str, QLineEdit] = {}
        self._optional = set[str]()
        self._grid = FieldGrid()
        self.add = QPushButton(button)
        self.add.setToolTip(tip)
        self.add.clicked.connect(self._on_add)
        self.problem = ProblemLabel()
        foot = fill(QHBoxLayout(), self.add, STRETCH)
        fill(QVBoxLayout(self), self._grid, self.problem, foot, spacing=Space.S, margins=0)

    def add_field(
        self, name: str, words: str, said: str, example: str, *, is_secret: bool = False, is_optional: bool = False
    ) -> None:
        """Ask for ``name``, as the server calls it; ``said`` is what a screen reader says in place of ``words``."""
        field = self.fields[name] = QLineEdit()
        field.setPlaceholderText(example)
        field.setAccessibleName(said)
        field.returnPressed.connect(self._on_add)
        if is_secret:
            field.setEchoMode(QLineEdit.EchoMode.Password)
        if is_optional:
            self._optional.add(name)
        self._grid.add(words, field)

    def say(self, sentence: str) -> None:
        """Say what went wrong; "" for nothing."""
        self.problem.say(sentence)

    def _on_add(self) -> None:
        if not self.add.isEnabled():
            return  # Enter, while it is tried
        entered = {name: field.text().strip() for name, field in self.fields.items()}
        if not all(entered[name] for name in entered if name not in self._optional):
            self.say(self._needs)
            return
        self.say("")
        self._enable = disable(self.add)
        self.add.setText(TRYING)
        body = {name: text or None for name, text in entered.items()}
        self._api.ask("POST", self._path, body, lambda found: self._on_added(entered), self._on_answer)

    def _on_added(self, entered: dict[str, str]) -> None:
        self._on_answer()
        for name, field in self.fields.items():
            if field.text().strip() == entered[name]:  # else the next one is being typed
                field.clear()
        self.added.emit()

    def _on_answer(self, refusal: str = "") -> None:
        self._enable()
        self.add.setText(self._button)
        self.say(refusal)


class MachinesView(PageColumn):
    """Lists remote servers and workers, adds and removes them, and says how a worker is used."""

    def __init__(self, api: Api, watch: ServerWatch) -> None:
        super().__init__()
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
        self.server = MachineForm(
            api, REMOTES, tr("Add this server"), tr("Ask the server for its models, and keep it"),
            tr("A server needs a name and an address."),
        )  # fmt: skip
        url = "http://192.168.1.20:8642/v1"
        self.server.add_field("name", tr("Name"), tr("Name of the other server"), tr("A name of your choice, as rack"))
        self.server.add_field("url", tr("Address"), tr("Address of the other server"), url)
        self.server.add_field(
            "key", tr("Key"), tr("Key of the other server"), tr("Empty where it needs none"), is_secret=True,
            is_optional=True,
        )  # fmt: skip
        fill(section, self.remotes, self.server)
        section = self.add_section(tr("Workers"), HOW_TO_LEND)
        self.lend = CopyLine(tr("Command for the worker"))
        self.lend.show_text(LEND)
        self.workers = ActionRows(tr("Workers"), tr("None yet: add one by its address and its token."))
        self.workers.wanted.connect(self._on_worker_wanted)
        self.worker = MachineForm(
            api, WORKERS, tr("Add this worker"), tr("Try the worker with its token, and keep both"),
            tr("A worker needs an address and its token."),
        )  # fmt: skip
        at = "rpc://192.168.1.20:8643"
        self.worker.add_field("address", tr("Address"), tr("Address of the worker"), at)
        self.worker.add_field(
            "token", tr("Token"), tr("Token of the worker"), tr("As it is shown there"), is_secret=True
        )
        fill(section, self.lend, plain_label(HOW_TO_USE), self.workers, self.worker)
        for form in (self.server, self.worker):
            form.added.connect(self.look)
        self._remotes: list[dict[str, Any]] = []
        self._found: list[dict[str, Any]] = []
        self._lent: list[str] = []  # devices of workers that the loaded model uses
        self._model = ""

    def look(self) -> None:
        """Ask for the servers and workers, and whether they answer."""
        self._api.ask("GET", REMOTES, None, self._on_remotes, self.server.say)
        self._api.ask("GET", WORKERS, None, self._on_workers, self.worker.say)

    def show_state(self, found: dict[str, Any]) -> None:
        """Show which workers the loaded model uses."""
        self._lent = [str(device) for device in found.get("devices") or () if WORKER in str(device)]
        self._model = str(found.get("model") or "")
        self._show_workers()

    def _on_remotes(self, found: dict[str, Any]) -> None:
        self._remotes = list(found.get("data") or ())
        self.remotes.show_rows([_remote_row(one) for one in self._remotes])
        self._watch.look_at_models()

    def _on_wanted(self, name: str, action: str) -> None:
        path = f"{REMOTES}/{quote(name, safe='')}"
        if action == tr("Remove"):
            ask_first(
                self,
                tr("Remove {name}?", name=name),
                tr("Its models leave the list, and its key is forgotten. Nothing changes on that server."),
                action,
                lambda: self._api.ask("DELETE", path, None, lambda found: self.look(), self.server.say),
            )
        else:
            self.server.say("")
            rows = [_remote_row(one, is_tried=one.get("name") == name) for one in self._remotes]
            self.remotes.show_rows(rows)
            self._api.ask("POST", f"{path}/test", {}, lambda found: self.look(), self._on_not_tried)

    def _on_not_tried(self, sentence: str) -> None:
        self.server.say(sentence)
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

    def _on_worker_wanted(self, address: str, action: str) -> None:
        if action == tr("Remove"):
            place = quote(address.removeprefix(WORKER), safe="")
            path, done = f"{WORKERS}/{place}", lambda found: self.look()
            ask_first(
                self,
                tr("Remove {name}?", name=address),
                tr("Its token is forgotten. Nothing changes on that machine."),
                action,
                lambda: self._api.ask("DELETE", path, None, done, self.worker.say),
            )
        else:
            self.worker.say("")
            self._show_workers(tried=address)
            self.look()


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
    line = dotted(*devices, link, use)
    address = str(one["address"])
    return ActionRow(address, address, line, (tr("Try again"), tr("Remove")), problem=str(one.get("problem") or ""))


def _remote_row(one: dict[str, Any], *, is_tried: bool = False) -> ActionRow:
    if is_tried:
        return ActionRow(str(one["name"]), str(one["name"]), TRYING)
    models = one.get("models") or ()
    line = dotted(str(one.get("url")), tr("1 model") if len(models) == 1 else tr("{n:,} models", n=len(models)))
    return ActionRow(
        str(one["name"]), str(one["name"]), line, (tr("Try again"), tr("Remove")), problem=str(one.get("problem") or "")
    )
