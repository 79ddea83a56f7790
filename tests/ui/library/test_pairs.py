"""Partners, tests of pairs, recommendations and changed files in the library page, with the real process behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.client.discovery import enlist
from models.catalog.catalog import STARTER_FOLDER
from models.library import requests as ask
from models.library.values import Choosing
from tools.stand_ins.fake_openai import FakeServer
from tools.stand_ins.hub_server import Fault, HubServer
from tools.stand_ins.library_server import LibraryServer
from ui.client.library_link import LOST
from ui.library.library_page import HERE, LibraryPage
from ui.library.settings.settings_dialog import SettingsDialog

REPO = "acme/fox-GGUF"
SMALL = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
EMBER, DRAFT = "ember-q8_0", "ember-draft-q8_0"


def chosen(qtbot, page: LibraryPage, name: str) -> None:
    qtbot.waitUntil(lambda: name in [row.key for row in page.models.list.rows.rows])
    page.models.list.choose(name)


def paired(qtbot, page: LibraryPage, name: str) -> None:
    chosen(qtbot, page, name)
    card = page.models.details.partners
    qtbot.waitUntil(lambda: card.shown is not None and card.shown.name == name)


def test_the_details_judge_a_model_and_show_its_partner(qtbot, page: LibraryPage) -> None:
    paired(qtbot, page, EMBER)
    details = page.models.details
    assert "× expected" in details.partners.facts.facts[DRAFT]
    assert details.partners.test.text() == "Test this pair"
    qtbot.waitUntil(details.machine.facts.isVisible)
    assert "It fits" in details.machine.sentence.text()
    assert details.machine.facts.facts["Memory"] == "fits"


def test_one_without_partners_has_reasons_and_an_offer_or_why_there_is_none(qtbot, page: LibraryPage) -> None:
    paired(qtbot, page, DRAFT)
    card = page.models.details.partners
    assert not card.test.isVisible()
    assert "larger than the model" in card.refused.text()
    qtbot.waitUntil(lambda: "nothing to download" in card.offers.itemAt(0).widget().text())


def test_who_drafts_is_chosen(qtbot, page: LibraryPage) -> None:
    paired(qtbot, page, EMBER)
    card = page.models.details.partners
    actions = {action.text(): action for action in card.choice.menu().actions()}
    assert list(actions) == ["Automatic", "None", DRAFT]
    assert card.choice.text() == "Automatic"
    assert not card.choice.icon().isNull(), "the arrow of other choices"
    actions["None"].trigger()
    qtbot.waitUntil(lambda: card.shown is not None and card.shown.choosing is Choosing.NONE)
    assert card.choice.text().startswith("None")
    assert "loaded next" in card.result.text()
    assert "You chose that none drafts." in card.why.text()


def test_a_draft_in_the_settings_is_shown_and_a_choice_takes_its_place(qtbot, page: LibraryPage) -> None:
    paired(qtbot, page, EMBER)
    card = page.models.details.partners
    page.models.details.settings.click()
    (dialog,) = page.window().findChildren(SettingsDialog)
    qtbot.waitUntil(dialog.form.isEnabled)
    qtbot.keyClicks(dialog.rows["draft"].field, DRAFT)
    dialog.save.click()
    qtbot.waitUntil(lambda: card.shown is not None and card.shown.choosing is Choosing.SETTINGS)
    assert card.choice.text().startswith(f"{DRAFT}, by its settings")
    assert "goes before automatic pairing. That would choose the same" in card.why.text()
    card.choose(Choosing.AUTOMATIC)
    qtbot.waitUntil(lambda: card.choice.text().startswith("Automatic"))
    assert card.result.text().startswith("The draft in the model's settings is reset.")


@pytest.mark.slow
def test_a_pair_is_tested_by_one_click_once_replies_have_ended_and_another_can_be_stopped(
    qtbot, page: LibraryPage, server: FakeServer
) -> None:
    paired(qtbot, page, EMBER)
    card = page.models.details.partners
    server.n_active = 1
    enlist(host="127.0.0.1", port=int(server.url.rpartition(":")[2]), api_key=None, model=None)
    card.test.click()
    assert card.bar.isVisible()
    assert card.test.text() == "Stop the test"
    qtbot.waitUntil(card.wait.isVisible)
    assert not card.bar.isVisible()
    assert "A reply is being written on this machine." in card.wait.words.text()
    server.n_active = 0
    qtbot.waitUntil(card.bar.isVisible)
    # Where a step takes a third of a millisecond, drafts may pay or not.
    qtbot.waitUntil(lambda: any(words in card.result.text() for words in ("tokens/s instead of", "drafted nothing")))
    qtbot.waitUntil(lambda: any(words in card.facts.facts[DRAFT] for words in ("× measured", "drafted nothing")))
    assert not card.bar.isVisible()
    server.n_active = 1
    card.test.click()
    qtbot.waitUntil(card.wait.button.isVisible)
    card.wait.button.click()
    qtbot.waitUntil(lambda: not card.wait.isVisible())
    card.test.click()
    qtbot.waitUntil(lambda: card.result.text().startswith("Stopped."))
    assert card.test.isEnabled()


def test_a_test_whose_library_dies_says_so(
    qtbot, page: LibraryPage, server: FakeServer, library_server: LibraryServer
) -> None:
    paired(qtbot, page, EMBER)
    card = page.models.details.partners
    server.n_active = 1
    enlist(host="127.0.0.1", port=int(server.url.rpartition(":")[2]), api_key=None, model=None)
    card.test.click()
    qtbot.waitUntil(card.wait.isVisible)
    library_server.process.kill()
    qtbot.waitUntil(lambda: card.result.text() == LOST)


def test_a_changed_model_is_mended_and_a_deleted_one_is_told_and_downloaded_again(
    qtbot, page: LibraryPage, hub: HubServer, models_folder: Path
) -> None:
    page.window().link.ask(ask.StartDownload(REPO, "fox-Q8_0.gguf"))
    page.show_tab(HERE)
    chosen(qtbot, page, "fox-Q8_0")
    place = models_folder / REPO / "fox-Q8_0.gguf"
    place.write_bytes(SMALL[:-1] + b"!")
    page.models.look()
    details = page.models.details
    qtbot.waitUntil(lambda: "have changed" in details.mending.words.text())
    qtbot.waitUntil(lambda: details.mending.button.text() == "Download again")
    hub.fault("fox-Q8_0.gguf", Fault(times=1, bytes_per_second=1e6))
    details.mending.button.click()
    qtbot.waitUntil(lambda: details.mending.button.text() == "Show in downloads")
    details.mending.button.click()
    assert page.downloads.isVisible()
    page.show_tab(HERE)
    qtbot.waitUntil(lambda: not details.mending.isVisible())
    assert details.facts.facts["Verified"].startswith("yes")
    assert place.read_bytes() == SMALL
    place.unlink()
    page.models.look()
    qtbot.waitUntil(lambda: "was deleted" in page.models.notice.text)
    page.models.notice.action.click()
    qtbot.waitUntil(place.exists)
    qtbot.waitUntil(lambda: page.models.notice.text == "")
