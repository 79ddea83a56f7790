"""One chat at work: sends, streams, stops, asks again, and keeps all of it."""

from __future__ import annotations

import io
import time
from collections import deque
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from ui.chat.context_use import sent_of
from ui.chat.messages.receipts import CONTEXT_FULL
from ui.chat.storage.chat_archive import ChatArchive
from ui.chat.storage.ids import Ids, now_ms
from ui.chat.storage.message_tree import MessageTree
from ui.chat.tools.call_round import CallRound
from ui.chat.tools.tool_box import ToolBox
from ui.client.api import Api
from ui.client.attachments import Attachment, content_of
from ui.client.chat_records import EDITED, Chat, ChatSettings, Message, Role, Status, Timings, title_of
from ui.client.reply_stream import ReplyEnd, ReplyStream
from ui.client.speeds import DeepProgress, Speed
from ui.client.tool_calls import ToolCall, messages_of
from ui.language import tr

WINDOW = 1.0


class TokenRate:
    """Counts over a sliding window; times in seconds on any clock that does not go back."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._count = 0

    def add(self, count: int, now: float) -> None:
        """Count ``count`` more at ``now``."""
        self._marks.append((now, count))
        self._count += count
        self._forget(now)

    def per_second(self, now: float) -> float:
        """Return the rate over the window; 0 until there are two marks."""
        self._forget(now)
        if len(self._marks) < 2:
            return 0.0
        first_time, first_count = self._marks[0]
        elapsed = max(now - first_time, 1e-3)
        # What came with the first mark took the time before it.
        return (self._count - first_count) / elapsed

    def _forget(self, now: float) -> None:
        while self._marks and self._marks[0][0] < now - WINDOW:
            self._count -= self._marks.popleft()[1]


SAVE_MS = 500
MOST_ROUNDS = 8  # of calls in one reply: then the model has to answer without tools


class ChatSession(QObject):
    """A chat and the reply that may be running in it. Signals tell what has happened."""

    path_changed = Signal()  # other messages are shown now
    grew = Signal(object, str)  # id of the running reply, what was added
    drafted = Signal(object, object)  # id of the running reply, spans of the text that comes next
    thought = Signal(object, str)  # the same of what the model thinks before it answers
    ended = Signal(object)  # the message that came to its end
    calls_changed = Signal(object)  # the running reply, whose calls of tools are further
    running_changed = Signal(bool)
    saved = Signal(object)  # the chat, whenever its line in the history may have changed

    def __init__(
        self,
        chat: Chat,
        tree: MessageTree,
        api: Api,
        archive: ChatArchive,
        ids: Ids,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.chat = chat
        self.tree = tree
        self._api, self._archive, self._ids = api, archive, ids
        self.running: RunningReply | None = None  # the reply that comes in
        self.tools: ToolBox | None = None
        self._calls: CallRound | None = None
        self._asked = chat.settings  # the settings of the running reply
        self.n_ctx = 0  # tokens of its model's context; 0 while that is not known
        self._save_timer = QTimer(self, interval=SAVE_MS)
        self._save_timer.timeout.connect(self._save_running)

    @property
    def is_new(self) -> bool:
        """True until the first message: nothing of it is kept before."""
        return len(self.tree) == 0

    @property
    def is_running(self) -> bool:
        """True while a reply comes in."""
        return self.running is not None

    @property
    def running_id(self) -> int | None:
        """The id of the reply that comes in."""
        return None if self.running is None else self.running.message.id

    def send(self, text: str, attachments: tuple[Attachment, ...] = ()) -> None:
        """Say ``text`` at the end of the shown branch and let the model answer."""
        if self.is_running or not (text.strip() or attachments):
            return
        if self.is_new:
            self.chat = replace(self.chat, title=title_of(text or attachments[0].name))
        self._say(text, self.tree.leaf_id, attachments)

    def edit(self, message_id: int, text: str, attachments: tuple[Attachment, ...] | None = None) -> None:
        """Say ``text`` in place of an earlier message, as another version of it; None keeps its files.

        What the user puts in place of a reply is not answered. A reply that comes in is stopped, and stays as far as
        it is.
        """
        message = self.tree[message_id]
        if message.role is Role.ASSISTANT:
            self._put(message, text)
            return
        files = message.attachments if attachments is None else attachments
        if text.strip() or files:
            self.stop()
            self._say(text, message.parent_id, files)

    def _put(self, reply: Message, text: str) -> None:
        if not text.strip():
            return
        self.stop()
        put = Message(
            self._ids.next(), self.chat.id, reply.parent_id, Role.ASSISTANT, text, now_ms(), finish_reason=EDITED,
            model=reply.model,
        )  # fmt: skip
        self.tree.add(put)
        self._archive.save_message(put)
        self._save_chat()
        self.path_changed.emit()

    def go_on(self, message_id: int) -> None:
        """Let the model continue the reply with which the shown branch ends."""
        message = self.tree[message_id]
        if message_id == self.running_id or message_id != self.tree.leaf_id or not message.content:
            return
        self.stop()
        settings = self.chat.settings
        if settings.speed is Speed.DEEP:  # its answer is written; only the rest of it is wanted
            settings = replace(settings, speed=Speed.STANDARD)
        message = replace(message, status=Status.STREAMING, problem=None, finish_reason=None)
        self.tree.replace(message)
        self._archive.save_message(message)
        self._follow(message, self._body(settings, self.tree.path_to(message_id)))

    def regenerate(self, message_id: int, speed: Speed | None = None) -> None:
        """Let the model answer once more in place of a reply; the old one stays as a version.

        ``speed`` is for this one reply; None is that of the chat. Another reply that comes in is stopped. A version
        that is not shown any more is left: who clicked twice wants one.
        """
        if message_id != self.running_id and any(message.id == message_id for message in self.tree.path):
            self.stop()
            self._answer(self.tree[message_id].parent_id, speed)

    def choose(self, message_id: int) -> None:
        """Show another version of a message. A reply that comes in goes on, also where it is not shown."""
        self.tree.choose(message_id)
        self._save_chat()
        self.path_changed.emit()

    def stop(self) -> None:
        """End the running reply; what came so far stays."""
        if self._calls is not None and self.running is not None:
            self._calls.stop()
            self._end_calls()
            self.running.ttft = None  # what was seen is in the figures of the message
            self._end(status=Status.STOPPED)
            return
        if self.running is not None:
            self.running.stream.cancel()

    def change_settings(self, settings: ChatSettings) -> None:
        """Ask differently from the next message on."""
        if settings != self.chat.settings:
            self.chat = replace(self.chat, settings=settings)
            if not self.is_new:
                self._save_chat(touch=False)

    def rename(self, title: str) -> None:
        """Remember the title that the history gave."""
        self.chat = replace(self.chat, title=title)

    def _say(self, text: str, parent_id: int | None, attachments: tuple[Attachment, ...]) -> None:
        message = Message(self._ids.next(), self.chat.id, parent_id, Role.USER, text, now_ms(), attachments=attachments)
        self.tree.add(message)
        self._save_chat()
        self._archive.save_message(message)
        self._answer(message.id)

    def _answer(self, parent_id: int | None, speed: Speed | None = None) -> None:
        settings = self.chat.settings if speed is None else replace(self.chat.settings, speed=speed)
        message = Message(
            self._ids.next(), self.chat.id, parent_id, Role.ASSISTANT, "", now_ms(), Status.STREAMING,
            model=settings.model, speed=settings.speed,
        )  # fmt: skip
        self.tree.add(message)
        self._save_chat()
        self._archive.save_message(message)
        self._follow(message, self._body(settings, self.tree.path_to(parent_id)))

    def _follow(self, message: Message, body: dict[str, Any]) -> None:
        stream = self._api.chat(body)
        self.running = RunningReply(message, stream, time.monotonic())
        stream.drafted.connect(self._on_drafted)
        stream.text.connect(self._on_text)
        stream.thought.connect(self._on_thought)
        stream.progressed.connect(self._on_progress)
        stream.finished.connect(self._on_finished)
        stream.failed.connect(self._on_failed)
        stream.cancelled.connect(self._on_cancelled)
        self._save_timer.start()
        self.path_changed.emit()
        self.running_changed.emit(True)

    def _body(self, settings: ChatSettings, path: list[Message], n_rounds: int = 0) -> dict[str, Any]:
        """Return the request, with the tools that may be called in it."""
        self._asked = settings
        body = request_body(settings, path)
        has_tools = self.tools is not None and settings.speed is not Speed.DEEP and n_rounds < MOST_ROUNDS
        functions = self.tools.offered_to(settings.model) if has_tools and self.tools is not None else []
        return body | {"tools": functions} if functions else body

    # Calls of tools.

    def _begin_calls(self, running: RunningReply, box: ToolBox, end: ReplyEnd) -> None:
        self._save_timer.stop()
        running.end_thinking(time.monotonic())
        message = replace(running.so_far(time.monotonic()), timings=running.with_earlier(end.timings))
        n_rounds = len({call.round for call in message.calls})
        made = tuple(
            ToolCall(f"{n_rounds}-{at}-{call.id}", call.name, call.arguments, at=len(message.content), round=n_rounds)
            for at, call in enumerate(end.calls)
        )
        calls = self._calls = CallRound(box, made, self)
        calls.changed.connect(lambda further: self._on_calls(running, replace(message, calls=message.calls + further)))
        calls.ended.connect(lambda: self._after_calls(running, n_rounds + 1))
        calls.start()

    def _on_calls(self, running: RunningReply, message: Message) -> None:
        running.message = message
        self.tree.replace(message)
        self._archive.save_message(message)
        self.calls_changed.emit(message)

    def _after_calls(self, running: RunningReply, n_rounds: int) -> None:
        self._end_calls()
        running.stream.deleteLater()
        message = running.message
        body = self._body(self._asked, self.tree.path_to(message.id), n_rounds)
        if message.content.strip():  # what is written next is a paragraph of its own
            message = replace(message, content=f"{message.content}\n\n")
            self.tree.replace(message)
        self._follow(message, body)

    def _end_calls(self) -> None:
        if self._calls is not None:
            self._calls.deleteLater()
            self._calls = None

    def answer_call(self, call_id: str, allow: bool, always: bool) -> None:
        """Allow a call that waits, this time or for good, or refuse it."""
        if self._calls is not None:
            self._calls.answer(call_id, allow, always)

    def _on_text(self, text: str, n_tokens: int) -> None:
        running = self.running
        if running is None:
            return
        now = time.monotonic()
        running.take(text, n_tokens, now)
        self.grew.emit(running.message.id, text)

    def _on_drafted(self, spans: list[tuple[int, int]]) -> None:
        if self.running is not None:
            found = self.running.mark(spans)
            self.drafted.emit(self.running.message.id, found)

    def _on_thought(self, text: str, n_tokens: int) -> None:
        running = self.running
        if running is None:
            return
        running.think(text, n_tokens, time.monotonic())
        self.thought.emit(running.message.id, text)

    def _on_progress(self, progress: DeepProgress) -> None:
        if self.running is not None:
            self.running.progress = progress

    def _on_finished(self, end: ReplyEnd) -> None:
        if end.calls and self.tools is not None and self.running is not None:
            self._begin_calls(self.running, self.tools, end)
            return
        reason = CONTEXT_FULL if self._fills_context(end) else end.finish_reason
        self._end(status=Status.DONE, finish_reason=reason, timings=end.timings)

    def _fills_context(self, end: ReplyEnd) -> bool:
        """Whether a reply was cut where the context ends, and not by a limit of its own."""
        timings = end.timings
        if end.finish_reason != "length" or timings is None or timings.deep is not None or not self.n_ctx:
            return False
        n_tokens = timings.prefill_tokens + timings.cached_tokens + timings.decode_tokens
        return n_tokens >= self.n_ctx and timings.decode_tokens != self._asked.max_tokens

    def _on_failed(self, problem: str, code: str) -> None:
        self._end(status=Status.FAILED, problem=problem, finish_reason=code or None)

    def _on_cancelled(self) -> None:
        self._end(status=Status.STOPPED)

    def _end(self, **how: Any) -> None:
        running = self.running
        if running is None:
            return
        self.running = None
        self._save_timer.stop()
        running.stream.deleteLater()
        # Who leaves before the end gets no receipt of the server: the figures are then those that were seen here.
        how["timings"] = running.with_earlier(how.get("timings") or running.seen(time.monotonic()))
        message = replace(running.so_far(time.monotonic()), answered_by=running.stream.answered_by, **how)
        self.tree.replace(message)
        self._archive.save_message(message)
        self._save_chat()
        self.ended.emit(message)
        self.running_changed.emit(False)

    def _save_running(self) -> None:
        running = self.running
        if running is not None and running.has_unsaved:
            running.has_unsaved = False
            self._archive.save_message(running.so_far(time.monotonic()))

    def _save_chat(self, touch: bool = True) -> None:
        updated = now_ms() if touch else self.chat.updated_ms
        self.chat = replace(self.chat, leaf_id=self.tree.leaf_id, updated_ms=updated)
        self._archive.save_chat(self.chat)
        self.saved.emit(self.chat)


class RunningReply:
    """A reply that comes in, and what is measured of it meanwhile."""

    def __init__(self, message: Message, stream: ReplyStream, began: float) -> None:
        self.message, self.stream, self.began = message, stream, began
        self.rate = TokenRate()
        self.ttft: float | None = None  # in seconds, as the receipt will say
        self._first_tokens = self._n_tokens = 0
        self._first_at = self._last_at = began
        self.progress: DeepProgress | None = None
        self.has_unsaved = False
        self.drafted = list(message.drafted)
        # A reply that is continued begins with what is there.
        self._text, self._thoughts = io.StringIO(), io.StringIO()
        self._text.write(message.content)
        self._thoughts.write(message.thoughts)
        # Thoughts of this part come beside those of earlier rounds of calls.
        self._thought_before = (message.thinking_ms or 0.0) / 1_000
        self._thought_from: float | None = None
        self._thought_to: float | None = None

    @property
    def is_thinking(self) -> bool:
        """True from the first thought to what follows it."""
        return self._thought_from is not None and self._thought_to is None

    @property
    def text(self) -> str:
        """All text so far."""
        return self._text.getvalue()

    @property
    def thoughts(self) -> str:
        """All thoughts so far."""
        return self._thoughts.getvalue()

    def so_far(self, now: float) -> Message:
        """Return the message with what has come."""
        seconds = self.thinking(now)
        ms = self.message.thinking_ms if seconds is None else seconds * 1_000
        drafted = tuple(merged_spans(self.drafted))
        return replace(self.message, content=self.text, thoughts=self.thoughts, thinking_ms=ms, drafted=drafted)

    def mark(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Keep spans of what is written now; return them as spans of all text."""
        begin = len(self.message.content)
        found = [(begin + first, begin + last) for first, last in spans]
        self.drafted += found
        return found

    def with_earlier(self, timings: Timings | None) -> Timings | None:
        """Return the figures together with those of the part that was there before."""
        earlier = self.message.timings
        return earlier.followed_by(timings) if earlier is not None and timings is not None else timings or earlier

    def thinking(self, now: float) -> float | None:
        """Return for how many seconds the model thought, or has by now; None where this part has no thoughts."""
        if self._thought_from is None:
            return None
        return self._thought_before + (now if self._thought_to is None else self._thought_to) - self._thought_from

    def end_thinking(self, now: float) -> None:
        """What comes next is no thought."""
        if self.is_thinking:
            self._thought_to = now

    def think(self, text: str, n_tokens: int, now: float) -> None:
        """Add thoughts that came at ``now``."""
        if self._thought_from is None:
            self._thought_from = now
        self._thoughts.write(text)
        self._count(n_tokens, now)

    def take(self, text: str, n_tokens: int, now: float) -> None:
        """Add text that came at ``now``."""
        self.end_thinking(now)
        self._text.write(text)
        self._count(n_tokens, now)

    def _count(self, n_tokens: int, now: float) -> None:
        if self.ttft is None:
            earlier, told = self.message.timings, self.stream.ttft_ms / 1_000
            # A server that does not say it, as some remotes: what was seen here.
            self.ttft = earlier.ttft_ms / 1_000 if earlier is not None else told or now - self.began
            self._first_at, self._first_tokens = now, n_tokens
        self._n_tokens, self._last_at = self._n_tokens + n_tokens, now
        self.rate.add(n_tokens, now)
        self.has_unsaved = True

    def seen(self, now: float) -> Timings | None:
        """Return what was measured here of a reply that ends ``now``; None where nothing of it came."""
        if self.ttft is None:
            return None
        decode = self._last_at - self._first_at
        n_after_first = self._n_tokens - self._first_tokens
        return Timings(
            ttft_ms=self.ttft * 1_000,
            decode_ms=decode * 1_000,
            total_ms=(now - self.began) * 1_000,
            decode_tokens=self._n_tokens,
            decode_per_second=n_after_first / decode if decode > 0 else 0.0,
        )


def merged_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order with those put together that touch."""
    found: list[tuple[int, int]] = []
    for begin, end in spans:
        if found and found[-1][1] == begin:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def new_chat(ids: Ids, settings: ChatSettings) -> Chat:
    """Return an empty chat."""
    now = now_ms()
    return Chat(ids.next(), tr("New chat"), now, now, settings)


def _as_sent(message: Message) -> list[dict[str, Any]]:
    if message.calls:
        return list(messages_of(message.content, message.calls))
    return [{"role": message.role.value, "content": content_of(message.content, message.attachments)}]


def request_body(settings: ChatSettings, path: list[Message]) -> dict[str, Any]:
    """Return the chat request that asks for what follows ``path``. Replies that failed without a word are left out."""
    messages = [one for message in sent_of(path, settings.begins_at) for one in _as_sent(message)]
    if settings.system_prompt.strip():
        messages.insert(0, {"role": "system", "content": settings.system_prompt})
    body: dict[str, Any] = {
        "messages": messages,
        # A chunk has all tokens that one step brought: what was drafted well comes many at a time.
        "timings_per_token": True,
        "return_progress": True,
    }
    # What is not said here is as is set for the model, so nothing may be said that was not chosen.
    chosen: dict[str, Any] = {name: getattr(settings, name) for name in _SENT_AS_THEY_ARE}
    chosen["speed"] = None if settings.speed is Speed.AUTO else settings.speed.value
    return body | {name: value for name, value in chosen.items() if value is not None}


_SENT_AS_THEY_ARE = ("model", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed")
