"""From the command to the first token, and from the command to a visible window, with a warm disk."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import BenchReport, median, run_bench, say

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = str(ROOT / "slipstream")
CHAT = [LAUNCHER, "chat", "Tell me a story about a fox.", "--max-tokens", "8", "--seed", "1", "--temperature", "0"]
SHOWN = "SLIPSTREAM_TRACE_START"


def seconds_to_first_byte(command: list[str], environment: dict[str, str]) -> float:
    """Return the seconds from starting ``command`` to the first byte on its stdout."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as child:
        assert child.stdout is not None
        first = child.stdout.read(1)
        seconds = time.perf_counter() - began
        child.stdout.read()
    if not first or child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {child.returncode}")
    return seconds


def seconds_to_window(environment: dict[str, str]) -> float:
    """Return the seconds from ``./slipstream`` to its window being shown (offscreen)."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [LAUNCHER], stderr=subprocess.PIPE, env={**environment, "QT_QPA_PLATFORM": "offscreen", SHOWN: "1"}, text=True
    )
    try:
        assert child.stderr is not None
        for line in child.stderr:
            if "shown" in line:
                return time.perf_counter() - began
        raise RuntimeError("the window was never shown")
    finally:
        child.terminate()
        child.wait(20)


def seconds_over_bare(environment: dict[str, str]) -> float:
    """Return what the launcher adds to the bare program, in seconds."""
    python = str(ROOT / ".venv" / "bin" / "python")
    with_launcher = _seconds([LAUNCHER, "--version"], environment)
    bare = _seconds([python, "-m", "app", "--version"], environment)
    return with_launcher - bare


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
    return time.perf_counter() - began


def measure(options: argparse.Namespace) -> BenchReport:
    report = BenchReport("start", settings={"rounds": options.rounds})
    environment = dict(os.environ)
    measures: dict[str, Callable[[], float]] = {
        "chat_first_token_s": lambda: seconds_to_first_byte(CHAT, environment),
        "window_visible_s": lambda: seconds_to_window(environment),
        "launcher_overhead_s": lambda: seconds_over_bare(environment),
    }
    for name, once in measures.items():
        once()  # warms the disk cache
        values = [once() for _ in range(options.rounds)]
        say(f"{name}: {median(values):.3f}")
        report.rows.append(
            {
                "what": name,
                "min": round(min(values), 3),
                "median": round(median(values), 3),
                "max": round(max(values), 3),
            }
        )
        report.summary[name] = round(median(values), 3)
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="starts of each kind")
    raise SystemExit(run_bench("start", measure, parser))
