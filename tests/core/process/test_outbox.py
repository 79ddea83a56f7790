from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from core.ipc.pipe import Pipe
from core.process.worker import EventSender
from core.values.messages import Ended, Event, FinishReason, Started, Token


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


def test_tokens_of_fast_steps_share_a_message(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    for i in range(100):
        outbox.put((_token(str(i)),))
    outbox.put((Ended("a", FinishReason.STOP),))
    messages = [far.receive()]
    while not isinstance(messages[-1][-1], Ended):
        messages.append(far.receive())
    assert sum(len(one) for one in messages) == 101
    assert len(messages) < 50


def test_tokens_are_not_held_until_another_event_comes(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    outbox.put((_token("second"),))
    assert far.receive() == (_token("second"),)


def test_the_first_token_of_a_text_waits_for_none_of_another(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    outbox.put((Started("b", 3, 0),))
    outbox.put((_token("first", "b"),))
    outbox.put((_token("second", "b"),))
    outbox.close()
    received: list[tuple[Event, ...]] = []
    while sum(len(one) for one in received) < 5:
        received.append(far.receive())
    assert received[-1] == (_token("second", "b"),)  # alone: what was put before had gone


def test_what_is_left_is_sent_before_the_end(ends: tuple[EventSender, Pipe]) -> None:
    outbox, far = ends
    outbox.put((Started("a", 3, 0), _token("first")))
    far.receive()
    outbox.put((_token("second"),))
    outbox.close()
    assert far.receive() == (_token("second"),)
