"""Models with a sliding window whose cache keeps only what is in sight: they say what they say with all kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from core.engine.engine import Engine
from core.llama.context import Context
from core.llama.library import L
from core.loading.load_drafts import open_draft_engine
from core.values.engine_options import EngineOptions
from core.values.messages import FinishReason
from tests.support.engines import Ledger, load, open_engine, run, settle, submit
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER, ENDLESS, words
from tests.support.proposers import RandomProposer, use_proposer
from tools.model_factory import gguf_factory, recurrent_factory
from tools.model_factory.gguf_factory import MetadataEntry, Recipe, Tensor

WINDOW = 32


@pytest.fixture(scope="module")
def path() -> Path:
    return gguf_factory.cached_file("window.gguf", lambda path: recurrent_factory.gemma3(path, WINDOW))


def open_cut(path: Path, **options: Any) -> Any:
    """An engine whose cache has room for 256 tokens in layers with a window, and for 1,024 in the others."""
    return open_engine(path, **{"n_slots": 2, "n_ctx": 1024, "n_cells": 1024, "n_ubatch": 64, **options})


@pytest.fixture(scope="module")
def whole(path: Path) -> Iterator[Engine]:
    """An engine that keeps everything and reuses nothing."""
    with open_engine(path, n_slots=1, n_ctx=1024, n_ubatch=512, speculation="off", cache_ram=0) as engine:
        assert engine.slots.memory.can_share
        yield engine


def expected(whole: Engine, prompt: tuple[int, ...], n: int = 16) -> list[tuple[int, float]]:
    whole.forget_texts()
    return said(whole, prompt, n)[0]


def said(engine: Engine, prompt: tuple[int, ...], n: int = 16) -> tuple[list[tuple[int, float]], int]:
    """What an engine says, and how much of the prompt it knew."""
    tokens, ended = greedy(engine, prompt, max_tokens=n)
    return tokens, ended.receipt.n_cached


def test_a_text_longer_than_the_window_is_the_same(path: Path, whole: Engine) -> None:
    with open_cut(path, speculation="off") as engine:
        assert not engine.slots.memory.can_share
        for n in (20, 33, 300, 700):
            found, _ = said(engine, words(n), 60)
            assert_same_up_to_a_near_tie(found, expected(whole, words(n), 60))
        assert engine.context.first_position(0) > 0, "what is out of sight is gone"


def test_what_goes_on_from_a_slot_is_the_same_as_far_as_the_window_reaches_back(path: Path, whole: Engine) -> None:
    first = words(400)
    with open_cut(path, n_slots=1, speculation="off", cache_ram=0) as engine:
        for n_shared, is_known in ((400, True), (398, True), (380, True), (250, True), (170, False), (20, False)):
            engine.forget_texts()
            said(engine, first, 4)
            prompt = first[:n_shared] + words(30, 1)
            found, n_cached = said(engine, prompt)
            assert n_cached == (n_shared if is_known else 0)
            assert_same_up_to_a_near_tie(found, expected(whole, prompt))


def test_a_text_that_parts_early_leaves_the_long_one_in_ram(path: Path, whole: Engine) -> None:
    first = words(900)
    other = first[:600] + words(20, 2)
    with open_cut(path, speculation="off") as engine:
        said(engine, first, 20)
        found, n_cached = said(engine, other)
        assert n_cached == 512
        assert_same_up_to_a_near_tie(found, expected(whole, other))
        assert said(engine, first)[1] >= 892


@pytest.mark.parametrize("cache_ram", [0, 1 << 28])
def test_what_texts_beside_it_have_overwritten_is_not_shared(path: Path, whole: Engine, cache_ram: int) -> None:
    """With as many cells as other layers, those with a window lose what is out of sight all the same."""
    first = words(150)
    options = {"n_slots": 2, "n_cells": 512, "speculation": "off", "cache_ram": cache_ram}
    with open_cut(path, n_ctx=512, **options) as engine:
        assert engine.slots.memory.can_share
        for slot, prompt in ((0, words(100, 1)), (1, first), (0, words(140, 2))):
            submit(engine, "only", prompt, max_tokens=4, sampling=ENDLESS, slot=slot)
            run(engine)
        assert 0 < engine.context.first_position(1) < 150, "cells behind the 100 that were free first"
        for n_shared, is_known in ((150, True), (20, False)):
            prompt = first[:n_shared] + words(20, 3)
            found, n_cached = said(engine, prompt)
            assert n_cached == (n_shared if is_known else 0)
            assert_same_up_to_a_near_tie(found, expected(whole, prompt))


def test_a_text_that_is_cut_before_the_border_of_a_chunk_comes_back_whole() -> None:
    """Llama 4's windows begin at each multiple of 8,192 tokens; this one is in the middle of 256 tokens to be saved."""
    path = gguf_factory.cached_file("llama4.gguf", recurrent_factory.llama4)
    long = words(100) + words(8150, 1)
    with open_engine(path, n_slots=1, n_ctx=8448, n_ubatch=512, speculation="off") as engine:
        for text in (long[:100], long):
            said(engine, text, 1)
            engine.slots.save(engine.slots.slots[0])
        while engine.slots.evict_idle():
            pass
        _, n_cached = said(engine, long[:8180] + words(20, 2), 1)
        assert n_cached == 8180


def test_a_draft_model_goes_back_as_far_as_its_windows_are_whole(path: Path) -> None:
    with open_cut(path, n_ctx=512, n_cells=512, speculation="draft", draft_path=str(path), draft_depth=4) as engine:
        for slot, prompt in ((0, words(100, 1)), (1, words(150)), (0, words(140, 2)), (1, words(39) + words(2, 3))):
            submit(engine, str(prompt), prompt, max_tokens=20, sampling=ENDLESS, slot=slot)
            receipt = run(engine).ended[str(prompt)].receipt
            assert receipt.n_right == receipt.n_judged > 10, "it is the model itself"


def test_side_by_side_they_say_what_they_say_alone(path: Path, whole: Engine) -> None:
    prompts = [words(n, seed) for seed, n in enumerate((150, 30, 260, 90))]
    with open_cut(path, n_slots=3) as engine:
        use_proposer(engine, RandomProposer(4096), 4)
        for index, prompt in enumerate(prompts):
            submit(engine, str(index), prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
        ledger = run(engine)
    for index, prompt in enumerate(prompts):
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, str(index)), expected(whole, prompt, 30))


def test_a_rejection_behind_which_too_little_is_in_sight_evaluates_all_again(
    path: Path, whole: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = words(200)
    first_position = Context.first_position
    with open_cut(path) as engine:
        use_proposer(engine, RandomProposer(4096), 4)
        submit(engine, "only", prompt, max_tokens=12, sampling=GREEDY_WITH_LOGPROBS)
        ledger = Ledger()
        while "only" not in ledger.ended:
            ledger.add(engine.step())
            is_lost = engine.stats.n_steps % 4 == 3
            monkeypatch.setattr(Context, "first_position", (lambda self, slot: 10_000) if is_lost else first_position)
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "only"), expected(whole, prompt, 12))


def test_a_cancel_leaves_the_others_their_text(path: Path, whole: Engine) -> None:
    prompts = [words(n, seed) for seed, n in enumerate((300, 500))]
    with open_cut(path, speculation="off") as engine:
        ledger = Ledger()
        submit(engine, "stays", prompts[0], max_tokens=20, sampling=GREEDY_WITH_LOGPROBS)
        for _ in range(8):
            ledger.add(engine.step())
        submit(engine, "leaves", prompts[1], max_tokens=20, sampling=ENDLESS)
        for _ in range(3):
            ledger.add(engine.step())
        engine.cancel("leaves")
        run(engine, ledger)
    assert ledger.ended["leaves"].reason is FinishReason.CANCELLED
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "stays"), expected(whole, prompts[0], 20))


def granite_swa(path: Path) -> Path:
    """Write Ember as a model of another kind, to whose windows Slipstream never cuts the cache."""
    name = "granite_swa"
    entries = [
        replace(
            entry,
            key=entry.key.replace("llama.", f"{name}.", 1),
            value=name if entry.key == "general.architecture" else entry.value,
        )
        for entry in gguf_factory.metadata_of(EMBER)
    ]
    windows = [*[True] * 5, False]
    entries += [
        MetadataEntry(f"{name}.attention.sliding_window", WINDOW, gguf.GGUFValueType.UINT32),
        MetadataEntry(
            f"{name}.attention.sliding_window_pattern", windows, gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.BOOL
        ),
        MetadataEntry(f"{name}.logit_scale", 1.0, gguf.GGUFValueType.FLOAT32),
    ]
    n_heads = 6
    sinks = [
        Tensor(
            f"blk.{layer}.attn_sinks.weight",
            gguf.GGMLQuantizationType.F32,
            (n_heads,),
            lambda: np.full(n_heads, -1e4, np.float32),
        )
        for layer in range(len(windows))
    ]
    tensors = gguf_factory.tensors_of(gguf_factory.reader_of(EMBER), Recipe())
    return gguf_factory.write(path, entries, [*sinks, *tensors])


@pytest.fixture(scope="module")
def granite() -> Path:
    return gguf_factory.cached_file("window-granite.gguf", granite_swa)


SMALL: dict[str, Any] = {"n_slots": 2, "n_cells": 512, "n_ctx": 512, "n_ubatch": 64}


def lose_the_beginning(engine: Engine, first: tuple[int, ...]) -> None:
    """Let slot 1 hold ``first``, whose beginning the layers with a window then lose."""
    for slot, prompt in ((0, words(100, 1)), (1, first), (0, words(140, 2))):
        submit(engine, "only", prompt, max_tokens=4, sampling=ENDLESS, slot=slot)
        run(engine)


@pytest.mark.parametrize("cache_ram", [0, 1 << 28])
def test_windows_that_only_llama_knows_of_are_minded_too(granite: Path, cache_ram: int) -> None:
    first = words(150)
    with open_cut(granite, **SMALL, speculation="off", cache_ram=cache_ram) as engine:
        lose_the_beginning(engine, first)
        assert 0 < engine.context.first_position(1) < 100
        prompts = [first[:n_shared] + words(20, 3) for n_shared in (148, 20)]
        found = [said(engine, prompt) for prompt in prompts]
        assert [n_cached for _, n_cached in found] == [148, 0]
        for prompt, (tokens, _) in zip(prompts, found, strict=True):
            engine.forget_texts()
            assert_same_up_to_a_near_tie(tokens, said(engine, prompt)[0])


def test_the_engine_of_a_draft_minds_them_where_it_shares_a_running_text(granite: Path) -> None:
    options = EngineOptions(
        str(granite), draft_path=str(granite), n_threads=1, flash_attention="on", calibrates=False, **SMALL
    )
    main, loaded = load(options)
    with closing(main), closing(open_draft_engine(main, loaded)) as engine:
        first, ledger = words(150), Ledger()
        submit(engine, "before", words(100, 1), max_tokens=8, sampling=ENDLESS)
        submit(engine, "long", first, max_tokens=200, sampling=ENDLESS)
        for name, prompt in (("before", ()), ("beside", words(140, 2)), ("shares", first[:20] + words(20, 3))):
            if prompt:
                submit(engine, name, prompt, max_tokens=8, sampling=GREEDY_WITH_LOGPROBS)
            while name not in ledger.ended:
                ledger.add(engine.step())
        assert "long" not in ledger.ended
        assert engine.context.first_position(1) > 20
        engine.cancel("long")
        run(engine, ledger)
        assert ledger.ended["shares"].receipt.n_cached == 0
        engine.forget_texts()
        assert_same_up_to_a_near_tie(greedy_tokens(ledger, "shares"), said(engine, first[:20] + words(20, 3), 8)[0])


def test_drafts_of_a_model_mind_them_too(granite: Path) -> None:
    drafting = {"draft_path": str(granite), "draft_depth": 4, "speculation": "draft"}
    with open_cut(granite, **SMALL, **drafting) as engine:
        first = words(150)
        lose_the_beginning(engine, first)
        submit(engine, "only", first[:20] + words(20, 3), max_tokens=60, sampling=ENDLESS, slot=1)
        receipt = run(engine).ended["only"].receipt
    assert receipt.n_accepted > 0.9 * receipt.n_drafted > 20


def test_they_come_back_from_ram_in_parts_that_can_be_cut(granite: Path) -> None:
    prompt = words(150)[:100] + words(20, 3)
    with open_cut(granite, **{**SMALL, "n_slots": 1}, speculation="off") as engine:
        said(engine, words(150))
        settle(engine)
        while engine.slots.evict_idle():
            pass
        tokens, n_cached = said(engine, prompt)
        assert n_cached == 100
        assert engine.context.first_position(0) <= 100 - WINDOW
        engine.forget_texts()
        assert_same_up_to_a_near_tie(tokens, said(engine, prompt)[0])


def test_what_was_kept_without_minding_them_does_not_come_back(
    granite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for n_swa in (lambda model: 0, L.llama_model_n_swa, L.llama_model_n_swa):
        monkeypatch.setattr(L, "llama_model_n_swa", n_swa)
        options = {**SMALL, "speculation": "off", "cache_folder": tmp_path, "cache_disk": 1 << 30}
        with open_cut(granite, **options) as engine:
            settle(engine)
            found.append(said(engine, words(150), 1)[1])
            settle(engine)
    assert found[:2] == [0, 0]
    assert found[2] > 0
