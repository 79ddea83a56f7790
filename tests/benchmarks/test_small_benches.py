"""The benches that have little to work out: their figures and summaries, and small runs of the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import lanes, synthetic_vocab, truth
from benchmarks.ablations import RULES, SimulatedWorkload, workloads
from benchmarks.embeddings import OURS, PEER, CaseTimes, EmbeddingCase, measure_case, row_of
from benchmarks.lanes import LanePace
from benchmarks.truth import StoppedClock, TruthSample
from core.machine.host import core_count
from core.values.messages import Receipt
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
    report = run_bench("checkouts", str(ROOT), "--parts", "cache", "--layers", "4", "--rounds", "2")
    assert [(row["workload"], row["checkout"]) for row in report["rows"]] == [("turns", "control")]
    assert report["summary"][f"control_vs_{ROOT.name}_min"] > 0


@pytest.mark.slow
@pytest.mark.skipif(core_count() < 2, reason="there is nothing to choose on one core")
def test_the_load_bench_compares_with_each_fixed_number_of_threads(run_bench: Callable[..., dict[str, Any]]) -> None:
    sizes = ("--layers", "8", "--rounds", "1", "--seconds", "0.1", "--patience", "3", "--threads", "2")
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
        measure_case(case, {OURS: ours, PEER: peer}, 3, times)  # type: ignore[dict-item]
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
        ("worth of a second", SimulatedWorkload("cpu", "always right", is_repeating=True), 0.95),
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
