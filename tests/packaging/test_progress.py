from __future__ import annotations

import io

from first_start.progress import SetupProgress, spell_rest, spell_seconds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_times_read_as_people_say_them_and_the_rest_once_it_is_more_than_a_guess():
    assert [spell_seconds(value) for value in (0.04, 9.94, 42.3, 131)] == ["0.0 s", "9.9 s", "42 s", "2 min 11 s"]
    assert spell_rest(10, 1, 100) == ""
    assert spell_rest(60, 20, 100) == ", about 4 min left"
    assert spell_rest(60, 90, 100) == ", less than a minute left"
    assert spell_rest(60, 100, 100) == ""


def test_without_a_terminal_a_step_is_two_lines_and_a_sign_of_life_each_half_minute():
    clock, stream = Clock(), io.StringIO()
    progress = SetupProgress(stream, 5, clock)
    progress.begin("llama.cpp")
    for clock.now in range(0, 70, 5):
        progress.show_share(clock.now, 100)
        progress.tick()
    progress.end("built")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[1].endswith("30 of 100, about 1 min left  30 s")
    assert lines[-1] == "  1/5 llama.cpp             built  65 s"


def test_on_a_terminal_the_line_advances_in_place(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    clock, stream = Clock(), Terminal()
    progress = SetupProgress(stream, 5, clock)
    progress.begin("Python packages")
    progress.update("fetching numpy")
    clock.now = 12.0
    progress.tick()
    progress.end("up to date")
    assert stream.getvalue().count("\n") == 1
    assert "\r\x1b[K  1/5 Python packages       fetching numpy  12 s" in stream.getvalue()


def test_an_abandoned_step_leaves_the_line_to_what_follows():
    stream = Terminal()
    progress = SetupProgress(stream, 5, Clock())
    progress.abandon()
    assert stream.getvalue() == ""
    progress.begin("llama.cpp")
    progress.tick()
    progress.abandon()
    progress.tick()
    assert stream.getvalue().endswith("\n")
