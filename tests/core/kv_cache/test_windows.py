"""Models with a sliding window whose cache keeps only what is in sight: they say what they say with all kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from core.engine.engine import Engine
from core.llama.context import Context
from core.values.messages import FinishReason
from tests.support.engines import Ledger, open_engine, run, submit
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
            is_lost = engine.n_steps % 4 == 3
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


@pytest.mark.parametrize("cache_ram", [0, 1 << 28])
def test_windows_that_only_llama_knows_of_are_minded_too(tmp_path: Path, cache_ram: int) -> None:
    first = words(150)
    options = {"n_slots": 2, "n_cells": 512, "n_ctx": 512, "speculation": "off", "cache_ram": cache_ram}
    with open_cut(granite_swa(tmp_path / "granite.gguf"), **options) as engine:
        for slot, prompt in ((0, words(100, 1)), (1, first), (0, words(140, 2))):
            submit(engine, "only", prompt, max_tokens=4, sampling=ENDLESS, slot=slot)
            run(engine)
        assert 0 < engine.context.first_position(1) < 100
        prompts = [first[:n_shared] + words(20, 3) for n_shared in (148, 20)]
        found = [said(engine, prompt) for prompt in prompts]
        assert [n_cached for _, n_cached in found] == [148, 0]
        for prompt, (tokens, _) in zip(prompts, found, strict=True):
            engine.forget_texts()
            assert_same_up_to_a_near_tie(tokens, said(engine, prompt)[0])
