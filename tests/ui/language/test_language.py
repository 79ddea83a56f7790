"""The languages of the window: their files are whole and current, and the window speaks them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from models.catalog.curated import curated
from models.formatting import figures
from models.formatting.json_values import plain
from models.formatting.program import IN_WINDOW
from models.formatting.sentence import said_in
from models.formatting.system_error import system_reason
from tools import translations
from ui import language
from ui.chat.history.history_model import HistoryModel
from ui.client.chat_records import ChatSummary
from ui.language import FOLDER, LANGUAGES, tr
from ui.widgets.fields import DecimalField

OTHERS = sorted(set(LANGUAGES) - {"en"})
ROOT = Path(__file__).parents[3]
HOLE = re.compile(r"\{[^{}]*\}")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch):
    """Choose as the app does; afterwards everything is English again."""
    monkeypatch.setenv("SLIPSTREAM_LANGUAGE", "en")
    yield language.choose
    language.choose("en")


@pytest.mark.parametrize("code", OTHERS)
def test_every_text_of_the_window_has_a_translation_with_the_same_holes(code: str) -> None:
    said = translations.read(code)
    assert set(said) == set(translations.texts()), "renew the files: python -m tools.translations"
    assert [text for text, words in said.items() if not words] == []
    unlike = {text: words for text, words in said.items() if sorted(HOLE.findall(text)) != sorted(HOLE.findall(words))}
    assert unlike == {}
    edges = {
        text: words
        for text, words in said.items()
        if (text[:1] == " ", text[-1:] == " ") != (words[:1] == " ", words[-1:] == " ")
    }
    assert edges == {}, "a space at an edge joins two texts"


@pytest.mark.parametrize("code", OTHERS)
def test_the_file_that_is_read_is_made_of_the_one_that_is_written(code: str, tmp_path: Path) -> None:
    translations.compile_to(tmp_path / "made.qm", FOLDER / f"slipstream_{code}.ts")
    assert (tmp_path / "made.qm").read_bytes() == (FOLDER / f"slipstream_{code}.qm").read_bytes()


def test_a_text_is_said_in_the_language_that_was_chosen(chosen, tmp_path: Path) -> None:
    assert chosen("de") == "de"
    assert tr("New chat") == "Neuer Chat"
    assert tr("page {number}", number=3) == "Seite 3"
    assert tr("no text of the window") == "no text of the window"
    assert chosen("en") == "en"
    assert tr("page {number}", number=3) == "page 3"
    assert language.of_data("everyday") == "everyday"
    chosen("de")
    assert language.of_data("everyday") == "Alltag"
    assert language.of_data("said by nobody") == "said by nobody"
    (model, *_) = (model for model in curated().models if model.draft is not None)
    assert model.draft is not None
    sent = json.dumps(plain(model.drafting))
    told = f"{model.draft.repo_id}:{model.draft.quantisation} kann entwerfen, nicht erprobt"
    assert told in json.loads(sent, object_hook=said_in)
    chosen("de")
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "gone").read_text()
    assert system_reason(raised.value) == "Datei oder Ordner nicht gefunden"


def test_numbers_are_written_as_in_the_language(chosen) -> None:
    wanted = ("4.9 GB", "11.3M", "1,234", "12.5 s", "7.3 tok/s", "70%", "2.00×, 12,345 of 70%, v1.2")

    def written() -> tuple[str, ...]:
        sizes = figures.size(4.9e9), figures.parameters(11_300_000), figures.count(1_234)
        others = figures.milliseconds(12_500), figures.speed(7.3), figures.percent(0.7)
        return (
            *sizes,
            *others,
            tr("{gain:.2f}×, {n:,} of {share:.0%}, {name}", gain=2, n=12_345, share=0.7, name="v1.2"),
        )

    assert written() == wanted
    chosen("de")
    apart = "70\N{NO-BREAK SPACE}%"
    said = ("4,9 GB", "11,3M", "1.234", "12,5 s", "7,3 tok/s", apart, f"2,00×, 12.345 of {apart}, v1.2")
    assert written() == said
    chosen("en")
    assert written() == wanted


def test_days_and_months_are_named_in_the_language(chosen) -> None:
    noon = datetime(2026, 3, 5, 12)
    assert (language.day(noon.timestamp()), language.month(noon)) == ("5 March 2026", "March 2026")
    chosen("de")
    assert (language.day(noon.timestamp()), language.month(noon)) == ("5. März 2026", "März 2026")
    chats = HistoryModel()
    chats.show([ChatSummary(1, "Foxes", round(noon.timestamp() * 1000), folder="Tiere")])
    assert chats.index(1).data(Qt.ItemDataRole.ToolTipRole) == "Foxes\n5. März 2026, 12:00"
    assert chats.index(0).data(Qt.ItemDataRole.AccessibleTextRole).endswith("1 Chat")


def test_a_number_is_typed_as_in_the_language_or_as_it_was_copied(qtbot, chosen) -> None:
    for code, shown in (("de", "0,70"), ("en", "0.70")):
        chosen(code)
        field = DecimalField("Temperature")
        qtbot.addWidget(field)
        for typed in ("0.7", "0,7"):
            field.setValue(0)
            field.selectAll()
            qtbot.keyClicks(field, f"{typed}\r")
            assert (field.value(), field.text()) == (0.7, shown)


def test_a_language_that_is_not_known_is_that_of_the_system(chosen, monkeypatch: pytest.MonkeyPatch) -> None:
    from PySide6.QtCore import QLocale

    before = QLocale()
    try:
        QLocale.setDefault(QLocale("de_AT"))
        assert chosen("xx") == "de"
        QLocale.setDefault(QLocale("fi_FI"))
        assert chosen("") == "en"
    finally:
        QLocale.setDefault(before)


LOOK = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QLineEdit, QScrollArea, QWidget

application = QApplication([])
from ui import language
assert language.choose("de") == "de"
from tools import translations
from ui.client.api import Api
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow

folder = Path(sys.argv[1])
api, appearance = Api(), Appearance(application)
window = MainWindow(api, appearance, folder / "chats.db", folder / "window.ini")
window.show()
for page in ("chat", "library", "speed", "server", "jobs", "settings"):
    window.show_page(page)
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        application.processEvents()
english = {text for text, words in translations.read("de").items() if words != text and "{" not in text}
shown = set()
for widget in window.findChildren(QWidget):
    shown |= {widget.toolTip(), widget.accessibleName()}
    if isinstance(widget, (QAbstractButton, QLabel)):
        shown.add(widget.text())
    if isinstance(widget, QLineEdit):
        shown.add(widget.placeholderText())
    if isinstance(widget, QComboBox):
        shown |= {widget.itemText(at) for at in range(widget.count())}
assert {"Neuer Chat", "Aussehen", "Andere Programme diesen Server nutzen lassen"} <= shown, sorted(shown)
print(sorted(shown & english))
card = window.palette_card
window.open_palette()
meant = {
    "dunkel": "Farbschema: Dunkel", "chat löschen": "Diesen Chat löschen", "modell wechseln": "Ein Modell wählen",
    "schrift": "Größerer Text", "tiefe frage": "Eine schwere Frage stellen", "export": "Diesen Chat exportieren…",
    "temperatur": "Die Einstellungen des Chats zeigen oder verbergen", "grafikkarte": "Geschwindigkeit",
    "shortcut": "Tastenkürzel", "schlüssel": "Server", "werkzeuge": "MCP-Server",
    "sicherung": "Alle Chats exportieren…",
    "englisch": "Sprache", "datenschutz": "Keine Telemetrie", "benachrichtigungen": "Mitteilungen auf dem Desktop",
}
until = time.monotonic() + 30
found = {}
while found != meant and time.monotonic() < until:
    application.processEvents()
    for typed in meant:
        card.field.setText(typed)
        found[typed] = card.list.rows.rows[0].title if card.list.rows.rows else ""
assert found == meant, found
card.close_up()
window.resize(800, 600)
window.resize_text(150)
for page in ("library", "speed", "server", "jobs", "settings", "chat", "chat"):
    window.show_page(page)
    application.processEvents()
    for area in window.findChildren(QScrollArea):
        if area.isVisible() and area.widgetResizable():
            assert area.widget().minimumSizeHint().width() <= area.viewport().width(), page
    window.chats.history.setVisible(page == "chat")  # beside it the chat has less room
application.processEvents()
search = window.chats.history.search
assert search.width() >= search.width_of_name, (search.placeholderText(), search.width(), search.width_of_name)
window.close()
api.close()
"""


@pytest.mark.slow
def test_no_page_of_the_german_window_speaks_english(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOOK, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"


FAILURES = """
import contextlib, json, os, re, sys, time
from pathlib import Path

import psutil
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

application = QApplication([])
from ui import language
assert language.choose("de") == "de"
from app.client.server_process import ServerProcess
from models.library import requests as ask
from tools import translations
from ui.client.api import Api
from ui.client.chat_records import ChatSettings
from ui.theme.appearance import Appearance
from ui.window.main_window import MainWindow

folder = Path(sys.argv[1])
models = folder / "data" / "models"
models.mkdir(parents=True)
ember = Path("models/starter/ember-q8_0.gguf").read_bytes()
(models / "web.gguf").write_text("<html>A page that is no model</html>")
(models / "cut.gguf").write_bytes(ember[: len(ember) // 2])
(models / "odd.gguf").write_bytes(ember.replace(b"llama", b"lloma"))
server = ServerProcess(["--parallel", "2", "--no-calibration"])
api = Api()
api.connect_to(server.wait_listening(), server.api_key)
window = MainWindow(api, Appearance(application), folder / "chats.db", folder / "window.ini")
window.show()
window.watch.start()
window.link.start()
told = []
window.background.notices.told.connect(lambda title, sentence: told.append(f"{title}: {sentence}"))


def until(is_so, what):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, what
        application.processEvents()
        time.sleep(0.005)


# Ember knows English alone, so the questions that it is asked stay English.
ALIKE = {text for text, words in translations.read("de").items() if words == text}
FOREIGN = re.compile("„[^“]*“|https?://[^ ]*|/[^ ]*|[(][^)]*[)]")
ENGLISH = re.compile(r"\\b(the|is|are|cannot|this|of|to|with|it|has|could|there|does|not|be|found)\\b", re.IGNORECASE)
found = {}


def look(name):
    end = time.monotonic() + 0.2
    until(lambda: time.monotonic() > end, name)
    for widget in window.findChildren(QWidget):
        said = [widget.toolTip()]
        if isinstance(widget, (QAbstractButton, QLabel)):
            said.append(widget.text())
        for text in said:
            if ENGLISH.search(FOREIGN.sub("", text)) and text not in ALIKE:
                found[text] = name


def seen(words):
    return any(words in label.text() for label in window.findChildren(QLabel) if label.isVisible())


def is_engine(process):
    try:
        return "core.loading.worker" in process.cmdline()
    except psutil.Error:  # another one, which has just ended
        return False


server_process = psutil.Process(server.pid)
until(lambda: window.watch.state.phase == "ready", "ready")
look("ready")
banner = window.page.server_banner
for model in ("web", "odd"):
    window.watch.load(model)
    until(lambda: f"{model} kann nicht verwendet werden" in banner.text, f"{model}: {banner.text}")
    look(f"load {model}")
    banner.hide()
window.show_page("library")
page = window.library
until(lambda: page.models.list.rows.rowCount() > 3, "rows")
window.show_page("speed")
details = {
    "ember-q8_0": "ember-draft-q8_0 macht Entwürfe",
    "ember-draft-q8_0": "Es braucht",
    "web": "kein GGUF-Modell",
    "cut": "unvollständig",
    "odd": "unbekannt",
}
for model, words in details.items():
    window.speed.library_wanted.emit(model)
    until(lambda: seen(words), model)
    look(f"details of {model}")
page.show_tab("Suchen")
page.finder.field.setText("fox")
until(lambda: seen("nicht erreichbar"), "hub")
look("hub")
window.hide()
window.link.ask(ask.StartDownload("acme/fox-GGUF", "Q8_0"))
until(lambda: told, "notice")
window.show()
page.show_tab("Downloads")
until(lambda: seen("nicht erreichbar"), "download")
look("downloads")
assert not any(ENGLISH.search(FOREIGN.sub("", text)) for text in told), told
window.show_page("server")
window.server.show_tab("Andere Rechner")
machines = window.server.machines
machines.server.fields["name"].setText("rack")
machines.server.fields["url"].setText("http://127.0.0.1:9/v1")
machines.server.add.click()
until(lambda: seen("antwortet nicht"), "remote")
look("remote")
machines.worker.fields["address"].setText("127.0.0.1:9")
machines.worker.fields["token"].setText("a-token-that-is-long-enough-for-it")
machines.worker.add.click()
until(lambda: seen("Der Worker rpc://127.0.0.1:9 ist nicht erreichbar"), "worker")
look("worker")
window.show_page("speed")
until(lambda: seen("macht Entwürfe") or seen("voraus") or seen("Entwürfe"), "why it drafts")
look("speed")
window.show_page("chat")
window.desk.current.send("word " * 6_000)
until(lambda: not window.desk.current.is_running, "too long")
look("too long")
# Words of pure chance: such a reply seldom ends by itself. If it has ended before the engine dies, there is another.
for turn in range(3):  # from the third death on the server waits before it starts an engine
    window.desk.new_chat()
    window.page.change_settings(ChatSettings(temperature=2.0, top_k=0, top_p=1.0, min_p=0.0))
    until(lambda: any(map(is_engine, server_process.children(recursive=True))), "an engine")
    window.desk.current.send("Zähle von eins bis tausend.")
    until(lambda: (now := window.desk.current.running) is None or now.text, "the reply")
    for engine in filter(is_engine, server_process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            engine.kill()
    until(lambda: not window.desk.current.is_running, "the end of the reply")
    if seen("Die Engine wurde abgebrochen"):
        break
until(lambda: seen("Die Engine wurde abgebrochen"), "death")
look("engine died")
window.close()
api.close()
server.stop()
print(json.dumps(found, ensure_ascii=False, indent=1))
"""


@pytest.mark.slow
def test_no_failure_is_told_in_english_in_the_german_window(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FAILURES, str(tmp_path)]
    environment = {**os.environ, "SLIPSTREAM_HOME": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9", IN_WINDOW: "1"}
    environment |= {
        "PYTHON_KEYRING_BACKEND": "tests.support.file_keyring.FileKeyring",
        "KEYRING_FILE": str(tmp_path / "k"),
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{}"
