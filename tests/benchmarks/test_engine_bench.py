"""The engine bench: the bare loop decodes what the engine decodes, and a small run of the whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bare_loop import BareLoop
from benchmarks.engine import GREEDY, PROMPT, WIDTHS, EngineLoop
from core.values.request import Request
from tests.support.engines import complete, open_engine
from tests.support.fork_server import forked

ROOT = Path(__file__).resolve().parents[2]


def test_the_bare_loop_says_what_the_engine_says() -> None:
    with open_engine(n_threads=2, speculation="off") as engine:
        text, _, _ = complete(engine, PROMPT, max_tokens=9, sampling=GREEDY)
        bare = BareLoop(engine, n_sequences=2, n_threads=2)
        bare.start([engine.vocab.tokenize(PROMPT)] * 2)
        tokens = [bare.tokens[0]]
        for _ in range(8):
            bare.step()
            assert bare.tokens[0] == bare.tokens[1]
            tokens.append(bare.tokens[0])
        bare.close()
        assert b"".join(engine.vocab.pieces[token] for token in tokens).decode() == text


def test_the_bare_loop_goes_on_where_the_engine_stands() -> None:
    with open_engine(n_threads=2, n_slots=4, speculation="off") as engine:
        loop, bare = EngineLoop(engine), BareLoop(engine, n_sequences=4, n_threads=2)
        loop.start(PROMPT, 3)
        bare.start(loop.texts)
        for _ in range(5):
            assert bare.tokens.tolist() == [sequence.tokens.last for sequence in engine.scheduler.running]
            loop.step()
            bare.step()
        bare.close()


def test_the_engines_turn_leaves_nothing_behind() -> None:
    with open_engine(n_threads=2, n_slots=4) as engine:
        loop = EngineLoop(engine)
        loop.start(PROMPT, 3)
        assert len(engine.scheduler.running) == 3
        before = engine.stats.n_sampled
        loop.step()
        assert engine.stats.n_sampled == before + 3
        loop.stop()
        assert engine.is_idle
        request = Request("after", PROMPT, 4, sampling=GREEDY)
        engine.submit(engine.prepare(request))
        assert engine.scheduler.waiting.size == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_stops_it_without_a_traceback() -> None:
    command = forked([sys.executable, "-m", "benchmarks.engine", "--layers", "4"])
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as bench:
        assert bench.stderr is not None
        said = bench.stderr.readline()
        bench.send_signal(signal.SIGINT)
        said += bench.stderr.read()
    assert bench.returncode == 130, said
    assert said.endswith("Stopped: nothing was measured yet.\n")
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("engine", "--layers", "4", "--rounds", "2", "--steps", "3", "--tokens", "4")
    widths = [(row["model"], row["sequences"]) for row in report["rows"] if "sequences" in row]
    assert widths == [(model, width) for model in ("deep", "ember") for width in WIDTHS]
    assert all(row["engine_vs_bare"] > 0 for row in report["rows"] if "sequences" in row)
    assert [row["clients"] for row in report["rows"] if "clients" in row] == [1, 16]
    assert report["summary"]["http_vs_engine"] > 0
