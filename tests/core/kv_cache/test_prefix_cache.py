"""Texts on the device, in RAM and on disk come back as they were; and the radix tree that finds them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engine.engine import Engine
from core.kv_cache.prefix_tree import PrefixNode, PrefixTree
from core.values.messages import FinishReason
from tests.support.engines import Ledger, cached, complete, note_rows, open_engine, run, settle, submit
from tests.support.integrity import check_slots, check_tree
from tests.support.near_ties import GREEDY_WITH_LOGPROBS, assert_same_up_to_a_near_tie, greedy, greedy_tokens
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, FOX, chat, words
from tools.model_factory import recurrent_factory
from tools.model_factory.gguf_factory import (
    MetadataEntry,
    Recipe,
    Tensor,
    cached_file,
    metadata_of,
    reader_of,
    tensors_of,
    write,
)

MAKERS = (recurrent_factory.mamba, recurrent_factory.lfm2, recurrent_factory.gemma3)


def tidy(engine: Engine) -> None:
    """Let an idle engine do what it does when there is time."""
    while engine.write_back() == 0.0:
        check_slots(engine.slots)


def test_a_text_that_left_the_device_comes_back_from_ram_and_gives_the_same_tokens() -> None:
    first = words(400)
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024, speculation="off") as engine:
        tokens, ended = greedy(engine, first, max_tokens=24)
        assert ended.receipt.n_cached == 0
        while engine.slots.evict_idle():
            pass
        assert engine.slots.n_resident == 0
        again, ended = greedy(engine, first, max_tokens=24)
        assert ended.receipt.n_cached == 399
        assert cached(engine, first[:300] + words(50, 1)) == 300
    assert_same_up_to_a_near_tie(again, tokens)


@pytest.mark.parametrize("cache_disk", [0, 150_000])
def test_an_idle_engine_comes_to_rest_where_the_cache_has_less_room_than_the_slots(
    tmp_path: Path, cache_disk: int
) -> None:
    # A text takes about 55,000 bytes.
    with open_engine(
        EMBER_DRAFT, cache_folder=tmp_path, n_slots=4, n_ctx=256, cache_ram=120_000, cache_disk=cache_disk
    ) as engine:
        for text in range(4):
            submit(engine, str(text), words(100, text), max_tokens=2)
        run(engine)
        n_resident = engine.slots.n_resident
        for _ in range(100):
            if (seconds := engine.write_back()) is None:
                break
            engine.slots.store.wait(seconds)
        assert engine.write_back() is None
        assert engine.slots.store.n_ram_bytes > 60_000
        assert engine.slots.n_resident == n_resident > 400
        assert cached(engine, words(100, 0)) == 99


def test_a_text_with_a_window_can_be_cut_when_it_comes_back() -> None:
    path = cached_file("window-gemma3.gguf", recurrent_factory.gemma3)
    with open_engine(path, n_slots=1, n_ctx=1024, speculation="off") as engine:
        prompt = words(60)
        first, _, _ = complete(engine, prompt, max_tokens=40)
        complete(engine, words(60, seed=1), max_tokens=2)
        again, ended, _ = complete(engine, prompt, max_tokens=40)
    assert ended.receipt.n_cached > 32  # its window
    assert again == first


@pytest.mark.parametrize("make", [None, *MAKERS])
def test_a_text_is_found_by_requests_with_its_salt_only(make: Callable[[Path], Path] | None, tmp_path: Path) -> None:
    path = EMBER if make is None else make(tmp_path / "model.gguf")
    options = {"n_slots": 2, "n_ctx": 1024, "n_ubatch": 64, "speculation": "off"}
    options |= {"cache_folder": tmp_path, "cache_disk": 1 << 30}
    prompt = words(300)
    with open_engine(path, **options) as engine:
        tokens, _ = greedy(engine, prompt, max_tokens=4, salt="a")
        found = [cached(engine, prompt, salt=salt) for salt in ("", "b", "a", "", "b")]
        assert [count > 0 for count in found] == [False, False, True, True, True]
        while engine.slots.evict_idle():
            pass
        assert cached(engine, prompt, salt="c") == 0
        again, ended = greedy(engine, prompt, max_tokens=4, salt="a")
        assert ended.receipt.n_cached > 0
        settle(engine)
    assert_same_up_to_a_near_tie(again, tokens)
    with open_engine(path, **options) as engine:
        settle(engine)
        assert cached(engine, prompt, salt="d") == 0
        assert cached(engine, prompt, salt="a") > 0, "also from the disk"


@pytest.mark.parametrize("salt", ["", "a"])
def test_a_text_with_another_first_token_is_another_text(salt: str) -> None:
    prompt = words(20)
    other = (prompt[0] + 1, *prompt[1:])
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=256, speculation="off") as engine:
        expected, _ = greedy(engine, other, max_tokens=4)
        engine.forget_texts()
        complete(engine, prompt, max_tokens=4, salt=salt)
        tokens, ended = greedy(engine, other, max_tokens=4, salt=salt)
    assert ended.receipt.n_cached == 0
    assert tokens == expected


def test_requests_that_come_together_share_with_their_own_salt_only() -> None:
    shared = words(600)
    with open_engine(EMBER_DRAFT, n_slots=4, n_ctx=1024, speculation="off") as engine:
        for index, salt in enumerate(("a", "b", "b", "")):
            submit(engine, str(index), shared + words(20, index), max_tokens=4, salt=salt)
        ledger = run(engine)
        assert [ledger.started[str(index)].n_cached for index in range(4)] == [0, 0, 600, 0]


def test_a_common_beginning_is_stored_once() -> None:
    shared = words(300)
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=512, speculation="off") as engine:
        for seed in range(1, 5):
            cached(engine, shared + words(40, seed))
            tidy(engine)
        store = engine.slots.store
        per_token = store.n_ram_bytes / (300 + 4 * 41)
        assert 524 <= per_token < 544


def test_ram_keeps_to_its_limit_and_the_end_of_a_text_goes_before_its_beginning() -> None:
    with open_engine(EMBER_DRAFT, n_slots=1, n_ctx=1024, speculation="off", cache_ram=230_000) as engine:
        for seed in range(6):
            cached(engine, words(300, seed))
            store = engine.slots.store
            assert store.n_ram_bytes <= 230_000
        assert cached(engine, words(300, 5)) == 299
        assert cached(engine, words(300, 4)) >= 256


def test_without_a_store_texts_are_dropped() -> None:
    with open_engine(EMBER_DRAFT, n_slots=1, n_ctx=512, speculation="off", cache_ram=0) as engine:
        assert not engine.slots.store.can_keep
        text = words(100)
        cached(engine, text)
        cached(engine, words(100, 1))
        assert cached(engine, text) == 0


def test_requests_that_come_together_compute_what_they_share_once() -> None:
    shared = words(600)
    with open_engine(EMBER_DRAFT, n_slots=8, n_ctx=1024, speculation="off") as engine:
        for index in range(8):
            submit(engine, str(index), shared + words(20, index), max_tokens=4)
        rows = note_rows(engine)
        ledger = run(engine)
        assert sorted(started.n_cached for started in ledger.started.values()) == [0, *[600] * 7]
        assert sum(rows) == 600 + 8 * 20 + 8 * 3


def test_a_follower_goes_on_alone_when_its_leader_leaves() -> None:
    shared = words(600)
    with open_engine(EMBER_DRAFT, n_slots=4, n_ctx=1024, n_ubatch=64, speculation="off") as engine:
        for index in range(3):
            submit(engine, str(index), shared + words(20, index), max_tokens=4)
        ledger = Ledger()
        for _ in range(3):
            ledger.add(engine.step())
        assert len(engine.scheduler.running) == 1
        engine.cancel("0")
        run(engine, ledger)
        counts = [ledger.started[str(index)].n_cached for index in range(3)]
        assert counts[0] == 0
        assert 0 < counts[1] < 600
        assert counts[2] == 600


def test_others_overtake_a_follower() -> None:
    shared = words(600)
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024, n_ubatch=64, speculation="off") as engine:
        submit(engine, "leader", shared + words(20, 1), max_tokens=2)
        submit(engine, "follower", shared + words(20, 2), max_tokens=2)
        submit(engine, "other", FOX, max_tokens=2)
        ledger = Ledger()
        for _ in range(3):
            ledger.add(engine.step())
        assert {"leader", "other"} == set(ledger.started)
        run(engine, ledger)
        assert ledger.started["follower"].n_cached == 600


def test_a_request_that_was_pushed_back_goes_on_without_computing_its_text_again() -> None:
    with open_engine(EMBER_DRAFT, n_slots=3, n_ctx=256, n_cells=256, n_ubatch=64, speculation="off") as engine:
        for index in range(3):
            submit(engine, str(index), words(80, index), max_tokens=60, sampling=ENDLESS)
        rows = note_rows(engine)
        ledger = run(engine)
        assert len(ledger.ended) == 3
        assert all(ended.receipt.n_generated == 60 for ended in ledger.ended.values())
        assert sum(rows) < 3 * (80 + 60) + 3 * 80, "texts were computed again"


@pytest.mark.parametrize("cache_ram", [0, 46_000, None])
def test_texts_do_not_depend_on_what_is_cached(cache_ram: int | None) -> None:
    prompts = [chat("Tell me a story about a fox."), chat("Tell me a story about a bear."), chat("Who are you?")]
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=256, speculation="off", cache_ram=0) as engine:
        expected = []
        for prompt in prompts:
            engine.forget_texts()
            expected.append(greedy(engine, prompt, max_tokens=30)[0])
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=256, n_cells=256, speculation="off", cache_ram=cache_ram) as engine:
        for turn in range(3):
            for index, prompt in enumerate(prompts):
                submit(engine, f"{turn} {index}", prompt, max_tokens=30, sampling=GREEDY_WITH_LOGPROBS)
            ledger = run(engine)
            for index, tokens in enumerate(expected):
                assert_same_up_to_a_near_tie(greedy_tokens(ledger, f"{turn} {index}"), tokens)


def test_idle_texts_leave_when_they_have_cost_as_much_as_getting_them_back() -> None:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024, speculation="off") as engine:
        cached(engine, words(700))
        submit(engine, "long", FOX, max_tokens=300, sampling=ENDLESS)
        for _ in range(4):
            engine.step()
        assert engine.slots.n_idle > 690
        while engine.slots.n_idle:
            assert not engine.is_idle, "it leaves while others are at work"
            engine.slots.charge_idle(60.0)
            engine.step()
        engine.cancel("long")
        run(engine)
        assert cached(engine, words(700)) == 699


@pytest.mark.parametrize("make", [recurrent_factory.mamba, recurrent_factory.lfm2])
def test_a_running_state_is_found_again_where_the_next_turn_parts(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """The reply is worded in another way when it comes back: the state before the end of the prompt serves."""
    path = make(tmp_path / "model.gguf")
    prompt = words(600)
    with open_engine(path, n_slots=2, n_ctx=1024, speculation="off", cache_ram=0) as engine:
        next_turn = prompt + words(30, 1)
        wanted, _ = greedy(engine, next_turn, max_tokens=16)
    with open_engine(path, n_slots=2, n_ctx=1024, speculation="off") as engine:
        assert cached(engine, prompt, max_tokens=20) == 0
        tokens, ended = greedy(engine, next_turn, max_tokens=16)
        assert ended.receipt.n_cached == 592
        assert_same_up_to_a_near_tie(tokens, wanted)
        assert cached(engine, prompt[:550] + words(30, 2)) == 512


@pytest.mark.parametrize("make", MAKERS)
def test_running_states_survive_a_restart(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path / "model.gguf")
    options = {"n_slots": 2, "n_ctx": 1024, "n_ubatch": 64, "speculation": "off"}
    options |= {"cache_folder": tmp_path, "cache_disk": 1 << 30}
    prompt = words(300)
    with open_engine(path, **options) as engine:
        tokens, _ = greedy(engine, prompt, max_tokens=16)
        settle(engine)
    with open_engine(path, **options) as engine:
        settle(engine)
        again, ended = greedy(engine, prompt, max_tokens=16)
        assert ended.receipt.n_cached == 292
    assert_same_up_to_a_near_tie(again, tokens)


def with_long_rope(path: Path, n_ctx_short: int) -> Path:
    """Write Ember with other factors of its positions in contexts of more than ``n_ctx_short`` tokens, as Phi has."""
    scaling = "llama.rope.scaling"
    entries = [
        *metadata_of(EMBER),
        MetadataEntry(f"{scaling}.type", "longrope", gguf.GGUFValueType.STRING),
        MetadataEntry(f"{scaling}.original_context_length", n_ctx_short, gguf.GGUFValueType.UINT32),
    ]
    n_factors = 32  # one for each pair of a head's 64 values
    factors = {"rope_factors_short.weight": 1.0, "rope_factors_long.weight": 8.0}
    tensors = [
        Tensor(name, gguf.GGMLQuantizationType.F32, (n_factors,), lambda one=one: np.full(n_factors, one, np.float32))
        for name, one in factors.items()
    ]
    return write(path, entries, [*tensors, *tensors_of(reader_of(EMBER), Recipe())])


def test_a_text_of_a_short_context_does_not_come_back_in_a_long_one_with_other_positions(tmp_path: Path) -> None:
    path, prompt = with_long_rope(tmp_path / "model.gguf", 256), words(150)
    options = {"speculation": "off", "cache_folder": tmp_path, "cache_disk": 1 << 30}
    n_cached, texts = [], []
    # Four requests of 256 tokens have 1,024 cells together: each is short none the less.
    for n_slots, n_ctx in ((1, 256), (4, 256), (1, 512), (1, 512)):
        with open_engine(path, n_slots=n_slots, n_ctx=n_ctx, **options) as engine:
            assert engine.context.n_cells == n_slots * n_ctx
            settle(engine)
            tokens, ended = greedy(engine, prompt, max_tokens=8)
            settle(engine)
            n_cached.append(ended.receipt.n_cached)
            texts.append(tokens)
    assert n_cached == [0, 149, 0, 149]
    assert_same_up_to_a_near_tie(texts[1], texts[0])
    assert_same_up_to_a_near_tie(texts[3], texts[2])
    assert [token for token, _ in texts[0]] != [token for token, _ in texts[2]]


@pytest.mark.parametrize("cache_ram", [0, 35_000, None])
def test_under_memory_pressure_every_request_that_could_ever_fit_completes(cache_ram: int | None) -> None:
    rng = random.Random(7)
    shared = words(60)
    options = {"n_slots": 6, "n_ctx": 256, "n_cells": 256, "n_ubatch": 64}
    with open_engine(EMBER_DRAFT, cache_ram=cache_ram, **options) as engine:
        ledger = Ledger()
        for index in range(24):
            own = words(rng.randrange(1, 120), index)
            submit(engine, str(index), shared * rng.randrange(2) + own, max_tokens=rng.randrange(1, 70))
            for _ in range(rng.randrange(6)):
                ledger.add(engine.step())
            if index % 7 == 3:
                engine.cancel(str(index))
        run(engine, ledger)
    assert len(ledger.ended) == 24
    assert not [ended.failure for ended in ledger.ended.values() if ended.failure is not None]


def test_a_prompt_that_parts_from_a_stored_text_says_where(tmp_path: Path) -> None:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=256, speculation="off") as engine:
        first, other = chat("Tell me a story about a fox."), chat("Tell me a story about a bear.")
        assert complete(engine, first, max_tokens=4)[1].receipt.cache_miss is None
        receipt = complete(engine, other, max_tokens=4)[1].receipt
        assert receipt.cache_miss is not None
        assert receipt.cache_miss.position == receipt.n_cached
        assert receipt.cache_miss.stored.startswith(" fox.")
        assert receipt.cache_miss.prompt.startswith(" bear.")
        assert complete(engine, first, max_tokens=4)[1].receipt.cache_miss is None
        assert complete(engine, words(30), max_tokens=1)[1].receipt.cache_miss is None


def test_the_gauges_tell_what_is_kept_when_all_is_safe(tmp_path: Path) -> None:
    with open_engine(
        EMBER_DRAFT, n_slots=2, n_ctx=512, speculation="off", cache_folder=tmp_path, cache_disk=1 << 30
    ) as engine:
        settle(engine)
        cached(engine, words(200))
        submit(engine, "again", words(200), max_tokens=2)
        engine.step()
        engine.scheduler.preempt_for_memory(engine.scheduler.running[0], 0.0)  # what it finds then is no prompt's hit
        run(engine)
        settle(engine)
        snapshot = engine.take_snapshot()
        assert snapshot is not None
        assert engine.take_snapshot() is None
        assert snapshot.is_idle
        assert snapshot.n_cells_used == 201
        assert snapshot.cache_ram_bytes == engine.slots.store.n_disk_bytes > 500 * 200


def test_a_slot_is_emptied_in_small_parts_while_others_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024, speculation="off") as engine:
        cached(engine, words(900))
        submit(engine, "at work", FOX, max_tokens=60, sampling=ENDLESS)
        ledger = Ledger()
        for _ in range(3):
            ledger.add(engine.step())
        monkeypatch.setattr("core.kv_cache.slot_table._LONGEST_MOVE", 0.0)
        submit(engine, "next", words(50, 1), max_tokens=2)
        n_waited, rows = 0, note_rows(engine)
        while "next" not in ledger.started:
            ledger.add(engine.step())
            n_waited += 1
            assert len(rows) == n_waited, "others go on"
        assert n_waited > 900 // 256
        run(engine, ledger)
        assert cached(engine, words(900)) == 899


def test_a_long_text_comes_back_in_small_parts_while_others_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = words(900)
    with open_engine(EMBER_DRAFT, n_slots=2, n_ctx=1024, speculation="off") as engine:
        wanted, _ = greedy(engine, prompt, max_tokens=8)
        while engine.slots.evict_idle():
            pass
        submit(engine, "at work", FOX, max_tokens=60, sampling=ENDLESS)
        ledger = Ledger()
        ledger.add(engine.step())
        monkeypatch.setattr("core.kv_cache.slot_table._LONGEST_MOVE", 0.0)
        submit(engine, "given up", prompt, max_tokens=2)
        for _ in range(2):
            ledger.add(engine.step())
        assert "given up" not in ledger.started
        engine.cancel("given up")
        ledger.add(engine.step())
        n_brought = engine.slots.n_idle
        assert 256 <= n_brought < 899, "what has come back stays"
        submit(engine, "next", prompt, max_tokens=8, sampling=GREEDY_WITH_LOGPROBS)
        n_waited, rows = 0, note_rows(engine)
        while "next" not in ledger.started:
            ledger.add(engine.step())
            n_waited += 1
            assert len(rows) == n_waited, "others go on"
        assert 1 < n_waited <= 900 // 256 + 1
        run(engine, ledger)
        assert ledger.ended["next"].receipt.n_cached == 899
        assert ledger.ended["given up"].reason is FinishReason.CANCELLED
    assert_same_up_to_a_near_tie(greedy_tokens(ledger, "next"), wanted)


@dataclass(eq=False)
class Piece:
    start: int
    end: int = 0
    node: PrefixNode | None = None


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def agreement(some: list[int], other: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(some, other, strict=False)) if a != b), min(len(some), len(other)))


# Few different tokens, so that texts share beginnings.
texts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[list[int], int]:
    text = draw(texts)
    return text, draw(st.integers(0, len(text) - 1))


@given(st.lists(pieces(), max_size=12), st.data())
def test_places_agree_with_a_text_as_far_as_a_comparison_says(
    stored: list[tuple[list[int], int]], data: st.DataObject
) -> None:
    tree = PrefixTree()
    model: dict[Piece, list[int]] = {}
    for text, start in stored:
        piece = Piece(start)
        tree.insert(piece, ids(*text))
        model[piece] = text
        check_tree(tree)
        action = data.draw(st.sampled_from(["keep", "remove", "extend"]))
        chosen = data.draw(st.sampled_from(list(model)))
        if action == "remove":
            tree.remove(chosen)
            del model[chosen]
        elif action == "extend":
            model[chosen] = model[chosen] + data.draw(texts)
            tree.extend(chosen, ids(*model[chosen]))
        check_tree(tree)
    prompt = data.draw(texts)
    match = tree.match(ids(*prompt))
    # A piece lies on the way of the texts that pass where it begins.
    expected = {p: agreement(prompt, text) for p, text in model.items() if agreement(prompt, text) > p.start}
    assert match.reaches() == expected
    known = [agreement(prompt, text) for text in model.values()]
    # What lies above a piece that begins late is known too, as the way to it.
    assert match.size == max(known, default=0)


@given(st.lists(pieces(), max_size=12))
def test_nothing_is_left_when_all_places_are_gone(stored: list[tuple[list[int], int]]) -> None:
    tree = PrefixTree()
    everyone = []
    for text, start in stored:
        everyone.append(Piece(start))
        tree.insert(everyone[-1], ids(*text))
    for piece in everyone:
        tree.remove(piece)
        check_tree(tree)
    assert not tree.root.children


def test_the_other_way_is_what_a_stored_text_says_next() -> None:
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2, 3, 4, 5))
    other = tree.match(ids(1, 2, 9)).continuation(2)
    assert other is not None
    assert other.tolist() == [3, 4]
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2))
    assert tree.match(ids(1, 2, 9)).continuation(2) is None
    tree.insert(Piece(0), ids(1, 2, 7, 7))
    assert tree.match(ids(1, 2, 9)).continuation(2) is None
    assert tree.match(ids(5)).continuation(2) is None
    tree = PrefixTree()
    tree.insert(Piece(0), ids(1, 2, 7))
    tree.insert(Piece(0), ids(1, 2, 8))
    other = tree.match(ids(1, 2, 9)).continuation(4)
    assert other is not None
    assert other.tolist() == [8]
    # A prefix that would end within an image is cut back, here to the first of two edges.
    match = tree.match(ids(1, 2, 8))
    match.size = 1
    other = match.continuation(4)
    assert other is not None
    assert other.tolist() == [2]
