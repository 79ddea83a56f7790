"""Draws pictures of the window: ``python -m tools.screenshots`` draws those in docs/screenshots.

``python -m tools.screenshots FOLDER [NAME...]`` draws all states, or those named, into a folder. Into
docs/screenshots it copies only the pictures that the page there shows. With ``QT_SCALE_FACTOR=2`` in the environment
they are those of a screen of twice the resolution, and their names end in ``-2x``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

os.environ["QT_QPA_PLATFORM"] = "offscreen"
import numpy as np
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QDragLeaveEvent, QDragMoveEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QLayout

from app.client.discovery import enlist
from app.client.server_process import new_api_key, serve_command, serve_environment
from core.values.messages import Bottleneck, Snapshot
from models.catalog.catalog import STARTER_FOLDER
from models.download.progress import DownloadPhase, DownloadProgress
from models.formatting.program import IN_WINDOW, PROGRAM_FOLDER
from models.library import requests as ask
from models.library.values import Choosing, Download, MoveStep, SettingText
from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe, big_vocab_ember, cached, cached_file
from tools.model_factory.head_factory import eagle_head
from tools.stand_ins.dragging import place
from tools.stand_ins.fake_openai import TIMINGS, FakeServer
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import KEY, LibraryServer
from tools.stand_ins.probed_machine import remember_probe
from ui.chat.attachments.pages_dialog import PagesDialog
from ui.chat.messages.assistant_message import AssistantMessage
from ui.chat.prompts.prompt_form import PromptForm
from ui.chat.prompts.prompts_dialog import PromptsDialog
from ui.chat.race import RaceDialog
from ui.chat.storage.ids import now_ms
from ui.chat.tools.tool_box import ToolServer
from ui.chat.tools.tools_dialog import ToolsDialog
from ui.client.api import Api
from ui.client.chat_records import Chat, ChatSettings, Message, Prompt, Role, Status, Timings
from ui.client.private_server import PrivateServer
from ui.client.speeds import Speed
from ui.commands.shortcuts_dialog import ShortcutsDialog
from ui.library.library_page import LibraryPage
from ui.library.quantise_dialog import QuantiseDialog
from ui.library.settings.settings_dialog import SettingsDialog
from ui.speed.speed_page import PLOTS
from ui.theme import appearance
from ui.theme.appearance import Appearance, ThemeChoice
from ui.theme.tokens import CONTRAST_DARK, CONTRAST_LIGHT
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


LOOK_SECONDS = 0.02  # between two looks at what is waited for
# Pages name it: it is the same in each picture.
PLACE = Path(tempfile.gettempdir()) / "slipstream"


class Stage:
    """A window with a fake server, and methods that bring it into a state."""

    def __init__(self, application: QApplication, out: Path, choice: ThemeChoice) -> None:
        scale = application.devicePixelRatio()
        self.application, self.out = application, out
        self.suffix = f"-{choice.value}" if scale == 1.0 else f"-{scale:g}x-{choice.value}"
        self.server = FakeServer()
        self.hub = HubServer()
        os.environ["HF_ENDPOINT"] = self.hub.address
        self.folder = PLACE
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.appearance = Appearance(application, choice)
        self.api = Api()
        os.environ["SLIPSTREAM_HOME"] = str(self.folder)
        self.library_server, library = LibraryServer(), Api()
        library.connect_to(self.library_server.url, KEY)
        self.window = MainWindow(
            self.api, self.appearance, self.folder / "chats.db", self.folder / "window.ini", library
        )
        self.window.choose_theme(choice)
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

    def until(self, is_so: Callable[..., object], seconds: float = 60.0) -> None:
        # Looks are counted, and not time: a busy machine gives fewer of them, and one that stops this for a while none.
        n_left = round(seconds / LOOK_SECONDS)
        while not is_so():
            if not n_left:
                raise TimeoutError(f"It never came true: {is_so}")
            n_left -= 1
            self.wait(LOOK_SECONDS)
        self.wait(0.1)

    def say(self, text: str, wait: float = 0.6) -> None:
        self.window.page.composer.set_text(text)
        QTest.keyClick(self.window.page.composer.field, Qt.Key.Key_Return)
        self.wait(wait)

    def history(self) -> None:
        now = now_ms()
        for number, (title, days) in enumerate(TITLES):
            at = now - days * 86_400_000 - number * 60_000
            self.window.chats.archive.save_chat(Chat(number + 1, title, at, at))
        self.window.desk.list_soon()
        self.wait(0.2)

    def open_old(self, reply: str, asked: str = "How fast can a local model be on my machine?", **more: object) -> None:
        timings = Timings.from_object(TIMINGS)
        archive = self.window.chats.archive
        archive.save_chat(Chat(1, TITLES[0][0], now_ms(), now_ms(), ChatSettings(), 12))
        archive.save_message(Message(11, 1, None, Role.USER, asked, now_ms()))
        fields = {"status": Status.DONE, "timings": timings, "finish_reason": "stop", **more}
        archive.save_message(Message(12, 1, 11, Role.ASSISTANT, reply, now_ms(), **fields))  # type: ignore[arg-type]  # fields of a message
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


def measuring(stage: Stage) -> None:
    """The first start, while the machine is measured."""
    stage.connect()
    stage.window.chats.newcomer.show()
    stage.shoot("first-start-measuring")


def first_start(stage: Stage) -> None:
    """The first start, the machine measured: three models are offered, one is downloaded, another cannot be."""
    remember_probe(stage.folder / "cache")
    stage.connect()
    window = stage.window
    window.chats.newcomer.show()
    card = window.chats.newcomer.card
    assert card is not None
    stage.until(lambda: card.offers[0].row is not None, 60)
    stage.shoot("first-start")
    for name, size in (("low", (800, 600)), ("narrow", (480, 720)), ("large", (1920, 1200))):
        window.resize(*size)
        stage.shoot(f"first-start-{name}")
    window.resize(1180, 780)
    window.resize_text(150)
    stage.shoot("first-start-150")
    window.resize_text(100)
    row = card.offers[1].row or card.offers[0].row
    assert row is not None
    at_work = DownloadProgress(DownloadPhase.DOWNLOADING, row.n_bytes * 3 // 8, row.n_bytes, 48e6, 91.0)
    stage.window.link.downloads_changed.emit((Download(1, row.repo_id, row.quantisation, at_work),))
    card.offers[0].show_problem("The Hub cannot be reached. Check the connection to the internet, then try again.")
    stage.shoot("first-start-download")


FOUND = (
    ("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", 8_030_000_000, "llama", ("Q4_K_M", "Q8_0"), 2_400_000),
    ("unsloth/Qwen3-30B-A3B-GGUF", 30_500_000_000, "qwen3moe", ("Q4_K_M", "IQ2_XXS"), 910_000),
    ("unsloth/Llama-3.3-70B-Instruct-GGUF", 70_600_000_000, "llama", ("Q4_K_M", "Q2_K"), 120_000),
    ("acme/Llama-3-405B-GGUF", 405_000_000_000, "llama", ("Q4_K_M", "Q2_K"), 8_000),
    ("nomic-ai/nomic-embed-text-v1.5-GGUF", 137_000_000, "nomic-bert", ("Q8_0",), 800_000),
    ("unsloth/Mixtral-8x7B-GGUF", 46_700_000_000, "llama", ("Q4_K_M",), 70_000),
)


def figures(stage: Stage) -> None:
    """Fit and speed in the results of a search, before any header is read, and in the menu of models."""
    stage.connect()
    remember_probe(stage.folder / "cache")
    for repo, n_params, architecture, quantisations, downloads in FOUND:
        files = {f"{repo.partition('/')[2]}-{one}.gguf": b"GGUF" for one in quantisations}
        stage.hub.add(repo, files, n_params=n_params, architecture=architecture, downloads=downloads)
    stage.window.show_page("library")
    page = stage.window.library
    assert page is not None
    stage.until(lambda: page.models.list.rows.rowCount() > 1 and page.models.list.rows.rows[0].right)
    page.show_tab("Find")
    page.finder.field.setText("GGUF")
    stage.until(lambda: page.finder.list.rows.rowCount() == len(FOUND))
    stage.shoot("find-figures")
    stage.window.resize(800, 600)
    stage.window.resize_text(150)
    stage.shoot("find-figures-150")
    stage.window.resize_text(100)
    stage.window.resize(1180, 780)
    stage.window.show_page("chat")
    menu = stage.window.page.picker.menu
    menu.popup(stage.window.page.picker.mapToGlobal(stage.window.page.picker.button.geometry().bottomLeft()))
    stage.wait(0.2)
    menu.grab().save(str(stage.out / f"picker-figures{stage.suffix}.png"))
    menu.close()


def done(stage: Stage) -> None:
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.shoot("done")


WORKING = asdict(
    Snapshot(
        is_idle=False, decode_rate=38.4, bytes_per_second=12.9e9, peak=15.3e9, peak_share=0.84,
        limited_by=Bottleneck.BANDWIDTH,
        n_active=3, n_waiting=0, n_cells_used=1_730, n_cells=4_096, n_drafted=80, n_accepted=62, speedup=1.71,
        drafted_at=(40, 30, 10), accepted_at=(34, 22, 6),
    )
)  # fmt: skip


def gauges(stage: Stage) -> None:
    """The gauges below each page, in three widths."""
    remember_probe(stage.folder / "cache")
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
    stage.window.chats.toggle_settings()
    stage.wait(0.1)
    stage.shoot("panel")


def deep_ember(stage: Stage) -> str:
    """Return where a model of sixty layers is, whose replies take seconds."""
    folder = stage.folder / "data" / "models"
    folder.mkdir(parents=True)
    (folder / "deep-ember-q8_0.gguf").symlink_to(cached(Recipe(n_layers=60)))
    return str(folder / "deep-ember-q8_0.gguf")


def streaming(stage: Stage) -> None:
    """Talk to a model of sixty layers and its draft through the real server: while it answers, and after."""
    with real_server(stage, "--model", deep_ember(stage), "--draft", str(EMBER_DRAFT)):
        stage.history()
        for asked in ("Tell me a story about a bear.", "What is speculative decoding?"):
            stage.say(asked, wait=0.1)
            stage.until(lambda: not stage.window.desk.current.is_running)
        stage.say("Tell me a story about a fox.", wait=0.1)
        # Once its figures are those of a reply at work.
        stage.until(lambda: len(_last_reply(stage).view.text) > 200)
        stage.shoot("streaming")
        stage.until(lambda: not stage.window.desk.current.is_running)
        stage.wait(0.5)
        stage.shoot("streamed")


THOUGHTS = """The user wants to know what bounds the speed. Let me think of one decoded token:

- every weight is read once, so **bytes / bandwidth** is the least time
- the KV cache is read too, but that is small at the beginning of a chat

So I should name the memory first, and then what drafting does about it."""


def _last_reply(stage: Stage) -> AssistantMessage:
    view = stage.window.page.transcript.view_of(stage.window.desk.current.tree.path[-1].id)
    assert isinstance(view, AssistantMessage)
    return view


def receipts(stage: Stage) -> None:
    """The open receipt of a drafted reply, of a plain one, and of one that was stopped, in large text too."""
    stage.connect()
    stage.history()
    drafted = Timings.from_object(TIMINGS)
    assert drafted is not None
    plain = replace(drafted, drafted_tokens=0, accepted_tokens=0, speedup=1.0, peak_share=0.84, queued_ms=40.0)
    stopped = Timings(ttft_ms=38, decode_ms=1_200, total_ms=1_238, decode_tokens=40, decode_per_second=33)
    for name, timings, status in (
        ("drafted", drafted, Status.DONE), ("plain", plain, Status.DONE), ("stopped", stopped, Status.STOPPED),
    ):  # fmt: skip
        stage.window.desk.new_chat()
        stage.open_old(REPLY[:190], timings=timings, status=status)
        _last_reply(stage).receipt.click()
        stage.wait(0.2)
        stage.shoot(f"receipt-{name}")
    stage.window.kept.keep("tintDrafts", True)
    words = [found.span() for found in re.finditer(r"\w+ (?:\w+ )?", REPLY)]
    stage.window.desk.new_chat()
    stage.open_old(REPLY, timings=drafted, drafted=tuple(words[::2]))
    stage.shoot("receipt-tint")
    stage.window.resize_text(150)
    stage.window.desk.new_chat()
    stage.open_old(REPLY[:190], timings=drafted)
    _last_reply(stage).receipt.click()
    stage.window.resize(800, 600)
    stage.wait(0.2)
    stage.shoot("receipt-150")


def thinking(stage: Stage) -> None:
    """The reasoning while it streams, folded; then unfolded above the reply."""
    stage.connect()
    stage.history()
    stage.server.thoughts = [THOUGHTS[i : i + 4] for i in range(0, len(THOUGHTS), 4)]
    stage.server.pieces, stage.server.delay = [REPLY[i : i + 8] for i in range(0, 400, 8)], 0.012
    stage.say("How fast can a local model be on my machine?", wait=0.9)
    stage.shoot("thinking")
    stage.until(lambda: not stage.window.desk.current.is_running)
    _last_reply(stage).thoughts.head.click()
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
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": "context_length_exceeded"}
    stage.server.error = (400, {"error": error})
    stage.say("Please sum up this report: " + "foxes live in woods, and in towns too; " * 8)
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
    kept = (
        "Chats cannot be saved in /home/me/.local/share: the folder cannot be written to. Chats now live in memory "
        "only and are gone when you close the window."
    )
    stage.window.chats.storage_banner.say(kept)
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
    stage.window.chats.history.search.setText("token")
    stage.wait(0.4)
    stage.window.chats.history.list.clicked.emit(
        stage.window.chats.history.model.index(0)
    )  # what is found is opened, and marked
    stage.wait(0.3)
    stage.shoot("search")
    stage.window.chats.history.deleted.emit(1)
    stage.window.chats.history.search.clear()
    stage.wait(0.4)
    stage.shoot("deleted")


def folders(stage: Stage) -> None:
    """Pinned chats, folders open and closed, the menu of a chat, the archive."""
    stage.connect()
    stage.history()
    for number, folder in ((3, "Work"), (5, "Work"), (7, "A folder with a very long name indeed"), (10, "Work")):
        stage.window.desk.move(number, folder)
    stage.window.desk.pin(2, True)
    stage.window.desk.archive(8, True)
    stage.window.chats.history.model.open_folder("A folder with a very long name indeed", False)
    stage.open_old(REPLY)
    stage.shoot("folders")
    menu = stage.window.chats.history.menu_for(stage.window.chats.history.list.currentIndex())
    menu.grab().save(str(stage.out / f"folders-menu{stage.suffix}.png"))
    chats = stage.window.chats.history.list
    for name, row in (("folders-drag-in", 3), ("folders-drag-out", -1)):
        data = stage.window.chats.history.model.mimeData([chats.currentIndex()])
        at = (
            chats.visualRect(chats.model().index(row, 0)).center() if row >= 0 else chats.viewport().rect().bottomLeft()
        )
        button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        chats.dragMoveEvent(QDragMoveEvent(place(at), Qt.DropAction.MoveAction, data, button, none))
        stage.shoot(name)
    chats.dragLeaveEvent(QDragLeaveEvent())
    stage.window.resize_text(150)
    stage.shoot("folders-150")
    stage.window.resize_text(100)
    stage.window.chats.history.archive.click()
    stage.wait(0.3)
    stage.shoot("folders-archive")
    stage.window.chats.history.archive.click()
    words = "1,204 chats imported. 3 chats were here already. Left out: 14 images or files."
    stage.window.chats.history.show_exchange(words, is_over=True)
    stage.wait(0.3)
    stage.shoot("exchange")


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
    stage.window.chats.toggle_list()
    stage.shoot("small-chats")
    stage.window.chats.toggle_settings()
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
        stage.window.chats.toggle_settings()
        stage.shoot(f"text-{percent}-panel")
        stage.window.chats.toggle_list()
        stage.shoot(f"text-{percent}-chats")
        stage.window.chats.toggle_list()
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


def attachments(stage: Stage) -> None:
    """Attached files above the input, one of them unreadable; then in the message, unfolded."""
    notes, long = stage.folder / "parser notes.md", stage.folder / "A long report about the foxes of Europe, 2026.txt"
    notes.write_text("# Notes\n\n" + "- the parser reads one token ahead\n" * 12)
    long.write_text(
        "\n".join(f"Chapter {n}.\n" + "Foxes live in many places. They hunt at night.\n" * 30 for n in range(1, 13))
    )
    (stage.folder / "empty.csv").write_text("")
    stage.server.models[0]["capabilities"] = ["completion", "vision"]
    stage.connect()
    stage.history()
    stage.window.page.grab().scaled(900, 600).save(str(stage.folder / "Screenshot.png"))
    shelf = stage.window.page.composer.shelf
    shelf.add([notes, stage.folder / "Screenshot.png", long, stage.folder / "empty.csv"])
    stage.until(lambda: not shelf.is_reading)
    stage.window.page.composer.set_text("What do the notes say about foxes?")
    stage.wait(0.8)
    for percent in (100, 150):
        stage.window.resize_text(percent)
        stage.shoot(f"attach-{percent}")
        stage.window.resize(640, 480)
        stage.shoot(f"attach-{percent}-small")
        stage.window.resize(1180, 780)
    stage.window.resize_text(100)
    shelf.choose_pages(shelf.chips[-1])
    dialog = _dialog(stage, PagesDialog)
    QTest.keyClicks(dialog.field, "1-3, 7")
    _shoot_dialog(stage, dialog, "attach-pages")
    dialog.ok.click()
    QTest.keyClick(stage.window.page.composer.field, Qt.Key.Key_Return)
    stage.wait(0.8)
    stage.shoot("attach-sent")
    view = stage.window.page.transcript.view_of(stage.window.desk.current.tree.path[0].id)
    for button in view.files.buttons[1:]:  # type: ignore[union-attr]  # it was made above
        button.click()
    stage.wait(0.3)
    stage.shoot("attach-unfolded")


@contextmanager
def real_server(stage: Stage, *options: str) -> Iterator[PrivateServer]:
    """Serve the window with the real server and the bundled model."""
    key = new_api_key()
    server = PrivateServer(serve_command(options), serve_environment(key), str(PROGRAM_FOLDER))
    ServerLink(server, key, stage.api, stage.window.watch, stage.window.page.server_banner, stage.window).start()
    while stage.window.watch.state.phase != "ready":
        stage.wait(0.1)
    yield server
    server.stop()


SIZES = (("", (1180, 780), 100), ("-small", (800, 600), 100), ("-large", (1920, 1200), 100), ("-150", (1180, 780), 150))


def shoot_sizes(stage: Stage, name: str) -> None:
    """Draw the page that is shown in several windows, the last with large text."""
    for suffix, size, percent in SIZES:
        stage.window.resize(*size)
        stage.window.resize_text(percent)
        stage.wait(0.3)
        stage.shoot(f"{name}{suffix}")
    stage.window.resize_text(100)


def ask_for_much(port: int, key: str, wanted: str) -> None:
    """Ask a server for a reply that takes some seconds, as another program does."""
    story = {"role": "user", "content": "Tell me a long story about a bear."}
    asked = {"messages": [story], "speed": wanted, "max_tokens": 900, "ignore_eos": True}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    address = f"http://127.0.0.1:{port}/v1/chat/completions"
    with suppress(OSError):  # the server may end first
        urlopen(Request(address, json.dumps(asked).encode(), headers)).close()


def server(stage: Stage) -> None:
    """The server page: off, on, with a new key; requests at work; other machines."""
    with real_server(stage, "--model", deep_ember(stage)), ThreadPoolExecutor() as others:
        stage.window.show_page("server")
        page = stage.window.server
        assert page is not None
        stage.wait(0.5)
        stage.shoot("server-off")
        view = page.connect_view
        view.port.setValue(8_764)
        view.switch.click()
        stage.until(lambda: view.address.field.text() != "")
        shoot_sizes(stage, "server")
        view.lan.click()
        stage.until(view.lan_note.isVisible)
        view.key_name.setText("laptop")
        view.add.click()
        stage.until(view.made.isVisible)
        stage.shoot("server-lan")
        view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
        stage.shoot("server-keys")
        key = view.made.words.text().split()[-1]
        for wanted in ("fast", "batch"):
            others.submit(ask_for_much, view.port.value(), key, wanted)
        stage.window.desk.current.send("Tell me a long story about a fox.")
        page.show_tab("Activity")
        stage.until(lambda: len(page.activity.requests.rows) == 3)
        stage.wait(1.2)
        shoot_sizes(stage, "server-activity")
        page.show_tab("Other machines")
        page.machines.server.fields["name"].setText("rack")
        page.machines.server.fields["url"].setText("http://127.0.0.1:9/v1")
        page.machines.server.add.click()
        stage.until(lambda: page.machines.remotes.rows)
        shoot_sizes(stage, "server-machines")
        lent = {"name": "CUDA0", "free": 22_300_000_000, "total": 25_800_000_000}
        worker = {"address": "rpc://192.168.1.20:8643", "devices": [lent], "bandwidth": 118e6, "latency": 3e-4}
        gone = {
            "address": "rpc://192.168.1.21:8643",
            "problem": "It cannot be reached.",
        }
        page.machines._on_workers({"data": [worker, gone]})
        page.machines.verticalScrollBar().setValue(page.machines.verticalScrollBar().maximum())
        shoot_sizes(stage, "server-workers")
        page.machines._on_wanted("rack", "Remove")
        stage.wait(0.2)


def speed(stage: Stage) -> None:
    """The speed page beside a reply, and after it; the library's process answers what would help."""
    remember_probe(stage.folder / "cache")
    with real_server(stage, "--model", deep_ember(stage), "--draft", str(EMBER_DRAFT)):
        stage.window.show_page("speed")
        page = stage.window.speed
        assert page is not None
        stage.until(lambda: len(page.plots) == len(PLOTS))
        stage.shoot("speed-idle")
        for _ in range(4):
            stage.window.desk.current.send("Tell me a long story about a fox.")
            stage.until(lambda: not stage.window.desk.current.is_running)
            stage.wait(0.7)
        stage.window.desk.current.send("Tell me a long story about a bear.")
        stage.wait(0.4)
        stage.shoot("speed-live")
        stage.until(lambda: not stage.window.desk.current.is_running)
        stage.wait(0.6)
        shoot_sizes(stage, "speed")
        page.verticalScrollBar().setValue(page.verticalScrollBar().maximum())
        stage.shoot("speed-end")
        page.measuring.begin("Is it the same model?")
        stage.wait(6.0)
        stage.shoot("speed-verify")
        page.measuring.stop.click()
        stage.wait(1.0)


def prompts(stage: Stage) -> None:
    """The library of prompts, the form of one, and the settings of a chat."""
    stage.connect()
    stage.history()
    window = stage.window
    text = "Translate what follows into {{language}}, in the tone of {{tone}}:\n\n"
    window.chats.prompts.save(Prompt(0, "Explain code", "Explain this code line by line:\n\n"))
    kept = window.chats.prompts.save(Prompt(0, "Translate", text))
    window.chats.prompts.save(Prompt(0, "Brief answers", "Answer in one sentence.", True, "ember-q8_0"))
    stage.open_old(REPLY)
    window.chats.toggle_settings()
    stage.wait(0.3)
    stage.shoot("prompts-panel")
    window.chats.prompt_menu.manage()
    dialog = _dialog(stage, PromptsDialog)
    dialog.list.setCurrentRow(2)
    _shoot_dialog(stage, dialog, "prompts-all")
    dialog.list.setCurrentRow(0)
    _shoot_dialog(stage, dialog, "prompts-instructions")
    dialog.accept()
    window.resize_text(150)
    window.chats.prompt_menu.use(kept, window.page.composer.insert)
    form = _dialog(stage, PromptForm)
    QTest.keyClicks(form.fields["language"], "German")
    _shoot_dialog(stage, form, "prompts-form-150")
    form.reject()
    menu = window.chats.prompt_menu.offer(window.page.composer.prompts, False, window.page.composer.insert, "text")
    menu.grab().save(str(stage.out / f"prompts-menu{stage.suffix}.png"))
    menu.close()


def tools(stage: Stage) -> None:
    """A tool call that waits for permission, one that was made, unfolded; the servers."""
    stage.connect()
    stage.history()
    box = stage.window.chats.tools_box
    script = stage.folder / "animals.py"
    script.write_text(
        "import io\nfrom PIL import Image, ImageDraw\nfrom mcp.server.mcpserver import Image as Shown, MCPServer\n"
        "server = MCPServer('animals')\n@server.tool()\ndef weight(animal: str) -> list:\n"
        "    chart, file = Image.new('RGB', (360, 240), '#fff7ec'), io.BytesIO()\n    pen = ImageDraw.Draw(chart)\n"
        "    for at, (name, kg) in enumerate((('hare', 4), ('fox', 7), ('badger', 12))):\n"
        "        pen.rectangle((40 + 100 * at, 200 - 14 * kg, 110 + 100 * at, 200), fill='#d9822b')\n"
        "        pen.text((50 + 100 * at, 208), f'{name}, {kg} kg', fill='#333333', font_size=13)\n"
        "    chart.save(file, 'PNG')\n"
        "    return [f'A {animal} weighs 7 kg.', Shown(data=file.getvalue(), format='png')]\nserver.run()\n"
    )
    box.save(ToolServer("animals", shlex.join((sys.executable, str(script)))))
    box.save(ToolServer("calendar", "uvx-not-there mcp-server-calendar --timezone Europe/Berlin"))
    stage.until(lambda: box.tools_of("animals") is not None and "calendar" in box.problems, 30)
    call = ("animals_weight", '{"animal": "fox"}')
    stage.server.pieces = ["I look that up. "]
    stage.server.calls = [[call], [call]]
    stage.say("How heavy is a fox?", wait=0.8)
    stage.shoot("tools-asked")
    view = stage.window.page.transcript.view_of(stage.window.desk.current.tree.path[-1].id)
    rows = view.calls.rows  # type: ignore[union-attr]  # it was made above
    rows["0-0-c0"].once.click()
    stage.until(lambda: "1-0-c0" in rows)
    stage.server.pieces = ["A fox weighs about 7 kg."]
    rows["1-0-c0"].no.click()
    stage.until(lambda: not stage.window.desk.current.is_running)
    rows["0-0-c0"].head.click()
    rows["0-0-c0"].images.buttons[0].click()
    stage.wait(0.3)
    stage.shoot("tools-called")
    stage.window.resize_text(150)
    stage.window.resize(800, 600)
    stage.wait(0.3)
    stage.shoot("tools-called-150")
    stage.window.chats.show_tools()
    _shoot_dialog(stage, _dialog(stage, ToolsDialog), "tools-servers-150")
    stage.window.resize_text(100)
    stage.window.resize(1180, 780)
    _shoot_dialog(stage, _dialog(stage, ToolsDialog), "tools-servers")


def jobs(stage: Stage) -> None:
    """The jobs page: nothing yet; one at work, one paused, one done, one that failed."""
    with real_server(stage):
        stage.window.show_page("jobs")
        page = stage.window.jobs
        assert page is not None
        stage.wait(0.5)
        stage.shoot("jobs-empty")
        asked = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 60}
        for name, n_lines in (("Titles for a thousand photos", 2), ("Summaries", 400), ("Translations", 800)):
            line = {"method": "POST", "url": "/v1/chat/completions", "body": asked}
            file = stage.folder / f"{name}.jsonl"
            file.write_text("\n".join(json.dumps(line | {"custom_id": str(n)}) for n in range(n_lines)))
            page.run_file(file)
            stage.until(lambda name=name: any(name in row.title.text() for row in page.rows.rows.values()))
        stage.until(lambda: any("Save results" in row.buttons for row in page.rows.rows.values()), 60)
        waiting = next(row for row in page.rows.rows.values() if row.title.text() == "Translations.jsonl")
        waiting.buttons["Pause"].click()
        page.run_file(stage.folder / "chats.db")
        stage.wait(2.5)
        shoot_sizes(stage, "jobs")
        for row in list(page.rows.rows.values()):
            if "Cancel" in row.buttons:
                row.buttons["Cancel"].click()
        stage.wait(1.0)


def editing(stage: Stage) -> None:
    stage.connect()
    stage.open_old("Here is a short reply.", status=Status.STOPPED, timings=None, finish_reason=None)
    view = stage.window.page.transcript.view_of(11)
    view.edit.click()  # type: ignore[union-attr]  # it was made above
    stage.shoot("editing")


FORMULAS = r"""The time of a token is $t = \frac{B}{S}$, where $B$ is what is read and $S$ how fast memory is.
With drafts:

$$
\text{speed-up} = \frac{1 - \alpha^{k+1}}{(1 - \alpha)(1 + kc)}, \qquad
\alpha = \mathbb{E}\left[\min\left(1, \frac{p(x)}{q(x)}\right)\right]
$$

\[ \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V
\quad\begin{pmatrix} a & b \\ c & d \end{pmatrix}
\quad f(x) = \begin{cases} 1 & x > 0 \\ 0 & x \le 0 \end{cases} \]

- It costs $5 and $6, and \(\sum_{i=1}^{n} x_i^2\) more; $\wrong{x}$ stays text.

```mermaid
graph LR
  prompt --> draft --> model
```
"""


def formulas(stage: Stage) -> None:
    """LaTeX and a diagram, in the usual and in large text."""
    stage.connect()
    stage.history()
    stage.open_old(FORMULAS, asked="Why do drafts help?")
    stage.wait(0.8)
    stage.shoot("formulas")
    stage.window.resize_text(150)
    stage.wait(0.3)
    stage.shoot("formulas-150")


def context(stage: Stage) -> None:
    """The context bar: in use, and nearly full, also with large text and in a small window."""
    stage.server.n_ctx_train = 4096
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.window.page.composer.set_text("And how fast would it be with twice the memory? " * 6)
    stage.wait(0.9)
    stage.shoot("context")
    stage.window.page.composer.set_text("And how fast would it be with twice the memory? " * 80)
    stage.wait(0.9)
    stage.window.page.composer.field.moveCursor(QTextCursor.MoveOperation.Start)
    stage.shoot("context-full")
    stage.window.resize(800, 600)
    stage.window.resize_text(150)
    stage.window.page.composer.set_text("And how fast?")
    stage.wait(0.9)
    stage.shoot("context-150")


def race(stage: Stage) -> None:
    """A race that is over, in the usual and in large text."""
    stage.connect()
    stage.history()
    stage.until(lambda: stage.window.watch.models)
    stage.server.pieces = [REPLY[i : i + 8] for i in range(0, 600, 8)]
    for name, percent in (("race", 100), ("race-150", 150)):
        stage.window.resize_text(percent)
        stage.window.chats.open_race("How fast can a local model be on my machine?")
        dialog = _dialog(stage, RaceDialog)
        dialog.start.click()
        stage.until(dialog.save.isEnabled)
        _shoot_dialog(stage, dialog, name)
        dialog.order.setCurrentIndex(1)
        stage.server.delay = 0.01
        dialog.start.click()
        stage.until(lambda dialog=dialog: all(lane.view.text for lane in dialog.lanes))
        stage.wait(0.3)
        _shoot_dialog(stage, dialog, f"{name}-at-once-writing")
        stage.until(dialog.save.isEnabled)
        _shoot_dialog(stage, dialog, f"{name}-at-once")
        dialog.lanes[1].choice.setCurrentIndex(1)
        _shoot_dialog(stage, dialog, f"{name}-same")
        dialog.reject()
        stage.wait(0.1)


def beside(stage: Stage) -> None:
    """Two chats that stream at once; one of them empty; with the settings; in a narrow window and in large text."""
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    stage.window.resize(1400, 820)
    stage.window.chats.open_beside(None)
    stage.wait(0.3)
    stage.shoot("beside-new")
    right = stage.window.page
    right.choose_model("ember-draft-q8_0")
    stage.server.pieces, stage.server.delay = [REPLY[i : i + 8] for i in range(0, len(REPLY), 8)], 0.02
    stage.server.snapshot = WORKING | {"n_active": 2}
    stage.window.chats.panes.switch()
    stage.say("And with a draft model?", 0.3)
    stage.window.chats.panes.switch()
    stage.say("How fast can a local model be on my machine?", 1.6)
    stage.shoot("beside")
    stage.until(lambda: not stage.window.desk.running)
    stage.server.snapshot = None
    stage.window.chats.toggle_settings()
    stage.window.resize(1680, 820)
    stage.wait(0.3)
    stage.shoot("beside-panel")
    stage.window.chats.toggle_settings()
    stage.window.resize(860, 700)
    stage.wait(0.3)
    stage.shoot("beside-narrow")
    stage.window.resize(1400, 820)
    stage.window.resize_text(150)
    stage.wait(0.3)
    stage.shoot("beside-150")


def branches(stage: Stage) -> None:
    """A reply that was stopped, with its buttons; the same while it is edited, in large text too."""
    stage.connect()
    stage.history()
    stage.open_old(REPLY[:190], status=Status.STOPPED)
    stage.shoot("branches-stopped")
    view = _last_reply(stage)
    stage.window.desk.current.edit(view.message.id, "Another reply, written by *me*.")
    stage.wait(0.2)
    stage.shoot("branches-edited")
    stage.window.resize_text(150)
    _last_reply(stage).begin_edit()
    stage.wait(0.2)
    stage.shoot("branches-editor-150")


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
    stage.server.delay, stage.server.snapshot = 0.6, WORKING | {"n_active": 4}
    picker.card.chosen.emit(Speed.DEEP)
    stage.say("A hard question", wait=0.9)
    stage.shoot("deep")


def fill_hub(hub: HubServer) -> None:
    starter = STARTER_FOLDER
    ember, small = ((starter / name).read_bytes() for name in ("ember-q8_0.gguf", "ember-draft-q8_0.gguf"))
    long = "bartowski/" + "A-Very-Long-Name-Of-A-Merged-Model-" * 3 + "GGUF"
    gated = "meta/Llama-3.3-70B-Instruct-GGUF"
    for at, name in enumerate(("Qwen/Qwen3-8B-GGUF", gated, "acme/kitsune-GGUF", long)):
        stem = name.rpartition("/")[2].removesuffix("-GGUF").replace("kitsune", "Füchsin")
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
    remember_probe(stage.folder / "cache")
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
    """Notices about a model: its settings name the draft, its file was changed, its test waits for a reply."""
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
    enlist(host="127.0.0.1", port=int(stage.server.url.rpartition(":")[2]), api_key=None, model=None)
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
    """A model of the Hub with the draft model to download along with it."""
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
    """Draw the library page in the usual window and in a small one."""
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
    """The dialogs of a model: its settings, and smaller copies of it."""
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
    stage.until(lambda: dialog.row.quantising.is_over or dialog.row.bar.value() > 300)
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
    finder.pane.list.choose("Füchsin-Q6_K.gguf")
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


def palette(stage: Stage) -> None:
    """The command palette and the list of shortcuts; also in a small window and with large text."""
    stage.connect()
    stage.history()
    stage.open_old(REPLY)
    window, card = stage.window, stage.window.palette_card
    window.open_palette()
    stage.wait(0.3)
    stage.shoot("palette")
    card.field.setText("te")
    stage.shoot("palette-found")
    card.field.setText("nothing like this")
    stage.shoot("palette-nothing")
    card.close_up()
    window.show_shortcuts()
    dialog = _dialog(stage, ShortcutsDialog)
    _shoot_dialog(stage, dialog, "shortcuts")
    dialog.reject()
    window.resize(480, 360)
    window.resize_text(150)
    window.open_palette()
    stage.wait(0.3)
    stage.shoot("palette-tiny-150")


def settings(stage: Stage) -> None:
    """The settings, their search, an engine that waits for a restart; in a small window and with large text."""
    stage.connect()
    window = stage.window
    window.kept.keep("theme", window._appearance.choice.value)
    window.show_page("settings")
    page = window.settings
    assert page is not None
    page.complete()
    page.look()
    stage.until(page.folders.models_button.isEnabled)
    stage.shoot("settings")
    page.area.ensureWidgetVisible(page.folders)
    stage.shoot("settings-folders")
    page.folders._show_moving(True)
    page.folders._on_move_step(MoveStep("copying", 3_200_000_000, 4_900_000_000, "/media/disk/models"))
    stage.shoot("settings-moving")
    page.folders._show_moving(False)
    bar = page.area.verticalScrollBar()
    window.kept.choose_engine("context", "16384")
    stage.wait(0.2)
    bar.setValue(bar.maximum() * 6 // 10)
    stage.shoot("settings-engine")
    bar.setValue(bar.maximum())
    stage.shoot("settings-end")
    page.search.setText("memory")
    stage.shoot("settings-search")
    page.search.setText("nothing like this")
    stage.shoot("settings-no-match")
    page.search.clear()
    window.resize(480, 360)
    stage.shoot("settings-tiny")
    window.resize(720, 480)
    window.resize_text(150)
    stage.shoot("settings-150")
    bar.setValue(bar.maximum() * 6 // 10)
    stage.shoot("settings-150-engine")
    window.resize_text(100)
    window.resize(1180, 780)
    window.show_page("chat")
    own = ThemeChoice(stage.suffix[1:])
    # High contrast follows the system's theme, and a system without a screen is light.
    shown = CONTRAST_DARK if own is ThemeChoice.DARK else CONTRAST_LIGHT
    with patch.object(appearance, "CONTRAST_LIGHT", shown):
        window.choose_theme(ThemeChoice.CONTRAST)
        stage.history()
        stage.open_old(REPLY)
        stage.shoot("contrast")
    window.choose_theme(own)
    window.kept.keep("accent", "Violet")
    window.kept.dress(window._appearance)
    stage.shoot("accent")


STATES: tuple[Callable[[Stage], None], ...] = (
    starting,
    empty,
    figures,
    measuring,
    first_start,
    done,
    gauges,
    panel,
    streaming,
    receipts,
    thinking,
    waiting,
    problem,
    server_gone,
    loading,
    search,
    folders,
    hard,
    small,
    text_sizes,
    attachments,
    prompts,
    tools,
    editing,
    branches,
    race,
    beside,
    context,
    formulas,
    speeds,
    library,
    library_keeps,
    draft_along,
    model_dialogs,
    settings,
    server,
    speed,
    jobs,
    palette,
)


# The pictures in docs/screenshots by state, each with its caption.
SHOWN: dict[Callable[[Stage], None], dict[str, str]] = {
    first_start: {
        "first-start": "The first start: the machine is measured, and three models are offered for it",
        "first-start-download": "One of them is on its way",
    },
    streaming: {"streaming": "A reply while it is written"},
    receipts: {
        "receipt-drafted": "The receipt of a reply says how fast it was, and why",
        "receipt-tint": "Words that were drafted are tinted on request",
        "receipt-150": "A small window and large text",
    },
    thinking: {"thoughts": "What the model thought, unfolded"},
    tools: {"tools-called": "A tool was called, and another call was refused"},
    attachments: {
        "attach-100": "Files that do not fit, and a way out",
        "attach-pages": "Pages of a file are chosen",
    },
    formulas: {
        "formulas": "Formulas, and a diagram as text",
        "formulas-2x": "The same on a screen of twice the resolution",
    },
    branches: {"branches-edited": "Another version of a reply"},
    speeds: {"deep": "A spark reply, and a deep one at work"},
    context: {"context-full": "A message that is too long says so before it is sent"},
    race: {"race": "A race of plain decoding and drafting"},
    beside: {"beside": "Two chats at once"},
    panel: {"panel": "The settings of a chat"},
    prompts: {"prompts-all": "Prompts that are kept"},
    folders: {"folders": "Folders, and a chat that is pinned"},
    search: {"search": "A search over all chats"},
    problem: {"died": "Errors, each with what can be done"},
    gauges: {"gauges-library": "The models of this machine, and the gauges at work"},
    figures: {"find-figures": "Models of the Hub, with their fit and speed here"},
    library: {
        "library-repository": "What to download of one, and why",
        "library-downloads": "Downloads",
        "library-offline": "Without a network",
    },
    model_dialogs: {"model-settings": "The settings of a model", "quantise": "A smaller copy of it"},
    speed: {"speed": "How fast replies are, why, and what would help"},
    server: {
        "server-off": "The endpoint, before it is switched on",
        "server-activity": "What the server does",
        "server-workers": "Other servers, and workers",
    },
    jobs: {"jobs": "Files of requests, and hard questions"},
    settings: {
        "settings": "All settings",
        "settings-search": "A search in them",
        "contrast": "High contrast",
        "accent": "Another accent",
    },
    palette: {"palette-found": "The command palette", "shortcuts": "All keys"},
    small: {"small": "A small window"},
}
PICTURES = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
N_COLOURS = 256  # of a kept picture: half the bytes, without a visible difference
N_EXACT = 64  # of these: what covers most, as the grounds of cards and bars


def in_few_colours(picture: Image.Image) -> Image.Image:
    """Return a picture with at most ``N_COLOURS`` colours, those of its large areas as they are."""
    red, green, blue = np.moveaxis(np.asarray(picture).astype(np.int64), 2, 0)
    colours, places, counts = np.unique(red << 16 | green << 8 | blue, return_inverse=True, return_counts=True)
    parts = np.stack((colours >> 16, colours >> 8 & 255, colours & 255), axis=1)
    # Other ways to choose colours lose those of small things such as icons.
    others = picture.quantize(N_COLOURS - N_EXACT, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    chosen = np.array(others.getpalette()).reshape(-1, 3)
    palette = np.concatenate((parts[np.argsort(-counts)[:N_EXACT]], chosen))[:N_COLOURS]
    # Pillow finds the nearest colour by the first bits of each part alone.
    nearest = ((parts[:, None] - palette[None]) ** 2).sum(axis=2).argmin(axis=1)
    made = Image.fromarray(nearest[places].reshape(red.shape).astype(np.uint8))
    made.putpalette(palette.astype(np.uint8).tobytes())
    return made


def keep(drawn: Path) -> None:
    """Copy those of the drawn pictures that the page shows into docs/screenshots, and write the page."""
    PICTURES.mkdir(exist_ok=True)
    shown = set[str]()
    page = [
        "# The window in pictures",
        "",
        "Drawn by `.venv/bin/python -m tools.screenshots`, in light and in dark.",
        "",
    ]
    for names in SHOWN.values():
        for name, words in names.items():
            files = [f"{name}-{choice.value}.png" for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK)]
            shown |= set(files)
            for file in files:
                if not (drawn / file).exists():
                    continue
                in_few_colours(Image.open(drawn / file).convert("RGB")).save(PICTURES / file, optimize=True)
            page += [f"## {words}", "", *(f'<img alt="{words}" src="{file}" width="49%">' for file in files), ""]
    for kept in PICTURES.glob("*.png"):
        if kept.name not in shown:
            kept.unlink()
    (PICTURES / "README.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")


def _first_words(layout: QLayout) -> str:
    first = layout.itemAt(0)
    label = first.widget() if first is not None else None
    return label.text() if isinstance(label, QLabel) else ""


def read_arguments(typed: Sequence[str] | None = None) -> tuple[Path, list[Callable[[Stage], None]]]:
    """Return the folder and the states to draw. Ends the program with a usage error where a name is unknown."""
    known = {state.__name__: state for state in STATES}
    parser = argparse.ArgumentParser(
        "python -m tools.screenshots", description="Draws the window in its states, in light and in dark."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES, help="where to (default: docs/screenshots)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these states, of {', '.join(sorted(known))}")
    found = parser.parse_args(typed)
    if str(found.folder) in known:
        parser.error(f"{found.folder} is a state: name the folder before it.")
    unknown = [name for name in found.names if name not in known]
    if unknown:
        parser.error(f"There is no state {', '.join(unknown)}. There are {', '.join(sorted(known))}.")
    return found.folder, [state for name, state in known.items() if not found.names or name in found.names]


def main() -> None:
    out, states = read_arguments()
    os.environ[IN_WINDOW] = "1"  # sentences name buttons, as in the app
    application = QApplication([])
    if out.resolve() == PICTURES:
        with tempfile.TemporaryDirectory() as drawn:
            draw(application, Path(drawn), [state for state in states if state in SHOWN])
            keep(Path(drawn))
        return
    out.mkdir(parents=True, exist_ok=True)
    draw(application, out, states)


def draw(application: QApplication, out: Path, states: Sequence[Callable[[Stage], None]]) -> None:
    """Draw states into a folder, in light and in dark."""
    if PLACE.exists():
        sys.exit(f"{PLACE} is in use, or is left of a run that broke off. Remove it, or set TMPDIR to another folder.")
    try:
        for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK):
            for state in states:
                stage = Stage(application, out, choice)
                state(stage)
                stage.close()
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    main()
