"""The messages for the server: the prompt of a call; a conversation with its system prompt, and how to answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.values.errors import BadRequest
from models.formatting.program import PROGRAM

if TYPE_CHECKING:
    from ui.client.attachments import Attachment

_DEEP_SLOTS = 4  # drafts that run at once


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """How replies are made: sampling fields of a request, ``max_tokens``, stop strings and ``speed``."""

    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    stop: Sequence[str] = ()
    speed: str | None = None

    @property
    def n_slots(self) -> int:
        """How many slots a server needs that answers only this: the drafts of a deep reply run side by side."""
        return _DEEP_SLOTS if self.speed == "deep" else 1

    def fields(self) -> dict[str, Any]:
        """Return these as fields of a request."""
        limit = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        speed = {} if self.speed is None else {"speed": self.speed}
        return {**self.sampling, **limit, **speed, **({"stop": list(self.stop)} if self.stop else {})}


class Conversation:
    """Turns of one chat. ``body`` is the request for the next reply."""

    def __init__(self, settings: AnswerSettings, system: str | None) -> None:
        self.settings, self.system = settings, system
        self.model: str | None = None
        self._turns: list[dict[str, Any]] = []

    @property
    def is_empty(self) -> bool:
        """True before the first turn."""
        return not self._turns

    def ask(self, text: str, files: Sequence[Attachment] = ()) -> None:
        """Add the user's turn, and the files that go with it."""
        from ui.client.attachments import content_of

        self._turns.append({"role": "user", "content": content_of(text, files)})

    def answer(self, text: str) -> None:
        """Add the model's turn."""
        self._turns.append({"role": "assistant", "content": text})

    def take_back(self) -> None:
        """Remove the last turn: it got no reply."""
        self._turns.pop()

    def clear(self) -> None:
        """Start over; system prompt, model and settings stay."""
        self._turns.clear()

    def body(self) -> dict[str, Any]:
        """Return the request for the next reply."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        named = {"model": self.model} if self.model else {}
        return {**named, "messages": [*system, *self._turns], **self.settings.fields()}


def read_file(path: Path) -> Attachment:
    """Read a file that goes with a prompt, as the window reads it; raises BadRequest."""
    import logging

    from ui.chat.attachments.read_file import Unreadable, read

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it remarks on every oddity
    try:
        return read(Path(os.path.expanduser(path)), lambda share: None)
    except Unreadable as error:
        raise BadRequest(str(error)) from None


STDIN_WORD = "-"


def read_prompt(words: Sequence[str]) -> str | None:
    """Return the prompt, or None when there is none and standard input is a terminal.

    The word ``-`` stands for standard input and puts it below the other words. Without any words, standard input
    alone is the prompt. With other words only, it is left alone: it may belong to the caller's loop, or never end.
    Raises BadRequest for text that is not UTF-8 and for an empty prompt.
    """
    if not words and sys.stdin.isatty():
        return None
    return join_prompt(words, _read_stdin)


def join_prompt(words: Sequence[str], read_stdin: Callable[[], str]) -> str:
    """Return the words joined by spaces, with standard input below them where it belongs to the prompt."""
    typed = checked(" ".join(word for word in words if word != STDIN_WORD))
    piped = read_stdin() if not words or STDIN_WORD in words else ""
    prompt = "\n\n".join(part for part in (typed, piped) if part.strip())
    if not prompt:
        raise BadRequest(f'The prompt is empty. Type one: {PROGRAM} chat "Tell me a story about a fox."')
    return prompt


def checked(typed: str) -> str:
    """Return text that was typed; raises BadRequest when its bytes were not UTF-8."""
    try:
        typed.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"The prompt is not valid UTF-8 (character {error.start + 1}).") from None
    return typed


def piped_text(data: bytes) -> str:
    """Return piped bytes as text; raises BadRequest when they are not UTF-8."""
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"What was piped in is not valid UTF-8 (byte {data[error.start]:#04x} at offset {error.start}). "
            "Convert it first, for example with iconv."
        ) from None


def _read_stdin() -> str:
    return piped_text(sys.stdin.buffer.read())
