"""The peer as a process of its own: llama.cpp's HTTP server out of the package xllamacpp."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from core.openmp import WAITING

ROOT = Path(__file__).resolve().parent.parent
_READY = "PEER READY "
_KEPT_CHARACTERS = 2_000
HOW_TO_INSTALL = (
    "The peer is not installed: this bench compares with llama.cpp's own server out of the package xllamacpp. "
    "Install it with\n\n    .venv/bin/python -m pip install --constraint constraints.txt xllamacpp\n\n"
    "in Slipstream's folder, then start the bench again."
)


class PeerFailed(Exception):
    """The peer's server did not start; the message holds its last words."""


@dataclass(frozen=True)
class PeerOptions:
    """How the peer's server is set up; ``n_ctx`` is the context of one request in tokens, as on our side.

    ``openmp`` "tuned" gives it the environment that our engine chooses for itself.
    """

    model: str
    n_slots: int
    n_ctx: int
    n_threads: int
    draft: str | None = None
    openmp: Literal["default", "tuned"] = "default"


def is_installed() -> bool:
    """Return whether the package is there."""
    return importlib.util.find_spec("xllamacpp") is not None


class PeerServer:
    """The peer's server in a child process, which leaves when its stdin closes.

    ``description`` holds the package's version and what its build uses of the processor.
    """

    def __init__(self, options: PeerOptions) -> None:
        """Start it and wait until it answers; raises PeerFailed."""
        # A file, since nobody reads along: a full pipe would stop the server.
        self._words = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        program = "from benchmarks.peer_server import serve; serve()"
        command = [sys.executable, "-c", program, json.dumps(asdict(options))]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._words}
        environment = {**os.environ, **(WAITING if options.openmp == "tuned" else {})}
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, env=environment, **pipes)
        line = self._process.stdout.readline()
        if not line.startswith(_READY):
            self._process.wait()
            self._words.seek(0)
            last_words = self._words.read()[-_KEPT_CHARACTERS:]
            self.stop()
            raise PeerFailed(f"The peer's server did not start.\n{last_words}")
        self.description: dict[str, str] = json.loads(line.removeprefix(_READY))
        self.url = self.description.pop("url")

    def stop(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._words.close()

    def __enter__(self) -> PeerServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve() -> None:
    """Serve with the options on the command line, print the address, and leave when stdin ends."""
    import xllamacpp

    server = xllamacpp.Server(_parameters(xllamacpp, PeerOptions(**json.loads(sys.argv[1]))))
    description = {
        "url": server.listening_address,
        "version": xllamacpp.__version__,
        "features": xllamacpp.get_system_info().strip(),
    }
    print(_READY + json.dumps(description), flush=True)
    sys.stdin.read()


def _parameters(xllamacpp: Any, options: PeerOptions) -> Any:
    """Return the peer's own defaults but for what both sides must share: model, threads, slots, context, draft."""
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
