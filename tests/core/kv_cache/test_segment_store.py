"""The store of texts outside the device, with a folder and without a model; and what of it is given up first."""

from __future__ import annotations

import math
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from core.kv_cache.disk_cache import FOLDER, DiskTier, SegmentFolder, clear
from core.kv_cache.prefix_tree import PrefixTree
from core.kv_cache.segment_store import GreedyDual, SegmentStore
from tests.support.integrity import check_store

KEY = bytes(16)
MB = 1 << 20


def text(n: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.random.default_rng(seed).integers(0, 4_000, n).astype(np.int32)


def blob(n_bytes: int = 64) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.arange(n_bytes, dtype=np.uint8)


def settle(store: SegmentStore) -> None:
    """Let everything be read and written."""
    deadline = time.monotonic() + 60
    while store.write_behind() or store.is_writing:
        assert time.monotonic() < deadline
        store.wait(0.01)
    check_store(store)


class SlowFolder(SegmentFolder):
    """A folder that says what is in it only when it may."""

    may_scan = False

    def scan(self):
        while not self.may_scan:
            time.sleep(0.001)
        yield from super().scan()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with a beginning and two ways on from there."""
    store = SegmentStore(PrefixTree(), ram_limit=MB, disk=DiskTier(SegmentFolder(tmp_path / FOLDER, KEY, MB)))
    keep(store, text(32))
    for seed in (1, 2):
        keep(store, np.concatenate((text(32), text(32, seed))))
    settle(store)
    store.close()
    assert len(list(tmp_path.rglob("*.kv"))) == 3
    return tmp_path


def keep(store: SegmentStore, tokens: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
    """Add what is not stored of a text, as a slot would."""
    links = store.chain(store.tree.match(tokens), 0)
    start, parent = (links[-1].end, links[-1].segment) if links else (0, None)
    assert store.add(tokens, start, parent, blob())
    check_store(store)


def test_what_is_computed_again_while_the_disk_is_read_keeps_what_goes_on_from_it(written: Path) -> None:
    """A request may come before a slow disk has said what it holds: its text must not cost others theirs."""
    folder = SlowFolder(written / FOLDER, KEY, MB)
    tree = PrefixTree()
    store = SegmentStore(tree, ram_limit=MB, disk=DiskTier(folder))
    keep(store, text(32))
    folder.may_scan = True
    settle(store)
    for seed in (1, 2):
        whole = np.concatenate((text(32), text(32, seed)))
        assert [link.end for link in store.chain(tree.match(whole), 0)] == [32, 64]
    assert store.n_disk_bytes == 3 * 64
    store.close()
    assert len(list(written.rglob("*.kv"))) == 3


def test_what_is_read_stays_where_making_room_for_it_empties_the_disk(tmp_path: Path) -> None:
    disk = DiskTier(SegmentFolder(tmp_path / FOLDER, KEY, 2 * 64))
    store = SegmentStore(PrefixTree(), ram_limit=64, disk=disk)
    first, second, third = (text(32, seed) for seed in range(3))
    for one in (first, second):
        keep(store, one)
        settle(store)
    keep(store, third)  # in RAM alone: the others fill the disk
    (link,) = store.chain(store.tree.match(first), 0)
    store.read([link.segment], math.inf, time.monotonic)
    while store.is_writing:
        store.wait(0.01)
    check_store(store)
    assert store.chain(store.tree.match(first), 0) == [link]
    store.close()


class CountingTree(PrefixTree):
    """Counts the tokens that are put in."""

    n_tokens = 0

    def insert(self, place, tokens, *where):
        self.n_tokens += len(tokens)
        super().insert(place, tokens, *where)


def test_a_long_text_on_disk_is_not_read_anew_for_each_of_its_parts(tmp_path: Path) -> None:
    """The engine's thread takes in all that was found on disk."""
    folder, n_parts = SegmentFolder(tmp_path, KEY, MB), 40
    store = SegmentStore(PrefixTree(), ram_limit=MB, disk=DiskTier(folder))
    for n in range(1, n_parts + 1):
        keep(store, text(32 * n_parts)[: 32 * n])
    settle(store)
    store.close()
    tree = CountingTree()
    store = SegmentStore(tree, ram_limit=MB, disk=DiskTier(folder))
    settle(store)
    assert [link.end for link in store.chain(tree.match(text(32 * n_parts)), 0)][-1] == 32 * n_parts
    assert tree.n_tokens == 32 * n_parts
    store.close()


def test_texts_are_kept_again_after_somebody_has_deleted_them_all(written: Path) -> None:
    tree = PrefixTree()
    store = SegmentStore(tree, ram_limit=MB, disk=DiskTier(SegmentFolder(written / FOLDER, KEY, MB)))
    settle(store)
    assert clear(written) > 0
    for seed in (3, 4):
        keep(store, np.concatenate((text(32), text(32, seed))))
    settle(store)
    assert [link.end for link in store.chain(tree.match(np.concatenate((text(32), text(32, 1)))), 0)] == [], (
        "it is gone"
    )
    for seed in (3, 4):
        keep(store, np.concatenate((text(32), text(32, seed))))
    settle(store)
    n_bytes = store.n_disk_bytes
    store.close()
    again = SegmentStore(PrefixTree(), ram_limit=MB, disk=DiskTier(SegmentFolder(written / FOLDER, KEY, MB)))
    settle(again)
    assert again.n_disk_bytes == n_bytes
    again.close()


def anything(item: str) -> bool:
    return True


def test_what_saves_least_goes_first_among_equals_the_oldest() -> None:
    order: GreedyDual[str] = GreedyDual()
    for name, worth in (("a", 3.0), ("b", 1.0), ("c", 2.0)):
        order.touch(name, worth)
    assert [order.evict(anything) for _ in range(4)] == ["b", "c", "a", None]
    order: GreedyDual[str] = GreedyDual()
    for name in ("a", "b", "a"):
        order.touch(name, 1.0)
    assert order.evict(anything) == "b"


def test_uses_of_what_is_never_given_up_take_no_memory() -> None:
    kept: GreedyDual[str] = GreedyDual()
    tracemalloc.start()
    for _ in range(10_000):
        for name in "abc":
            kept.touch(name, 1.0)
    n_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_bytes < 100_000
    assert [kept.evict(lambda one: True) for _ in range(4)] == ["a", "b", "c", None]


def test_what_is_of_no_use_any_more_sinks_below_what_comes() -> None:
    order: GreedyDual[str] = GreedyDual()
    order.touch("once", 5.0)
    for turn in range(20):
        order.touch(f"new {turn}", 1.0)
        if order.evict(anything) == "once":
            return
    raise AssertionError("nothing ages")


def test_what_may_not_go_keeps_its_place_and_what_is_forgotten_is_not_given_up() -> None:
    order: GreedyDual[str] = GreedyDual()
    order.touch("a", 1.0)
    order.touch("b", 2.0)
    assert order.evict(lambda item: item != "a") == "b"
    assert order.evict(lambda item: False) is None
    assert order.evict(anything) == "a"
    order: GreedyDual[str] = GreedyDual()
    order.touch("a", 1.0)
    order.forget("a")
    assert "a" not in order
    assert order.evict(anything) is None
