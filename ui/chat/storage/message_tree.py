"""The messages of one chat as a tree: edits and regenerated replies are branches, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterable

from ui.client.chat_records import Message


class MessageTree:
    """All messages of a chat, and the branch that is shown."""

    def __init__(self, messages: Iterable[Message] = (), leaf_id: int | None = None) -> None:
        self._messages: dict[int, Message] = {}
        self._children: dict[int | None, list[int]] = {}
        self.leaf_id: int | None = None
        for message in sorted(messages, key=lambda m: m.id):
            self._insert(message)
        if leaf_id in self._messages:
            self.leaf_id = leaf_id
        elif self._messages:
            self.leaf_id = self._newest_below(None)

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, message_id: int) -> Message:
        return self._messages[message_id]

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    @property
    def messages(self) -> list[Message]:
        """All messages, of all branches, oldest first."""
        return sorted(self._messages.values(), key=lambda message: message.id)

    @property
    def path(self) -> list[Message]:
        """The branch that is shown, oldest first."""
        return self.path_to(self.leaf_id)

    def path_to(self, message_id: int | None) -> list[Message]:
        """Return the messages from the first one to ``message_id``, both included."""
        path: list[Message] = []
        while message_id is not None and message_id in self._messages:
            path.append(self._messages[message_id])
            message_id = path[-1].parent_id
        return path[::-1]

    def versions(self, message_id: int) -> list[int]:
        """Return the ids of all messages in this place, oldest first."""
        return list(self._children[self._messages[message_id].parent_id])

    def add(self, message: Message) -> None:
        """Add a message and show the branch that ends with it."""
        self._insert(message)
        self.leaf_id = message.id

    def replace(self, message: Message) -> None:
        """Put a newer state of a message in its place."""
        self._messages[message.id] = message

    def choose(self, message_id: int) -> None:
        """Show the branch through ``message_id`` that was last written to."""
        self.leaf_id = self._newest_below(message_id)

    def _insert(self, message: Message) -> None:
        self._messages[message.id] = message
        self._children.setdefault(message.parent_id, []).append(message.id)

    def _newest_below(self, message_id: int | None) -> int | None:
        while self._children.get(message_id):
            message_id = self._children[message_id][-1]
        return message_id
