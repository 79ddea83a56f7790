"""The prompt of one call: words of the command line, standard input, or both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from core.values.errors import BadRequest
from models.formatting.program import PROGRAM

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


def decoded(data: bytes) -> str:
    """Return piped bytes as text; raises BadRequest when they are not UTF-8."""
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"What was piped in is not valid UTF-8 (byte {data[error.start]:#04x} at offset {error.start}). "
            "Convert it first, for example with iconv."
        ) from None


def _read_stdin() -> str:
    return decoded(sys.stdin.buffer.read())
