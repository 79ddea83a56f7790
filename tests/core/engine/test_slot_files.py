"""What slots hold goes to files and comes back; what cannot be done is said, and nothing is lost by it."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.engine.slot_files import SlotFiles
from core.values.errors import BadRequest
from core.values.messages import Ended, Failure, FailureKind
from core.values.request import SlotAction, SlotDone, SlotRequest
from tests.support.engines import cached, complete, open_engine, run, settle, submit
from tests.support.integrity import check_slots
from tests.support.near_ties import assert_same_up_to_a_near_tie, greedy
from tests.support.prompts import EMBER, EMBER_DRAFT, ENDLESS, words
from tests.support.waiting import until
from tools.model_factory import recurrent_factory

OPTIONS = {"n_slots": 2, "n_ctx": 1024, "speculation": "off", "cache_ram": 0}
STORY = words(300)


def ask(engine: Engine, action: SlotAction, slot: int, path: Path | str = "") -> SlotDone | Failure:
    """Do it while the engine has nothing else to do."""
    files = SlotFiles(engine.slots, engine.n_ctx)
    files.submit(files.prepare(SlotRequest("deed", slot, action, str(path))))
    *answers, ended = until(files.step)
    check_slots(engine.slots)
    assert isinstance(ended, Ended)
    assert not files.n_open
    if ended.failure is not None:
        assert not answers
        return ended.failure
    (answer,) = answers
    assert isinstance(answer, SlotDone)
    return answer


@pytest.mark.parametrize(
    "make", [lambda path: EMBER, recurrent_factory.mamba, recurrent_factory.lfm2, recurrent_factory.gemma3]
)
def test_a_text_comes_back_from_its_file_in_another_engine(make: Callable[[Path], Path], tmp_path: Path) -> None:
    model, file = make(tmp_path / "model.gguf"), tmp_path / "story.bin"
    with open_engine(model, **OPTIONS) as engine:
        _, _, ledger = complete(engine, STORY, max_tokens=8, sampling=ENDLESS, slot=1)
        assert ledger.started["only"].slot == 1
        saved = ask(engine, "save", 1, file)
        assert isinstance(saved, SlotDone)
        assert (saved.n_tokens, saved.n_bytes) == (307, file.stat().st_size)
        text, _ = engine.slots.left_in(1) or ((), None)
        next_turn = (*map(int, text), *words(20, 1))
        wanted, ended = greedy(engine, next_turn, max_tokens=8)
        assert ended.receipt.n_cached == 307
    assert sys.platform == "win32" or stat.S_IMODE(file.stat().st_mode) == 0o600
    with open_engine(model, **OPTIONS) as engine:
        complete(engine, words(40, 2), max_tokens=2, slot=0)
        restored = ask(engine, "restore", 0, file)
        assert isinstance(restored, SlotDone)
        assert (restored.n_tokens, restored.n_bytes) == (307, saved.n_bytes)
        found, ended = greedy(engine, next_turn, max_tokens=8)
        assert ended.receipt.n_cached == 307
    assert_same_up_to_a_near_tie(found, wanted)
    assert [path.name for path in tmp_path.glob("story*")] == ["story.bin"]


def test_what_has_moved_to_ram_or_disk_is_saved_too_and_what_is_gone_is_said_to_be(tmp_path: Path) -> None:
    for cache_ram, cache_disk in ((None, 0), (0, 1 << 30), (0, 0)):
        folder = {"cache_folder": tmp_path, "cache_disk": cache_disk}
        with open_engine(**OPTIONS | {"cache_ram": cache_ram}, **folder) as engine:
            complete(engine, STORY, max_tokens=2, slot=1)
            settle(engine)
            while engine.slots.evict_idle():
                pass
            found = ask(engine, "save", 1, tmp_path / "story.bin")
            if cache_ram is None or cache_disk:
                assert isinstance(found, SlotDone)
                assert found.n_tokens == 301
                assert engine.slots.n_resident == 301
            else:
                assert isinstance(found, Failure)
                assert found.message.startswith("Slot 1 holds no text, or no longer")


def test_what_a_slot_held_before_it_was_restored_is_kept(tmp_path: Path) -> None:
    with open_engine(**OPTIONS | {"cache_ram": None}) as engine:
        complete(engine, STORY, max_tokens=2, slot=0)
        ask(engine, "save", 0, tmp_path / "story.bin")
        complete(engine, words(200, 1), max_tokens=2, slot=0)
        ask(engine, "restore", 0, tmp_path / "story.bin")
        assert cached(engine, words(200, 1)) == 199
        assert cached(engine, STORY) == 299


@pytest.mark.parametrize("is_kept_first", [False, True])
def test_an_erased_text_is_kept_nowhere_but_as_the_beginning_of_others(tmp_path: Path, is_kept_first: bool) -> None:
    folder = {"cache_folder": tmp_path, "cache_disk": 1 << 30}
    other = STORY[:280] + words(100, 1)
    with open_engine(**OPTIONS | {"cache_ram": None}, **folder) as engine:
        complete(engine, STORY, max_tokens=2, slot=0)
        settle(engine)
        assert ask(engine, "erase", 0) == SlotDone("deed", 301)
        assert ask(engine, "erase", 0) == SlotDone("deed", 0)
        assert (engine.slots.n_resident, engine.slots.store.n_ram_bytes, engine.slots.store.n_disk_bytes) == (0, 0, 0)
        assert cached(engine, STORY, slot=0) == 0
        if is_kept_first:
            settle(engine)
        assert cached(engine, other, slot=1) == 280
        settle(engine)
        ask(engine, "erase", 0)
        assert cached(engine, other, slot=1) == 379
        assert cached(engine, STORY, slot=0) == 280


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine with a story in its first slot."""
    with open_engine(**OPTIONS | {"cache_ram": None}) as made:
        complete(made, STORY, max_tokens=2, slot=0)
        yield made


@pytest.fixture(scope="module")
def story(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slots") / "story.bin"
    assert isinstance(ask(engine, "save", 0, path), SlotDone)
    return path


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda path: path.unlink(), "no file bad.bin"),
        (lambda path: (path.unlink(), path.mkdir()), "no file bad.bin"),
        (lambda path: path.write_bytes(b""), "another program"),
        (lambda path: path.write_bytes(b"ggsq" * 400), "another program"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "damaged"),
        (lambda path: flip(path, 30), "damaged"),
        (lambda path: flip(path, 120), "damaged"),
        (lambda path: flip(path, -5), "damaged"),
        (lambda path: flip(path, 12), "another model"),
    ],
)
def test_a_file_that_cannot_be_restored_is_refused_and_the_slot_stays_as_it_is(
    engine: Engine, story: Path, tmp_path: Path, harm: Callable[[Path], object], says: str
) -> None:
    bad = tmp_path / "bad.bin"
    shutil.copy(story, bad)
    harm(bad)
    found = ask(engine, "restore", 0, bad)
    assert isinstance(found, Failure)
    assert (found.kind, found.param) == (FailureKind.BAD_REQUEST, "filename")
    assert says in found.message
    assert cached(engine, STORY, slot=0) == 299


def test_files_of_another_model_and_of_a_longer_context_are_refused(story: Path) -> None:
    for path, n_ctx, says in ((EMBER_DRAFT, 1024, "another model"), (EMBER, 256, "has 301 tokens")):
        with open_engine(path, **OPTIONS | {"n_ctx": n_ctx}) as other:
            found = ask(other, "restore", 0, story)
            assert isinstance(found, Failure)
            assert says in found.message


def test_what_cannot_be_done_with_a_slot_is_said(
    engine: Engine, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (2, -1, 10**30):
        with pytest.raises(BadRequest, match="slots are 0 to 1"):
            ask(engine, "erase", number)
    unwritten = ask(engine, "save", 0, tmp_path / "gone" / "story.bin")
    assert isinstance(unwritten, Failure)
    assert unwritten.kind is FailureKind.INTERNAL
    assert unwritten.message.startswith("story.bin cannot be written: ")
    submit(engine, "long", words(20, 3), max_tokens=600, sampling=ENDLESS, slot=0)
    engine.step()
    actions: tuple[SlotAction, ...] = ("save", "restore", "erase")
    for action in actions:
        found = ask(engine, action, 0, story)
        assert isinstance(found, Failure)
        assert (found.kind, found.param) == (FailureKind.BAD_REQUEST, "id_slot")
        assert found.message == "Slot 0 is at work: try again when it is free."
    assert isinstance(ask(engine, "restore", 1, story), SlotDone)
    engine.cancel("long")
    run(engine)
    assert cached(engine, STORY) == 299
    monkeypatch.setattr(engine.slots.store, "key", None)
    with pytest.raises(BadRequest, match="LoRA"):
        ask(engine, "save", 0, story)


def test_a_text_that_finds_no_room_is_refused_and_costs_no_running_request_anything(
    story: Path, tmp_path: Path
) -> None:
    with open_engine(**OPTIONS | {"n_cells": 1024, "cache_ram": None}) as engine:
        submit(engine, "long", words(800, 3), max_tokens=100, sampling=ENDLESS, slot=0)
        while engine.stats.n_steps < 10:
            engine.step()
        found = ask(engine, "restore", 1, story)
        assert isinstance(found, Failure)
        assert found.message.startswith("story.bin finds no room")
        ledger = run(engine)
        assert ledger.ended["long"].receipt.n_generated == 100
