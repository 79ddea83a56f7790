"""The laws of speculation, on a real model: the same distribution, the same text, counts that add up, a sound cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.speculation.proposer import DraftChain, ProposedToken
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed
from core.values.messages import FinishReason
from core.values.request import Request, SamplingParams
from tests.support.chi_square import assert_same_distribution, third_tokens
from tests.support.engines import (
    EMBER,
    EMBER_DRAFT,
    FOX,
    GREEDY_WITH_LOGPROBS,
    assert_same_up_to_a_near_tie,
    chat,
    complete,
    expected,
    greedy_tokens,
    load,
    open_engine,
    run,
    submit,
)
from tests.support.interruptions import cancel_between_steps
from tests.support.proposers import OracleProposer, RandomProposer, price, use_proposer
from tools.model_factory import gguf_factory

PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), "def add(a, b):\n", chat("Count to five."))

# Of the first words of this story, two are nearly as good as each other.
ONCE = FOX + "Once"


@pytest.fixture(scope="module")
def plain() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512, speculation="off") as engine:
        yield engine


@pytest.fixture
def drafting() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512) as engine:
        yield engine


@pytest.mark.parametrize("depth", [1, 3, 8, None])
def test_at_temperature_0_a_random_proposer_changes_no_text(plain: Engine, drafting: Engine, depth: int | None) -> None:
    speculator = use_proposer(drafting, RandomProposer(4096), depth)
    for prompt in PROMPTS:
        _, _, ledger = complete(drafting, prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(plain, prompt, 30))
    if depth:
        assert speculator.stats.n_drafted > 100
        assert speculator.stats.n_accepted < speculator.stats.n_drafted * 0.05


@pytest.mark.parametrize("depth", [2, 8, None])
def test_at_temperature_0_a_proposer_that_is_mostly_right_changes_no_text(
    plain: Engine, drafting: Engine, depth: int | None
) -> None:
    for prompt in PROMPTS:
        wanted = expected(plain, prompt, 40)
        text = [*drafting.vocab.tokenize(prompt).tolist(), *(token for token, _ in wanted)]
        speculator = use_proposer(drafting, OracleProposer(4096, text), depth)
        _, ended, ledger = complete(drafting, prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), wanted)
        if depth:
            assert speculator.stats.n_accepted > 0.4 * len(wanted) or len(wanted) < 10
            assert ended.receipt.n_drafted >= ended.receipt.n_accepted > 0 or len(wanted) < 10


@pytest.mark.parametrize("path", [EMBER, EMBER_DRAFT], ids=["perfect", "realistic"])
@pytest.mark.parametrize("depth", [4, None])
def test_a_draft_model_changes_no_text(plain: Engine, path: object, depth: int | None) -> None:
    with open_engine(n_slots=4, n_ctx=512, draft_path=str(path), draft_depth=depth, speculation="draft") as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
    for index, prompt in enumerate(PROMPTS):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(plain, prompt, 40))


def test_a_perfect_draft_is_nearly_always_accepted_also_when_sampling() -> None:
    sampling = SamplingParams(temperature=0.8, seed=11)
    with open_engine(n_slots=2, n_ctx=512, draft_path=str(EMBER), draft_depth=4, speculation="draft") as engine:
        _, ended, _ = complete(engine, max_tokens=60, sampling=sampling)
    assert ended.receipt.n_accepted > 0.9 * ended.receipt.n_drafted > 20


@pytest.mark.slow
@pytest.mark.parametrize("proposer", ["random", "model", "lookup"])
def test_sampled_tokens_are_distributed_as_without_drafts(proposer: str) -> None:
    """Chi-square over many seeds, of the third token after a fixed prompt: drafts must not favour anything."""
    options: dict[str, Any] = {"draft_depth": 3}
    if proposer == "model":
        options |= {"draft_path": str(EMBER_DRAFT), "speculation": "draft"}
    # A random proposer is as wrong for the smallest model as for any, and what others have said can be looked up there.
    target = EMBER if proposer == "model" else EMBER_DRAFT
    n_seeds = 500
    with open_engine(target, n_slots=16, n_ctx=128, **options) as engine:
        if proposer == "random":
            use_proposer(engine, RandomProposer(4096), 3)
        found = third_tokens(engine, range(10_000, 10_000 + n_seeds))
        assert engine.stats.n_drafted > n_seeds
    with open_engine(target, n_slots=16, n_ctx=128, speculation="off") as plain:
        assert_same_distribution(found, third_tokens(plain, range(n_seeds)))


def test_drafted_and_sampled_with_one_seed_the_text_is_the_same(plain: Engine) -> None:
    same = 0
    with open_engine(n_slots=2, n_ctx=512, draft_path=str(EMBER_DRAFT), draft_depth=3, speculation="draft") as engine:
        for seed in range(6):
            sampling = SamplingParams(seed=seed, temperature=0.9, repeat_penalty=1.1)
            same += (
                complete(engine, max_tokens=25, sampling=sampling)[0]
                == complete(plain, max_tokens=25, sampling=sampling)[0]
            )
    assert same >= 4, "only rounding at near-ties may change a seeded text"


@pytest.mark.parametrize("depth", [3, None])
def test_accepted_and_bonus_tokens_add_up(depth: int | None) -> None:
    with open_engine(n_slots=4, n_ctx=512, draft_path=str(EMBER_DRAFT), draft_depth=depth) as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=33, sampling=SamplingParams(temperature=0, ignore_eos=True))
        ledger = run(engine)
        assert engine.speculator is not None
        stats = engine.speculator.stats
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert [receipt.n_generated for receipt in receipts] == [33] * len(PROMPTS)
    assert sum(receipt.n_drafted for receipt in receipts) == stats.n_drafted
    assert sum(receipt.n_accepted for receipt in receipts) == stats.n_accepted
    assert sum(stats.accepted_at) == stats.n_accepted
    assert sum(stats.drafted_at) == stats.n_drafted
    assert all(low >= high for low, high in zip(stats.accepted_at, stats.accepted_at[1:], strict=False))


def test_stops_inside_an_accepted_run_end_the_text_there(plain: Engine) -> None:
    text = "Once upon a time, there was a happy fox"
    with open_engine(n_slots=2, n_ctx=512, draft_path=str(EMBER), draft_depth=8, speculation="draft") as engine:
        stopped, ended, _ = complete(engine, max_tokens=60, stop=("happy",))
        assert (stopped, ended.reason) == (text.removesuffix("happy fox"), FinishReason.STOP)
        _, ended, _ = complete(engine, max_tokens=7)
        assert ended.receipt.n_generated == 7
        answer, ended, _ = complete(engine, chat("Who are you?"), max_tokens=200)
        assert ended.reason is FinishReason.STOP
    assert answer == complete(plain, chat("Who are you?"), max_tokens=200)[0]


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "stop"),
    [(ONCE, 60, ("happy",)), (ONCE, 60, ("re was",)), (ONCE, 7, ()), (ONCE, 18, ()), (chat("Who are you?"), 200, ())],
)
def test_what_is_counted_adds_up_wherever_a_text_ends(prompt: str, max_tokens: int, stop: tuple[str, ...]) -> None:
    """With a draft that is always right: a text that ends inside a run has no token of the target's own behind it."""
    with open_engine(n_ctx=512, draft_path=str(EMBER), draft_depth=8, speculation="draft") as engine:
        _, ended, _ = complete(engine, prompt, max_tokens=max_tokens, stop=stop)
        assert engine.speculator is not None
        stats, receipt = engine.speculator.stats, ended.receipt
        n_plain_steps = engine.n_steps - stats.drafted_at[0]
    has_end = ended.reason is FinishReason.STOP and not ended.stop
    assert stats.n_accepted + stats.n_bonus + n_plain_steps == receipt.n_generated + has_end
    assert (sum(stats.drafted_at), sum(stats.accepted_at)) == (receipt.n_drafted, receipt.n_accepted)
    assert receipt.n_right <= receipt.n_judged


def test_tokens_behind_the_end_of_a_text_teach_nothing() -> None:
    """They were neither right nor wrong: nobody has asked the target about them."""
    with open_engine(n_ctx=512, draft_path=str(EMBER), draft_depth=8, speculation="draft") as engine:
        for stop in ("time", "there", "was"):
            _, ended, _ = complete(engine, ONCE, max_tokens=60, stop=(stop,))
            receipt = ended.receipt
            assert ended.reason is FinishReason.STOP
            assert receipt.n_drafted > receipt.n_accepted, "the run went on behind the end"
            assert receipt.n_right == receipt.n_judged, "the draft is the model itself: what was judged was right"


def test_a_cancel_between_drafted_steps_leaves_the_cache_right(plain: Engine) -> None:
    with open_engine(n_slots=3, n_ctx=512, draft_path=str(EMBER_DRAFT), draft_depth=5, speculation="draft") as engine:
        endless = SamplingParams(temperature=0, ignore_eos=True)
        cancel_between_steps(engine, PROMPTS, range(1, 8), max_tokens=40, sampling=endless)
        _, _, found = complete(engine, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(found, "only"), expected(plain, FOX, 40))


def test_drafts_give_way_when_the_cache_is_full() -> None:
    with open_engine(
        n_slots=6, n_ctx=256, n_cells=256, draft_path=str(EMBER_DRAFT), draft_depth=6, speculation="draft"
    ) as engine:
        for index in range(6):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=120)
        ledger = run(engine)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


def test_a_useless_proposer_is_soon_left_alone(drafting: Engine) -> None:
    speculator = use_proposer(drafting, RandomProposer(4096))
    speculator.cost = CostModel(Calibration({1: 0.010, 2: 0.014, 4: 0.02, 64: 0.2}))  # rows cost, whatever else runs
    for _ in range(3):
        complete(drafting, max_tokens=100, sampling=SamplingParams(temperature=0, ignore_eos=True))
    assert speculator.stats.n_drafted < 30, "of 300 tokens"


def test_a_draft_of_another_vocabulary_is_refused_with_the_reason() -> None:
    other = gguf_factory.cached(gguf_factory.Recipe(n_vocab=20_000))
    options = EngineOptions(str(other), draft_path=str(EMBER))
    with pytest.raises(LoadFailed, match=r"cannot draft for .* It has 4,096 tokens and the model 20,000"):
        load(options)


def short_text(engine: Engine) -> tuple[str, list[int], list[tuple[int, float]]]:
    """Return a prompt whose reply ends on its own, its tokens with some that follow the end, and the reply."""
    prompt = chat("Repeat this: One windy day, Zoe walked to the garden all alone.")
    _, ended, ledger = complete(engine, prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
    assert ended.reason is FinishReason.STOP
    reply = greedy_tokens(ledger, "only")
    before = engine.tokenize(Request("prompt", prompt)).tolist()
    return prompt, [*before, *[token for token, _ in reply], min(engine.vocab.end_tokens), *[5] * 20], reply


@pytest.mark.parametrize("depth", [3, 12, None])
def test_nothing_is_drafted_beyond_the_end_of_a_text(plain: Engine, drafting: Engine, depth: int | None) -> None:
    prompt, text, reply = short_text(plain)
    speculator = use_proposer(drafting, OracleProposer(4096, text, wrong_every=10_000), depth)
    price(drafting, {1: 0.01, 64: 0.0101})  # drafts are worth it
    _, _, ledger = complete(drafting, prompt, max_tokens=60, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), reply)
    assert speculator.stats.n_drafted == speculator.stats.n_accepted > 5


def test_a_proposer_that_sees_the_end_everywhere_changes_no_text_and_is_found_out(
    plain: Engine, drafting: Engine
) -> None:
    class Pessimist(RandomProposer):
        def extend(self, chains: list[DraftChain]) -> list[ProposedToken | None]:
            return [ProposedToken(min(plain.vocab.end_tokens), 0) for _ in chains]

    proposer = Pessimist(4096)
    before = proposer.table.rate(0)
    speculator = use_proposer(drafting, proposer)
    price(drafting, {1: 0.01, 64: 0.0101})  # drafts are worth a try
    _, _, ledger = complete(drafting, FOX, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(plain, FOX, 30))
    assert speculator.stats.n_drafted == 0
    assert proposer.table.rate(0) < 0.6 * before
