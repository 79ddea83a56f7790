"""Draws the window in all its states into a folder: ``python -m tools.screenshots FOLDER [NAME...]``."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QLayout, QMenu

from app.client.discovery import announce
from app.client.server_process import new_api_key, serve_command, serve_environment, serve_folder
from core.values.snapshot import Bottleneck, Snapshot
from models.catalog.catalog import STARTER_FOLDER
from models.formatting.program import IN_WINDOW
from models.library import requests as ask
from models.library.values import Choosing, SettingText
from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe, big_vocab_ember, cached, cached_file
from tools.model_factory.head_factory import eagle_head
from tools.stand_ins.fake_openai import TIMINGS, FakeServer
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import KEY, LibraryServer
from tools.stand_ins.probed_machine import remember_probe
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.storage.ids import now_ms
from ui.client.api import Api
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status, Timings
from ui.client.private_server import PrivateServer
from ui.client.speeds import Speed
from ui.library.library_page import LibraryPage
from ui.library.quantise_dialog import QuantiseDialog
from ui.library.settings.settings_dialog import SettingsDialog
from ui.theme.appearance import Appearance, ThemeChoice
from ui.window.main_window import MainWindow
from ui.window.rail import PAGES
from ui.window.server_link import ServerLink

REPLY = """A **model** predicts the next token from all the tokens before it. That costs one read of every weight, \
so the speed is set by how fast the memory is:

1. *Prefill* reads the whole prompt at once.
2. *Decode* then writes one token at a time.

```python
def tokens_per_second(bandwidth: float, model_bytes: float) -> float:
    \"\"\"The most that plain decoding can reach.\"\"\"
    return bandwidth / model_bytes  # one read of all weights for each token
```

| Machine | Bandwidth | 4 GB model |
|:--|--:|--:|
| Laptop, DDR5 | 80 GB/s | 20 tok/s |
| Desktop GPU | 1,000 GB/s | 250 tok/s |

> Drafting several tokens and checking them in *one* read is how `slipstream` gets past that limit.
"""
HARD = (
    """Supercalifragilisticexpialidocious"""
    + "abcdefghij" * 22
    + """

مرحبا بالعالم، هذا نص من اليمين إلى اليسار. שלום עולם.

你好，世界。こんにちは世界。안녕하세요 🦊🔥👩‍👩‍👧‍👦

```text
"""
    + "a line that is much too long for the window " * 6
    + """
```

- one
  - two
    - three with `code` and a [link](https://example.org)

1. first

   ```sh
   echo "a block inside a list"
   ```

2. second
"""
)
TITLES = (
    ("How fast can a model be?", 0), ("A fox and the moon", 0), ("Rename variables in parser.py", 0),
    ("Brücke oder Tunnel?", 1), ("Weekly plan", 1), ("Explain KV cache quantisation to a newcomer, with numbers", 3),
    ("JSON to CSV", 5), ("Capital cities", 12), ("Birthday speech", 40), ("Regex for dates", 41),
)  # fmt: skip


class Stage:
    """A window with a fake server, and what is needed to put it into a state."""

    def __init__(self, application: QApplication, out: Path, choice: ThemeChoice) -> None:
        self.application, self.out, self.suffix = application, out, f"-{choice.value}"
        self.server = FakeServer()
        self.hub = HubServer()
        os.environ["HF_ENDPOINT"] = self.hub.address
        self.folder = Path(tempfile.mkdtemp())
        self.appearance = Appearance(application, choice)
        self.api = Api()
        os.environ["SLIPSTREAM_HOME"] = str(self.folder)
        self.library_server, library = LibraryServer(), Api()
        library.connect_to(self.library_server.url, KEY)
        self.window = MainWindow(
            self.api, self.appearance, self.folder / "chats.db", self.folder / "window.ini", library
        )
        self.appearance.choose(choice)
        self.window.resize(1180, 780)
        self.window.show()

    def connect(self) -> None:
        self.api.connect_to(self.server.url, None)
        self.window.watch.start()
        self.wait(0.25)

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.application.processEvents()
            time.sleep(0.002)

    def until(self, is_so: Callable[..., object], seconds: float = 15.0) -> None:
        until = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < until
            self.wait(0.02)
        self.wait(0.1)

    def say(self, text: str, wait: float = 0.6) -> None:
        self.window.page.composer.set_text(text)
        QTest.keyClick(self.window.page.composer.field, Qt.Key.Key_Return)
        self.wait(wait)

    def history(self) -> None:
        now = now_ms()
        for number, (title, days) in enumerate(TITLES):
            at = now - days * 86_400_000 - number * 60_000
            self.window.archive.save_chat(Chat(number + 1, title, at, at))
        self.window.desk.list_soon()
        self.wait(0.2)

    def open_old(self, reply: str, asked: str = "How fast can a local model be on my machine?", **more: object) -> None:
        timings = Timings.from_object(TIMINGS)
        archive = self.window.archive
        archive.save_chat(Chat(1, TITLES[0][0], now_ms(), now_ms(), ChatSettings(), 12))
        archive.save_message(Message(11, 1, None, Role.USER, asked, now_ms()))
        fields = {"status": Status.DONE, "timings": timings, "finish_reason": "stop", **more}
        archive.save_message(Message(12, 1, 11, Role.ASSISTANT, reply, now_ms(), **fields))  # type: ignore[arg-type]
        self.window.desk.open(1)
        self.window.desk.list_soon()
        self.wait(0.7)

    def shoot(self, name: str) -> None:
        self.wait(0.1)
        self.window.grab().save(str(self.out / f"{name}{self.suffix}.png"))

    def close(self) -> None:
        self.window.close()
        self.library_server.close()
        self.server.stop()
        self.hub.stop()
        self.wait(0.05)


def starting(stage: Stage) -> None:
    stage.shoot("starting")


def empty(stage: Stage) -> None:
    stage.connect()
    stage.shoot("empty")


def done(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.shoot("done")


WORKING = asdict(
    Snapshot(
        is_idle=False, decode_rate=38.4, bytes_per_second=12.9e9, peak=15.3e9, peak_share=0.84,
        bound=Bottleneck.BANDWIDTH,
        n_active=3, n_waiting=0, n_cells_used=1_730, n_cells=4_096, n_drafted=80, n_accepted=62, speedup=1.71,
        drafted_at=(40, 30, 10), accepted_at=(34, 22, 6),
    )
)  # fmt: skip


def gauges(stage: Stage) -> None:
    """The bar at work below each page, in three widths."""
    stage.server.snapshot = WORKING
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    stage.until(lambda: page.models.list.rows.rowCount() > 1)
    page.models.list.choose("ember-q8_0")
    for name, size in (("", (1180, 780)), ("-small", (640, 480)), ("-tiny", (480, 360))):
        stage.window.resize(*size)
        for shown in PAGES:
            stage.window.show_page(shown)
            stage.wait(0.3)
            stage.shoot(f"gauges{name}-{shown}")
    stage.server.snapshot, stage.server.last_reply = None, WORKING
    for name, size in (("", (1180, 780)), ("-tiny", (480, 360))):
        stage.window.resize(*size)
        stage.wait(0.4)
        stage.shoot(f"gauges{name}-last")
    stage.window.resize_text(150)
    stage.shoot("gauges-tiny-last-150")


def panel(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.window.toggle_panel()
    stage.wait(0.1)
    stage.shoot("panel")


def streaming(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.server.pieces, stage.server.delay = [REPLY[i : i + 4] for i in range(0, len(REPLY), 4)], 0.012
    stage.say("How fast can a local model be on my machine?", wait=1.4)
    stage.shoot("streaming")


THOUGHTS = """The user wants to know what bounds the speed. Let me think of one decoded token:

- every weight is read once, so **bytes / bandwidth** is the least time
- the KV cache is read too, but that is small at the beginning of a chat

So I should name the memory first, and then what drafting does about it."""


def thinking(stage: Stage) -> None:
    """Thoughts as they come, folded; then unfolded above the reply."""
    stage.connect()
    stage.history()
    stage.server.thoughts = [THOUGHTS[i : i + 4] for i in range(0, len(THOUGHTS), 4)]
    stage.server.pieces, stage.server.delay = [REPLY[i : i + 8] for i in range(0, 400, 8)], 0.012
    stage.say("How fast can a local model be on my machine?", wait=0.9)
    stage.shoot("thinking")
    stage.until(lambda: not stage.window.desk.current.is_running)
    view = stage.window.page.transcript.view_of(stage.window.desk.current.tree.path[-1].id)
    assert isinstance(view, AssistantMessage)
    view.thoughts.head.click()
    stage.wait(0.3)
    stage.shoot("thoughts")


def waiting(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.server.delay = 2.0
    stage.say("A long prompt", wait=1.2)
    stage.shoot("waiting")


def problem(stage: Stage) -> None:
    stage.connect()
    stage.history()
    message = (
        "The prompt has 2,113 tokens, which exceeds the available context size of 1,024. "
        "Shorten the prompt or load the model with a larger context."
    )
    stage.server.error = (400, {"error": {"message": message, "type": "x", "param": None, "code": None}})
    stage.say("Please read this very long text: " + "words and more words, " * 40)
    stage.shoot("error")
    stage.server.error = None
    stage.server.pieces, stage.server.error_in_stream = ["Once upon a time", " there was"], "The engine stopped."
    stage.say("Tell me a story about a fox.")
    stage.shoot("died")


def server_gone(stage: Stage) -> None:
    stage.history()
    stage.open_old(REPLY)
    stage.window.watch.stop(is_gone=True)
    reason = "The server that runs the models cannot start: slipstream: Shared library 'llama' was not found"
    stage.window.page.server_banner.say(reason, "danger", ("Try again", lambda: None), can_close=False)
    stage.window.page.storage_banner.say("Chats cannot be saved in /home/me/.local/share: the folder cannot be "
                                         "written to. Chats now live in memory only and are gone when you close the "
                                         "window.")  # fmt: skip
    stage.shoot("banners")


def loading(stage: Stage) -> None:
    stage.server.phase, stage.server.progress = "loading", 0.4
    stage.connect()
    stage.history()
    stage.shoot("loading")


def search(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.window.history.search.setText("token")
    stage.wait(0.4)
    stage.shoot("search")
    stage.window.history.deleted.emit(1)
    stage.window.history.search.clear()
    stage.wait(0.4)
    stage.shoot("deleted")


def hard(stage: Stage) -> None:
    stage.connect()
    stage.open_old(HARD, asked="An unbroken word: " + "x" * 300 + "\nand 你好 🦊")
    stage.window.page.transcript.verticalScrollBar().setValue(0)
    stage.shoot("hard")


def small(stage: Stage) -> None:
    stage.window.resize(640, 480)
    stage.connect()
    stage.shoot("small-empty")
    stage.open_old(REPLY)
    stage.shoot("small")
    stage.window.toggle_sidebar()
    stage.shoot("small-chats")
    stage.window.toggle_panel()
    stage.shoot("small-panel")


def text_sizes(stage: Stage) -> None:
    """The smallest and the largest text in a small window, and the largest one in the usual window."""
    stage.server.snapshot = WORKING
    stage.connect()
    stage.history()
    usual = stage.window.size()
    stage.window.resize(720, 480)
    for percent in (80, 150):
        stage.window.resize_text(percent)
        stage.window.desk.new_chat()
        stage.shoot(f"text-{percent}-empty")
        stage.open_old(REPLY)
        stage.shoot(f"text-{percent}-chat")
        stage.window.toggle_panel()
        stage.shoot(f"text-{percent}-panel")
        stage.window.toggle_sidebar()
        stage.shoot(f"text-{percent}-chats")
        stage.window.toggle_sidebar()
        stage.window.show_page("library")
        page = stage.window.library
        assert page is not None
        stage.until(lambda page=page: page.models.list.rows.rowCount() > 1)
        stage.shoot(f"text-{percent}-library")
        page.models.list.choose("ember-q8_0")
        stage.wait(0.4)
        page.models.list.opened.emit("ember-q8_0")
        stage.wait(0.4)
        stage.shoot(f"text-{percent}-model")
        page.models.details.settings.click()
        dialog = _dialog(stage, SettingsDialog)
        stage.until(dialog.form.isEnabled)
        _shoot_dialog(stage, dialog, f"text-{percent}-settings")
        dialog.reject()
        stage.window.show_page("chat")
    stage.window.resize(usual)
    stage.shoot("text-150")
    stage.window.show_page("library")
    stage.wait(0.3)
    stage.shoot("text-150-library-wide")
    stage.window.show_page("chat")
    stage.window._show_looks()
    menu = stage.window.findChild(QMenu)
    sizes = menu.actions()[-1].menu()  # type: ignore[union-attr]
    for number, shown in enumerate((menu, sizes)):
        shown.grab().save(str(stage.out / f"text-menu-{number}{stage.suffix}.png"))  # type: ignore[union-attr]
    menu.close()  # type: ignore[union-attr]


def readme(stage: Stage) -> None:
    """Talk to a model of sixty layers and its draft through the real server: while it answers, and after."""
    models = stage.folder / "models"
    models.mkdir()
    (models / "deep-ember-q8_0.gguf").symlink_to(cached(Recipe(n_layers=60)))
    key = new_api_key()
    command = serve_command(["--model", str(models / "deep-ember-q8_0.gguf"), "--draft", str(EMBER_DRAFT)])
    server = PrivateServer(command, serve_environment(key), str(serve_folder()))
    link = ServerLink(server, key, stage.api, stage.window.watch, stage.window.page.server_banner)
    link.start()
    stage.history()
    while stage.window.watch.state.phase != "ready":
        stage.wait(0.1)
    desk = stage.window.desk
    stage.say("What is speculative decoding?")
    stage.until(lambda: not desk.current.is_running)
    stage.say("Tell me a story about a fox.", wait=0.5)
    stage.shoot("readme-live")
    stage.until(lambda: not desk.current.is_running)
    stage.shoot("readme")
    server.stop()


def editing(stage: Stage) -> None:
    stage.connect()
    stage.open_old("Here is a short reply.", status=Status.STOPPED, timings=None, finish_reason=None)
    view = stage.window.page.transcript.view_of(11)
    view.edit.click()  # type: ignore[union-attr]
    stage.shoot("editing")


def speeds(stage: Stage) -> None:
    """The card of speeds, a marked spark reply, and a deep one at work."""
    stage.connect()
    stage.history()
    stage.server.pieces = ["Once upon a time there was a fox."]
    picker = stage.window.page.composer.speed
    picker.card.chosen.emit(Speed.SPARK)
    stage.say("Tell me a story about a fox.")
    stage.shoot("spark")
    picker.open()
    stage.wait(0.1)
    picker.card.grab().save(str(stage.out / f"speeds{stage.suffix}.png"))
    picker.card.hide()
    stage.server.spark, stage.server.why_no_spark = None, "No small model is paired with this one."
    stage.window.watch.look()
    stage.wait(0.3)
    picker.open()
    stage.wait(0.1)
    picker.card.grab().save(str(stage.out / f"speeds-no-spark{stage.suffix}.png"))
    picker.card.hide()
    stage.server.stages = [
        {"stage": "drafting", "drafts": 4, "drafts_done": 0, "tokens": 0, "seconds": 0.1},
        {"stage": "distilling", "drafts": 4, "drafts_done": 4, "tokens": 512, "seconds": 2.1},
    ]
    stage.server.delay = 0.6
    picker.card.chosen.emit(Speed.DEEP)
    stage.say("A hard question", wait=0.9)
    stage.shoot("deep")


def fill_hub(hub: HubServer) -> None:
    starter = STARTER_FOLDER
    ember, small = ((starter / name).read_bytes() for name in ("ember-q8_0.gguf", "ember-draft-q8_0.gguf"))
    long = "bartowski/" + "A-Very-Long-Name-Of-A-Merged-Model-" * 3 + "GGUF"
    gated = "meta/Llama-3.3-70B-Instruct-GGUF"
    for at, name in enumerate(("Qwen/Qwen3-8B-GGUF", gated, "acme/kitsune-GGUF", long)):
        stem = name.rpartition("/")[2].removesuffix("-GGUF").replace("kitsune", "狐の物語")
        kinds = {"Q2_K": 4, "Q4_K_M": 6, "Q5_K_M": 10, "Q6_K": 12, "mmproj-F16": 2}
        files = {
            f"{stem}-{kind}.gguf": (small + bytes(len(small)))[: len(small) * size // 10]
            for kind, size in kinds.items()
        }
        files[f"{stem}-Q8_0.gguf"] = ember
        asks = "manual" if name == gated else False
        hub.add(name, files, gated=asks, downloads=1_234_567 // (at + 1), likes=4_321 // (at + 1))


def library(stage: Stage) -> None:
    """The library in all its states, with the real process and a hub of its own."""
    hub = stage.hub
    fill_hub(hub)
    folder = stage.folder / "data" / "models"
    (folder / "Qwen").mkdir(parents=True)
    ember = STARTER_FOLDER / "ember-q8_0.gguf"
    for name in ("Qwen/Qwen3-8B-Q4_K_M", "狐の物語-Q8_0", "a-" + "very-long-name-" * 6 + "Q8_0"):
        (folder / f"{name}.gguf").write_bytes(ember.read_bytes())
    (folder / "cut-short-Q4_0.gguf").write_bytes(ember.read_bytes()[:90_000])
    stage.connect()
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    stage.shoot("library-loading")
    stage.until(lambda: page.models.list.rows.rowCount() > 5)
    stage.shoot("library-list")
    page.models.list.choose("ember-q8_0")
    stage.wait(0.4)
    stage.shoot("library-details")
    _pairs(stage, page)
    page.models.list.choose("cut-short-Q4_0")
    stage.wait(0.3)
    stage.shoot("library-broken")
    page.models.filter.setText("nothing like this")
    stage.wait(0.1)
    stage.shoot("library-no-match")
    page.models.filter.clear()
    _find(stage, page, hub)
    _small_library(stage, page)
    _library_troubles(stage, page, hub)


def library_keeps(stage: Stage) -> None:
    """What is said of a model: its settings name the draft, its file was changed, its test waits for a reply."""
    repo = "Qwen/Qwen3-8B-GGUF"
    starter = STARTER_FOLDER
    content = (starter / "ember-q8_0.gguf").read_bytes()
    quants = {kind: cached(Recipe(8, kind)).read_bytes() for kind in ("Q4_0", "Q8_0", "F16")}
    stage.hub.add(repo, {f"Qwen3-8B-{kind}.gguf": quants[kind] for kind in quants} | {"Qwen3-8B-Q6_K.gguf": content})
    remember_probe(stage.folder / "cache")
    stage.connect()
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    _settings_name_the_draft(stage, page)
    _test_waits(stage, page)
    _changed_files(stage, page, repo)
    _recommended_speed(stage, page, repo)


def _settings_name_the_draft(stage: Stage, page: LibraryPage) -> None:
    details, card = page.models.details, page.models.details.partners
    stage.until(lambda: page.models.list.rows.rowCount() > 1)
    page.models.list.choose("ember-q8_0")
    stage.until(lambda: card.shown is not None and details.machine.facts.isVisible())
    for draft, name in (("none", "none"), ("ember-draft-q8_0", "named")):
        page._link.ask(ask.ChangeSettings("ember-q8_0", (SettingText("draft", draft),)), lambda sheet: details.look())
        stage.until(lambda draft=draft: card.shown is not None and (card.shown.used or "none") == draft)
        _shoot_at(stage, page, f"keeps-settings-{name}")
    card.choose(Choosing.AUTOMATIC)
    stage.until(lambda: card.shown is not None and card.shown.choosing is Choosing.AUTOMATIC)
    _shoot_at(stage, page, "keeps-settings-reset")


def _test_waits(stage: Stage, page: LibraryPage) -> None:
    card = page.models.details.partners
    stage.server.n_active = 1
    announce(host="127.0.0.1", port=int(stage.server.url.rpartition(":")[2]), api_key=None, model=None)
    card.test.click()
    stage.until(card.wait.isVisible)
    _shoot_at(stage, page, "keeps-test-waits")
    card.wait.button.click()
    stage.until(lambda: not card.bar.isVisible() and not card.wait.isVisible(), 90)
    stage.wait(0.5)
    _shoot_at(stage, page, "keeps-test-disturbed")
    stage.server.n_active = 0


def _changed_files(stage: Stage, page: LibraryPage, repo: str) -> None:
    page._link.ask(ask.StartDownload(repo, "Qwen3-8B-Q6_K.gguf"))
    stage.until(lambda: any(one.phase == "done" for one in page._link.downloads), 30)
    place = stage.folder / "data" / "models" / repo / "Qwen3-8B-Q6_K.gguf"
    with open(place, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    page.models.show_model("Qwen3-8B-Q6_K")
    stage.until(page.models.details.mending.isVisible)
    _shoot_at(stage, page, "keeps-changed")
    stage.hub.fault("Qwen3-8B-Q6_K.gguf", Fault(bytes_per_second=2e5))
    page.models.details.mending.button.click()
    stage.until(lambda: "Show" in page.models.details.mending.button.text())
    _shoot_at(stage, page, "keeps-mending")
    page.show_tab("Downloads")
    stage.wait(0.8)
    stage.shoot("keeps-mending-downloads")
    page.show_tab("On this machine")
    stage.hub.heal()
    stage.until(lambda: not page.models.details.mending.isVisible(), 30)
    with open(place, "r+b") as file:
        file.truncate(100_000)
    page.models.look()
    stage.until(page.models.details.mending.isVisible)
    _shoot_at(stage, page, "keeps-cut")


def _recommended_speed(stage: Stage, page: LibraryPage, repo: str) -> None:
    finder = page.finder
    page.show_tab("Find")
    finder.field.setText("Qwen")
    stage.until(lambda: finder.list.rows.rowCount() == 1)
    finder.list.choose(repo)
    stage.until(lambda: finder.pane.facts.isVisible() and "Recommended" in finder.pane.recommendation.text(), 30)
    _shoot_at(stage, page, "keeps-recommended")


def draft_along(stage: Stage) -> None:
    """A model of the Hub with what would draft for it."""
    repo, n_vocab = "acme/Bear-90M-GGUF", 5_000
    model = cached_file("bear.gguf", lambda path: big_vocab_ember(path, n_vocab, n_layers=30))
    head = cached_file("bear-head.gguf", lambda path: eagle_head(path, n_vocab=n_vocab))
    stage.hub.add(repo, {"Bear-90M-Q8_0.gguf": model.read_bytes(), "eagle3-Bear-90M.gguf": head.read_bytes()})
    remember_probe(stage.folder / "cache")
    stage.connect()
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    page.show_tab("Find")
    pane = page.finder.pane
    page.finder.field.setText("Bear")
    stage.until(lambda: page.finder.list.rows.rowCount() == 1)
    page.finder.list.choose(repo)
    stage.until(pane.draft.isVisible, 30)
    _shoot_at(stage, page, "draft-offered")
    pane.draft.click()
    _shoot_at(stage, page, "draft-ticked")


def _shoot_at(stage: Stage, page: LibraryPage, name: str) -> None:
    """Draw it in the usual window and in a small one."""
    stage.wait(0.2)
    stage.shoot(name)
    stage.window.resize(720, 480)
    for panes in (page.models.panes, page.finder.panes):
        panes.show_details(True, by_hand=True)
    stage.wait(0.2)
    bar = page.models.details.verticalScrollBar()
    stage.shoot(f"{name}-small")
    if bar.maximum():
        card = page.models.details.partners
        page.models.details.ensureWidgetVisible(card if card.isVisible() else page.models.details.mending)
        stage.shoot(f"{name}-small-below")
        bar.setValue(0)
    stage.window.resize(1180, 780)
    stage.wait(0.2)


def model_dialogs(stage: Stage) -> None:
    """What can be done with one model: its settings, and smaller copies of it."""
    stage.connect()
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    stage.until(lambda: page.models.list.rows.rowCount() > 1)
    page.models.list.choose("ember-q8_0")
    stage.wait(0.4)
    stage.shoot("model-actions")
    page.models.details.settings.click()
    dialog = _dialog(stage, SettingsDialog)
    stage.until(dialog.form.isEnabled)
    _shoot_dialog(stage, dialog, "model-settings")
    for name, text in (("ctx", "8"), ("threads", "4"), ("temperature", "hot")):
        dialog.rows[name].field.setFocus()
        QTest.keyClicks(dialog.rows[name].field, text)
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    stage.wait(0.5)
    _shoot_dialog(stage, dialog, "model-settings-error")
    dialog.area.ensureWidgetVisible(dialog.rows["presence_penalty"])
    _shoot_dialog(stage, dialog, "model-settings-end")
    dialog.reject()
    _quantise_dialog(stage, page)


def _quantise_dialog(stage: Stage, page: LibraryPage) -> None:
    folder = stage.folder / "data" / "models"
    folder.mkdir(parents=True)
    (folder / "fox-F16.gguf").write_bytes(cached(Recipe(tensor_type="F16", n_layers=64)).read_bytes())
    page.models.details.smaller.click()
    dialog = _dialog(stage, QuantiseDialog)
    stage.until(lambda: dialog.offer)
    _shoot_dialog(stage, dialog, "quantise-again")
    dialog.anyway.click()
    _shoot_dialog(stage, dialog, "quantise-anyway")
    dialog.reject()
    page.models.show_model("fox-F16")
    stage.until(lambda: page.models.list.key == "fox-F16")
    stage.wait(0.2)
    page.models.details.smaller.click()
    dialog = _dialog(stage, QuantiseDialog)
    stage.until(lambda: dialog.offer)
    _shoot_dialog(stage, dialog, "quantise")
    dialog.name.setText("../fox")
    dialog.make.click()
    stage.until(dialog.problem.isVisible)
    _shoot_dialog(stage, dialog, "quantise-error")
    dialog.name.clear()
    dialog.make.click()
    stage.until(lambda: dialog.row.quantising.progress.eta is not None and dialog.row.bar.value() > 300)
    _shoot_dialog(stage, dialog, "quantise-running")
    page.show_tab("Downloads")
    stage.shoot("quantise-downloads")
    stage.until(lambda: dialog.row.quantising.is_over, 60)
    _shoot_dialog(stage, dialog, "quantise-done")
    dialog.show_it.click()
    stage.until(lambda: page.models.list.key == "fox-Q4_K_M")


def _dialog(stage: Stage, kind: type[Any]) -> Any:
    stage.until(lambda: stage.window.findChildren(kind))
    return stage.window.findChildren(kind)[-1]


def _shoot_dialog(stage: Stage, dialog: QDialog, name: str) -> None:
    stage.wait(0.2)
    dialog.grab().save(str(stage.out / f"{name}{stage.suffix}.png"))


def _pairs(stage: Stage, page: LibraryPage) -> None:
    card = page.models.details.partners
    stage.until(lambda: card.shown is not None and page.models.details.machine.facts.isVisible())
    stage.shoot("library-partners")
    card.test.click()
    stage.until(lambda: card.stage.text().startswith("Measuring"), 60)
    stage.shoot("library-pair-test")
    stage.until(lambda: not card.bar.isVisible(), 90)
    stage.wait(0.5)
    stage.shoot("library-pair-tested")
    page.models.list.choose("ember-draft-q8_0")
    stage.until(lambda: card.offers.count() and "Looking" not in _first_words(card.offers), 40)
    stage.shoot("library-no-partner")


def _find(stage: Stage, page: LibraryPage, hub: HubServer) -> None:
    finder = page.finder
    page.show_tab("Find")
    stage.until(lambda: finder.list.rows.rowCount() > 5)
    stage.shoot("library-find")
    finder.field.setText("GGUF")
    stage.until(lambda: finder.list.rows.rowCount() == 4)
    stage.shoot("library-results")
    finder.list.choose("Qwen/Qwen3-8B-GGUF")
    stage.until(lambda: finder.pane.repository is not None)
    stage.until(lambda: "Which" not in finder.pane.recommendation.text(), 30)
    stage.wait(0.5)
    stage.shoot("library-recommended")
    finder.pane.list.choose("Qwen3-8B-Q8_0.gguf")
    stage.until(finder.pane.facts.isVisible)
    stage.shoot("library-repository")
    hub.fault("Qwen3-8B-Q8_0.gguf", Fault(bytes_per_second=3e5))
    finder.pane.download.click()
    finder.list.choose("acme/kitsune-GGUF")
    stage.until(lambda: finder.pane.repository is not None and "acme" in finder.pane.repository.repo_id)
    finder.pane.list.choose("狐の物語-Q6_K.gguf")
    finder.pane.download.click()
    stage.wait(3.0)
    page.show_tab("Downloads")
    stage.wait(0.5)
    stage.shoot("library-downloads")


def _small_library(stage: Stage, page: LibraryPage) -> None:
    stage.window.resize(720, 480)
    stage.shoot("library-small-downloads")
    page.show_tab("Find")
    stage.shoot("library-small-repository")
    page.finder.panes.back_button.click()
    stage.shoot("library-small-results")
    page.show_tab("On this machine")
    stage.wait(0.5)
    stage.shoot("library-small-list")
    stage.window.resize(480, 360)
    stage.shoot("library-tiny-list")
    stage.window.resize(1180, 780)


def _library_troubles(stage: Stage, page: LibraryPage, hub: HubServer) -> None:
    page.show_tab("Find")
    hub.stop()
    page.finder.field.setText("llama")
    stage.until(lambda: "reached" in page.finder.state.title.text(), 40)
    stage.shoot("library-offline")
    page.show_settings()
    stage.wait(0.3)
    for dialog in stage.window.findChildren(QDialog):
        dialog.grab().save(str(stage.out / f"library-settings{stage.suffix}.png"))
        dialog.close()
    page.downloads.show_downloads(())
    page.show_tab("Downloads")
    stage.shoot("library-no-downloads")


STATES: tuple[Callable[[Stage], None], ...] = (
    starting, empty, done, gauges, panel, streaming, thinking, waiting, problem, server_gone, loading, search, hard,
    small, text_sizes, editing, speeds, library, library_keeps, draft_along, model_dialogs, readme,
)  # fmt: skip


def _first_words(layout: QLayout) -> str:
    first = layout.itemAt(0)
    label = first.widget() if first is not None else None
    return label.text() if isinstance(label, QLabel) else ""


def main() -> None:
    out, wanted = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    os.environ[IN_WINDOW] = "1"  # sentences name buttons, as in the app
    application = QApplication([])
    for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK):
        for state in STATES:
            if not wanted or state.__name__ in wanted:
                stage = Stage(application, out, choice)
                state(stage)
                stage.close()


if __name__ == "__main__":
    main()
