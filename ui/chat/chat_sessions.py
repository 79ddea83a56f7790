"""All chats of the window: which one is open, which ones are at work, and what was deleted a moment ago."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance

from ui.chat.conversation import ChatSession, new_chat
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids, now_ms
from ui.chat.storage.message_tree import MessageTree
from ui.client.api import Api
from ui.client.chat_records import Chat, ChatSettings, ChatSummary, Message
from ui.client.speeds import Speed

LIST_PAUSE_MS = 50
LIST_PAGE = 300  # chats that are listed at first, and more each time the end of the list comes near


class ChatSessions(QObject):
    """Opens, lists, renames and deletes chats. A chat that is left goes on with its reply."""

    current_changed = Signal(object)  # Conversation
    path_changed = Signal()  # this and the next three are about the open chat, as in Conversation
    grew = Signal(object, str)
    thought = Signal(object, str)
    ended = Signal(object)
    current_running_changed = Signal(bool)
    listed = Signal(object, str)  # list[ChatSummary], the words searched for
    running_changed = Signal(object)  # frozenset of chat ids
    deleted = Signal(str)  # the title of a chat that can be restored

    def __init__(self, api: Api, archive: ChatArchive, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api, self._archive, self._ids = api, archive, ids
        self._words = ""
        self._limit = LIST_PAGE
        self._deleted: tuple[int, ChatSession | None] | None = None
        self._at_work: dict[int, ChatSession] = {}
        self._wanted: int | None = None
        self._list_timer = QTimer(self, singleShot=True, interval=LIST_PAUSE_MS)
        self._list_timer.timeout.connect(self._ask_for_list)
        self.current = self._conversation(new_chat(ids, ChatSettings()), MessageTree())

    @property
    def running(self) -> frozenset[int]:
        """The chats in which a reply comes in."""
        known = {self.current.chat.id: self.current, **self._at_work}
        return frozenset(chat_id for chat_id, conversation in known.items() if conversation.is_running)

    def new_chat(self) -> None:
        """Open an empty chat that asks for the same model and speed as the one before."""
        self._wanted = None
        if not self.current.is_new:
            last = self.current.chat.settings
            settings = ChatSettings(model=last.model, speed=last.speed)
            self._show(self._conversation(new_chat(self._ids, settings), MessageTree()))

    def open(self, chat_id: int) -> None:
        """Open a chat; the answer comes when it was read."""
        self._wanted = chat_id
        if chat_id == self.current.chat.id:
            if self._words:
                self.current_changed.emit(self.current)  # what was found in it is to be shown
        elif chat_id in self._at_work:
            self._show(self._at_work[chat_id])
        else:
            self._archive.open_chat(chat_id, self._on_read)

    @property
    def words(self) -> str:
        """What is searched for, "" where nothing is."""
        return self._words

    def search(self, words: str) -> None:
        """List the chats that hold ``words``; all for ""."""
        self._words = words
        self._ask_for_list()

    def list_more(self, n_shown: int) -> None:
        """List older chats too; ``n_shown`` are listed now."""
        if not self._words and n_shown >= self._limit:
            self._limit += LIST_PAGE
            self._ask_for_list()

    def list_soon(self) -> None:
        """List the chats again; several wishes at once are one."""
        self._list_timer.start()

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title."""
        for conversation in (self.current, self._at_work.get(chat_id)):
            if conversation is not None and conversation.chat.id == chat_id:
                conversation.rename(title)
        self._archive.rename(chat_id, title)
        self.list_soon()

    def delete(self, chat_id: int) -> None:
        """Delete a chat; ``undo_delete`` brings the last one back."""
        conversation = self._at_work.get(chat_id)
        if chat_id == self.current.chat.id:
            conversation = self.current
            conversation.stop()
            self.new_chat()
        elif conversation is not None:
            conversation.stop()
        self._deleted = (chat_id, conversation)
        self._archive.delete(chat_id, now_ms())
        self._ask_for_list()
        self.deleted.emit(conversation.chat.title if conversation is not None else "")

    def undo_delete(self) -> None:
        """Bring back the chat that was deleted last."""
        if self._deleted is not None:
            self._archive.restore(self._deleted[0])
            self._deleted = None
            self._ask_for_list()

    def keep_draft(self, chat_id: int, text: str) -> None:
        """Keep what was written in a chat and not sent."""
        self._archive.save_draft(chat_id, text)

    def read_drafts(self, then: Callable[[dict[int, str]], None]) -> None:
        """Ask by chat for what was written and not sent."""
        self._archive.drafts(then)

    # What the user does in the open chat.

    def send(self, text: str) -> None:
        """Say ``text``."""
        self.current.send(text)

    def stop(self) -> None:
        """End the running reply."""
        self.current.stop()

    def regenerate(self, message_id: int, speed: Speed | None = None) -> None:
        """Ask for another version of a reply, at another speed where one is given."""
        self.current.regenerate(message_id, speed)

    def edit(self, message_id: int, text: str) -> None:
        """Say something else in place of a message."""
        self.current.edit(message_id, text)

    def choose(self, message_id: int) -> None:
        """Show another version of a message."""
        self.current.choose(message_id)

    def stop_all(self) -> None:
        """End all running replies; what came of them is kept."""
        for conversation in [self.current, *self._at_work.values()]:
            conversation.stop()

    def _conversation(self, chat: Chat, tree: MessageTree) -> ChatSession:
        conversation = ChatSession(chat, tree, self._api, self._archive, self._ids, parent=self)
        conversation.saved.connect(lambda chat: self.list_soon())
        conversation.running_changed.connect(lambda is_running: self._on_running(conversation))
        forwards = (
            (conversation.path_changed, self.path_changed),
            (conversation.grew, self.grew),
            (conversation.thought, self.thought),
            (conversation.ended, self.ended),
            (conversation.running_changed, self.current_running_changed),
        )
        for inner, outer in forwards:
            inner.connect(self._forward(conversation, outer))
        return conversation

    def _forward(self, conversation: ChatSession, outer: SignalInstance) -> Callable[..., None]:
        def forward(*values: object) -> None:
            if conversation is self.current:
                outer.emit(*values)

        return forward

    def _show(self, conversation: ChatSession) -> None:
        left, self.current = self.current, conversation
        self._at_work.pop(conversation.chat.id, None)
        if left.is_running:
            self._at_work[left.chat.id] = left
        elif left is not conversation:
            left.deleteLater()
        self.current_changed.emit(conversation)

    def _on_read(self, found: tuple[Chat, list[Message]] | None) -> None:
        if found is None:
            self.list_soon()
        elif found[0].id == self._wanted and found[0].id != self.current.chat.id:
            chat, messages = found
            tree = MessageTree(messages, chat.leaf_id)
            self._show(self._conversation(replace(chat, leaf_id=tree.leaf_id), tree))

    def _on_running(self, conversation: ChatSession) -> None:
        if not conversation.is_running and conversation is not self.current:
            self._at_work.pop(conversation.chat.id, None)
            conversation.deleteLater()
        self.running_changed.emit(self.running)

    def _ask_for_list(self) -> None:
        self._list_timer.stop()
        words = self._words

        def listed(chats: list[ChatSummary]) -> None:
            if words == self._words:
                self.listed.emit(chats, words)

        if words:
            self._archive.search(words, listed)
        else:
            self._archive.chats(listed, self._limit)
