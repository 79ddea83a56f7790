"""The line of calls that want a model, and the engines that load them, with engines that load on command."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from app.pairing.chosen_draft import ChosenDraft
from app.server.calls import model_host
from app.server.calls.background_thread import BackgroundThread
from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.model_host import ModelHost, NamedParts
from app.server.calls.model_pool import ModelPool
from app.server.http.errors import ApiError, ModelNotFound, from_exception
from app.settings.model_settings_store import user_settings
from app.settings.server_settings import ServerSettings
from core.values.errors import EngineUnavailable, LoadFailed
from core.values.messages import EnginePhase, EngineState
from core.values.model_settings import ModelSettings
from models.catalog.catalog import ModelEntry
from tests.support.scripted_engine import ScriptedEngine, loaded
from tests.support.waiting import until

A, B = ModelEntry("a", Path("a.gguf"), is_toy=True), ModelEntry("b", Path("b.gguf"))
BROKEN = ModelEntry("broken", Path("broken.gguf"), problem="The file is cut short.")


class Shelf:
    def __init__(self) -> None:
        self.models = [A, B, BROKEN]

    def entries(self):
        return tuple(self.models)

    def find(self, *names: str, takes_paths: bool):
        return next((entry for entry in self.models if {entry.name, entry.name.upper()} & {*names}), None)


class Stage:
    """A pool, with the first of its engines and the host of that; ``room`` is how many models memory holds."""

    def __init__(self, settings: ServerSettings, named: NamedParts | None = None, shelf: Any = None) -> None:
        self.shelf = shelf or Shelf()
        self.engines: list[ScriptedEngine] = []
        self.drafts: dict[str, ChosenDraft] = {}
        self.room = 2
        self._settings, self._named = settings, named
        self.pool = ModelPool(self._made, self.shelf, settings, lambda entry, loaded: len(loaded) < self.room)
        self.host, self.engine = self.pool.main, self.engines[0]

    def _made(self) -> ModelHost:
        engine, bridge = ScriptedEngine(), EngineBridge()
        engine.listener = bridge.deliver
        self.engines.append(engine)
        return ModelHost(engine, bridge, self._settings, self._draft_of, self._named)

    def _draft_of(self, entry: ModelEntry) -> ChosenDraft:
        return self.drafts.get(entry.name, ChosenDraft())

    def say(self, phase: EnginePhase, path: str | None = None, load: int | None = None, **more: Any) -> None:
        self.engine.tell(EngineState(phase, loaded(path) if path else None, **more), load=load)

    def becomes_ready(self, path: str, load: int | None = None) -> None:
        self.say(EnginePhase.LOADING, load=load)
        self.say(EnginePhase.READY, path, load)

    async def settle(self) -> None:
        """Let everything happen that was begun: calls in the loop, loads on the host's thread, and what these begin."""
        for _ in range(5):
            for host in self.pool.hosts:
                await host.freed()
            await asyncio.sleep(0.001)  # for what asks whether a model fits
            for _ in range(5):
                await asyncio.sleep(0)

    async def hold(self, name: str | None, release: asyncio.Event, log: list[str]) -> None:
        async with self.pool.lease(name) as host:
            log.append(host.model.path)
            await release.wait()

    async def begin(self, name: str | None, release: asyncio.Event, log: list[str]) -> asyncio.Task[None]:
        """Let a call take a model, as far as it gets."""
        call = asyncio.ensure_future(self.hold(name, release, log))
        await self.settle()
        return call


def on_stage(named: NamedParts | None = None, *, is_ready: bool = False, **settings: Any):
    """Make a test of a coroutine that gets a stage, where ``is_ready`` with the first model loaded."""

    def decorate(scenario):
        async def with_the_first(stage: Stage) -> None:
            stage.becomes_ready("a.gguf")
            await stage.settle()
            await scenario(stage)

        def test() -> None:
            play(with_the_first if is_ready else scenario, named, **settings)

        test.__name__ = scenario.__name__
        return test

    return decorate


def play(scenario, named: NamedParts | None = None, shelf: Any = None, **settings: Any):
    async def attached():
        stage = Stage(ServerSettings(**{"models_max": 1, **settings}), named, shelf)
        stage.pool.load(A)
        stage.pool.attach()
        await stage.settle()
        try:
            return await asyncio.wait_for(scenario(stage), 60)
        finally:
            stage.pool.end()

    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for entry in (A, B, BROKEN):
            entry.path.touch()
        return asyncio.run(attached())


@on_stage()
async def test_calls_wait_until_the_model_is_loaded_and_then_run_side_by_side(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    calls = [asyncio.ensure_future(stage.hold(name, release, log)) for name in ("a", None, "A")]
    await stage.settle()
    assert log == []
    stage.becomes_ready("a.gguf")
    await stage.settle()
    assert log == ["a.gguf"] * 3
    release.set()
    await asyncio.gather(*calls)


@pytest.mark.parametrize("how", ["it hangs", "it is cancelled"])
def test_a_load_that_has_not_begun_keeps_the_server_from_nothing_and_starts_no_engine(how):
    has_begun, goes_on, is_over = threading.Event(), threading.Event(), threading.Event()

    def draft_for(entry):
        has_begun.set()
        goes_on.wait(60)
        is_over.set()
        return ChosenDraft()

    engine, bridge = ScriptedEngine(), EngineBridge()
    host = ModelHost(engine, bridge, ServerSettings(), draft_for=draft_for)
    host.load(A)
    assert has_begun.wait(60)
    if how == "it is cancelled":
        assert host.cancel_load()
        goes_on.set()
    host.end()
    assert how == "it is cancelled" or not is_over.is_set()
    assert not engine.is_available
    goes_on.set()
    assert is_over.wait(60)
    until(lambda: "model-loader" not in {thread.name for thread in threading.enumerate()})
    assert engine.loads == []


def test_what_failed_beside_does_not_cost_what_comes_after_it(caplog):
    side, is_done = BackgroundThread("beside"), threading.Event()
    side.submit(lambda: 1 / 0)
    side.submit(is_done.set)
    assert is_done.wait(60)
    side.end(60)
    assert caplog.messages == ["beside failed"]


def test_what_a_loaded_model_cannot_use_is_said_once(caplog):
    async def scenario(stage):
        model = replace(loaded("a.gguf"), notices=("Its heads are not used.",))
        for phase in (EnginePhase.LOADING, EnginePhase.READY, EnginePhase.READY):
            stage.engine.tell(EngineState(phase, model if phase is EnginePhase.READY else None))
        await stage.settle()

    play(scenario)
    assert caplog.messages == ["Its heads are not used."]


@on_stage(is_ready=True)
async def test_another_model_waits_for_running_calls_and_later_calls_wait_behind_it(stage: Stage) -> None:
    first, later, log = asyncio.Event(), asyncio.Event(), []
    later.set()
    running = await stage.begin("a", first, log)
    other = await stage.begin("b", later, log)
    behind = await stage.begin("a", later, log)
    assert stage.engine.loads == ["a.gguf"]
    assert stage.host.n_waiting == 2
    first.set()
    await stage.settle()
    assert stage.engine.loads == ["a.gguf", "b.gguf"]
    stage.becomes_ready("b.gguf")
    await stage.settle()
    assert stage.engine.loads == ["a.gguf", "b.gguf", "a.gguf"]
    stage.becomes_ready("a.gguf")
    await asyncio.gather(running, other, behind)
    assert log == ["a.gguf", "b.gguf", "a.gguf"]


@on_stage(is_ready=True)
async def test_a_call_that_leaves_the_line_lets_the_others_through(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    running = await stage.begin("a", release, log)
    leaver = await stage.begin("b", release, log)
    behind = await stage.begin("a", release, log)
    leaver.cancel()
    await stage.settle()
    assert log == ["a.gguf", "a.gguf"]
    assert stage.engine.loads == ["a.gguf"]
    release.set()
    await asyncio.gather(running, behind)


async def refusal(stage: Stage) -> EngineUnavailable:
    with pytest.raises(EngineUnavailable) as caught:
        async with stage.pool.lease("a"):
            pass
    return caught.value


@on_stage()
async def test_a_model_that_fails_is_unavailable_with_its_problem_until_it_may_be_tried_again(stage: Stage) -> None:
    stage.say(EnginePhase.LOADING)
    stage.say(EnginePhase.FAILED, problem="It needs 900 GB.", retry_at=time.monotonic() + 3_600)
    await stage.settle()
    told = await refusal(stage)
    assert "900 GB" in told.message
    assert told.retry_after is None, "a client need not try it by itself"
    assert re.fullmatch(r"It needs 900 GB\. A request tries it again in 3[\d]{3} s\.", told.message), told.message
    assert stage.engine.loads == ["a.gguf"]
    stage.say(EnginePhase.FAILED, problem="It needs 900 GB.")
    await stage.settle()
    assert not stage.host.comes_back, "it has never come up"
    calls = [asyncio.ensure_future(stage.hold("a", asyncio.Event(), [])) for _ in range(2)]
    await stage.settle()
    assert (stage.engine.loads, stage.engine.again) == (["a.gguf"] * 2, [False, True])
    stage.say(EnginePhase.FAILED, problem="It needs 800 GB.", retry_at=time.monotonic() + 3_600)
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert ["800 GB" in str(end) for end in ends] == [True, True], "who waited is told"


@on_stage(is_ready=True)
async def test_while_an_engine_that_died_is_left_alone_callers_are_told_when_to_come_again(stage: Stage) -> None:
    stage.say(EnginePhase.FAILED, problem="It died.", n_deaths=3, retry_at=time.monotonic() + 3_600)
    await stage.settle()
    told = from_exception(await refusal(stage))
    assert (told.answer.status, told.headers()["x-should-retry"]) == (503, "true")
    assert 3_500 < int(told.headers()["retry-after"]) <= 3_600
    assert "It died. Try again in 3" in told.message
    assert not stage.host.comes_back
    stage.say(EnginePhase.FAILED, problem="It died.", n_deaths=3)
    await stage.settle()
    assert stage.host.comes_back, "the next call loads it"
    A.path.unlink()
    assert not stage.host.comes_back, "its file is gone"


@on_stage()
async def test_who_waits_for_an_engine_that_cannot_be_started_is_told(stage: Stage) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    stage.engine.load = refuse
    stage.host.load(A)
    with pytest.raises(EngineUnavailable, match="could not be started: no more processes"):
        await stage.hold("a", asyncio.Event(), [])


def test_an_engine_that_is_started_again_is_no_use_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(model_host, "_NOTE_SECONDS", 0.0)
    monkeypatch.setattr(model_host, "note_use", lambda path: noted.append(path.name))

    async def scenario(stage: Stage) -> None:
        stage.becomes_ready("a.gguf")
        await stage.settle()
        assert noted == ["a.gguf"]
        stage.say(EnginePhase.RESTARTING)
        stage.becomes_ready("a.gguf")
        await stage.settle()
        assert noted == ["a.gguf"]
        async with stage.pool.lease("a"):
            pass
        await stage.settle()
        assert noted == ["a.gguf"] * 2

    play(scenario)


@on_stage()
async def test_a_model_that_failed_is_found_where_its_file_is_now(stage: Stage) -> None:
    stage.say(EnginePhase.FAILED, problem="There is no file a.gguf.", retry_at=time.monotonic() + 3_600)
    await stage.settle()
    moved = ModelEntry("a", A.path.rename("elsewhere.gguf"))
    stage.shelf.models = [moved, B]
    assert stage.pool.find("a") is moved


@on_stage()
async def test_the_user_may_ask_for_a_model_that_failed_at_once(stage: Stage) -> None:
    stage.say(EnginePhase.FAILED, problem="It needs 900 GB.", retry_at=time.monotonic() + 3_600)
    await stage.settle()
    A.path.unlink()
    with pytest.raises(ModelNotFound):
        await stage.pool.request_load("a")
    A.path.touch()
    await stage.pool.request_load("a")
    await stage.settle()
    assert stage.engine.again == [False, True]
    stage.becomes_ready("a.gguf")
    async with stage.pool.lease("a"):
        pass


@on_stage(is_ready=True)
async def test_what_is_said_of_a_load_that_was_replaced_changes_nothing_of_the_next(stage: Stage) -> None:
    stage.say(EnginePhase.RESTARTING, problem="It died.")
    await stage.settle()
    async with stage.pool.lease("a") as host:
        assert host.model.path == "a.gguf", "a dead engine keeps its model"
    stage.host.load(B)
    await stage.settle()
    stage.say(EnginePhase.LOADING, progress=0.3)
    await stage.settle()
    stage.host.load(A)
    release, log = asyncio.Event(), []
    release.set()
    call = await stage.begin("a", release, log)
    stage.say(EnginePhase.LOADING, load=2, progress=0.6)
    stage.say(EnginePhase.FAILED, load=2, problem="b is broken.")
    await stage.settle()
    assert (stage.host.state.phase, stage.host.state.progress) == (EnginePhase.LOADING, 0.0)
    stage.becomes_ready("a.gguf")
    await call
    assert log == ["a.gguf"]


@on_stage(is_ready=True)
async def test_a_model_that_runs_without_something_is_loaded_whole_when_it_is_asked_for(stage: Stage) -> None:
    await stage.pool.request_load("a")
    await stage.settle()
    assert stage.engine.loads == ["a.gguf"]
    stage.say(EnginePhase.READY, "a.gguf", left_out=("Nothing drafts.",))
    await stage.settle()
    release, log = asyncio.Event(), []
    running = await stage.begin("a", release, log)
    await stage.pool.request_load("a")
    await stage.settle()
    assert stage.engine.loads == ["a.gguf"], "who runs is not disturbed"
    release.set()
    await running
    await stage.settle()
    assert (stage.engine.loads, stage.engine.again) == (["a.gguf"] * 2, [False, False])


@on_stage(is_ready=True)
async def test_a_model_is_unloaded_when_nobody_uses_it_and_comes_back_with_the_next_call(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    running = await stage.begin("a", release, log)
    await stage.pool.request_unload()
    await stage.settle()
    assert stage.engine.n_unloads == 0
    await stage.pool.request_load("a")  # who changes their mind keeps it
    other = await stage.begin("a", release, log)
    release.set()
    await asyncio.gather(running, other)
    await stage.settle()
    assert stage.engine.n_unloads == 0
    release.clear()
    running = await stage.begin("a", release, log)
    await stage.pool.request_unload()
    release.set()
    await running
    await stage.settle()
    assert (stage.engine.n_unloads, stage.host.state.phase, stage.host.model) == (1, EnginePhase.EMPTY, None)
    await stage.pool.request_unload()  # there is nothing left to unload
    again = await stage.begin(None, release, log)
    assert stage.engine.loads == ["a.gguf"] * 2
    stage.becomes_ready("a.gguf")
    await again
    await stage.settle()
    assert (stage.engine.n_unloads, log) == (1, ["a.gguf"] * 4)


@on_stage()
async def test_a_cancelled_load_ends_the_calls_that_wait_for_it_and_the_next_one_loads_anew(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    calls = [asyncio.ensure_future(stage.hold("a", release, log)) for _ in range(2)]
    await stage.settle()
    stage.say(EnginePhase.LOADING, progress=0.3)
    await stage.settle()
    assert stage.pool.main.cancel_load()
    assert not stage.pool.main.cancel_load()  # it is over
    for call in calls:
        with pytest.raises(EngineUnavailable, match="cancelled"):
            await call
    await stage.settle()
    assert (stage.engine.n_unloads, stage.host.state.phase, stage.host.is_idle) == (1, EnginePhase.EMPTY, True)
    again = await stage.begin(None, release, log)
    assert stage.engine.loads == ["a.gguf"] * 2
    stage.becomes_ready("a.gguf")
    release.set()
    await again
    assert not stage.pool.main.cancel_load()  # nothing loads
    assert log == ["a.gguf"]


@on_stage()
async def test_a_models_file_goes_after_the_model_and_calls_behind_it_wait(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    first = asyncio.ensure_future(stage.hold("a", release, log))
    stage.becomes_ready("a.gguf")
    await stage.settle()

    async def remove() -> None:
        async with stage.pool.without(lambda file: file == A.path):
            log.append(f"gone after {stage.engine.n_unloads} unloads")
            await asyncio.sleep(0.01)
            A.path.unlink()
            log.append("over")

    removing = asyncio.ensure_future(remove())
    await stage.settle()
    waiting = await stage.begin("a", release, log)
    assert (log, stage.engine.n_unloads) == (["a.gguf"], 0), "the call that runs is waited for"
    release.set()
    await asyncio.gather(first, removing)
    assert log[1:] == ["gone after 1 unloads", "over"]
    await stage.settle()
    assert stage.engine.loads == ["a.gguf"] * 2, "now the call behind it may try"
    stage.say(EnginePhase.FAILED, problem="There is no file a.gguf.")
    with pytest.raises(ModelNotFound):
        await waiting
    async with stage.pool.without(lambda file: True):
        pass
    assert stage.host.entry is None, "what is gone is forgotten"
    with pytest.raises(EngineUnavailable, match="name one"):
        await stage.hold(None, release, log)


@on_stage()
async def test_a_removal_that_is_given_up_lets_calls_through(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    first = asyncio.ensure_future(stage.hold("a", release, log))
    stage.becomes_ready("a.gguf")
    await stage.settle()
    removing = asyncio.ensure_future(anext(aiter_of(stage.pool.without(lambda file: file == A.path))))
    await stage.settle()
    second = await stage.begin("a", release, log)
    removing.cancel()
    await stage.settle()
    assert log == ["a.gguf"] * 2
    release.set()
    await asyncio.gather(first, second)
    assert stage.engine.n_unloads == 0


async def aiter_of(context):
    async with context as value:
        yield value


@on_stage(idle_unload=0.01)
async def test_an_idle_model_leaves_memory_but_never_one_that_answers(stage: Stage) -> None:
    release = asyncio.Event()
    running = asyncio.ensure_future(stage.hold("a", release, []))
    stage.becomes_ready("a.gguf")
    await asyncio.sleep(0.05)
    assert stage.engine.n_unloads == 0
    release.set()
    await running
    while not stage.engine.n_unloads:
        await asyncio.sleep(0.01)
    assert stage.host.state.phase is EnginePhase.EMPTY
    await stage.pool.request_load("a")
    await stage.settle()
    assert stage.engine.loads == ["a.gguf"] * 2


@on_stage(is_ready=True)
async def test_a_load_takes_the_place_of_an_unload_that_was_not_done_yet(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    running = await stage.begin("a", release, log)
    await stage.pool.request_unload()
    other = await stage.begin("b", release, log)
    release.set()
    await running
    await stage.settle()
    stage.becomes_ready("b.gguf")
    await other
    await stage.settle()
    assert (stage.engine.loads, stage.engine.n_unloads) == (["a.gguf", "b.gguf"], 0)


@on_stage()
async def test_the_last_words_of_the_model_before_are_not_taken_for_the_new_one(stage: Stage) -> None:
    release, log = asyncio.Event(), []
    release.set()
    stage.say(EnginePhase.LOADING)
    await stage.pool.request_load("b")
    call = await stage.begin("b", release, log)
    stage.becomes_ready("a.gguf", load=1)
    await stage.settle()
    assert (log, stage.host.model) == ([], None)
    stage.becomes_ready("b.gguf")
    await call
    assert (log, stage.host.name) == (["b.gguf"], "b")
    running_release = asyncio.Event()
    running = await stage.begin("b", running_release, log)
    assert (await stage.pool.request_load("a")).name == "a"
    await stage.settle()
    assert stage.host.name == "b", "while it is used"
    running_release.set()
    await running
    await stage.settle()
    assert stage.host.name == "a"


@on_stage()
async def test_names_that_are_unknown_or_broken_are_told_apart(stage: Stage) -> None:
    with pytest.raises(ModelNotFound, match="a, b"):
        await stage.pool.request_load("c")
    with pytest.raises(LoadFailed, match="cut short"):
        await stage.pool.request_load("broken")
    assert stage.pool.names() == ("a", "b")


@on_stage()
async def test_when_the_server_leaves_everybody_in_the_line_is_told(stage: Stage) -> None:
    release = asyncio.Event()
    waiting = await stage.begin("a", release, [])
    in_line = await stage.begin("b", release, [])
    stage.pool.close()
    ends = await asyncio.gather(waiting, in_line, return_exceptions=True)
    with pytest.raises(ApiError, match="shutting down") as caught:
        await stage.pool.request_load("a")
    ends.append(caught.value)
    assert [end.answer.code for end in ends] == ["shutting_down"] * 3, "a batch waits for such a server"


@on_stage()
async def test_a_load_that_waits_when_the_server_leaves_is_nobodys_error(stage: Stage) -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    stage.becomes_ready("a.gguf")
    release = asyncio.Event()
    call = asyncio.ensure_future(stage.hold("a", release, []))
    await stage.settle()
    await stage.pool.request_load("b")
    await stage.settle()
    stage.pool.close()
    await stage.settle()
    release.set()
    await call
    gc.collect()
    assert problems == []
    assert stage.host.is_idle


def test_each_model_has_the_partner_that_is_found_for_it(caplog):
    async def scenario(stage):
        small = ChosenDraft(Path("small.gguf"), "small", "It is best.", ("Another is gone.",), uses_heads=False)
        stage.drafts["a"] = small
        for entry in (A, B):
            stage.host.load(entry)
            await stage.settle()
        first, second = stage.engine.options[-2:]
        assert (first.draft_path, first.must_draft) == ("small.gguf", False)
        assert (second.draft_path, stage.host.draft) == (None, ChosenDraft())
        assert (first.uses_heads, second.uses_heads) == (False, True)

    play(scenario)
    assert "Another is gone." in caplog.text


@on_stage(NamedParts(A.path, B.path))
async def test_a_named_draft_goes_before_one_that_would_be_found(stage: Stage) -> None:
    stage.drafts["a"] = stage.drafts["b"] = ChosenDraft(Path("found.gguf"), "found")
    stage.host.load(A)
    await stage.settle()
    assert (stage.engine.options[-1].draft_path, stage.engine.options[-1].must_draft) == ("b.gguf", True)
    stage.becomes_ready("a.gguf")
    await stage.settle()
    stage.host.load(A)
    await stage.settle()
    assert not stage.engine.options[-1].must_draft, "it may have gone since it worked"
    stage.host.load(B)
    await stage.settle()
    assert stage.engine.options[-1].draft_path == "found.gguf"


def test_a_model_that_is_asked_for_again_is_loaded_with_what_was_set_for_it_since(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.becomes_ready("a.gguf")
        await stage.settle()
        for own in (ModelSettings(temperature=0.1), ModelSettings(ctx=64), ModelSettings(ctx=64)):
            user_settings().change(A.path, A.name, lambda old, own=own: own)
            await stage.pool.request_load("a")
            await stage.settle()
        assert stage.engine.loads == ["a.gguf"] * 2, "sampling counts at once, a context when it is loaded"

    monkeypatch.chdir(home)
    A.path.write_bytes(b"GGUF")
    play(scenario)
