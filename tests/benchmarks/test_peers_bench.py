"""The bench beside llama.cpp's server: its ratios, its summary, and small runs where there is a peer."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.environment.exit_codes import ExitCode
from benchmarks import beside
from benchmarks.http_load import LoadRun, StreamedReply, _count
from benchmarks.peer_server import BUILDER, ROOT, PeerFailed, PeerOptions, PeerServer, find_peer
from benchmarks.peers import CONTROL, OURS, OURS_PLAIN, PEER, PEER_PLAIN, Case, HttpSide, PeerTurn, rows_of, summarise
from benchmarks.prompts import N_WORDS, long_texts
from tests.support.fork_server import descendants, forked
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

PNG = b"\x89PNG\r\n"
NO_COMPILER = {"CC": "/no/such/compiler"}


def built(**environment: str) -> str | None:
    """The server that was built for this machine; it takes minutes, so no test builds it."""
    command = ["sh", str(BUILDER), "--find"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


PEERS = {"native": built(), "generic": None}
IS_THERE = {"native": PEERS["native"] is not None, "generic": importlib.util.find_spec("xllamacpp") is not None}


@pytest.fixture(params=list(PEERS))
def peer(request: pytest.FixtureRequest) -> str | None:
    """The path of a llama-server, or None for that of the package."""
    if not IS_THERE[request.param]:
        pytest.skip(f"there is no {request.param} peer on this machine")
    return PEERS[request.param]


def load(seconds: float, ttft: float) -> LoadRun:
    return LoadRun((StreamedReply(ttft, ttft + 1.0, 11), StreamedReply(ttft, ttft + 1.0, 11)), seconds)


def test_a_row_holds_medians_and_ratios_to_the_peer() -> None:
    case = Case("plain", 2, 64)
    turns = [
        PeerTurn(case, {OURS: load(1.0, 0.1 * ratio), PEER: load(ratio, 0.2), CONTROL: load(2.0 * ratio, 0.1)})
        for ratio in (1.1, 1.3, 1.2)
    ]
    ours, theirs, control = rows_of(turns)
    assert (ours["tokens_per_s"], ours["vs_peer"], ours["ttft_vs_peer"], ours["tokens"]) == (22.0, 1.2, 0.6, 66)
    assert (ours["mode"], ours["side"], ours["clients"], ours["new_tokens"]) == ("plain", "slipstream", 2, 64)
    assert ours["ms_per_token_p50"] == 100.0
    assert (theirs["tokens_per_s"], theirs["ttft_ms_p50"]) == (18.3, 200.0)
    assert "vs_peer" not in theirs
    assert (control["vs_peer"], control["ttft_vs_peer"]) == (0.5, 0.5)


@pytest.mark.parametrize(("plain", "best", "ratio"), [(1.0, PEER_PLAIN, 0.5), (4.0, PEER, 1.0)])
def test_drafting_is_compared_with_the_better_of_the_peers_two_ways(plain: float, best: str, ratio: float) -> None:
    loads = {OURS: load(2.0, 0.1), PEER: load(2.0, 0.1), PEER_PLAIN: load(plain, 0.05), OURS_PLAIN: load(4.0, 0.2)}
    ours = rows_of([PeerTurn(Case("drafted", 2, 64), loads)])[0]
    assert (ours["vs_peer"], ours["best"], ours["vs_best"]) == (1.0, best, ratio)
    assert ours["ttft_vs_best"] == (2.0 if best == PEER_PLAIN else 1.0)
    assert (ours["vs_own_plain"], ours["ttft_vs_own_plain"]) == (2.0, 0.5)


def test_the_summary_is_the_worst_of_each_part() -> None:
    rows = [
        {
            "mode": mode,
            "side": side,
            "vs_peer": rate,
            "ttft_vs_peer": ttft,
            "vs_best": rate / 2,
            "ttft_vs_best": 2 * ttft,
        }
        for mode, side, rate, ttft in (
            ("plain", OURS, 1.2, 0.5), ("plain", OURS, 1.1, 0.7), ("plain", CONTROL, 0.98, 1.03),
            ("plain", CONTROL, 1.01, 0.99), ("prompts", OURS, 0.4, 1.8), ("drafted", OURS, 1.4, 0.9),
            ("drafted", OURS, 1.6, 0.8), ("drafted", PEER_PLAIN, 0.5, 3.0),
        )
    ]  # fmt: skip
    rows += beside.rows_of({(0, "rest"): [1.0, 2.0], (4, "rest"): [1.1, 2.2], (16, "work"): [1.5, 3.0]})
    assert summarise(rows) == {
        "vs_peer_aggregate_min": 1.1,
        "vs_peer_ttft_max": 0.7,
        "vs_peer_drafted_aggregate_min": 1.4,
        "vs_peer_drafted_ttft_max": 0.9,
        "vs_peer_best_aggregate_min": 0.7,
        "vs_peer_best_ttft_max": 1.8,
        "vs_peer_prompts_aggregate_min": 0.4,
        "vs_peer_prompts_ttft_max": 1.8,
        "prompt_beside_rest_max": 1.1,
        "prompt_beside_work_max": 1.5,
        "control_aggregate_min": 0.98,
        "control_aggregate_max": 1.01,
        "control_ttft_min": 0.99,
        "control_ttft_max": 1.03,
    }
    assert set(summarise([]).values()) == {None}


def test_long_prompts_have_different_words_and_none_comes_twice() -> None:
    texts = long_texts(3, 5)
    assert [len(set(text.split())) for text in texts] == [N_WORDS] * 3
    assert len({text.split()[0] for text in long_texts(8)}) > 4, "they share no beginning worth keeping"
    assert long_texts(1, 6) == texts[1:2]


@pytest.mark.parametrize(
    ("timings", "reason", "count"),
    [
        ({"decode_tokens": 7}, "stop", 7),
        ({"predicted_n": 8}, "stop", 7),  # llama.cpp counts the token that ends the reply
        ({"predicted_n": 8}, "length", 8),
    ],
)
def test_both_servers_tokens_are_counted_alike(timings: dict[str, int], reason: str, count: int) -> None:
    assert _count({"timings": timings, "choices": [{"finish_reason": reason}]}) == count


def test_without_a_compiler_and_a_package_it_says_what_to_do(refuse: Callable[..., str]) -> None:
    if IS_THERE["generic"]:
        pytest.skip("xllamacpp, the generic peer, is installed")
    assert "pip install --constraint constraints.txt xllamacpp" in refuse("peers", **NO_COMPILER)


def test_a_server_that_is_none_is_refused() -> None:
    with pytest.raises(PeerFailed, match="--server takes the path of a llama-server"):
        find_peer("/no/such/llama-server")


def test_the_native_peer_is_kept_with_the_builds_and_found_there(tmp_path: Path) -> None:
    environment = {"SLIPSTREAM_CACHE": str(tmp_path)}
    assert built(**environment) is None
    assert list(tmp_path.iterdir()) == [], "to look is not to build"
    # What it is called tells compiler, processor and recipe, as with the set-up's own builds.
    native = PEERS["native"]
    if native is None:
        pytest.skip("there is no native peer on this machine")
    kept = tmp_path / "peers" / Path(native).parent.name / "llama-server"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(native)
    assert built(**environment) == str(kept)
    assert built(CFLAGS="-O1", **environment) is None


def test_the_peer_answers_and_a_bad_file_is_reported(peer: str | None, tmp_path: Path) -> None:
    with PeerServer(PeerOptions(str(EMBER), 2, 256, 1, str(EMBER_DRAFT), server=peer)) as server:
        assert server.description["version"]
        assert "SSE3" in server.description["features"] or "NEON" in server.description["features"]
        done = HttpSide(server.url).run(["Once upon", "def f(x):"], 6)
    assert [reply.n_tokens for reply in done.replies] == [6, 6]
    with pytest.raises(PeerFailed, match="did not start"):
        PeerServer(PeerOptions(str(tmp_path / "missing.gguf"), 1, 256, 1, server=peer))


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]], peer: str | None, tmp_path: Path) -> None:
    picture = tmp_path / "peers.png"
    options = ["--layers", "8", "--rounds", "1", "--tokens", "6", "--clients", "3", "--long-clients", "2"]
    options += ["--rows", "drafted", "prompts", "--plot", str(picture)]
    report = run_bench("peers", *options, *(["--server", peer] if peer else []), **({} if peer else NO_COMPILER))
    cells = {(row["mode"], row["side"], row["clients"], row["new_tokens"]) for row in report["rows"]}
    drafted = {("drafted", side, 3, 6) for side in (OURS, PEER, PEER_PLAIN, OURS_PLAIN)}
    assert cells == drafted | {("prompts", side, 2, n) for side in (OURS, PEER) for n in (1, 64)}
    assert {row["tokens"] for row in report["rows"] if row["clients"] == 3} == {18}
    assert {row["tokens"] for row in report["rows"] if row["new_tokens"] == 64} == {128}
    measured = {name for name, value in report["summary"].items() if value is not None}
    ways = ("drafted", "best", "prompts")
    assert measured == {f"vs_peer_{way}_{figure}" for way in ways for figure in ("aggregate_min", "ttft_max")}
    assert report["settings"]["peer"].keys() == {"build", "version", "features"}
    assert report["settings"]["peer"]["build"] == ("given" if peer else "generic")
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_one_that_is_stopped_ends_its_servers_and_prints_what_it_measured(tmp_path: Path) -> None:
    peer = tmp_path / "llama-server"  # our own server knows its options
    peer.write_text(f'#!/bin/sh\nexec {shlex.join(forked([sys.executable, "-m", "app", "serve"]))} "$@"\n')
    peer.chmod(0o755)
    output = tmp_path / "peers.json"
    options = ["--rows", "plain", "--layers", "4", "--rounds", "50", "--tokens", "6", "--clients", "1", "--json"]
    command = [sys.executable, "-m", "benchmarks.peers", *options, "--server", str(peer), "--output", str(output)]
    home, pipe = {"SLIPSTREAM_HOME": str(tmp_path)}, subprocess.PIPE
    with subprocess.Popen(
        forked(command), cwd=ROOT, env=os.environ | home, stdout=pipe, stderr=pipe, text=True
    ) as bench:
        assert bench.stderr is not None
        next(line for line in bench.stderr if "round 1 of" in line)
        members = descendants(psutil.Process(bench.pid))
        bench.terminate()
        out, err = bench.communicate(timeout=60)
    assert bench.returncode == ExitCode.INTERRUPTED
    assert "Until then, this was measured" in err
    report = json.loads(out)
    assert report["was_stopped"]
    assert [row["side"] for row in report["rows"]] == [OURS, PEER, CONTROL]
    assert not output.exists(), "what was there is the last whole run"
    assert len(members) >= 6, "three servers with an engine each"
    assert psutil.wait_procs(members, timeout=60)[1] == []


@pytest.mark.slow
def test_a_prompt_is_read_beside_others_at_rest_and_at_work() -> None:
    rows = beside.measure_beside(EMBER, 1, 1, (0, 2))
    assert [(row["others"], row["state"], row["runs"]) for row in rows] == [
        (0, "none", 1),
        (2, "rest", 1),
        (2, "work", 1),
    ]
    assert all(row["prompt_ms_p50"] > 0 for row in rows)
    assert rows[0]["vs_none"] == 1.0
