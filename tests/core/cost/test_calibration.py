"""What is measured of a model's steps at load, and what of it is believed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from core.cost.calibration import calibrate, plausible
from core.cost.cost_model import ReadCost
from core.llama.context import Batch, Context, DecodeStatus
from models.facts.model_facts import read_model
from tests.support.engines import open_engine
from tests.support.prompts import EMBER


def test_a_step_that_took_longer_than_its_rows_one_by_one_was_disturbed() -> None:
    assert plausible({1: 0.001, 2: 0.4, 4: 1.2, 8: 2.8, 64: 3.0}) == pytest.approx(
        {1: 0.001, 2: 0.002, 4: 0.004, 8: 0.008, 64: 0.064}
    )
    assert plausible({1: 0.5, 2: 0.002, 4: 0.004}) == pytest.approx({1: 0.002, 2: 0.002, 4: 0.004})
    curve = {1: 0.010, 2: 0.0177, 4: 0.0262, 8: 0.0262, 9: 0.045, 16: 0.05, 64: 0.2}
    assert plausible(curve) == curve


def test_what_a_cached_token_costs_is_known_also_where_there_is_no_time_to_measure_it() -> None:
    facts = ReadCost.of(read_model(EMBER), "f16")
    share = facts.cell / facts.weights.read_by(1)
    with open_engine(n_ctx=1024, speculation="off") as engine:
        context: Context = engine.context
        hasty = calibrate(context, 512, share, budget=0.0)
        assert hasty.kv_seconds == pytest.approx(share * hasty.seconds[1], rel=0.01)
        assert set(hasty.seconds) == {1, 4}
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


def test_short_steps_are_measured_as_drafts_find_them_between_steps_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    decode = Context.decode

    def noted(self: Context, batch: Batch) -> DecodeStatus:
        widths.append(batch.n_tokens)
        return decode(self, batch)

    with open_engine(n_ctx=512, speculation="off") as engine:
        monkeypatch.setattr(Context, "decode", noted)
        calibrate(engine.context, 512)
    assert widths.count(4) >= 3
    assert not any(1 < before == width <= 8 for before, width in pairwise(widths))
