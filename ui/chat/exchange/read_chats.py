"""Reads the chats of a file in a process of its own: ``python -m ui.chat.exchange.read_chats PATH``. No Qt.

It prints a line of JSON for each chat, ``{"chat": …, "progress": 0.5}``, or ``{"problem": "a sentence"}``.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ui.chat.exchange.found_chat import FoundChat, UnknownFile
from ui.chat.exchange.gpt4all import MAGIC, read_chat
from ui.chat.exchange.other_programs import chats_in
from ui.language import tr

MOST_BYTES = 2 << 30  # of one file, also of one in an archive
_NAMES = ("conversations", "chat-export", tr("Slipstream chats"))  # of JSON files with many chats
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, NotImplementedError)


def read(path: Path) -> Iterator[tuple[float, FoundChat]]:
    """Yield each chat of a file with the share that is done. Raises UnknownFile."""
    try:
        is_archive = zipfile.is_zipfile(path)
        if not is_archive and path.stat().st_size > MOST_BYTES:
            raise UnknownFile(
                tr(
                    "{name} is larger than {MOST_BYTES} GiB: export fewer chats at once.",
                    name=path.name,
                    MOST_BYTES=MOST_BYTES >> 30,
                )
            )
        found = zipfile.ZipFile(path) if is_archive else path.read_bytes()
    except _DAMAGED as error:
        raise _unreadable(path.name) from error
    is_empty = True
    with contextlib.nullcontext() if isinstance(found, bytes) else found:
        for chat in _chats(path.name, found) if isinstance(found, bytes) else _archived(path.name, found):
            is_empty = False
            yield chat
    if is_empty:
        raise UnknownFile(tr("{name} holds no chats.", name=path.name))


def _archived(name: str, archive: zipfile.ZipFile) -> Iterator[tuple[float, FoundChat]]:
    """Yield the chats of an archive. Of several files one that is damaged takes no other with it."""
    entries = [entry for entry in archive.infolist() if entry.file_size <= MOST_BYTES and _has_chats(entry.filename)]
    if not entries:
        if any(entry.filename.endswith(".md") for entry in archive.infolist()):
            raise _to_read(name)
        raise UnknownFile(
            tr("{name} holds no chats: an archive from ChatGPT has a conversations.json in it.", name=name)
        )
    for place, entry in enumerate(entries):
        try:
            for share, chat in _chats(name, archive.read(entry)):
                yield (place + share) / len(entries), chat
        except (UnknownFile, *_DAMAGED) as error:
            if len(entries) == 1:
                raise error if isinstance(error, UnknownFile) else _unreadable(name) from error
            yield (place + 1) / len(entries), _left_out("damaged file")


def _to_read(name: str) -> UnknownFile:
    words = tr("{name} has chats in Markdown, which cannot be imported: export them as JSON for that.", name=name)
    return UnknownFile(words)


def _has_chats(path: str) -> bool:
    last = path.rpartition("/")[2]
    has_many = last.startswith(_NAMES) and last.endswith(".json")
    return has_many or last.endswith((".conversation.json", ".chat"))


def _chats(name: str, data: bytes) -> Iterator[tuple[float, FoundChat]]:
    if data.startswith(MAGIC):
        yield 1.0, read_chat(data)
        return
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        if name.lower().endswith(".md"):
            raise _to_read(name) from error
        raise UnknownFile(
            tr("{name} cannot be read: it is neither whole JSON nor a chat of GPT4All.", name=name)
        ) from error
    entries = list(chats_in(found))
    for number, (reader, entry) in enumerate(entries, 1):
        try:
            chat = reader(entry)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            chat = _left_out("damaged chat")
        yield number / len(entries), chat


def _unreadable(name: str) -> UnknownFile:
    return UnknownFile(tr("{name} cannot be read: it is damaged, locked, or not there.", name=name))


def _left_out(what: str) -> FoundChat:
    found = FoundChat("", "", 0)
    found.left_out[what] += 1
    return found


def _as_object(chat: FoundChat) -> dict[str, Any]:
    return asdict(chat) | {"left_out": dict(chat.left_out)}


def main() -> None:
    """Print the chats of the file that is named."""

    def say(**what: object) -> None:
        print(json.dumps(what, ensure_ascii=True), flush=True)

    try:
        for share, chat in read(Path(sys.argv[1])):
            try:
                say(chat=_as_object(chat), progress=share)
            except RecursionError:  # it is nested more deeply than any chat
                say(chat=_as_object(_left_out("damaged chat")), progress=share)
    except UnknownFile as error:
        say(problem=str(error))
    except MemoryError:
        say(problem=tr("The file needs more memory than there is: export fewer chats at once."))


if __name__ == "__main__":
    main()
