"""All chats of the window: which one is open, which ones are at work, and what was deleted a moment ago."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance

from ui.chat.conversation import ChatSession, new_chat
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids, now_ms
from ui.chat.storage.message_tree import MessageTree
from ui.chat.tools.tool_box import ToolBox
from ui.client.api import Api
from ui.client.attachments import Attachment
from ui.client.chat_records import Chat, ChatSettings, ChatSummary, Message
from ui.client.speeds import Speed

LIST_PAUSE_MS = 50
LIST_PAGE = 300  # chats that are listed at first, and more each time the end of the list comes near


class ChatSessions(QObject):
    """Opens, lists, renames and deletes chats. A chat that is left goes on with its reply."""

    current_changed = Signal(object)  # Conversation
    path_changed = Signal()  # this and the next three are about the open chat, as in Conversation
    grew = Signal(object, str)
    drafted = Signal(object, object)
    thought = Signal(object, str)
    ended = Signal(object)
    calls_changed = Signal(object)
    current_running_changed = Signal(bool)
    listed = Signal(object, str)  # list[ChatSummary], the words searched for
    running_changed = Signal(object)  # frozenset of chat ids
    deleted = Signal(str)  # the title of a chat that can be restored
    put_away = Signal(object)  # the id of a chat that went into the archive

    def __init__(self, api: Api, archive: ChatArchive, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api, self._archive, self._ids = api, archive, ids
        self._words = ""
        self._limit = LIST_PAGE
        self._tools: ToolBox | None = None
        # The instructions that new chats with a model begin with, and those that the newest one was given.
        self.instructions_for: Callable[[str | None], str] = lambda model: ""
        self._given = ""
        self._shows_archive = False
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
            settings = self.with_instructions(ChatSettings(model=last.model, speed=last.speed))
            self._show(self._conversation(new_chat(self._ids, settings), MessageTree()))

    def with_instructions(self, settings: ChatSettings) -> ChatSettings:
        """Return the settings of a new chat with its model's instructions, unless others were written."""
        if settings.system_prompt not in ("", self._given):
            return settings
        self._given = self.instructions_for(settings.model)
        return replace(settings, system_prompt=self._given)

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

    def show_archive(self, is_wanted: bool) -> None:
        """List the archive, or the other chats."""
        self._shows_archive = is_wanted
        self._ask_for_list()

    def pin(self, chat_id: int, is_pinned: bool) -> None:
        """Keep a chat above the others, or no longer."""
        self._archive.pin(chat_id, is_pinned)
        self._ask_for_list()

    def archive(self, chat_id: int, is_archived: bool) -> None:
        """Put a chat into the archive, or take it out."""
        self._archive.put_away(chat_id, is_archived)
        self._ask_for_list()
        if is_archived:
            self.put_away.emit(chat_id)

    def move(self, chat_id: int, folder: str) -> None:
        """Put a chat into a folder; "" takes it out."""
        self._archive.move(chat_id, folder)
        self._ask_for_list()

    def rename_folder(self, folder: str, name: str) -> None:
        """Give a folder another name; "" takes its chats out."""
        self._archive.rename_folder(folder, name)
        self._ask_for_list()

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

    def keep_draft_attachments(self, chat_id: int, files: tuple[Attachment, ...]) -> None:
        """Keep the files that were attached in a chat and not sent."""
        self._archive.save_draft_attachments(chat_id, files)

    def read_draft_attachments(self, then: Callable[[dict[int, tuple[Attachment, ...]]], None]) -> None:
        """Ask by chat for the files that were attached and not sent."""
        self._archive.draft_attachments(then)

    # What the user does in the open chat.

    def send(self, text: str, attachments: tuple[Attachment, ...] = ()) -> None:
        """Say ``text``, with files."""
        self.current.send(text, attachments)

    def stop(self) -> None:
        """End the running reply."""
        self.current.stop()

    def regenerate(self, message_id: int, speed: Speed | None = None) -> None:
        """Ask for another version of a reply, at another speed where one is given."""
        self.current.regenerate(message_id, speed)

    def go_on(self, message_id: int) -> None:
        """Let the model continue a reply that was cut."""
        self.current.go_on(message_id)

    def edit(self, message_id: int, text: str, attachments: tuple[Attachment, ...] | None = None) -> None:
        """Say something else in place of a message; None keeps its files."""
        self.current.edit(message_id, text, attachments)

    def choose(self, message_id: int) -> None:
        """Show another version of a message."""
        self.current.choose(message_id)

    def answer_call(self, call_id: str, allow: bool, always: bool) -> None:
        """Allow a call of a tool, this time or for good, or refuse it."""
        self.current.answer_call(call_id, allow, always)

    def use_tools(self, tools: ToolBox) -> None:
        """Offer the tools of this box in all chats."""
        self._tools = self.current.tools = tools

    def stop_all(self) -> None:
        """End all running replies; what came of them is kept."""
        for conversation in [self.current, *self._at_work.values()]:
            conversation.stop()

    def _conversation(self, chat: Chat, tree: MessageTree) -> ChatSession:
        conversation = ChatSession(chat, tree, self._api, self._archive, self._ids, parent=self)
        conversation.tools = self._tools
        conversation.saved.connect(lambda chat: self.list_soon())
        conversation.running_changed.connect(lambda is_running: self._on_running(conversation))
        forwards = (
            (conversation.path_changed, self.path_changed),
            (conversation.grew, self.grew),
            (conversation.drafted, self.drafted),
            (conversation.thought, self.thought),
            (conversation.ended, self.ended),
            (conversation.calls_changed, self.calls_changed),
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
        words, is_archive = self._words, self._shows_archive

        def listed(chats: list[ChatSummary]) -> None:
            if (words, is_archive) == (self._words, self._shows_archive):
                self.listed.emit(chats, words)

        if words:
            self._archive.search(words, listed)
        elif is_archive:
            self._archive.archived(listed)
        else:
            self._archive.chats(listed, self._limit)
