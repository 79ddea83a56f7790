"""Drafted trees on real models: the same text, the same distribution, and nothing left behind in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.kv_cache.context_shape import MOST_BRANCHES
from core.llama.batch import Batch
from core.llama.context import DecodeStatus
from core.llama.library import L
from core.scheduler.draft import PENDING, Draft, TreeShape
from core.scheduler.planner import Share, StepPlan
from core.speculation.draft_tree import DraftTree, GrowthPoint
from core.speculation.policy.draft_state import Backoff, DraftState
from core.speculation.policy.risk_budget import RiskBudget as DraftLedger
from core.speculation.policy.speculator import Speculator
from core.speculation.policy.step_outcome import SequenceOutcome
from core.speculation.proposer import DraftChain, ProposedToken
from core.speculation.proposers.draft_model import DraftModelProposer
from core.values.engine_options import MAX_SLOTS, EngineOptions
from core.values.errors import BadOption, BrokenLogits
from core.values.messages import FinishReason, RequestEvent
from core.values.request import SamplingParams
from tests.support.chi_square import assert_same_distribution, third_tokens
from tests.support.engines import (
    EMBER,
    EMBER_DRAFT,
    FOX,
    GREEDY_WITH_LOGPROBS,
    SURE,
    Ledger,
    assert_same_up_to_a_near_tie,
    chat,
    complete,
    expected,
    greedy_tokens,
    open_engine,
    submit,
)
from tests.support.proposers import RandomProposer, price, use_proposer

PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), "def add(a, b):\n", chat("Count to five."))
ENDLESS = SamplingParams(temperature=0, ignore_eos=True)


class SecondChoiceProposer(RandomProposer):
    """Proposes the tokens of a text it was told, as its second choice (or its last) beside wrong ones."""

    def __init__(self, n_vocab: int, text: list[int], first_right_every: int = 2) -> None:
        super().__init__(n_vocab)
        self._text = text
        self._first_right_every = first_right_every

    def grow(self, tips: list[GrowthPoint], width: int) -> list[tuple[ProposedToken, ...]]:
        return [self._choices(len(chain.sequence.tokens) + 1 + chain.depth_of(node), width) for chain, node in tips]

    def _choices(self, place: int, width: int) -> tuple[ProposedToken, ...]:
        right = self._text[place] if place < len(self._text) else 0
        tokens = [(right + index) % self._n_vocab for index in range(1, width)]
        tokens.insert(0 if place % self._first_right_every == 0 else width - 1, right)
        return tuple(ProposedToken(token, 0) for token in tokens)


@pytest.fixture(scope="module")
def plain() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512, speculation="off") as engine:
        yield engine


@contextmanager
def open_tree_engine(width: int | None = 3, depth: int | None = 4, **options: Any) -> Iterator[Engine]:
    options = {"n_slots": 4, "n_ctx": 512, "draft_path": str(EMBER_DRAFT), "speculation": "draft", **options}
    with open_engine(draft_depth=depth, draft_width=width, **options) as engine:
        yield engine


def assert_sound_cache(engine: Engine) -> None:
    """Hold that every slot has the cells that it should, no branch has more, and that all are empty when idle."""
    context, slots, branches = engine._context, engine._slots._slots, engine._branches
    assert branches.n_free == branches.count > 0
    for slot in slots:
        assert context.last_position(slot.id) == slot.n_resident - 1
    for branch in range(len(slots), len(slots) + branches.count):
        owner, held = branches._held.get(branch, (0, 0))
        assert context.last_position(branch) == held - 1 < max(slots[owner].n_resident, 1)
        assert not held or not engine.is_idle


def assert_sound_draft(engine: Engine) -> None:
    """Hold that no branch of the draft model's has anything once all texts have ended."""
    assert engine._speculator is not None
    model = engine._speculator._tree_proposer
    assert isinstance(model, DraftModelProposer)
    assert model._branches.n_free == model._branches.count > 0
    n_slots = len(engine._slots)
    assert {model._context.last_position(n_slots + index) for index in range(model._branches.count)} == {-1}


def step_by_step(engine: Engine, ledger: Ledger) -> Ledger:
    while not engine.is_idle:
        ledger.add(engine.step())
        assert_sound_cache(engine)
    assert engine._speculator is not None
    if isinstance(engine._speculator._tree_proposer, DraftModelProposer):
        assert_sound_draft(engine)
    return ledger


def drafts_of_steps(engine: Engine, ledger: Ledger) -> Iterator[tuple[int, Share]]:
    """Step until all have ended; give each draft as it was planned, and the tokens that its sequence had cached."""
    run, planned = engine._runner.run, list[tuple[int, Share]]()

    def watch(shares: StepPlan, events: list[RequestEvent]) -> StepPlan:
        planned.extend((share.sequence.n_past, share) for share in shares if share.draft)
        return run(shares, events)

    engine._runner.run = watch  # type: ignore[method-assign]
    while not engine.is_idle:
        ledger.add(engine.step())
    yield from planned


def speed_of_rows_is_that_of_a_gpu(engine: Engine) -> None:
    price(engine, {1: 0.0100, 8: 0.0102, 16: 0.0104, 64: 0.0130}, 0.0005)


@pytest.mark.parametrize("width", [2, 3, None])
def test_at_temperature_0_trees_change_no_text(plain: Engine, width: int | None) -> None:
    with open_tree_engine(width, 4 if width else None) as engine:
        if width is None:
            speed_of_rows_is_that_of_a_gpu(engine)
        ledger = Ledger()
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        step_by_step(engine, ledger)
    for index, prompt in enumerate(PROMPTS):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(plain, prompt, 40))


@pytest.mark.parametrize("width", [2, 4])
def test_at_temperature_0_random_trees_change_no_text(plain: Engine, width: int) -> None:
    with open_tree_engine() as engine:
        speculator = use_proposer(engine, RandomProposer(4096), 3, width)
        for prompt in PROMPTS:
            submit(engine, "only", prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
            ledger = step_by_step(engine, Ledger())
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(plain, prompt, 30))
    assert speculator.stats.n_drafted > 100 * width


@pytest.mark.parametrize("first_right_every", [2, 1_000_000])
def test_second_choices_are_accepted_and_the_cache_goes_on_with_them(plain: Engine, first_right_every: int) -> None:
    """Where the cells of an accepted branch were not kept right, the tokens after it would come out wrong."""
    with open_tree_engine() as engine:
        for prompt in PROMPTS:
            wanted = expected(plain, prompt, 40)
            text = [*engine.vocab.tokenize(prompt).tolist(), *(token for token, _ in wanted)]
            speculator = use_proposer(engine, SecondChoiceProposer(4096, text, first_right_every), 3, 3)
            submit(engine, "only", prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
            ledger = step_by_step(engine, Ledger())
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), wanted)
            assert speculator.stats.n_accepted >= 0.4 * len(wanted) or len(wanted) < 10


def test_a_tree_of_several_levels_is_verified_as_its_paths_are(plain: Engine) -> None:
    """A wrong token, its right sibling, and behind both whole branches: rows of three and more sequences."""
    wanted = expected(plain, SURE, 30)
    answer = [token for token, _ in wanted]

    class Bush(DraftChain):
        @property
        def draft(self) -> Draft:
            at = len(self.sequence.tokens) - self.sequence.n_prompt
            right = [*answer[at : at + 4], *[0] * 4][:4]
            tokens = (5, right[0], 6, 7, right[1], 8, right[2], 9, right[3], right[1])
            return Draft(tokens, TreeShape((-1, -1, 0, 0, 1, 1, 4, 4, 6, 2)))

    with open_tree_engine() as engine:
        speculator = use_proposer(engine, RandomProposer(4096), 1)
        records = speculator._records
        records.chain = lambda sequence, proposer: Bush(  # type: ignore[method-assign]
            sequence, proposer, records.by_id[sequence.id].acceptance[proposer.name]
        )
        submit(engine, "only", SURE, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        ledger = step_by_step(engine, Ledger())
        assert engine.stats.n_accepted > 15
        assert engine.stats.n_steps < 12
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), wanted)


def test_sampled_with_one_seed_the_text_is_the_same(plain: Engine) -> None:
    same = 0
    with open_tree_engine(3, 3) as engine:
        for seed in range(6):
            sampling = SamplingParams(seed=seed, temperature=0.9, repeat_penalty=1.1, top_k=50)
            same += (
                complete(engine, max_tokens=25, sampling=sampling)[0]
                == complete(plain, max_tokens=25, sampling=sampling)[0]
            )
    assert same >= 4, "only rounding at near-ties may change a seeded text"


@pytest.mark.parametrize("proposer", ["random", "model"])
def test_sampled_tokens_are_distributed_as_without_trees(proposer: str) -> None:
    # A random proposer is as wrong for the smallest model as for any.
    target = EMBER if proposer == "model" else EMBER_DRAFT
    with open_tree_engine(3, 3, path=target, n_slots=8, n_ctx=128) as engine:
        if proposer == "random":
            use_proposer(engine, RandomProposer(4096), 3, 3)
        found = third_tokens(engine, range(10_000, 10_500))
    with open_engine(target, n_slots=16, n_ctx=128, speculation="off") as plain:
        assert_same_distribution(found, third_tokens(plain, range(500)))


def test_second_choices_of_a_draft_model_are_accepted_now_and_then() -> None:
    with open_tree_engine(3, 4) as engine:
        _, ended, _ = complete(engine, max_tokens=120, sampling=ENDLESS)
        assert engine._speculator is not None
        stats = engine._speculator.stats
        wide = engine.stats.n_steps
        assert (ended.receipt.n_drafted, ended.receipt.n_accepted) == (stats.n_drafted, stats.n_accepted)
        assert (sum(stats.drafted_at), sum(stats.accepted_at)) == (stats.n_drafted, stats.n_accepted)
    with open_tree_engine(1, 4) as engine:
        assert engine._branches.count == 0
        complete(engine, max_tokens=120, sampling=ENDLESS)
        assert engine.stats.n_steps > wide


def test_trees_are_drafted_where_rows_are_nearly_free_and_chains_where_not() -> None:
    with open_tree_engine(None, None) as engine:
        assert engine._speculator is not None
        speed_of_rows_is_that_of_a_gpu(engine)
        submit(engine, "0", FOX, max_tokens=40, sampling=ENDLESS)
        shapes = [share.shape for _, share in drafts_of_steps(engine, Ledger())]
        assert sum(shape is not None for shape in shapes) > len(shapes) // 2
        dear = {1: 0.0100, 2: 0.0160, 4: 0.0260, 8: 0.0500, 64: 0.5}
        price(engine, dear, 0.0005)
        submit(engine, "1", FOX, max_tokens=40, sampling=ENDLESS)
        shapes = [share.shape for _, share in drafts_of_steps(engine, Ledger())]
        assert all(shape is None for shape in shapes)


def test_a_cancel_between_steps_leaves_the_cache_right(plain: Engine) -> None:
    with open_tree_engine(3, 4, n_slots=3) as engine:
        for n_steps in range(1, 7):
            ledger = Ledger()
            for index in range(3):
                submit(engine, str(index), PROMPTS[index], max_tokens=40, sampling=ENDLESS)
            for _ in range(n_steps):
                ledger.add(engine.step())
            engine.cancel("1")
            ledger.add(engine.step())
            assert ledger.ended["1"].reason is FinishReason.CANCELLED
            assert_sound_cache(engine)
            step_by_step(engine, ledger)
        _, _, found = complete(engine, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(found, "only"), expected(plain, FOX, 40))


def test_an_abort_in_the_middle_of_a_tree_loses_nothing(plain: Engine) -> None:
    with open_tree_engine() as engine:
        wanted = expected(plain, FOX, 30)
        submit(engine, "only", FOX, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        ledger = Ledger()
        decode = engine._context.decode
        calls = iter(range(1_000))

        def now_and_then(batch: Batch) -> DecodeStatus:
            status = decode(batch)
            return DecodeStatus.ABORTED if next(calls) % 3 == 2 else status

        engine._context.decode = now_and_then  # type: ignore[method-assign]
        step_by_step(engine, ledger)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), wanted)


def test_drafts_give_way_when_the_cache_is_full(plain: Engine) -> None:
    with open_tree_engine(3, 6, n_slots=6, n_ctx=256, n_cells=256) as engine:
        ledger = Ledger()
        for index in range(6):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=120)
        step_by_step(engine, ledger)
        assert {ended.failure for ended in ledger.ended.values()} == {None}
        _, _, found = complete(engine, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(found, "only"), expected(plain, FOX, 40))


@pytest.mark.parametrize("depth", [4, None])
def test_where_cells_become_few_trees_give_way_to_chains(plain: Engine, depth: int | None) -> None:
    with open_tree_engine(3, depth, n_slots=1, n_ctx=256, n_cells=256) as engine:
        speed_of_rows_is_that_of_a_gpu(engine)
        room = engine._context.n_outputs - 1
        sampling = replace(GREEDY_WITH_LOGPROBS, ignore_eos=True)
        submit(engine, "only", FOX, max_tokens=235, sampling=sampling)
        ledger, n_drafted = Ledger(), {False: 0, True: 0}
        for n_past, share in drafts_of_steps(engine, ledger):
            is_late = n_past + 1 + room > 256
            n_drafted[is_late] += len(share.draft)
            assert share.shape is None or not is_late
        assert n_drafted[True] > 10
        assert n_drafted[False] > 100
        assert_sound_cache(engine)
    _, _, wanted = complete(plain, max_tokens=235, sampling=sampling)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), greedy_tokens(wanted, "only"))


def test_sixteen_slots_have_trees_together_and_counts_add_up(plain: Engine) -> None:
    with open_tree_engine(3, 2, n_slots=16, n_ctx=128) as engine:
        assert engine._branches.count == 32
        ledger = Ledger()
        for index in range(16):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=24, sampling=GREEDY_WITH_LOGPROBS)
        shapes = [share.shape for _, share in drafts_of_steps(engine, ledger)]
        assert_sound_cache(engine)
        assert engine._speculator is not None
        stats = engine._speculator.stats
    assert sum(shape is not None for shape in shapes) > 16
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert sum(receipt.n_drafted for receipt in receipts) == stats.n_drafted
    assert sum(receipt.n_accepted for receipt in receipts) == stats.n_accepted
    for index in range(16):
        wanted = expected(plain, PROMPTS[index % 5], 24)
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), wanted)


def test_sequence_ids_are_within_llama_cpps_limit() -> None:
    assert int(L.llama_max_parallel_sequences()) >= MAX_SLOTS + MOST_BRANCHES


def test_second_choices_can_only_add_to_what_is_accepted() -> None:
    per_step = []
    for width in (1, 2, 3):
        with open_tree_engine(width, 4, n_slots=1) as engine:
            for prompt in PROMPTS:
                complete(engine, prompt, max_tokens=40, sampling=ENDLESS)
            assert engine._speculator is not None
            stats = engine._speculator.stats
            per_step.append(stats.n_accepted / stats.n_bonus)
            assert stats.n_drafted <= 4 * width * stats.n_bonus
            assert stats.drafted_at[0] <= width * stats.n_bonus
            assert all(a >= b for a, b in zip(stats.accepted_at, stats.accepted_at[1:], strict=False))
    assert per_step[0] + 0.1 < per_step[1] < per_step[2] + 0.1


def test_with_trees_off_there_is_nothing_of_them() -> None:
    with open_tree_engine(1, None) as engine:
        speed_of_rows_is_that_of_a_gpu(engine)
        assert L.llama_n_seq_max(engine._context.c) == 4 + 1  # through which texts are saved and loaded
        ledger = Ledger()
        submit(engine, "only", FOX, max_tokens=40, sampling=ENDLESS)
        shares = [share for _, share in drafts_of_steps(engine, ledger)]
        assert shares
        assert all(share.shape is None for share in shares)
        assert engine._speculator is not None
        assert max(engine._speculator.stats.drafted_at) <= engine._speculator.stats.n_bonus


def test_what_branches_take_is_booked_where_drafting_is_judged() -> None:
    balances = []
    for seconds in (0.0, 0.004):
        speculator = Speculator(CostModel(Calibration({1: 0.01})), n_ctx=64)
        speculator.book_branching(seconds)
        record = DraftState({}, {}, DraftLedger(0.0), Backoff())
        effort = speculator.take_outcome()._replace(came=[SequenceOutcome(record, 2, "draft", 3)])
        speculator.book_step(1, 0.01, 0.01, effort)
        balances.append(speculator.budget.balance("draft"))
    assert balances[0] - balances[1] == pytest.approx(0.004, rel=0.01)


def test_the_rows_of_a_tree_say_what_each_path_says_alone() -> None:
    prompt, paths = [3, 40, 500, 60], [(7,), (8,), (7, 9), (7, 10), (8, 11)]
    with open_tree_engine() as engine:
        context, batch, first = engine._context, Batch(16), len(engine._slots)
        batch.add_run(np.array(prompt, np.int32), 0, 0, want_last=False)
        assert context.decode(batch) is DecodeStatus.OK
        batch.clear()
        shape = TreeShape((-1, -1, 0, 0, 1))
        branches = [0, *(engine._branches.fork(0, 0, 4) for _ in range(2))]
        for token, depth, leaves in zip((5, 7, 8, 9, 10, 11), shape.depths, shape.leaves_below, strict=True):
            batch.add_shared(token, 4 + depth, tuple(branches[leaf] for leaf in leaves))
        assert context.decode(batch) is DecodeStatus.OK
        context.synchronize()
        found = context.logits(6)[1:].copy()
        engine._branches.trim(0, 0)
        for path, row in zip(paths, found, strict=True):
            context.clear()
            batch.clear()
            for position, token in enumerate([*prompt, 5, *path]):
                batch.add(token, position, 0)
            assert context.decode(batch) is DecodeStatus.OK
            context.synchronize()
            assert context.last_position(first) == -1
            assert np.allclose(row, context.logits(batch.n_outputs)[-1], atol=0.02)


def test_numbers_that_are_none_in_a_tree_end_only_their_request(plain: Engine) -> None:
    with open_tree_engine() as engine:
        choose: Callable[..., Any] = engine._committer._choose
        n_choices = iter(range(1_000))

        def broken(sequence: Any, logits: Any) -> Any:
            if sequence.id == "0" and next(n_choices) == 5:
                raise BrokenLogits
            return choose(sequence, logits)

        engine._committer._choose = broken  # type: ignore[method-assign]
        for index in range(3):
            submit(engine, str(index), PROMPTS[index], max_tokens=20, sampling=GREEDY_WITH_LOGPROBS)
        ledger = step_by_step(engine, Ledger())
    assert ledger.ended["0"].reason is FinishReason.FAILED
    for index in (1, 2):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(plain, PROMPTS[index], 20))


def test_stops_inside_an_accepted_branch_end_the_text_there(plain: Engine) -> None:
    wanted = expected(plain, FOX, 40)
    question = chat("Who are you?")
    answer = complete(plain, question, max_tokens=200)[0]
    with open_tree_engine() as engine:
        text = [*engine.vocab.tokenize(FOX).tolist(), *(token for token, _ in wanted)]
        use_proposer(engine, SecondChoiceProposer(4096, text), 4, 2)
        stopped, ended, _ = complete(engine, max_tokens=60, stop=("happy",))
        assert (stopped, ended.reason) == ("Once upon a time, there was a ", FinishReason.STOP)
        assert_sound_cache(engine)
        for n in range(1, 9):
            _, ended, _ = complete(engine, max_tokens=n)
            assert ended.receipt.n_generated == n
            assert_sound_cache(engine)
        end = min(engine.vocab.end_tokens)
        text = [*engine.vocab.tokenize(question).tolist(), *engine.vocab.tokenize(answer).tolist(), *[end] * 8]
        use_proposer(engine, SecondChoiceProposer(4096, text), 4, 2)
        found, ended, _ = complete(engine, question, max_tokens=200)
        assert (found, ended.reason) == (answer, FinishReason.STOP)
        assert_sound_cache(engine)


@pytest.mark.parametrize("n_batch", [2, 6, 64])
def test_one_slot_and_a_small_batch_have_trees_as_far_as_there_is_room(plain: Engine, n_batch: int) -> None:
    with open_tree_engine(4, 6, n_slots=1, n_batch=n_batch, n_ubatch=n_batch) as engine:
        assert engine._branches.count == min(32, n_batch - 1)
        _, ended, ledger = complete(engine, max_tokens=20, sampling=GREEDY_WITH_LOGPROBS)
        assert_sound_cache(engine)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(plain, FOX, 20))
    assert ended.receipt.n_drafted > 0 or n_batch < 6


def test_a_row_of_several_sequences_leaves_no_trace_in_the_next_batch() -> None:
    batch = Batch(8)
    before = batch._seq_pointers.copy()
    batch.add(1, 0, 0)
    batch.add_shared(2, 1, (0, 5, 7))
    assert batch._n_seq.tolist()[:2] == [1, 3]
    assert [batch.c.seq_id[1][index] for index in range(3)] == [0, 5, 7]
    batch.clear()
    batch.add(1, 0, 3)
    batch.add(2, 1, 3)
    assert np.array_equal(batch._seq_pointers, before)
    assert batch._n_seq.tolist() == [1] * 8
    assert batch.c.seq_id[1][0] == 3


@pytest.mark.parametrize("width", [0, 5])
def test_an_absurd_width_is_refused(width: int) -> None:
    with pytest.raises(BadOption, match=f"draft width must be between 1 and 4, not {width}"):
        EngineOptions(str(EMBER), draft_width=width)


@pytest.mark.parametrize("sampling", [SamplingParams(temperature=0), SamplingParams(seed=5, temperature=0.8)])
def test_behind_a_fork_the_draft_model_says_what_it_says_behind_the_same_text(sampling: SamplingParams) -> None:
    with open_tree_engine(3, None, n_slots=1) as engine:
        speculator = engine._speculator
        assert speculator is not None
        submit(engine, "only", FOX, max_tokens=300, sampling=sampling)
        engine.step()
        sequence, model = engine._scheduler.running[0], speculator._tree_proposer
        assert isinstance(model, DraftModelProposer)
        tree = speculator._records.tree(sequence, model)
        _grow(model, tree, PENDING)
        # The second choice, behind it the third, then the first; so twice behind one place.
        for node in (1, 5, 0, 2, 3):
            _grow(model, tree, node)
        chain = speculator._records.chain(sequence, model)
        for node in (0, 1, 2, 3, 5):
            model.drop_branches()
            start = len(sequence.tokens)
            sequence.tokens.extend(np.array(tree.path(node), np.int32))
            (guess,) = model.extend([chain])
            sequence.tokens.truncate(start)
            children = [child for child, parent in enumerate(tree.parents) if parent == node]
            assert len(children) == 3
            assert guess is not None
            assert (guess.token, guess.evidence) == (tree.tokens[children[0]], tree.evidence[children[0]])


def _grow(model: DraftModelProposer, tree: DraftTree, node: int) -> None:
    (guesses,) = model.grow([GrowthPoint(tree, node)], 3)
    assert len({guess.token for guess in guesses}) == 3
    tree.grow(node, guesses, 0.0)


def test_what_was_accepted_in_a_fork_need_not_be_read_again() -> None:
    with open_tree_engine(3, None, n_slots=1) as engine:
        speculator = engine._speculator
        assert speculator is not None
        submit(engine, "only", FOX, max_tokens=300)
        engine.step()
        sequence, model = engine._scheduler.running[0], speculator._tree_proposer
        assert isinstance(model, DraftModelProposer)
        tree = speculator._records.tree(sequence, model)
        for node in (PENDING, 0, 1):
            _grow(model, tree, node)
        children = [child for child, parent in enumerate(tree.parents) if parent == 1]
        for token in (tree.tokens[1], tree.tokens[children[2]]):
            sequence.tokens.append(token)
        assert model.n_unread(sequence) == 2
        model.keep_accepted(sequence)
        assert model.n_unread(sequence) == 1
