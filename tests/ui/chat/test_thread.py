"""Branches of a chat."""

from __future__ import annotations

from ui.chat.records import Message, Role
from ui.chat.thread import Thread


def m(number: int, parent: int | None, text: str = "") -> Message:
    return Message(number, 1, parent, Role.USER, text, 0)


def test_a_new_version_of_a_reply_stands_beside_the_old_one() -> None:
    thread = Thread([m(1, None), m(2, 1), m(3, 2), m(4, 3)])
    assert [x.id for x in thread.path] == [1, 2, 3, 4]
    thread.add(m(5, 1))
    assert [x.id for x in thread.path] == [1, 5]
    assert thread.versions(5) == [2, 5]
    thread.choose(2)
    assert [x.id for x in thread.path] == [1, 2, 3, 4]


def test_the_first_message_can_have_versions_too() -> None:
    thread = Thread([m(1, None), m(2, 1)])
    thread.add(m(3, None))
    assert thread.versions(1) == [1, 3]
    assert [x.id for x in thread.path] == [3]


def test_a_stored_leaf_is_kept_and_an_unknown_one_is_not() -> None:
    messages = [m(1, None), m(2, 1), m(3, 1)]
    assert Thread(messages, leaf_id=2).leaf_id == 2
    assert Thread(messages, leaf_id=99).leaf_id == 3
    assert Thread([], leaf_id=99).path == []


def test_replacing_keeps_the_place() -> None:
    thread = Thread([m(1, None), m(2, 1)])
    thread.replace(m(2, 1, "later"))
    assert thread[2].content == "later"
    assert len(thread) == 2
    assert 2 in thread
