"""Plans: who gets rows in the next step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.cost.cost_model import Calibration, CostModel, attended
from core.scheduler.planner import (
    Share,
    cut_at_checkpoints,
    halve_prefill,
    leading_requests,
    plan,
    prefill_chunk,
    step_latency_target,
)
from core.values.request import Lane
from tests.support.sequences import sequence


def rows(shares: tuple[Share, ...]) -> dict[int, int]:
    return {share.sequence.order: share.n_rows for share in shares}


def test_prompts_fill_the_batch_beside_decoding_only_a_chunk() -> None:
    assert plan([], 512, 64) == ()
    running = [sequence(3, 1, 9), sequence(1, 1, 5), sequence(2, 1, 7)]
    assert [share.sequence.order for share in plan(running, 512, 64)] == [3, 1, 2]
    assert all(share.n_own_outputs for share in plan(running, 512, 64))
    assert rows(plan([sequence(1, 1000)], 512, 512)) == {1: 512}
    assert rows(plan([sequence(1, 1, 5), sequence(2, 1000)], 512, 64)) == {1: 1, 2: 64}
    shares = plan([sequence(1, 100)], 64, 64)
    assert not shares[0].n_own_outputs
    assert plan([sequence(1, 64)], 64, 64)[0].n_own_outputs


def test_a_short_prompt_overtakes_a_long_one_but_the_long_one_moves_on() -> None:
    assert rows(plan([sequence(1, 1000), sequence(2, 20)], 512, 512)) == {1: 492, 2: 20}
    decoding = sequence(0, 1, 3)
    assert rows(plan([decoding, sequence(1, 1000), sequence(2, 20), sequence(3, 500)], 512, 64)) == {
        0: 1,
        1: 16,
        2: 20,
        3: 28,
    }


def test_equal_prompts_are_read_one_after_the_other() -> None:
    assert rows(plan([sequence(order, 500) for order in range(3)], 512, 512)) == {0: 500, 1: 12}
    half_read, new = sequence(0, 500), sequence(1, 500)
    half_read.n_past = 300
    assert rows(plan([new, half_read], 512, 128)) == {0: 128}


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20), st.integers(20, 256), st.integers(1, 128))
def test_a_plan_never_exceeds_the_batch_nor_anyones_pending_tokens(
    pending: list[int], n_batch: int, chunk: int
) -> None:
    running = [sequence(order, n) for order, n in enumerate(pending)]
    shares = plan(running, n_batch, chunk)
    assert sum(share.n_rows for share in shares) <= n_batch
    assert all(1 <= share.n_rows <= share.sequence.n_pending for share in shares)
    assert len({share.sequence.order for share in shares}) == len(shares)
    assert shares, "somebody always moves on"


def test_halving_keeps_decode_rows_and_ends_without_prefill() -> None:
    shares = plan([sequence(1, 1, 4), sequence(2, 9)], 64, 64)
    seen = []
    while (halved := halve_prefill(shares)) != shares:
        seen.append(rows(shares))
        shares = halved
    assert seen == [{1: 1, 2: 9}, {1: 1, 2: 4}, {1: 1, 2: 2}, {1: 1, 2: 1}]
    assert rows(shares) == {1: 1}


def test_chunks_follow_the_machine() -> None:
    slow = CostModel(Calibration({1: 0.02, 64: 0.3, 128: 0.6}))
    fast = CostModel(Calibration({1: 0.01, 512: 0.02}))
    assert prefill_chunk(fast, 0, 0, 2048, 0.5) == 2048
    assert prefill_chunk(fast, 4, 100, 512, 0.1) == 512
    assert prefill_chunk(slow, 0, 0, 2048, 0.5) == 96  # 0.45 s; another 16 rows would take 0.525 s
    assert prefill_chunk(slow, 4, 100, 512, 0.1) == 16
    assert prefill_chunk(slow, 0, 0, 512, 0.1) == 32  # nobody waits for text, and wider steps read faster
    assert prefill_chunk(slow, 0, 0, 100, 0.48) == 100
    assert prefill_chunk(slow, 0, 0, 8, 0.5) == 8


def test_chunks_are_smaller_behind_much_text_of_their_own() -> None:
    cost = CostModel(Calibration({1: 0.01, 512: 0.09}, kv_seconds=4e-7))
    sizes = [prefill_chunk(cost, 1, 100, 512, 0.1, n_past) for n_past in (0, 2_000, 8_000, 30_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 400
    for rows, n_past in zip(sizes, (0, 2_000, 8_000, 30_000), strict=True):
        assert cost.time(1 + rows, 100 + attended(rows, n_past)) <= 0.1
        assert cost.time(1 + rows + 16, 100 + attended(rows + 16, n_past)) > 0.1


def test_steps_are_as_short_as_the_first_lane_among_those_who_decode_wants_them() -> None:
    lanes = {lane: sequence(rank, 1, 4, lane) for rank, lane in enumerate(Lane)}
    targets = [step_latency_target([lanes[lane]]) for lane in Lane]
    assert targets == sorted(targets)
    assert step_latency_target(list(lanes.values())) == targets[0] < targets[1]
    assert step_latency_target([]) > targets[-1]


def test_prompts_of_the_batch_lane_go_behind_those_of_others_but_move_on() -> None:
    running = [sequence(0, 1000, lane=Lane.BATCH), sequence(1, 600), sequence(2, 30, lane=Lane.FAST)]
    assert rows(plan(running, 512, 256)) == {2: 30, 1: 198, 0: 28}
    assert rows(plan(running[:2], 2048, 2048)) == {1: 600, 0: 1000}


def test_the_fast_lane_leads_while_it_decodes() -> None:
    fast, reading = sequence(0, 1, 9, Lane.FAST), sequence(1, 50, lane=Lane.FAST)
    others = [sequence(2, 1, 5), sequence(3, 1, 5, Lane.BATCH), sequence(4, 40, lane=Lane.BATCH)]
    assert leading_requests([*others, fast, reading]) == [fast, reading]
    running = [*others, reading]
    assert leading_requests(running) is running, "a prompt that is read keeps nobody from decoding"


def test_rows_lost_with_a_rejected_draft_are_replayed_before_the_next_one() -> None:
    replaying = sequence(1, 4, 9)
    replaying.n_replay = 3
    assert not replaying.is_prefilling
    shares = plan([replaying, sequence(2, 1, 5), sequence(3, 50)], 32, 16, {"1": (7, 8)})
    assert [(share.n_rows, share.draft) for share in shares] == [(4, (7, 8)), (1, ()), (16, ())]
    assert shares[0].n_outputs == 3
    assert halve_prefill(shares)[0] is shares[0], "decoding keeps its rows"


def test_a_prompt_is_read_up_to_its_next_stop_and_no_decoding_is_held_up() -> None:
    reading, decoding = sequence(0, 100, 20), sequence(1, 1, 20)
    for one in (reading, decoding):
        one.slot.n_resident, one.slot.stops = 20, {10, 50, 90}
    free = sequence(2, 100)
    shares = (Share(reading, 64), Share(decoding, 1, (7,) * 40), Share(free, 64))
    assert rows(cut_at_checkpoints(shares)) == {0: 30, 1: 1, 2: 64}
    assert rows(cut_at_checkpoints((Share(reading, 25),))) == {0: 25}
