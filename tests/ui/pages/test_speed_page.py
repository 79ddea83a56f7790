"""The speed page: what it says of the engine, with the real server; its sentences and lines without."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from app.server.meters import Gpu, read_nvidia
from core.values.messages import Bottleneck, Snapshot
from models.estimate.fit.summary import FitSummary, FitVerdict
from models.library import requests as ask
from models.library.values import (
    Choosing,
    MachineFacts,
    MeasuringStep,
    ModelFitReport,
    PairStep,
    PartnerRow,
    Partners,
    QuantiseOffer,
    QuantiseTarget,
    Trouble,
    TroubleKind,
)
from ui.client.api import Api, ServerState
from ui.client.server_watch import ServerWatch
from ui.gauges import faces
from ui.speed import speed_page
from ui.speed.history import SECONDS, History
from ui.speed.measuring_card import MEASURE, PAIR, STOPPED, VERIFY, MeasuringCard, gains, verdict
from ui.speed.plots import Axis, LinePlot
from ui.speed.sentences import LIMITS, decision, helps
from ui.speed.speed_page import DASH, load_facts
from ui.theme.colours import use_colours
from ui.theme.tokens import DARK, mixed
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.facts_grid import FactsGrid
from ui.window.main_window import MainWindow

FAST = PartnerRow("fox-small", "small model", 1, 1, 1.8, None, None)


def partners(used: str | None = None, *rows: PartnerRow) -> Partners:
    return Partners("fox", used, "", Choosing.AUTOMATIC, bool(rows), (), rows)


def copies(n_small: int) -> QuantiseOffer:
    return QuantiseOffer("fox", "Q8_0", 100, False, 1, "", (QuantiseTarget("Q4_K_M", n_small, "", "", True),))


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (Snapshot(n_drafted=1, n_accepted=1, speedup=1.7), "guessing was right for 1 of 1 token"),
        (
            Snapshot(n_drafted=10, n_accepted=8, speedup=1.7),
            ": over the last second guessing was right for 8 of 10",
        ),
        (Snapshot(n_drafted=10, n_accepted=8, speedup=1.7), "tokens, which makes it 1.70 times as fast"),
        (Snapshot(n_drafted=10, n_accepted=1, speedup=0.9), "does not pay yet (0.90"),
        (Snapshot(n_active=3, cheap_rows=6), "3 requests share each step: up to 6 rows take hardly longer"),
        (Snapshot(n_active=3, cheap_rows=1, n_waiting=2), "takes longer. 2 wait for a place."),
        (Snapshot(n_active=1), "Because. Nothing is drafted just now"),
    ],
)
def test_what_was_decided_is_said_in_a_sentence(snapshot: Snapshot, words: str) -> None:
    assert words in decision(snapshot, "Because.", False)
    assert "in the last reply guessing was right for 4 of 11" in decision(
        Snapshot(n_drafted=11, n_accepted=4), "", True
    )
    assert "Because. Nothing was drafted for the last reply" in decision(Snapshot(), "Because.", True)


@pytest.mark.parametrize("is_last", [True, False])
def test_what_was_expected_of_a_draft_is_not_said_beside_that_it_drafted_nothing(is_last: bool) -> None:
    words = decision(Snapshot(n_active=1), "fox-small drafts: 1.33× expected.", is_last, "fox-small")
    assert words.startswith("fox-small is loaded, and drafts when that pays. Nothing ")
    assert "expected" not in words


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((None, partners(None, FAST), None, Snapshot()), [("Let it draft", 1.8)]),
        ((None, partners("fox-small", FAST), None, Snapshot()), []),
        ((None, partners(), None, Snapshot()), [("Show in the library", None)]),
        ((None, partners(), None, Snapshot(), "fox-small"), []),
        ((None, None, copies(50), Snapshot(limited_by=Bottleneck.BANDWIDTH)), [("Show in the library", 2.0)]),
        ((None, None, copies(50), Snapshot(limited_by=Bottleneck.COMPUTE)), []),
        ((None, None, copies(50), Snapshot(is_in_cache=True)), []),
        ((None, None, copies(50), None), []),
        ((None, None, copies(99), Snapshot()), []),
        ((None, None, None, Snapshot(cheap_rows=7)), [("", 4.0)]),
        ((ModelFitReport("fox", FitSummary(FitVerdict.GREEN, "")), None, None, Snapshot()), [("", None)]),
    ],
)
def test_what_would_help_has_its_predicted_gain(found, expected) -> None:
    assert [(one.action, one.gain) for one in helps(*found)] == expected


def test_a_verification_has_one_gain_for_each_kind_of_text() -> None:
    rows = [{"kind": kind, "mode": "greedy", "speedup": gain} for kind, gain in (("code", 2), ("code", 4), ("copy", 3))]
    assert gains({"rows": rows, "summary": {"drafted": 9}}) == {"code": 3, "copy": 3}
    assert gains({"rows": rows, "summary": {"drafted": 0}}) == {}


def test_the_gain_of_a_verification_says_of_how_many_replies_it_is_the_median() -> None:
    rows = [
        {"kind": "copy", "mode": mode, "speedup": gain}
        for mode, gain in (("greedy", 1.8), ("sampled", 1.0), ("sampled", None))
    ]
    said = verdict({"rows": rows, "summary": {"drafted": 9, "accepted": 7, "speedup_median": 1.4}})
    assert "The median of 2 timed replies, sampled ones too, is 1.40 times as fast" in said
    assert "times as fast" not in verdict({"rows": rows, "summary": {"drafted": 9, "accepted": 7}})


def test_lines_forget_what_is_older_than_they_show() -> None:
    history = History()
    for second in range(400):
        now = Snapshot(is_idle=False, decode_rate=float(second), bytes_per_second=2e9)
        history.add(float(second), now)
    history.add(400.0)
    times, rates, gigabytes = history.lines(400.0)
    assert times[0] == 400.0 - SECONDS
    assert (rates[-2:], gigabytes[-2:]) == ([399.0, 0.0], [2.0, 0.0])


def test_the_line_reaches_the_figure_of_a_reply_that_was_over_before_its_speed_was_seen(lonely_api: Api) -> None:
    history, idle, watch, clock = History(), Snapshot(), ServerWatch(lonely_api), [0.0]
    watch.looked.connect(lambda state, seen: history.add_state(clock[0], state, seen))
    begun = Snapshot(is_idle=False, decode_rate=240.0)

    def add(now: float, model: str, snapshot: Snapshot, last_reply: Snapshot | None) -> list[float]:
        clock[0] = now
        watch.take(ServerState(phase="ready", model=model, snapshot=snapshot, last_reply=last_reply))
        return history.lines(now)[1]

    earlier, reply = replace(begun, decode_rate=900.0), replace(begun, decode_rate=540.0, bytes_per_second=8e9)
    assert add(0.0, "fox", idle, earlier) == [0.0], "it was over before anybody looked"
    assert add(10.0, "fox", begun, begun)[-1] == 240.0
    assert add(10.1, "fox", idle, reply)[-1] == 540.0
    assert history.lines(10.1)[2][-1] == 8.0
    assert add(12.0, "fox", idle, reply)[-1] == 0.0, "it counts once"
    assert add(14.0, "hen", idle, earlier)[-1] == 0.0, "it is of another model's past"
    watch.take(ServerState(phase="loading", model="hen"))
    assert add(18.0, "hen", idle, reply)[-1] == 540.0, "the first one after a load"
    for now, seen in ((18.9, None), (20.2, begun), (21.3, None)):  # before the server tells that it has ended
        history.add(now, seen)
    earlier = replace(earlier, decode_rate=300.0)
    assert add(22.4, "hen", idle, earlier)[-3:] == [300.0, 0.0, 0.0], "it is drawn where it ran"


@pytest.mark.parametrize(
    ("values", "written"), [([0.0, 0.5, 1.0], ["0.0", "0.5", "1.0"]), ([0.0, 2_000.0], ["0", "2,000"])]
)
def test_the_figures_of_an_axis_have_the_digits_that_tell_them_apart(values: list[float], written: list[str]) -> None:
    assert Axis("left").tickStrings(values, 1.0, values[1]) == written


def test_the_window_goes_on_while_what_draws_the_plots_is_imported(
    qtbot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import linecache, sys; from ui.platform.display import leave_sources_unread; leave_sources_unread()\n"
        "import ui.window.main_window, ui.speed.speed_page; print(*sys.modules, *linecache.cache)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ui.speed.speed_page" in loaded
    assert not {"pyqtgraph", "numpy"} & set(loaded), "a third of a second"
    assert not any(name.endswith("history.py") for name in loaded), "Qt would read every source, and keep it"
    go_on = threading.Event()
    monkeypatch.setattr(speed_page, "import_module", lambda name: go_on.wait(30) and import_module(name))
    window.show_page("speed")
    page = window.speed
    qtbot.wait(3 * speed_page.MAKE_MS)
    assert page.plots == [], "a thread imports it"
    go_on.set()
    needed = page._plots.rowMinimumHeight(1)
    qtbot.waitUntil(lambda: len(page.plots) == 2)
    qtbot.waitUntil(lambda: page.plots[1].height() == needed > 0)


def test_a_page_without_what_draws_the_plots_says_so_once(
    qtbot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fail(name: str) -> None:
        asked.append(name)
        raise ImportError("no such library")

    monkeypatch.setattr(speed_page, "import_module", fail)
    window.show_page("speed")
    qtbot.waitUntil(window.speed.no_lines.isVisible)
    assert "no such library" in window.speed.no_lines.text()
    qtbot.wait(3 * speed_page.MAKE_MS)
    assert asked == ["ui.speed.plots"]
    assert window.speed.plots == []


def test_a_plot_paints_its_line_and_says_it(qtbot) -> None:
    plot = LinePlot("Speed", "GB per second")
    qtbot.addWidget(plot)
    plot.resize(400, 150)
    use_colours(DARK)
    plot.dress()

    def colours() -> set[str]:
        image = plot.grab().toImage()
        return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}

    for values, peak in (([0.0, 0.0, 0.0], None), ([8.0, 8.0, 8.0], 12.0)):
        plot.show_line(100.0, [10.0, 99.0, 99.5], values, peak)
        found = colours()
        assert (mixed(DARK.canvas, DARK.accent, 0.16) in found) == (peak is not None), "below the line"
        assert {DARK.canvas, DARK.border} <= found
    assert "GB per second now" in plot.accessibleDescription()


def test_a_plot_leaves_the_wheel_to_the_page_and_time_runs_to_the_right(qtbot, window: MainWindow) -> None:
    window.resize(600, 400)
    window.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    window.show_page("speed")
    page = window.speed
    qtbot.waitUntil(lambda: len(page.plots) == 2 and page.plots[1].width() > 0)
    plot, end = page.plots[0], page.verticalScrollBar()
    at = window.windowHandle().mapFromGlobal(plot.mapToGlobal(plot.rect().center()))
    before = plot.box.viewRange()
    QTest.wheelEvent(window.windowHandle(), at, QPoint(0, -120))
    qtbot.waitUntil(lambda: end.value() > 0)
    assert plot.box.viewRange() == before
    assert plot.focusPolicy() is Qt.FocusPolicy.NoFocus
    axis = next(item for item in plot.items() if isinstance(item, Axis) and item.orientation == "left")
    assert axis.sceneBoundingRect().center().x() < plot.width() / 4


def test_what_a_gpu_does_not_tell_is_not_known() -> None:
    said = "NVIDIA H200, 37, 1024, 143771, 301.5\nTesla, [N/A], 10, 20, [Not Supported]\n"
    assert read_nvidia(said) == [
        Gpu("NVIDIA H200", 0.37, 2**30, 143_771 * 2**20, 301.5),
        Gpu("Tesla", None, 10 * 2**20, 20 * 2**20, None),
    ]


def test_the_line_of_the_processor_is_there_before_its_figure() -> None:
    assert load_facts({"cpu": None}) == [("Processor", DASH)]
    assert load_facts({"cpu": 0.25}) == [("Processor", "25% busy")]


def ask_machine(api: Api, found: list[dict]) -> dict:
    api.ask("GET", "/slipstream/machine", None, found.append, found.append)
    return found[-1]


def test_before_the_first_reply_nothing_is_offered_that_may_not_help(qtbot, served: MainWindow) -> None:
    served.show_page("speed")
    page, found = served.speed, list[QuantiseOffer]()
    assert page is not None
    served.link.ask(ask.OfferQuantise(served.watch.state.model), found.append)

    def said() -> list[str]:
        return [label.text() for label in page.findChildren(QLabel) if label.isVisible()]

    qtbot.waitUntil(lambda: found != [] and page._copies is not None and "Asking…" not in said())
    assert found[0].targets != ()
    assert not any("smaller copy" in words for words in said()), "it is in the cache"


def test_a_reply_is_seen_with_its_figures_and_memory_adds_up(qtbot, served: MainWindow, api: Api) -> None:
    served.show_page("speed")
    page = served.speed
    assert page is not None
    served.desk.current.send("Tell me a story about a fox.")
    qtbot.waitUntil(lambda: not served.desk.current.is_running and "last reply" in page.unit.text())
    said = float(page.rate.text().replace(",", ""))
    assert said > 0
    # The figure is rounded.
    qtbot.waitUntil(lambda: max(served.speeds.lines(time.monotonic())[1]) > 0.98 * said)
    what, _, reads = page.limit.text().partition(": ")
    assert what.lower() in LIMITS.values()
    assert "GB/\N{WORD JOINER}s" in reads, "it breaks at a space only"
    assert all(LIMITS[bound] == f"limited by {words}" for bound, words in faces.LIMITS.items()), "as in the foot"
    assert page.why.text() != ""
    qtbot.waitUntil(lambda: page.plots != [] and "tokens per second now" in page.plots[0].accessibleDescription())
    qtbot.waitUntil(lambda: page.memory.parts != () and page.memory.parts[1].value > 0)
    found: list[dict] = []
    api.ask("GET", "/slipstream/machine", None, found.append, found.append)
    qtbot.waitUntil(lambda: found != [])
    assert sum(found[0][kind] for kind in ("weights", "kv", "kept", "other", "free")) == found[0]["total"]
    # Whichever thread answers, the processor's share is of the time since the look before, not 0.
    qtbot.waitUntil(lambda: ask_machine(api, found)["cpu"] is not None)
    assert 0 < found[-1]["cpu"] <= 1
    api.connect_to("http://127.0.0.1:9", None)  # nobody there tells of the last reply once more
    served.watch.stop(is_gone=True)
    qtbot.waitUntil(lambda: page.rate.text() == DASH)
    served.show_page("chat")
    timers = page.findChildren(QTimer, options=Qt.FindChildOption.FindDirectChildrenOnly)
    qtbot.waitUntil(lambda: not any(timer.isActive() for timer in timers))


@pytest.mark.parametrize(("is_gone", "phase"), [(False, "unknown"), (True, "gone")])
def test_what_is_told_late_does_not_bring_back_a_server_that_is_left(
    qtbot, served: MainWindow, api: Api, is_gone: bool, phase: str
) -> None:
    watch, chat = served.watch, served.desk.current
    served.show_page("speed")
    chat.send("Tell me a story about a fox.")
    qtbot.waitUntil(lambda: watch.state.snapshot is not None and not watch.state.snapshot.is_idle)
    assert chat.is_running
    api.expect()
    watch.stop(is_gone=is_gone)
    qtbot.waitUntil(lambda: not chat.is_running)
    qtbot.wait(300)  # that it has ended is told within a tenth of a second
    assert watch.state.phase == phase


def test_drafts_by_depth_are_the_latest_also_beside_an_earlier_reply(qtbot, window: MainWindow) -> None:
    window.show_page("speed")
    page = window.speed
    assert page is not None
    reply = Snapshot(n_drafted=12, n_accepted=6, decode_rate=50.0)
    now = Snapshot(is_idle=True, drafted_at=(8, 4), accepted_at=(5, 1))
    window.watch.take(ServerState(phase="ready", snapshot=now, last_reply=reply))
    qtbot.waitUntil(lambda: page.depths.bars != ())
    assert "6 of 12" in page.why.text()
    assert [bar.share for bar in page.depths.bars] == [5 / 8, 1 / 4]


def test_a_figure_is_an_average_only_of_what_a_reply_wrote(qtbot, window: MainWindow) -> None:
    window.show_page("speed")
    page = window.speed
    assert page is not None
    for reply, words in (
        (Snapshot(prefill_rate=70.0), "tokens per second, reading the prompt"),
        (Snapshot(decode_rate=50.0), "tokens per second, average of the last reply"),
    ):
        window.watch.take(ServerState(phase="ready", snapshot=Snapshot(), last_reply=reply))
        qtbot.waitUntil(lambda words=words: page.unit.text() == words)


@pytest.mark.parametrize("name", [VERIFY, PAIR])
def test_a_measurement_is_followed_and_stopped(qtbot, served: MainWindow, name: str) -> None:
    served.show_page("speed")
    card = served.speed.measuring
    card.buttons[name].click()
    assert card.bar.isVisible()
    assert not card.buttons[name].isEnabled()
    qtbot.wait(300)
    card.stop.click()
    qtbot.waitUntil(card.buttons[name].isEnabled)
    assert card.result.text() != ""
    assert card.result.text() == STOPPED or name == PAIR


def test_a_fact_with_a_long_name_leaves_room_for_what_is_said_of_it(qtbot) -> None:
    grid, short = FactsGrid(), FactsGrid()
    qtbot.addWidget(grid)
    qtbot.addWidget(short)
    for one, name in ((grid, "a-very-long-name-of-a-merged-model-" * 3), (short, "Size")):
        one.show_facts([(name, "1.80×")])
        one.resize(400, 40)
        one.show()
    label, value = grid.findChildren(ElidedLabel)
    qtbot.waitUntil(lambda: min(label.width(), value.width()) > 0.4 * grid.width())
    assert label.toolTip().startswith("a-very-long-name")
    assert [one.toolTip() for one in short.findChildren(ElidedLabel)] == ["", "1.80×"]


def test_what_was_measured_of_the_machine_is_said(qtbot) -> None:
    class Link:
        def ask(self, request: object, then: Callable[[object], None], *others: object) -> None:
            is_shown = isinstance(request, ask.ShowMachine)
            then(MachineFacts("CPU", 2, 8, 8, (), 33e9) if is_shown else None)

    card = MeasuringCard(Link())
    qtbot.addWidget(card)
    card.buttons[MEASURE].click()
    assert card.result.text().startswith("Measured: memory reads 33.0 GB a second.")


def measuring(qtbot, name: str) -> tuple[MeasuringCard, tuple[Callable[[object], None], ...]]:
    """Return a card whose button ``name`` was clicked, and what it asked the server."""
    asked: list[tuple[Callable[[object], None], ...]] = []

    class Link:
        def ask(self, *request: Callable[[object], None]) -> None:
            asked.append(request)

    card = MeasuringCard(Link())
    qtbot.addWidget(card)
    card.set_model("fox")
    card.buttons[name].click()
    return card, asked[0]


def test_without_a_pair_it_is_shown_where_to_look_for_one(qtbot) -> None:
    card, (_, _, fail, _) = measuring(qtbot, PAIR)
    shown: list[str] = []
    card.library_wanted.connect(shown.append)
    fail(Trouble("There is nothing to test.", TroubleKind.UNUSABLE))
    assert (card.result.text(), card.result.property("tone")) == ("There is nothing to test.", "")
    card.library.click()
    assert shown == ["fox"]
    card.buttons[PAIR].click()
    assert card.library.isHidden()


@pytest.mark.parametrize("name", [VERIFY, PAIR])
def test_a_model_that_is_read_but_not_ready_does_not_look_like_the_end(qtbot, name: str) -> None:
    card, (*_, tell) = measuring(qtbot, name)
    shown = []
    for stage, share in (("loading", 0.5), ("loading", 1.0), ("measuring", 0.1)):
        tell(PairStep("fox-small", stage, share) if name == PAIR else MeasuringStep(stage.capitalize(), share))
        shown.append((card.bar.maximum(), card.bar.value()))
    assert shown == [(1_000, 500), (0, 0), (1_000, 100)]


def test_the_bars_of_a_tested_pair_come_into_sight(qtbot, window: MainWindow, monkeypatch) -> None:
    window.show_page("speed")
    window.resize(800, 520)
    card = window.speed.measuring
    card.set_model("fox")
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(card, "_link", SimpleNamespace(ask=lambda *request: asked.append(request)))
    card.buttons[PAIR].click()
    asked[0][1](None)
    qtbot.wait(50)  # what is below comes a moment later
    drafts = [PartnerRow(f"fox-{n}", "draft", 1, 1, None, 1.0 + n / 10, None) for n in range(6)]
    asked[1][1](SimpleNamespace(partners=drafts))
    qtbot.waitUntil(lambda: card.bars.visibleRegion().boundingRect().height() == card.bars.height() > 60)


def test_the_bars_of_a_verification_say_what_they_show(qtbot) -> None:
    card, (request, end, _, tell) = measuring(qtbot, VERIFY)
    rows = [{"kind": kind, "mode": "greedy", "speedup": gain} for kind, gain in (("code", 1.5), ("story", 0.9))]
    assert isinstance(request, ask.Verify)
    tell(MeasuringStep("", 1.0, {"rows": rows, "summary": {"drafted": 9, "accepted": 7}}))
    end(None)
    assert [(bar.label, bar.share, bar.text) for bar in card.bars.bars] == [
        ("Code", 1.0, "1.50×"),
        ("Stories", 0.6, "0.90×"),
    ]
    assert not card.bars_label.isHidden()
    card.buttons[VERIFY].click()
    assert card.bars_label.isHidden()
