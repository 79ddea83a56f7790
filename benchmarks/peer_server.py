"""The peer in its own process: llama.cpp's HTTP server, built for this machine or from the package xllamacpp."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from core.process.child_process import WAITING

ROOT = Path(__file__).resolve().parent.parent
BUILDER = Path(__file__).with_name("native_peer.sh")
_READY = "PEER READY "
_KEPT_CHARACTERS = 2_000
# Seconds; the largest models of the benches load in a few, even during a build.
_LONGEST_START = 120.0
_LONGEST_STOP = 10.0
# The builder's exit code if the machine has no compiler.
_CANNOT_BUILD = 3
HOW_TO_INSTALL = (
    "There is no peer: this bench compares with llama.cpp's own server. It is built for this machine where there is a "
    "C and C++ compiler, and --server names one that you have. The package xllamacpp has one for any processor:\n\n"
    "    .venv/bin/python -m pip install --constraint constraints.txt xllamacpp\n\n"
    "in Slipstream's folder, then start the bench again."
)


class PeerFailed(Exception):
    """The peer's server did not start; the message has the end of its output."""


@dataclass(frozen=True)
class PeerBinary:
    """A llama-server to run. ``build`` is its origin: "native" from the pinned sources, or "given" by the user."""

    path: str
    build: Literal["native", "given"]


@dataclass(frozen=True)
class PeerOptions:
    """How the peer's server is set up; ``n_ctx`` is the context of one request in tokens, as on our side.

    ``openmp`` "tuned" gives it the environment that our engine chooses for itself. ``server`` is the path of a
    llama-server, which gets the options in ``more`` too; None means the one in xllamacpp.
    """

    model: str
    n_slots: int
    n_ctx: int
    n_threads: int
    draft: str | None = None
    openmp: Literal["default", "tuned"] = "default"
    server: str | None = None
    more: tuple[str, ...] = ()


def find_peer(server: str | None) -> PeerBinary | None:
    """Return the llama-server to compare with: the one named, else one built here; None for that in xllamacpp.

    Raises PeerFailed where there is none, or where it cannot be built.
    """
    if server is not None:
        path = shutil.which(server)
        if path is None:
            raise PeerFailed(f"{server} is no program: --server takes the path of a llama-server.")
        return PeerBinary(str(Path(path).absolute()), "given")
    built = _build() if os.name == "posix" else None
    if built is None and importlib.util.find_spec("xllamacpp") is None:
        raise PeerFailed(HOW_TO_INSTALL)
    return built


def _build() -> PeerBinary | None:
    """Return the server built for this machine, which takes minutes the first time; None without a compiler."""
    command = ["sh", str(BUILDER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as builder:
        try:
            path, _ = builder.communicate()
        except BaseException:
            os.killpg(builder.pid, signal.SIGTERM)  # with its compilers
            raise
    if builder.returncode == _CANNOT_BUILD:
        return None
    if builder.returncode:
        raise PeerFailed("llama.cpp's server could not be built: --server takes the path of one that you have.")
    return PeerBinary(path.strip(), "native")


class PeerServer:
    """The peer's server in a child process, which exits when its stdin closes.

    ``description`` has its version and, if it reports them, the CPU features that its build uses.
    """

    def __init__(self, options: PeerOptions) -> None:
        """Start it and wait until it answers; raises PeerFailed."""
        # The output goes to a file: nobody reads it, and a full pipe would block the server.
        self._words = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed with the server
        program = "from benchmarks.peer_server import serve; serve()"
        command = [sys.executable, "-c", program, json.dumps(asdict(options))]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._words}
        environment = {**os.environ, **(WAITING if options.openmp == "tuned" else {})}
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, env=environment, **pipes)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        line = self._stdout.readline()
        if not line.startswith(_READY):
            self._process.wait()
            self._words.seek(0)
            last_words = self._words.read()[-_KEPT_CHARACTERS:]
            self.stop()
            raise PeerFailed(f"The peer's server did not start.\n{last_words}")
        self.description: dict[str, str] = json.loads(line.removeprefix(_READY))
        self.url = self.description.pop("url")

    def stop(self) -> None:
        self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LONGEST_STOP)
        self._process.kill()
        self._process.wait()
        self._stdout.close()
        self._words.close()

    def __enter__(self) -> PeerServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def serve() -> None:
    """Serve with the options on the command line, print the address, and leave when stdin ends."""
    options = PeerOptions(**json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # else a llama-server would outlive this process
    if options.server is None:
        _serve_package(options)
        # The package's threads would keep the process alive.
        os._exit(0)
    with _running(options.server, options) as url:
        _announce({"url": url, **describe(options.server)})


def _announce(description: dict[str, str]) -> None:
    print(_READY + json.dumps(description), flush=True)
    sys.stdin.read()


def _serve_package(options: PeerOptions) -> None:
    import xllamacpp

    server = xllamacpp.Server(_parameters(xllamacpp, options))
    features = xllamacpp.get_system_info().strip()
    _announce({"url": server.listening_address, "version": xllamacpp.__version__, "features": features})


def _parameters(xllamacpp: Any, options: PeerOptions) -> Any:
    """Return the package's defaults, with what both sides share: model, threads, slots, context, draft."""
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.n_parallel = options.n_slots
    params.n_ctx = options.n_ctx * options.n_slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.n_threads
    params.verbosity = 1
    if options.draft is not None:
        draft = params.speculative.draft
        draft.mparams.path = options.draft
        draft.cpuparams.n_threads = draft.cpuparams_batch.n_threads = options.n_threads
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    return params


@contextlib.contextmanager
def _running(server: str, options: PeerOptions) -> Any:
    """Run a llama-server and yield its address once the model is loaded. It ends with the block or this process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Its output goes to stderr: our stdout is read by the parent process.
    process = subprocess.Popen([server, *_arguments(options, port)], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        url = f"http://127.0.0.1:{port}"
        began = time.monotonic()
        while not _is_ready(url):
            if process.poll() is not None:
                raise SystemExit(f"{server} ended with code {process.returncode}.")
            if time.monotonic() - began > _LONGEST_START:
                raise SystemExit(f"{server} did not answer within {_LONGEST_START:.0f} seconds.")
            time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


def _arguments(options: PeerOptions, port: int) -> list[str]:
    """Return the arguments for what both sides share: model, threads, slots, context, draft. The rest is default."""
    n_threads = str(options.n_threads)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--model", options.model, "--threads", n_threads]
    arguments += ["--parallel", str(options.n_slots), "--ctx-size", str(options.n_ctx * options.n_slots)]
    arguments += options.more
    if options.draft is not None:
        arguments += ["--model-draft", options.draft, "--threads-draft", n_threads, "--spec-type", "draft-simple"]
    return arguments


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=1.0) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def describe(server: str) -> dict[str, str]:
    """Return the version of a llama-server, and the CPU features of its build if it reports them."""
    version = _words_of([server, "--version"])
    # It logs its features at the highest log level, before it opens the model.
    features = re.search(r"system_info:.*?\|\s*(.*)", _words_of([server, "--verbose", "--model", os.devnull]))
    return {
        "version": " ".join(line.strip() for line in version.splitlines() if line.strip()),
        "features": features.group(1).strip() if features else "",
    }


def _words_of(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
