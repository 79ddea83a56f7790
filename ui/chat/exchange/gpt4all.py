"""Chats as GPT4All keeps them, ``gpt4all-*.chat``: values in the order of Qt's data streams. No Qt.

As the source of GPT4All 3.5 to 3.10 says (chat.cpp, chatllm.cpp, chatmodel.cpp): versions 10 to 12 of its files.
"""

from __future__ import annotations

import struct

from ui.chat.exchange.found_chat import FoundChat, Said, UnknownFile, epoch_milliseconds
from ui.client.chat_records import Role
from ui.language import tr

MAGIC = b"\xf5\xd5\x53\xcc"
_READ = range(10, 13)
_ROLES = {"Prompt: ": Role.USER, "Response: ": Role.ASSISTANT}
_NULL = 0xFFFFFFFF


class _Stream:
    """Values one after the other, big end first."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def blob(self) -> bytes:
        n_bytes = self.number("I")
        if n_bytes == _NULL:
            return b""
        if self._at + n_bytes > len(self._data):
            raise struct.error("it ends too soon")
        self._at += n_bytes
        return self._data[self._at - n_bytes : self._at]

    def text(self) -> str:
        return self.blob().decode("utf-16-be", "replace")


def read_chat(data: bytes) -> FoundChat:
    """Read a whole file. Raises UnknownFile."""
    stream = _Stream(data[len(MAGIC) :])
    try:
        version = stream.number("i")
        if version not in _READ:
            raise UnknownFile(tr("Another version of GPT4All kept this chat: open it in GPT4All 3.10, and close that."))
        at_ms = epoch_milliseconds(stream.number("q"))
        key, title = stream.text(), stream.text()
        stream.text()  # the user's name
        model = stream.text()
        for _ in range(stream.number("I")):
            stream.text()  # collections of documents
        found = FoundChat(f"gpt4all:{key}", title, at_ms)
        if version < 11:
            _skip_state(stream)
        for place in range(stream.number("i")):
            _read_item(stream, version, place, model, found)
    except (struct.error, MemoryError, RecursionError) as error:
        raise UnknownFile(tr("This chat of GPT4All is damaged: it ends too soon.")) from error
    found.shown = found.said[-1].key if found.said else ""
    return found


def _skip_state(stream: _Stream) -> None:
    has_cache = stream.number("?")
    for _ in range(2):
        stream.number("i")  # kind of the model, version of its state
    for _ in range(2):
        stream.text()  # the last response, the generated name
    stream.number("I")
    if has_cache:
        raise UnknownFile(
            tr("This chat of GPT4All holds the model's memory: switch “Save chat context” off there first.")
        )


def _read_item(stream: _Stream, version: int, place: int, model: str, found: FoundChat) -> None:
    if version < 12:
        stream.number("i")
    name, text = stream.text(), stream.text()
    stream.text()  # what the user would have answered
    for _ in range(4):
        stream.number("?")  # is it the newest, was it stopped, is it liked, is it disliked
    if version >= 11 and name == "Response: ":
        stream.number("?")  # was it an error
    for _ in range(stream.number("q")):
        for _ in range(7):
            stream.text()
        for _ in range(3):
            stream.number("i")
        found.left_out["source of a reply"] += 1
    for _ in range(stream.number("q")):
        stream.blob(), stream.blob()
        found.left_out["image or file"] += 1
    thoughts: list[str] = []
    if version >= 12:
        for _ in range(stream.number("q")):
            _read_inner(stream, thoughts, found)
    role = _ROLES.get(name)
    if role is not None and text.strip():
        before = found.said[-1].key if found.said else ""
        said_by = model if role is Role.ASSISTANT else None
        found.said.append(Said(str(place), before, role, text, found.at_ms, said_by, "\n".join(thoughts)))


def _read_inner(stream: _Stream, thoughts: list[str], found: FoundChat) -> None:
    """Read what stands in a reply: text before a call, thoughts, results."""
    name, text = stream.text(), stream.text()
    if name == "ToolCall: ":
        raise UnknownFile(tr("This chat of GPT4All holds calls of tools, which cannot be read here."))
    if name == "Think: ":
        stream.number("i")  # its milliseconds
    if name in ("Think: ", "Text: "):
        thoughts.append(text)
    elif text:
        found.left_out["tool result or thought"] += 1
    for _ in range(stream.number("q")):
        _read_inner(stream, thoughts, found)
