"""Deep replies: with the real engine behind the bridge, and over HTTP with the client that editors use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.engine_bridge import EngineBridge
from app.server.calls.generation import collect
from app.server.chat import deep
from app.server.chat.deep import (
    LEAST_ANSWER,
    LEAST_DRAFT,
    LEAST_NOTES,
    MOST_DRAFTS,
    DeepLimits,
    DeepPart,
    DeepReply,
    plan_deep,
)
from app.server.http.errors import RequestFailed
from app.server.templates.chat_template import TemplateRenderer
from core.process.supervisor import Supervisor
from core.values.engine_options import EngineOptions
from core.values.messages import Ended, EnginePhase, Failure, FailureKind, FinishReason, LoadedModel, Token
from core.values.request import Request, SamplingParams
from tests.support import measured
from tests.support.waiting import until
from tools.model_factory.gguf_factory import EMBER
from tools.model_factory.lora_factory import lora

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked_children")]
USER = {"role": "user", "content": "Tell me a story about a fox."}


class Room:
    """A bridge to a real engine, and what it takes to think on it."""

    def __init__(self, bridge: EngineBridge, renderer: TemplateRenderer, model: LoadedModel) -> None:
        self.bridge, self.renderer, self.model = bridge, renderer, model

    async def reply(self, max_tokens: int | None = 30, scales: tuple[float, ...] = (), **fields: Any) -> DeepReply:
        body = ChatCompletionBody.model_validate({"messages": [USER], "speed": "deep", "seed": 1} | fields)
        prompt = await self.renderer.render(self.model, body.template_variables())
        sampling = next(body.sampling(None))
        question = Request("question", prompt, max_tokens, sampling=sampling, lora=scales, salt=body.salt)
        return DeepReply(body, question, self.bridge, self.renderer, self.model)

    async def answer(self, request: Request) -> tuple[str, Ended]:
        channel = self.bridge.open([request], streams=False)
        try:
            (news,) = collect(await channel.take(), {request.id: 0})
        finally:
            self.bridge.close(channel)
        assert news.end is not None
        return news.text, news.end

    async def becomes_idle(self) -> None:
        """Hold that nobody runs any more, by the engine's own word."""
        assert self.bridge.n_active == self.bridge.n_queued == 0
        deadline = time.monotonic() + 60
        while (now := self.bridge.snapshot) is None or not now.is_idle:
            assert time.monotonic() < deadline, now
            await asyncio.sleep(0.01)
        assert (now.n_active, now.n_waiting) == (0, 0)


def usage_of(n_prompt: int, n_generated: int, n_cached: int) -> dict[str, Any]:
    details = {"cached_tokens": n_cached}
    return {"prompt_tokens": n_prompt, "completion_tokens": n_generated, "prompt_tokens_details": details}


@asynccontextmanager
async def room(folder: Path, **options: Any) -> AsyncIterator[Room]:
    measured.give(folder / "cache")
    bridge, renderer = EngineBridge(), TemplateRenderer()
    supervisor = Supervisor(bridge.deliver, log_folder=folder / "log", cache_folder=folder / "cache")
    bridge.attach(supervisor, lambda _state: None)
    try:
        await asyncio.to_thread(supervisor.load, EngineOptions(str(EMBER), **{"n_slots": 4} | options))
        while bridge.state.phase is not EnginePhase.READY:
            assert bridge.state.phase is not EnginePhase.FAILED, bridge.state.problem
            await asyncio.sleep(0.02)
        assert bridge.state.model is not None
        yield Room(bridge, renderer, bridge.state.model)
    finally:
        await renderer.close()
        await asyncio.to_thread(supervisor.close)


@pytest.fixture(scope="module")
async def shared_room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    async with room(tmp_path_factory.mktemp("deep")) as one:
        yield one


@pytest.fixture
async def stage(shared_room: Room) -> Room:
    """A room with the engine of those before, which each must leave idle; of what was before nothing counts."""
    shared_room.bridge.snapshot = None
    deep.progress_listener.set(None)
    return Room(shared_room.bridge, shared_room.renderer, shared_room.model)


@pytest.fixture
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine's steps cost, three drafts are nearly free."""
    plan = deep.plan_deep
    monkeypatch.setattr(deep, "plan_deep", lambda now: plan(replace(now, cheap_rows=3)))


@pytest.mark.usefixtures("_cheap")
async def test_notes_find_the_question_in_the_cache_of_their_key_and_adapters(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "What does the owl that nobody else has asked about eat in a long winter?"}
    async with room(tmp_path, lora=((str(lora(tmp_path / "owl.gguf", 1)), 1.0),)) as stage:
        for own in ({"cache_salt": "of a user"}, {"scales": (0.5,)}):
            reply = await stage.reply(messages=[asked], **own)
            async with aclosing(reply.think()) as thinking:
                assert [progress async for progress in thinking]
            drafting, distilling = reply.stages
            assert distilling.receipts[0].n_cached > drafting.receipts[0].n_prompt // 2, own


@pytest.mark.usefixtures("_cheap")
async def test_drafts_become_notes_and_notes_an_answer(stage: Room) -> None:
    deep.progress_listener.set(lambda progress: None)
    reply = await stage.reply()
    async with aclosing(reply.think()) as thinking:
        seen = [progress async for progress in thinking]
    names = [progress.stage for progress in seen]
    assert list(dict.fromkeys(names)) == ["drafting", "distilling", "refining"]
    assert [progress.n_tokens for progress in seen] == sorted(progress.n_tokens for progress in seen)
    assert seen[-1].n_drafts == seen[-1].n_drafts_done == 3
    assert "Notes on earlier drafts" in str(reply.answer.prompt)
    text, end = await stage.answer(reply.answer)
    assert text.strip()
    told = reply.timings(end.receipt)["deep"]
    assert (told["drafts"], told["drafts_used"]) == (3, 3)
    assert [one["stage"] for one in told["stages"]] == ["drafting", "distilling", "refining"]
    assert sum(one["completion_tokens"] for one in told["stages"][:2]) == seen[-1].n_tokens
    # Texts go along where nobody reads the reply as a stream.
    assert [len(one.get("texts", ())) for one in told["stages"]] == [3, 1, 0]
    usage = reply.usage(usage_of(end.receipt.n_prompt, end.receipt.n_generated, end.receipt.n_cached))
    assert usage["completion_tokens_details"]["reasoning_tokens"] == seen[-1].n_tokens
    assert usage["completion_tokens"] == seen[-1].n_tokens + end.receipt.n_generated
    assert usage["prompt_tokens"] == sum(one["prompt_tokens"] for one in told["stages"])
    await stage.becomes_idle()


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("stop_at", ["measuring", "drafting", "distilling", "refining"])
async def test_a_reply_that_is_cancelled_leaves_nobody_running(stage: Room, stop_at: str) -> None:
    reply = await stage.reply(max_tokens=None, ignore_eos=True)
    reached = asyncio.Event()

    async def follow() -> None:
        async with aclosing(reply.think()) as thinking:
            async for progress in thinking:
                if progress.stage == stop_at and progress.stage != "refining" and stage.bridge.n_active:
                    reached.set()
        reached.set()
        await stage.answer(reply.answer)

    work = asyncio.ensure_future(follow())
    if stop_at == "measuring":
        while not stage.bridge.n_active:
            await asyncio.sleep(0)
    else:
        await reached.wait()
    if stop_at == "refining":
        while not stage.bridge.n_active:
            await asyncio.sleep(0.001)
    assert not work.done()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await stage.becomes_idle()
    _, end = await stage.answer(Request("after", "Once", 3, sampling=SamplingParams(temperature=0)))
    assert end.reason is FinishReason.LENGTH


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("n_ctx", [160, 320])
async def test_a_small_context_is_kept_in_every_stage(tmp_path: Path, n_ctx: int) -> None:
    async with room(tmp_path, n_ctx=n_ctx, n_cells=n_ctx) as stage:
        reply = await stage.reply(max_tokens=None, ignore_eos=True)
        async with aclosing(reply.think()) as thinking:
            seen = [progress.stage async for progress in thinking]
        assert seen[-1] == ("plain" if n_ctx == 160 else "refining")
        text, end = await stage.answer(reply.answer)
        assert text
        assert end.reason is FinishReason.LENGTH, "up to the end of the context"


async def test_one_slot_answers_plainly_and_says_so(tmp_path: Path) -> None:
    async with room(tmp_path, n_slots=1) as stage:
        reply = await stage.reply(temperature=0)
        async with aclosing(reply.think()) as thinking:
            (progress,) = [progress async for progress in thinking]
        assert progress.wire()["stage"] == "plain"
        assert "slot" in progress.wire()["reason"]
        assert reply.answer.id == "question"
        _, end = await stage.answer(reply.answer)
        assert reply.timings(end.receipt)["deep"]["drafts"] == 1
        assert reply.usage(usage_of(3, 2, 0))["total_tokens"] == 5


def ended(name: str, kind: FailureKind | None = None) -> Ended:
    failure = Failure(kind, "It went wrong.") if kind is not None else None
    return Ended(name, FinishReason.FAILED if failure else FinishReason.LENGTH, failure=failure)


class FailingDrafts(EngineBridge):
    """Fails the drafts that a test names; everything else goes to the engine."""

    def __init__(self, inner: EngineBridge, failing: set[int]) -> None:
        super().__init__()
        self.inner, self.failing, self.prompts = inner, failing, []

    @property
    def n_active(self) -> int:
        return self.inner.n_active

    def open(self, requests: Any, streams: bool) -> Any:
        self.prompts.append(str(requests[0].prompt))
        spoilt = [
            replace(request, prompt=(10**9,)) if len(requests) > 1 and index in self.failing else request
            for index, request in enumerate(requests)
        ]
        return self.inner.open(spoilt, streams)

    def close(self, channel: Any) -> None:
        self.inner.close(channel)


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("failing", [{0}, {1, 2}, {0, 1, 2}])
async def test_drafts_that_fail_do_not_sink_the_answer_unless_all_do(stage: Room, failing: set[int]) -> None:
    inner = stage.bridge
    stage.bridge = bridge = FailingDrafts(inner, failing)
    reply = await stage.reply()
    if len(failing) == 3:
        with pytest.raises(RequestFailed, match="is no token"):
            async with aclosing(reply.think()) as thinking:
                [progress async for progress in thinking]
    else:
        async with aclosing(reply.think()) as thinking:
            last = [progress async for progress in thinking][-1]
        assert last.stage == "refining"
        assert reply.n_used == 3 - len(failing)
        assert f"Below are {3 - len(failing)} drafts" in bridge.prompts[-1]
    stage.bridge = inner
    await stage.becomes_idle()


def test_a_text_is_clipped_at_whole_tokens() -> None:
    part = DeepPart(Request("p", "x"))
    for text, n in ((" One", 1), ("", 1), (" two", 1), (" three four", 2)):
        part.take(Token("p", text, n, ()))
    part.take(ended("p"))
    assert part.text() == "One two three four"
    assert [part.text(n) for n in range(6)] == ["", "One", "One", "One two", "One two", "One two three four"]
    assert part.n_tokens == 5


def test_drafts_differ_and_only_the_answer_is_constrained() -> None:
    body = ChatCompletionBody.model_validate({"messages": [USER], "temperature": 0})
    question = Request("q", "x", 5, ("stop",), SamplingParams(temperature=0, ignore_eos=True))

    def asked(question: Request) -> DeepReply:
        return DeepReply(body, question, EngineBridge(), TemplateRenderer(), None)

    reply = asked(question)
    first, second = reply.draft(0), reply.draft(1)
    assert (first.sampling.temperature, second.sampling.temperature) == (0, 0.7)
    assert (first.stop, first.constraint, first.sampling.ignore_eos) == ((), None, False)
    assert second.sampling.seed == reply.draft(1).sampling.seed, "temperature 0 can be repeated"
    assert reply.draft(2).sampling.seed != second.sampling.seed
    assert reply.answer is question
    largest = asked(replace(question, sampling=SamplingParams(seed=2**64 - 1)))
    assert [largest.draft(index).sampling.seed for index in range(3)] == [2**64 - 1, 0, 1]


# Over HTTP. How many drafts there are is up to the machine; what is promised holds for any number.

DEEP = {"speed": "deep"}


def test_a_deep_reply_over_http_tells_its_stages(server) -> None:
    answer = server.chat(extra_body=DEEP)
    told = answer.timings["deep"]
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert (told["drafts"] > 1) == ("reason" not in told) == bool(told["stages"])
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    hidden = sum(stage["completion_tokens"] for stage in told["stages"][:-1])
    assert usage.completion_tokens_details.reasoning_tokens == hidden


def test_a_client_that_knows_no_progress_reads_the_stream_as_any_other(server) -> None:
    text, finishes, stages, usages = "", [], [], []
    for chunk in server.chat(extra_body=DEEP, stream=True, stream_options={"include_usage": True}):
        if chunk.usage:
            usages.append(chunk.usage)
            continue
        (choice,) = chunk.choices
        text += choice.delta.content or ""
        finishes += [choice.finish_reason] if choice.finish_reason else []
        if "progress" in (chunk.model_extra or {}):
            assert text == "", "all of it comes before the answer"
            stages.append(chunk.model_extra["progress"]["stage"])
    assert text.strip()
    assert len(finishes) == len(usages) == 1
    assert list(dict.fromkeys(stages)) in (["plain"], ["drafting", "distilling", "refining"])


def test_a_deep_stream_that_is_left_early_frees_its_slots(server) -> None:
    for n_chunks in (1, 2, 4, 8):
        stream = server.chat(extra_body=DEEP | {"ignore_eos": True}, max_tokens=None, stream=True)
        for _ in range(n_chunks):
            next(stream)
        stream.close()
        server.wait_until(lambda state: state["active"] == state["queued"] == 0)


def test_a_deep_reply_is_over_where_one_of_its_requests_is_ended(server) -> None:
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(server.chat, extra_body=DEEP | {"ignore_eos": True}, max_tokens=900)
        # The first one only reads the question, and is over in milliseconds.
        listed = until(
            lambda: [one for one in server.http.get("/slipstream/requests").json()["data"] if one["n_generated"]]
        )
        server.http.delete(f"/slipstream/requests/{listed[0]['id']}")
        with pytest.raises(openai.APIStatusError, match="The request was cancelled") as caught:
            asking.result(60)
    assert caught.value.status_code == 499
    server.wait_until(lambda state: state["active"] == state["queued"] == 0)


def test_the_answer_of_a_deep_reply_keeps_to_its_form(server) -> None:
    answer = server.chat(extra_body=DEEP | {"regex": "(yes|no)"})
    assert answer.choices[0].message.content in ("yes", "no")


LONG = {"messages": [USER | {"content": "fox " * 4000}]}


@pytest.mark.parametrize(
    ("path", "fields", "param", "code"),
    [
        ("chat/completions", {"n": 2}, "n", None),
        ("chat/completions", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools", None),
        ("chat/completions", {"messages": [USER, {"role": "assistant", "content": "Once"}]}, "messages", None),
        ("completions", {"prompt": "Once"}, "speed", None),
        ("chat/completions", LONG, "messages", "context_length"),
        ("chat/completions", LONG | {"stream": True}, "messages", "context_length"),
    ],
)
def test_what_a_deep_reply_cannot_honour_is_refused(server, path, fields, param, code) -> None:
    body = ({"messages": [USER]} if "chat" in path else {}) | DEEP | fields
    answer = server.http.post(f"/v1/{path}", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert code is None or code in error["code"]


ROOMY = DeepLimits(n_ctx=8192, n_cells=8 * 8192, n_fixed=200, n_free_slots=8, cheap_rows=6)


def test_as_many_drafts_as_are_nearly_free_and_none_longer_than_the_answer_may_be() -> None:
    assert plan_deep(ROOMY).n_drafts == 6
    assert plan_deep(replace(ROOMY, n_free_slots=3)).n_drafts == 3
    assert plan_deep(replace(ROOMY, cheap_rows=16, n_free_slots=16)).n_drafts == MOST_DRAFTS
    assert plan_deep(ROOMY).reason is None
    short = plan_deep(replace(ROOMY, max_tokens=40))
    assert (short.draft_tokens, short.notes_tokens) == (40, 40)
    assert plan_deep(replace(ROOMY, max_tokens=4)).notes_tokens == LEAST_NOTES
    assert plan_deep(ROOMY).notes_tokens < plan_deep(ROOMY).draft_tokens


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (replace(ROOMY, cheap_rows=1), "as long as another reply"),
        (replace(ROOMY, n_free_slots=1), "no slot"),
        (replace(ROOMY, n_free_slots=-3), "no slot"),
        (replace(ROOMY, n_ctx=256), "no room"),
        (replace(ROOMY, n_fixed=None), "no room"),
        (replace(ROOMY, n_cells=400), "no room"),
    ],
)
def test_where_drafts_do_not_pay_the_answer_is_plain_and_says_why(now: DeepLimits, says: str) -> None:
    plan = plan_deep(now)
    assert plan.is_plain
    assert says in (plan.reason or "")


def test_every_stage_fits_whatever_the_context() -> None:
    for n_ctx in range(64, 4096, 37):
        for n_fixed in (20, 90, 300, 1000):
            for slots in (2, 4, 16):
                for n_cells in (n_ctx, 2 * n_ctx, slots * n_ctx):
                    plan = plan_deep(DeepLimits(n_ctx, n_cells, n_fixed, slots, 16))
                    if plan.is_plain:
                        continue
                    assert plan.draft_tokens >= LEAST_DRAFT
                    assert n_fixed + plan.n_drafts * plan.draft_tokens + plan.notes_tokens < n_ctx
                    assert n_fixed + plan.notes_tokens + LEAST_ANSWER < n_ctx
                    assert plan.n_drafts * (n_fixed + plan.draft_tokens) <= n_cells
