"""How long the window stalls at most: frame times while text streams in and pages, chats and lists are opened."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import BenchReport, ReportRow, median, run_bench, say

if TYPE_CHECKING:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication, QWidget

    from app.client.server_process import ServerProcess
    from ui.window.main_window import MainWindow

ROOT = Path(__file__).resolve().parent.parent
FRAME_MS = 16  # as a screen of 60 Hz shows them
MOST_MS = 50.0  # a longer frame is a stall
N_STARTS = 5
USE_MS = 250
CPU_SECONDS = 10.0
SETTLED_SECONDS = 6.0  # the library page is made some seconds after the start
PASTED_BYTES = 5 << 20
N_CHATS = 10_000
N_MESSAGES = 500
N_MODELS = 5_000
# A change of theme or text size makes Qt restyle every widget in one go. It is rare, so it is reported separately.
DRESS = "dress: "

WORDS = "the model reads every weight once for each token and so its speed is that of the memory "
SECTION = """## Section {n}

Here is a **short** paragraph with `inline code`, *emphasis* and a [link](http://example.org) that goes on for a while.

- first item of the list with some words
- second item with **bold** words

```python
def f_{n}(x):
    for i in range(10):
        print(i, x * {n})
    return x
```

| a | b |
|---|---|
| 1 | {n} |

"""
TEXTS: dict[str, Callable[[], str]] = {
    "mixed": lambda: "".join(SECTION.format(n=n) for n in range(200)),
    "prose": lambda: "".join(WORDS * 4 + "\n\n" for _ in range(200)),
    "one code block": lambda: "```python\n" + "    value = compute(item, 12)  # a comment\n" * 2_000,
    "one paragraph": lambda: WORDS * 800,
    "one list": lambda: "".join(f"- item {n} with some *words* in it\n" for n in range(3_000)),
    "one word": lambda: "abcdefgh" * 6_000,
    "one table": lambda: "| a | b | c |\n|---|---|---|\n" + "| cell one | cell two | 3 |\n" * 2_000,
}


class FrameWatch:
    """Measures frames: the time between two paintings of a small widget that asks for a repaint at 60 Hz.

    The window paints it together with everything else, so a frame is late by all that the window does: events, layout,
    paint.
    """

    def __init__(self, window: QWidget) -> None:
        from PySide6.QtCore import QTimer

        from benchmarks.frame_probe import FrameProbe

        self._probe = FrameProbe(window)
        self._timer = QTimer()
        self._timer.setTimerType(self._timer.timerType().PreciseTimer)
        self._timer.timeout.connect(self._probe.update)

    def start(self) -> None:
        self._probe.raise_()
        self._probe.show()
        self._cpu, self._began = time.process_time(), time.perf_counter()
        self._probe.painted = [self._began]
        self._timer.start(FRAME_MS)

    def stop(self) -> ReportRow:
        self._timer.stop()
        now = time.perf_counter()
        times = (
            [*self._probe.painted, now] if now - self._probe.painted[-1] > 2 * FRAME_MS / 1e3 else self._probe.painted
        )
        frames = sorted((after - before) * 1_000 for before, after in itertools.pairwise(times))
        return {
            "frames": len(frames),
            "longest_frame_ms": round(frames[-1], 1),
            "frame_p99_ms": round(frames[int(len(frames) * 0.99)], 1),
            "frames_over_50_ms": sum(frame > MOST_MS for frame in frames),
            "cpu_share": round((time.process_time() - self._cpu) / (now - self._began), 2),
            "seconds": round(now - self._began, 2),
        }


class Source:
    """The text source, in its own process."""

    def __init__(self, tokens: list[str], rate: float) -> None:
        command = [sys.executable, "-m", "benchmarks.token_source"]
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"tokens": tokens, "rate": rate}) + "\n")
        self._process.stdin.flush()
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def tokens_of(text: str, count: int) -> list[str]:
    """Cut ``text`` into pieces as long as tokens usually are."""
    return re.findall(r"\s?\S{1,4}|\s+", text)[:count]


def open_window(application: QApplication, folder: Path, library: ServerProcess | None = None) -> MainWindow:
    from ui.client.api import Api
    from ui.platform.display import tune_python
    from ui.theme.appearance import Appearance, ThemeChoice
    from ui.window.main_window import MainWindow

    gc.unfreeze()
    gc.collect()  # frees what is left of the previous window
    appearance = Appearance(application, ThemeChoice.LIGHT)
    api = Api()
    if library is not None:
        api.connect_to(library.wait_listening(), library.api_key)
    window = MainWindow(Api(), appearance, folder / "chats.db", folder / "window.ini", api)
    window.show()
    tune_python()
    window.tools.colours.warm_up()
    return window


def close_window(application: QApplication, window: MainWindow) -> None:
    """Close a window and free it: the app has only one in its life."""
    from PySide6.QtCore import QEvent

    window.close()
    window.deleteLater()
    application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def run_until(application: QApplication, is_done: Callable[[], bool], timeout: float = 120.0) -> None:
    from PySide6.QtCore import QEventLoop

    until = time.perf_counter() + timeout
    while not is_done() and time.perf_counter() < until:
        application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def rest(application: QApplication, seconds: float = 0.5) -> None:
    from PySide6.QtCore import QTimer

    over: list[bool] = []
    QTimer.singleShot(round(seconds * 1_000), lambda: over.append(True))
    run_until(application, lambda: bool(over))


def measure_stream(
    application: QApplication, name: str, options: argparse.Namespace, *, is_used: bool = False
) -> ReportRow:
    tokens = tokens_of(TEXTS[name](), round(options.rate * options.seconds))
    source = Source(tokens, options.rate)
    with tempfile.TemporaryDirectory() as folder:
        window = open_window(application, Path(folder))
        watch = FrameWatch(window)
        window.desk.current._api.connect_to(source.url, None)
        rest(application)
        ends: list[object] = []
        window.desk.active.ended.connect(ends.append)
        watch.start()
        window.desk.current.send("Go on.")
        use = use_window(window) if is_used else None
        run_until(application, lambda: bool(ends))
        rest(application)
        row = watch.stop()
        if use is not None:
            use.stop()
        close_window(application, window)
    source.stop()
    return {"case": f"stream: {name}" + (", in use" if is_used else ""), "tokens": len(tokens), **row}


def use_window(window: MainWindow) -> QTimer:
    """Repeat in the window, one after the other, what people do while a reply is written."""
    from PySide6.QtCore import QTimer

    def scroll(to_end: bool) -> None:
        bar = window.page.transcript.verticalScrollBar()
        bar.setValue(bar.maximum() if to_end else 0)

    acts: list[Callable[[], object]] = [
        lambda: window.page.composer.set_text("and what about the memory? " * 20),
        lambda: scroll(False),
        window.chats.toggle_settings,
        lambda: scroll(True),
        window.chats.toggle_list,
        lambda: window.resize(900, 700),
        window.chats.toggle_settings,
        lambda: window.desk.search("fox"),
        lambda: window.show_page("settings"),
        lambda: window.show_page("chat"),
        window.chats.toggle_list,
        lambda: window.resize(1180, 780),
        lambda: window.desk.search(""),
    ]
    left = itertools.cycle(acts)

    def act() -> None:
        next(left)()

    timer = QTimer(window, interval=USE_MS)
    timer.timeout.connect(act)
    timer.start()
    return timer


def measure_use(application: QApplication) -> list[ReportRow]:
    """Go through long chats, long lists and the library in one window, and measure its memory then."""
    from app.client.server_process import ServerProcess

    rows: list[ReportRow] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SLIPSTREAM_HOME"] = folder
        _fill_chats(Path(folder) / "chats.db")
        _fill_models(Path(folder) / "data" / "models")
        server = ServerProcess()
        window = open_window(application, Path(folder), server)
        measured = partial(_measure, application, FrameWatch(window), rows)
        _use_chats(window, measured)
        rest(application, 3.0)
        _use_library(application, window, measured)
        rows.append({"case": "memory of all this", "tokens": None, "megabytes": round(memory() / 1e6, 1)})
        close_window(application, window)
        server.stop()
    return rows


def _fill_chats(file: Path) -> None:
    from ui.chat.storage.store import ChatStore
    from ui.client.chat_records import Chat, Message, Role

    store = ChatStore(file)
    with store._transaction():
        rows = ((n, f"Chat number {n}", n, n * 60_000_000) for n in range(1, N_CHATS + 1))
        store._db.executemany("INSERT INTO chat(id, title, created_ms, updated_ms) VALUES (?,?,?,?)", rows)
    store.save_chat(Chat(N_CHATS + 1, "Long", 1, 2**41, leaf_id=20_000 + N_MESSAGES))
    for n in range(1, N_MESSAGES + 1):
        role, text = (Role.USER, "Go on.") if n % 2 else (Role.ASSISTANT, SECTION.format(n=n) * 3)
        store.save_message(Message(20_000 + n, N_CHATS + 1, 20_000 + n - 1 if n > 1 else None, role, text, n))
    store.close()


def _measure(
    application: QApplication,
    watch: FrameWatch,
    rows: list[ReportRow],
    case: str,
    act: Callable[[], object],
    is_done: Callable[[], bool],
) -> None:
    """Add the row of one action, from its start until the window is idle again.

    It is done in an event, as by a user: what it deletes is deleted then as well.
    """
    from PySide6.QtCore import QTimer

    begun: list[object] = []
    watch.start()
    began = time.perf_counter()
    QTimer.singleShot(0, lambda: begun.append(act()))
    run_until(application, lambda: bool(begun) and is_done())
    rest(application, 0.02)  # until it is painted
    shown = (time.perf_counter() - began - 0.02) * 1_000
    rest(application)
    rows.append({"case": case, "tokens": None, "shown_ms": round(shown, 1), **watch.stop()})


def _use_chats(window: MainWindow, measured: Callable[..., None]) -> None:
    from PySide6.QtGui import QGuiApplication

    model = window.chats.history.model
    measured(f"list {N_CHATS} chats", lambda: None, lambda: model.n_chats > 0)
    measured(
        f"open {N_MESSAGES} messages", lambda: window.desk.open(N_CHATS + 1), lambda: not window.desk.current.is_new
    )
    bar = window.page.transcript.verticalScrollBar()
    measured("scroll to older messages", lambda: bar.setValue(0), lambda: True)
    measured("resize", lambda: window.resize(900, 700), lambda: True)
    for number in range(2, 8):
        measured(f"scroll to older messages, {number}", lambda: bar.setValue(0), lambda: True)
    measured("search", lambda: window.desk.search("number 77"), lambda: model.n_chats < 300)
    measured("back to all chats", lambda: window.desk.search(""), lambda: model.n_chats >= 300)
    end = window.chats.history.list.verticalScrollBar()
    measured("scroll to older chats", lambda: end.setValue(end.maximum()), lambda: model.n_chats > 300)
    measured("new chat", window.desk.new_chat, lambda: window.desk.current.is_new)
    field, text = window.page.composer.field, "A line of a file that somebody pasted.\n" * (PASTED_BYTES // 39)
    QGuiApplication.clipboard().setText(text)
    shelf = window.page.composer.shelf
    # Either the text is attached, or the window says that it is too long for a file.
    measured("paste 5 MB", field.paste, lambda: bool(shelf.attachments or shelf.problem.text()))


def memory(pid: int | None = None) -> int:
    """Return the resident memory of a process, by default this one, in bytes."""
    import psutil

    return int(psutil.Process(pid).memory_info().rss)


def measure_start() -> ReportRow:
    """Start the app several times with an empty home folder, and return the median time until the window is shown."""
    from app.desktop.desktop_app import TRACE_VARIABLE

    times, sizes = list[float](), list[float]()
    for _ in range(N_STARTS):
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "SLIPSTREAM_HOME": home, TRACE_VARIABLE: "1"}
            command = [sys.executable, "-m", "app"]
            with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stderr=subprocess.PIPE) as child:
                assert child.stderr is not None
                line = next((line for line in child.stderr if "window shown after" in line), "")
                times.append(float(line.rpartition("after")[2].split()[0]))
                time.sleep(SETTLED_SECONDS)
                sizes.append(memory(child.pid))
                child.terminate()
    return {
        "case": "start to window",
        "tokens": None,
        "shown_ms": median(times),
        "megabytes": round(median(sizes) / 1e6, 1),
    }


def measure_speed_page(application: QApplication) -> list[ReportRow]:
    """Measure what a core does for figures that come ten times a second, with their lines in view and without."""
    from core.values.messages import Snapshot
    from ui.speed.speed_page import PLOTS

    rows: list[ReportRow] = []
    source = Source([], 1.0)
    with tempfile.TemporaryDirectory() as folder:
        window = open_window(application, Path(folder))
        for at in range(-360, 0):
            working = Snapshot(is_idle=False, decode_rate=440.0 + at % 7)
            window.speeds.add(time.monotonic() + at / 2, working)
        window.desk.current._api.connect_to(source.url, None)
        window.show_page("speed")
        page = window.speed
        assert page is not None
        run_until(application, lambda: len(page.plots) == len(PLOTS))
        for case, has_lines in (("figures and their lines", True), ("figures alone", False)):
            for plot in page.plots:
                plot.setVisible(has_lines)
            rest(application, 1.0)
            began, cpu = time.perf_counter(), time.process_time()
            rest(application, CPU_SECONDS)
            share = (time.process_time() - cpu) / (time.perf_counter() - began)
            rows.append({"case": f"speed page: {case}", "tokens": None, "cpu_share": round(share, 4)})
        close_window(application, window)
    source.stop()
    return rows


def _use_library(application: QApplication, window: MainWindow, measured: Callable[..., None]) -> None:
    """Open the library on a folder of many models, go through it, and let downloads change many times."""
    from models.download.progress import DownloadPhase, DownloadProgress
    from models.library.values import Download
    from ui.speed.speed_page import PLOTS
    from ui.theme.appearance import ThemeChoice

    measured("library: prepare", window.prepare_pages, lambda: window.library is not None)

    def models() -> int:
        return window.library.models.list.rows.rowCount() if window.library is not None else 0

    measured(f"library: list {N_MODELS} models", lambda: window.show_page("library"), lambda: models() > N_MODELS)
    page = window.library
    assert page is not None
    measured("library: look again", page.models.look, lambda: not page.models._is_asking)
    measured("library: filter", lambda: page.models.filter.setText("99"), lambda: models() < N_MODELS)
    measured("library: all again", page.models.filter.clear, lambda: models() > N_MODELS)
    measured("library: details", lambda: page.models.list.choose("ember-q8_0"), page.models.details.header.isVisible)
    measured("library: find", lambda: page.show_tab("Find"), lambda: page.finder.list.rows.rowCount() > 5)

    def downloads() -> None:
        for number in range(50):
            progress = DownloadProgress(DownloadPhase.DOWNLOADING, number, 100, 1e6, 9.0)
            page.downloads.show_downloads(tuple(Download(n, "a/b", "Q8_0", progress) for n in range(20)))
            application.processEvents()

    measured("library: 20 downloads, 50 changes", downloads, lambda: True)
    measured("page: speed", lambda: window.show_page("speed"), lambda: len(window.speed.plots) == len(PLOTS))
    for name in ("server", "jobs", "settings", "chat"):
        measured(f"page: {name}", partial(window.show_page, name), lambda: True)
    measured("palette", window.open_palette, lambda: True)
    measured(f"{DRESS}dark", lambda: window.choose_theme(ThemeChoice.DARK), lambda: True)
    measured(f"{DRESS}text of 150 %", lambda: window.resize_text(150), lambda: True)


def _fill_models(folder: Path) -> None:
    folder.mkdir(parents=True)
    header = (ROOT / "models" / "starter" / "ember-q8_0.gguf").read_bytes()[:4_096]
    for number in range(N_MODELS):
        (folder / f"model-{number:04}-Q8_0.gguf").write_bytes(header)


def measure(options: argparse.Namespace) -> BenchReport:
    """Return a row for each case, with the times of frames of an offscreen window in milliseconds."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    # As after the first start: with PYTHONDONTWRITEBYTECODE each page would be compiled when it is opened.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "app", "core", "models", "ui"], cwd=ROOT, check=True)
    from PySide6.QtWidgets import QApplication

    from ui.platform.display import leave_sources_unread

    leave_sources_unread()
    application = QApplication([])
    report = BenchReport("ui_stall", settings={"rate": options.rate, "seconds": options.seconds})
    for name in options.cases or TEXTS:
        say(f"stream: {name}")
        report.rows.append(measure_stream(application, name, options))
    if not options.cases:
        say("a stream, and the window in use")
        report.rows.append(measure_stream(application, "mixed", options, is_used=True))
        say("long chats and lists, the library")
        report.rows += measure_use(application)
        say("the speed page")
        report.rows += measure_speed_page(application)
        say("starting")
        report.rows.append(measure_start())
    every = {row["case"]: row["longest_frame_ms"] for row in report.rows if "longest_frame_ms" in row}
    frames = {case: frame for case, frame in every.items() if not case.startswith(DRESS)}
    report.summary["longest_frame_ms"] = max(frames.values())
    report.summary["longest_frame_in"] = max(frames, key=frames.__getitem__)
    report.summary["dressed_anew_ms"] = max((every[case] for case in every.keys() - frames.keys()), default=None)
    for name, case, figure in (
        ("speed_page_cpu_share", "speed page: figures and their lines", "cpu_share"),
        ("long_chat_shown_ms", f"open {N_MESSAGES} messages", "shown_ms"),
        ("start_to_window_ms", "start to window", "shown_ms"),
        ("megabytes_after_start", "start to window", "megabytes"),
        ("megabytes_after_all", "memory of all this", "megabytes"),
    ):
        report.summary[name] = next((row[figure] for row in report.rows if row["case"] == case), None)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1_000.0, help="tokens per second")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each text streams")
    parser.add_argument("--cases", nargs="*", choices=list(TEXTS), help="only these texts")
    return run_bench("ui_stall", measure, parser)


if __name__ == "__main__":
    raise SystemExit(main())
