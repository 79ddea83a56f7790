"""All chats of the window: which ones are open, and which ones are at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from ui.chat.conversation import ChatSession, new_chat
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids, now_ms
from ui.chat.storage.message_tree import MessageTree
from ui.chat.storage.store import NEW_BESIDE, NEW_CHAT, ChatStore
from ui.chat.storage.unsent import Unsent
from ui.chat.tools.tool_box import ToolBox
from ui.client.api import Api
from ui.client.chat_records import Chat, ChatSettings, ChatSummary, Message, Role, Timings, title_of
from ui.client.speeds import Speed, speed_of

LIST_PAUSE_MS = 50
LIST_PAGE = 300  # chats that are listed at first, and more each time the end of the list comes near


class OpenChat(QObject):
    """The chat that is open in one pane, and what the user does in it. A chat that is left goes on with its reply."""

    current_changed = Signal(object)  # ChatSession
    path_changed = Signal()  # this and the next ones are as in ChatSession
    grew = Signal(object, str)
    drafted = Signal(object, object)
    thought = Signal(object, str)
    ended = Signal(object)
    calls_changed = Signal(object)
    running_changed = Signal(bool)

    def __init__(self, desk: ChatSessions, ids: Ids, archive: ChatArchive, new_key: int) -> None:
        """``new_key`` stands for a chat that has not begun, where its draft is kept."""
        super().__init__(desk)
        self.desk, self.new_key = desk, new_key
        self._ids, self._archive = ids, archive
        self._given = ""  # the instructions that the newest chat was given
        self._wanted: int | None = None
        self.current = desk.session(new_chat(ids, ChatSettings()), MessageTree())

    def new_chat(self) -> None:
        """Open an empty chat that asks for the same model and speed as the one before."""
        self._wanted = None
        if not self.current.is_new:
            self.begin(self.current.chat.settings)

    def begin(self, like: ChatSettings) -> None:
        """Open an empty chat that asks for this model at this speed."""
        self._wanted = None
        settings = self.with_instructions(ChatSettings(model=like.model, speed=like.speed))
        self._show(self.desk.session(new_chat(self._ids, settings), MessageTree()))

    def with_instructions(self, settings: ChatSettings) -> ChatSettings:
        """Return the settings of a new chat with its model's instructions, unless others were written."""
        if settings.system_prompt not in ("", self._given):
            return settings
        self._given = self.desk.instructions_for(settings.model)
        return replace(settings, system_prompt=self._given)

    def open(self, chat_id: int) -> None:
        """Open a chat; the answer comes when it was read."""
        self._wanted = chat_id
        if chat_id == self.current.chat.id:
            if self.desk.words:
                self.current_changed.emit(self.current)  # what was found in it is to be shown
        elif self.desk.is_deleted(chat_id):
            self.desk.list_soon()
        elif (found := self.desk.at_work(chat_id)) is not None:
            self._show(found)
        else:
            self._archive.ask(lambda store: store.whole_chat(chat_id), self._on_read, None)

    def stop(self) -> None:
        """End the running reply."""
        self.current.stop()

    def _show(self, session: ChatSession) -> None:
        left, self.current = self.current, session
        self.desk.on_shown(self, left)
        self.current_changed.emit(session)

    def _on_read(self, found: tuple[Chat, list[Message]] | None) -> None:
        if found is None:
            self.desk.list_soon()
        elif found[0].id == self._wanted and not self.desk.is_open(found[0].id):
            chat, messages = found
            tree = MessageTree(messages, chat.leaf_id)
            self._show(self.desk.session(replace(chat, leaf_id=tree.leaf_id), tree))


class ChatSessions(QObject):
    """Lists, renames and deletes chats, and knows the panes in which they are open: one, or two side by side."""

    current_changed = Signal(object)  # ChatSession: another chat is in use, or the other pane
    listed = Signal(object, str)  # list[ChatSummary], the words searched for
    running_changed = Signal(object)  # frozenset of chat ids
    answered = Signal(object, object)  # a Chat, and the Message that came to its end there
    called = Signal(object, object)  # a Chat, and the Message whose calls of tools are further
    deleted = Signal(object)  # the id of a chat that can be restored
    put_away = Signal(object)  # the id of a chat that went into the archive

    def __init__(self, api: Api, archive: ChatArchive, ids: Ids, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api, self._archive, self._ids = api, archive, ids
        self._words = ""
        self._limit = LIST_PAGE
        self._tools: ToolBox | None = None
        # The instructions that new chats with a model begin with.
        self.instructions_for: Callable[[str | None], str] = lambda model: ""
        self.unsent = Unsent(archive)
        self._shows_archive = False
        self._at_work: dict[int, ChatSession] = {}  # those that are in no pane
        self._deleted: set[int] = set()  # since the start; while the disk refuses, they are still in the file
        self._list_timer = QTimer(self, singleShot=True, interval=LIST_PAUSE_MS)
        self._list_timer.timeout.connect(self._ask_for_list)
        self.panes: list[OpenChat] = []
        self.active = self._pane(NEW_CHAT)  # the pane that is used

    @property
    def current(self) -> ChatSession:
        """The chat of the pane that is used."""
        return self.active.current

    @property
    def running(self) -> frozenset[int]:
        """The chats in which a reply comes in."""
        return frozenset(session.chat.id for session in self._sessions() if session.is_running)

    def second_pane(self) -> OpenChat:
        """Return the second pane, which has an empty chat at first."""
        if len(self.panes) < 2:
            self._pane(NEW_BESIDE)
        return self.panes[1]

    def _pane(self, new_key: int) -> OpenChat:
        pane = OpenChat(self, self._ids, self._archive, new_key)
        pane.current_changed.connect(lambda session: self._on_current(pane))
        self.panes.append(pane)
        return pane

    def _on_current(self, pane: OpenChat) -> None:
        if pane is self.active:
            self.current_changed.emit(pane.current)

    def activate(self, pane: OpenChat) -> None:
        """Let this pane be the one that is used: what is chosen from now on is for it."""
        if pane is not self.active:
            self.active = pane
            self.current_changed.emit(pane.current)

    def is_open(self, chat_id: int) -> bool:
        """Whether a chat is in a pane."""
        return any(pane.current.chat.id == chat_id for pane in self.panes)

    def at_work(self, chat_id: int) -> ChatSession | None:
        """Return a chat that is in no pane and gets a reply or is not saved yet, else None."""
        return self._at_work.get(chat_id)

    def is_deleted(self, chat_id: int) -> bool:
        """Whether a chat was deleted and not restored."""
        return chat_id in self._deleted

    def new_chat(self) -> None:
        """Open an empty chat in the pane that is used."""
        self.active.new_chat()

    def open(self, chat_id: int) -> None:
        """Open a chat in the pane that is used; one that is in the other pane is used there."""
        for pane in self.panes:
            if pane.current.chat.id == chat_id:
                self.activate(pane)
        self.active.open(chat_id)

    def open_answer(self, question: str, answer: dict[str, Any], source: str) -> None:
        """Open a question that was answered elsewhere as a chat, which is made once. ``answer`` is the server's."""

        def made(store: ChatStore) -> int | None:
            known = store.chat_from(source)
            if known is not None:
                return known
            chat, messages = _answered(question, answer, self._ids)
            store.add_chat(chat, messages, source, ("", False, False))
            return chat.id

        def opened(chat_id: int | None) -> None:
            if chat_id is not None:
                self.list_soon()
                self.open(chat_id)

        self._archive.ask(made, opened, None)

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
        for session in self._sessions():
            if session.chat.id == chat_id:
                session.rename(title)
        self._archive.write(lambda store: store.rename(chat_id, title))
        self.list_soon()

    def show_archive(self, is_wanted: bool) -> None:
        """List the archive, or the other chats."""
        self._shows_archive = is_wanted
        self._ask_for_list()

    def pin(self, chat_id: int, is_pinned: bool) -> None:
        """Keep a chat above the others, or no longer."""
        self._archive.write(lambda store: store.pin(chat_id, is_pinned))
        self._ask_for_list()

    def archive(self, chat_id: int, is_archived: bool) -> None:
        """Put a chat into the archive, or take it out."""
        self._archive.write(lambda store: store.put_away(chat_id, is_archived))
        self._ask_for_list()
        if is_archived:
            self.put_away.emit(chat_id)

    def move(self, chat_id: int, folder: str) -> None:
        """Put a chat into a folder; "" takes it out."""
        self._move((chat_id,), folder)

    def rename_folder(self, folder: str, name: str) -> Callable[[], None]:
        """Give a folder another name; "" takes its chats out. Return what puts them back, archived ones too.

        What has been moved elsewhere since stays there.
        """
        moved: list[int] = []
        self._archive.write(lambda store: moved.extend(store.rename_folder(folder, name)))
        self._ask_for_list()
        return lambda: self._move(moved, folder, name)

    def _move(self, chat_ids: Iterable[int], folder: str, out_of: str | None = None) -> None:
        self._archive.write(lambda store: store.move(chat_ids, folder, out_of))
        self._ask_for_list()

    def delete(self, chat_id: int) -> None:
        """Delete a chat; until the next start ``restore`` brings it back."""
        session = next((one for one in self._sessions() if one.chat.id == chat_id), None)
        if session is not None:
            session.stop()
        for pane in self.panes:
            if pane.current is session:
                pane.new_chat()
        now = now_ms()
        self._deleted.add(chat_id)
        self._archive.write(lambda store: store.delete(chat_id, now))
        self._ask_for_list()
        self.deleted.emit(chat_id)

    def restore(self, chat_id: int) -> None:
        """Bring back a chat that was deleted."""
        self._deleted.discard(chat_id)
        self._archive.write(lambda store: store.restore(chat_id))
        self._ask_for_list()

    def use_tools(self, tools: ToolBox) -> None:
        """Offer the tools of this box in all chats."""
        self._tools = tools
        for session in self._sessions():
            session.tools = tools

    def stop_all(self) -> None:
        """End all running replies; what came of them is kept."""
        for session in list(self._sessions()):
            session.stop()

    def _sessions(self) -> Iterator[ChatSession]:
        yield from (pane.current for pane in self.panes)
        yield from self._at_work.values()

    def session(self, chat: Chat, tree: MessageTree) -> ChatSession:
        """Return a chat that can be shown in a pane."""
        session = ChatSession(chat, tree, self._api, self._archive, self._ids, parent=self)
        session.tools = self._tools
        session.saved.connect(lambda chat: self.list_soon())
        session.ended.connect(lambda message: self.answered.emit(session.chat, message))
        session.calls_changed.connect(lambda message: self.called.emit(session.chat, message))
        session.running_changed.connect(lambda is_running: self._on_running())
        names = ("path_changed", "grew", "drafted", "thought", "ended", "calls_changed", "running_changed")
        for name in names:
            getattr(session, name).connect(self._forward(session, name))
        return session

    def _forward(self, session: ChatSession, name: str) -> Callable[..., None]:
        def forward(*values: object) -> None:
            for pane in self.panes:
                if pane.current is session:
                    getattr(pane, name).emit(*values)

        return forward

    def on_shown(self, pane: OpenChat, left: ChatSession) -> None:
        """A pane has another chat than the one that it has left."""
        self._at_work.pop(pane.current.chat.id, None)
        if self._must_stay(left):
            self._at_work[left.chat.id] = left
        elif left is not pane.current:
            left.deleteLater()

    def _must_stay(self, session: ChatSession) -> bool:
        """Whether a chat is not to be read again from the disk: what is there is less."""
        return session.is_running or (self._archive.is_failing and not session.is_new)

    def let_go(self) -> None:
        """Keep only those chats in no pane that have to stay."""
        for chat_id, session in list(self._at_work.items()):
            if not self._must_stay(session):
                del self._at_work[chat_id]
                session.deleteLater()

    def _on_running(self) -> None:
        self.let_go()
        self.running_changed.emit(self.running)

    def _ask_for_list(self) -> None:
        self._list_timer.stop()
        words, is_archive, limit = self._words, self._shows_archive, self._limit

        def listed(chats: list[ChatSummary]) -> None:
            if (words, is_archive) == (self._words, self._shows_archive):
                self.listed.emit(chats, words)

        def look(store: ChatStore) -> list[ChatSummary]:
            return store.search(words) if words else store.archived() if is_archive else store.chats(limit)

        self._ask(look, listed, has_all=not words and not is_archive)

    def ask_for_all(self, then: Callable[[list[ChatSummary]], object]) -> None:
        """Ask for all chats that are not in the archive; none where they cannot be read."""
        self._ask(ChatStore.chats, then, has_all=True)

    def _ask(
        self,
        look: Callable[[ChatStore], list[ChatSummary]],
        then: Callable[[list[ChatSummary]], object],
        *,
        has_all: bool,
    ) -> None:
        """Ask for chats as they are for the user: while the disk refuses, the file lacks what was done since."""
        sessions = self._sessions() if has_all else ()
        here = [ChatSummary(one.chat.id, one.chat.title, one.chat.updated_ms) for one in sessions if not one.is_new]

        def found(store: ChatStore) -> list[ChatSummary]:
            return [*(chat for chat in here if store.chat(chat.id) is None), *look(store)]

        def told(chats: list[ChatSummary]) -> None:
            then([chat for chat in chats if chat.id not in self._deleted])

        self._archive.ask(found, told, here)


def _answered(question: str, answer: dict[str, Any], ids: Ids) -> tuple[Chat, tuple[Message, Message]]:
    """Return a question and the server's answer as a chat with its messages."""
    chat_id, asked_id, now = ids.next(), ids.next(), now_ms()
    choice = (answer.get("choices") or [{}])[0]
    said, model = choice.get("message") or {}, answer.get("model")
    speed, created = speed_of(answer.get("speed"), Speed.DEEP), int(answer.get("created") or 0) * 1_000 or now
    asked = Message(asked_id, chat_id, None, Role.USER, question, created)
    reply = Message(
        ids.next(),
        chat_id,
        asked_id,
        Role.ASSISTANT,
        str(said.get("content") or ""),
        now,
        finish_reason=str(choice.get("finish_reason") or "stop"),
        model=model if isinstance(model, str) else None,
        timings=Timings.from_object(answer.get("timings")),
        speed=speed,
        thoughts=str(said.get("reasoning_content") or ""),
    )
    # What is asked next has the usual speed: a deep answer was wished for this question.
    return Chat(chat_id, title_of(question), created, now, ChatSettings(model=reply.model), reply.id), (asked, reply)
