"""Several models at once: which engine loads a model, and which one leaves for it; engines that load on command."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.server.calls import model_pool
from app.server.http.errors import ModelNotFound
from app.settings.server_settings import ServerSettings
from core.values.errors import BadRequest, EngineUnavailable
from core.values.messages import EnginePhase
from models.catalog.catalog import STARTER, Catalog, ModelEntry
from tests.app.server.test_model_host import A, Stage, on_stage, play

C = ModelEntry("c", Path("c.gguf"))
# With a first model that is there.
beside_others = partial(on_stage, is_ready=True, models_max=4)


def ready(stage: Stage, number: int, path: str) -> None:
    """Let the engine of this number have loaded a model."""
    engine = stage.engines[number]
    stage.engine, first = engine, stage.engine
    stage.becomes_ready(path)
    stage.engine = first


async def hold(stage: Stage, name: str, log: list[str]) -> tuple[asyncio.Task[None], asyncio.Event]:
    """Begin a call that lasts until the event."""
    release = asyncio.Event()
    return await stage.begin(name, release, log), release


async def answered(stage: Stage, name: str, log: list[str], *, loads: tuple[int, str] | None = None) -> None:
    """Make a call and end it; ``loads`` are the number of the engine that loads a model for it, and the file."""
    call, release = await hold(stage, name, log)
    if loads is not None:
        ready(stage, *loads)
    release.set()
    await call


def test_models_of_one_name_are_found_by_what_tells_them_apart(tmp_path: Path) -> None:
    for maker in ("acme", "other"):
        (tmp_path / maker / "fox-GGUF").mkdir(parents=True)
        shutil.copyfile(STARTER, tmp_path / maker / "fox-GGUF" / "fox-Q8_0.gguf")
    pool = Stage(ServerSettings(), shelf=Catalog([tmp_path], starter=None)).pool
    found = {name: pool.find(name).path.parents[1].name for name in pool.names()}
    assert found == {"fox-Q8_0": "acme", "fox-GGUF/fox-Q8_0": "other"}
    named = {"hf.co/other/fox-GGUF:Q8_0": "other", "openai/fox-Q8_0.gguf": "acme"}
    named |= {"other/fox-Q8_0": "other", "Acme/FOX-q8_0": "acme", "openai/fox-GGUF/fox-Q8_0": "other"}
    named |= {"acme/fox-GGUF/fox-Q8_0": "acme", "other/fox-GGUF/fox-Q8_0": "other"}
    for name, maker in named.items():
        assert pool.find(name).path.parents[1].name == maker
    with pytest.raises(ModelNotFound):
        pool.find(str(STARTER))
    pool.load(pool.find("fox-Q8_0"))
    assert pool.find("fox-GGUF/fox-Q8_0").path.parents[1].name == "other", "acme's is loaded"


def test_a_model_that_came_since_the_last_look_is_found_before_another_of_its_last_name(tmp_path: Path) -> None:
    def add(maker: str) -> None:
        (tmp_path / maker / "fox-GGUF").mkdir(parents=True)
        shutil.copyfile(STARTER, tmp_path / maker / "fox-GGUF" / "fox-Q8_0.gguf")

    add("acme")
    pool = Stage(ServerSettings(), shelf=Catalog([tmp_path], starter=None)).pool
    assert pool.find("fox-Q8_0").path.parents[1].name == "acme"
    add("other")
    assert pool.find("fox-GGUF/fox-Q8_0").path.parents[1].name == "other"


@beside_others()
async def test_a_second_model_is_loaded_beside_the_first_and_both_answer_at_once(stage: Stage) -> None:
    log: list[str] = []
    first, end_first = await hold(stage, "a", log)
    calls = [await hold(stage, "b", log) for _ in range(2)]
    assert [engine.loads for engine in stage.engines] == [["a.gguf"], ["b.gguf"]], "they wait for one load"
    ready(stage, 1, "b.gguf")
    await stage.settle()
    assert log == ["a.gguf", "b.gguf", "b.gguf"]
    assert stage.pool.main is stage.host, "a request does not choose"
    for call, release in [(first, end_first), *calls]:
        release.set()
        await call


@beside_others()
async def test_where_memory_is_short_the_one_that_nobody_uses_leaves_and_never_one_that_answers(stage: Stage) -> None:
    stage.room, log = 1, []
    call, release = await hold(stage, "a", log)
    other, end_other = await hold(stage, "b", log)
    assert [engine.loads for engine in stage.engines] == [["a.gguf"]], "it waits in the line"
    release.set()
    await call
    await stage.settle()
    assert stage.engine.loads == ["a.gguf", "b.gguf"]
    ready(stage, 0, "b.gguf")
    end_other.set()
    await other
    assert log == ["a.gguf", "b.gguf"]


@beside_others()
async def test_the_one_that_was_used_longest_ago_leaves_and_the_chosen_one_last(stage: Stage) -> None:
    stage.shelf.models.append(C)
    log: list[str] = []
    await answered(stage, "b", log, loads=(1, "b.gguf"))
    await answered(stage, "a", log)
    call, release = await hold(stage, "c", log)
    assert [engine.loads for engine in stage.engines] == [["a.gguf"], ["b.gguf", "c.gguf"]]
    assert stage.engines[1].n_unloads == 1, "its memory is free before the next is loaded"
    ready(stage, 1, "c.gguf")
    release.set()
    await call
    assert log == ["b.gguf", "a.gguf", "c.gguf"]


@beside_others()
async def test_a_model_that_left_comes_back_only_where_there_is_room(stage: Stage) -> None:
    stage.shelf.models.append(C)
    log: list[str] = []
    await answered(stage, "b", log, loads=(1, "b.gguf"))
    stage.room = 1
    call, release = await hold(stage, "c", log)
    assert [engine.n_unloads for engine in stage.engines] == [1, 1], "both had to leave for it"
    ready(stage, 1, "c.gguf")
    back, end_back = await hold(stage, "a", log)
    assert stage.engines[0].loads == ["a.gguf"], "it waits for the one that answers"
    release.set()
    await call
    await stage.settle()
    ready(stage, 1, "a.gguf")
    again, end_again = await hold(stage, "a", log)
    for end in (end_back, end_again):
        end.set()
    await asyncio.gather(back, again)
    await answered(stage, "b", log, loads=(0, "b.gguf"))
    assert [engine.loads for engine in stage.engines] == [["a.gguf", "b.gguf"], ["b.gguf", "c.gguf", "a.gguf"]]
    assert log == ["b.gguf", "c.gguf", "a.gguf", "a.gguf", "b.gguf"]


@beside_others(models_max=2)
async def test_no_more_than_models_max_are_loaded(stage: Stage) -> None:
    stage.shelf.models.append(C)
    stage.room, log = 9, []
    for number, name in enumerate(("b", "c")):
        await answered(stage, name, log, loads=(1, f"{name}.gguf"))
        assert len(stage.engines) == 2, number
    assert stage.engines[1].loads == ["b.gguf", "c.gguf"]


@beside_others()
async def test_a_load_that_fails_is_told_to_all_who_wait_and_tried_again_by_the_next(stage: Stage) -> None:
    log: list[str] = []
    calls = [(await hold(stage, "b", log))[0] for _ in range(2)]
    stage.engine, first = stage.engines[1], stage.engine
    stage.say(EnginePhase.FAILED, problem="It is broken.")
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [(type(end), "broken" in str(end)) for end in ends] == [(EngineUnavailable, True)] * 2
    stage.engine = first
    call, release = await hold(stage, "b", log)
    assert stage.engines[1].again == [False, True]
    ready(stage, 1, "b.gguf")
    release.set()
    await call
    assert (log, first.loads) == (["b.gguf"], ["a.gguf"])


@beside_others()
async def test_who_leaves_while_a_model_is_loaded_costs_the_others_nothing(stage: Stage) -> None:
    log: list[str] = []
    leaver, _ = await hold(stage, "b", log)
    call, release = await hold(stage, "b", log)
    leaver.cancel()
    await stage.settle()
    ready(stage, 1, "b.gguf")
    await stage.settle()
    release.set()
    await call
    assert log == ["b.gguf"]


@beside_others()
async def test_a_model_that_is_chosen_becomes_the_one_that_answers_unknown_names(stage: Stage) -> None:
    log: list[str] = []
    await answered(stage, "gpt-4o", log)
    await stage.pool.request_load("b")
    await stage.settle()
    ready(stage, 1, "b.gguf")
    await stage.settle()
    assert stage.pool.main.name == "b"
    await answered(stage, "gpt-4o", log)
    assert log == ["a.gguf", "b.gguf"]
    assert stage.host.state.phase is EnginePhase.READY, "the one before stays while there is room"


@on_stage(on_demand=True)
async def test_a_call_that_names_no_model_gets_the_chosen_one_whichever_is_loaded(stage: Stage) -> None:
    stage.pool.load(replace(A, is_toy=False))
    log: list[str] = []
    await answered(stage, "b", log, loads=(0, "b.gguf"))
    await answered(stage, "", log, loads=(0, "a.gguf"))
    await answered(stage, "b", log, loads=(0, "b.gguf"))
    await answered(stage, "gpt-4o", log, loads=(0, "a.gguf"))
    assert log == ["b.gguf", "a.gguf", "b.gguf", "a.gguf"]


@on_stage(on_demand=True)
async def test_the_bundled_toy_gives_way(stage: Stage) -> None:
    log: list[str] = []
    await answered(stage, "b", log, loads=(0, "b.gguf"))
    await answered(stage, "", log)
    await answered(stage, "gpt-4o", log)
    assert log == ["b.gguf"] * 3


@beside_others(strict_models=True, aliases=(("gpt-4o", ""), ("small", "b")))
async def test_aliases_stand_for_their_models(stage: Stage) -> None:
    log: list[str] = []
    await answered(stage, "gpt-4o", log)
    await answered(stage, "small", log, loads=(1, "b.gguf"))
    assert log == ["a.gguf", "b.gguf"]
    with pytest.raises(ModelNotFound):
        async with stage.pool.lease("gpt-4"):
            pass


@beside_others()
async def test_a_model_that_is_not_loaded_cannot_be_unloaded_and_one_beside_can(stage: Stage) -> None:
    with pytest.raises(BadRequest, match="b is not loaded"):
        await stage.pool.request_unload("b")
    log: list[str] = []
    await answered(stage, "b", log, loads=(1, "b.gguf"))
    assert (await stage.pool.request_unload("b")).name == "b"
    await stage.settle()
    assert [engine.n_unloads for engine in stage.engines] == [0, 1]


def test_a_model_beside_the_chosen_one_leaves_when_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_pool, "_BESIDE_SECONDS", 0.01)

    async def scenario(stage: Stage) -> None:
        stage.becomes_ready("a.gguf")
        await stage.settle()
        await answered(stage, "b", [], loads=(1, "b.gguf"))
        while not stage.engines[1].n_unloads:
            await asyncio.sleep(0.01)
        assert stage.engine.n_unloads == 0, "the chosen one stays"

    play(scenario, models_max=4)


def test_a_name_opens_no_file_of_the_folder_that_the_server_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        assert stage.pool.find(f"{STARTER.name}.gguf").name == STARTER.stem
        for name in ("private.gguf", "private.gguf.gguf", "./private.GGUF.gguf"):
            with pytest.raises(ModelNotFound):
                stage.pool.find(name)

    shutil.copyfile(STARTER, tmp_path / "private.gguf")
    monkeypatch.chdir(tmp_path)
    play(scenario, shelf=Catalog([]))


def test_a_file_outside_of_the_catalogue_that_is_gone_and_not_loaded_is_not_listed(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        file = tmp_path / "away.gguf"
        file.touch()
        stage.host.choose(ModelEntry("away", file))
        assert "away" in stage.pool.names()
        file.unlink()
        assert "away" not in stage.pool.names()

    play(scenario)


def test_a_model_that_comes_later_answers_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of Ollama ask for a model, and where it does not answer they pull it."""
    monkeypatch.setattr(model_pool, "_FRESH_SECONDS", 0.05)

    async def scenario(stage: Stage) -> None:
        stage.becomes_ready("a.gguf")
        log: list[str] = []
        await answered(stage, "c", log)
        stage.shelf.models.append(C)
        await asyncio.sleep(0.1)
        await answered(stage, "c", log, loads=(1, "c.gguf"))
        assert log == ["a.gguf", "c.gguf"]

    play(scenario, models_max=4)
