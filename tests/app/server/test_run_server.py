"""The server's process: its start, its port, and its end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import psutil
import pytest

from app.environment.early_interrupts import EarlyInterrupts
from app.environment.exit_codes import ExitCode
from app.server import main
from app.server.http.keys import ApiKeys
from app.server.http.listening_socket import PortForbidden, PortTaken, listen
from app.settings.server_settings import ServerSettings
from core.values.errors import BadOption
from core.values.messages import EnginePhase, EngineState
from tests.support import measured
from tests.support.broken_gguf import giant
from tests.support.commands import ROOT, ran, started
from tests.support.fork_server import stood_for
from tests.support.waiting import until
from tools.model_factory.gguf_factory import EMBER, metadata_of


@pytest.fixture
def start(home, tmp_path):
    """Starts ``python -m app serve``, forked where its start is not the point, and ends it with the test."""
    running: list[subprocess.Popen] = []
    measured.give(tmp_path / "cache")

    def start(*options: str, is_forked: bool = False) -> subprocess.Popen:
        environment = os.environ | {"SLIPSTREAM_HOME": str(tmp_path)}
        words = ("serve", "--port", "0", "--announce", *options)
        process = started(*words, is_forked=is_forked, stdin=subprocess.PIPE, env=environment, start_new_session=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def address(process: subprocess.Popen) -> str:
    line = process.stdout.readline()
    assert line.startswith("SLIPSTREAM READY http://127.0.0.1:"), line + process.stderr.read()
    return line.split()[-1]


def wait(client: httpx.Client, is_so) -> dict:
    return until(lambda: state if is_so(state := client.get("/slipstream/state").json()) else None)


def test_a_signal_in_the_middle_of_a_stream_ends_it_with_a_sentence(start, tmp_path):
    process = start(is_forked=True)
    url = address(process)
    with httpx.Client(base_url=url, timeout=60) as client:
        wait(client, lambda state: state["phase"] == "ready")
    assert len(list((tmp_path / "runtime" / "servers").glob("*.json"))) == 1
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "ignore_eos": True}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        for _ in range(8):
            next(lines)
        process.send_signal(signal.SIGINT)
        last = [line for line in lines if line][-1]
    process.send_signal(signal.SIGTERM)  # nobody likes to wait
    assert "shutting down" in json.loads(last.removeprefix("data: "))["error"]["message"]
    assert process.wait(60) == ExitCode.OK
    assert list((tmp_path / "runtime" / "servers").glob("*")) == []
    assert process.stderr.read() == ""


def test_the_engine_is_started_before_what_speaks_http_is_imported():
    slow = {"fastapi", "pydantic", "uvicorn", "jinja2", "numpy", "llama_cpp", "models.estimate.speed.work"}
    code = f"import sys, app.server.main; print(*({slow} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_ctrl_c_before_the_server_runs_is_noted_and_not_raised():
    before = signal.getsignal(signal.SIGINT)
    try:
        interrupts = EarlyInterrupts()
        assert not interrupts.came
        signal.raise_signal(signal.SIGINT)
        assert interrupts.came
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_the_model_loads_ends_at_once(start):
    process = start(is_forked=True)
    address(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == ExitCode.OK
    assert process.stderr.read() == ""


def test_ctrl_c_as_soon_as_the_engine_starts_ends_without_a_traceback(start):
    process = start()
    started = psutil.Process(process.pid).children
    until(lambda: any(os.getpgid(child.pid) != process.pid for child in started()), pause=0.005)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == ExitCode.OK
    assert process.stderr.read() == ""


def test_servers_of_one_user_at_the_same_time_have_a_log_each(start, tmp_path):
    key = {"Authorization": "Bearer k"}

    def log(url: str) -> list[str]:
        lines = httpx.get(f"{url}/slipstream/log", headers=key).json()["lines"]
        return [line.split(": ")[-1] for line in lines if "leaves memory" in line]

    def unload(url: str, n_lines: int) -> None:
        until(lambda: httpx.get(f"{url}/slipstream/state", headers=key).json()["phase"] == "ready")
        assert httpx.post(f"{url}/slipstream/unload", json={}, headers=key).status_code == 202
        until(lambda: len(log(url)) == n_lines)

    options = ("--api-key", "k", "--no-draft", "--no-calibration")
    first, second = [start(*options, is_forked=True) for _ in range(2)]
    one, other = address(first), address(second)
    unload(one, 1)
    assert log(other) == []
    unload(other, 1)
    assert len(log(one)) == 1
    first.terminate()
    assert first.wait(60) == ExitCode.OK
    unload(address(start(*options, is_forked=True)), 2)
    assert len(log(other)) == 1
    assert {path.name for path in tmp_path.rglob("server*.log")} == {"server.log", "server-2.log"}


def test_a_taken_port_is_named_with_its_holder_and_a_free_one(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("--port", str(port))
        assert process.wait(60) == ExitCode.PORT_TAKEN
        message = process.stderr.read()
    assert f"Port {port} is taken by" in message
    assert f"process {os.getpid()}" in message
    assert "--port" in message


def test_a_model_that_does_not_load_leaves_a_server_that_can_load_another(start, tmp_path):
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    giant(folder / "giant.gguf")
    process = start("--model", "giant", is_forked=True)
    url = address(process)
    with httpx.Client(base_url=url, timeout=60) as client:
        state = wait(client, lambda now: now["phase"] == "failed")
        assert "GB" in state["problem"]
        health = client.get("/health")
        assert health.status_code == 503
        assert health.json()["status"] == "error"
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        refused = client.post("/v1/chat/completions", json=chat)
        assert refused.status_code == 503
        # It was tried once more, and other programs may have freed or taken memory meanwhile.
        assert refused.json()["error"]["message"].partition(",")[0] == state["problem"].partition(",")[0]
        assert refused.headers["x-should-retry"] == "false"
        assert client.post("/v1/chat/completions", json=chat | {"model": "ember-q8_0"}).status_code == 200
    process.terminate()
    assert f"giant could not be loaded: {state['problem']}" in process.stderr.read()


@pytest.mark.slow
def test_a_model_whose_file_comes_back_is_loaded_with_the_next_request(start, tmp_path):
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    path, away = folder / "mine.gguf", tmp_path / "away.gguf"
    shutil.copy(EMBER, path)
    process = start("--model", "mine", "--no-draft", "--threads", "1", is_forked=True)
    url = address(process)
    chat = {"model": "mine", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    with httpx.Client(base_url=url, timeout=60) as client:

        def lose() -> None:
            wait(client, lambda now: now["phase"] == "ready")
            path.rename(away)
            children = stood_for(psutil.Process(process.pid)).children(recursive=True)
            next(child for child in children if "core.loading.worker" in child.cmdline()).kill()
            wait(client, lambda now: now["phase"] == "failed")

        lose()
        while (refused := client.post("/v1/chat/completions", json=chat)).status_code == 503:
            time.sleep(0.05)  # it may still wait before it looks
        assert client.get("/health").status_code == 503
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
        away.rename(path)
        deadline = time.monotonic() + 60
        while (answer := client.post("/v1/chat/completions", json=chat)).status_code == 503:
            assert time.monotonic() < deadline, answer.text
            time.sleep(min(float(answer.headers["retry-after"]), 0.2))
        assert answer.status_code == 200
        lose()
        away.rename(path)
        assert ran("chat", "Hi", "-n", "1", "--url", url).returncode == 0


@pytest.mark.slow
def test_a_template_that_never_ends_costs_its_own_request_only(start, tmp_path):
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    original = EMBER.read_bytes()
    template = next(entry.value for entry in metadata_of(EMBER) if entry.key == "tokenizer.chat_template").encode()
    loop = b"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    (folder / "loop.gguf").write_bytes(original.replace(template, loop.ljust(len(template))))
    process = start("--model", "loop", is_forked=True)
    url = address(process)
    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(1) as pool:
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        call = pool.submit(client.post, "/v1/chat/completions", json=chat)
        n_answers = 0
        while client.get("/slipstream/state") and not call.done():
            n_answers += is_rendering(process)
            time.sleep(0.02)
        assert n_answers >= 3, "others are answered meanwhile"
        assert call.result().status_code == 500
        assert call.result().json()["error"]["code"] == "chat_template_failed"
        text = client.post("/v1/completions", json={"prompt": "Once", "max_tokens": 2})
        assert text.status_code == 200
        assert client.post("/v1/chat/completions", json=chat | {"model": "ember-q8_0"}).status_code == 200


def is_rendering(server: subprocess.Popen) -> bool:
    """Return whether the process that renders templates has computed for longer than its start takes."""
    for one in stood_for(psutil.Process(server.pid)).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has just ended
            if "template_process" in " ".join(one.cmdline()) and one.cpu_times().user > 0.6:
                return True
    return False


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (EnginePhase.LOADING, "Slipstream serves giant at http://127.0.0.1:8642/v1."),
        (EnginePhase.FAILED, "names another model at"),
    ],
)
def test_a_person_is_told_what_is_served(phase, words, monkeypatch, capsys):
    monkeypatch.setenv("SLIPSTREAM_UNLISTED", "1")
    host = SimpleNamespace(name="giant", state=EngineState(phase))
    main.say_what_is_served(ServerSettings(), ApiKeys(ServerSettings()), host, 8642)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (("127.0.0.1",), None),
        (("0.0.0.0",), "http://192.168.1.7:8642/v1"),
        (("127.0.0.1", "192.168.9.9"), "http://192.168.9.9:8642/v1"),
        (("::",), "http://192.168.1.7:8642/v1"),
        (("fd00::7",), "http://[fd00::7]:8642/v1"),
        (("192.168.9.9", "127.0.0.1", "fd00::7"), "http://192.168.9.9:8642/v1, http://[fd00::7]:8642/v1"),
    ],
)
def test_who_serves_the_network_is_told_the_address_that_other_machines_enter(hosts, told, monkeypatch, capsys):
    monkeypatch.setenv("SLIPSTREAM_UNLISTED", "1")
    monkeypatch.setattr("app.server.http.listening_socket.lan_address", lambda: "192.168.1.7")
    settings = ServerSettings(hosts=hosts, api_keys=("k",))
    main.say_what_is_served(
        settings, ApiKeys(settings), SimpleNamespace(name="giant", state=EngineState(EnginePhase.READY)), 8642
    )
    said = capsys.readouterr().err
    assert (f"Other machines: {told}, with a key." in said) if told else ("Other machines" not in said)


def test_all_addresses_are_printed(monkeypatch, capsys):
    monkeypatch.setenv("SLIPSTREAM_UNLISTED", "1")
    host = SimpleNamespace(name="giant", state=EngineState(EnginePhase.READY))
    settings = ServerSettings(hosts=("/run/one.sock", "127.0.0.1", "localhost", "[::1]"))
    main.say_what_is_served(settings, ApiKeys(settings), host, 8642)
    here = "http://127.0.0.1:8642/v1, http://localhost:8642/v1, http://[::1]:8642/v1, unix:/run/one.sock"
    assert f"serves giant at {here}. Ctrl-C" in capsys.readouterr().err


def test_an_alias_of_no_model_is_refused_at_the_start(home):
    done = ran("serve", "--port", "0", "--alias", "a=nobody")
    assert (done.returncode, "no model called 'nobody'" in done.stderr) == (ExitCode.MODEL, True), done.stderr


def test_other_machines_need_a_key_and_settings_that_cannot_be_used_are_refused():
    with pytest.raises(BadOption, match="keys add NAME"):
        ServerSettings(hosts=("0.0.0.0",))
    assert not ServerSettings(hosts=("0.0.0.0",), api_keys=("k",)).is_loopback
    assert ServerSettings(hosts=("::1",)).is_loopback
    for fields in ({"port": -1}, {"port": 70_000}, {"hosts": ("",)}, {"api_keys": (" ",)}):
        with pytest.raises(BadOption):
            ServerSettings(**fields)


@pytest.mark.parametrize(("port", "way_out"), [(80, "choose one above 1023"), (8642, "choose another with --port")])
def test_a_port_that_the_system_keeps_to_itself_is_refused_with_a_way_out(monkeypatch, port, way_out):
    def bind(self, address):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(PortForbidden, match=way_out):
        listen("127.0.0.1", port)


def test_a_port_is_taken_for_a_second_server_and_what_is_no_host_of_ours_refused():
    for host in ("..", "a" * 80):
        with pytest.raises(BadOption, match="listen on"):
            listen(host, 0)
    for host in ("ho st.invalid", "nobody.invalid", "192.0.2.1"):
        said = rf"^{host} is no address of this machine \(.+\)\. 127\.0\.0\.1 serves this machine only"
        with pytest.raises(BadOption, match=said):
            listen(host, 0)
    with listen("127.0.0.1", 0) as first, pytest.raises(PortTaken):
        listen("127.0.0.1", first.getsockname()[1])
