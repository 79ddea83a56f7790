"""Which proposer works, for whom and how deep: decided step by step on recorded cost curves, without a model."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.simulation import (
    CURVES,
    N_PROMPT,
    ROUND,
    Drafted,
    SimulatedDraftModel,
    SimulatedEngine,
    repeated_token,
    unique_token,
)
from core.cost.cost_model import Calibration, CostModel
from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import StepCapacity
from core.speculation.draft_state import Backoff, DraftStates
from core.speculation.proposers.free_proposers import NgramProposer
from core.speculation.proposers.proposer import DraftChain, DraftFailed, Evaluated, ProposedToken
from core.speculation.speculator import StepTimes
from core.values.request import Lane

GPU, CPU, SLOW, DEAR_ROW = CURVES.values()


def always(request_id: str, position: int) -> bool:
    return True


def never(request_id: str, position: int) -> bool:
    return False


def workers(stage: SimulatedEngine, n_steps: int, *knowers: SimulatedDraftModel) -> Counter[str]:
    """Return in how many of the next steps each of ``knowers`` drafted, and in how many something was looked up."""
    found: Counter[str] = Counter()
    for _ in range(n_steps):
        before = [knower.n_asked for knower in knowers]
        (step,) = stage.run(1)
        asked = [knower.name for knower, n_asked in zip(knowers, before, strict=True) if knower.n_asked > n_asked]
        found.update(asked or (["lookup"] if step else []))
    return found


@pytest.mark.parametrize("curve", [GPU, CPU])
@pytest.mark.parametrize("order", [1, -1])
def test_of_two_proposers_the_one_that_pays_works_and_they_may_change_places(curve: Calibration, order: int) -> None:
    good, bad = SimulatedDraftModel("good", always), SimulatedDraftModel("bad", never)
    stage = SimulatedEngine(curve, *(good, bad)[::order])
    stage.run(60)
    assert workers(stage, 40, good, bad)["good"] >= 38
    good.is_right, bad.is_right = never, always
    stage.run(300)
    found = workers(stage, 40, good, bad)
    assert found["bad"] >= 36
    assert found["good"] <= 2


def test_what_is_looked_up_is_taken_for_nothing_where_a_draft_model_promises_no_more() -> None:
    often_wrong = SimulatedDraftModel("draft", lambda _, position: position % 3 > 0)
    stage = SimulatedEngine(CPU, often_wrong, ngram=NgramProposer(), says=repeated_token)
    stage.run(20)
    assert set(workers(stage, 40, often_wrong)) == {"lookup"}


def test_a_draft_model_that_knows_more_takes_the_place_of_what_is_looked_up() -> None:
    """The same words come again, but what follows them is another word each time."""

    def says(position: int) -> int:
        return position % 10 if position % 10 < 4 else position

    class Reader(SimulatedDraftModel):
        def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
            self.clock.now += ROUND
            self.n_asked += len(chains)
            return [ProposedToken(says(chain.position), 0) for chain in chains]

    reader = Reader("draft", always)
    stage = SimulatedEngine(GPU, reader, ngram=NgramProposer(), says=says)
    stage.run(40)
    assert workers(stage, 40, reader)["draft"] >= 36


def in_runs(request_id: str, position: int) -> bool:
    """Right seven times, and wrong three times."""
    return position % 10 < 7


def test_a_draft_model_that_knows_when_it_is_right_is_asked_though_few_of_its_tokens_would_pay() -> None:
    stage = SimulatedEngine(DEAR_ROW, SimulatedDraftModel("draft", in_runs, knows_itself=True))
    stage.run(300)
    assert stage.speedup > 1.25


def test_one_that_does_not_know_it_costs_little_there() -> None:
    chance = random.Random(1)
    stage = SimulatedEngine(DEAR_ROW, SimulatedDraftModel("draft", lambda *_: chance.random() < 0.7))
    stage.run(300)
    assert stage.speedup > 0.98


def test_of_what_is_looked_up_and_what_is_drafted_the_better_is_taken_when_both_are_known() -> None:
    """Runs of ten tokens that were there before and runs of new ones, of which the draft model knows seven."""

    def says(position: int) -> int:
        return repeated_token(position) if position // 10 % 2 else 100 + position

    class Reader(SimulatedDraftModel):
        def says(self, position: int) -> int:
            return says(position)

    def knows(request_id: str, position: int) -> bool:
        return not position // 10 % 2 and in_runs(request_id, position)

    def speedup(*paid: SimulatedDraftModel, ngram: NgramProposer | None = None) -> float:
        stage = SimulatedEngine(SLOW, *paid, ngram=ngram, says=says)
        stage.run(300)
        return stage.speedup

    looked_up = speedup(ngram=NgramProposer())
    drafted = speedup(Reader("draft", knows, knows_itself=True))
    both = speedup(Reader("draft", knows, knows_itself=True), ngram=NgramProposer())
    assert both > 1.2 * max(looked_up, drafted)


def test_what_a_draft_model_reads_for_a_whole_reply_is_not_charged_to_its_first_draft() -> None:
    """It reads a long prompt, is wrong once, and right from then on: after one wrong token it is not given up."""
    reading = 8 * SLOW.seconds[1]

    class Reader(SimulatedDraftModel):
        has_read = False

        def catch_up(self, sequence: Sequence, seconds: float) -> bool:
            self.clock.now += 0.0 if self.has_read else reading
            self.has_read = True
            return True

    reader = Reader("draft", lambda _, position: position > N_PROMPT)
    stage = SimulatedEngine(SLOW, reader)
    stage.run(1)
    assert reader.has_read
    assert stage.speculator.budget.balance("draft") > -reading / 2
    assert workers(stage, 20, reader)["draft"] >= 18


def test_depth_is_given_to_the_request_where_it_pays() -> None:
    stage = SimulatedEngine(CPU, SimulatedDraftModel("draft", lambda request_id, _: request_id == "0"), n_requests=2)
    stage.run(60)
    steps = stage.run(40)
    lengths = {name: sum(len(step[name]) for step in steps if name in step) for name in ("0", "1")}
    assert lengths["0"] >= 3 * len(steps)
    assert lengths["1"] <= 2


def test_a_round_that_pays_only_because_texts_share_it_is_made_in_each_step() -> None:
    stage = SimulatedEngine(GPU, SimulatedDraftModel("draft", always), n_requests=3)
    stage.run(2)
    sizes = [sorted(len(tokens) for tokens in step.values()) for step in stage.run(30)]
    assert sizes == [[8, 8, 8]] * 30


@pytest.mark.parametrize("curve", [GPU, CPU])
def test_without_a_proposer_that_is_ever_right_nothing_is_drafted_and_little_is_lost(curve: Calibration) -> None:
    useless = SimulatedDraftModel("draft", never)
    stage = SimulatedEngine(curve, useless)
    stage.run(300)
    before, tokens = stage.seconds, len(stage.sequences[0].tokens)
    steps = stage.run(1000)
    n_new = len(stage.sequences[0].tokens) - tokens
    plain = n_new * stage.cost.time(1)
    assert sum(map(bool, steps)) <= 40
    assert stage.seconds - before <= 1.02 * plain


def test_one_that_stopped_drafting_is_tried_again_more_and_more_seldom_and_drafts_when_it_pays() -> None:
    knower = SimulatedDraftModel("draft", never)
    stage = SimulatedEngine(CPU, knower)
    stage.run(150)
    early = knower.n_probes
    stage.run(600)
    assert 1 <= knower.n_probes - early <= 8, "now and then"
    knower.is_right = always
    stage.run(300)
    steps = stage.run(40)
    assert sum(map(bool, steps)) >= 36


def test_lookups_stake_more_the_more_they_have_won() -> None:
    """However sure one seems, it may be wrong: what that costs must be small beside what was won."""
    stage = SimulatedEngine(CPU, ngram=NgramProposer(), says=repeated_token)
    lengths = [len(step["0"]) for step in stage.run(20) if step]
    assert CostModel(CPU).time(1 + lengths[0]) <= 2.5 * CostModel(CPU).time(1)
    assert max(lengths) >= 8


def test_a_text_begins_with_short_lookups_and_has_longer_ones_while_they_are_right() -> None:
    stage = SimulatedEngine(GPU, ngram=NgramProposer(), says=repeated_token)
    stage.run(60)
    stage.begin()
    lengths = [len(step["0"]) for step in stage.run(20) if step]
    assert (lengths[0], lengths[1]) == (8, 16)


def test_a_proposer_that_was_right_is_not_probed_all_the_time_while_lookups_bring_more() -> None:
    def mostly_repeated(position: int) -> int:
        return repeated_token(position) if position % 48 < 40 else unique_token(position)

    knower = SimulatedDraftModel("draft", always)
    knower.says = mostly_repeated  # type: ignore[method-assign]
    stage = SimulatedEngine(CPU, knower, ngram=NgramProposer(), says=mostly_repeated)
    stage.run(200)
    early = knower.n_probes
    stage.run(300)
    assert knower.n_probes - early <= 15


def test_gains_do_not_pay_for_reading_a_long_text_in_which_lookups_do_the_work() -> None:
    knower = SimulatedDraftModel("draft", always)
    knower.says = repeated_token  # type: ignore[method-assign]
    knower.catch_up_seconds = lambda n_behind: 6 * SLOW.seconds[1]  # type: ignore[method-assign]
    stage = SimulatedEngine(SLOW, knower, ngram=NgramProposer(), says=repeated_token)
    stage.speculator.budget.book("draft", 20 * SLOW.seconds[1])
    stage.run(40)
    assert knower.n_probes == 0


def test_a_draft_that_was_wrong_does_not_bring_the_next_probe_nearer() -> None:
    chance = random.Random(1)
    guesser = SimulatedDraftModel("draft", lambda *_: chance.random() < 0.6)
    stage = SimulatedEngine(CPU, guesser)
    for _ in range(100):
        stage.run(60)
        stage.begin()
    assert 8 <= guesser.n_probes <= 90


def test_nobody_is_drafted_for_in_vain_where_all_must_bring_equally_many_rows() -> None:
    knower = SimulatedDraftModel("draft", lambda request_id, position: request_id == "0" and position % 2 == 0)
    stage = SimulatedEngine(CPU, knower, n_requests=2)
    stage.run(40, is_even=True)
    before = knower.n_asked
    assert sum(map(bool, stage.run(200, is_even=True))) <= 4
    assert knower.n_asked - before <= 8
    knower.is_right = always
    stage.run(300, is_even=True)
    sizes = [{len(tokens) for tokens in step.values()} for step in stage.run(20, is_even=True) if step]
    assert len(sizes) >= 18
    assert all(len(size) == 1 for size in sizes)


def test_what_drafts_win_for_one_text_does_not_pay_for_what_they_lose_for_several() -> None:
    chance = random.Random(1)
    knower = SimulatedDraftModel("draft", always)
    stage = SimulatedEngine(GPU, knower)
    stage.run(400)
    assert stage.speedup > 2
    stage.surcharge = 3.0
    knower.is_right = lambda *_: chance.random() < 0.7
    plain = 0.0
    stage.seconds = 0.0
    for _ in range(12):
        stage.begin(4)
        stage.n_sampled = 0
        stage.run(64, is_even=True)
        plain += stage.cost.time(4) * stage.n_sampled / 4
    assert plain / stage.seconds > 0.95


def test_all_are_drafted_for_where_the_step_has_no_room_to_draft_much_for_each() -> None:
    stage = SimulatedEngine(GPU, SimulatedDraftModel("draft", always), n_requests=4)
    stage.run(100, room=24, is_even=True)
    assert stage.speedup > 2.5


class Considered(SimulatedDraftModel):
    """Remembers whether it was thought about."""

    is_considered = False

    def round_seconds(self, n_chains: int) -> float:
        self.is_considered = True
        return super().round_seconds(n_chains)

    def take_considered(self) -> bool:
        taken, self.is_considered = self.is_considered, False
        return taken


@pytest.mark.parametrize(("curve", "pays"), [(DEAR_ROW, True), (SLOW, False)])
def test_texts_that_draft_alike_are_decided_on_together(curve: Calibration, pays: bool) -> None:
    """One text of four promises nothing: where rows are cheap, the others pay for its; where not, all rest."""
    chance = random.Random(1)
    proposer = Considered("draft", lambda request_id, _: chance.random() < (0.1 if request_id == "3" else 0.9))
    stage = SimulatedEngine(curve, proposer, n_requests=4)
    stage.run(200, is_even=True)
    n_in_vain = 0
    for _ in range(300):
        proposer.take_considered()
        has_drafted = any(stage.run(1, is_even=True))
        n_in_vain += proposer.take_considered() and not has_drafted
    assert n_in_vain <= 60
    assert stage.speedup > (1.1 if pays else 0.99)


def test_after_hopeless_texts_a_proposer_is_considered_in_the_first_step_and_seldom_from_then_on() -> None:
    useless = Considered("draft", never)
    stage = SimulatedEngine(CPU, useless)
    stage.run(300)
    stage.begin()
    useless.take_considered()
    considered = [useless.take_considered() for _ in range(64) if not any(stage.run(1))]
    assert considered[:8] == [True] + 7 * [False]
    assert 4 <= sum(considered) <= 12
    useless.is_right = always
    for _ in range(3):
        stage.run(300)
        stage.begin()
    steps = stage.run(20)
    assert sum(map(bool, steps)) >= len(steps) - 2, "it does not rest where it has paid lately, but for a plain step"


def test_steps_of_a_rest_count_as_decoding_time() -> None:
    stage = SimulatedEngine(CPU, SimulatedDraftModel("draft", never))
    stage.run(300)
    budget = stage.speculator.budget
    before, seconds = budget.available("draft"), stage.seconds
    drafted = stage.run(100)
    stage.begin()
    assert not any(drafted)
    faded = 0.9 * before
    assert budget.available("draft") - faded == pytest.approx(0.01 * (stage.seconds - seconds), rel=0.3)


@pytest.mark.parametrize("is_resting", [True, False])
def test_a_machine_that_stood_still_forgives_no_loss(is_resting: bool) -> None:
    stage = SimulatedEngine(CPU, SimulatedDraftModel("draft", never))
    stage.run(300)
    budget = stage.speculator.budget
    budget.book("draft", -1.0)
    while stage.speculator.rest(stage.sequences) != is_resting:
        stage.run(1)
    (sequence,) = stage.sequences
    if not is_resting:
        stage.speculator.propose([sequence], StepCapacity(1, 64, 24))
    if not stage.speculator.learn_rest(60.0):
        one = Evaluated(sequence, len(sequence.tokens) - 1, 1, (), [7], 0)
        stage.speculator.learn([one], StepTimes(1, 0.01, 60.0))
    stage.run(20)
    assert budget.balance("draft") < -0.5


def test_a_rest_begins_with_the_step_after_a_decision_that_nothing_pays() -> None:
    useless = Considered("draft", never)
    stage = SimulatedEngine(CPU, useless)
    stage.run(300)
    useless.take_considered()
    while not useless.take_considered():
        assert not any(stage.run(1))
    assert stage.speculator.rest(stage.sequences)


@pytest.mark.parametrize(
    ("waits", "n_steps", "left"),
    [
        ((20, 28), 27, (1, 1)),  # the first one waits for the second
        ((20, 35), 19, (1, 16)),  # that would be too long
        ((0, 5), 0, (0, 5)),  # one is due in the next step
    ],
)
def test_waits_that_end_soon_after_each_other_end_together(
    waits: tuple[int, int], n_steps: int, left: tuple[int, int]
) -> None:
    """Each end of a rest costs more than the thought: the step after it finds other things in the caches."""
    draft, ngram = SimulatedDraftModel("draft", never), NgramProposer()
    (sequence,) = SimulatedEngine(CPU, draft).sequences
    states = DraftStates((ngram, draft), (draft,), 0.01, has_ngrams=True)
    states.admit(sequence)
    state = states.by_id[sequence.id]
    state.ngram_backoff, state.paid_backoff = (Backoff(n_left, 20) for n_left in waits)
    assert states.skip_steps([sequence]) == n_steps
    assert (state.ngram_backoff.n_left, state.paid_backoff.n_left) == left


def test_a_rest_ends_also_where_one_of_its_texts_has_gone() -> None:
    useless = Considered("draft", never)
    stage = SimulatedEngine(CPU, useless, n_requests=2)
    stage.run(300)
    while not stage.speculator.rest(stage.sequences):
        stage.run(1)
    useless.take_considered()
    stage.speculator.forget(stage.sequences.pop())
    stage.run(200)
    assert useless.take_considered()


def test_after_a_step_of_the_rest_that_failed_the_next_one_is_learnt_from() -> None:
    stage = SimulatedEngine(CPU, SimulatedDraftModel("draft", never))
    stage.run(300)
    speculator, (sequence,) = stage.speculator, stage.sequences
    while not speculator.rest([sequence]):
        stage.run(1)
    assert not speculator.rest([sequence, sequence]), "another text has come"
    assert not speculator.learn_rest(0.01)


def test_thinking_that_comes_to_nothing_takes_a_small_share_of_the_time() -> None:
    """As where a step takes no longer than to decide what to draft in it."""

    class Thinker(SimulatedDraftModel):
        def round_seconds(self, n_chains: int) -> float:
            self.clock.now += 0.004
            return super().round_seconds(n_chains)

    stage = SimulatedEngine(CPU, Thinker("draft", never))
    stage.run(300)
    before, n_before = stage.seconds, stage.n_sampled
    stage.run(1000)
    assert stage.seconds - before <= 1.02 * (stage.n_sampled - n_before) * CostModel(CPU).time(1)


class SlowRounds(SimulatedDraftModel):
    """Our own code takes ``beyond`` seconds around each of its rounds."""

    beyond = 0.0

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        self.clock.now += self.beyond
        return super().extend(chains)


@pytest.mark.parametrize("part", ["rounds", "commits"])
def test_own_code_that_costs_more_than_drafts_bring_keeps_them_off_until_it_is_fast_again(part: str) -> None:
    """As in steps that take no longer than our own code."""
    step = CostModel(CPU).time(1)
    proposer = SlowRounds("draft", always)
    stage = SimulatedEngine(CPU, proposer)
    assert n_drafted_in(stage.run(40, room=1)) >= 20
    if part == "rounds":
        proposer.beyond = step
    else:
        stage.commit_seconds = step
    stage.run(300, room=1)
    before, n_before = stage.seconds, stage.n_sampled
    stage.run(500, room=1)
    assert stage.seconds - before <= 1.03 * (stage.n_sampled - n_before) * step
    proposer.beyond = stage.commit_seconds = 0.0
    stage.run(3000, room=1)
    assert n_drafted_in(stage.run(40, room=1)) >= 20


def n_drafted_in(steps: list[Drafted]) -> int:
    return sum(map(bool, steps))


def test_where_not_all_texts_have_a_draft_nobody_is_considered_in_each_step() -> None:
    """Texts that must bring equally many rows draft together or not at all."""
    knows_some = Considered("draft", lambda request_id, _: request_id != "2")
    stage = SimulatedEngine(CPU, knows_some, n_requests=3)
    stage.run(300, is_even=True)
    knows_some.take_considered()
    considered = [knows_some.take_considered() for _ in range(100) if not any(stage.run(1, is_even=True))]
    assert sum(considered) <= 30


class Broken(SimulatedDraftModel):
    """Fails for some requests, after it has worked for as long as a step takes."""

    def __init__(self, *request_ids: str) -> None:
        super().__init__("draft", always)
        self.fails_for = request_ids
        self.failed_at: list[float] = []

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        self._fail([chain.sequence for chain in chains])
        return super().extend(chains)

    def read_along(self, sequence: Sequence) -> None:
        self._fail([sequence])
        super().read_along(sequence)

    def _fail(self, sequences: list[Sequence]) -> None:
        failed = [sequence for sequence in sequences if sequence.id in self.fails_for]
        if failed:
            self.failed_at.append(self.clock.now)
            self.clock.now += WASTED
            raise DraftFailed(failed)


WASTED = 0.010


@pytest.mark.parametrize("curve", [GPU, CPU])
def test_one_that_always_fails_is_asked_ever_less_often_and_pays_for_it(curve: Calibration) -> None:
    broken = Broken("0")
    stage = SimulatedEngine(curve, broken)
    n_steps = 0
    while not broken.failed_at:
        assert not any(stage.run(1))
        n_steps += 1
        assert n_steps < 100
    assert stage.speculator.budget.balance("draft") == pytest.approx(-WASTED, rel=0.01)
    n_failed = []
    for _ in range(4):
        stage.run(250)
        n_failed.append(len(broken.failed_at))
    assert n_failed[0] <= 5
    assert n_failed[-1] <= n_failed[0] + 3
    assert stage.seconds <= 1.02 * stage.n_sampled * CostModel(curve).time(1)


def test_a_request_for_which_drafting_fails_leaves_the_drafts_of_others() -> None:
    broken = Broken("0")
    steps = SimulatedEngine(GPU, broken, n_requests=2).run(60)
    assert broken.failed_at
    assert {name for step in steps for name in step} == {"1"}
    assert sum(map(bool, steps)) >= 58, "also in the steps in which it failed"


def test_a_try_that_fails_is_paid_for_and_is_not_made_again_soon() -> None:
    broken = Broken("0")
    broken.is_right = never
    stage = SimulatedEngine(CPU, broken)
    broken.fails_for = ()
    stage.run(150)
    broken.fails_for = ("0",)
    before, n_before = stage.seconds, stage.n_sampled
    stage.run(2000)
    assert 1 <= len(broken.failed_at) <= 6
    assert stage.seconds - before <= 1.02 * (stage.n_sampled - n_before) * CostModel(CPU).time(1)


def test_drafts_for_one_make_another_wait_no_longer_than_its_lane_allows() -> None:
    only_first = SimulatedDraftModel("draft", lambda request_id, _: request_id == "0")
    alone = SimulatedEngine(SLOW, SimulatedDraftModel("draft", always)).run(60)[20:]
    n_drafted = [len(step["0"]) for step in alone if step]
    assert len(n_drafted) >= len(alone) - 2, "but for a plain step now and then"
    assert min(n_drafted) >= 6, "alone it may wait for many tokens at once"
    stage = SimulatedEngine(SLOW, only_first, n_requests=2)
    stage.run(60)
    only_first.n_asked = 0
    steps = stage.run(40)
    n_rows = [2 + sum(len(tokens) for tokens in step.values()) for step in steps]
    assert max(CostModel(SLOW).time(rows) for rows in n_rows) + ROUND <= token_latency_target(Lane.STANDARD)
    assert sum(n_rows) > 2.8 * len(steps), "as far as that it is drafted for"
    assert only_first.n_asked <= 1.3 * sum(n - 2 for n in n_rows), "and next to nothing in vain"


def test_a_draft_must_be_worth_the_time_of_those_whose_prompts_are_read_meanwhile() -> None:
    stage = SimulatedEngine(CPU, SimulatedDraftModel("draft", always))
    stage.run(60)
    alone, beside = n_drafted_in(stage.run(40)), n_drafted_in(stage.run(40, n_reading=7))
    assert alone >= 36, "but for a plain step now and then"
    assert beside <= 4, "a row costs eight texts more than a token"
    stage.run(20)
    assert n_drafted_in(stage.run(40)) >= 36


@pytest.mark.parametrize("curve", [GPU, CPU])
@pytest.mark.parametrize("n_requests", [1, 4])
@pytest.mark.parametrize("surcharge", [2.0, 8.0])
def test_however_wrong_the_curve_is_drafting_loses_little(
    curve: Calibration, n_requests: int, surcharge: float
) -> None:
    """As where rows of one text take longer than rows of several, which the cost model does not tell apart."""
    often = SimulatedDraftModel("draft", lambda _, position: position % 4 > 0)
    stage = SimulatedEngine(curve, often, n_requests=n_requests, surcharge=surcharge)
    stage.run(1500, room=16)
    plain = CostModel(curve).time(n_requests) * stage.n_sampled / n_requests
    assert stage.seconds <= 1.06 * plain
