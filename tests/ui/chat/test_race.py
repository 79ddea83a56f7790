"""The race: two ways to answer, in turns or at once, measured, and kept as a picture."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QStyleOptionComboBox

from tools.stand_ins.fake_openai import TIMINGS, FakeServer
from ui.chat.race import SAME_MODEL, RaceDialog, together, verdict
from ui.theme.appearance import ThemeChoice
from ui.window.main_window import MainWindow


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (10.0, 17.1, ("", "1.71× as fast")),
        (20.0, 10.0, ("2.00× as fast", "")),
        (10.0, 10.1, ("As fast as the other", "As fast as the other")),
        (0.0, 10.0, ("", "")),
    ],
)
def test_the_faster_one_is_named(first: float, second: float, expected: tuple[str, str]) -> None:
    assert verdict(first, second) == expected
    assert (together((1.0, 4.0), (2.0, 6.0)), together((1.0, 2.0), (3.0, 4.0))) == (2.0, 0.0)


@pytest.fixture
def race(qtbot, window: MainWindow, server: FakeServer) -> RaceDialog:
    window.watch.start()
    qtbot.waitUntil(lambda: bool(window.watch.models))
    window.desk.current.send("Say\nhello")
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    view = window.page.transcript.view_of(window.desk.current.tree.path[-1].id)
    view.receipt.click()
    view.receipt_card.race.click()
    dialog = window.findChild(RaceDialog)
    assert dialog is not None
    return dialog


def test_both_answer_the_same_prompt_and_the_faster_one_wins(
    qtbot, race: RaceDialog, server: FakeServer, tmp_path: Path
) -> None:
    assert race.prompt.text() == "Say hello"
    assert race.prompt.selectedText() == "Say hello", "typing replaces it"
    assert not race.save.isEnabled()
    width = race.start.width()
    race.start.click()
    assert race.start.text() == "Stop"
    assert race.start.sizeHint().width() <= race.start.minimumWidth() == width, "what is beside it stays"
    qtbot.waitUntil(race.save.isEnabled)
    plain, drafted = server.requests[-2:]
    assert [one["speculation"] for one in (plain, drafted)] == [False, True]
    assert plain | {"speculation": True} == drafted
    assert [lane.figure.text() for lane in race.lanes] == ["241 tok/s", "412 tok/s"]
    assert [lane.words.text() for lane in race.lanes] == ["", "1.71× as fast"]
    race.copy.click()
    assert not QGuiApplication.clipboard().pixmap().isNull()
    race.save_to(str(tmp_path / "nowhere" / "race.png"))
    assert "cannot be saved" in race.problem.text()
    race.save_to(str(tmp_path / "race.png"))
    assert not QImage(str(tmp_path / "race.png")).isNull()
    assert (race.problem.isHidden(), race.save.text()) == (True, "Saved")
    for odd in ({"accepted_tokens": 1, "drafted_tokens": 1}, {"decode_per_second": 100.0}):
        server.timings = TIMINGS | odd
        race.start.click()
        qtbot.waitUntil(race.save.isEnabled)
        assert [lane.words.text() for lane in race.lanes] == ["", ""], "drafts neither bring nor cost that much"
        assert race.note.text().startswith("Something else used this machine")


def test_what_did_the_same_or_had_company_has_no_winner(qtbot, race: RaceDialog, server: FakeServer) -> None:
    server.timings = TIMINGS | {"drafted_tokens": 0, "accepted_tokens": 0}
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    assert [lane.words.text() for lane in race.lanes] == ["", ""]
    assert race.note.text().startswith("Nothing was drafted")
    server.timings, server.n_active = TIMINGS, 2
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    qtbot.waitUntil(lambda: race.note.text().startswith("Other replies were written meanwhile"))
    assert [lane.words.text() for lane in race.lanes] == ["", ""]
    server.n_active = 1
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    assert [lane.words.text() for lane in race.lanes] == ["", "1.71× as fast"]


def test_others_that_come_in_the_middle_are_told_and_void_only_what_they_may_have_decided(
    qtbot, race: RaceDialog, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(1.0)
    monkeypatch.setattr("ui.chat.race.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    for n_pieces, n_with_others, words, details in (
        (4, 2, "", "others were answered for 50% of the time"),
        (4, 1, "1.71× as fast", "others were answered for 25% of the time"),
        (35, 1, "1.71× as fast", ""),
    ):
        server.pieces, server.steps = ["word "] * n_pieces, threading.Semaphore(0)
        race.start.click()
        for number in range(n_pieces):
            server.n_active = 2 if 0 < number <= n_with_others else 1
            server.steps.release()
            qtbot.waitUntil(lambda n_looks=number + 1: len(race.lanes[0].looks) == n_looks)
        server.n_active = 1
        server.steps.release(n_pieces)
        qtbot.waitUntil(race.save.isEnabled)
        assert [lane.words.text() for lane in race.lanes] == ["", words]
        assert race.note.text().startswith("One after the other" if words else "Other replies were written meanwhile")
        assert race.lanes[0].details.text().partition("128 tokens")[0].strip(" ·") == details
        assert "others" not in race.lanes[1].details.text()


def test_who_races_can_be_told_apart_where_names_are_long(race: RaceDialog) -> None:
    field, option = race.lanes[0].choice, QStyleOptionComboBox()
    names = [
        f"Mistral-Small-24B-Instruct-2501-reasoning-distill-v2-{kind}  ·  with drafts" for kind in ("Q4_K_M", "Q5_K_M")
    ]
    field.addItems(names)
    field.setFixedWidth(330)
    shown = []
    for name in names:
        field.setCurrentText(name)
        field.initStyleOption(option)
        shown.append(option.currentText)
    assert all(text.startswith("Mistral") and "…" in text for text in shown)
    assert [text[-22:] for text in shown] == ["Q4_K_M  ·  with drafts", "Q5_K_M  ·  with drafts"]
    field.showPopup()
    assert field.view().visualRect(field.view().model().index(field.count() - 1, 0)).width() >= (
        field.fontMetrics().horizontalAdvance(names[1])
    )
    field.hidePopup()


@pytest.mark.parametrize("order", [0, 1], ids=["in turns", "at once"])
def test_a_model_that_does_not_answer_ends_the_race(qtbot, race: RaceDialog, server: FakeServer, order: int) -> None:
    race.order.setCurrentIndex(order)
    server.error = (503, {"error": {"message": "It is being loaded.", "code": "x"}})
    race.start.click()
    qtbot.waitUntil(lambda: not race.is_running)
    assert "did not answer: It is being loaded." in race.problem.text()
    assert race.start.text() == "Start"
    assert not race.save.isEnabled()
    server.error, server.error_in_stream = None, "It broke."
    race.order.setCurrentIndex(0)
    race.start.click()
    qtbot.waitUntil(lambda: "did not get to the end: It broke." in race.problem.text())


def test_what_was_written_follows_the_looks(qtbot, race: RaceDialog, window: MainWindow) -> None:
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)

    def colour() -> QColor:
        return race.lanes[0].view.document().begin().begin().fragment().charFormat().foreground().color()

    before = colour()
    window.choose_theme(ThemeChoice.DARK)
    assert colour().lightness() > before.lightness()


def test_closing_stops_it(qtbot, race: RaceDialog, server: FakeServer) -> None:
    server.pieces, server.delay = ["word "] * 10_000, 0.01
    race.start.click()
    qtbot.waitUntil(lambda: race.lanes[0].view.text != "")
    race.close()
    qtbot.waitUntil(server.gone.is_set)


def test_two_models_race_at_once_and_the_picture_says_that_they_shared_the_machine(
    qtbot, race: RaceDialog, server: FakeServer
) -> None:
    assert "neither takes the machine from the other" in race.note.text()
    race.order.setCurrentIndex(1)
    models = [lane.racer.model for lane in race.lanes]
    assert models == ["ember-q8_0", "ember-draft-q8_0"]
    server.pieces, server.delay = ["word "] * 40, 0.01
    n_before = len(server.requests)
    race.start.click()
    qtbot.waitUntil(lambda: all(lane.view.text != "" for lane in race.lanes))
    assert [lane.speed for lane in race.lanes] == [0, 0], "neither has ended"
    assert not race.copy.isEnabled()
    qtbot.waitUntil(race.save.isEnabled)
    asked = [(one["model"], one["max_tokens"] > 1) for one in server.requests[n_before:]]
    assert asked[:2] == [(models[0], False), (models[1], False)]  # both are loaded before they start
    assert sorted(asked[2:]) == sorted((model, True) for model in models)
    assert [lane.figure.text() for lane in race.lanes] == ["241 tok/s", "412 tok/s"]
    assert [lane.words.text() for lane in race.lanes] == ["", "1.71× as fast"]
    assert "both share the machine" in race.note.text()
    assert "They wrote together for" in race.note.text()
    assert race.picture.isAncestorOf(race.note)
    race.order.setCurrentIndex(0)  # what was measured at once is not shown as if it was in turns
    assert [lane.figure.text() for lane in race.lanes] == ["–", "–"]
    assert not race.save.isEnabled()


def test_one_model_does_not_race_with_itself_at_once(qtbot, race: RaceDialog) -> None:
    race.order.setCurrentIndex(1)
    race.lanes[1].choice.setCurrentIndex(1)
    assert race.problem.text() == SAME_MODEL
    assert not race.start.isEnabled()
    race.order.setCurrentIndex(0)
    assert race.problem.isHidden()
    assert race.start.isEnabled()


def test_two_replies_that_reach_a_busy_window_in_one_piece_each_were_written_at_once(
    qtbot, race: RaceDialog, server: FakeServer
) -> None:
    race.order.setCurrentIndex(1)
    server.pieces = ["All of it. "]
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    assert "They wrote together for" in race.note.text()


def test_models_that_did_not_write_at_once_are_not_said_to_have_shared(
    qtbot, race: RaceDialog, server: FakeServer
) -> None:
    race.order.setCurrentIndex(1)
    server.timings = TIMINGS | {"decode_ms": 1.0}
    server.takes_turns, server.steps = True, threading.Semaphore(9)  # both are made ready, and one writes
    race.start.click()
    qtbot.waitUntil(lambda: any(lane.speed > 0 for lane in race.lanes))
    assert race.is_running
    server.steps.release(3)
    qtbot.waitUntil(race.save.isEnabled)
    assert race.note.text().startswith("They did not write at once")


def test_models_that_memory_does_not_hold_together_take_turns_the_one_that_is_there_first(
    qtbot, race: RaceDialog, server: FakeServer
) -> None:
    race.order.setCurrentIndex(1)
    n_before = len(server.requests)
    server.holds_one, server.steps = True, threading.Semaphore(6)  # both are made ready
    race.start.click()
    first, second = race.lanes
    qtbot.waitUntil(lambda: race.note.text().startswith("Only one of these models can be in memory at a time"))
    qtbot.waitUntil(lambda: len(server.requests) == n_before + 3)
    assert (first.details.text(), second.details.text()) == ("", "Getting ready…"), "the second is in memory"
    server.steps.release(6)
    qtbot.waitUntil(race.save.isEnabled)
    models = [lane.racer.model for lane in race.lanes]
    asked = [(one["model"], one["max_tokens"] > 1) for one in server.requests[n_before:]]
    assert asked == [(models[0], False), (models[1], False), (models[1], True), (models[0], True)]
    assert race.note.text().startswith("Only one of these models can be in memory at a time")
    assert [lane.words.text() for lane in race.lanes] == ["", "1.71× as fast"]
    assert [lane.details.text() for lane in race.lanes] != ["", ""]


def test_a_race_that_is_stopped_while_its_models_are_made_ready_says_so_no_more(
    qtbot, race: RaceDialog, server: FakeServer
) -> None:
    race.order.setCurrentIndex(1)
    server.steps = threading.Semaphore(0)
    race.start.click()
    assert race.lanes[0].details.text() == "Getting ready…"
    race.start.click()
    assert not race.is_running
    assert race.lanes[0].details.text() == ""
