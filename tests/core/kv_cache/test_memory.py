"""Ways back from rejected drafts, and the laws of speculation on models with a recurrent state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.kv_cache.memory import MOST_REPLAYED, AttentionMemory, CheckpointMemory, RecurrentMemory, choose_memory
from core.llama.context import Context
from core.loading.memory_need import n_snapshots
from core.speculation.proposers.proposer import Evaluated
from core.speculation.speculator import StepTimes
from core.values.engine_options import MAX_DRAFT_DEPTH, EngineOptions
from tests.support.engines import Ledger, complete, note_rows, open_engine, run, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER_DRAFT, ENDLESS, FOX, chat
from tests.support.proposers import OracleProposer, RandomProposer, price, use_proposer
from tools.model_factory import recurrent_factory

PROMPTS = (FOX, chat("Who are you?"), "def add(a, b):\n", chat("Count to five."))
COST = CostModel(Calibration({1: 0.010, 2: 0.012, 4: 0.016, 16: 0.040}))


# -- on a memory that notes what it is told ----------------------------------------------------------------------------


class Cells:
    """A memory with a recurrent state that can go back by ``n_snapshots`` tokens. Positions are all that it holds."""

    def __init__(self, n_snapshots: int = 0, *, can_load: bool = True, can_save: bool = True) -> None:
        self.n_snapshots = n_snapshots
        self.held: dict[int, int] = {}
        self._can_load, self._can_save = can_load, can_save

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        excess = self.held[sequence] - start
        if start and excess > self.n_snapshots:
            return False
        self.held[sequence] = min(self.held[sequence], start)
        return True

    def save_state(self, sequence: int) -> np.ndarray | None:
        return np.array([self.held[sequence]], np.uint8) if self._can_save else None

    def load_state(self, sequence: int, state: np.ndarray) -> bool:
        if self._can_load:
            self.held[sequence] = int(state[0])
        return self._can_load


class Clock:
    """A millisecond passes between any two looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize(
    ("is_recurrent", "n", "kind"),
    [(False, 0, AttentionMemory), (True, 4, RecurrentMemory), (True, 0, CheckpointMemory)],
)
def test_snapshots_are_used_where_they_are_offered(is_recurrent: bool, n: int, kind: type) -> None:
    memory = choose_memory(Cells(n), COST, is_recurrent=is_recurrent)
    assert type(memory) is kind
    assert memory.reach == (n or MAX_DRAFT_DEPTH)


def test_what_snapshots_reach_is_cut_off_and_what_they_do_not_is_lost_and_said_so() -> None:
    cells = Cells(3)
    cells.held[0] = 20
    memory = RecurrentMemory(cells, 3)
    assert (memory.take_back(0, 17), cells.held[0]) == (17, 17)
    cells.held[0] = 20
    assert (memory.take_back(0, 16), cells.held[0]) == (0, 0)


def test_a_checkpoint_leads_back_to_where_it_was_made_again_and_again() -> None:
    cells = Cells()
    cells.held[1] = 10
    memory = CheckpointMemory(cells, COST)
    memory.mark(1, 10)
    for held, size in ((15, 12), (19, 14)):
        cells.held[1] = held
        assert (memory.take_back(1, size), cells.held[1]) == (10, 10)


@pytest.mark.parametrize("failing", ["can_save", "can_load"])
def test_without_a_state_to_go_back_to_all_is_lost(failing: str) -> None:
    cells = Cells(**{failing: False})
    cells.held[0] = 10
    memory = CheckpointMemory(cells, COST)
    memory.mark(0, 10)
    cells.held[0] = 14
    assert (memory.take_back(0, 12), cells.held[0]) == (0, 0)
    assert CheckpointMemory(cells, COST).take_back(0, 12) == 0, "never marked"


def test_a_rejection_is_charged_with_the_way_back_and_the_rows_again() -> None:
    cells = Cells()
    cells.held[0] = 10
    memory = CheckpointMemory(cells, COST, Clock())
    memory.mark(0, 10)
    memory.take_back(0, 10)
    assert memory.mark_seconds == pytest.approx(0.001)
    assert memory.loss(3) == pytest.approx(0.001 + 0.006)
    memory.n_decoding = 2
    assert memory.loss(3) == pytest.approx(0.001 + COST.time(3)), "beside others it is a pass of its own"
    assert (memory.take_seconds(), memory.take_seconds()) == (pytest.approx(0.002), 0.0)


def test_a_machine_that_slept_while_a_state_was_saved_still_drafts() -> None:
    cells = Cells()
    cells.held[0] = 10
    seconds = iter([0.0, 3 * 86_400.0, 3 * 86_400.0, 6 * 86_400.0])
    memory = CheckpointMemory(cells, COST, lambda: next(seconds))
    memory.mark(0, 10)
    assert memory.mark_seconds <= 0.25 * COST.time(1), "three days are no price of a state"
    memory.mark(0, 10)
    assert memory.mark_seconds <= 0.5 * COST.time(1)


@pytest.mark.parametrize(
    ("state", "n_slots", "n_ubatch", "expected"),
    [(0, 4, 512, 0), (1000, 1, 512, MAX_DRAFT_DEPTH), (10_000, 2, 512, 5), (60_000, 1, 512, 0), (1000, 1, 6, 4)],
    ids=["size not known", "small", "as many as the weights leave room for", "too large", "a small ubatch"],
)
def test_how_many_snapshots_are_worth_their_memory(state: int, n_slots: int, n_ubatch: int, expected: int) -> None:
    facts: Any = SimpleNamespace(state_bytes=state, weight_bytes=1_600_000)
    assert n_snapshots(facts, EngineOptions("any.gguf", n_slots=n_slots), n_ubatch) == expected


# -- on models ---------------------------------------------------------------------------------------------------------


# What the models say without drafts, by file, whether with snapshots, prompts and number of tokens.
Said = dict[tuple[Path, bool, tuple[str, ...], int], list[list[tuple[int, float]]]]


class Target:
    """A model and one of the ways back on it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, way: str, said: Said) -> None:
        self.path = path
        self.said = said
        self.has_snapshots = way == "snapshots"
        self.replays = way == "checkpoints"
        self._monkeypatch = monkeypatch

    @contextmanager
    def open(self, **options: Any) -> Iterator[Engine]:
        with self._monkeypatch.context() as patch:
            if not self.has_snapshots:
                patch.setattr("core.loading.memory_need._SNAPSHOT_SHARE", 0)
            with open_engine(self.path, **{"n_slots": 4, "n_ctx": 512, **options}) as engine:
                assert bool(engine.context.n_snapshots) is self.has_snapshots
                yield engine

    def plain(self, prompts: tuple[str, ...] = PROMPTS, n: int = 40) -> list[list[tuple[int, float]]]:
        """The greedy tokens of runs without drafts, which are made once."""
        key = self.path, self.has_snapshots, prompts, n
        if key not in self.said:
            self.said[key] = self._run_plain(prompts, n)
        return self.said[key]

    def _run_plain(self, prompts: tuple[str, ...], n: int) -> list[list[tuple[int, float]]]:
        with (
            self.open(speculation="off")
            if not self.has_snapshots
            else open_engine(self.path, n_slots=4, n_ctx=512, speculation="off") as engine
        ):
            return [greedy(engine, prompt, max_tokens=n)[0] for prompt in prompts]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recurrent")
    makers: tuple[Callable[[Path], Path], ...] = (
        recurrent_factory.mamba,
        recurrent_factory.lfm2,
        recurrent_factory.gemma3,
    )
    return {maker.__name__: maker(folder / f"{maker.__name__}.gguf") for maker in makers} | {"ember": EMBER_DRAFT}


@pytest.fixture(scope="module")
def said() -> Said:
    return {}


STATES = ["mamba, checkpoints", "lfm2, checkpoints", "lfm2, snapshots"]
ALL = [*STATES, "gemma3, window", "ember, attention"]


@pytest.fixture(params=ALL[:-1])
def target(
    request: pytest.FixtureRequest, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, said: Said
) -> Target:
    name, _, way = request.param.partition(", ")
    return Target(files[name], monkeypatch, way, said)


@pytest.mark.parametrize("target", ALL, indirect=True)
@pytest.mark.parametrize("depth", [8, None])
def test_a_random_proposer_changes_no_text(target: Target, depth: int | None) -> None:
    expected = target.plain()
    with target.open() as engine:
        speculator = use_proposer(engine, RandomProposer(4096), depth)
        for prompt, wanted in zip(PROMPTS, expected, strict=True):
            tokens, _ = greedy(engine, prompt, max_tokens=40)
            assert_same_up_to_a_near_tie(tokens, wanted)
    if depth:
        assert sum(speculator.stats.drafted_at) > 80
        assert sum(speculator.stats.accepted_at) < 0.05 * sum(speculator.stats.drafted_at)


@pytest.mark.parametrize("target", ALL, indirect=True)
@pytest.mark.parametrize(("depth", "wrong_every"), [(2, 10_000), (8, 5)], ids=["perfect", "mostly right"])
def test_a_proposer_that_knows_the_text_changes_nothing_of_it(target: Target, depth: int, wrong_every: int) -> None:
    expected = target.plain()
    with target.open() as engine:
        for prompt, wanted in zip(PROMPTS, expected, strict=True):
            text = [*engine.vocab.tokenize(prompt).tolist(), *(token for token, _ in wanted)]
            speculator = use_proposer(engine, OracleProposer(4096, text, wrong_every), depth)
            n_before = engine.stats.n_steps
            tokens, _ = greedy(engine, prompt, max_tokens=40)
            assert_same_up_to_a_near_tie(tokens, wanted)
            assert sum(speculator.stats.accepted_at) > 0.4 * len(wanted)
            assert engine.stats.n_steps - n_before < 0.7 * len(wanted)


@pytest.mark.parametrize("target", ["lfm2, snapshots", "gemma3, window"], indirect=True)
def test_requests_side_by_side_with_a_draft_model_change_no_text(target: Target) -> None:
    expected = target.plain()
    with target.open(draft_path=str(EMBER_DRAFT), draft_depth=3, speculation="draft") as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
    for index, wanted in enumerate(expected):
        assert ledger.ended[str(index)].receipt.n_drafted > 40
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), wanted)


@pytest.mark.parametrize("target", STATES, indirect=True)
@pytest.mark.parametrize("cache_ram", [0, None])
def test_a_conversation_goes_on_from_the_state_it_left_and_another_starts_anew(
    target: Target, cache_ram: int | None
) -> None:
    """The first turn ends where drafts were rejected: what it leaves must be the state of what was said, or nothing."""
    found: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    with target.open(n_slots=1, cache_ram=cache_ram) as engine:
        engine.cost = CostModel(Calibration({1: 0.01, 64: 0.02}))  # idle texts cost nothing, so none has to leave
        use_proposer(engine, RandomProposer(4096), 4)
        first = engine.vocab.tokenize(FOX).tolist()
        for n in (3, 5, 8):
            for kind in ("next turn", "parts late", "another text"):
                tokens, _ = greedy(engine, tuple(first), max_tokens=n)
                said = first + [token for token, _ in tokens]
                # What parts late does so where snapshots might seem to reach back to.
                prompts = {"next turn": (*said, 77), "parts late": (*said[:-3], 77, 78), "another text": (*said[::-1],)}
                prompt = prompts[kind]
                found[prompt], ended = greedy(engine, prompt, max_tokens=12)
                # In RAM there may be an earlier state of the text.
                assert (ended.receipt.n_cached > 0) is (kind == "next turn") or cache_ram is None
    with open_engine(target.path, n_slots=1, n_ctx=512, speculation="off") as plain:
        for prompt, tokens in found.items():
            plain.forget_texts()
            anew, _ = greedy(plain, prompt, max_tokens=12)
            assert_same_up_to_a_near_tie(tokens, anew)


def test_a_way_back_that_is_refused_is_noticed(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is evaluated again then: dear, but right."""
    (wanted,) = target.plain((FOX,))
    remove = Context.remove
    monkeypatch.setattr(Context, "remove", lambda self, slot, start, end=-1: not start and remove(self, slot, start))
    with target.open() as engine:
        use_proposer(engine, RandomProposer(4096), 3)
        rows = note_rows(engine)
        tokens, _ = greedy(engine, max_tokens=40)
        assert sum(rows) > 10 * len(wanted), "each rejection costs the whole text"
    assert_same_up_to_a_near_tie(tokens, wanted)


@pytest.mark.parametrize(
    ("target", "depth"),
    [("mamba, checkpoints", 3), ("mamba, checkpoints", None), ("lfm2, snapshots", 3)],
    indirect=["target"],
)
def test_what_is_replayed_stays_small(target: Target, depth: int | None) -> None:
    """Drafts that are always partly right pile up rows to replay: there is an end to it."""
    (wanted,) = target.plain((FOX,), 100)
    with target.open() as engine:
        text = [*engine.vocab.tokenize(FOX).tolist(), *(token for token, _ in wanted)]
        use_proposer(engine, OracleProposer(4096, text, 2), depth)
        if depth is None:
            price(engine, dict.fromkeys(range(1, 65), 0.01))  # however many rows there are
        submit(engine, "only", max_tokens=100)
        ledger, most = Ledger(), 0
        while not engine.is_idle:
            ledger.add(engine.step())
            most = max(most, *(sequence.n_replay for sequence in engine.scheduler.running), 0)
        assert most <= MOST_REPLAYED + 1 + (depth or MAX_DRAFT_DEPTH)
        assert (most > 0) is target.replays


def test_rows_that_are_replayed_may_be_more_than_are_evaluated_at_a_time(files: dict[str, Path]) -> None:
    with open_engine(files["mamba"], n_slots=4, n_ctx=256, n_ubatch=4) as engine:
        use_proposer(engine, RandomProposer(4096), 6)
        for index, prompt in enumerate(PROMPTS * 2):
            submit(engine, str(index), prompt, max_tokens=10 + 3 * index)
        ledger = run(engine)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


def test_drafting_pays_for_replayed_rows(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    booked: list[float] = []
    target = Target(files["mamba"], monkeypatch, "checkpoints", {})
    with target.open(n_slots=1) as engine:
        speculator = use_proposer(engine, RandomProposer(4096), 4)
        learn = speculator.learn

        def learn_and_tell(evaluated: list[Evaluated], times: StepTimes | None) -> None:
            if times is not None:
                booked.append(times.plain / engine.cost.time(1, 60))
            learn(evaluated, times)

        monkeypatch.setattr(speculator, "learn", learn_and_tell)
        complete(engine, max_tokens=41, sampling=ENDLESS)
    # Each step but the prompt's brings one token, whether or not it replays.
    assert len(booked) == 40
    assert all(rows < 2 for rows in booked), "a plain step has one row, whatever is replayed beside it"
