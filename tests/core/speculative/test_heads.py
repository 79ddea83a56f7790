"""The laws of speculation for heads, on real files: MTP layers inside the model, EAGLE-3 in a file beside it.

Ember in the clothes of GLM-4.5 says what Ember says; a model that counts has heads that are always right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.engine import Engine
from core.errors import LoadFailed
from core.head_loading import why_left_out, why_no_mtp
from core.llama import heads
from core.llama.heads import HeadKind
from core.options import EngineOptions
from core.sampling_params import SamplingParams
from core.speculative.hidden_window import LONGEST_WINDOW
from models.model_facts import read_model
from tests.support import gguf_factory, head_factory
from tests.support.drafters import price
from tests.support.engines import (
    EMBER,
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
from tests.support.heads import Recorder, following, head_of, says_at_once
from tests.support.interruptions import break_off_verifications, cancel_between_steps

PROMPTS = (FOX, chat("Who are you?"), chat("List the planets."), "def add(a, b):\n", chat("Count to five."))
COUNTING = tuple(range(500, 520))
ENDLESS = SamplingParams(temperature=0, ignore_eos=True)


class Setting(NamedTuple):
    """A target and what to load beside it."""

    path: Path
    options: dict[str, Any]


@pytest.fixture(scope="module")
def plain() -> Iterator[Engine]:
    with open_engine(n_slots=4, n_ctx=512, speculation="off") as engine:
        yield engine


@pytest.fixture(scope="module")
def continuations(plain: Engine) -> list[list[int]]:
    """The prompts with what Ember makes of them."""
    texts = []
    for prompt in PROMPTS:
        _, _, ledger = complete(plain, prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        tokens = [token for token, _ in greedy_tokens(ledger, "only")]
        texts.append([*plain.vocab.tokenize(prompt).tolist(), *tokens])
    return texts


@pytest.fixture(scope="module")
def settings(continuations: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Setting]:
    """Ember with heads: of both kinds, one that knows nothing and one that is often right."""
    folder = tmp_path_factory.mktemp("heads")
    random_mtp = gguf_factory.cached_file("mtp-random.gguf", head_factory.mtp_ember)
    random_eagle = gguf_factory.cached_file("eagle-random.gguf", head_factory.eagle_head)
    mtp = head_factory.mtp_ember(folder / "mtp.gguf", following(continuations, 1))
    eagle = head_factory.eagle_head(folder / "eagle.gguf", "table", following(continuations, 2))
    return {
        "mtp random": Setting(random_mtp, {}),
        "mtp": Setting(mtp, {}),
        "eagle3 random": Setting(EMBER, {"draft_path": str(random_eagle)}),
        "eagle3": Setting(EMBER, {"draft_path": str(eagle)}),
    }


HEADS = ("mtp random", "mtp", "eagle3 random", "eagle3")


def use(setting: Setting, **options: Any) -> Any:
    merged = {"n_slots": 4, "n_ctx": 512, "speculation": "draft", **setting.options, **options}
    return open_engine(setting.path, **merged)


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("depth", [4, None])
def test_at_temperature_0_a_head_changes_no_text(
    plain: Engine, settings: dict[str, Setting], kind: str, depth: int | None
) -> None:
    with use(settings[kind], draft_depth=depth) as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
        assert engine._speculator is not None
        stats = engine._speculator.stats
    for index, prompt in enumerate(PROMPTS):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(plain, prompt, 40))
    if depth:
        assert stats.n_drafted > 100
        assert (stats.accepted_at[0] > 0.2 * stats.drafted_at[0]) == (kind in ("mtp", "eagle3"))


def counting(kind: str, n_layers: int = 1, step: int = 1) -> Setting:
    """The model that counts, with a head of ``kind`` that is always right with its first token."""
    if kind == "mtp":
        return Setting(head_factory.cached_mtp_counter(n_layers), {})
    n_layers += 3
    name = f"counter-{n_layers}-{step}.gguf"
    path = gguf_factory.cached_file(name, lambda path: head_factory.counter(path, n_layers, step))
    eagle = gguf_factory.cached_file(
        f"eagle-counter-{step}.gguf", lambda path: head_factory.eagle_head(path, "counter", step=step)
    )
    return Setting(path, {"draft_path": str(eagle)})


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_what_a_perfect_head_drafts_is_accepted(kind: str, temperature: float) -> None:
    sampling = SamplingParams(temperature=temperature, seed=5, ignore_eos=True)
    with use(counting(kind), draft_depth=4 if kind == "mtp" else 1) as engine:
        for index in range(6):
            prompt = tuple(token + 100 * index for token in COUNTING)
            submit(engine, str(index), prompt, max_tokens=40, sampling=sampling)
        ledger = run(engine)
    for ended in ledger.ended.values():
        assert ended.receipt.n_accepted > 0.97 * ended.receipt.n_drafted > 10


def test_a_head_that_knows_fewer_words_drafts_those(tmp_path: Path) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf", "counter", step=0, ids=range(2048))
    setting = Setting(counting("eagle3", step=0).path, {"draft_path": str(head)})
    with use(setting, n_slots=1, draft_depth=3) as engine:
        known = complete(engine, (*COUNTING, 600), max_tokens=40, sampling=ENDLESS)[1].receipt
        unknown = complete(engine, (*COUNTING, 3000), max_tokens=40, sampling=ENDLESS)[1].receipt
    assert known.n_accepted > 0.97 * known.n_drafted > 10
    assert unknown.n_generated == 40
    assert unknown.n_accepted == 0


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_a_head_that_pays_is_used_by_itself(kind: str) -> None:
    n_accepted = 0
    with use(counting(kind, 16, step=0), n_slots=1) as engine:
        price(engine, {1: 0.010, 8: 0.012, 64: 0.030}, 0.001)
        for turn in range(3):
            prompt = tuple(token + 300 * turn for token in COUNTING)
            n_accepted += complete(engine, prompt, max_tokens=120, sampling=ENDLESS)[1].receipt.n_accepted
    assert n_accepted > 100, "of 360 tokens"


@pytest.mark.parametrize("kind", ["mtp random", "eagle3 random"])
def test_a_useless_head_is_soon_left_alone(settings: dict[str, Setting], kind: str) -> None:
    with use(settings[kind], speculation="auto") as engine:
        price(engine, {1: 0.010, 2: 0.014, 4: 0.02, 64: 0.2}, 0.001, credit=0.02)
        for _ in range(3):
            complete(engine, max_tokens=100, sampling=ENDLESS)
        assert engine._speculator.stats.drafted_at[0] < 45, "of 300 tokens"


@pytest.mark.parametrize("kind", HEADS)
def test_drafted_and_sampled_with_one_seed_the_text_is_the_same(
    plain: Engine, settings: dict[str, Setting], kind: str
) -> None:
    same = 0
    with use(settings[kind], n_slots=2, draft_depth=3) as engine:
        for seed in range(5):
            sampling = SamplingParams(seed=seed, temperature=0.9, repeat_penalty=1.1)
            found, wanted = (complete(one, max_tokens=25, sampling=sampling)[0] for one in (engine, plain))
            same += found == wanted
    assert same >= 4, "only rounding at near-ties may change a seeded text"


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("depth", [3, None])
def test_accepted_and_bonus_tokens_add_up(settings: dict[str, Setting], kind: str, depth: int | None) -> None:
    with use(settings[kind], speculation="auto", draft_depth=depth) as engine:
        for index, prompt in enumerate(PROMPTS):
            submit(engine, str(index), prompt, max_tokens=33, sampling=ENDLESS)
        ledger = run(engine)
        assert engine._speculator is not None
        stats = engine._speculator.stats
    receipts = [ended.receipt for ended in ledger.ended.values()]
    assert [receipt.n_generated for receipt in receipts] == [33] * len(PROMPTS)
    assert sum(receipt.n_drafted for receipt in receipts) == stats.n_drafted
    assert sum(receipt.n_accepted for receipt in receipts) == stats.n_accepted == sum(stats.accepted_at)


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
@pytest.mark.parametrize("depth", [3, None])
def test_each_step_gives_a_token_beside_those_accepted(
    settings: dict[str, Setting], kind: str, depth: int | None
) -> None:
    with use(settings[kind], n_slots=1, draft_depth=depth) as engine:
        _, ended, _ = complete(engine, max_tokens=50, sampling=ENDLESS)
        assert engine.stats.n_steps + ended.receipt.n_accepted == ended.receipt.n_generated == 50
    if depth:
        assert 0 < ended.receipt.n_accepted < ended.receipt.n_drafted


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_a_verification_that_is_broken_off_leaves_the_text_as_it_was(
    plain: Engine, settings: dict[str, Setting], kind: str
) -> None:
    with use(settings[kind], n_slots=2, draft_depth=4) as engine:
        for index in range(2):
            submit(engine, str(index), PROMPTS[index], max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
        ledger = break_off_verifications(engine)
    for index in range(2):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(plain, PROMPTS[index], 40))


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_a_turn_without_drafts_leaves_the_next_one_drafted_and_right(
    plain: Engine, settings: dict[str, Setting], kind: str
) -> None:
    with use(settings[kind], n_slots=1, draft_depth=3) as engine:
        drafted = []
        for speculates in (False, True, False, True):
            submit(engine, str(len(drafted)), FOX, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS, speculates=speculates)
            ledger = run(engine)
            name = str(len(drafted))
            assert_same_up_to_a_near_tie(greedy_tokens(ledger, name), expected(plain, FOX, 30))
            drafted.append(ledger.ended[name].receipt.n_drafted > 0)
        engine.forget_texts()
        assert drafted == [False, True, False, True]
        _, ended, ledger = complete(engine, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        assert ended.receipt.n_drafted > 0
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(plain, FOX, 30))


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_a_cancel_between_drafted_steps_leaves_the_cache_right(
    plain: Engine, settings: dict[str, Setting], kind: str
) -> None:
    with use(settings[kind], n_slots=3, draft_depth=5) as engine:
        cancel_between_steps(engine, PROMPTS, range(1, 8, 2), max_tokens=40, sampling=ENDLESS)
        _, _, found = complete(engine, max_tokens=40, sampling=GREEDY_WITH_LOGPROBS)
    assert_same_up_to_a_near_tie(greedy_tokens(found, "only"), expected(plain, FOX, 40))


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_drafts_give_way_when_the_cache_is_full(settings: dict[str, Setting], kind: str) -> None:
    with use(settings[kind], n_slots=6, n_ctx=256, n_cells=256, draft_depth=6) as engine:
        for index in range(6):
            submit(engine, str(index), PROMPTS[index % 5], max_tokens=120)
        ledger = run(engine)
    assert {ended.failure for ended in ledger.ended.values()} == {None}


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_of_what_idle_slots_hold_the_oldest_makes_way(settings: dict[str, Setting], kind: str) -> None:
    """The head has cells for three of these conversations."""
    with use(settings[kind], n_slots=4, n_ctx=512, n_cells=512, draft_depth=3) as engine:
        for animal in ("fox", "bear", "duck", "owl"):
            prompt = chat(f"Tell me a story about a {animal}. " * 15)
            assert complete(engine, prompt, max_tokens=20, sampling=ENDLESS)[1].receipt.n_drafted > 10
        held = [len(lane.read) for lane in head_of(engine)._lanes]
    assert sum(held) < 512
    assert [size > 128 for size in held] == [False, True, True, True]


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_says_the_same_after_many_steps_as_when_it_reads_the_text_at_once(
    settings: dict[str, Setting], kind: str
) -> None:
    """Catching up, rejected drafts, shared batches, new turns: none of it may leave a trace in the head's cache."""
    with use(settings[kind], n_slots=3, draft_depth=3, cache_ram=0) as engine:  # a text that comes back has no states
        recorder = Recorder(head_of(engine))
        for turn in range(2):
            for index, prompt in enumerate(PROMPTS):
                submit(engine, f"{turn} {index}", prompt + " Then" * turn, max_tokens=14, sampling=ENDLESS)
            run(engine)
        judged = recorder.seen[:: max(len(recorder.seen) // 40, 1)]
        agreed = [token == says_at_once(engine, text) for text, token in judged]
    assert len(agreed) >= 30
    assert sum(agreed) >= 0.9 * len(agreed), "only rounding at near-ties may change what a head says"


def test_a_long_prompt_is_read_from_where_its_states_are_kept(plain: Engine, settings: dict[str, Setting]) -> None:
    prompt = chat("Tell me a story about a fox and a bear. " * 60)
    for kind in ("mtp", "eagle3"):
        with use(settings[kind], n_slots=2, n_ctx=1024, draft_depth=3) as engine:
            assert len(engine.vocab.tokenize(prompt)) > LONGEST_WINDOW + 20
            _, ended, ledger = complete(engine, prompt, max_tokens=12, sampling=GREEDY_WITH_LOGPROBS)
        assert ended.receipt.n_drafted > 0
        with open_engine(settings[kind].path, n_slots=2, n_ctx=1024, speculation="off") as engine:
            found, wanted = greedy_tokens(ledger, "only"), expected(engine, prompt, 12)
        assert_same_up_to_a_near_tie(found, wanted)


def test_what_a_head_reads_is_metered() -> None:
    setting = counting("mtp")
    facts = read_model(setting.path)
    with use(setting, n_slots=1, draft_depth=2) as engine:
        _, ended, _ = complete(engine, COUNTING, max_tokens=31, sampling=ENDLESS)
        n_steps = engine.stats.n_steps - 1
    # Three tokens a step: the target reads its weights once for them, the head its own once for each of two rounds.
    per_step = facts.active_weights.read_by(3) + 2 * facts.mtp_weights.read_by(1)
    assert n_steps == 10
    assert ended.receipt.bytes_per_token == pytest.approx(per_step / 3, rel=0.1)


# -- refusals ---------------------------------------------------------------------------------------------------


def refused(options: EngineOptions, words: str) -> None:
    with pytest.raises(LoadFailed, match=words):
        load(options)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"layers": (0, 1, 6)}, "It reads layer 6, and the model has layers 0 to 5"),
        ({"target_width": 512}, "made for a model of width 512, and this one's is 384"),
        ({"n_vocab": 20_000}, "no output of its own and has 20,000 tokens, while the model has 4,096"),
        ({"n_vocab": 20_000, "has_tables": True, "ids": range(4096)}, "has 20,000 tokens and the model 4,096"),
        ({"ids": (1, 2, 3)}, "d2t. does not go with an output of its own"),
        ({"has_tables": True, "ids": (1, 2, 4096)}, "d2t. names tokens that are not among its 4,096"),
        ({"has_tables": True, "ids": (1, -2, 3)}, "d2t. names tokens that are not among its 4,096"),
        ({"changed": {"block_count": 2}}, "An EAGLE-3 head has one layer"),
        ({"changed": {"attention.key_length": 32}}, "keys and values differ in length"),
    ],
)
def test_a_head_for_another_model_is_refused_with_the_reason(tmp_path: Path, made: dict[str, Any], words: str) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf", **made)
    refused(EngineOptions(str(EMBER), draft_path=str(head)), f"head.gguf cannot draft for .*{words}")


@pytest.mark.parametrize("made", [{"left_out": "fc.weight"}, {"layers": (0, 1)}, {"has_tables": True, "n_vocab": 4100}])
def test_a_head_that_is_not_whole_is_refused(tmp_path: Path, made: dict[str, Any]) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf", **made)
    refused(EngineOptions(str(EMBER), draft_path=str(head)), "could not load .*head.gguf")


def test_a_head_that_was_cut_off_or_is_none_is_refused(tmp_path: Path) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf")
    whole = head.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:1000], b"", b"no model at all"):
        head.write_bytes(content)
        refused(EngineOptions(str(EMBER), draft_path=str(head)), "head.gguf")
    refused(EngineOptions(str(EMBER), draft_path=str(tmp_path / "gone.gguf")), "There is no file .*gone.gguf")


def test_a_model_whose_own_head_is_damaged_is_refused(tmp_path: Path) -> None:
    damaged = head_factory.mtp_ember(tmp_path / "damaged.gguf", left_out="nextn.enorm.weight")
    refused(EngineOptions(str(damaged)), "could not load .*damaged.gguf")
    whole = head_factory.mtp_ember(tmp_path / "whole.gguf", left_out="nextn.eh_proj.weight")
    with open_engine(whole, n_ctx=256) as engine:
        assert engine._speculator is not None
        assert engine._speculator._paid == ()


def test_a_head_without_tables_must_have_the_width_of_the_model(tmp_path: Path) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf", target_width=192, layers=(0, 1, 1))
    small = str(gguf_factory.EMBER_DRAFT)
    refused(EngineOptions(small, draft_path=str(head)), "no embeddings of its own and its width is 384, .* is 192")


def test_a_head_beside_an_architecture_that_hides_its_layers_is_refused(settings: dict[str, Setting]) -> None:
    head = settings["eagle3 random"].options["draft_path"]
    refused(EngineOptions(str(settings["mtp"].path), draft_path=head), "hands out no hidden states .* glm4moe")


def test_a_head_is_no_model() -> None:
    path = gguf_factory.cached_file("eagle-random.gguf", head_factory.eagle_head)
    refused(EngineOptions(str(path)), "loaded beside its model")


def test_heads_whose_weights_are_left_out_are_not_asked_for() -> None:
    facts = read_model(counting("mtp").path)
    assert why_no_mtp(facts) is None
    assert "no prediction heads" in (why_no_mtp(replace(facts, n_mtp_layers=0)) or "")
    assert "architecture llama" in (why_no_mtp(replace(facts, architecture="llama")) or "")
    assert "carries 3 prediction heads" in (why_no_mtp(replace(facts, n_mtp_layers=3)) or "")


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_a_library_without_the_functions_says_so_and_drafts_without_heads(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for one, needed in heads._NEEDED.items():
        monkeypatch.setitem(heads._NEEDED, one, dict.fromkeys(needed))
    path, extra = counting(kind, step=0)
    engine, loaded = load(EngineOptions(str(path), n_ctx=512, n_threads=1, draft_depth=3, **extra))
    try:
        (notice,) = loaded.notices
        assert "This build of llama.cpp lacks llama_set_embeddings_nextn" in notice
        assert Path(extra.get("draft_path", path)).name in notice
        speculator = engine._speculator
        assert speculator is not None
        assert [drafter.name for drafter in speculator._drafters] == ["forced", "lookup"]
        _, ended, _ = complete(engine, (7, 8, 9) * 20, max_tokens=30, sampling=ENDLESS)
        assert ended.receipt.n_generated == 30
        assert (ended.receipt.n_accepted > 0) == (kind == "eagle3"), "a model that repeats itself"
    finally:
        engine.close()


def test_a_library_with_the_functions_has_nothing_to_say() -> None:
    assert {kind: heads.why_unavailable(kind) for kind in HeadKind} == dict.fromkeys(HeadKind)
    facts = read_model(counting("mtp").path)
    assert why_left_out(facts, EngineOptions("counter.gguf")) == ()
    several = replace(facts, n_mtp_layers=3)
    (notice,) = why_left_out(several, EngineOptions("several.gguf"))
    assert notice.startswith("The prediction heads of several.gguf are not used. The file carries 3")
    assert why_left_out(several, EngineOptions("several.gguf", speculation="off")) == ()


def test_heads_that_nobody_wants_are_left_alone() -> None:
    path, _ = counting("mtp")
    engine, loaded = load(EngineOptions(str(path), n_ctx=512, n_threads=1, uses_heads=False))
    try:
        assert (loaded.has_heads, loaded.notices) == (False, ())
        speculator = engine._speculator
        assert speculator is not None
        assert [drafter.name for drafter in speculator._drafters] == ["forced", "lookup"]
    finally:
        engine.close()
    several = replace(read_model(path), n_mtp_layers=3)
    assert why_left_out(several, EngineOptions("several.gguf", uses_heads=False)) == ()


@pytest.mark.parametrize("kind", ["mtp", "eagle3"])
def test_what_became_of_a_heads_guesses_is_counted(kind: str) -> None:
    path, extra = counting(kind)
    engine, loaded = load(EngineOptions(str(path), n_ctx=512, n_threads=1, draft_depth=1, **extra))
    try:
        assert loaded.has_heads == (kind == "mtp")
        _, ended, _ = complete(engine, COUNTING, max_tokens=30, sampling=ENDLESS)
        receipt = ended.receipt
        assert receipt.n_judged >= receipt.n_drafted > 5
        assert receipt.n_right == receipt.n_judged, "the head is always right with its first token"
    finally:
        engine.close()


def test_off_means_off() -> None:
    with use(counting("mtp"), speculation="off") as engine:
        assert engine._speculator is None
        assert complete(engine, COUNTING, max_tokens=5)[1].receipt.n_drafted == 0
