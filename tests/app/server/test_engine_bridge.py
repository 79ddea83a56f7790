"""The way of events from the supervisor's thread to the calls that wait for them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from app.server.calls.engine_bridge import MAX_REQUESTS, EngineBridge
from app.server.calls.generation import collect
from app.server.http.errors import ApiError, RequestFailed
from core.values.errors import EngineUnavailable
from core.values.messages import (
    Bottleneck,
    Ended,
    EnginePhase,
    EngineState,
    Failure,
    FailureKind,
    FinishReason,
    Logprob,
    Receipt,
    Snapshot,
    Started,
    Token,
    TokenLogprob,
)
from core.values.request import Request, TokenizeRequest
from tests.support.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.anyio


def token(request_id: str, text: str) -> Token:
    return Token(request_id, text, 1, ())


@pytest.fixture
def engine():
    return ScriptedEngine()


def bridge_to(engine: ScriptedEngine) -> EngineBridge:
    made = EngineBridge()
    engine.listener = made.deliver
    return made


@pytest.fixture
async def bridge(engine):
    """One whose calls are in the test's loop."""
    made = bridge_to(engine)
    made.attach(engine, lambda state: None)
    return made


async def test_events_of_another_thread_reach_their_channel_in_order(bridge, engine):
    one = bridge.open([Request("a", "x")], streams=True)
    other = bridge.open([Request("b", "x")], streams=True)
    events = (Started("a", 1, 0), token("b", "no"), token("a", "1"), token("a", "2"))
    threading.Thread(target=engine.tell, args=events).start()
    assert await one.take() == [Started("a", 1, 0), token("a", "1"), token("a", "2")]
    assert await other.take() == [token("b", "no")]
    assert (bridge.n_active, bridge.n_queued) == (1, 1)
    threading.Thread(target=engine.tell, args=(Ended("a", FinishReason.STOP),)).start()
    assert await one.take() == [Ended("a", FinishReason.STOP)]
    assert one.is_over
    assert (bridge.n_active, bridge.n_queued) == (0, 1)


async def test_an_observer_that_fails_costs_no_call_its_end(bridge, engine):
    class Broken:
        def opened(self, request) -> None:
            raise OSError("no more threads")

        ended = closed = opened

    bridge.observers.insert(0, Broken())
    channels = [bridge.open([Request(name, "x")], streams=True) for name in "abc"]
    engine.tell(Ended("a", FinishReason.STOP), Ended("b", FinishReason.STOP))
    for name, channel in zip("ab", channels, strict=False):
        assert await channel.take() == [Ended(name, FinishReason.STOP)]
    bridge.close(channels[2])
    assert (bridge.n_active, bridge.n_queued) == (0, 0)
    assert bridge.totals.n_ended == {"stop": 2, "cancelled": 1}


async def test_a_call_that_lags_finds_everything_at_once(bridge, engine):
    channel = bridge.open([Request("a", "x")], streams=True)
    for text in "abc":
        engine.tell(token("a", text))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (news,) = collect(await channel.take(), {"a": 0})
    assert news.text == "abc"
    assert news.end is None
    one = TokenLogprob(Logprob(1, b"a", -0.1), ())
    events = [Token("a", "", 1, (one,)), Token("a", "ab", 1, (one,))]
    (news,) = collect(events, {"a": 0})
    assert news.text == "ab"
    assert news.logprobs == [one, one]


async def test_a_call_that_wants_the_whole_is_woken_once(bridge, engine):
    channel = bridge.open([Request("a", "x"), Request("b", "x")], streams=False)
    taking = asyncio.ensure_future(channel.take())
    engine.tell(token("a", "1"), Ended("a", FinishReason.STOP))
    await asyncio.sleep(0.01)
    assert not taking.done()
    engine.tell(token("b", "2"), Ended("b", FinishReason.LENGTH, text="3"))
    first, second = collect(await taking, {"a": 0, "b": 1})
    assert (first.text, first.end.reason) == ("1", FinishReason.STOP)
    assert (second.text, second.end.reason) == ("23", FinishReason.LENGTH)


async def test_closing_cancels_what_still_runs_and_hears_no_more(bridge, engine):
    channel = bridge.open([Request("a", "x"), Request("b", "x")], streams=True)
    engine.tell(Ended("a", FinishReason.STOP))
    await channel.take()
    bridge.close(channel)
    engine.tell(token("b", "late"), Ended("b", FinishReason.CANCELLED))
    await asyncio.sleep(0.01)
    assert channel.is_over
    assert (bridge.n_active, bridge.n_queued) == (0, 0)
    assert engine.cancelled == ["b"]


@pytest.mark.parametrize("ask", [Request("a", "x"), TokenizeRequest("a", ("x",))], ids=["text", "tokens"])
async def test_a_request_that_ends_while_it_is_cancelled_counts_as_cancelled(bridge, engine, ask):
    channel = bridge.open([ask], streams=True)
    bridge.cancel("a")
    engine.tell(Ended("a", FinishReason.LENGTH))  # sent before the engine had read the cancel
    assert await channel.take() == [Ended("a", FinishReason.CANCELLED)]


async def test_states_that_came_before_the_loop_are_not_lost(engine):
    bridge, states = bridge_to(engine), []
    engine.tell(EngineState(EnginePhase.LOADING))
    bridge.attach(engine, states.append)
    threading.Thread(target=engine.tell, args=(EngineState(EnginePhase.READY),)).start()
    while len(states) < 2:
        await asyncio.sleep(0.001)
    assert [state.phase for state in states] == [EnginePhase.LOADING, EnginePhase.READY]


async def test_without_an_engine_or_with_too_many_requests_nothing_is_left_behind(bridge, engine):
    engine.is_available = False
    with pytest.raises(EngineUnavailable):
        bridge.open([Request("a", "x")], streams=True)
    assert (bridge.n_active, bridge.n_queued, bridge.totals.n_ended) == (0, 0, {})
    engine.is_available = True
    bridge.open([Request(str(i), "x") for i in range(MAX_REQUESTS)], streams=False)
    with pytest.raises(ApiError) as caught:
        bridge.open([Request("one more", "x")], streams=False)
    error = caught.value
    assert error.answer.status == 503
    assert error.headers()["retry-after"] == "1"


@pytest.mark.parametrize(("wait", "told"), [(0.0, "1"), (5.0, "5"), (14.2, "15")])
def test_whoever_was_cut_off_is_told_how_long_the_engine_is_left_alone(wait, told):
    error = RequestFailed(Failure(FailureKind.ENGINE_DIED, "The engine died.", retry_after=wait))
    assert (error.answer.status, error.headers()["retry-after"]) == (503, told)


async def test_leaving_ends_every_request_with_a_sentence(bridge, engine):
    channel = bridge.open([Request("a", "x")], streams=True)
    bridge.end_all("The server is shutting down.")
    (ended,) = await channel.take()
    assert ended.failure.message == "The server is shutting down."


def test_a_message_after_the_loop_has_ended_is_dropped(engine):
    async def attach() -> None:
        bridge_to(engine).attach(engine, lambda state: None)

    asyncio.run(attach())
    engine.tell(EngineState(EnginePhase.EMPTY))
    engine.tell(EngineState(EnginePhase.EMPTY))


async def test_the_last_snapshot_is_kept_until_the_engine_changes(bridge, engine):
    bridge.deliver((Snapshot(n_active=2), Snapshot(n_active=1)))
    while bridge.snapshot is None:
        await asyncio.sleep(0)
    found = bridge.snapshot
    bridge.deliver((EngineState(EnginePhase.RESTARTING),))
    while bridge.snapshot is not None:
        await asyncio.sleep(0)
    assert found.n_active == 1


async def test_gauges_show_the_average_of_a_reply_that_was_left_too(bridge, engine):
    channel = bridge.open([Request("a", "x")], streams=True)
    engine.tell(Snapshot(is_idle=False, decode_rate=40.0))
    bridge.close(channel)
    engine.tell(Ended("a", FinishReason.CANCELLED, receipt=Receipt(n_generated=9, decode=0.5)), Snapshot())
    while bridge.snapshot is None or not bridge.snapshot.is_idle:
        await asyncio.sleep(0)
    assert bridge.last_reply.decode_rate == 16.0


@pytest.mark.parametrize(
    ("limit", "shown"), [(Bottleneck.COMPUTE, Bottleneck.COMPUTE), (Bottleneck.UNKNOWN, Bottleneck.OVERHEAD)]
)
async def test_gauges_keep_the_figures_of_the_last_reply_until_the_engine_changes(bridge, engine, limit, shown):
    measured = Receipt(n_generated=9, decode=0.5, bytes_per_token=2e6, limited_by=limit)
    receipt = replace(measured, n_drafted=4, n_accepted=3, speedup=1.5)
    bridge.open([Request("a", "x")], streams=True)
    engine.tell(Snapshot(is_idle=False, prefill_rate=900.0, limited_by=Bottleneck.OVERHEAD, n_cells=64))
    engine.tell(Ended("a", FinishReason.STOP, receipt=receipt), Snapshot(n_cells=64))
    while bridge.last_reply is None or not bridge.snapshot.is_idle:
        await asyncio.sleep(0)
    last = bridge.last_reply
    engine.tell(EngineState(EnginePhase.LOADING))
    while bridge.last_reply is not None:
        await asyncio.sleep(0)
    assert (last.decode_rate, last.prefill_rate, last.bytes_per_second) == (16.0, 0.0, 32e6)
    assert (last.acceptance, last.speedup, last.limited_by) == (0.75, 1.5, shown), "not of its last second"
