"""Proposers with a context of their own: how they choose tokens, make room for texts, and keep the target's states."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import Calibration, CostModel, ReadCost
from core.engine.engine import Engine
from core.kv_cache.slot import Slot
from core.llama.context import Batch, DecodeStatus
from core.scheduler.sequence import Sequence
from core.speculation.proposers.context_proposer import ContextProposer, DraftSampler, HiddenStateWindow
from core.speculation.proposers.proposer import DraftFailed
from core.values.request import Constraint, Request, SamplingParams
from models.facts.model_facts import WeightBytes
from tests.support.engines import open_engine

BATCH = cast("Batch", SimpleNamespace(n_tokens=1))


class Cells:
    """A context that can evaluate nothing until enough slots were dropped."""

    def __init__(self, n_to_drop: int, otherwise: DecodeStatus = DecodeStatus.OK) -> None:
        self.dropped: list[int] = []
        self._n_to_drop = n_to_drop
        self._otherwise = otherwise

    def decode(self, batch: Batch) -> DecodeStatus:
        return DecodeStatus.NO_KV_SLOT if len(self.dropped) < self._n_to_drop else self._otherwise


class Texts(ContextProposer):
    """A proposer that has read all slots, in this order, and is not asked to draft."""

    extend = n_unread = catch_up_seconds = read_along = cast("Any", None)

    def __init__(self, cells: Cells, *slots: Slot) -> None:
        cost, reads = CostModel(Calibration({1: 0.001})), ReadCost(WeightBytes(1_000, 0, 1, 0), cell=0)
        super().__init__(MeasuredContext(cast("Any", cells), cost, len(slots), reads), (0.5,), 10)
        self._cells = cells
        for slot in slots:
            self.use(slot)

    def use(self, slot: Slot) -> None:
        self._use(cast("Any", SimpleNamespace(slot=slot)))

    def decode(self) -> None:
        self._decode(BATCH, [], 0)

    def _drop(self, slot: int) -> None:
        self._cells.dropped.append(slot)


def slot(index: int, left_at: int = 0) -> Slot:
    """A slot whose request left it then; 0: it has not."""
    return Slot(index, is_free=left_at > 0, last_used=left_at, n_tenants=1)


def test_as_many_texts_leave_as_are_in_the_way_the_oldest_first() -> None:
    cells = Cells(2)
    texts = Texts(cells, slot(0, left_at=7), slot(1), slot(2, left_at=3), slot(3, left_at=5))
    texts.decode()
    assert cells.dropped == [2, 3]
    assert texts.take_bytes_read() == 1_000


def test_what_is_at_work_stays() -> None:
    cells = Cells(2)
    with pytest.raises(DraftFailed):
        Texts(cells, slot(0), slot(1, left_at=1), slot(2)).decode()
    assert cells.dropped == [1]


def test_a_slot_that_another_request_has_taken_makes_way_last() -> None:
    cells, taken = Cells(1), slot(0)
    texts = Texts(cells, taken, slot(1, left_at=9))
    taken.n_tenants += 1
    texts.decode()
    assert cells.dropped == [1], "it may go on from what is held there"
    cells.dropped.clear()
    texts.decode()
    assert cells.dropped == [0]
    texts.use(taken)
    cells.dropped.clear()
    with pytest.raises(DraftFailed):
        texts.decode()  # it is read for the new one now


def test_a_decode_that_fails_for_another_reason_costs_nobody_a_text() -> None:
    cells = Cells(0, DecodeStatus.COMPUTE_FAILED)
    with pytest.raises(DraftFailed):
        Texts(cells, slot(0, left_at=1)).decode()
    assert cells.dropped == []


SAMPLINGS = {
    "greedy": SamplingParams(temperature=0),
    "penalties": SamplingParams(temperature=0, repeat_penalty=1.1),
    "sampled": SamplingParams(temperature=0.5, seed=1),
    "everything": SamplingParams(temperature=0.5, seed=1, min_p=0.0, top_k=0, top_p=1.0),
    "bias": SamplingParams(temperature=0.5, seed=1, logit_bias=((4095, 1.0),)),
}


GREEDY = SAMPLINGS["greedy"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_engine(n_slots=1, n_ctx=256, speculation="off") as engine:
        yield engine


def sequence(engine: Engine, sampling: SamplingParams) -> Sequence:
    return engine.submit(engine.prepare(Request("only", (1, 2, 3), sampling=sampling)))


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("n_drafted", [4000, 4096, 4160])
def test_only_tokens_that_the_target_knows_are_proposed(
    engine: Engine, sampling: SamplingParams, n_drafted: int
) -> None:
    logits = np.full(n_drafted, -30.0, np.float32)
    logits[77] = 5.0
    logits[4096:] = 40.0
    asking = sequence(engine, sampling)
    guess = DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3)
    engine.cancel("only")
    engine.step()
    assert guess is not None
    assert guess.token == 77


@pytest.mark.parametrize(("peak", "is_certain"), [(8.0, False), (12.0, False), (20.0, True), (28.0, True)])
def test_a_large_vocabulary_counts_the_best_of_each_group_as_evidence(
    engine: Engine, peak: float, is_certain: bool
) -> None:
    asking = sequence(engine, GREEDY)
    whole, large = DraftSampler(60_000), DraftSampler(100_000)
    n_same = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        logits = generator.normal(0, 2.5, 60_000).astype(np.float32)
        logits[:9] = peak - generator.exponential(3.0, 9)
        # The tokens that are missing count as impossible, so the probabilities are those of the smaller vocabulary.
        exact, guess = (one.choose(asking, logits, 3) for one in (whole, large))
        assert exact is not None
        assert guess is not None
        assert guess.token == exact.token
        # What is left out makes a token look likelier, never less likely.
        assert guess.evidence >= exact.evidence
        n_same += guess.evidence == exact.evidence
    # The likely tokens are in groups of their own; of many unlikely ones most are left out.
    assert (n_same >= 39) is is_certain
    engine.cancel("only")
    engine.step()


def test_a_draft_leaves_the_logits_as_they_are(engine: Engine) -> None:
    asking = sequence(engine, SAMPLINGS["bias"])
    logits = np.zeros(4096, np.float32)
    assert DraftSampler(4096).choose(asking, logits, 3) is not None
    assert not logits.any()
    engine.cancel("only")
    engine.step()


def test_numbers_that_are_none_propose_nothing(engine: Engine) -> None:
    asking = sequence(engine, SAMPLINGS["greedy"])
    logits = np.full(4096, np.nan, np.float32)
    assert DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3) is None
    engine.cancel("only")
    engine.step()


def test_a_grammar_is_followed_from_where_the_draft_stands(engine: Engine) -> None:
    asking = engine.submit(
        engine.prepare(Request("only", (1, 2, 3), sampling=GREEDY, constraint=Constraint("regex", "yes|no")))
    )
    chooser = DraftSampler(engine.vocab.n_tokens)
    yes, rest, other = (int(engine.vocab.tokenize(text, add_special=False)[0]) for text in ("y", "es", "Q"))
    logits = np.zeros(4096, np.float32)
    logits[other], logits[yes], logits[rest] = 9.0, 8.0, 7.0
    guesses = [chooser.choose(asking, logits.copy(), 3, ahead) for ahead in ([], [yes], None)]
    engine.cancel("only")
    engine.step()
    assert [guess.token for guess in guesses if guess is not None] == [yes, rest, other]


def test_a_grammar_that_allows_nothing_known_proposes_nothing(engine: Engine) -> None:
    """The rows that a drafting model of fewer tokens has nothing to say about are minus infinity."""
    asking = engine.submit(engine.prepare(Request("only", (1, 2, 3), constraint=Constraint("regex", "yes|no"))))
    logits = np.full(4096, -np.inf, np.float32)
    logits[77] = 9.0
    found = DraftSampler(engine.vocab.n_tokens).choose(asking, logits, 3, [])
    engine.cancel("only")
    engine.step()
    assert found is None


def tokens(*values: int) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)


def states(*values: float) -> npt.NDArray[np.float32]:
    return np.array([[value, -value] for value in values], np.float32)


def test_states_belong_to_the_tokens_that_led_to_them() -> None:
    window = HiddenStateWindow()
    window.take(tokens(), tokens(5, 6, 7), states(0, 1, 2))
    window.take(tokens(5, 6, 7), tokens(8), states(3))
    assert window.known(tokens(5, 6, 7, 8, 9)) == range(4)
    assert window.known(tokens(5, 6, 1)) == range(2)
    assert (window.rows(1, 4) == states(1, 2, 3)).all()


def test_rejected_tokens_take_their_states_with_them() -> None:
    window = HiddenStateWindow()
    window.take(tokens(), tokens(5, 6, 7, 8), states(0, 1, 2, 3))
    window.take(tokens(5, 6), tokens(9), states(20))
    assert window.known(tokens(5, 6, 9)) == range(3)
    assert (window.rows(0, 3) == states(0, 1, 20)).all()


def test_a_gap_or_another_text_begins_anew() -> None:
    window = HiddenStateWindow()
    window.take(tokens(), tokens(5, 6), states(0, 1))
    window.take(tokens(5, 6, 7), tokens(8), states(3))
    assert window.known(tokens(5, 6, 7, 8)) == range(3, 4)
    assert (window.rows(3, 4) == states(3)).all()
    window.take(tokens(1, 6, 7), tokens(8), states(30))
    assert window.known(tokens(5, 6, 7, 8)) == range(3, 3)
    assert (window.rows(3, 4) == states(30)).all()


@pytest.mark.parametrize("chunk", [1, 3, 7, 40])
def test_only_the_latest_are_kept(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.speculation.proposers.context_proposer.LONGEST_WINDOW", 8)
    window, text = HiddenStateWindow(), np.arange(100, 220, dtype=np.int32)
    for start in range(0, 120, chunk):
        end = min(start + chunk, 120)
        window.take(text[:start], text[start:end], states(*range(start, end)))
        known = window.known(text[:end])
        assert known.stop == end
        assert len(known) == min(8, end)
        assert (window.rows(known.start, end) == states(*known)).all()
