"""The card for newcomers: the machine is measured, a model is downloaded with one click and used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox

from models.catalog import curated as catalog
from models.download.progress import DownloadPhase, DownloadProgress
from models.estimate.fit.summary import FitVerdict
from models.library import requests as ask
from models.library.values import Download, GpuFacts, MachineFacts, Suggested, SuggestedRow, SuggestionTier, Trouble
from tests.support.library_client import SECONDS
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.probed_machine import remember_probe
from ui.chat.welcome import Welcome
from ui.library import first_start
from ui.library.first_start import FirstStart
from ui.window.main_window import MainWindow

SMALL = (Path(catalog.__file__).parents[1] / "starter" / "ember-draft-q8_0.gguf").read_bytes()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A server that knows nothing but the toy."""
    fake = FakeServer()
    fake.models = [fake.models[0] | {"is_toy": True}]
    yield fake
    fake.stop()


def shown(qtbot, hub: HubServer, window: MainWindow) -> FirstStart:
    """The card of a window in which only the toy is known; all models of the list are at the hub, and tiny."""
    for model in catalog.curated().models:
        hub.add(model.repo_id, {f"{model.title}-{file.quantisation}.gguf": SMALL for file in model.files})
    window.watch.start()
    qtbot.waitUntil(lambda: window.chats.newcomer.card is not None)
    found = window.chats.newcomer.card
    assert found is not None
    assert found.speed.text()  # MEASURING, until the machine is known
    qtbot.waitUntil(lambda: any(offer.row is not None for offer in found.offers), timeout=round(SECONDS * 1_000))
    return found


@pytest.fixture(autouse=True)
def clicked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let offers take clicks as soon as they are there."""
    monkeypatch.setattr(first_start, "NEW_SECONDS", 0.0)


@pytest.fixture
def card(qtbot, hub: HubServer, models_folder: Path, window: MainWindow) -> FirstStart:
    """The card on a machine that was measured before."""
    remember_probe(models_folder.parents[1] / "cache")
    return shown(qtbot, hub, window)


@pytest.mark.parametrize("is_known", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_machine_is_measured_and_models_are_offered_with_their_speeds(
    qtbot, hub: HubServer, models_folder: Path, window: MainWindow, is_known: bool
) -> None:
    if is_known:
        remember_probe(models_folder.parents[1] / "cache")
    card = shown(qtbot, hub, window)
    qtbot.waitUntil(lambda: "of memory" in card.machine.text() and "a second" in card.speed.text())
    offers = [offer for offer in card.offers if offer.row is not None]
    assert [offer.choice for offer in offers] == [
        choice for choice in SuggestionTier if choice in {o.choice for o in offers}
    ]
    assert all("≈" in offer.speed.text() and offer.button.text().startswith("Download") for offer in offers)
    if not is_known:
        return  # beside other programs a machine may seem too slow for more than one of them
    window.resize(1240, 800)
    qtbot.waitUntil(lambda: card.width() > 560)
    window.chats.open_beside(None)  # which leaves its page half as wide
    welcome = window.chats.panes.pages[0].welcome
    qtbot.waitUntil(lambda: welcome.widget().width() <= welcome.viewport().width())
    qtbot.waitUntil(lambda: offers[1].y() > offers[0].y())


class ToldMachine(QObject):
    """A library that knows a machine and nothing else."""

    downloads_changed = Signal(object)
    downloads = ()

    def __init__(self, machine: MachineFacts, rows: tuple[SuggestedRow, ...] = ()) -> None:
        super().__init__()
        self.machine = machine
        self.rows = rows

    def ask(self, request: Any, done: Any = None, failed: Any = None) -> None:
        if isinstance(request, ask.ShowMachine):
            done(self.machine)
        elif isinstance(request, ask.ListCurated):
            done(Suggested("", "", self.rows if self.machine.bandwidth else ()))
        elif isinstance(request, ask.MeasureMachine):
            self.finish, self.refuse = done, failed

    def measure(self) -> None:
        self.machine = replace(self.machine, bandwidth=20e9)
        self.finish(None)


@pytest.mark.parametrize("width", [400, 800, 1_600])
def test_suggestions_stay_in_place_when_models_are_offered(
    qtbot, qapp, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "NEW_SECONDS", 60.0)
    rows = tuple(
        SuggestedRow(
            title, "", title, "Q4_0", 1, 1, 731_000_000, True, words, "", FitVerdict.GREEN, 12.0, choice=choice
        )
        for choice, title, words in zip(
            SuggestionTier,
            ("Qwen3.5 0.8B", "LFM2.5 1.2B Instruct", "gpt-oss 20B"),
            ("many languages", "summaries and extraction on any laptop", "agents"),
            strict=True,
        )
    )
    link = ToldMachine(MachineFacts("A chip", 8, 64 << 30, 60 << 30, (), None), rows)
    welcome, card = Welcome(), FirstStart(cast(Any, link))
    qtbot.addWidget(welcome)
    welcome.resize(width, 700)
    welcome.show()
    welcome.show_card(card)
    card.begin()
    for _ in range(5):
        qapp.processEvents()
    assert not any(offer.button.isVisible() for offer in card.offers)
    before = card.height(), [example.y() for example in welcome.examples]
    link.measure()
    for _ in range(5):
        qapp.processEvents()
    assert all(offer.button.isVisible() for offer in card.offers)
    assert (card.height(), [example.y() for example in welcome.examples]) == before
    wanted = list[object]()
    card.offers[0].wanted.connect(wanted.append)
    card.offers[0].button.click()
    assert not wanted, "the click was meant for what was there before"
    monkeypatch.setattr(first_start, "NEW_SECONDS", 0.0)
    card.offers[0].button.click()
    assert wanted == [rows[0]]


def test_what_was_measured_elsewhere_is_said_when_the_card_is_shown_again(qtbot) -> None:
    link = ToldMachine(MachineFacts("A chip", 8, 64 << 30, 60 << 30, (), 31.1e9))
    card = FirstStart(cast(Any, link))
    qtbot.addWidget(card)
    card.show()
    card.begin()
    assert "31.1 GB" in card.speed.text()
    card.hide()
    link.machine = replace(link.machine, bandwidth=32.7e9)
    card.show()
    assert "32.7 GB" in card.speed.text()


def test_where_no_model_fits_no_room_is_kept(qtbot) -> None:
    link = ToldMachine(MachineFacts("A chip", 8, 64 << 30, 60 << 30, (), None))
    card = FirstStart(cast(Any, link))
    qtbot.addWidget(card)
    card.begin()
    assert not any(offer.isHidden() for offer in card.offers)
    for _ in range(first_start.REFUSALS):
        link.refuse(Trouble("Another server is at work."))
    assert card.speed.text() == "Another server is at work."
    assert all(offer.isHidden() for offer in card.offers)
    card.begin()  # it was closed, and is shown again
    link.refuse(Trouble("Another server is at work."))
    assert card.speed.text() == "Another server is at work."
    assert all(offer.isHidden() for offer in card.offers)
    link.measure()
    assert all(offer.isHidden() for offer in card.offers)
    assert card.note.text().startswith("None of the usual models")


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (3.6e12, "RTX reads 3,600.0 GB a second: that sets how fast a model in its memory"),
        (None, "How fast RTX reads a model is measured when"),
    ],
)
def test_where_a_gpu_is_models_are_as_fast_as_its_memory(qtbot, rate: float | None, words: str) -> None:
    gpus = (
        GpuFacts("RTX" if rate is None else "Slow", 1 << 30, 1e10 if rate else None),
        GpuFacts("RTX", 24 << 30, rate),
    )
    card = FirstStart(cast(Any, ToldMachine(MachineFacts("A chip", 8, 64 << 30, 60 << 30, gpus, 90e9))))
    qtbot.addWidget(card)
    card.begin()
    assert card.speed.text().startswith(words)


def test_one_click_downloads_a_model_and_uses_it(qtbot, card: FirstStart, window: MainWindow) -> None:
    with qtbot.waitSignal(window.chats.newcomer.use_wanted) as used:
        card.offers[0].button.click()
        window.show_page("settings")
    assert card.isHidden()
    name = Path(used.args[0]).stem
    qtbot.waitUntil(lambda: window.page.picker.shown_model == name)
    assert window.chats.toast.text == f"{name} answers from now on"
    assert window.settings is not None
    assert window.settings.isVisible(), "who is elsewhere stays there"


def test_one_that_was_begun_before_the_window_was_closed_is_used_too(
    qtbot, card: FirstStart, hub: HubServer, window: MainWindow
) -> None:
    offer = card.offers[0]
    assert offer.row is not None
    hub.fault(f"{offer.row.title}-{offer.row.quantisation}.gguf", Fault(bytes_per_second=5e5))
    used = list[str]()
    window.chats.newcomer.use_wanted.connect(used.append)
    window.link.ask(ask.StartDownload(offer.row.repo_id, offer.row.quantisation))
    qtbot.waitUntil(lambda: offer.is_coming)
    window.chats.newcomer.show()
    qtbot.waitUntil(lambda: card.is_busy)
    qtbot.waitUntil(lambda: bool(used))


def test_how_a_download_goes_wraps_between_its_figures_alone(qtbot, card: FirstStart, window: MainWindow) -> None:
    offer = card.offers[0]
    assert offer.row is not None
    progress = DownloadProgress(DownloadPhase.DOWNLOADING, 19 * 10**8, 52 * 10**8, 48e6, 91.0)
    offer.show_download(Download(1, offer.row.repo_id, offer.row.quantisation, progress))
    assert offer.state.text().replace("\N{NO-BREAK SPACE}", "_").split() == [
        "1.9_GB_of_5.2_GB", "·", "48_MB/s", "·", "1_min_31_s_left",
    ]  # fmt: skip
    with qtbot.assertNotEmitted(offer.cancel_wanted):
        offer.button.click()
    (box,) = window.findChildren(QMessageBox)
    assert "1.9 GB" in box.informativeText(), "much is not deleted by a slip of the mouse"
    box.reject()


def test_a_download_that_fails_says_why_and_is_tried_again(qtbot, card: FirstStart, hub: HubServer) -> None:
    offer = card.offers[0]
    assert offer.row is not None
    hub.fault(f"/{offer.row.repo_id}/", Fault(status=403))
    offer.button.click()
    qtbot.waitUntil(lambda: offer.button.text() == "Try again")
    assert offer.state.text()
    assert not offer.bar.isVisible(), "nothing has come of it"
    assert not card.is_busy, "who has another model by now needs the card no more"
    hub.heal()
    with qtbot.waitSignal(card.use_wanted):
        offer.button.click()


def test_a_model_that_the_hub_has_no_more_is_no_name_to_check(qtbot, card: FirstStart, hub: HubServer) -> None:
    offer = card.offers[0]
    assert offer.row is not None
    del hub.repos[offer.row.repo_id]
    offer.button.click()
    qtbot.waitUntil(lambda: "Take another one" in offer.state.text())
    assert not card.is_busy, "nothing comes: the card may go once another model is here"


def test_one_that_is_refused_late_leaves_the_one_chosen_since(qtbot, card: FirstStart) -> None:
    refused, wanted = card.offers[:2]
    with qtbot.waitSignal(card.use_wanted) as used:
        refused.again_wanted.emit(999)  # which there is not
        wanted.button.click()  # before the answer about the other
        refused.cancel_wanted.emit(999)  # which ends the other alone
    assert "Take another one" in refused.state.text()
    assert wanted.row is not None
    assert wanted.row.repo_id in used.args[0]


def test_other_models_are_those_that_can_be_downloaded(card: FirstStart, window: MainWindow) -> None:
    card.more.click()
    assert window.library.finder.field.isVisible(), "the two toys that are here are no choice"


def test_closed_it_stays_away_until_it_is_asked_for(card: FirstStart, window: MainWindow) -> None:
    card.close_button.click()
    assert card.isHidden()
    welcome = window.page.welcome
    assert not welcome.models.isHidden()
    window.watch.models_changed.emit(window.watch.models)
    assert card.isHidden()
    welcome.models.click()
    assert not card.isHidden()
    assert welcome.models.isHidden()


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("home/.lmstudio/models/acme/hen-GGUF", "LM Studio has models"),
        ("hf-home/hub/models--acme--hen/snapshots/a", "The Hugging Face cache has models"),
    ],
)
def test_models_of_another_program_are_offered_first(
    qtbot, hub: HubServer, models_folder: Path, window: MainWindow, tmp_path: Path, folder: str, words: str
) -> None:
    for empty in ("hf-home/hub/models--acme--bert/snapshots", "home/.cache/lm-studio/models", "home/.lmstudio/models"):
        (tmp_path / empty).mkdir(parents=True)
    other = tmp_path / folder
    other.mkdir(parents=True, exist_ok=True)
    (other / "hen-Q8_0.gguf").write_bytes(SMALL)
    remember_probe(models_folder.parents[1] / "cache")
    card = shown(qtbot, hub, window)
    qtbot.waitUntil(lambda: words in card.others.words.text())
    card.others.button.click()
    qtbot.waitUntil(lambda: window.library is not None and window.library.isVisible())
    library = window.library
    assert library is not None
    qtbot.waitUntil(lambda: "hen-Q8_0" in [row.key for row in library.models.list.rows.rows])
    assert card.others.isHidden()


def test_a_file_of_this_machine_is_used_where_it_is(
    qtbot, card: FirstStart, window: MainWindow, tmp_path: Path
) -> None:
    file = tmp_path / "mine" / "hen-Q8_0.gguf"
    file.parent.mkdir()
    file.write_bytes(SMALL)
    qtbot.mouseClick(card.file, Qt.MouseButton.LeftButton)
    (dialog,) = window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(file))
    dialog.reject()
    qtbot.waitUntil(lambda: window.page.picker.shown_model == "hen-Q8_0")


@pytest.mark.parametrize("percent", [100, 150])
def test_long_words_on_the_buttons_are_read_whole_in_any_width(
    qtbot, qapp, card: FirstStart, window: MainWindow, percent: int
) -> None:
    window.resize_text(percent)
    offers = [offer for offer in card.offers if offer.isVisible()]
    assert offers
    for offer in offers:
        offer.button.setText("Herunterladen  ≈ 1.234,5 MB")

    def are_whole() -> bool:
        return all(
            offer.button.width() >= offer.button.sizeHint().width()
            and offer.rect().contains(offer.button.geometry())
            and card.rect().contains(offer.geometry())
            for offer in offers
        )

    for width in range(480 if percent == 100 else 640, 1_200, 40):
        window.resize(width, 700)
        qapp.processEvents()
        qtbot.waitUntil(are_whole)
