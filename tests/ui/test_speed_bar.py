"""The bar with the gauges: what it reads, what it says, and when it looks."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from core.values.messages import Bottleneck, Snapshot
from models.formatting.json_values import fitting
from tools.stand_ins.fake_openai import FakeServer
from ui.client.api import Api, ServerState
from ui.client.server_watch import CALM_MS, LIVE_MS, ServerWatch
from ui.gauges import faces
from ui.gauges.sparkline import Sparkline
from ui.gauges.speed_bar import IDLE, LAST_REPLY, NOW, SpeedBar
from ui.theme.appearance import ThemeChoice
from ui.theme.colours import use_colours
from ui.theme.tokens import DARK, LIGHT, Space
from ui.window.main_window import MainWindow
from ui.window.rail import PAGES
from ui.window.tab_order import in_reading_order

WORKING = Snapshot(
    is_idle=False, decode_rate=38.4, bytes_per_second=12.9e9, peak=15.3e9, peak_share=0.84,
    limited_by=Bottleneck.BANDWIDTH,
    n_active=3, n_waiting=2, n_cells_used=1_730, n_cells=4_096, n_drafted=80, n_accepted=62, speedup=1.71,
    drafted_at=(40, 30, 10), accepted_at=(34, 22, 6),
)  # fmt: skip


def words(face: faces.GaugeFace) -> str:
    return face.words


def sent(snapshot: Snapshot) -> dict[str, object]:
    return json.loads(json.dumps(asdict(snapshot)))


def test_what_the_server_sends_is_read_back_and_odd_values_keep_their_defaults() -> None:
    assert fitting(Snapshot, sent(WORKING)) == WORKING
    assert [fitting(Snapshot, found) for found in (None, [], "x", 3)] == [None] * 4
    odd = {"limited_by": "magic", "decode_rate": "fast", "drafted_at": 3, "is_idle": "no", "future": 1, "peak": None}
    assert fitting(Snapshot, odd) == Snapshot()


class TestFaces:
    def test_at_work(self) -> None:
        assert words(faces.speed(WORKING, 76.8)) == "38 tok/s"
        assert faces.speed(WORKING, 76.8).share == 0.5
        assert words(faces.bandwidth(WORKING)) == "12.9 of 15.3 GB/s"
        assert faces.bandwidth(WORKING).share == 0.84
        assert words(faces.limited_by(WORKING)) == "limited by memory speed"
        assert faces.limited_by(WORKING).lit == (0,)
        assert words(faces.drafts(WORKING)) == "78% drafts · 1.7×"
        assert "token 2: 73% of 30" in faces.drafts(WORKING).hint
        assert words(faces.requests(WORKING, 4)) == "3 active · 2 wait"
        assert words(faces.requests(replace(WORKING, n_waiting=1), 4)) == "3 active · 1 waits"
        assert faces.requests(WORKING, 4).lit == (0, 1, 2)
        assert faces.requests(WORKING, 64).share == pytest.approx(3 / 64), "many places are one line"
        reading = replace(WORKING, decode_rate=0.0, prefill_rate=1_733.0)
        assert words(faces.speed(reading, 76.8)) == "1,733 tok/s prompt"
        assert faces.speed(reading, 76.8).share is None

    def test_what_is_not_known_is_not_claimed(self) -> None:
        in_cache = replace(WORKING, is_in_cache=True, limited_by=Bottleneck.COMPUTE)
        assert words(faces.bandwidth(in_cache)) == "12.9 GB/s in cache"
        assert words(faces.limited_by(in_cache)) == "limited by computing"
        assert "hardly matters" in faces.limited_by(in_cache).hint
        unmeasured = replace(in_cache, peak=None, peak_share=None)
        assert words(faces.limited_by(unmeasured)) == "limited by computing"
        assert "not been measured" not in faces.limited_by(unmeasured).hint
        idle = faces.limited_by(replace(unmeasured, is_in_cache=False, is_idle=True, limited_by=Bottleneck.UNKNOWN))
        assert words(idle) == "– limit"
        assert "Nothing runs" in idle.hint
        unknown = replace(WORKING, peak=None, peak_share=None, limited_by=Bottleneck.UNKNOWN)
        assert words(faces.bandwidth(unknown)) == "12.9 GB/s"
        assert words(faces.limited_by(unknown)) == "– limit"
        assert words(faces.drafts(replace(WORKING, n_drafted=0, n_accepted=0))) == "– drafts"
        assert words(faces.drafts(replace(WORKING, speedup=None))) == "78% drafts"
        idle = Snapshot(peak=15.3e9)
        assert words(faces.speed(idle, 76.8)) == "– tok/s"
        assert words(faces.limited_by(idle)) == "– limit"
        assert "not been measured" not in faces.limited_by(idle).hint, "at rest there is nothing to explain"


class TestBar:
    @pytest.fixture
    def watch(self, lonely_api: Api) -> ServerWatch:
        return ServerWatch(lonely_api)

    @pytest.fixture
    def bar(self, qtbot, watch: ServerWatch) -> SpeedBar:
        made = SpeedBar()
        watch.looked.connect(made.show_state)
        qtbot.addWidget(made)
        made.resize(sum(gauge.minimumSizeHint().width() for gauge in made.gauges) + 340, made.height())
        made.show()
        return made

    def test_it_shows_the_state_and_its_own_fastest(self, qtbot, bar: SpeedBar, watch: ServerWatch) -> None:
        watch.take(ServerState(phase="ready", model="a", n_slots=4, snapshot=replace(WORKING, decode_rate=76.8)))
        watch.take(ServerState(phase="ready", model="a", n_slots=4, snapshot=WORKING))
        assert bar.speed.face.share == 1.0, "nobody could read what changes so soon"
        qtbot.waitUntil(lambda: bar.speed.face.share == 0.5)
        assert bar.bandwidth.accessibleDescription() == "12.9 of 15.3 GB/s"
        watch.take(ServerState(phase="ready", model="b", n_slots=4, snapshot=WORKING))
        assert bar.speed.face.share == 1.0

    def test_a_narrow_bar_leaves_out_the_less_urgent(self, bar: SpeedBar) -> None:
        assert all(gauge.isVisible() for gauge in bar.gauges)
        two = bar.when.width() + bar.speed.minimumSizeHint().width() + bar.bandwidth.minimumSizeHint().width()
        bar.resize(two + 5 * Space.L, bar.height())
        assert [bar.speed.isVisible(), bar.bandwidth.isVisible(), bar.limit.isVisible()] == [True, True, False]
        bar.resize(120, bar.height())
        assert not any(gauge.isVisible() for gauge in bar.gauges[1:])

    def test_the_last_minute_is_a_line(self, bar: SpeedBar, watch: ServerWatch) -> None:
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=WORKING))
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=Snapshot()))
        assert bar.minute.rates[-2:] == [38.4, 0.0]
        assert bar.minute.isVisible()
        assert bar.minute.accessibleDescription() == "Fastest of the last minute: 38 tok/s"
        short = replace(WORKING, decode_rate=540.0)  # no look has met it while it ran
        for _ in range(2):
            watch.take(ServerState(phase="ready", n_slots=4, snapshot=Snapshot(), last_reply=short))
        assert bar.minute.rates[-3:] == [0.0, 540.0, 0.0]
        assert bar.speed.accessibleDescription() == "540 tok/s"
        now = [0.0]
        line = Sparkline(lambda: now[0])
        for now[0] in (0.0, 30.0, 59.0, 61.0, 125.0):
            line.add(now[0])
        assert line.rates == [61.0, 125.0]

    def test_idle_is_grey_and_work_is_not(self, bar: SpeedBar, watch: ServerWatch) -> None:
        use_colours(DARK)
        accent = QColor(DARK.accent).name()

        def colours() -> set[str]:
            image = bar.bandwidth.grab().toImage()
            return {image.pixelColor(x, image.height() - 2).name() for x in range(image.width())}

        assert accent not in colours()
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=WORKING))
        assert accent in colours()
        watch.take(ServerState(phase="gone"))
        assert accent not in colours()

    def test_after_a_reply_its_figures_stay_and_are_marked(self, bar: SpeedBar, watch: ServerWatch) -> None:
        use_colours(DARK)
        bar.dress()
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=WORKING))
        assert bar.when.text() == NOW
        watch.take(ServerState(phase="ready", n_slots=4))
        assert bar.when.text() == IDLE, "before its first reply an engine tells nothing"
        watch.take(ServerState())
        assert bar.when.text() == ""
        idle = Snapshot(n_cells_used=1_730, n_cells=4_096)
        last = replace(WORKING, decode_rate=41.0)
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=idle, last_reply=last))
        assert bar.when.text() == LAST_REPLY
        assert bar.speed.accessibleDescription() == "41 tok/s"
        assert words(bar.limit.face) == "limited by memory speed"
        assert words(bar.drafts.face) == "78% drafts · 1.7×"
        assert words(bar.requests.face) == "0 active"
        assert "of the last reply" in bar.speed.face.hint
        image = bar.speed.grab().toImage()
        line = {image.pixelColor(x, image.height() - 2).name() for x in range(image.width())}
        assert (DARK.muted in line, DARK.accent in line) == (True, False)
        watch.take(ServerState(phase="ready", n_slots=4, snapshot=WORKING, last_reply=last))
        assert (bar.when.text(), bar.speed.face.value) == (NOW, "38")


def visible_rect(part: QWidget, window: MainWindow) -> QRect:
    """Where the whole of ``part`` is in view; empty where some of it is not."""
    seen = part.visibleRegion().boundingRect()
    return QRect(part.mapTo(window, QPoint()), part.size()) if seen == part.rect() else QRect()


def pace(window: MainWindow) -> int:
    """How often the server is looked at, in milliseconds."""
    timer = window.watch.findChild(QTimer)
    assert timer is not None
    return timer.interval()


class TestWindow:
    def test_it_is_at_the_foot_of_every_page(self, qtbot, window: MainWindow) -> None:
        bar, pages = window.speed_bar, window.chats.tuning.parentWidget().parentWidget()

        def is_at_the_foot() -> bool:
            seen = visible_rect(bar, window)
            return (seen.left(), seen.bottom(), seen.width()) == (0, window.height() - 1, window.width())

        for size, percent in (((1180, 780), 100), ((480, 360), 100), ((480, 360), 150)):
            window.resize_text(percent)
            window.resize(*size)
            for page in PAGES:
                window.show_page(page)
                qtbot.waitUntil(is_at_the_foot)
                assert visible_rect(pages, window).bottom() < visible_rect(bar, window).top()
                assert bar.speed.isVisible()

    def test_without_a_loaded_model_it_stays_on_every_page_and_is_idle(
        self, qtbot, window: MainWindow, server: FakeServer
    ) -> None:
        bar = window.speed_bar

        def shows(value: str) -> None:
            qtbot.waitUntil(lambda: bar.speed.face.value == value)
            for page in PAGES:
                window.show_page(page)
                assert (bar.isVisible(), bar.speed.face.value) == (True, value)

        shows("–")
        server.snapshot = sent(WORKING)
        window.watch.start()
        shows("38")
        server.phase, server.snapshot = "loading", None
        shows("–")
        server.phase, server.snapshot = "ready", sent(WORKING)
        qtbot.waitUntil(lambda: bar.speed.face.value == "38")
        window.watch.stop(is_gone=True)
        shows("–")

    def test_a_reply_drives_it_while_the_library_is_open(self, qtbot, window: MainWindow, server: FakeServer) -> None:
        window.watch.start()
        bar = window.speed_bar
        server.pieces, server.steps = ["word "] * 20, threading.Semaphore(2)
        server.snapshot = sent(WORKING)
        window.page.composer.set_text("Go on.")
        window.page.composer.button.click()
        qtbot.waitUntil(lambda: window.desk.current.running.ttft is not None)
        window.show_page("library")
        assert bar.isVisible()
        for rate in (41.0, 52.0):
            server.snapshot = sent(replace(WORKING, decode_rate=rate))
            qtbot.waitUntil(lambda rate=rate: bar.speed.accessibleDescription() == f"{rate:.0f} tok/s")
        assert window.desk.current.is_running
        server.snapshot = sent(Snapshot())
        server.steps.release(len(server.pieces))
        qtbot.waitUntil(lambda: not window.desk.current.is_running and bar.speed.face.value == "–")
        assert bar.isVisible()

    def test_it_takes_the_colours_and_sizes_that_are_chosen_on_any_page(self, window: MainWindow) -> None:
        window.show_page("library")
        bar = window.speed_bar
        low = bar.height()
        window.choose_theme(ThemeChoice.DARK)
        window.resize_text(150)
        assert bar.grab().toImage().pixelColor(2, bar.height() // 2).name() == DARK.panel
        assert bar.height() == low * 1.5

    @pytest.mark.parametrize("width", [1180, 640])
    def test_text_of_another_size_is_measured_anew(self, qtbot, window: MainWindow, width: int) -> None:
        window.resize(width, 780)
        window.show_page("settings")
        window.settings.complete()
        bar = window.speed_bar

        def looks(one: SpeedBar) -> list[object]:
            parts = (one.when, *one.gauges, one.minute)
            places = [(part.geometry(), part.grab().toImage()) if part.isVisible() else None for part in parts]
            return [one.height(), one.when.size(), [gauge.sizeHint() for gauge in one.gauges], places]

        for percent, theme in (("150", "dark"), ("80", "light"), ("100", "dark")):
            for field, value in ((window.settings.looks.text, percent), (window.settings.looks.theme, theme)):
                field.setCurrentIndex(field.findData(value))
                field.activated.emit(field.currentIndex())
            made = SpeedBar()
            qtbot.addWidget(made)
            made.resize(bar.size())
            made.show()
            made.dress()
            qtbot.waitUntil(lambda made=made: looks(bar)[-1] == looks(made)[-1])  # laid out
            assert looks(bar) == looks(made)

    def test_what_limits_the_speed_leads_to_the_page_about_it(self, qtbot, window: MainWindow) -> None:
        window.show_page("library")
        qtbot.keyClick(window.speed_bar.limit, Qt.Key.Key_Return)
        assert window.speed is not None
        assert window.speed.isVisible()

    def test_a_gauge_has_a_ring_where_a_key_led_to_it_and_not_after_a_click(self, qtbot, window: MainWindow) -> None:
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        window.show_page("jobs")
        bar, gauge, jobs = window.speed_bar, window.speed_bar.limit, window.jobs
        colour = QColor(LIGHT.focus).rgb()

        def has_ring() -> bool:
            image = bar.grab().toImage()
            return any(image.pixel(x, image.height() // 2) == colour for x in range(image.width()))

        next(in_reading_order(window)).setFocus()
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Backtab)
        assert (window.focusWidget(), has_ring()) == (gauge, True)
        qtbot.mouseClick(window.rail, Qt.MouseButton.LeftButton, pos=QPoint(1, window.rail.height() // 2))
        assert (window.focusWidget(), has_ring()) == (jobs, False)
        gauge.setFocus(Qt.FocusReason.OtherFocusReason)  # what had the keyboard is gone
        assert (gauge.hasFocus(), has_ring()) == (True, False)

    def test_figures_of_a_server_that_does_not_answer_any_more_are_not_of_now(
        self, qtbot, window: MainWindow, server: FakeServer, api: Api
    ) -> None:
        server.snapshot = sent(WORKING)
        window.watch.start()
        bar, answers = window.speed_bar, list[ServerState]()
        qtbot.waitUntil(lambda: bar.when.text() == NOW)
        server.api_key = "another"
        qtbot.waitUntil(lambda: bar.when.text() == "")
        server.api_key = None
        qtbot.waitUntil(lambda: bar.when.text() == NOW)
        window.watch.look()
        window.watch.stop(is_gone=True)  # before the answer to that look has come
        api.state(answers.append, answers.append)
        qtbot.waitUntil(lambda: answers != [])
        qtbot.wait(50)
        assert (bar.when.text(), window.watch.state.phase) == ("", "gone")

    def test_what_the_server_tells_by_itself_is_not_asked_for(
        self, qtbot, window: MainWindow, server: FakeServer
    ) -> None:
        window.watch.start()
        qtbot.waitUntil(lambda: window.watch.state.phase == "ready")
        heard: set[Snapshot | None] = set()
        told = QTimer(window, interval=LIVE_MS // 4)
        told.timeout.connect(lambda: window.watch.take(replace(window.watch.state, snapshot=WORKING)))
        told.start()
        qtbot.waitUntil(lambda: window.speed_bar.speed.face.value == "38")
        window.watch.looked.connect(lambda state, seen: heard.add(state.snapshot))
        qtbot.wait(4 * LIVE_MS)
        assert heard == {WORKING}, "who is asked knows of no work"
        told.stop()
        qtbot.waitUntil(lambda: window.speed_bar.speed.face.value == "–")

    def test_gauges_move_only_while_something_runs_or_a_reply_is_on_its_way(
        self, qtbot, window: MainWindow, server: FakeServer
    ) -> None:
        server.snapshot = sent(WORKING)
        window.watch.start()
        bar = window.speed_bar
        qtbot.waitUntil(lambda: bar.speed.face.value == "38")
        assert pace(window) == LIVE_MS
        server.snapshot = sent(Snapshot())
        qtbot.waitUntil(lambda: bar.speed.face.value == "–")
        qtbot.waitUntil(lambda: pace(window) == CALM_MS)
        server.pieces, server.delay = ["word "] * 10_000, 0.005
        window.page.composer.set_text("Go on.")
        window.page.composer.button.click()
        qtbot.waitUntil(lambda: pace(window) == LIVE_MS)
        window.desk.current.stop()
        qtbot.waitUntil(lambda: pace(window) == CALM_MS)


def test_the_page_about_speed_names_the_limits_as_the_bar_does() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "speed.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| limited by |"))
    assert all(f"*{words}*" in row for words in faces.LIMITS.values())
