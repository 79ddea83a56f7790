"""Asks the model for a summary of a chat, with which another one can begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from ui.chat.context_use import later_start, tokens_in
from ui.chat.conversation import request_body
from ui.client.api import Api
from ui.client.chat_records import ChatSettings, Message, Role, Status
from ui.client.reply_stream import ReplyStream
from ui.client.speeds import Speed
from ui.language import tr

ASK = (
    "Summarise our conversation so far, so that another assistant can go on with it: what I want, what was found out "
    "and decided, and what is open. Write only the summary, in at most 200 words, in the language of the conversation."
)
INTRO = "This is what we talked about before:"
MOST_TOKENS = 500  # of a summary: the words it is asked for, in any language
_SPARE = 0.9  # tokens of a cut text are an estimate


class Summary(QObject):
    """One request at a time; it ends with ``done``, ``failed`` or, where it was cancelled, with neither."""

    done = Signal(str)
    failed = Signal(str)  # a sentence

    def __init__(self, api: Api, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._api = api
        self._stream: ReplyStream | None = None
        self._text = ""

    def begin(self, settings: ChatSettings, sent: Sequence[Message], n_ctx: int) -> None:
        """Ask for it, about as much of the messages as the context holds beside the summary."""
        self.cancel()
        start = later_start(sent, ASK, n_ctx)
        last = sent[-1]
        asked = Message(last.id + 1, last.chat_id, last.id, Role.USER, ASK, last.created_ms, Status.DONE)
        settings = replace(settings, speed=Speed.STANDARD, max_tokens=MOST_TOKENS, begins_at=0)
        path = [message for message in sent if message.id >= start] or sent[-2:]
        share = (n_ctx - MOST_TOKENS) / max(tokens_in(path, ASK), 1)
        if 0 < share < 1:  # the last reply alone takes most of the context: its beginning and its end
            path = [replace(message, content=_ends_of(message.content, share * _SPARE)) for message in path]
        self._text = ""
        self._stream = stream = self._api.chat(request_body(settings, [*path, asked]))
        stream.text.connect(self._on_text)
        stream.finished.connect(lambda end: self._end(stream))
        stream.failed.connect(lambda problem, code: self._end(stream, problem))

    def cancel(self) -> None:
        """Leave it."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()
            stream.deleteLater()

    def _on_text(self, text: str, n_tokens: int) -> None:
        self._text += text

    def _end(self, stream: ReplyStream, problem: str = "") -> None:
        if stream is not self._stream:
            return
        self._stream = None
        stream.deleteLater()
        if problem or not self._text.strip():
            self.failed.emit(problem or tr("The model wrote no summary."))
        else:
            self.done.emit(f"{INTRO}\n\n{self._text.strip()}\n\n")


def _ends_of(text: str, share: float) -> str:
    n_each = int(len(text) * share / 2)
    return f"{text[:n_each]}\n…\n{text[len(text) - n_each :]}"
