"""The desktop app on a display of its own, used with keyboard and mouse: a question, the palette, a second start."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SIZE = (1280, 900)
lacks = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs an X server of its own"),
    pytest.mark.skipif(bool(lacks), reason=f"{' and '.join(lacks)} cannot be found: apt-get install xvfb xdotool"),
]


class Screen:
    """A display without a window manager, whose pixels can be read."""

    def __init__(self, folder: Path) -> None:
        width, height = SIZE
        end, theirs = os.pipe()
        kind = ["-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp", "-fbdir", str(folder)]
        command = ["Xvfb", "-displayfd", str(theirs), *kind]
        self._process = subprocess.Popen(command, pass_fds=[theirs], stderr=subprocess.DEVNULL)
        os.close(theirs)
        with os.fdopen(end) as told:
            self.display = f":{told.readline().strip()}"
        self._file = folder / "Xvfb_screen0"

    def pixels(self) -> np.ndarray:
        """Return the picture, a number for each pixel. The file is one of xwd's: a header, colours, the pixels."""
        raw = self._file.read_bytes()
        header, n_colours = (int.from_bytes(raw[at : at + 4], "big") for at in (0, 76))
        width, height = SIZE
        found = np.frombuffer(raw, np.uint32, width * height, header + 12 * n_colours)
        return found.reshape(height, width) & 0xFFFFFF

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


class App:
    """The app as a process, and hands for it."""

    def __init__(self, screen: Screen, home: Path) -> None:
        self.screen = screen
        self._environment = {**os.environ, "DISPLAY": screen.display, "QT_QPA_PLATFORM": "xcb"}
        self._environment |= {"SLIPSTREAM_HOME": str(home), "SLIPSTREAM_TRACE_START": "1"}
        self._environment.pop("WAYLAND_DISPLAY", None)
        command = [sys.executable, "-m", "app", "desktop"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        assert "window shown after" in self._process.stderr.readline()
        self.window = self.do("search", "--sync", "--onlyvisible", "--name", "^Slipstream$").split()[-1]
        # What a window manager does.
        self.do("windowfocus", "--sync", self.window)
        self.do("windowmove", "--sync", self.window, "0", "0")

    def do(self, *words: str) -> str:
        """Let xdotool do something."""
        done = subprocess.run(
            ["xdotool", *words], env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, text: str) -> None:
        self.do("type", "--delay", "15", text)

    def press(self, *keys: str) -> None:
        self.do("key", *keys)

    def click(self, x: int, y: int) -> None:
        """Click this far from the window's upper left corner."""
        self.do("mousemove", "--window", self.window, str(x), str(y), "click", "1")

    def size(self) -> list[str]:
        """Return how large the window is."""
        lines = self.do("getwindowgeometry", "--shell", self.window).split()
        return [line for line in lines if line.startswith(("WIDTH", "HEIGHT"))]

    def see(self, before: np.ndarray, least: float) -> None:
        """Wait until at least this share of the picture is another than before, and nothing moves any more."""

        def is_seen() -> bool:
            now = self.screen.pixels()
            time.sleep(0.3)
            return share_changed(before, now) >= least and share_changed(now, self.screen.pixels()) < 0.001

        until(is_seen)

    def end(self) -> int:
        """Wait for the app to end by itself; return its exit code."""
        return self._process.wait(60)

    def kill(self) -> None:
        """End it in any case, after a test that failed."""
        self._process.kill()
        self._process.communicate(timeout=10)


def share_changed(before: np.ndarray, after: np.ndarray) -> float:
    return float((before != after).mean())


def ask(file: Path, question: str) -> list[tuple]:
    """Ask the file of chats, which may not be there yet."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as chats:
        return chats.execute(question).fetchall()
    return []


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    made = Screen(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def start(home: Path, screen: Screen) -> Iterator[Callable[[], App]]:
    """Starts the app on the screen."""
    started: list[App] = []

    def begin() -> App:
        started.append(App(screen, home))
        return started[-1]

    yield begin
    for app in started:
        app.kill()


def test_a_question_the_palette_and_a_second_start_with_keyboard_and_mouse(
    home: Path, screen: Screen, start: Callable[[], App]
) -> None:
    chats = home / "data" / "chats.db"
    app = start()
    empty = screen.pixels()
    app.do("windowsize", "--sync", app.window, "1100", "760")
    app.type("Tell me a story about a fox.")
    app.press("Return")
    messages = "SELECT role, status, content, chat_id FROM message ORDER BY id"
    until(lambda: [row[:2] for row in ask(chats, messages)] == [("user", "done"), ("assistant", "done")])
    asked, reply = ask(chats, messages)
    assert asked[2] == "Tell me a story about a fox."
    assert reply[2]
    app.see(empty, 0.02)

    app.type("and a bear")  # stays unsent
    talk = screen.pixels()
    app.press("ctrl+k")
    app.see(talk, 0.05)
    app.type("settings")
    app.press("Return")
    app.see(talk, 0.1)
    page = screen.pixels()
    size = app.size()
    app.press("ctrl+q")
    assert app.end() == 0

    app = start()
    assert app.size() == size
    foot = 60  # the gauges say what runs now
    until(lambda: share_changed(page[:-foot], screen.pixels()[:-foot]) < 0.02)
    app.click(30, 30)  # the first of the rail: the chat
    app.see(page, 0.1)
    app.press("Return")  # sends what was typed before
    until(lambda: [row[1] for row in ask(chats, messages)] == ["done"] * 4)
    second = ask(chats, messages)[2]
    assert second[2:] == ("and a bear", asked[3])
    app.press("ctrl+q")
    assert app.end() == 0
