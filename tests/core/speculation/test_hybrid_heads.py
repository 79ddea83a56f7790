"""The laws of speculation for prediction heads of hybrids, whose running state must be taken back too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.engine.engine import Engine
from core.kv_cache.memory import CheckpointMemory, RecurrentMemory
from core.loading.load_heads import why_no_mtp
from core.scheduler.planner import StepPlan
from core.values.messages import RequestEvent
from core.values.request import SamplingParams
from models.facts.model_facts import read_model
from tests.support.engines import (
    FOX,
    GREEDY_WITH_LOGPROBS,
    Ledger,
    assert_same_up_to_a_near_tie,
    chat,
    complete,
    greedy_tokens,
    open_engine,
    run,
    submit,
)
from tests.support.heads import Recorder, head_of, says_at_once
from tests.support.interruptions import break_off_verifications, cancel_between_steps
from tests.support.proposers import price
from tools.model_factory import gguf_factory, hybrid_factory

PROMPTS = (FOX, chat("Who are you?"), "def add(a, b):\n", chat("Count to five."), "Hello hello")
ENDLESS = SamplingParams(temperature=0, ignore_eos=True)
# By architecture, the way back from rejected drafts: llama.cpp keeps snapshots of some states.
WAYS: dict[str, type] = {
    "qwen35": RecurrentMemory,
    "qwen35moe": RecurrentMemory,
    "nemotron_h_moe": RecurrentMemory,
    "bailingmoe3": RecurrentMemory,
    "qwen3next": CheckpointMemory,
}
BOTH_WAYS = ("qwen35", "qwen3next")
HEADS = ("counts", "random")

Runs = dict[str, list[list[tuple[int, float]]]]


def model(architecture: str, head: str = "counts") -> Path:
    make: Callable[..., Path] = getattr(hybrid_factory, architecture)
    return gguf_factory.cached_file(f"hybrid-{architecture}-{head}.gguf", lambda path: make(path, head))


@contextmanager
def use(architecture: str, head: str = "counts", **options: Any) -> Iterator[Engine]:
    merged = {"n_slots": 4, "n_ctx": 512, "speculation": "draft", **options}
    with open_engine(model(architecture, head), **merged) as engine:
        assert head_of(engine).name == "mtp"
        yield engine


@pytest.fixture(scope="module")
def plain() -> Runs:
    """What the models say without drafts; whether their heads know anything makes no difference."""
    found = {}
    for architecture in WAYS:
        with open_engine(model(architecture), n_slots=4, n_ctx=512, speculation="off") as engine:
            runs = [complete(engine, prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)[2] for prompt in PROMPTS]
        found[architecture] = [greedy_tokens(ledger, "only") for ledger in runs]
    return found


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("architecture", WAYS)
def test_at_temperature_0_a_head_changes_no_text(plain: Runs, architecture: str, head: str) -> None:
    with use(architecture, head, draft_depth=4) as engine:
        assert type(engine.slots.memory) is WAYS[architecture]
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
        assert engine.speculator is not None
        stats = engine.speculator.stats
    for index, wanted in enumerate(plain[architecture]):
        assert len({token for token, _ in wanted}) > 20, "a text that would show a wrong state"
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), wanted)
    assert stats.n_drafted > 200
    assert (stats.accepted_at[0] > 0.3 * stats.drafted_at[0]) == (head == "counts")


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_drafted_and_sampled_with_one_seed_the_text_is_the_same(architecture: str, head: str) -> None:
    def texts(engine: Engine) -> list[str]:
        ledger = Ledger()
        for seed in range(8):
            sampling = SamplingParams(seed=seed, temperature=0.9, repeat_penalty=1.1)
            submit(engine, str(seed), FOX, max_tokens=20, sampling=sampling)
        run(engine, ledger)
        return [ledger.text[str(seed)] for seed in range(8)]

    with open_engine(model(architecture), n_slots=4, n_ctx=512, speculation="off") as engine:
        wanted = texts(engine)
    with use(architecture, head, draft_depth=3) as engine:
        found = texts(engine)
        assert engine.stats.n_drafted > 100
    assert len(set(wanted)) > 4, "seeds must differ"
    assert sum(a == b for a, b in zip(found, wanted, strict=True)) >= 7, "but for rounding at near-ties"


@pytest.mark.parametrize("architecture", BOTH_WAYS)
@pytest.mark.parametrize("depth", [3, None])
def test_accepted_and_bonus_tokens_add_up(architecture: str, depth: int | None) -> None:
    with use(architecture, speculation="auto", draft_depth=depth) as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=33, sampling=ENDLESS)
        ledger = run(engine)
        assert engine.speculator is not None
        stats = engine.speculator.stats
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert [receipt.n_generated for receipt in receipts] == [33] * len(PROMPTS)
    assert sum(receipt.n_drafted for receipt in receipts) == stats.n_drafted
    assert sum(receipt.n_accepted for receipt in receipts) == stats.n_accepted == sum(stats.accepted_at)


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_each_step_gives_a_token_beside_those_accepted(architecture: str) -> None:
    """Also one that replays rows."""
    with use(architecture, n_slots=1, draft_depth=3) as engine:
        _, ended, _ = complete(engine, max_tokens=50, sampling=ENDLESS)
        # The prompt is read in two steps: a little before its end its state is kept for the next turn.
        assert engine.stats.n_steps - 1 + ended.receipt.n_accepted == ended.receipt.n_generated == 50
    assert 0 < ended.receipt.n_accepted < ended.receipt.n_drafted


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_a_verification_that_is_broken_off_leaves_the_text_as_it_was(plain: Runs, architecture: str) -> None:
    with use(architecture, n_slots=2, draft_depth=4) as engine:
        for index in range(2):
            submit(engine, str(index), PROMPTS[index], max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = break_off_verifications(engine)
    for index in range(2):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), plain[architecture][index])


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_a_cancel_between_drafted_steps_leaves_state_and_cache_right(plain: Runs, architecture: str) -> None:
    with use(architecture, n_slots=3, draft_depth=4) as engine:
        cancel_between_steps(engine, PROMPTS, range(1, 8, 2), max_tokens=40, sampling=ENDLESS)
        _, _, found = complete(engine, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(found, "only"), plain[architecture][0])


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_drafts_give_way_when_the_cache_is_full(architecture: str) -> None:
    with use(architecture, n_slots=6, n_ctx=256, n_cells=256, draft_depth=4) as engine:
        for index in range(6):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=100)
        ledger = run(engine)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_turns_with_and_without_drafts_follow_each_other(plain: Runs, architecture: str) -> None:
    """The states of a turn without drafts are not kept for the head: the next one begins with those it gets."""
    with use(architecture, n_slots=1, draft_depth=3) as engine:
        for index, speculates in enumerate((False, True, False, True)):
            submit(engine, str(index), FOX, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS, speculates=speculates)
            ledger = run(engine)
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), plain[architecture][0])
            assert (ledger.ended[str(index)].receipt.n_drafted > 0) is speculates


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_a_head_says_the_same_after_many_steps_as_when_it_reads_the_text_at_once(architecture: str) -> None:
    """Rows that are replayed hand out their states twice, and steps of many requests theirs in another order."""
    with use(architecture, "random", n_slots=3, draft_depth=3, cache_ram=0) as engine:
        recorder = Recorder(head_of(engine))
        for turn in range(2):
            for index, prompt in enumerate(PROMPTS):
                submit(engine, f"{turn} {index}", prompt + " Then" * turn, max_tokens=14, sampling=ENDLESS)
            run(engine)
        judged = recorder.seen[:: max(len(recorder.seen) // 40, 1)]
        agreed = [token == says_at_once(engine, text) for text, token in judged]
    assert len(agreed) >= 30
    assert sum(agreed) >= 0.9 * len(agreed), "only rounding at near-ties may change what a head says"


def priced(engine: Engine, **options: float) -> Engine:
    """Let drafting be decided by the times of a larger model: steps of this one are hardly longer than the deciding."""
    price(engine, {1: 0.010, 2: 0.012, 4: 0.016, 16: 0.040}, 0.001, **options)
    return engine


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_a_useless_head_is_soon_left_alone(architecture: str) -> None:
    with use(architecture, "random", speculation="draft") as engine:
        priced(engine, credit=0.02)
        for _ in range(3):
            complete(engine, max_tokens=100, sampling=ENDLESS)
        assert engine.speculator is not None
        assert engine.speculator.stats.drafted_at[0] < 45, "of 300 tokens"


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_a_head_that_pays_is_used_by_itself(architecture: str) -> None:
    with use(architecture, speculation="auto") as engine:
        priced(engine)
        _, ended, _ = complete(engine, max_tokens=120, sampling=ENDLESS)
    assert ended.receipt.n_accepted > 40, "of 120 tokens"


@pytest.mark.parametrize("architecture", BOTH_WAYS)
def test_side_by_side_all_draft_equally_many_or_none(architecture: str) -> None:
    """llama.cpp evaluates requests of such models one after the other where their rows differ in number."""
    drafted: list[list[int]] = []
    with use(architecture, speculation="auto") as engine:
        price(engine, {1: 0.010, 2: 0.0102, 4: 0.0105, 16: 0.012}, 0.001)  # rows are cheap
        decode = engine.runner.run

        def noting(todo: StepPlan, events: list[RequestEvent]) -> StepPlan:
            drafted.append([len(share.draft) for share in todo])
            return decode(todo, events)

        engine.runner.run = noting  # type: ignore[method-assign]
        for index in range(3):
            submit(
                engine, str(index), tuple(range(500 + 300 * index, 520 + 300 * index)), max_tokens=60, sampling=ENDLESS
            )
        ledger = run(engine)
    assert {ended.receipt.n_generated for ended in ledger.ended.values()} == {60}
    together = [lengths for lengths in drafted if len(lengths) == 3]
    assert {len(set(lengths)) for lengths in together} == {1}
    assert sum(lengths[0] > 0 for lengths in together) > 5, "the head counts, and so do the texts"


def test_off_means_off() -> None:
    with open_engine(model("qwen35"), n_slots=1, n_ctx=256, speculation="off") as engine:
        assert engine.speculator is None
        assert complete(engine, max_tokens=5)[1].receipt.n_drafted == 0


def test_only_what_llama_cpp_cannot_run_is_refused() -> None:
    facts = {architecture: read_model(model(architecture)) for architecture in WAYS}
    assert {architecture: why_no_mtp(each) for architecture, each in facts.items()} == dict.fromkeys(WAYS)
    assert all(each.state_elements for each in facts.values())
    reason = why_no_mtp(replace(facts["qwen35"], architecture="glm5-next"))
    assert reason == "llama.cpp has no graph for the prediction heads of the architecture glm5-next."
