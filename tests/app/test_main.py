from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
import psutil
import pytest
import typer
from PIL import Image
from typer.core import TyperGroup

from app.cli import main as cli
from app.cli.terminal.errors import exit_code, typed
from app.client.discovery import RunningServer
from app.environment import paths
from app.environment.exit_codes import ExitCode
from app.jobs.benches import benches
from app.library.trouble import trouble_of
from core.values.errors import (
    BadOption,
    BadRequest,
    EngineUnavailable,
    LoadFailed,
    ModelDoesNotFit,
    SlipstreamError,
    WorkerUnavailable,
)
from models.files.errors import NothingToChoose, WrongContent
from models.formatting.json_values import plain, value_of
from models.hub.errors import BadToken, FileNotFound, GatedWithoutToken, Offline, RateLimited, RepositoryNotFound
from models.library.values import Trouble
from models.quantise.plan import QuantiseRefused
from tests.app.conftest import Typed
from tests.support.commands import ran, started
from tests.support.waiting import until
from tools.stand_ins.fake_openai import TIMINGS, FakeServer
from ui.client.remedies import clicked

ROOT = Path(__file__).resolve().parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[object]], None]:
    """Types lines at a terminal, and Ctrl-D behind them; an exception is raised, a function gives its line."""

    def type_in(lines: Iterable[object]) -> None:
        left = iter(lines)

        def read(_: str) -> str:
            line = next(left, EOFError)
            if isinstance(line, type):
                raise line
            return line() if callable(line) else str(line)

        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr("builtins.input", read)

    return type_in


def piped(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data))


pytestmark = pytest.mark.usefixtures("home")


def test_the_help_names_every_command_and_exit_code(typed: Typed) -> None:
    code, text, _ = typed("--help")
    assert code == ExitCode.OK
    for command in ("chat", "serve", "batch", "models", "doctor", "verify", "worker", "bench", "desktop", "test"):
        assert f"\n  {command} " in text
    for code in ExitCode:
        assert f"{code.value:>3}  {code.meaning}" in text
    assert typed("--version")[1].startswith("slipstream 0.")


def test_the_page_of_commands_has_every_exit_code_and_its_meaning() -> None:
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ") and "code" not in line]
    assert [int(number) for number, _ in rows] == list(ExitCode)
    for (_, meaning), code in zip(rows, ExitCode, strict=True):
        assert meaning.strip().startswith(code.meaning)


def typed_in_pages() -> Iterator[tuple[str, list[str]]]:
    """The commands of all pages: a page's name, and the words behind the program's name."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8").replace("\\|", "|")
        typed = re.findall(r"`([^`\n]*\./slipstream [^`\n]*)`", text)
        typed += [line for line in text.splitlines() if "./slipstream " in line and "`" not in line]
        for part in (part for one in typed for part in one.split("|") if "./slipstream " in part):
            words = shlex.split(part, comments=True)
            yield page.name, words[words.index("./slipstream") + 1 :]


def test_every_command_of_the_pages_can_be_typed() -> None:
    n_tried = 0
    for page, words in typed_in_pages():
        # "models show" alone is a name in a sentence; the launcher has these two commands.
        if words[:1] in ([], ["test"], ["setup"]) or words == ["models", "show"]:
            continue
        command: click.Command = typer.main.get_command(cli.build(is_pretty=False, typed=words))
        context, rest = command.make_context("slipstream", [], resilient_parsing=True), words
        while isinstance(command, TyperGroup) and rest:
            _, inner, rest = command.resolve_command(context, list(rest))
            assert inner is not None, f"{page}: {words}"
            command = inner
            is_group = isinstance(command, TyperGroup)
            given = [] if is_group else list(rest)
            context = command.make_context("", given, parent=context, resilient_parsing=is_group)
        n_tried += 1
    assert n_tried > 60


@pytest.mark.parametrize(("system", "column"), [("unix", 1), ("macos", 2)])
def test_the_page_of_the_set_up_says_where_things_are(
    system: str, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLIPSTREAM_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    table = (ROOT / "docs" / "set-up.md").read_text(encoding="utf-8").partition("## Where things are")[2]
    told = [line.split("|")[column + 1].strip(" `") for line in table.splitlines() if line.startswith("|")][2:6]
    folders = import_module(f"platformdirs.{system}")
    kinds = getattr(folders, {"unix": "Unix", "macos": "MacOS"}[system])(paths.NAME, appauthor=False)
    where = [getattr(kinds, f"user_{kind}_dir") for kind in ("data", "config", "cache", "log")]
    said = [told[0] if one == "the same" else one for one in told]
    assert [str(Path(one).expanduser()) for one in said] == where


@pytest.mark.parametrize("words", [["--help"], ["models", "--help"]])
def test_lists_of_commands_hold_whole_sentences(words: list[str], typed: Typed) -> None:
    commands = typed(*words)[1].partition("Commands:")[2].partition("./slipstream setup")[0]
    assert commands.rstrip().endswith(".")
    assert "..." not in commands


@pytest.mark.parametrize(
    "command",
    ["chat", "serve", "batch", "models", "models list", "models show", "doctor", "verify", "worker", "bench", "test"],
)
@pytest.mark.parametrize("is_pretty", [False, True])
def test_each_command_explains_itself(command: str, is_pretty: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.build(is_pretty=is_pretty)([*command.split(), "--help"], prog_name="slipstream")
    assert end.value.code == 0
    assert f"slipstream {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nonsense", "No such command 'nonsense'"),
        ("chat hi --max-tokens 0", "0 is not in the range"),
        ("chat hi --max-tokens -1", "-1 is not in the range"),
        ("chat hi --max-tokens many", "'many' is not a valid int"),
        ("chat hi --top-k 1.5", "'1.5' is not a valid int"),
        ("chat hi --temperature -1", "temperature must be between 0.0 and 100.0"),
        ("chat --nonsense", "No such option"),
        ("serve --port 70000", "70000 is not in the range"),
        ("serve --kv-type q3", "'q3' is not one of"),
        ("serve --kv-type q8_0 --flash-attention off", "needs flash attention"),
        ("serve --host 0.0.0.0", "needs an API key"),
        ("serve --device NOPE", "no device called 'NOPE' (--device). This machine has CPU"),
        ("serve --device rpc://host/path", "named as rpc://HOST:PORT"),
        ("serve --speculation sometimes", "speculation"),
        ("bench nonsense", "no benchmark called 'nonsense'"),
    ],
)
def test_a_command_line_that_cannot_be_used(words: str, sentence: str, typed: Typed) -> None:
    code, _, err = typed(*words.split())
    assert code == ExitCode.USAGE
    assert sentence in " ".join(err.split())


@pytest.mark.parametrize(
    "words",
    [
        *("chat hi -m", "batch IN OUT -m", "verify -m", "verify --draft"),
        *("models pair", "models quantize", "models show", "models rm"),
    ],
)
def test_a_path_that_leads_to_no_model_says_what_is_there(words: str, tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "in").write_text("{}\n")
    begun = words.replace("IN", str(tmp_path / "in")).replace("OUT", str(tmp_path / "out")).split()
    path, more = str(tmp_path / "none.gguf"), ["Q4_0"] if "quantize" in words else []
    code, out, err = typed(*begun, path, *more)
    assert (code, out) == (ExitCode.MODEL, "")
    assert f"There is no file {path}. Models: ember-q8_0" in err
    (tmp_path / "none.gguf").write_bytes(b"not a model at all")
    if words.startswith("chat"):
        code, out, err = typed(*begun, path)
        assert (code, out, len(err.splitlines())) == (ExitCode.MODEL, "", 1)
        assert "none cannot be used" in err


@pytest.mark.parametrize("option", ["--model", "--draft"])
def test_a_server_does_not_begin_with_a_model_that_is_none(option: str, home: Path, tmp_path: Path) -> None:
    bad, none = tmp_path / "bad.gguf", tmp_path / "none.gguf"
    bad.write_bytes(b"not a model at all")
    for path, sentence in ((bad, "bad cannot be used"), (none, f"There is no file {none}. Models: ember-q8_0")):
        done = ran("serve", "--port", "0", option, str(path))
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (ExitCode.MODEL, "", 1)
        assert sentence in done.stderr


def test_models_are_told_as_json_and_as_text(models: Typed) -> None:
    first, *_ = json.loads(models("list", "--json")[1])
    assert (first["name"], first["is_toy"], first["problem"]) == ("ember-q8_0", True, None)
    shown = json.loads(models("show", "ember", "--json")[1])
    assert shown.pop("judgement")["verdict"] == "green"
    assert shown == first
    assert "11.3M" in models("list")[1]
    lines = models("show", "ember")[1].splitlines()
    assert {"context       1,024 tokens", "parameters    11.3M"} <= set(lines)


def test_chat_streams_text_to_stdout_and_the_receipt_to_stderr(fake: FakeServer, typed: Typed) -> None:
    code, out, err = typed("chat", "Hello", "you", "--stop", "END", "-n", "5", "--seed", "3", "--url", fake.url)
    assert (code, out) == (ExitCode.OK, "Hello there.\n")
    assert err == (
        "128 tokens at 412 tok/s · first token after 0.04 s · prompt 52 tokens at 1,733 tok/s, 48 cached · "
        "62 of 80 drafts accepted · 1.7× plain\n"
    )
    (request,) = fake.requests
    assert request["messages"] == [{"role": "user", "content": "Hello you"}]
    assert (request["stop"], request["max_tokens"], request["seed"]) == (["END"], 5, 3)
    assert "temperature" not in request
    assert "model" not in request


def test_chat_prints_one_json_object(fake: FakeServer, typed: Typed) -> None:
    words = ("--json", "--system", "Be brief.", "-m", "x", "--speed", "deep")
    code, out, err = typed("chat", "hi", "--url", fake.url, *words)
    told = {"text": "Hello there.", "finish_reason": "stop", "usage": {}, "timings": TIMINGS, "model": "ember-q8_0"}
    assert (code, json.loads(out), err) == (ExitCode.OK, told, "")
    assert fake.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (fake.requests[0]["model"], fake.requests[0]["speed"]) == ("x", "deep")


def test_a_reply_that_breaks_off_is_a_json_object_with_what_came_and_why(
    fake: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.error_in_stream = "The engine died."
    assert cli.main(["chat", "hi", "--url", fake.url, "--json"]) == ExitCode.ERROR
    out, err = capsys.readouterr()
    broken = json.loads(out)
    assert (broken["text"], broken["finish_reason"], broken["error"]) == ("Hello there.", "failed", "The engine died.")
    assert err == "Error: The engine died.\n"
    fake.error_in_stream, fake.cut_after = None, 2
    assert cli.main(["chat", "hi", "--url", fake.url]) == ExitCode.ERROR
    out, err = capsys.readouterr()
    assert (out, err.startswith("Error: The server ended the connection")) == ("Hello there\n", True)
    fake.pieces, fake.cut_after, fake.error_in_stream = [], None, "The engine died."
    assert cli.main(["chat", "hi", "--url", fake.url, "--json"]) == ExitCode.ERROR
    assert capsys.readouterr().out == "", "nothing came"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_prints_what_came_of_a_json_object(fake: FakeServer) -> None:
    fake.pieces, fake.steps = ["one ", "two ", "three"], threading.Semaphore(2)
    with started("chat", "hi", "--url", fake.url, "--json") as child:
        until(lambda: fake.requests)
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    fake.steps.release()
    assert child.returncode == ExitCode.INTERRUPTED
    assert json.loads(out)["text"].startswith("one ")
    assert (json.loads(out)["finish_reason"], err) == ("cancelled", "")


def test_chat_reads_a_pipe(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", piped("grüße\n".encode()))
    assert cli.main(["chat", "--url", fake.url, "--quiet"]) == ExitCode.OK
    monkeypatch.setattr(sys, "stdin", piped(b"below"))
    assert cli.main(["chat", "above", "-", "--url", fake.url]) == ExitCode.OK
    assert [request["messages"][0]["content"] for request in fake.requests] == ["grüße", "above\n\nbelow"]


@pytest.mark.parametrize("words", ["models login", "remotes add rack http://127.0.0.1:9 --key-stdin"])
def test_a_secret_that_is_no_text_is_refused_with_a_sentence(
    words: str, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", piped(b"\xff\xfe\n"))
    code, _, err = typed(*words.split())
    assert (code, err.startswith("Error: That is no")) == (ExitCode.USAGE, True)


def test_a_chat_on_a_terminal_keeps_the_turns(fake: FakeServer, typing, typed: Typed) -> None:
    typing(["one", "two \\", "lines", "/new", '"""a', 'b"""', "/nonsense", "/help", "/model", "/quit"])
    code, out, err = typed("chat", "--url", fake.url)
    assert (code, out) == (ExitCode.OK, "Hello there.\n" * 3)
    said = [[turn["content"] for turn in request["messages"]] for request in fake.requests]
    assert said == [["one"], ["one", "Hello there.", "two \nlines"], ["a\nb"]]
    assert "It is a toy" in err
    assert "There is no command /nonsense" in err
    assert "* ember-q8_0" in err


def test_files_go_with_a_prompt(fake: FakeServer, typing, typed: Typed, tmp_path: Path) -> None:
    text, image = tmp_path / "my notes.txt", tmp_path / "dot.png"
    text.write_text("a fox\n")
    Image.new("RGB", (2, 2)).save(image)
    words = ("chat", "--url", fake.url)
    assert typed(*words, "Who?", "--file", str(text), "-f", str(image))[0] == ExitCode.OK
    typing([f"/file '{text}'", "/file -", f"/file {text}", "Who?", "And then?", "/quit"])
    code, _, err = typed(*words, "-f", str(image))
    assert (code, "With your next message: dot.png (" in err, "No file goes" in err) == (ExitCode.OK, True, True)
    assert "With your next message: my notes.txt (6 B)." in err
    notes = '<file name="my notes.txt">\na fox\n</file>\n\nWho?'
    shown, told = fake.requests[0]["messages"][0]["content"]
    assert shown["image_url"]["url"].startswith("data:image/png;base64,")
    assert told == {"type": "text", "text": notes}
    assert [turn["content"] for turn in fake.requests[2]["messages"]] == [notes, "Hello there.", "And then?"]
    for path, said in (
        (tmp_path / "none", "none is not there"),
        (tmp_path, "is a folder"),
        ("~nobody-here/a", "a is not there"),
        ("a" * 300, "File name too long"),
    ):
        typing([f"/file {path}", "/quit"])
        code, _, err = typed(*words)
        assert (code, said in err) == (ExitCode.OK, True), err
        code, _, err = typed(*words, "Who?", "-f", str(path))
        assert (code, said in err) == (ExitCode.USAGE, True)


def test_files_stay_for_the_next_message_where_none_was_answered(
    fake: FakeServer, typing, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a fox")
    fake.pieces, fake.error_in_stream = [], "The engine died."

    def again() -> str:
        fake.pieces, fake.error_in_stream = ["Hello"], None
        return "two"

    typing([f"/file {tmp_path / 'none'}", f"/file {tmp_path / 'a.txt'}", "one", "not \udcff text", again, "/quit"])
    code, _, err = typed("chat", "--url", fake.url)
    assert "The prompt is not valid UTF-8 (character 5)." in err
    assert (code, "none is not there" in err, "The engine died." in err) == (ExitCode.OK, True, True)
    assert ["a fox" in request["messages"][0]["content"] for request in fake.requests] == [True, True]


def test_a_chat_on_a_terminal_changes_model_and_system_prompt(fake: FakeServer, typing, typed: Typed) -> None:
    typing(["/system Be brief.", "one", "/system", "/model ember-draft-q8_0", "/system -", "two"])
    code, _, err = typed("chat", "--url", fake.url)
    assert code == ExitCode.OK
    assert fake.loads == ["ember-draft-q8_0"]
    assert [request["messages"] for request in fake.requests] == [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}],
        [{"role": "user", "content": "two"}],
    ]
    assert [request.get("model") for request in fake.requests] == [None, "ember-draft-q8_0"]
    assert "ember-draft-q8_0 answers from here on" in err


def test_ctrl_c_stops_a_reply_but_not_the_chat(
    fake: FakeServer, typing, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.pieces, fake.delay = ["x"] * 500, 0.01

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    typing(["go on", "next", KeyboardInterrupt, KeyboardInterrupt])
    monkeypatch.setattr("app.cli.chat.interactive.printable", interrupt)
    code, _, err = typed("chat", "--url", fake.url)
    assert code == ExitCode.OK
    assert fake.gone.wait(60)
    assert [turn["content"] for turn in fake.requests[1]["messages"]] == ["go on", "x", "next"]
    assert err.count("[stopped]") == 2


def test_a_failed_reply_does_not_end_the_chat(fake: FakeServer, typing, typed: Typed) -> None:
    def long() -> str:
        error = {"message": "The prompt is too long.", "type": "x", "code": "context_length_exceeded"}
        fake.error = (400, {"error": error})
        return "long"

    typing(["short", long, "/quit"])
    code, _, err = typed("chat", "--url", fake.url)
    assert (code, "The prompt is too long.\n/new starts over" in err) == (ExitCode.OK, True)


def test_a_server_that_was_killed_is_replaced_for_the_next_question(
    typing, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = [sys.executable, str(ROOT / "tools" / "stand_ins" / "fake_openai.py")]
    monkeypatch.setattr("app.client.server_process.serve_command", lambda options=(): program)

    def two() -> str:
        (server,) = [child for child in psutil.Process().children() if child.cmdline()[-1] == program[-1]]
        server.kill()
        server.wait()
        return "two"

    typing(["one", two, "/quit"])
    code, out, err = typed("chat")
    assert (code, out) == (ExitCode.OK, "Hello there.\n" * 2)
    assert err.count("ember-q8_0 answers.") == 2, "it says that another one answers"


def test_the_model_of_a_running_server_need_not_be_in_a_folder(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    fake.model = "elsewhere"
    running = RunningServer(1, "127.0.0.1", 1, fake.url, None, "elsewhere", 0.0)
    monkeypatch.setattr("app.cli.chat.chat_server.running_servers", lambda: (running,))
    assert typed("chat", "hi", "-m", "elsewhere")[:2] == (ExitCode.OK, "Hello there.\n")


def test_prompts_are_asked_for_on_stderr_where_replies_go_into_a_file(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("hi\n"))
    code, out, err = typed("chat", "--url", fake.url)
    assert (code, out, err.count("> ")) == (ExitCode.OK, "Hello there.\n", 2)


def test_control_characters_do_not_reach_a_terminal(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch, typing, typed: Typed
) -> None:
    fake.pieces = ["a\x1b]0;owned\x07b\tc\n"]
    assert "\x1b" in typed("chat", "hi", "--url", fake.url)[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert typed("chat", "hi", "--url", fake.url)[:2] == (ExitCode.OK, "a\ufffd]0;owned\ufffdb\tc\n")
    fake.pieces, fake.model = ["lines\r\n", "of Windows"], "fox\x1b[2J"
    assert typed("chat", "hi", "--url", fake.url)[1] == "lines\nof Windows\n"
    typing(["/quit"])
    assert typed("chat", "--url", fake.url)[2].startswith("fox\ufffd[2J at ")


def test_a_chat_that_cannot_begin_is_told(
    fake: FakeServer, typing, typed: Typed, request: pytest.FixtureRequest
) -> None:
    locked = FakeServer(api_key="k")
    request.addfinalizer(locked.stop)
    fake.phase, fake.problem = "failed", "This model needs 80.0 GB of memory, and 8.0 GB is free."
    typing([])
    for words, code, said in (
        (("hi", "--url", "http://127.0.0.1:1"), ExitCode.UNREACHABLE, "No server answers at http://127.0.0.1:1"),
        (("hi", "--url", fake.url), ExitCode.MODEL, "80.0 GB"),
        (("--json",), ExitCode.USAGE, "--json is for one reply"),
        (("hi", "--url", locked.url), ExitCode.UNREACHABLE, f"{locked.url} needs a key. Give it with --api-key"),
        (("hi", "--url", locked.url, "--api-key", "x"), ExitCode.UNREACHABLE, "refuses the key. Give one that it"),
        (
            ("hi", "--url", fake.url, "--speed", "warp"),
            ExitCode.USAGE,
            "spark, deep, batch, not 'warp'",
        ),
    ):
        found, _, err = typed("chat", *words)
        assert (found, said in err) == (code, True), err


def test_chat_waits_while_the_model_is_loaded(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.phase = "loading"
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        fake.phase = "loading" if len(waits) < 3 else "ready"

    monkeypatch.setattr(time, "sleep", wait)
    assert cli.main(["chat", "hi", "--url", fake.url]) == ExitCode.OK
    assert len(waits) == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadOption("x"), ExitCode.USAGE),
        (BadRequest("x"), ExitCode.USAGE),
        (LoadFailed("x"), ExitCode.MODEL),
        (ModelDoesNotFit(2, 1), ExitCode.MODEL),
        (WorkerUnavailable("x"), ExitCode.UNREACHABLE),
        (EngineUnavailable("x"), ExitCode.ERROR),
        (SlipstreamError("x"), ExitCode.ERROR),
    ],
)
def test_errors_have_exit_codes(error: SlipstreamError, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_benchmarks_are_listed_and_run(capfd: pytest.CaptureFixture[str]) -> None:
    known = benches()
    assert "engine" in known
    assert "token_source" not in known  # a program that a benchmark starts
    assert all(known.values())
    assert cli.main(["bench"]) == ExitCode.OK
    assert "engine  " in capfd.readouterr().out
    assert "usage: ./slipstream bench start" in ran("bench", "start", "--", "--help").stdout
    refused = ran("bench", "start", "--nonsense")
    assert (refused.returncode, "--nonsense" in refused.stderr) == (ExitCode.USAGE, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_while_python_starts_a_benchmark_prints_no_traceback() -> None:
    early = """import os, runpy, signal
os.kill(os.getpid(), signal.SIGINT)
runpy.run_module("benchmarks.start", run_name="__main__", alter_sys=True)"""
    bench = f"""import os
from app.cli import main as cli
start = os.execve
os.execve = lambda program, _command, environment: start(program, [program, "-c", {early!r}], environment)
cli.main(["bench", "start", "--", "--help"])"""
    done = subprocess.run([sys.executable, "-c", bench], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_progress_keeps_to_one_row_and_a_dumb_terminal_is_shown_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    from app.cli.terminal.progress_line import LoadingLine, ProgressLine

    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 20))
    monkeypatch.setenv("TERM", "xterm")
    with open(terminal, "w", encoding="utf-8") as stream:
        LoadingLine(stream, 0).show("Loading a model with a long name", 0.5)
        assert os.read(controller, 999).decode() == "\r\x1b[KLoading a model wi…"
        monkeypatch.setenv("TERM", "dumb")
        LoadingLine(stream, 0).show("Loading")
        monkeypatch.setattr(sys, "stderr", stream)
        ProgressLine().show("downloading: 50 %, 1.0 GB of 2.0 GB", "downloading")
        assert os.read(controller, 999).decode() == "downloading: 50 %, 1.0 GB of 2.0 GB\r\n"
    os.close(controller)


def test_progress_of_a_deep_reply_is_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.cli.chat.reply import CollectedReply
    from app.cli.terminal.progress_line import LoadingLine
    from app.client.http_client import Finished, ReplyProgress, TextDelta

    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    deep = {"drafts": 4, "drafts_done": 1, "tokens": 85, "seconds": 1.26}
    events = [
        ReplyProgress({"stage": "drafting", **deep}),
        ReplyProgress({"stage": "refining", **deep}),
        ReplyProgress({"stage": "plain", "reason": "no slot is free"}),
        TextDelta("Hi"),
        Finished("stop", TIMINGS | {"deep": {"drafts": 4}}),
    ]
    reply = CollectedReply()
    reply.collect(events, lambda _: None, LoadingLine(terminal, 0).note)
    shown = terminal.getvalue()
    assert "Drafting (1 of 4 drafts): 85 tokens in 1.3 s" in shown
    assert "Refining: 85 tokens" in shown
    assert "Answering without drafts: no slot is free." in shown
    assert shown.endswith("\r\x1b[K")
    assert "from 4 drafts" in reply.receipt(None)
    reply.collect([Finished("stop", TIMINGS | {"deep": {"drafts": 1, "reason": "no slot"}})], lambda _: None)
    assert "no drafts: no slot" in reply.receipt(None)
    reply.timings = {"decode_tokens": 3, "kv_type": "f16"}
    assert "cache" not in reply.receipt(None)
    reply.timings["kv_type"] = "q8_0"
    assert "q8_0 cache" in reply.receipt(None)
    reply.model = "ember-q8_0"
    assert "answered by ember-q8_0" in reply.receipt("rack/other")
    assert "answered by" not in reply.receipt("rack/ember-q8_0")


def test_a_server_starts_without_what_most_servers_never_use() -> None:
    code = "import sys, app.cli.commands.serve, app.server.application; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    ).stdout
    assert not {"httpx", "rich", "PIL", "llama_cpp", "app.cli.commands.batch"} & set(loaded.split())


_LOGIN = "`./slipstream models login`"
_BUTTONS = "“Hub settings…”, “Log in”"


@pytest.mark.parametrize(
    ("error", "in_terminal", "in_window"),
    [
        (Offline(), "`./slipstream models list`", "suggested ones"),
        (RateLimited(3), _LOGIN, _BUTTONS),
        (RepositoryNotFound("a/b", has_token=False), _LOGIN, _BUTTONS),
        (RepositoryNotFound("a/b", has_token=True), "`./slipstream models search NAME`", "A search"),
        (FileNotFound("a/b c", "x"), "`./slipstream models show 'a/b c'`", "Find it again"),
        (BadToken(), _LOGIN, _BUTTONS),
        (GatedWithoutToken("a/b", "https://hub"), _LOGIN, _BUTTONS),
        (NothingToChoose("Say which.", "a/b:Q8_0"), "`./slipstream models pull a/b:Q8_0`", "Say which."),
        (NothingToChoose("It has none."), "`./slipstream models search NAME`", "It has none."),
        (WrongContent("x"), "try again later", "try again later"),
        (QuantiseRefused("It would lose more.", "--allow"), "The option for that is --allow.", "It would lose more."),
    ],
)
def test_both_places_have_their_words(error, in_terminal, in_window):
    trouble = value_of(Trouble, plain(trouble_of(error)))
    assert in_terminal in typed(trouble)
    assert in_window in clicked(trouble).sentence
    assert "./slipstream" not in clicked(trouble).sentence


def test_nobody_else_can_look_into_the_users_folders(tmp_path):
    mine = tmp_path / "mine"
    ran("cache", is_forked=False, env=os.environ | {"SLIPSTREAM_HOME": str(mine)})
    folders = {folder.name: oct(stat.S_IMODE(folder.stat().st_mode)) for folder in mine.iterdir()}
    assert folders == dict.fromkeys(("data", "config", "cache", "log"), "0o700")


def test_folders_of_the_desktop_that_are_not_absolute_are_ignored(tmp_path):
    names = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
    relative = dict.fromkeys(names, "here") | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    env = {name: value for name, value in os.environ.items() if name != "SLIPSTREAM_HOME"} | relative
    (work := tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "app", "desktop", "--install"], cwd=work, env=env, capture_output=True, check=False
    )
    assert (done.returncode, list(work.iterdir())) == (0, [])
    assert (tmp_path / ".local" / "share" / "applications" / "slipstream.desktop").exists()


def test_folders_that_an_earlier_version_left_open_are_closed_once(tmp_path):
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    for folder in (mine / "data", mine / "config", mine / "log", shared):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    (mine / "cache").symlink_to(shared)

    def rights_after_a_start():
        ran("cache", is_forked=False, env=os.environ | {"SLIPSTREAM_HOME": str(mine)})
        return {folder.name: oct(stat.S_IMODE(folder.stat().st_mode)) for folder in mine.iterdir()}

    closed = {"data": "0o700", "config": "0o700", "log": "0o700", "cache": "0o755"}
    assert rights_after_a_start() == closed
    (mine / "data").chmod(0o755)
    assert rights_after_a_start() == closed | {"data": "0o755"}, "its owner has opened it since"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows every user")
def test_a_user_without_a_home_has_folders_all_the_same(monkeypatch, tmp_path):
    import pwd

    def unknown(_user):
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("SLIPSTREAM_HOME")
    monkeypatch.setenv("HOME", "")
    monkeypatch.delenv("HOME")
    paths.settle_home()
    assert Path.home() == Path("/")
    assert paths.data_folder().is_absolute()
    monkeypatch.delenv("HOME")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    paths.settle_home()
    assert Path.home() == tmp_path, "where other programs' models are looked for"
