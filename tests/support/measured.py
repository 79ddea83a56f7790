"""What a model and its draft measure on this machine: measured once, and given to every process that a test starts.

Processes keep nothing that they measured while other programs use the cores, and other tests always do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from core.llama import log
from core.machine.measurements import Measurements
from core.values.engine_options import EngineOptions
from tests.support.engines import EMBER, EMBER_DRAFT, load

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
    # In a process of its own: who only starts programs need not have llama.cpp loaded.
    command = [sys.executable, "-m", "tests.support.measured", *(str(path) for path in paths if path)]
    return subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _main(model: str, draft: str | None = None) -> None:
    log.silence()
    measured = Measurements(None)
    for n_threads in (None, 1):
        options = EngineOptions(model, n_ctx=512, draft_path=draft, n_threads=n_threads)
        engine, _ = load(options, measured=measured)
        engine.close()
    print(json.dumps(measured.entries))


if __name__ == "__main__":
    _main(*sys.argv[1:])
