"""The bench that compares texts: what it asks, its rows and summary, and that each way is really gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.jobs.verify.verification import DecodedReply, Mode
from benchmarks.engine_client import AskedReply, EngineClient, Question
from benchmarks.same import KINDS, MODELS, OWN_KINDS, SameBench, SameFinding, model_file, questions, row_of, summarise
from benchmarks.same_cost import Switch, measure_costs
from core.values.engine_options import EngineOptions
from core.values.messages import Receipt
from models.facts.model_facts import read_model
from tests.support.prompts import FOX
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

GREEDY, SEEDED = Mode(), Mode(7)


def found(mode: Mode, gap: float | None = None, **receipt: Any) -> SameFinding:
    return SameFinding(
        Question(FOX, mode), gap is None, gap, AskedReply(DecodedReply((1, 2), False), Receipt(**receipt))
    )


def test_prompts_of_each_kind_are_asked_greedily_and_with_seeds() -> None:
    asked = questions(44)
    assert len({one.prompt for one in asked}) == 44
    assert [one.mode.seed for one in asked[:12]] == [None] * 4 + [4, 5, 6, 7] + [None] * 4, "each kind both ways"
    lengths = [len(one.prompt) for one in asked]
    long = [place for place, length in enumerate(lengths) if length > 3 * sorted(lengths)[22]]
    assert long == [10, 21, 32, 43]


def test_a_row_tells_shares_gaps_and_that_the_way_was_gone() -> None:
    results = [
        found(GREEDY, n_prompt=10, n_cached=8, n_drafted=4, n_accepted=1),
        found(GREEDY, 0.5, n_prompt=10, n_cached=0),
        found(SEEDED, 0.01, n_prompt=20, n_cached=2, n_drafted=4, n_accepted=3),
        found(SEEDED, 0.03),
    ]
    row = row_of("q8_0", "draft", results)
    assert (row["texts"], row["same"], row["greedy"], row["sampled"], row["different"]) == (4, 0.25, 0.5, 0.0, 3)
    assert (row["gap_p50"], row["gap_max"]) == (0.03, 0.5)
    assert (row["cached_share"], row["acceptance"], row["preempted"]) == (0.25, 0.5, 0)


def test_the_summary_is_the_least_of_all_models_and_ways() -> None:
    rows: list[dict[str, Any]] = [
        {"model": model, "kind": kind, "same": same, "gap_max": gap}
        for model, kind, same, gap in (
            ("q8_0", "again", 1.0, None), ("f16", "again", 0.99, 0.01), ("q8_0", "company", 0.9, 0.3),
            ("q8_0", "draft", 0.8, 0.2), ("q8_0", "lookup", 0.7, 0.1), ("q8_0", "restart", 0.6, 0.1),
            ("q8_0", "preempted", 0.65, 0.1), ("q8_0", "peer-again", 1.0, None), ("q8_0", "peer-company", 0.98, None),
        )
    ]  # fmt: skip
    rows += [{"measure": "blocks", "case": "1 client", "cost": cost} for cost in (0.01, 0.02)]
    assert summarise(rows) == {
        "same_alone_again": 0.99,
        "same_in_company": 0.9,
        "same_drafted": 0.7,
        "same_restored": 0.6,
        "gap_max": 0.3,
        "peer_alone_again": 1.0,
        "peer_in_company": 0.98,
        "cost_max": 0.02,
    }
    assert set(summarise([]).values()) == {None}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_what_their_names_say(name: str) -> None:
    facts = read_model(model_file(name, None))
    assert facts.quantisation.lower().startswith(name.removeprefix("moe-"))
    assert (facts.n_experts > 0) == name.startswith("moe-")


@pytest.mark.slow
def test_each_way_is_gone_and_says_so() -> None:
    asked = questions(10)
    ways = SameBench(model_file("q8_0", None), 1, 24, OWN_KINDS).run(asked)
    assert list(ways) == list(OWN_KINDS)
    assert {len(results) for results in ways.values()} == {10}
    rows = {kind: row_of("q8_0", kind, results) for kind, results in ways.items()}
    assert rows["again"]["cached_share"] > 0.9
    assert rows["restart"]["cached_share"] > 0.5, "the prompts were on disk"
    assert rows["company"]["cached_share"] < 0.3, "they were read in company"
    assert rows["draft"]["acceptance"] > 0.1
    assert rows["draft-company"]["acceptance"] > 0.1
    assert rows["lookup"]["acceptance"] is not None
    assert rows["preempted"]["preempted"] >= 8
    assert all((row["gap_max"] is None) == (row["different"] == 0) for row in rows.values())


def test_those_who_wait_begin_when_others_end() -> None:
    client = EngineClient(EngineOptions(str(EMBER), n_slots=2, n_ctx=128, n_threads=1, speculation="off"), 6)
    most = []
    step = client.engine.step

    def watched() -> Any:
        most.append(len(client.engine.scheduler.running))
        return step()

    client.engine.step = watched
    asked = [Question(f"{FOX} {place}", Mode(place)) for place in range(5)]
    answers = client.ask_together(asked)
    alone = client.ask(asked[2])
    difference = client.compare(asked[2], answers[2].reply, DecodedReply((*alone.reply.tokens[:3], 5), False))
    client.close()
    assert [len(answer.reply.tokens) for answer in answers] == [6] * 5
    assert max(most) == 2
    assert difference is not None
    assert difference.position <= 3
    assert difference.gap > 0


@pytest.mark.slow
def test_a_measure_that_changes_nothing_costs_nothing_much() -> None:
    rows = measure_costs(EMBER_DRAFT, 1, (Switch("nothing", {"SLIPSTREAM_NO_SUCH_SWITCH": "1"}),), 1)
    assert [(row["measure"], row["case"]) for row in rows] == [
        ("nothing", case) for case in ("1 client", "8 clients", "long prompts")
    ]
    assert all(row["cost"] > -1.0 for row in rows)


def test_a_small_run(run_bench: Callable[..., dict[str, Any]]) -> None:
    options = ("--models", "q8_0", "--prompts", "5", "--tokens", "8", "--kinds", "again", "draft")
    report = run_bench("same", *options, "--threads", "1")
    assert [(row["model"], row["kind"], row["texts"]) for row in report["rows"]] == [
        ("q8_0", "again", 5),
        ("q8_0", "draft", 5),
    ]
    assert 0.0 <= report["summary"]["same_drafted"] <= 1.0
    assert report["summary"]["same_in_company"] is None
    assert set(KINDS) > {"again", "draft"}
