"""The benches that have little to work out: their figures and summaries, and small runs of the whole."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import lanes, predict, synthetic_vocab, truth
from benchmarks.ablations import RULES, SimulatedWorkload, workloads
from benchmarks.api_agent import CONVERSATIONS, AgentTurn, reread, shares
from benchmarks.api_client import PROTOCOLS
from benchmarks.concurrency import ConcurrencySample, rows_of, summarise
from benchmarks.contenders import AUTO, PLAIN, ContenderRun, ReplyOutcome
from benchmarks.embeddings import OURS, PEER, CaseTimes, EmbeddingCase, measure_case, row_of
from benchmarks.lanes import LanePace
from benchmarks.report import percentile
from benchmarks.truth import StoppedClock, TruthSample
from core.machine.host import core_count
from core.machine.known_machine import MachineProbe
from core.values.messages import Receipt
from models.estimate.speed.machine import Machine
from models.estimate.speed.probe import Probe
from tests.support.engines import open_engine

ROOT = Path(__file__).resolve().parents[2]


def test_two_runs_are_one() -> None:
    joined = LanePace(0.01, (0.01, 0.02), 5, 1.0).joined(LanePace(0.03, (0.03,), 1, 2.0))
    assert joined == LanePace(0.02, (0.01, 0.02, 0.03), 6, 3.0)


def test_the_summary_is_of_the_way_that_keeps_the_promise_least() -> None:
    fast = [
        {"measure": "fast lane", "itl_ratio": ratio, "gap_p50_ratio": 1.0, "gap_p95_ratio": ratio}
        for ratio in (1.02, 1.07)
    ]
    batch = [{"measure": "batch lane", "batch_share": share} for share in (0.99, 0.97)]
    planning = [{"measure": "planning", "plan_us_16": 40.0, "plan_us_256": 41.0}]
    assert lanes.summarise(fast + batch + planning) == {
        "fast_lane_itl_ratio": 1.07,
        "fast_lane_p50_ratio": 1.0,
        "fast_lane_p95_ratio": 1.07,
        "batch_lane_share": 0.97,
        "plan_us_16": 40.0,
        "plan_us_256": 41.0,
    }


@pytest.mark.slow
def test_a_small_run_of_lanes(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("lanes", "--layers", "8", "--rounds", "1", "--tokens", "24", "--slots", "2", "--ways", "drafted")
    assert [row["measure"] for row in report["rows"]] == ["fast lane", "batch lane", "planning"]
    assert all(value > 0 for value in report["summary"].values())


@pytest.mark.slow
def test_the_cache_bench_finds_what_is_known_in_every_case(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("cache", "--rounds", "1", "--layers", "2")
    rows = {row["what"]: row for row in report["rows"]}
    assert set(report["summary"]) == {"second_turn_ttft_ratio", "shared_prefix_ttft_ratio", "restart_ttft_ratio"}
    assert rows["second_turn"]["cached_tokens"] >= 800
    assert rows["shared_prefix"]["cached_tokens"] >= 7 * 600
    assert rows["restart"]["cached_tokens"] == 799
    assert all(ratio > 0 for ratio in report["summary"].values())


@pytest.mark.slow
def test_a_small_run_of_checkouts(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("checkouts", str(ROOT), "--parts", "cache", "--layers", "4", "--rounds", "1")
    assert [(row["workload"], row["checkout"]) for row in report["rows"]] == [("turns", "control")]
    assert report["summary"][f"control_vs_{ROOT.name}_min"] > 0


@pytest.mark.slow
@pytest.mark.skipif(core_count() < 2, reason="there is nothing to choose on one core")
def test_the_load_bench_compares_with_each_fixed_number_of_threads(run_bench: Callable[..., dict[str, Any]]) -> None:
    sizes = ("--layers", "8", "--rounds", "1", "--seconds", "0.1", "--patience", "0.1", "--threads", "2")
    report = run_bench("load", *sizes)
    assert [(row["model"], row["busy_processes"]) for row in report["rows"]] == [
        ("ember", 0),
        ("ember", 1),
        ("deep-ember", 0),
        ("deep-ember", 1),
    ]
    for row in report["rows"]:
        assert row["best_threads"] in (1, 2)
        assert row["threads_1_tokens_per_s"] > 0
        assert row["threads_2_tokens_per_s"] > 0
    ratios = [row["governed_vs_best_fixed"] for row in report["rows"]]
    assert report["summary"]["unloaded_vs_fixed"] == min(ratios[0::2])
    assert report["summary"]["loaded_vs_best_fixed_min"] == min(ratios[1::2])


class FakeSide:
    """Answers after a made-up time, with the same vector for every text."""

    def __init__(self, seconds: float, vector: list[float]) -> None:
        self.seconds, self.vector = seconds, vector
        self.sizes: list[tuple[int, int, int]] = []

    def run(self, bodies: list[list[list[int]]]) -> tuple[float, list[list[float]]]:
        self.sizes.append((len(bodies), len(bodies[0]), len(bodies[0][0])))
        return self.seconds, [self.vector for _ in bodies[0]]


def test_rates_ratio_and_cosine_are_those_of_the_same_texts() -> None:
    ours, peer = FakeSide(0.5, [1.0, 0.0]), FakeSide(1.0, [0.6, 0.8])
    case, times = EmbeddingCase(2, 3, 16), CaseTimes()
    for _ in range(2):
        measure_case(case, {OURS: ours, PEER: peer}, 3, times)
    assert set(ours.sizes) == set(peer.sizes) == {(2, 3, 16)}
    assert len(ours.sizes) == 8, "one turn of each start warms up"
    assert len(times.rates[OURS]) == 6
    row = row_of(case, times)
    assert (row[f"{OURS} texts/s"], row[f"{PEER} texts/s"], row["ratio"]) == (12.0, 6.0, 2.0)
    assert row["cosine"] == pytest.approx(0.6)


def test_a_sample_says_how_far_its_receipt_is_from_the_truth() -> None:
    receipt = Receipt(n_generated=61, n_drafted=50, n_accepted=40, decode=0.5, speedup=2.2)
    sample = TruthSample(receipt, 125.0, 62.5)
    assert sample.truth == 2.0
    assert sample.speedup_error == pytest.approx(0.1)
    assert sample.rate_error == pytest.approx(0.04)
    assert sample.over_bound == pytest.approx(2.2 / (61 / 20))
    assert TruthSample(Receipt(n_generated=61, n_drafted=50, speedup=None), 125.0, 62.5).speedup_error is None


def test_the_summary_is_over_all_replies() -> None:
    one = {"replies": 3, "speedup_errors": [0.01, 0.02], "rate_error_p90": 0.01, "prediction_error": 0.08}
    other = {"replies": 1, "speedup_errors": [0.2], "rate_error_p90": 0.03}
    assert truth.summarise([one, other]) == {
        "speedup_error_p50": 0.02,
        "speedup_error_p90": 0.2,
        "speedup_known_share": 0.75,
        "rate_error_p90_max": 0.03,
        "prediction_after_one_run_error": 0.08,
    }
    assert truth.summarise([])["speedup_error_p50"] is None


def test_a_clock_stands_still_while_the_other_side_works(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("benchmarks.truth.time.perf_counter", lambda: now)
    clock = StoppedClock()
    now = 105.0
    with clock:
        began = clock()
        now = 107.0
    now = 120.0
    with clock:
        assert clock() - began == 2.0


@pytest.mark.slow
def test_a_small_run_of_truth(run_bench: Callable[..., dict[str, Any]]) -> None:
    report = run_bench("truth", "--layers", "8", "--replies", "2", "--tokens", "30", "--clients", "2", "--conditions",
                       "quiet", "--drafts", "realistic", "none")  # fmt: skip
    assert [(row["draft"], row["clients"]) for row in report["rows"]] == [("realistic", 2), ("none", 2)]
    assert all(row["most_over_bound"] <= 1.0 for row in report["rows"])
    assert report["rows"][1]["with_speedup"] == report["rows"][1]["replies"], "1.0 where nothing is drafted"
    assert report["summary"].keys() >= {"speedup_error_p50", "speedup_error_p90", "prediction_after_one_run_error"}


def test_workloads_have_names_of_their_own_and_take_the_same_time_in_each_run() -> None:
    workload = SimulatedWorkload("cpu", "right 1 of 2 times", is_repeating=True)
    assert workload.speedup() == workload.speedup()
    names = [workload.name for workload in workloads()]
    assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize(
    ("rule", "workload", "most"),
    [
        ("risk budget", SimulatedWorkload("slow", "right for one text", 4, 1.5), 0.9),
        ("caution that grows with the loss", SimulatedWorkload("slow", "right for one text", 4, 1.5), 0.9),
        ("probes", SimulatedWorkload("cpu", "always right"), 0.7),
        ("rests", SimulatedWorkload("cpu", "never right", thought=0.0003), 0.99),
        ("worth of evidence", SimulatedWorkload("cpu", "right 3 of 4 times", knows_itself=True), 0.8),
        ("worth of a second", SimulatedWorkload("cpu", "right by turns"), 0.95),
    ],
)
def test_each_rule_earns_its_keep_somewhere(rule: str, workload: SimulatedWorkload, most: float) -> None:
    """A rule whose workload does as well without it is to be deleted."""
    with_rule = workload.speedup()
    with RULES[rule]():
        assert workload.speedup() <= most * with_rule


def test_made_up_words_are_visible_tokens_and_ember_still_speaks() -> None:
    with open_engine(synthetic_vocab.model(20_000, 6), speculation="off") as engine:
        pieces = engine.vocab.pieces
        assert len(pieces) == 20_000
        assert sum(bool(piece) for piece in pieces) > 19_900
        assert len(set(pieces[10_000:])) == 10_000
        assert any(piece.startswith(b" ") and len(piece) > 6 for piece in pieces[10_000:])
        assert any(b'"' in piece for piece in pieces[10_000:])


@pytest.mark.slow
def test_the_constraint_bench_reports_what_it_promises(run_bench: Callable[..., dict[str, Any]]) -> None:
    sizes = ("--layers", "6", "--vocabulary", "20000", "--rounds", "2", "--steps", "6", "--replies", "2")
    report = run_bench("constraint", *sizes, "--threads", "1")
    rows = [row for row in report["rows"] if row["constraint"] != "forced_keys"]
    assert {row["constraint"] for row in rows} == {"json_object", "json_schema", "regex"}
    assert {row["sampling"] for row in rows} == {"greedy", "sampled"}
    promised = [row["overhead"] for row in rows if row["constraint"] != "regex"]
    assert report["summary"]["constraint_overhead"] == max(promised)
    assert all(row["free_step_us"] > 0 for row in rows)
    forced = [row for row in report["rows"] if row["constraint"] == "forced_keys"]
    assert [row["model"] for row in forced] == ["ember", "deep-ember"]
    for row in forced:
        assert 1 <= row["identical_texts"] <= row["replies"] == 2, "near-ties may be decided otherwise"
        assert row["steps_per_token"] <= row["steps_per_token_plain"] == 1.0
        assert row["accepted"] <= row["drafted"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("api", "--slots 0", "--slots"), ("api", "--rounds 0", "--rounds"), ("api", "--parts all", "--parts"),
        ("concurrency", "--clients 0", "--clients"), ("concurrency", "--drafts perfect", "--drafts"),
        ("draft", "--depths 3-99", "depths go from 0 to 16"), ("draft", "--depths many", "not 'many'"),
        ("draft", "--plot picture.jpg", "must end in .png"), ("draft", "--plot /nowhere/a.png", "there is no folder"),
        ("draft", "--prompts 0", "--prompts"), ("engine", "--rounds 0", "--rounds must be more than 0"),
        ("engine", "--layers -1", "--layers must be more than 0"), ("engine", "--output /", "/ cannot be written"),
        ("engine", "--output /nowhere/at/all/engine.json", "there is no folder /nowhere/at/all"),
        ("same", "--prompts 0", "--prompts"), ("same", "--kinds alone", "--kinds"),
        ("same", "--models q2_k", "--models"), ("checkouts", "/nowhere", "is no checkout that is set up"),
    ],
)  # fmt: skip
def test_options_that_cannot_work_are_refused_before_anything_is_measured(
    refuse: Callable[..., str], name: str, options: str, words: str
) -> None:
    assert words in refuse(name, *options.split())


def test_a_share_is_of_the_prompt_and_the_reply_before() -> None:
    turns = [AgentTurn(80, 0, 20), AgentTurn(110, 95, 10), AgentTurn(130, 120, 10)]
    assert shares(turns, drops_thoughts=False) == ([0.95, 1.0], [])
    assert reread(turns) == [5, 0]
    turns = [
        AgentTurn(100, 0, 10),
        *(AgentTurn(110 + 10 * i, 100 + 10 * i, 0) for i in range(4)),
        AgentTurn(120, 90, 10),
    ]
    of_all, of_kept = shares(turns, drops_thoughts=True)
    assert len(of_all) == 4
    assert of_kept == [0.9]


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    options = ("--layers", "2", "--rounds", "1", "--tokens", "6", "--slots", "3", "--requests", "40", "--turns", "2")
    report = run_bench("api", *options)
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        parts.setdefault(row["part"], []).append(row)
    assert all(row["http_ttft_ms"] > 0 and row["engine_ttft_ms"] > 0 for row in parts["ttft"])
    assert {row["streams"] for row in parts["rate"]} == {1, 3}
    assert [row["protocol"] for row in parts["streams"]] == [protocol.name for protocol in PROTOCOLS]
    assert all(row["chunks"] >= row["streams"] for row in parts["streams"])
    assert report["summary"]["wrong_streams"] == 0
    assert parts["requests"][0]["cancelled"] == 2
    assert report["summary"]["busy_slots_after"] == 0
    assert [row["protocol"] for row in parts["agent"]] == list(CONVERSATIONS)
    assert report["summary"]["agent_reused_min"] >= 0.95


PROBE = MachineProbe("cpu", 1, {"CPU": Probe({"Q8_0": 20e9}, {}, 1e-6, 0.4)})


@pytest.mark.slow
def test_the_report_has_its_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(predict, "TYPES", ("Q8_0",))
    monkeypatch.setattr(predict, "probe_machine", lambda: PROBE)
    monkeypatch.setattr(predict.bandwidth, "LARGEST_SET", 64 << 20)
    picture = tmp_path / "predict.png"
    options = argparse.Namespace(layers=(1, 2), seconds=0.02, threads=1, seed=1, plot=picture)
    report = predict.measure(options).as_dict()
    assert len(report["rows"]) == 2 * 2 * 2
    assert {"median_error", "p90_error", "median_error_cold", "median_error_again", "median_error_Q8_0"} <= report[
        "summary"
    ].keys()
    assert all(row["learnt"] > 0 and row["measured"] > 0 for row in report["rows"])
    assert picture.stat().st_size > 1_000


def _learnt(machine: Machine | None) -> Machine:
    """Leave out the free memory, which changes from one moment to the next."""
    assert machine is not None
    return replace(machine, devices=())


def test_a_prediction_has_not_seen_its_model_nor_one_of_its_size() -> None:
    members = [predict.Member("dense", "Q8_0", n) for n in (4, 8, 16)]
    samples = [
        predict.PredictSample(
            member, "empty", 10, seconds, 1, predict.Observation({"CPU: layer": member.n_layers}, seconds)
        )
        for member, seconds in zip(members, (1e-3, 2e-3, 4e-3), strict=True)
    ]
    usual = predict.predictors(30e9, PROBE, samples)["learnt"]
    wrong = [
        *samples[:2],
        predict.PredictSample(members[2], "empty", 10, 9.0, 1, predict.Observation({"CPU: layer": 16}, 9.0)),
    ]
    changed = predict.predictors(30e9, PROBE, wrong)["learnt"]
    assert _learnt(usual(samples[2])) == _learnt(changed(samples[2]))
    assert _learnt(usual(samples[0])) != _learnt(changed(samples[0]))
    few = predict.predictors(30e9, PROBE, samples)["few"]
    assert few(samples[0]) is None
    assert few(samples[2]) is not None


PNG = b"\x89PNG\r\n"
WAY_BACK = {"ember": None, "qwen3next": "CheckpointMemory"}


def run(seconds: float, *gaps: float) -> ContenderRun:
    receipt = Receipt(n_generated=11, n_drafted=20, n_accepted=5, ttft=0.5, decode=1.0)
    return ContenderRun((ReplyOutcome("a", receipt, list(gaps)), ReplyOutcome("b", receipt, list(gaps))), seconds)


def test_a_row_holds_medians_of_its_runs() -> None:
    samples = [
        ConcurrencySample("random", AUTO, 2, run(seconds, 0.1, 0.1, 0.9), ratio)
        for seconds, ratio in ((1, 1.0), (2, 0.9))
    ]
    samples.append(ConcurrencySample("random", PLAIN, 2, run(1, 0.1), 1.0))
    row, plain = rows_of(samples)
    assert (row["tokens_per_s"], row["vs_plain"], row["ttft_ms_p50"]) == (16.5, 0.95, 500.0)
    assert (row["itl_ms_p50"], row["itl_ms_p95"], row["ms_per_token_p50"]) == (100.0, 900.0, 100.0)
    assert row["acceptance"] == 0.25
    assert (plain["way"], plain["vs_plain"]) == ("plain", 1.0)


def test_the_summary_is_the_worst_for_each_number_of_clients() -> None:
    rows = [
        {"way": way, "clients": clients, "vs_plain": ratio}
        for way, clients, ratio in (("plain", 1, 0.5), ("auto", 1, 1.4), ("auto", 1, 1.1), ("auto", 16, 0.98))
    ]
    expected = {"drafted_vs_plain_min_1": 1.1, "drafted_vs_plain_min_16": 0.98, "draft_vs_plain_min": 0.98}
    assert summarise(rows) == expected
    assert summarise([]) == {"draft_vs_plain_min": None}


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, share) for share in (0.01, 0.5, 0.6, 0.95, 1.0)] == [1.0, 3.0, 3.0, 5.0, 5.0]


@pytest.mark.slow
@pytest.mark.parametrize("model", WAY_BACK)
def test_a_small_run_of_concurrency(run_bench: Callable[..., dict[str, Any]], tmp_path: Path, model: str) -> None:
    picture = tmp_path / "concurrency.png"
    options = f"--model {model} --layers 6 --rounds 1 --tokens 12 --clients 1 3".split()
    report = run_bench("concurrency", *options, *(("--plot", str(picture)) if model == "ember" else ()))
    cells = {(row["draft"], row["way"], row["clients"]) for row in report["rows"]}
    assert cells == {(d, w, n) for d in ("realistic", "random") for w in ("plain", "auto") for n in (1, 3)}
    assert all(row["tokens_per_s"] > 0 and row["ttft_ms_p50"] > 0 for row in report["rows"])
    assert report["settings"]["model"] == model
    assert WAY_BACK[model] in (None, report["settings"].get("way_back"))
    assert report["summary"].keys() == {"drafted_vs_plain_min_1", "drafted_vs_plain_min_3", "draft_vs_plain_min"}
    assert model != "ember" or picture.read_bytes().startswith(PNG)
