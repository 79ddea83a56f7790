"""The bench beside llama.cpp's server: its ratios, its summary, and a small run where the peer is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.http_load import Load, Reply, _count
from benchmarks.peer_server import PeerFailed, PeerOptions, PeerServer
from benchmarks.peers import HttpSide, Sample, rows_of, summarise
from tests.support.gguf_factory import EMBER, EMBER_DRAFT

PNG = b"\x89PNG\r\n"
needs_peer = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp, the peer, is not installed"
)


def load(seconds: float, ttft: float) -> Load:
    return Load((Reply(ttft, ttft + 1.0, 11), Reply(ttft, ttft + 1.0, 11)), seconds)


def test_a_row_holds_medians_and_ratios_of_our_side_only() -> None:
    samples = [Sample("plain", "slipstream", 2, load(1.0, 0.1), ratio, 0.5) for ratio in (1.1, 1.3, 1.2)]
    samples.append(Sample("plain", "llama.cpp", 2, load(2.0, 0.2)))
    ours, theirs = rows_of(samples)
    assert (ours["tokens_per_s"], ours["vs_peer"], ours["ttft_vs_peer"], ours["tokens"]) == (22.0, 1.2, 0.5, 66)
    assert ours["ms_per_token_p50"] == 100.0
    assert (theirs["tokens_per_s"], theirs["vs_peer"], theirs["ttft_ms_p50"]) == (11.0, None, 200.0)


def test_the_summary_is_the_worst_over_all_numbers_of_clients() -> None:
    rows = [
        {"mode": mode, "side": side, "vs_peer": rate, "ttft_vs_peer": ttft}
        for mode, side, rate, ttft in (
            ("plain", "slipstream", 1.2, 0.5),
            ("plain", "slipstream", 1.1, 0.7),
            ("plain", "llama.cpp", None, None),
            ("drafted", "slipstream", 1.4, 0.9),
            ("drafted", "slipstream", 1.6, 0.8),
        )
    ]
    assert summarise(rows) == {
        "vs_peer_aggregate_min": 1.1,
        "vs_peer_ttft_max": 0.7,
        "vs_peer_drafted_aggregate_min": 1.4,
        "vs_peer_drafted_ttft_max": 0.9,
    }
    assert set(summarise([]).values()) == {None}


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


def test_without_the_peer_it_says_how_to_install_it(refuse: Callable[..., str]) -> None:
    if importlib.util.find_spec("xllamacpp") is not None:
        pytest.skip("xllamacpp, the peer, is installed")
    assert "pip install --constraint constraints.txt xllamacpp" in refuse("peers")


@needs_peer
def test_the_peer_answers_and_a_bad_file_is_reported(tmp_path: Path) -> None:
    with PeerServer(PeerOptions(str(EMBER), 2, 256, 1, str(EMBER_DRAFT))) as peer:
        assert peer.description["version"]
        done = HttpSide(peer.url).run(["Once upon", "def f(x):"], 6)
    assert [reply.n_tokens for reply in done.replies] == [6, 6]
    with pytest.raises(PeerFailed, match="did not start"):
        PeerServer(PeerOptions(str(tmp_path / "missing.gguf"), 1, 256, 1))


@needs_peer
def test_a_small_run(run_bench: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    picture = tmp_path / "peers.png"
    options = ("--layers", "8", "--rounds", "1", "--tokens", "6", "--clients", "1", "3", "--plot", str(picture))
    report = run_bench("peers", *options)
    cells = {(row["mode"], row["side"], row["clients"]) for row in report["rows"]}
    assert cells == {(m, s, n) for m in ("plain", "drafted") for s in ("slipstream", "llama.cpp") for n in (1, 3)}
    assert {row["tokens"] for row in report["rows"] if row["clients"] == 3} == {18}
    assert all(value > 0 for value in report["summary"].values())
    assert report["settings"]["peer"].keys() == {"version", "features"}
    assert picture.read_bytes().startswith(PNG)
