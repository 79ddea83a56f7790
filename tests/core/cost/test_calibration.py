"""What is measured of a model's steps at load, what of it is believed, and what is assumed without measuring."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from core.cost import calibration
from core.cost.calibration import assumed_steps, calibrate, cost_model_of, plausible, record_graphs
from core.cost.cost_model import CostModel, ReadCost
from core.engine.engine import Engine
from core.llama.build import features
from core.llama.context import Batch, Context, DecodeStatus
from core.loading.load_engine import load_engine
from core.machine.host import core_count
from core.machine.known_machine import Measurements
from core.values.engine_options import EngineOptions
from core.values.messages import LoadedModel
from core.values.request import SamplingParams
from models.facts.model_facts import WeightBytes, read_model
from tests.support.engines import complete, open_engine
from tests.support.prompts import EMBER
from tools.model_factory import gguf_factory, head_factory
from tools.model_factory.gguf_factory import EMBER_DRAFT


def test_a_step_that_took_longer_than_its_rows_one_by_one_was_disturbed() -> None:
    assert plausible({1: 0.001, 2: 0.4, 4: 1.2, 8: 2.8, 64: 3.0}) == pytest.approx(
        {1: 0.001, 2: 0.002, 4: 0.004, 8: 0.008, 64: 0.064}
    )
    assert plausible({1: 0.5, 2: 0.002, 4: 0.004}) == pytest.approx({1: 0.002, 2: 0.002, 4: 0.004})
    curve = {1: 0.010, 2: 0.0177, 4: 0.0262, 8: 0.0262, 9: 0.045, 16: 0.05, 64: 0.2}
    assert plausible(curve) == curve


def test_where_there_is_no_time_to_measure_wide_steps_they_are_not_taken_for_free() -> None:
    """A model of some gigabytes takes so long for one row that only the narrowest steps can be measured."""
    with open_engine(n_ctx=1024, speculation="off") as engine:
        hasty = calibrate(engine.context, 512, budget=0.0)
        model, narrow = CostModel(hasty), hasty.seconds[8]
        assert narrow < model.time(16) < model.time(32) < model.time(64) < model.time(256)
        assert 4 * narrow < model.time(64) <= 8 * narrow


def test_what_a_cached_token_costs_is_known_also_where_there_is_no_time_to_measure_it() -> None:
    facts = ReadCost.of(read_model(EMBER), "f16")
    share = facts.cell / facts.weights.read_by(1)
    with open_engine(n_ctx=1024, speculation="off") as engine:
        context: Context = engine.context
        hasty = calibrate(context, 512, share, budget=0.0)
        assert hasty.kv_seconds == pytest.approx(share * hasty.seconds[1], rel=0.01)
        assert {1, 4, 5, 8} <= set(hasty.seconds)
        thorough = calibrate(context, 512, share, budget=5.0)
        least = share * min(thorough.seconds.values())
        assert 0.2 * least < thorough.kv_seconds < 21 * least
        assert context.last_position(0) == -1, "the context is empty again"
        assert engine.cost.time(1, 500) > engine.cost.time(1), "an engine's own steps cost more behind a long text"


def test_a_calibration_that_knows_nothing_of_the_bytes_says_nothing_of_cached_tokens() -> None:
    with open_engine(n_ctx=1024, speculation="off") as engine:
        assert calibrate(engine.context, 512).kv_seconds == 0.0


def test_texts_that_a_kernel_passes_over_are_worth_keeping_and_others_are_not() -> None:
    for flash_attention, share in (("on", 0.02), ("off", 1.0)):
        with open_engine(n_ctx=512, speculation="off", flash_attention=flash_attention) as engine:
            own = engine.cost.time(1, 10_000) - engine.cost.time(1)
            assert own > 0
            assert engine.cost.idle_time(1, 10_000) == pytest.approx(share * own, rel=0.01)


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each step."""
    widths: list[int] = []
    decode = Context.decode

    def noted(self: Context, batch: Batch) -> DecodeStatus:
        widths.append(batch.n_tokens)
        return decode(self, batch)

    monkeypatch.setattr(Context, "decode", noted)
    return widths


def test_short_steps_are_measured_as_drafts_find_them_between_steps_of_one_row(widths: list[int]) -> None:
    with open_engine(n_ctx=512, speculation="off") as engine:
        for _ in range(20):  # beside other work the first steps may be long
            widths.clear()
            if calibrate(engine.context, 512).seconds[1] < 0.001:
                break
    assert widths.count(4) >= 3
    assert not any(1 < before == width <= 8 for before, width in pairwise(widths))


@pytest.mark.parametrize(("is_on_gpu", "n_each"), [(False, 1), (True, 3)])
def test_a_gpu_takes_the_usual_widths_until_it_has_recorded_them(
    is_on_gpu: bool, n_each: int, widths: list[int]
) -> None:
    with open_engine(n_ctx=512, speculation="off") as engine:
        engine.context.is_asynchronous = is_on_gpu
        widths.clear()
        cost_model_of(engine.context, 512, Measurements(None), "a key", DENSE)
    assert widths[-7 * n_each :] == [width for width in range(2, 9) for _ in range(n_each)]


@pytest.mark.parametrize(("is_on_gpu", "has_cuda"), [(False, True), (True, False), (True, True)])
def test_cuda_records_all_widths_that_are_kept_and_the_usual_ones_last(
    is_on_gpu: bool, has_cuda: bool, widths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "features", lambda: (*features(), *(("CUDA",) if has_cuda else ())))
    with open_engine(n_slots=2, n_ctx=512) as engine:
        engine.context.is_asynchronous = is_on_gpu
        widest = min(32, engine.context.n_outputs)
        widths.clear()
        record_graphs(engine.context, 512, engine.cost)
    if not (is_on_gpu and has_cuda):
        assert not widths
        return
    kept = [width for width in (*range(9, widest + 1), *range(2, 9)) for _ in range(3)]
    assert widest > 16
    assert widths[-21:] == kept[-21:]
    assert widths[:-21] == kept[: len(widths) - 21], "as many as there is time for, the narrow ones first"


DENSE = ReadCost.of(read_model(EMBER), "f16")
EXPERTS = ReadCost(WeightBytes(shared=10**9, experts=8 * 10**9, n_experts=64, n_experts_used=8), 1000)


@pytest.mark.parametrize("reads", [DENSE, EXPERTS])
@pytest.mark.parametrize("is_on_gpu", [False, True])
def test_wider_steps_take_longer_and_less_than_as_many_narrow_ones(reads: ReadCost, is_on_gpu: bool) -> None:
    model = CostModel(assumed_steps(reads, is_on_gpu=is_on_gpu))
    times = [model.time(rows) for rows in range(1, 200)]
    assert times == sorted(times)
    assert all(took <= rows * times[0] for rows, took in enumerate(times, 1))
    assert model.time(1, 1000) > model.time(1)


def test_a_further_row_is_dear_on_a_processor_and_nearly_free_on_a_gpu() -> None:
    for is_on_gpu, low, high in ((False, 1.3, 1.5), (True, 1.0, 1.05)):
        model = CostModel(assumed_steps(DENSE, is_on_gpu=is_on_gpu))
        assert low <= model.time(2) / model.time(1) <= high


def test_further_rows_read_further_experts() -> None:
    dense, experts = (CostModel(assumed_steps(reads, is_on_gpu=True)) for reads in (DENSE, EXPERTS))
    assert experts.time(8) / experts.time(1) > 2.0 > dense.time(8) / dense.time(1)


def measured_nothing(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it was measured")


def load_unmeasured(model: Path, folder: Path, **options: Any) -> tuple[Engine, LoadedModel]:
    return load_engine(EngineOptions(str(model), n_ctx=256, calibrates=False, **options), cache_folder=folder)


def forbid_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core.cost.calibration.calibrate", "core.loading.load_engine.step_times"):
        monkeypatch.setattr(name, measured_nothing)


@pytest.mark.parametrize("n_slots", [1, 2])
def test_nothing_is_measured_while_a_model_is_loaded_and_steps_correct_what_was_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_slots: int
) -> None:
    forbid_measuring(monkeypatch)
    engine, loaded = load_unmeasured(EMBER, tmp_path, n_slots=n_slots, draft_path=str(EMBER_DRAFT))
    assert not (tmp_path / "measured.json").exists(), "what is assumed is not kept as if it were known"
    assert loaded.n_threads == core_count()
    before = engine.cost.time(1)
    ended = complete(engine, "Once upon a time", max_tokens=40, sampling=SamplingParams(temperature=0))[1]
    assert ended.receipt.n_generated == 40
    assert engine.cost.time(1) != before
    engine.close()


def test_a_head_is_not_measured_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = head_factory.mtp_counter(tmp_path / "m.gguf", 16)
    forbid_measuring(monkeypatch)
    load_unmeasured(model, tmp_path, n_slots=1)[0].close()


def test_what_was_measured_before_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.known_machine.others_are_busy", lambda others: False)
    model = gguf_factory.cached(gguf_factory.Recipe(n_layers=12))
    first, loaded = load_engine(EngineOptions(str(model), n_ctx=256), cache_folder=tmp_path)
    known, n_threads = first.cost.time(1), loaded.n_threads
    first.close()
    kept = json.loads((tmp_path / "measured.json").read_text())
    forbid_measuring(monkeypatch)
    again, loaded = load_unmeasured(model, tmp_path)
    assert (again.cost.time(1), loaded.n_threads) == (known, n_threads)
    again.close()
    assert json.loads((tmp_path / "measured.json").read_text()) == kept
