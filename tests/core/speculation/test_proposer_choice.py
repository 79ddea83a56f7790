"""Which proposer works, for whom and how deep: decided step by step on recorded cost curves, without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from core.cost.cost_model import Calibration, CostModel
from core.kv_cache.context_shape import MAX_READ_ALONG
from core.scheduler.input_processor import PreparedRequest
from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import AcceptanceTable
from core.speculation.policy.speculator import Speculator, StepTimes
from core.speculation.policy.step_cost import StepCapacity
from core.speculation.proposer import AcceptanceSample, DraftChain, DraftFailed, Evaluated, ProposedToken
from core.speculation.proposers.ngram import NgramProposer
from core.values.request import Lane, Request
from tests.support.proposers import RandomProposer

GPU = Calibration({1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130})
# Of a large model.
SLOW = Calibration({1: 0.060, 2: 0.075, 4: 0.105, 16: 0.285})
CPU = Calibration({1: 0.0105, 2: 0.0159, 3: 0.019, 4: 0.022, 8: 0.036, 16: 0.068})
ROUND = 0.001
N_PROMPT, WRONG, N_CTX = 20, 4095, 20_000

IsRight = Callable[[str, int], bool]
# What was drafted in a step, by request.
Drafted = dict[str, tuple[int, ...]]


class Clock:
    """Stands still but for what proposers take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Knower(RandomProposer):
    """A draft model that knows the text, where ``is_right`` says so of a request and a position."""

    def __init__(self, name: str, is_right: IsRight) -> None:
        super().__init__(4096)
        self.name = name
        self.is_right = is_right
        self.table = AcceptanceTable((0.7,))
        self.clock = Clock()
        self.n_probes = self.n_asked = 0
        self._seen: list[AcceptanceSample] = []

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        self.clock.now += ROUND
        self.n_asked += len(chains)
        return [
            ProposedToken(said(chain.position) if self.is_right(chain.sequence.id, chain.position) else WRONG, 0)
            for chain in chains
        ]

    def round_seconds(self, n_chains: int) -> float:
        return ROUND

    def catch_up_seconds(self, n_behind: int) -> float:
        return ROUND

    def read_along(self, sequence: Sequence) -> None:
        self.clock.now += ROUND
        self.n_probes += 1
        end = len(sequence.tokens)
        latest = range(max(end - MAX_READ_ALONG, N_PROMPT), end)
        self._seen += [AcceptanceSample(sequence.id, 0, self.is_right(sequence.id, place)) for place in latest]

    def take_samples(self) -> list[AcceptanceSample]:
        taken, self._seen = self._seen, []
        return taken


def said(position: int) -> int:
    """What the target says at a position: never the same twice, so that nothing can be looked up."""
    return position % 4000


class Stage:
    """Requests that decode on a machine whose steps take what the curve says."""

    def __init__(
        self,
        curve: Calibration,
        *paid: Knower,
        n_requests: int = 1,
        ngram: NgramProposer | None = None,
        says: Callable[[int], int] = said,
        surcharge: float = 1.0,
    ) -> None:
        """Steps with drafts take ``surcharge`` times what the curve says of their rows."""
        clock = Clock()
        for proposer in paid:
            proposer.clock = clock
        self.clock = clock
        self.seconds = 0.0
        self._cost = CostModel(curve)
        self._says = says
        self._surcharge = surcharge
        self.n_sampled = 0
        self._speculator = Speculator(self._cost, n_ctx=N_CTX, ngram=ngram, paid=cast("Any", paid), clock=clock)
        self._requests: list[Sequence] = []
        self.begin(n_requests)

    def begin(self, n_requests: int = 1) -> None:
        """End what decodes, and let so many new texts decode instead."""
        for sequence in self._requests:
            self._speculator.forget(sequence)
        sampler = cast("Any", SimpleNamespace(seed=1, grammar=None))
        prompt = np.array([self._says(place) for place in range(N_PROMPT)], np.int32)
        prepared = [PreparedRequest(Request(str(index), "x"), prompt, sampler) for index in range(n_requests)]
        self._requests = [Sequence(one, order=index, submitted_at=0.0) for index, one in enumerate(prepared)]

    def run(self, n_steps: int, room: int = 24) -> list[Drafted]:
        """Return what was drafted in each of so many steps, by request."""
        return [self._step(room) for _ in range(n_steps)]

    def _step(self, room: int) -> Drafted:
        n, kv = len(self._requests), sum(len(sequence.tokens) for sequence in self._requests)
        before = self.clock.now
        drafted = self._speculator.propose(list(self._requests), StepCapacity(n, kv, room))
        n_drafted = sum(len(tokens) for tokens in drafted.values())
        assert n_drafted <= room
        seconds = self._cost.time(n + n_drafted, kv)
        if drafted:
            seconds *= self._surcharge
        evaluated = [self._verify(sequence, drafted.get(sequence.id, ())) for sequence in self._requests]
        self._speculator.learn(evaluated, StepTimes(n, self._cost.time(n, kv), seconds))
        self.seconds += seconds + self.clock.now - before
        return drafted

    def _verify(self, sequence: Sequence, draft: tuple[int, ...]) -> Evaluated:
        start = len(sequence.tokens)
        choices = [self._says(start)]
        for token in draft:
            if token != choices[-1]:
                break
            choices.append(self._says(start + len(choices)))
        for token in choices:
            sequence.tokens.append(token)
        sequence.n_generated += len(choices)
        self.n_sampled += len(choices)
        return Evaluated(sequence, start - 1, 1, draft, choices, len(choices) - 1)


def always(request_id: str, position: int) -> bool:
    return True


def never(request_id: str, position: int) -> bool:
    return False


def workers(stage: Stage, n_steps: int, *knowers: Knower) -> Counter[str]:
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
    good, bad = Knower("good", always), Knower("bad", never)
    stage = Stage(curve, *(good, bad)[::order])
    stage.run(60)
    assert workers(stage, 40, good, bad)["good"] >= 38
    good.is_right, bad.is_right = never, always
    stage.run(300)
    found = workers(stage, 40, good, bad)
    assert found["bad"] >= 36
    assert found["good"] <= 2


def test_what_is_looked_up_is_taken_for_nothing_where_a_draft_model_promises_no_more() -> None:
    often_wrong = Knower("draft", lambda _, position: position % 3 > 0)
    stage = Stage(CPU, often_wrong, ngram=NgramProposer(), says=lambda position: position % 10)
    stage.run(20)
    assert set(workers(stage, 40, often_wrong)) == {"lookup"}


def test_a_draft_model_that_knows_more_takes_the_place_of_what_is_looked_up() -> None:
    """The same words come again, but what follows them is another word each time."""

    def says(position: int) -> int:
        return position % 10 if position % 10 < 4 else position

    class Reader(Knower):
        def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
            self.clock.now += ROUND
            self.n_asked += len(chains)
            return [ProposedToken(says(chain.position), 0) for chain in chains]

    reader = Reader("draft", always)
    stage = Stage(GPU, reader, ngram=NgramProposer(), says=says)
    stage.run(40)
    assert workers(stage, 40, reader)["draft"] >= 36


def test_depth_is_given_to_the_request_where_it_pays() -> None:
    stage = Stage(CPU, Knower("draft", lambda request_id, _: request_id == "0"), n_requests=2)
    stage.run(60)
    steps = stage.run(40)
    lengths = {name: sum(len(step[name]) for step in steps if name in step) for name in ("0", "1")}
    assert lengths["0"] >= 3 * len(steps)
    assert lengths["1"] <= 2


def test_a_round_that_pays_only_because_texts_share_it_is_made_in_each_step() -> None:
    stage = Stage(GPU, Knower("draft", always), n_requests=3)
    stage.run(2)
    sizes = [sorted(len(tokens) for tokens in step.values()) for step in stage.run(30)]
    assert sizes == [[8, 8, 8]] * 30


def test_where_room_is_short_all_share_it() -> None:
    stage = Stage(GPU, Knower("draft", always), n_requests=3)
    stage.run(20)
    sizes = [sorted(len(tokens) for tokens in step.values()) for step in stage.run(20, room=6)]
    assert sizes == [[2, 2, 2]] * 20


@pytest.mark.parametrize("curve", [GPU, CPU])
def test_without_a_proposer_that_is_ever_right_nothing_is_drafted_and_little_is_lost(curve: Calibration) -> None:
    useless = Knower("draft", never)
    stage = Stage(curve, useless)
    stage.run(300)
    before, tokens = stage.seconds, len(stage._requests[0].tokens)
    steps = stage.run(1000)
    n_new = len(stage._requests[0].tokens) - tokens
    plain = n_new * stage._cost.time(1)
    assert sum(map(bool, steps)) <= 40
    assert stage.seconds - before <= 1.02 * plain


def test_one_that_stopped_drafting_is_tried_again_more_and_more_seldom_and_drafts_when_it_pays() -> None:
    knower = Knower("draft", never)
    stage = Stage(CPU, knower)
    stage.run(150)
    early = knower.n_probes
    stage.run(600)
    assert 1 <= knower.n_probes - early <= 8, "now and then"
    knower.is_right = always
    stage.run(300)
    steps = stage.run(40)
    assert sum(map(bool, steps)) >= 36


def test_a_lookup_stakes_more_the_more_it_has_won_of_a_text() -> None:
    """However sure it seems, it may be wrong in this text: what that costs must be small beside what the text takes."""
    stage = Stage(CPU, ngram=NgramProposer(), says=lambda position: position % 10)
    for _ in range(10):
        stage.run(30)
        stage.begin()
    lengths = [len(step["0"]) for step in stage.run(20) if step]
    assert CostModel(CPU).time(1 + lengths[0]) <= 2.5 * CostModel(CPU).time(1)
    assert max(lengths) >= 8


class Considered(Knower):
    """Remembers whether it was thought about."""

    is_considered = False

    def round_seconds(self, n_chains: int) -> float:
        self.is_considered = True
        return super().round_seconds(n_chains)

    def take_considered(self) -> bool:
        taken, self.is_considered = self.is_considered, False
        return taken


def test_after_hopeless_texts_a_proposer_is_considered_in_the_first_step_and_seldom_from_then_on() -> None:
    useless = Considered("draft", never)
    stage = Stage(CPU, useless)
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


def test_thinking_that_comes_to_nothing_takes_a_small_share_of_the_time() -> None:
    """As where a step takes no longer than to decide what to draft in it."""

    class Thinker(Knower):
        def round_seconds(self, n_chains: int) -> float:
            self.clock.now += 0.004
            return super().round_seconds(n_chains)

    stage = Stage(CPU, Thinker("draft", never))
    stage.run(300)
    before, n_before = stage.seconds, stage.n_sampled
    stage.run(1000)
    assert stage.seconds - before <= 1.02 * (stage.n_sampled - n_before) * CostModel(CPU).time(1)


class Broken(Knower):
    """Fails for some requests, after it has worked for as long as a step takes."""

    def __init__(self, *request_ids: str) -> None:
        super().__init__("draft", always)
        self._fails_for = request_ids
        self.failed_at: list[float] = []

    def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
        self._fail([chain.sequence for chain in chains])
        return super().extend(chains)

    def read_along(self, sequence: Sequence) -> None:
        self._fail([sequence])
        super().read_along(sequence)

    def _fail(self, sequences: list[Sequence]) -> None:
        failed = [sequence for sequence in sequences if sequence.id in self._fails_for]
        if failed:
            self.failed_at.append(self.clock.now)
            self.clock.now += WASTED
            raise DraftFailed(failed)


WASTED = 0.010


@pytest.mark.parametrize("curve", [GPU, CPU])
def test_one_that_always_fails_is_asked_ever_less_often_and_pays_for_it(curve: Calibration) -> None:
    broken = Broken("0")
    stage = Stage(curve, broken)
    n_steps = 0
    while not broken.failed_at:
        assert not any(stage.run(1))
        n_steps += 1
        assert n_steps < 100
    assert stage._speculator.budget.balance("draft") == pytest.approx(-WASTED, rel=0.01)
    n_failed = []
    for _ in range(4):
        stage.run(250)
        n_failed.append(len(broken.failed_at))
    assert n_failed[0] <= 5
    assert n_failed[-1] <= n_failed[0] + 3
    assert stage.seconds <= 1.02 * stage.n_sampled * CostModel(curve).time(1)


def test_a_request_for_which_drafting_fails_leaves_the_drafts_of_others() -> None:
    broken = Broken("0")
    steps = Stage(GPU, broken, n_requests=2).run(60)
    assert broken.failed_at
    assert {name for step in steps for name in step} == {"1"}
    assert sum(map(bool, steps)) >= 58, "also in the steps in which it failed"


def test_a_try_that_fails_is_paid_for_and_is_not_made_again_soon() -> None:
    broken = Broken("0")
    broken.is_right = never
    stage = Stage(CPU, broken)
    broken._fails_for = ()
    stage.run(150)
    broken._fails_for = ("0",)
    before, n_before = stage.seconds, stage.n_sampled
    stage.run(2000)
    assert 1 <= len(broken.failed_at) <= 6
    assert stage.seconds - before <= 1.02 * (stage.n_sampled - n_before) * CostModel(CPU).time(1)


def test_drafts_for_one_make_another_wait_no_longer_than_its_lane_allows() -> None:
    only_first = Knower("draft", lambda request_id, _: request_id == "0")
    alone = Stage(SLOW, Knower("draft", always)).run(60)[20:]
    n_drafted = [len(step["0"]) for step in alone if step]
    assert len(n_drafted) >= len(alone) - 2, "but for a plain step now and then"
    assert min(n_drafted) >= 6, "alone it may wait for many tokens at once"
    stage = Stage(SLOW, only_first, n_requests=2)
    stage.run(60)
    only_first.n_asked = 0
    steps = stage.run(40)
    n_rows = [2 + sum(len(tokens) for tokens in step.values()) for step in steps]
    assert max(CostModel(SLOW).time(rows) for rows in n_rows) + ROUND <= token_latency_target(Lane.STANDARD)
    assert sum(n_rows) > 2.8 * len(steps), "as far as that it is drafted for"
    assert only_first.n_asked <= 1.3 * sum(n - 2 for n in n_rows), "and next to nothing in vain"


@pytest.mark.parametrize("curve", [GPU, CPU])
@pytest.mark.parametrize("n_requests", [1, 4])
@pytest.mark.parametrize("surcharge", [2.0, 8.0])
def test_however_wrong_the_curve_is_drafting_loses_little(
    curve: Calibration, n_requests: int, surcharge: float
) -> None:
    """As where rows of one text take longer than rows of several, which the cost model does not tell apart."""
    often = Knower("draft", lambda _, position: position % 4 > 0)
    stage = Stage(curve, often, n_requests=n_requests, surcharge=surcharge)
    stage.run(1500, room=16)
    plain = CostModel(curve).time(n_requests) * stage.n_sampled / n_requests
    assert stage.seconds <= 1.06 * plain
