"""Branches of a chat."""

from __future__ import annotations

from ui.chat.storage.message_tree import MessageTree
from ui.client.chat_records import Message, Role


def m(number: int, parent: int | None, text: str = "") -> Message:
    return Message(number, 1, parent, Role.USER, text, 0)


def test_a_new_version_stands_beside_the_old_one() -> None:
    tree = MessageTree([m(1, None), m(2, 1), m(3, 2), m(4, 3)])
    assert [x.id for x in tree.path] == [1, 2, 3, 4]
    tree.add(m(5, 1))
    assert [x.id for x in tree.path] == [1, 5]
    assert tree.versions(5) == [2, 5]
    tree.choose(2)
    assert [x.id for x in tree.path] == [1, 2, 3, 4]
    tree = MessageTree([m(1, None), m(2, 1)])
    tree.add(m(3, None))
    assert tree.versions(1) == [1, 3]
    assert [x.id for x in tree.path] == [3]


def test_a_stored_leaf_is_kept_and_replacing_keeps_the_place() -> None:
    messages = [m(1, None), m(2, 1), m(3, 1)]
    assert MessageTree(messages, leaf_id=2).leaf_id == 2
    assert MessageTree(messages, leaf_id=99).leaf_id == 3
    assert MessageTree([], leaf_id=99).path == []
    tree = MessageTree([m(1, None), m(2, 1)])
    tree.replace(m(2, 1, "later"))
    assert tree[2].content == "later"
    assert len(tree) == 2
    assert 2 in tree
