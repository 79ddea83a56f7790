"""The laws of speculation, on real models: the same distribution, the same text, counts that add up, a sound cache.

They hold whoever drafts: anybody at all, a small model, heads of each kind, and heads of models with a recurrent state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.engine.engine import Engine
from core.kv_cache.memory import RecurrentMemory
from core.speculation.proposers.proposer import DraftChain, ProposedToken
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed
from core.values.messages import FinishReason
from core.values.request import Request, SamplingParams
from tests.support.chi_square import assert_same_distribution, third_tokens
from tests.support.engines import Ledger, complete, load, open_engine, run, submit
from tests.support.heads import (
    COUNTING,
    HYBRIDS,
    KINDS,
    Recorder,
    Setting,
    counting,
    following,
    head_of,
    hybrid,
    random_head,
    says_at_once,
    use,
)
from tests.support.interruptions import break_off_verifications, cancel_between_steps
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, expected, greedy, greedy_tokens
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, FOX, PROMPTS, chat
from tests.support.proposers import OracleProposer, RandomProposer, price, use_proposer
from tools.model_factory import gguf_factory, head_factory

# Of the first words of this story, two are nearly as good as each other.
ONCE = FOX + "Once"


# A target with who drafts for it, and what the target says to each prompt without drafts: both by who drafts.
Find = Callable[[str], Setting]
Said = Callable[[str], dict[str, list[tuple[int, float]]]]
# One that is often right of each kind, and others that know nothing.
DRAFTERS = ("draft model", *KINDS, "qwen35", "qwen3next")
RANDOM = tuple(f"{name} random" for name in DRAFTERS[1:])
OTHER_HYBRIDS = tuple(name for name in HYBRIDS if name not in DRAFTERS)
EVERYBODY = (*DRAFTERS, *RANDOM, "perfect model", *OTHER_HYBRIDS)


@pytest.fixture(scope="module")
def plain() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512, speculation="off") as engine:
        yield engine


@pytest.fixture(scope="module")
def setting(plain: Engine, tmp_path_factory: pytest.TempPathFactory) -> Find:
    """Returns a target with who drafts for it, by name."""
    folder = tmp_path_factory.mktemp("heads")

    @cache
    def continuations() -> list[list[int]]:
        """The prompts with what Ember makes of them."""
        return [
            [*plain.vocab.tokenize(prompt).tolist(), *(token for token, _ in expected(plain, prompt, 40))]
            for prompt in PROMPTS
        ]

    @cache
    def make(name: str) -> Setting:
        kind = name.removesuffix(" random")
        if kind in HYBRIDS:
            return hybrid(kind, "counts" if kind == name else "random")
        if kind != name:
            return random_head(kind)
        match name:
            case "draft model":
                return Setting(EMBER, {"draft_path": str(EMBER_DRAFT)})
            case "perfect model":
                return Setting(EMBER, {"draft_path": str(EMBER)})
            case "mtp":
                return Setting(head_factory.mtp_ember(folder / "mtp.gguf", following(continuations(), 1)), {})
            case "eagle3":
                head = head_factory.eagle_head(folder / "eagle.gguf", "table", following(continuations(), 2))
            case _:
                head = head_factory.dflash_head(folder / "dflash.gguf", "table", following(continuations(), 1))
        return Setting(EMBER, {"draft_path": str(head)})

    return make


@pytest.fixture(scope="module")
def said(plain: Engine) -> Said:
    """Returns what a target says to each prompt without drafts, by who drafts for it; heads make no difference."""

    @cache
    def by_target(name: str) -> dict[str, list[tuple[int, float]]]:
        if name not in HYBRIDS:
            return {prompt: expected(plain, prompt, 40) for prompt in PROMPTS}
        with open_engine(hybrid(name).path, n_slots=4, n_ctx=512, speculation="off") as engine:
            found = {prompt: expected(engine, prompt, 40) for prompt in PROMPTS}
        assert all(len({token for token, _ in text}) > 20 for text in found.values()), "they would show a wrong state"
        return found

    return lambda name: by_target(name.removesuffix(" random"))


SEEDED = [SamplingParams(seed=seed, temperature=0.9, repeat_penalty=1.1) for seed in range(6)]


def seeded_texts(engine: Engine) -> list[str]:
    for index, sampling in enumerate(SEEDED):
        submit(engine, str(index), FOX, max_tokens=25, sampling=sampling)
    ledger = run(engine)
    return [ledger.text[str(index)] for index in range(len(SEEDED))]


@pytest.fixture(scope="module")
def seeded(plain: Engine) -> Callable[[str], list[str]]:
    """Returns what a target says with each of some seeds without drafts, by who drafts for it."""

    @cache
    def by_target(name: str) -> list[str]:
        if name not in HYBRIDS:
            return seeded_texts(plain)
        with open_engine(hybrid(name).path, n_slots=4, n_ctx=512, speculation="off") as engine:
            return seeded_texts(engine)

    return lambda name: by_target(name.removesuffix(" random"))


# -- whoever drafts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "depth"),
    [*((name, 4) for name in EVERYBODY), *((name, None) for name in ("draft model", "mtp", "qwen3next"))],
)
def test_at_temperature_0_drafts_change_no_text_and_counts_add_up(
    setting: Find, said: Said, name: str, depth: int | None
) -> None:
    with use(setting(name), draft_depth=depth) as engine:
        if depth is None:
            price(engine, {1: 0.010, 8: 0.012, 64: 0.030}, 0.001)  # drafts are worth it
        if (kind := name.removesuffix(" random")) in HYBRIDS:
            assert type(engine.slots.memory) is HYBRIDS[kind]
        for prompt in PROMPTS:
            submit(engine, prompt, prompt, max_tokens=28, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
        assert engine.speculator is not None
        stats = engine.speculator.stats
    for prompt, wanted in said(name).items():
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, prompt), wanted[:28])
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert sum(receipt.n_drafted for receipt in receipts) == sum(stats.drafted_at)
    assert sum(receipt.n_accepted for receipt in receipts) == sum(stats.accepted_at)
    assert all(low >= high for low, high in pairwise(stats.accepted_at))
    assert sum(stats.drafted_at) > 70
    assert (stats.accepted_at[0] > 0.2 * stats.drafted_at[0]) is not name.endswith(" random")


@pytest.mark.parametrize("name", [*DRAFTERS, "mtp random", "qwen3next random"])
def test_drafted_and_sampled_with_one_seed_the_text_is_the_same(
    setting: Find, seeded: Callable[[str], list[str]], name: str
) -> None:
    with use(setting(name), draft_depth=3) as engine:
        found = seeded_texts(engine)
        assert engine.speculator is not None
        assert sum(engine.speculator.stats.drafted_at) > 50
    assert len(set(seeded(name))) > 3, "seeds must differ"
    same = sum(one == other for one, other in zip(found, seeded(name), strict=True))
    assert same >= len(SEEDED) - 1, "only rounding at near-ties may change a seeded text"


@pytest.mark.parametrize(("name", "depth"), [*((name, 3) for name in DRAFTERS), ("draft model", None)])
def test_each_step_gives_a_token_beside_those_accepted_and_turns_without_drafts_change_nothing(
    setting: Find, said: Said, name: str, depth: int | None
) -> None:
    """Also a step that replays rows."""
    with use(setting(name), n_slots=1, draft_depth=depth) as engine:
        if depth is None:
            price(engine, {1: 0.010, 8: 0.012, 64: 0.030}, 0.001)  # drafts are worth it
        _, ended, _ = complete(engine, max_tokens=50, sampling=ENDLESS)
        # The prompt of a hybrid is read in two steps: a little before its end its state is kept for the next turn.
        n_steps = engine.stats.n_steps - (name in HYBRIDS)
        assert n_steps + ended.receipt.n_accepted == ended.receipt.n_generated == 50
        assert 0 < ended.receipt.n_accepted < ended.receipt.n_drafted
        engine.forget_texts()
        for turn, speculates in enumerate((False, True, False, True, True)):
            if turn == 4:
                engine.forget_texts()
            tokens, ended = greedy(engine, max_tokens=20, speculates=speculates)
            assert_same_up_to_a_near_tie(tokens, said(name)[FOX][:20])
            assert (ended.receipt.n_drafted > 0) is speculates


@pytest.mark.parametrize("name", DRAFTERS)
def test_steps_that_are_broken_off_or_cancelled_leave_the_text_as_it_was(setting: Find, said: Said, name: str) -> None:
    with use(setting(name), n_slots=3, draft_depth=5) as engine:
        for prompt in PROMPTS[:2]:
            submit(engine, prompt, prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = break_off_verifications(engine)
        engine.forget_texts()
        cancel_between_steps(engine, PROMPTS, (2, 5), max_tokens=32, sampling=ENDLESS)
        found, _ = greedy(engine, max_tokens=28)
    for prompt in PROMPTS[:2]:
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, prompt), said(name)[prompt])
    assert_same_up_to_a_near_tie(found, said(name)[FOX][:28])


@pytest.mark.parametrize("name", [name for name, memory in HYBRIDS.items() if memory is RecurrentMemory])
def test_short_prompts_beside_drafts_leave_the_state_right(setting: Find, said: Said, name: str) -> None:
    """For two of them llama.cpp moves the state of a slot between theirs, but not what a rejection goes back to."""
    with use(setting(name), n_slots=3, draft_depth=4, cache_ram=0) as engine:
        for slot in range(3):
            complete(engine, (700 + slot,), max_tokens=1, slot=slot)
        submit(engine, "told", FOX, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS, slot=1)
        ledger = Ledger()
        while "told" not in ledger.ended:
            ledger.add(engine.step())
            for slot in (0, 2) if len(engine.scheduler.running) == 1 and engine.stats.n_steps % 2 else ():
                submit(engine, f"{engine.stats.n_steps} {slot}", (500,), max_tokens=1, slot=slot)
        run(engine, ledger)
        assert ledger.ended["told"].receipt.n_accepted < ledger.ended["told"].receipt.n_drafted
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "told"), said(name)[FOX])


@pytest.mark.parametrize("name", DRAFTERS)
def test_drafts_give_way_when_the_cache_is_full(setting: Find, name: str) -> None:
    with use(setting(name), n_slots=6, n_ctx=256, n_cells=256, draft_depth=6) as engine:
        for index in range(6):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=50)
        ledger = run(engine)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


@pytest.mark.parametrize("name", RANDOM)
def test_a_head_says_the_same_after_many_steps_as_when_it_reads_the_text_at_once(setting: Find, name: str) -> None:
    """Catching up, rejected drafts, shared batches, new turns: none of it may leave a trace in the head's cache.

    Rows that are replayed hand out their states twice, and steps of many requests theirs in another order.
    """
    with use(setting(name), n_slots=3, draft_depth=3, cache_ram=0) as engine:  # a text that comes back has no states
        recorder = Recorder(head_of(engine))
        for turn in range(2):
            for index, prompt in enumerate(PROMPTS):
                submit(engine, f"{turn} {index}", prompt + " Then" * turn, max_tokens=14, sampling=ENDLESS)
            run(engine)
        judged = recorder.seen[:: max(len(recorder.seen) // 20, 1)]
        agreed = [token == says_at_once(engine, recorder, text) for text, token in judged]
    assert len(agreed) >= 20
    assert sum(agreed) >= 0.9 * len(agreed), "only rounding at near-ties may change what a head says"


@pytest.mark.parametrize("name", [*KINDS, "qwen35", "qwen3next"])
def test_a_head_that_pays_is_used_by_itself(name: str) -> None:
    n_accepted = 0
    with use(hybrid(name) if name in HYBRIDS else counting(name, step=0), n_slots=1) as engine:
        price(engine, {1: 0.010, 8: 0.012, 64: 0.030}, 0.001)
        for turn in range(2):
            prompt = tuple(token + 300 * turn for token in COUNTING)
            n_accepted += complete(engine, prompt, max_tokens=120, sampling=ENDLESS)[1].receipt.n_accepted
    assert n_accepted > 80, "of 240 tokens"


@pytest.mark.parametrize("name", RANDOM)
def test_a_useless_head_is_soon_left_alone(setting: Find, name: str) -> None:
    with use(setting(name)) as engine:
        speculator = price(engine, {1: 0.010, 2: 0.014, 4: 0.02, 64: 0.2}, 0.001, credit=0.02)
        for _ in range(3):
            complete(engine, max_tokens=100, sampling=ENDLESS)
        assert speculator.stats.drafted_at[0] < 45, "of 300 tokens"


# -- anybody at all ----------------------------------------------------------------------------------------------


@pytest.fixture
def drafting() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512) as engine:
        yield engine


def test_a_perfect_draft_is_nearly_always_accepted_also_when_sampling() -> None:
    sampling = SamplingParams(temperature=0.8, seed=11)
    with open_engine(n_slots=2, n_ctx=512, draft_path=str(EMBER), draft_depth=4, speculation="draft") as engine:
        _, ended, _ = complete(engine, max_tokens=60, sampling=sampling)
    assert ended.receipt.n_accepted > 0.9 * ended.receipt.n_drafted > 20


N_SEEDS = 500


@cache
def third_tokens_without_drafts(target: Path) -> Counter[str]:
    with open_engine(target, n_slots=16, n_ctx=128, speculation="off") as engine:
        return third_tokens(engine, range(N_SEEDS))


@pytest.mark.slow
@pytest.mark.parametrize("proposer", ["random", "model", "lookup"])
def test_sampled_tokens_are_distributed_as_without_drafts(proposer: str) -> None:
    """Chi-square over many seeds, of the third token after a fixed prompt: drafts must not favour anything."""
    options: dict[str, Any] = {"draft_depth": 3}
    if proposer == "model":
        options |= {"draft_path": str(EMBER_DRAFT), "speculation": "draft"}
    # A random proposer is as wrong for the smallest model as for any, and what others have said can be looked up there.
    target = EMBER if proposer == "model" else EMBER_DRAFT
    with open_engine(target, n_slots=16, n_ctx=128, **options) as engine:
        if proposer == "random":
            use_proposer(engine, RandomProposer(4096), 3)
        found = third_tokens(engine, range(10_000, 10_000 + N_SEEDS))
        assert engine.speculator is not None
        assert sum(engine.speculator.stats.drafted_at) > N_SEEDS
    assert_same_distribution(found, third_tokens_without_drafts(target))


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
        n_steps = engine.stats.n_steps
    has_end = ended.reason is FinishReason.STOP and not ended.stop
    # Each step gives a token of the target's own beside the accepted ones, but the last one may end with an accepted.
    assert sum(stats.accepted_at) + n_steps - (receipt.n_generated + has_end) in (0, 1)
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


def test_a_draft_of_another_vocabulary_is_refused_with_the_reason() -> None:
    other = gguf_factory.cached(gguf_factory.Recipe(n_vocab=20_000))
    options = EngineOptions(str(other), draft_path=str(EMBER))
    with pytest.raises(LoadFailed, match=r"cannot draft for .* It has 4,096 tokens and the model 20,000"):
        load(options)


def short_text(engine: Engine) -> tuple[str, list[int], list[tuple[int, float]]]:
    """Return a prompt whose reply ends on its own, its tokens with some that follow the end, and the reply."""
    prompt = chat("Repeat this: One windy day, Zoe walked to the garden all alone.")
    reply, ended = greedy(engine, prompt, max_tokens=60)
    assert ended.reason is FinishReason.STOP
    before = engine.tokenize(Request("prompt", prompt)).tolist()
    return prompt, [*before, *[token for token, _ in reply], min(engine.vocab.end_tokens), *[5] * 20], reply


@pytest.mark.parametrize("depth", [3, 12, None])
def test_nothing_is_drafted_beyond_the_end_of_a_text(plain: Engine, drafting: Engine, depth: int | None) -> None:
    prompt, text, reply = short_text(plain)
    speculator = use_proposer(drafting, OracleProposer(4096, text, wrong_every=10_000), depth)
    price(drafting, {1: 0.01, 64: 0.0101})  # drafts are worth it
    tokens, _ = greedy(drafting, prompt, max_tokens=60)
    assert_same_up_to_a_near_tie(tokens, reply)
    assert sum(speculator.stats.drafted_at) == sum(speculator.stats.accepted_at) > 5


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
    tokens, _ = greedy(drafting, FOX, max_tokens=30)
    assert_same_up_to_a_near_tie(tokens, expected(plain, FOX, 30))
    assert sum(speculator.stats.drafted_at) == 0
    assert proposer.table.rate(0) < 0.6 * before
