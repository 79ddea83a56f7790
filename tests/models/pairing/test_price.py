"""What a drafted token costs, measured and not, and what drafting is expected to gain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.estimate.speed.machine import Machine
from models.estimate.speed.probe import Probe
from models.facts.model_facts import ModelFacts, WeightBytes, read_model
from models.gguf.header import read_header
from models.pairing.forecast import (
    CPU_ROW,
    GPU_ROW,
    DraftingMachine,
    cost_share,
    draft_bytes,
    forecast,
    pace_of,
    row_cost,
)
from models.pairing.gain import (
    NOTHING_JUDGED,
    AcceptanceCounts,
    ProposerKind,
    corrected_gain,
    expected_acceptance,
    learnt,
    predict,
)
from tests.support.made_up_machines import GB, machine
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER_DRAFT


def pace(facts: ModelFacts, here: Machine | None = None) -> DraftingMachine:
    found = pace_of(facts, here or machine())
    assert found is not None
    return found


@pytest.fixture
def counter() -> ModelFacts:
    """A model with a prediction head in its file."""
    return read_model(head_factory.cached_mtp_counter(16))


def sizes(path: Path) -> dict[str, int]:
    return {tensor.name: tensor.n_bytes for tensor in read_header(path).tensors}


def test_a_head_in_the_file_reads_its_layer_and_the_output(counter):
    known = sizes(counter.files[0])
    experts = sum(size for name, size in known.items() if name.startswith("blk.16.") and "_exps." in name)
    layer = sum(size for name, size in known.items() if name.startswith("blk.16."))
    assert draft_bytes(counter, None) == layer - experts // 2 + known["output.weight"]
    assert counter.mtp_weights.read_by(1) == draft_bytes(counter, None)


@pytest.mark.parametrize("has_tables", [True, False])
def test_a_head_beside_the_model_reads_its_layer_and_an_output(deep, tmp_path, has_tables):
    path = head_factory.eagle_head(tmp_path / "head.gguf", has_tables=has_tables)
    head, own = read_model(path), sizes(path)
    inside = sum(size for name, size in own.items() if name not in ("token_embd.weight", "output.weight"))
    output = own["output.weight"] if has_tables else sum(size for _, size in deep.weight_map.output.shared)
    assert head.has_output is has_tables
    assert draft_bytes(deep, head) == inside + output


def test_a_table_of_ids_is_looked_up(deep, tmp_path):
    path = head_factory.eagle_head(tmp_path / "head.gguf", has_tables=True, ids=range(1000), n_vocab=1000)
    whole = read_model(head_factory.eagle_head(tmp_path / "whole.gguf", has_tables=True))
    # With a type that no matrix has, it would have no price by seconds, and fall back to bytes.
    assert cost_share(deep, read_model(path), pace(deep)) < cost_share(deep, whole, pace(deep))


def test_the_share_is_one_of_seconds_where_the_machine_was_measured(deep):
    draft = read_model(EMBER_DRAFT)
    by_bytes, by_seconds = cost_share(deep, draft, None), cost_share(deep, draft, pace(deep))
    assert by_bytes == pytest.approx(draft.active_bytes_per_token / deep.active_bytes_per_token)
    # A step and its layers cost time whatever they read, which weighs on what reads little.
    assert by_seconds > by_bytes
    assert pace_of(deep, machine(rate=None)) is None


def test_a_type_that_the_machine_reads_slowly_makes_a_draft_dear(deep, tmp_path):
    head = read_model(head_factory.eagle_head(tmp_path / "head.gguf", has_tables=True))
    quick, slow = (machine(probe=Probe({"Q8_0": 20e9, "F32": rate}, {"F16": 1e9})) for rate in (20e9, 1e9))
    assert cost_share(deep, head, pace(deep, slow)) > cost_share(deep, head, pace(deep, quick))


def test_a_row_costs_what_was_measured(deep):
    probe = Probe({"Q8_0": 20e9}, {"F16": 1e9}, 1e-6, 0.1)
    assert (row_cost(machine()), row_cost(machine(probe=probe))) == (CPU_ROW, 0.1)
    assert row_cost(machine(GB), 1) == GPU_ROW


def test_heads_and_small_models_are_predicted_alike(deep, counter, tmp_path):
    head = read_model(head_factory.eagle_head(tmp_path / "head.gguf"))
    for target, draft in ((deep, read_model(EMBER_DRAFT)), (deep, head), (counter, None)):
        assumed = forecast(target, draft, pace(target), GPU_ROW, NOTHING_JUDGED)
        bad = forecast(target, draft, pace(target), GPU_ROW, AcceptanceCounts(1_000, 10))
        good = forecast(target, draft, pace(target), GPU_ROW, AcceptanceCounts(1_000, 990))
        assert 1.0 <= bad.gain < assumed.gain < good.gain
        assert (assumed.is_measured, bad.is_measured) == (False, True)
        assert forecast(target, draft, pace(target), 0.5, NOTHING_JUDGED).gain < assumed.gain
    faster = replace(pace(deep), seconds=pace(deep).seconds / 4)
    assert (
        forecast(deep, head, faster, GPU_ROW, NOTHING_JUDGED).gain
        < forecast(deep, head, pace(deep), GPU_ROW, NOTHING_JUDGED).gain
    )


DENSE = WeightBytes(8_000, 0, 1, 0)


def test_the_formula_is_that_of_the_paper():
    found = predict(DENSE, 0.05, 0.8, row_cost=0.0)
    by_paper = {g: (1 - 0.8 ** (g + 1)) / ((1 - 0.8) * (1 + g * 0.05)) for g in range(1, 9)}
    assert found.gain == pytest.approx(max(by_paper.values()))
    assert by_paper[found.depth] == pytest.approx(found.gain)
    found = predict(DENSE, 1.0, 0.87, CPU_ROW)
    assert (found.depth, found.gain) == (0, 1.0)
    gains = [predict(DENSE, share, 0.75, CPU_ROW).gain for share in (0.5, 0.25, 0.125, 0.025)]
    assert gains == sorted(gains)
    assert gains[-1] > gains[0]


def test_verifying_costs_experts_more_and_rows_are_cheaper_on_a_gpu():
    experts = WeightBytes(2_000, 48_000, 8, 1)
    assert experts.read_by(1) == DENSE.read_by(1)
    assert predict(experts, 0.05, 0.8, CPU_ROW).gain < predict(DENSE, 0.05, 0.8, CPU_ROW).gain
    assert predict(DENSE, 0.05, 0.8, GPU_ROW).gain > predict(DENSE, 0.05, 0.8, CPU_ROW).gain


def test_acceptance_follows_what_was_published():
    assert expected_acceptance(ProposerKind.MODEL, 100_000_000, 137_000_000_000) == pytest.approx(0.61, abs=0.02)
    assert expected_acceptance(ProposerKind.MODEL, 800_000_000, 11_000_000_000) == pytest.approx(0.78, abs=0.02)
    assert expected_acceptance(ProposerKind.MODEL, 1, 10**12) == 0.4
    assert expected_acceptance(ProposerKind.MODEL, 0, 0) <= 0.87
    assert (
        0.5 < expected_acceptance(ProposerKind.EAGLE3, 0, 10**9) < expected_acceptance(ProposerKind.MTP, 0, 10**9) < 1
    )


def test_what_was_judged_here_takes_the_place_of_what_was_published():
    assert learnt(0.8, AcceptanceCounts(0, 0)) == 0.8
    once, often = learnt(0.8, AcceptanceCounts(8, 0)), learnt(0.8, AcceptanceCounts(2_000, 600))
    assert 0.3 < once < 0.8
    assert often == pytest.approx(0.3, abs=0.01)


def test_predictions_learn_slowly_from_what_was_measured():
    assert corrected_gain(1.5, []) == 1.5
    once, often = corrected_gain(1.5, [(1.4, 1.0)]), corrected_gain(1.5, [(1.4, 1.0)] * 8)
    assert 1.0 < often < once < 1.5
    assert corrected_gain(1.1, [(2.0, 0.5)] * 50) == 1.0
    assert corrected_gain(1.5, [(1.0, 1.2)] * 4) > 1.5
