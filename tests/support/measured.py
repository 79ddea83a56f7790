"""What a model and its draft measure on this machine: measured once, and given to every process that a test starts.

Processes keep nothing that they measured while other programs use the cores, and other tests always do.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from filelock import FileLock

from core.llama.library import silence_log
from core.machine.known_machine import Measurements
from core.values.engine_options import EngineOptions
from tests.support.engines import load
from tests.support.prompts import EMBER, EMBER_DRAFT

_ROOT = Path(__file__).resolve().parents[2]


def give(
    cache_folder: Path, model: Path = EMBER, draft: Path | None = EMBER_DRAFT, *, rows_are_cheap: bool = False
) -> None:
    """Put the measurements where a process looks for its own; ``rows_are_cheap`` makes wide steps hardly dearer."""
    entries = json.loads(_measured(model, draft))
    if rows_are_cheap:
        for entry in entries.values():
            if seconds := entry.get("seconds"):
                entry["seconds"] = {rows: seconds["1"] * (1 + 0.01 * int(rows)) for rows in seconds}
                entry["kv_seconds"] = 0.0
    cache_folder.mkdir(parents=True, exist_ok=True)
    (cache_folder / "measured.json").write_text(json.dumps(entries), encoding="utf-8")


@cache
def _measured(*paths: Path | None) -> str:
    """Return the measurements as JSON; the workers of one run of pytest share them by a file."""
    words = [str(path) for path in paths if path]
    if (run := os.environ.get("PYTEST_XDIST_TESTRUNUID")) is None:
        return _measure(words)
    name = hashlib.sha256("\n".join([run, *words]).encode()).hexdigest()
    kept = Path(tempfile.gettempdir()) / f"slipstream-measured-{name[:16]}.json"
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            kept.write_text(_measure(words), encoding="utf-8")
        return kept.read_text(encoding="utf-8")


def _measure(words: list[str]) -> str:
    # In a process of its own: who only starts programs need not have llama.cpp loaded.
    command = [sys.executable, "-m", "tests.support.measured", *words]
    return subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _main(model: str, draft: str | None = None) -> None:
    silence_log()
    measured = Measurements(None)
    for n_threads in (None, 1):
        options = EngineOptions(model, n_ctx=512, draft_path=draft, n_threads=n_threads)
        engine, _ = load(options, measured=measured)
        engine.close()
    print(json.dumps(measured.entries))


if __name__ == "__main__":
    _main(*sys.argv[1:])
