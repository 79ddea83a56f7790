"""Heads on real files: MTP layers in the model, EAGLE-3 and DFlash in a file beside it. Their laws: ``test_laws.py``.

Ember in the clothes of GLM-4.5 says what Ember says; a model that counts has heads that are always right.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.cost.cost_model import Calibration, CostModel
from core.engine.engine import Engine
from core.llama import heads
from core.llama.context import Batch, Context, DecodeStatus
from core.loading.load_drafts import why_left_out
from core.loading.memory_fit import why_no_mtp_here
from core.scheduler.planner import StepPlan
from core.speculation.proposers.context_proposer import LONGEST_WINDOW, PRIORS
from core.speculation.proposers.proposer import DraftChain, ProposedToken
from core.values.engine_options import EngineOptions
from core.values.errors import LoadFailed
from core.values.messages import RequestEvent
from core.values.request import SamplingParams
from models.facts.model_facts import read_model
from models.pairing import heads as rules
from tests.support.engines import complete, load, open_engine, run, submit
from tests.support.heads import (
    COUNTING,
    HYBRIDS,
    KINDS,
    Recorder,
    Setting,
    counting,
    head_of,
    hybrid,
    random_head,
    says_at_once,
    use,
)
from tests.support.near_ties import assert_same_up_to_a_near_tie, expected, greedy
from tests.support.prompts import EMBER, ENDLESS, PROMPTS, chat
from tests.support.proposers import price
from tools.model_factory import gguf_factory, head_factory

MAKERS = {"eagle3": head_factory.eagle_head, "dflash": head_factory.dflash_head}


@pytest.mark.parametrize(("kind", "temperature"), [*((kind, 1.0) for kind in KINDS), ("mtp", 0.0)])
def test_what_a_perfect_head_drafts_is_accepted(kind: str, temperature: float) -> None:
    sampling = SamplingParams(temperature=temperature, seed=5, ignore_eos=True)
    with use(counting(kind), draft_depth=4 if kind == "mtp" else 1) as engine:
        for index in range(3):
            prompt = tuple(token + 100 * index for token in COUNTING)
            submit(engine, str(index), prompt, max_tokens=40, sampling=sampling)
        ledger = run(engine)
    for ended in ledger.ended.values():
        assert ended.receipt.n_accepted > 0.97 * ended.receipt.n_drafted > 10


@pytest.mark.parametrize("kind", ["eagle3", "dflash"])
def test_a_head_that_knows_fewer_words_drafts_those(tmp_path: Path, kind: str) -> None:
    head = MAKERS[kind](tmp_path / "head.gguf", "counter", step=0, ids=range(2048))
    setting = Setting(counting(kind, step=0).path, {"draft_path": str(head)})
    with use(setting, n_slots=1, draft_depth=3) as engine:
        known = complete(engine, (*COUNTING, 600), max_tokens=40, sampling=ENDLESS)[1].receipt
        unknown = complete(engine, (*COUNTING, 3000), max_tokens=40, sampling=ENDLESS)[1].receipt
    assert known.n_accepted > 0.97 * known.n_drafted > 10
    assert unknown.n_generated == 40
    assert unknown.n_accepted == 0


# Cells come by the 256, and beside a text a block needs some.
@pytest.mark.parametrize(("kind", "length"), [("mtp", 15), ("eagle3", 15), ("dflash", 22)])
def test_of_what_idle_slots_hold_the_oldest_makes_way(kind: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head has cells for three of these conversations."""
    used, decode = set(), Context.decode

    def noting(context: Context, *batch: Any, **options: Any) -> DecodeStatus:
        used.add(context)
        return decode(context, *batch, **options)

    monkeypatch.setattr(Context, "decode", noting)
    with use(random_head(kind), n_cells=512, draft_depth=3) as engine:
        for animal in ("fox", "bear", "duck", "owl"):
            prompt = chat(f"Tell me a story about a {animal}. " * length)
            assert complete(engine, prompt, max_tokens=20, sampling=ENDLESS)[1].receipt.n_drafted > 10
        (own,) = used - {engine.context}
        held = [own.last_position(slot) + 1 for slot in range(4)]
        assert sum(held) < own.n_cells
    assert [size > 128 for size in held] == [False, True, True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_head_read_for_another_salt_is_read_again(kind: str) -> None:
    with use(random_head(kind), n_slots=1, draft_depth=2) as engine:
        head, unread, n_read = head_of(engine), [], []
        extend = head.extend

        def noting(chains: list[DraftChain]) -> list[ProposedToken | None]:
            unread.extend([head.n_unread(chain.sequence) for chain in chains])
            return extend(chains)

        head.extend = noting
        for salt in ("a", "b", "b", "", "a"):
            complete(engine, chat("Tell me a story."), max_tokens=4, sampling=ENDLESS, salt=salt)
            n_read.append(unread[0])
            unread.clear()
    assert n_read[0] == n_read[1] == n_read[3] == n_read[4] > n_read[2]


# Turned as in models that see pictures, which makes no difference to a text; with a window shorter than the text; with
# rows that see only those before them.
VARIANTS = {
    "turned": {"rope.dimension_sections": (32, 0, 0, 0)},
    "windowed": {"attention.sliding_window": 12, "attention.sliding_window_pattern": (True,)},
    "causal": {"attention.causal": True},
}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, ...], int]:
    """What an ordinary DFlash head says, by the text before it."""
    head = head_factory.dflash_head(tmp_path_factory.mktemp("usual") / "head.gguf")
    with use(Setting(EMBER, {"draft_path": str(head)}), n_slots=2, draft_depth=3) as engine:
        return {tuple(text): token for text, token in recorded(engine).seen}


def recorded(engine: Engine) -> Recorder:
    recorder = Recorder(head_of(engine))
    for index, prompt in enumerate(PROMPTS[:3]):
        submit(engine, str(index), prompt, max_tokens=14, sampling=ENDLESS)
    run(engine)
    return recorder


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_dflash_heads_keep_what_they_read(
    tmp_path: Path, name: str, usual: dict[tuple[int, ...], int]
) -> None:
    head = head_factory.dflash_head(tmp_path / "head.gguf", changed=VARIANTS[name])
    with use(Setting(EMBER, {"draft_path": str(head)}), n_slots=2, draft_depth=3) as engine:
        recorder = recorded(engine)
        found = [(text, token, says_at_once(engine, recorder, text)) for text, token in recorder.seen[::2]]
    assert len(found) >= 15
    assert sum(token == at_once for _, token, at_once in found) >= 0.9 * len(found)
    both = [(token, usual[tuple(text)]) for text, token, _ in found if tuple(text) in usual]
    n_same = sum(one == other for one, other in both)
    assert n_same >= 0.9 * len(both) > 10 if name == "turned" else n_same < len(both)


def test_a_dflash_head_reads_what_the_target_makes_of_the_text(tmp_path: Path) -> None:
    """It sees no token: what it says is what the features of the text say."""
    head = head_factory.dflash_head(tmp_path / "echo.gguf", "echo", step=0)
    setting = Setting(counting("dflash", step=0).path, {"draft_path": str(head)})
    with use(setting, n_slots=2, draft_depth=5) as engine:
        for index in range(4):
            submit(engine, str(index), (600 + index,) * 10, max_tokens=30, sampling=ENDLESS)
        ledger = run(engine)
    for ended in ledger.ended.values():
        assert ended.receipt.n_accepted > 0.97 * ended.receipt.n_drafted > 10


def test_after_a_block_that_failed_others_are_right() -> None:
    with use(counting("dflash", step=0), n_slots=3, draft_depth=5) as engine:
        decode, n_calls = Context.decode, itertools.count(1)

        def broken(context: Context, batch: Any, **options: Any) -> DecodeStatus:
            is_broken = context is not engine.context and next(n_calls) in (4, 7)
            return DecodeStatus.COMPUTE_FAILED if is_broken else decode(context, batch, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Context, "decode", broken)
            for index in range(3):
                submit(engine, str(index), (*COUNTING, 600 + index), max_tokens=200, sampling=ENDLESS)
            ledger = run(engine)
    assert next(n_calls) > 20
    for ended in ledger.ended.values():
        assert ended.receipt.n_generated == 200
        assert ended.receipt.n_accepted == ended.receipt.n_drafted > 50


def test_a_block_is_evaluated_once_for_all_its_tokens_and_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, decode = [], Context.decode
    with use(counting("dflash", step=0), n_slots=9, draft_depth=5) as engine:

        def counted(context: Context, batch: Any, **options: Any) -> DecodeStatus:
            if context is not engine.context and isinstance(batch, Batch):
                sizes.append(len({batch.c.seq_id[row][0] for row in range(batch.n_tokens)}))
            return decode(context, batch, **options)

        monkeypatch.setattr(Context, "decode", counted)
        for index in range(9):
            submit(engine, str(index), (*COUNTING, 600 + index), max_tokens=30, sampling=ENDLESS)
        ledger = run(engine)
        most = engine.context.n_outputs
    receipts = [ended.receipt for ended in ledger.ended.values()]
    n_drafted = sum(receipt.n_drafted for receipt in receipts)
    assert n_drafted == sum(receipt.n_accepted for receipt in receipts) > 150
    assert sum(sizes) < n_drafted / 4, "a block has five tokens"
    assert 1 < max(sizes) < 9 <= most, "not all of them fit into one batch"


@pytest.mark.parametrize(("block_seconds", "pays"), [(0.005, True), (0.5, False)])
def test_whether_to_begin_a_block_is_weighed_against_all_of_it(block_seconds: float, pays: bool) -> None:
    with use(counting("dflash", step=0), n_slots=1) as engine:
        price(engine, {1: 0.010, 8: 0.012, 64: 0.030})
        head_of(engine).cost = CostModel(Calibration({1: block_seconds, 6: block_seconds}))
        receipt = complete(engine, COUNTING, max_tokens=100, sampling=ENDLESS)[1].receipt
    assert (receipt.n_drafted > 40) == pays
    assert pays or receipt.n_drafted == 0


def test_a_dflash_head_drafts_no_further_than_its_block() -> None:
    with use(counting("dflash", step=0), n_slots=1, draft_depth=12) as engine:
        complete(engine, COUNTING, max_tokens=40, sampling=ENDLESS)
        assert engine.speculator is not None
        assert len([n for n in engine.speculator.stats.drafted_at if n]) == 5


def test_what_a_dflash_head_read_along_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading along notes how far a block would have been right, and leaves the cache as drafting needs it."""
    with use(counting("dflash", step=0), n_slots=1) as engine:
        price(engine, {1: 0.010, 8: 0.012, 64: 0.030}, 0.001)
        head = head_of(engine)
        extend, seen = head.extend, []

        def shadowed(chains: list[DraftChain]) -> list[ProposedToken | None]:
            for chain in chains:
                if not chain.tokens:
                    head.read_along(chain.sequence)
                    seen.extend(head.take_samples())
            return extend(chains)

        monkeypatch.setattr(head, "extend", shadowed)
        receipt = complete(engine, COUNTING, max_tokens=60, sampling=ENDLESS)[1].receipt
    assert receipt.n_accepted == receipt.n_drafted > 20
    assert len(seen) > 20
    assert all(one.was_right for one in seen)
    assert {one.evidence >= len(PRIORS) for one in seen} == {False, True}, "first tokens and those behind them"


def test_a_long_prompt_is_read_from_where_its_states_are_kept() -> None:
    prompt = chat("Tell me a story about a fox and a bear. " * 60)
    wanted: dict[Path, list[tuple[int, float]]] = {}
    for setting in map(random_head, KINDS):
        if setting.path not in wanted:
            with open_engine(setting.path, n_slots=2, n_ctx=1024, speculation="off") as engine:
                wanted[setting.path] = expected(engine, prompt, 12)
        with use(setting, n_slots=2, n_ctx=1024, draft_depth=3) as engine:
            assert len(engine.vocab.tokenize(prompt)) > LONGEST_WINDOW + 20
            tokens, ended = greedy(engine, prompt, max_tokens=12)
        assert ended.receipt.n_drafted > 0
        assert_same_up_to_a_near_tie(tokens, wanted[setting.path])


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


# What both kinds refuse.
NEITHER: tuple[tuple[dict[str, Any], str], ...] = (
    ({"layers": (0, 1, 6)}, "It reads layer 6, and the model has layers 0 to 5"),
    ({"n_vocab": 20_000}, "no output of its own and has 20,000 tokens, while the model has 4,096"),
    ({"ids": (1, 2, 3)}, "d2t. does not go with an output of its own"),
    ({"has_tables": True, "ids": (1, 2, 4096)}, "d2t. names tokens that are not among its 4,096"),
    ({"changed": {"attention.key_length": 32}}, "keys and values differ in length"),
)


@pytest.mark.parametrize(
    ("kind", "made", "words"),
    [
        *((kind, *one) for kind in MAKERS for one in NEITHER),
        ("eagle3", {"target_width": 512}, "made for a model of width 512, and this one's is 384"),
        ("eagle3", {"n_vocab": 20_000, "has_tables": True, "ids": range(4096)}, "20,000 tokens and the model 4,096"),
        ("eagle3", {"has_tables": True, "ids": (1, -2, 3)}, "d2t. names tokens that are not among its 4,096"),
        ("eagle3", {"changed": {"block_count": 2}}, "An EAGLE-3 head has one layer"),
        ("dflash", {"changed": {"embedding_length": 512}}, "made for a model of width 512, and this one's is 384"),
        ("dflash", {"changed": {"tokenizer.ggml.mask_token_id": None}}, "does not name a token that stands for those"),
        ("dflash", {"changed": {"tokenizer.ggml.mask_token_id": 4096}}, "does not name a token that stands for those"),
        ("dflash", {"block_size": 1}, "Its blocks have 1 rows, so it drafts nothing"),
        ("dflash", {"extra": ("selector_hidden.weight",)}, "of the kind DFlash 2, .* runs DFlash heads of the first"),
        ("dflash", {"extra": ("markov_w1.weight",)}, "of the kind DSpark, .* runs DFlash heads of the first kind"),
        ("dflash", {"changed": {"hyper_connection.count": 4}}, "of the kind DSpark for DeepSeek-V4"),
    ],
)
def test_a_head_for_another_model_is_refused_with_the_reason(
    tmp_path: Path, kind: str, made: dict[str, Any], words: str
) -> None:
    head = MAKERS[kind](tmp_path / "head.gguf", **made)
    refused(EngineOptions(str(EMBER), draft_path=str(head)), f"head.gguf cannot draft for .*{words}")


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("eagle3", {"left_out": "fc.weight"}),
        ("eagle3", {"layers": (0, 1)}),
        ("eagle3", {"has_tables": True, "n_vocab": 4100}),
        ("dflash", {"left_out": "fc.weight"}),
        ("dflash", {"left_out": "enc.output_norm.weight"}),
        ("dflash", {"changed": {"target_layers": None}}),
    ],
)
def test_a_head_that_is_not_whole_is_refused(tmp_path: Path, kind: str, made: dict[str, Any]) -> None:
    head = MAKERS[kind](tmp_path / "head.gguf", **made)
    refused(EngineOptions(str(EMBER), draft_path=str(head)), "could not load .*head.gguf")


def test_a_head_that_was_cut_off_or_is_none_is_refused(tmp_path: Path) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf")
    whole = head.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:1000], b"", b"no model at all"):
        head.write_bytes(content)
        refused(EngineOptions(str(EMBER), draft_path=str(head)), "head.gguf")
    refused(EngineOptions(str(EMBER), draft_path=str(tmp_path / "gone.gguf")), "There is no file .*gone.gguf")


def test_a_head_that_goes_while_it_is_loaded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf")
    monkeypatch.setattr(rules, "why_not_file", lambda *_: head.unlink())
    refused(EngineOptions(str(EMBER), draft_path=str(head)), "head.gguf")


def test_a_model_whose_own_head_is_damaged_is_refused(tmp_path: Path) -> None:
    damaged = head_factory.mtp_ember(tmp_path / "damaged.gguf", left_out="nextn.enorm.weight")
    refused(EngineOptions(str(damaged)), "could not load .*damaged.gguf")
    whole = head_factory.mtp_ember(tmp_path / "whole.gguf", left_out="nextn.eh_proj.weight")
    with open_engine(whole, n_ctx=256) as engine:
        assert engine.speculator is not None
        assert engine.speculator.paid == ()


def test_a_head_without_tables_must_have_the_width_of_the_model(tmp_path: Path) -> None:
    head = head_factory.eagle_head(tmp_path / "head.gguf", target_width=192, layers=(0, 1, 1))
    small = str(gguf_factory.EMBER_DRAFT)
    refused(EngineOptions(small, draft_path=str(head)), "no embeddings of its own and its width is 384, .* is 192")


def test_a_head_beside_an_architecture_that_hides_its_layers_is_refused() -> None:
    head = random_head("eagle3").options["draft_path"]
    refused(EngineOptions(str(random_head("mtp").path), draft_path=head), "exports no hidden states .* glm4moe")


def test_a_head_is_no_model() -> None:
    refused(EngineOptions(random_head("eagle3").options["draft_path"]), "only drafts tokens for a larger model")


def test_heads_whose_weights_are_left_out_are_not_asked_for() -> None:
    facts = read_model(counting("mtp").path)
    assert why_no_mtp_here(facts) is None
    assert "no prediction heads" in (why_no_mtp_here(replace(facts, n_mtp_layers=0)) or "")
    assert "architecture llama" in (why_no_mtp_here(replace(facts, architecture="llama")) or "")
    assert "carries 3 prediction heads" in (why_no_mtp_here(replace(facts, n_mtp_layers=3)) or "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_library_without_the_functions_says_so_and_drafts_without_heads(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for one, needed in heads._NEEDED.items():
        monkeypatch.setitem(heads._NEEDED, one, dict.fromkeys(needed))
    path, extra = counting(kind, step=0)
    engine, loaded = load(EngineOptions(str(path), n_ctx=512, n_threads=1, draft_depth=3, **extra))
    try:
        (notice,) = loaded.notices
        missing = "layer_inp" if kind == "dflash" else "nextn"
        assert f"This build of llama.cpp lacks llama_set_embeddings_{missing}" in notice
        assert Path(extra.get("draft_path", path)).name in notice
        assert loaded.draft_path == "", "nobody is named who does not draft"
        speculator = engine.speculator
        assert speculator is not None
        assert [proposer.name for proposer in speculator.proposers] == ["grammar", "lookup"]
        _, ended, _ = complete(engine, (7, 8, 9) * 20, max_tokens=30, sampling=ENDLESS)
        assert ended.receipt.n_generated == 30
        assert (ended.receipt.n_accepted > 0) == (kind != "mtp"), "a model that repeats itself"
    finally:
        engine.close()


def test_a_library_with_the_functions_has_nothing_to_say() -> None:
    assert {kind: heads.why_unavailable(kind) for kind in heads.KINDS} == dict.fromkeys(heads.KINDS)
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
        speculator = engine.speculator
        assert speculator is not None
        assert [proposer.name for proposer in speculator.proposers] == ["grammar", "lookup"]
    finally:
        engine.close()
    several = replace(read_model(path), n_mtp_layers=3)
    assert why_left_out(several, EngineOptions("several.gguf", uses_heads=False)) == ()


@pytest.mark.parametrize("kind", KINDS)
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


# -- models with a recurrent state ---------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["qwen35", "qwen3next"])
def test_side_by_side_requests_of_a_hybrid_all_draft_equally_many_or_none(architecture: str) -> None:
    """llama.cpp evaluates requests of such models one after the other where their rows differ in number."""
    drafted: list[list[int]] = []
    with use(hybrid(architecture), speculation="auto") as engine:
        price(engine, {1: 0.010, 2: 0.0102, 4: 0.0105, 16: 0.012}, 0.001)  # rows are cheap
        decode = engine.runner.run

        def noting(todo: StepPlan, events: list[RequestEvent]) -> StepPlan:
            drafted.append([len(share.draft) for share in todo])
            return decode(todo, events)

        engine.runner.run = noting
        for index in range(3):
            submit(
                engine, str(index), tuple(range(500 + 300 * index, 520 + 300 * index)), max_tokens=60, sampling=ENDLESS
            )
        ledger = run(engine)
    assert {ended.receipt.n_generated for ended in ledger.ended.values()} == {60}
    together = [lengths for lengths in drafted if len(lengths) == 3]
    assert {len(set(lengths)) for lengths in together} == {1}
    assert sum(lengths[0] > 0 for lengths in together) > 5, "the head counts, and so do the texts"


def test_of_hybrids_only_what_llama_cpp_cannot_run_is_refused() -> None:
    facts = {architecture: read_model(hybrid(architecture).path) for architecture in HYBRIDS}
    assert {architecture: why_no_mtp_here(each) for architecture, each in facts.items()} == dict.fromkeys(HYBRIDS)
    assert all(each.state_elements for each in facts.values())
    reason = why_no_mtp_here(replace(facts["qwen35"], architecture="glm5-next"))
    assert reason == "llama.cpp has no graph for the prediction heads of the architecture glm5-next."
