"""What a step reads, against the sizes of the tensors themselves; rates, limits and snapshots on made-up steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from core.cost.cost_model import Calibration, CostModel, ReadCost, attended
from core.engine.meter import Meter, StepReading
from core.scheduler.planner import Share, StepPlan
from core.scheduler.sequence import RequestCost
from core.values.messages import Bottleneck, FinishReason, Snapshot
from models.facts.model_facts import WeightBytes, read_model
from models.gguf.header import read_header
from tests.support.engines import Ledger, complete, open_engine, run, submit
from tests.support.prompts import EMBER, EMBER_DRAFT, chat
from tools.model_factory import hybrid_factory, recurrent_factory
from tools.model_factory.gguf_factory import deep_ember, moe_ember

FLAT = CostModel(Calibration({1: 0.010, 64: 0.0105}))
LINEAR = CostModel(Calibration({1: 0.002, 64: 0.128}))
WEIGHTS = 100_000_000
READS = ReadCost(WeightBytes(WEIGHTS, 0, 1, 0), cell=1_000)
PEAK = 20e9
NOBODY = Snapshot(is_idle=False, n_cells=100)


@dataclass
class Cached:
    """Stands for a sequence with ``n_past`` cached tokens."""

    n_past: int
    n_pending: int = 1
    n_replay: int = 0
    account: RequestCost = field(default_factory=RequestCost)

    @property
    def is_prefilling(self) -> bool:
        return self.n_pending > 1 + self.n_replay


def plan(*shares: tuple[int, int, int]) -> StepPlan:
    """Return a plan of (cached tokens, rows, drafted tokens) of each sequence."""
    made: list[Any] = [(Cached(past, rows), rows, (7,) * drafted) for past, rows, drafted in shares]
    return tuple(Share(sequence, rows, draft) for sequence, rows, draft in made)


def meter(cost: CostModel = FLAT, peak: float | None = PEAK, **options: Any) -> Meter:
    made = Meter(cost, READS, **options)
    made.peak = peak
    return made


def tensor_bytes(path: Path, share_of_experts: float = 1.0) -> float:
    """Add up the tensors of a tied model that a step reads: all, but of experts a share."""
    tensors = read_header(path).tensors
    return sum(t.n_bytes * (share_of_experts if "_exps" in t.name else 1.0) for t in tensors)


def work(gauge: Meter, seconds: float, n_steps: int, shares: StepPlan, n_sampled: int = 1, **drafts: int) -> float:
    """Record steps of ``seconds`` one after the other; return when the last one ended."""
    now = 0.0
    for _ in range(n_steps):
        reading = gauge.read(shares, seconds, 0.0)
        gauge.record(replace(reading, began=now, ended=now + seconds, n_sampled=n_sampled, **drafts))
        now += seconds
    return now


class TestBytes:
    """Computed bytes are within 5 % of the tensors that are read."""

    @pytest.mark.parametrize("n_rows", [1, 5])
    def test_a_dense_model_reads_every_tensor_once_for_all_rows(self, n_rows: int, tmp_path: Path) -> None:
        path = deep_ember(tmp_path / "deep.gguf", n_layers=12)
        reads = ReadCost.of(read_model(path), "f16")
        assert reads.step(n_rows, 0) == pytest.approx(tensor_bytes(path), rel=0.05)

    @pytest.mark.parametrize(("n_rows", "touched"), [(1, 2 / 8), (2, 1 - (6 / 8) ** 2), (8, 1 - (6 / 8) ** 8)])
    def test_a_model_with_experts_reads_those_that_are_touched(
        self, n_rows: int, touched: float, tmp_path: Path
    ) -> None:
        path = moe_ember(tmp_path / "moe.gguf", n_experts=8, n_used=2)
        reads = ReadCost.of(read_model(path), "f16")
        assert reads.step(n_rows, 0) == pytest.approx(tensor_bytes(path, touched), rel=0.05)

    @pytest.mark.parametrize(("kv_type", "element"), [("f32", 4.0), ("f16", 2.0), ("q8_0", 34 / 32), ("q4_0", 18 / 32)])
    def test_cells_are_of_the_type_of_the_cache(self, kv_type: str, element: float) -> None:
        reads = ReadCost.of(read_model(EMBER), kv_type)
        n_cells, n_elements = 700, 6 * 3 * (64 + 64)
        assert reads.step(1, n_cells) - reads.step(1, 0) == pytest.approx(n_cells * n_elements * element, rel=0.001)

    def test_a_running_state_is_read_once_for_each_sequence(self) -> None:
        reads = ReadCost(WeightBytes(WEIGHTS, 0, 1, 0), cell=1_000, state=50_000)
        assert reads.step(1, 300) == WEIGHTS + 300 * 1_000 + 50_000
        assert reads.step(8, 300, 2) == WEIGHTS + 300 * 1_000 + 2 * 50_000, "however many rows they have"

    def test_layers_with_a_window_read_no_more_than_is_in_sight(self) -> None:
        reads = ReadCost(WeightBytes(WEIGHTS, 0, 1, 0), cell=100, window=512, cell_in_window=900)
        assert reads.step(1, 300) == WEIGHTS + 300 * 1_000
        assert reads.step(1, 4_000) == WEIGHTS + 4_000 * 100 + 512 * 900
        assert reads.step(2, 4_000, 2) == WEIGHTS + 4_000 * 100 + 2 * 512 * 900

    @pytest.mark.parametrize("make", [recurrent_factory.mamba, recurrent_factory.lfm2, hybrid_factory.qwen35])
    def test_a_model_with_a_running_state_reads_its_tensors_and_that(
        self, make: Callable[[Path], Path], tmp_path: Path
    ) -> None:
        path = make(tmp_path / "model.gguf")
        facts = read_model(path)
        assert facts.state_elements > 0
        # Of the embeddings a row is read, and of a prediction head nothing.
        head = f"blk.{hybrid_factory.N_LAYERS}."
        left_out = ("token_embd", head) if facts.n_mtp_layers else ("token_embd",)
        tensors = [t for t in read_header(path).tensors if not t.name.startswith(left_out) or "norm" in t.name[:16]]
        expected = sum(t.n_bytes for t in tensors) + 4 * facts.state_elements
        assert ReadCost.of(facts, "f16").step(1, 0) == pytest.approx(expected, rel=0.05)

    def test_a_batch_reads_weights_once_and_the_cells_of_each(self) -> None:
        reading = meter().read(plan((100, 1, 0), (300, 1, 0)), 0.01, 0.0)
        assert reading.n_bytes == WEIGHTS + (101 + 301) * 1_000
        assert (reading.n_rows, reading.n_sequences, reading.n_prefill) == (2, 2, 0)

    def test_a_long_prompt_reads_weights_and_cells_once_for_each_pass(self) -> None:
        reads = ReadCost(WeightBytes(WEIGHTS, 0, 1, 0), cell=1_000, n_ubatch=512)
        assert reads.step(512, 600) == WEIGHTS + 600 * 1_000
        # Behind 88 tokens: 600 cells are there in the first pass, 1,112 in the second and 1,288 in the third.
        assert reads.step(1_200, 1_288) == 3 * WEIGHTS + (600 + 1_112 + 1_288) * 1_000
        assert reads.step(1_024, 1_112) == 2 * WEIGHTS + (600 + 1_112) * 1_000
        experts = ReadCost(WeightBytes(0, WEIGHTS, 8, 2), cell=0, n_ubatch=4)
        assert experts.step(6, 6) == experts.step(4, 4) + experts.step(2, 2)

    def test_drafted_rows_read_the_cells_of_their_sequence_once(self) -> None:
        reading = meter().read(plan((100, 1, 4)), 0.01, 0.002, draft_bytes=5_000)
        assert reading.n_bytes == WEIGHTS + 105 * 1_000 + 5_000
        assert reading.seconds == pytest.approx(0.012)

    def test_the_draft_model_reads_its_own_weights_for_each_round(self) -> None:
        with open_engine(draft_path=str(EMBER_DRAFT), speculation="draft", draft_depth=3) as engine:
            submit(engine, "only", max_tokens=24)
            engine.step()
            assert engine.speculator is not None
            drafted_before = sum(engine.speculator.stats.drafted_at)
            seen: list[int] = []
            read = engine.meter.read

            def spy(
                shares: StepPlan, decode: float, draft: float, draft_bytes: int = 0, seconds: float = 0.0
            ) -> StepReading:
                seen.append(draft_bytes)
                return read(shares, decode, draft, draft_bytes, seconds)

            engine.meter.read = spy
            engine.step()
            engine.step()
            n_rounds = sum(engine.speculator.stats.drafted_at) - drafted_before
        # Rounds of one row each, and one decode that reads the prompt.
        expected = tensor_bytes(EMBER_DRAFT) * (n_rounds + 1)
        assert sum(seen) == pytest.approx(expected, rel=0.25)


class TestSnapshot:
    """The last second in figures."""

    def test_rates_are_of_the_last_second(self) -> None:
        gauge = meter()
        now = work(gauge, 0.01, 300, plan((0, 1, 0)))
        found = gauge.snapshot(now, replace(NOBODY, n_active=1, n_waiting=2, n_cells_used=50))
        assert found.decode_rate == pytest.approx(100, rel=0.03)
        assert found.bytes_per_second == pytest.approx((WEIGHTS + 1_000) / 0.01, rel=0.01)
        assert found.peak_share == pytest.approx(0.5, rel=0.01)
        assert (found.n_active, found.n_waiting, found.n_cells_used, found.n_cells) == (1, 2, 50, 100)
        assert (found.prefill_rate, found.speedup, found.acceptance) == (0.0, 1.0, None)

    def test_a_prompt_has_a_rate_of_its_own(self) -> None:
        gauge = meter(LINEAR)
        now = work(gauge, 0.1, 5, plan((0, 50, 0)), n_sampled=0)
        found = gauge.snapshot(now, NOBODY)
        assert found.prefill_rate == pytest.approx(500)
        assert found.decode_rate == 0
        assert found.limited_by is Bottleneck.COMPUTE

    def test_a_long_prompt_is_limited_by_computing_however_much_is_cached(self) -> None:
        cost = CostModel(Calibration({1: 0.002, 64: 0.128}, kv_seconds=1e-6))
        gauge = meter(cost)
        kv = 50 * 5_000 + 50 * 51 // 2
        now = work(gauge, cost.time(50, kv), 3, plan((5_000, 50, 0)), n_sampled=0)
        assert gauge.snapshot(now, NOBODY).limited_by is Bottleneck.COMPUTE

    def test_what_is_faster_than_the_peak_raises_it(self) -> None:
        gauge = meter(peak=5e9)
        found = gauge.snapshot(work(gauge, 0.01, 100, plan((0, 1, 0))), NOBODY)
        assert found.peak_share == 1.0
        assert found.peak == found.bytes_per_second > 5e9

    def test_a_model_in_the_cache_says_so_and_leaves_the_peak(self) -> None:
        gauge = meter(peak=5e9, cache_bytes=2 * WEIGHTS)
        found = gauge.snapshot(work(gauge, 0.01, 100, plan((0, 1, 0))), NOBODY)
        assert found.is_in_cache
        assert (found.peak, found.peak_share) == (5e9, 1.0)
        assert found.limited_by is Bottleneck.COMPUTE

    @pytest.mark.parametrize(
        ("cost", "peak", "bound"),
        [
            (FLAT, 12e9, Bottleneck.BANDWIDTH),
            (FLAT, 100e9, Bottleneck.OVERHEAD),
            (FLAT, None, Bottleneck.UNKNOWN),
            (LINEAR, 12e9, Bottleneck.COMPUTE),
            (LINEAR, None, Bottleneck.COMPUTE),
        ],
    )
    def test_what_bounds_the_step_follows_from_the_curve(
        self, cost: CostModel, peak: float | None, bound: Bottleneck
    ) -> None:
        gauge, account, shares = meter(cost, peak=peak), RequestCost(), plan(*[(0, 1, 0)] * 4)
        now = work(gauge, cost.time(4), 50, shares, n_sampled=4)
        assert gauge.snapshot(now, NOBODY).limited_by is bound
        assert gauge.limit_of(account) is Bottleneck.UNKNOWN, "nothing was decoded"
        gauge.read(shares, cost.time(4), 0.0).book(account, 1)
        assert gauge.limit_of(account) is bound

    def test_drafts_are_counted_and_compared_with_plain_decoding(self) -> None:
        cost = CostModel(Calibration({1: 25.0, 64: 26.0}))
        gauge = meter(cost)
        now = work(gauge, 0.0125, 80, plan((0, 1, 4)), n_sampled=3, n_drafted=4, n_accepted=2)
        assert gauge.snapshot(now, NOBODY).speedup is None, "no plain step was seen yet"
        gauge.snapshot(now, replace(NOBODY, is_idle=True))
        for _ in range(3):
            cost.plain.saw(1, 1, 0.010, 0.010)
        now = work(gauge, 0.0125, 80, plan((0, 1, 4)), n_sampled=3, n_drafted=4, n_accepted=2)
        found = gauge.snapshot(now, NOBODY)
        assert found.acceptance == 0.5
        assert found.speedup == pytest.approx(3 * 0.010 / 0.0125, rel=0.01)
        work(gauge, 0.2, 1, plan((0, 1, 4)), n_sampled=3, n_drafted=4, n_accepted=2)
        assert gauge.snapshot(now, NOBODY).speedup == found.speedup, "others held this step up, and not its drafts"
        gauge.snapshot(now, replace(NOBODY, is_idle=True))
        now = work(gauge, 0.2, 5, plan((0, 1, 4)), n_sampled=3, n_drafted=4, n_accepted=2)
        assert gauge.snapshot(now, NOBODY).speedup is None, "beside others nothing is known"

    def test_it_is_published_ten_times_a_second_and_once_when_idle(self) -> None:
        gauge = meter()
        assert not gauge.is_due(0.0, True)
        published = [now / 100 for now in range(100) if self._publishes(gauge, now / 100)]
        assert len(published) == pytest.approx(10, abs=1)
        assert gauge.is_due(1.0, True)
        assert gauge.snapshot(1.0, replace(NOBODY, is_idle=True)) == Snapshot(peak=PEAK, n_cells=100, cheap_rows=16)
        assert not gauge.is_due(1.5, True)

    def test_a_clock_that_jumps_back_does_not_silence_it(self) -> None:
        gauge = meter()
        gauge.snapshot(1_000.0, NOBODY)
        assert gauge.is_due(5.0, False)

    def _publishes(self, gauge: Meter, now: float) -> bool:
        is_due = gauge.is_due(now, False)
        if is_due:
            gauge.snapshot(now, NOBODY)
        return is_due

    def test_a_step_takes_the_same_few_calls_however_many_were_before(self) -> None:
        gauge, shares = meter(), plan(*[(100, 1, 2)] * 4)

        def calls(number: int) -> int:
            """Return how many Python functions the step with this number calls."""
            names: list[str] = []
            sys.setprofile(lambda frame, event, argument: names.append(frame.f_code.co_name) if event == "call" else 0)
            try:
                reading = gauge.read(shares, 0.001, 0.0)
                reading.began, reading.ended, reading.n_sampled = number * 1e-3, (number + 1) * 1e-3, 4
                gauge.record(reading)
            finally:
                sys.setprofile(None)
            return len(names)

        counts = [calls(number) for number in range(3_000)]
        # The collector may call something of others in between.
        assert sorted(counts)[len(counts) * 9 // 10] == min(counts[:10]) <= 10 + 3 * len(shares)


class TestEngine:
    """Receipts and snapshots of a real engine."""

    def test_a_receipt_says_what_each_token_read(self) -> None:
        with open_engine(speculation="off") as engine:
            _, ended, _ = complete(engine, max_tokens=30)
        weights = tensor_bytes(EMBER)
        assert weights < ended.receipt.bytes_per_token < 1.05 * weights
        assert ended.receipt.speedup == 1.0
        assert ended.receipt.plain_seconds == pytest.approx(1 / ended.receipt.decode_rate, rel=0.01)
        assert ended.receipt.peak_share is None  # Ember fits into caches, and nothing was measured
        assert ended.receipt.limited_by is Bottleneck.COMPUTE

    def test_the_end_of_a_text_is_no_token_of_its_rate(self) -> None:
        seconds = [0.0]
        ledger = Ledger()
        with open_engine(speculation="off", clock=lambda: seconds[0]) as engine:
            submit(engine, "only", chat("Count to five."), max_tokens=200)
            while not engine.is_idle:
                seconds[0] += 1.0
                ledger.add(engine.step())
        ended = ledger.ended["only"]
        assert ended.reason is FinishReason.STOP
        assert ended.receipt.decode == ended.receipt.n_generated - 1
        assert ended.receipt.decode_rate == 1.0

    def test_requests_side_by_side_share_what_is_read(self) -> None:
        with open_engine(speculation="off", n_slots=4) as engine:
            for number in range(4):
                submit(engine, str(number), max_tokens=30)
            ended = run(engine).ended
        assert all(end.receipt.bytes_per_token < 0.5 * tensor_bytes(EMBER) for end in ended.values())

    def test_accepted_drafts_lower_what_a_token_reads_of_the_model(self) -> None:
        with open_engine(draft_path=str(EMBER), speculation="draft", draft_depth=4) as engine:
            _, ended, _ = complete(engine, max_tokens=40)
            engine.meter.snapshot(0.0, NOBODY)
            found = engine.take_snapshot()
        receipt = ended.receipt
        assert receipt.n_accepted > 0.8 * receipt.n_drafted
        # Five tokens for one pass of the target, and four or five of the draft, which is as large.
        assert 1.0 < receipt.bytes_per_token / tensor_bytes(EMBER) < 1.3
        assert found is not None
        assert sum(found.drafted_at) == receipt.n_drafted
        assert sum(found.accepted_at) == receipt.n_accepted

    def test_a_snapshot_at_work_and_one_when_it_is_over(self) -> None:
        with open_engine() as engine:
            assert engine.take_snapshot() is None
            submit(engine, "only", max_tokens=20)
            engine.step()
            at_work = engine.take_snapshot()
            assert at_work is not None
            assert (at_work.is_idle, at_work.n_active) == (False, 1)
            assert 0 < at_work.n_cells_used <= at_work.n_cells
            run(engine)
            over = engine.take_snapshot()
            assert over is not None
            assert (over.is_idle, over.n_active, over.decode_rate) == (True, 0, 0.0)
            assert engine.take_snapshot() is None


def test_replayed_rows_are_a_cost_of_drafting() -> None:
    """The same step without them has one row, at the same place."""
    again: Any = Cached(90, n_pending=11, n_replay=10)
    reading = meter(LINEAR).read((Share(again, 11, (7, 7)),), decode=0.030, draft=0.0)
    assert (reading.n_rows, reading.n_prefill, reading.n_sequences) == (13, 0, 1)
    assert reading.plain == LINEAR.time(1, 101)
    assert reading.kv == attended(13, 90)


def test_a_snapshot_says_how_many_rows_are_cheap() -> None:
    gauge = meter()
    work(gauge, 0.01, 3, plan((1, 0, 100)))
    assert gauge.is_due(1.0, True), "also where all of the work was done in one go"
    assert gauge.snapshot(1.0, Snapshot()).cheap_rows == 16
