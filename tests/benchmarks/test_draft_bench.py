"""The draft bench: its ratios, its summary, and a small run of the whole."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.settings.server_settings import ServerSettings
from benchmarks import prompts
from benchmarks.contenders import ADAPTIVE, AUTO, CONTROL, PLAIN, DecodingStage, fixed
from benchmarks.draft import (
    DraftSample,
    against_best,
    draft_path,
    ratios_to_plain,
    rows_of,
    summarise,
    turns,
    ways_with,
)
from benchmarks.target import add_options, draft_file, settings_of, source_file, target_file, target_name
from models.facts.model_facts import read_model
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

PNG = b"\x89PNG\r\n"


def row(
    draft: str, kind: str, way: str, vs_plain: float, depth: int | None = None, vs_best: float | None = None
) -> dict[str, Any]:
    return {
        "draft": draft,
        "kind": kind,
        "way": way,
        "depth": depth,
        "vs_plain": vs_plain,
        **{name: vs_best for name, one in (("vs_best_fixed", "adaptive"), ("vs_best_part", "auto")) if one == way},
    }


def test_plain_decoding_begins_and_ends_a_round_in_which_each_way_has_its_turns() -> None:
    ways = [ADAPTIVE, AUTO, fixed(1), fixed(2), fixed(3)]
    order = turns(ways, 0)
    assert order == [PLAIN, ADAPTIVE, AUTO, fixed(1), PLAIN, fixed(2), fixed(3), PLAIN]
    assert {way for way in turns(ways, 1) if not way.is_plain} == set(ways)
    assert turns(ways, 1) != order
    ways = [ADAPTIVE, AUTO, fixed(1), CONTROL]
    order = [way for way in turns(ways, 1, n_servers=3) if way != PLAIN]
    assert Counter(order) == dict.fromkeys(ways, 3)
    # The servers of one way are measured at different times.
    assert all(abs(order.index(way) - order.index(way, order.index(way) + 1)) == len(ways) for way in ways)


def test_a_machine_that_slows_down_bends_no_ratio() -> None:
    order = [PLAIN, ADAPTIVE, fixed(1), CONTROL, PLAIN]
    seconds = [1.0, 1.1, 1.2, 1.3, 1.4]
    rates = [1 / seconds[0], 2 / seconds[1], 0.5 / seconds[2], 0.9 / seconds[3], 1 / seconds[4]]
    assert ratios_to_plain(order, rates) == pytest.approx([1.0, 2.0, 0.5, 0.9, 1.0])


def test_rows_are_medians_and_acceptance_is_over_all_prompts() -> None:
    samples = [
        DraftSample("perfect", "story", ADAPTIVE, rate, ratio, drafted, accepted)
        for rate, ratio, drafted, accepted in ((10, 1.0, 10, 9), (30, 1.5, 30, 21), (20, 1.2, 0, 0))
    ]
    (only,) = rows_of(samples)
    assert (only["tokens_per_s"], only["vs_plain"], only["acceptance"], only["runs"]) == (20, 1.2, 0.75, 3)


def test_the_summary_takes_what_its_names_say() -> None:
    rows = [
        row("perfect", "story", "plain", 1.0, 0),
        row("perfect", "story", "adaptive", 1.9, vs_best=0.95),
        row("perfect", "story", "depth 5", 2.0, 5),
        row("realistic", "story", "adaptive", 1.5, vs_best=1.25),
        row("realistic", "story", "depth 2", 1.2, 2),
        row("realistic", "code", "plain", 1.0, 0),
        row("realistic", "code", "adaptive", 0.96),
        row("realistic", "code", "depth 2", 0.7, 2),
        row("realistic", "rename", "adaptive", 1.6),
        row("random", "story", "adaptive", 0.98),
        row("random", "copy", "adaptive", 1.0),
        row("random", "copy", "auto", 1.71, vs_best=0.99),
        row("realistic", "story", "auto", 1.5, vs_best=0.97),
        row("random", "code", "auto", 0.95),
        row("none", "copy", "lookup", 1.8),
        row("none", "copy", "control", 0.93, 0),
        row("none", "story", "control", 1.02, 0),
    ]
    assert summarise(rows) == {
        "draft_vs_plain_min": 0.95,
        "control_vs_plain_min": 0.93,
        "draft_speedup_story": 1.5,
        "draft_speedup_code": 0.96,
        "draft_speedup_rename": 1.6,
        "perfect_speedup": 1.9,
        "adaptive_vs_best_fixed_min": 0.95,
        "lookup_speedup_copy": 1.8,
        "auto_vs_best_part_min": 0.97,
    }
    assert set(summarise([]).values()) == {None}


def test_the_best_depth_is_chosen_on_other_prompts_than_it_is_compared_on() -> None:
    speeds = {ADAPTIVE: (1.5, 1.5, 1.5, 1.5), fixed(2): (2.0, 1.0, 2.0, 1.0), fixed(4): (1.0, 2.0, 1.0, 2.0)}
    fixed_ways = (PLAIN, fixed(2), fixed(4))
    samples = [
        DraftSample("perfect", "copy", way, 10, ratio, round=round_)
        for way, ratios in speeds.items()
        for round_, ratio in enumerate(ratios)
    ]
    assert against_best(samples, "perfect", "copy", ADAPTIVE, fixed_ways) == 1.5
    assert against_best(samples[::4], "perfect", "copy", ADAPTIVE, fixed_ways) == 0.75, (
        "one prompt: the best in hindsight"
    )
    samples += [DraftSample("perfect", "copy", PLAIN, 10, 1.8, round=round_) for round_ in range(4)]
    assert against_best(samples, "perfect", "copy", ADAPTIVE, fixed_ways) == 1.5
    assert against_best(samples, "random", "copy", ADAPTIVE, fixed_ways) is None


def test_only_drafts_that_can_be_right_are_swept() -> None:
    assert [way.name for way in ways_with("perfect", [0, 2])] == ["adaptive", "depth 2", "control"]
    assert [way.name for way in ways_with("random", [0, 2])] == ["adaptive", "control"]


def test_shuffled_weights_are_as_large_as_the_draft_and_always_wrong() -> None:
    path = draft_path("random")
    assert path is not None
    assert path.stat().st_size == EMBER_DRAFT.stat().st_size
    stage = DecodingStage(EMBER, path, n_slots=1, n_ctx=256, n_threads=1)
    receipt = stage.contender(fixed(3)).run([prompts.of_kind("story")[0].text], 40).outcomes[0].receipt
    stage.close()
    assert receipt.n_drafted >= 100
    assert receipt.n_accepted < 0.05 * receipt.n_drafted


def test_any_model_can_be_the_target_and_be_made_deeper() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = parser.parse_args(["--target", str(EMBER_DRAFT), "--draft", str(EMBER)])
    assert (target_file(options), draft_file(options), source_file(options)) == (EMBER_DRAFT, EMBER, EMBER_DRAFT)
    assert target_name(options) == "ember-draft-q8_0"
    assert settings_of(options) == {"layers": None, "shape": None, "target": EMBER_DRAFT.name, "draft": EMBER.name}
    options = parser.parse_args(["--target", str(EMBER_DRAFT), "--layers", "8"])
    assert read_model(target_file(options)).n_layers == 8
    assert draft_file(options) == EMBER_DRAFT, "as a draft it is always right"
    for wrong in (["--target", "/nowhere.gguf"], ["--target", __file__], ["--shape", "8b", "--target", str(EMBER)]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    options = parser.parse_args([])
    assert (draft_file(options), settings_of(options)["layers"]) == (EMBER_DRAFT, 60)


def test_contenders_that_share_a_model_say_the_same_and_do_not_see_each_others_cache() -> None:
    stage = DecodingStage(EMBER, EMBER_DRAFT, n_slots=2, n_ctx=256, n_threads=1)
    contenders = [stage.contender(way) for way in (PLAIN, ADAPTIVE, AUTO, fixed(4))]
    runs = [contender.run(prompts.mixed(2), 24) for contender in contenders for _ in range(2)]
    stage.close()
    assert len({tuple(outcome.text for outcome in run.outcomes) for run in runs}) == 1
    assert all(outcome.receipt.n_generated == 24 for run in runs for outcome in run.outcomes)
    # The second prompt shares its first tokens with the first at most.
    assert all(outcome.receipt.n_cached < 8 for run in runs for outcome in run.outcomes)


@pytest.mark.slow
def test_a_small_run(run_bench: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    picture = tmp_path / "draft.png"
    sizes = ["--layers", "6", "--prompts", "1", "--more-prompts", "1", "--servers", "1", "--tokens", "4"]
    report = run_bench("draft", *sizes, "--depths", "0,2", "--plot", str(picture))
    ways = {(entry["draft"], entry["way"]) for entry in report["rows"]}
    assert {("perfect", "depth 2"), ("realistic", "auto"), ("random", "adaptive"), ("none", "lookup")} <= ways
    assert {entry["kind"] for entry in report["rows"]} == {"story", "code", "rename", "copy"}
    assert report["settings"]["slots"] == ServerSettings().engine.n_slots
    assert all(entry["runs"] == 1 for entry in report["rows"] if entry["way"] != "plain")
    assert {entry["kind"] for entry in report["rows"] if entry.get("vs_best_part")} == set(prompts.KINDS)
    assert all(value > 0 for value in report["summary"].values())
    assert picture.read_bytes().startswith(PNG)
