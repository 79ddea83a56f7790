"""The engine process beside its steps: whatever is put in comes out once, and events leave whole and in order."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from core.loading.worker import ArrivedRequest, EventSender, InputThread
from core.process.child_process import Pipe
from core.scheduler.input_processor import PreparedRequest
from core.values.errors import BadRequest, LoadFailed, PromptTooLong
from core.values.messages import Ended, Event, FailureKind, FinishReason, RequestEvent, Started, Token
from core.values.request import Request, Tokenized, TokenizeRequest


class NoSampler:
    """Knows whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class SlowIntake:
    """Prepares when it is told to; a prompt can name what goes wrong."""

    def __init__(self) -> None:
        self.samplers: dict[str, NoSampler] = {}
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.is_asked = False

    def prepare(self, request: Request) -> PreparedRequest:
        self.is_asked = True
        assert self.may_go_on.wait(60)
        if request.prompt == "long":
            raise PromptTooLong(9, 8)
        if request.prompt == "bad":
            raise BadRequest("no", param="prompt")
        if request.prompt == "small model":
            raise LoadFailed("no memory")
        if request.prompt == "bug":
            raise ZeroDivisionError
        sampler = self.samplers[request.id] = NoSampler()
        return PreparedRequest(request, np.array([1, 2], np.int32), sampler)

    def answer(self, request: TokenizeRequest) -> Tokenized:
        if not request.parts:
            raise BadRequest("no", param="content")
        return Tokenized(request.id, (1,), (b"a",))


class WatchedInput:
    """An input thread with all that came out of it."""

    def __init__(self) -> None:
        self.intake = SlowIntake()
        self.out: queue.SimpleQueue[ArrivedRequest | Ended] = queue.SimpleQueue()
        self.thread = InputThread(self.intake, self.out.put, self._tell)

    def _tell(self, events: tuple[RequestEvent, ...]) -> None:
        for event in events:
            self.out.put(event)

    def take(self) -> ArrivedRequest | Ended:
        return self.out.get(timeout=60)


@pytest.fixture
def watched() -> Iterator[WatchedInput]:
    made = WatchedInput()
    yield made
    made.intake.may_go_on.set()
    made.thread.close()
    assert made.out.empty(), "something came out twice"


def test_a_request_is_admitted_with_its_tokens(watched: WatchedInput) -> None:
    watched.thread.put(Request("a", "good"))
    admitted = watched.take()
    assert isinstance(admitted, tuple)
    assert admitted[0].request.id == "a"
    assert admitted[0].tokens.tolist() == [1, 2]
    assert not watched.intake.samplers["a"].is_closed


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("long", FailureKind.CONTEXT_LENGTH),
        ("bad", FailureKind.BAD_REQUEST),
        ("small model", FailureKind.LOAD_FAILED),
        ("bug", FailureKind.INTERNAL),
    ],
)
def test_what_cannot_be_prepared_ends_with_its_reason_and_the_next_comes_in(
    watched: WatchedInput, prompt: str, kind: FailureKind
) -> None:
    watched.thread.put(Request("a", prompt))
    watched.thread.put(Request("b", "good"))
    ended = watched.take()
    assert isinstance(ended, Ended)
    assert ended.failure is not None
    assert (ended.request_id, ended.failure.kind) == ("a", kind)
    assert isinstance(watched.take(), tuple)


def test_what_is_cancelled_inside_is_not_admitted(watched: WatchedInput) -> None:
    watched.intake.may_go_on.clear()
    for name, prompt in (("a", "good"), ("b", "bad"), ("c", "good"), ("d", "good")):
        watched.thread.put(Request(name, prompt))
    while not watched.intake.is_asked:
        time.sleep(0.001)
    assert all(watched.thread.cancel(name) for name in "abbd")
    assert not watched.thread.cancel("nobody")
    watched.intake.may_go_on.set()
    ends = [watched.take(), watched.take()]
    assert [(end.request_id, end.reason) for end in ends if isinstance(end, Ended)] == [
        ("a", FinishReason.CANCELLED),
        ("b", FinishReason.CANCELLED),
    ]
    assert isinstance(watched.take(), tuple)
    assert watched.take() == Ended("d", FinishReason.CANCELLED)
    samplers = {name: sampler.is_closed for name, sampler in watched.intake.samplers.items()}
    assert samplers == {"a": True, "c": False}, "what is not wanted any more is not read"
    assert not watched.thread.cancel("c"), "it has left"


def test_what_needs_no_step_is_answered_here_and_never_admitted(watched: WatchedInput) -> None:
    watched.thread.put(TokenizeRequest("a", ("text",)))
    assert watched.take() == Tokenized("a", (1,), (b"a",))
    assert watched.take() == Ended("a", FinishReason.STOP)
    watched.thread.put(TokenizeRequest("b", ()))
    refused = watched.take()
    assert isinstance(refused, Ended)
    assert refused.failure is not None
    assert refused.failure.kind is FailureKind.BAD_REQUEST


@pytest.fixture
def ends() -> Iterator[tuple[EventSender, Pipe]]:
    read_fd, write_fd = os.pipe()
    unused_read_fd, unused_write_fd = os.pipe()
    near, far = Pipe(unused_read_fd, write_fd), Pipe(read_fd, unused_write_fd)
    yield EventSender(near), far
    near.close()
    far.close()


def _token(text: str, request_id: str = "a") -> Token:
    return Token(request_id, text, 1, ())


def test_all_arrives_once_and_in_order(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    sent: list[Event] = [Started("a", 3, 0), *(_token(str(i)) for i in range(50)), Ended("a", FinishReason.STOP)]
    for event in sent:
        outbox.put((event,))
    received: list[Event] = []
    while not received or not isinstance(received[-1], Ended):
        received += far.receive()
    assert received == sent


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are collected for ever."""
    monkeypatch.setattr("core.loading.worker._TOGETHER_SECONDS", 1_000.0)


@pytest.mark.usefixtures("patient")
def test_tokens_of_fast_steps_share_a_message(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    tokens = [_token(str(i)) for i in range(100)]
    for token in tokens:
        outbox.put((token,))
    end = Ended("a", FinishReason.STOP)
    outbox.put((end,))
    assert far.receive() == (*tokens, end)


def test_tokens_are_not_held_until_another_event_comes(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    outbox.put((_token("second"),))
    assert far.receive() == (_token("second"),)


@pytest.mark.usefixtures("patient")
def test_the_first_token_of_a_text_waits_for_none_of_another(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    outbox.put((_token("second"),))
    outbox.put((Started("b", 3, 0),))
    outbox.put((_token("first", "b"),))
    received: list[Event] = []
    while len(received) < 5:
        received += far.receive()
    assert received[-1] == _token("first", "b")
    outbox.put((_token("second", "b"),))
    outbox.close()
    assert far.receive() == (_token("second", "b"),)


@pytest.mark.usefixtures("patient")
def test_what_is_left_is_sent_before_the_end(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    outbox.put((_token("second"),))
    outbox.close()
    assert far.receive() == (_token("second"),)
