"""The race: two ways to answer, one after the other, measured, and kept as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication, QImage

from tools.stand_ins.fake_openai import FakeServer
from ui.chat.race import RaceDialog, verdict
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


@pytest.fixture
def race(qtbot, window: MainWindow, server: FakeServer) -> RaceDialog:
    window.watch.start()
    qtbot.waitUntil(lambda: bool(window.watch.models))
    window.desk.send("Say\nhello")
    qtbot.waitUntil(lambda: not window.desk.current.is_running)
    window.page.transcript.open_receipt()
    view = window.page.transcript.view_of(window.desk.current.tree.path[-1].id)
    view.receipt_card.race.click()  # type: ignore[union-attr]
    dialog = window.findChild(RaceDialog)
    assert dialog is not None
    return dialog


def test_both_answer_the_same_prompt_and_the_faster_one_wins(
    qtbot, race: RaceDialog, server: FakeServer, tmp_path: Path
) -> None:
    assert race.prompt.text() == "Say hello"
    assert not race.save.isEnabled()
    race.start.click()
    qtbot.waitUntil(race.save.isEnabled)
    plain, drafted = server.requests[-2:]
    assert [one["speculation"] for one in (plain, drafted)] == [False, True]
    assert plain | {"speculation": True} == drafted
    assert [lane.figure.text() for lane in race.lanes] == ["241 tok/s", "412 tok/s"]
    assert [lane.words.text() for lane in race.lanes] == ["", "1.71× as fast"]
    race.copy.click()
    assert not QGuiApplication.clipboard().pixmap().isNull()
    race.save_to(str(tmp_path / "race.png"))
    assert not QImage(str(tmp_path / "race.png")).isNull()
    race.save_to(str(tmp_path / "nowhere" / "race.png"))
    assert "cannot be saved" in race.problem.text()


def test_a_model_that_does_not_answer_ends_the_race(qtbot, race: RaceDialog, server: FakeServer) -> None:
    server.error = (503, {"error": {"message": "It is being loaded.", "code": "x"}})
    race.start.click()
    qtbot.waitUntil(lambda: not race.is_running)
    assert "did not answer: It is being loaded." in race.problem.text()
    assert race.start.text() == "Start"


def test_closing_stops_it(qtbot, race: RaceDialog, server: FakeServer) -> None:
    server.pieces, server.delay = ["word "] * 10_000, 0.01
    race.start.click()
    qtbot.waitUntil(lambda: race.lanes[0].view.text != "")
    race.close()
    qtbot.waitUntil(server.gone.is_set)
