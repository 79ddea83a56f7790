"""Reads the chats of a file in a process of its own: ``python -m ui.chat.exchange.read_chats PATH``. No Qt.

It prints a line of JSON for each chat, ``{"chat": …, "progress": 0.5}``, or ``{"problem": "a sentence"}``.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ui.chat.exchange.found_chat import FoundChat, UnknownFile
from ui.chat.exchange.gpt4all import MAGIC, read_chat
from ui.chat.exchange.other_programs import chats_in
from ui.language import tr

MOST_BYTES = 2 << 30  # of one file, also of one in an archive


def read(path: Path) -> Iterator[tuple[float, FoundChat]]:
    """Yield each chat of a file with the share that is done. Raises UnknownFile."""
    name = path.name
    try:
        blobs = list(_blobs(path))
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise UnknownFile(tr("{name} cannot be read: it is damaged, locked, or not there.", name=name)) from error
    if not blobs:
        raise UnknownFile(
            tr("{name} holds no chats: an archive from ChatGPT has a conversations.json in it.", name=name)
        )
    for place, data in enumerate(blobs):
        if data.startswith(MAGIC):
            yield (place + 1) / len(blobs), read_chat(data)
            continue
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UnknownFile(
                tr("{name} holds no chats: it is neither JSON nor a chat of GPT4All.", name=name)
            ) from error
        entries = list(chats_in(found))
        for number, (reader, entry) in enumerate(entries, 1):
            try:
                chat = reader(entry)
            except (KeyError, TypeError, ValueError, AttributeError):
                chat = FoundChat("", "", 0)
                chat.left_out["damaged chat"] += 1
            yield (place + number / len(entries)) / len(blobs), chat


_NAMES = ("conversations", "chat-export", tr("Slipstream chats"))  # of JSON files with many chats


def _blobs(path: Path) -> Iterator[bytes]:
    """Yield the files with chats: the file itself, or those in an archive."""
    if not zipfile.is_zipfile(path):
        if path.stat().st_size > MOST_BYTES:
            raise UnknownFile(
                tr(
                    "{name} is larger than {MOST_BYTES} GiB: export fewer chats at once.",
                    name=path.name,
                    MOST_BYTES=MOST_BYTES >> 30,
                )
            )
        yield path.read_bytes()
        return
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            last = entry.filename.rpartition("/")[2]
            is_chats = (last.startswith(_NAMES) and last.endswith(".json")) or last.endswith(
                (".conversation.json", ".chat")
            )
            if is_chats and entry.file_size <= MOST_BYTES:
                yield archive.read(entry)


def main() -> None:
    """Print the chats of the file that is named."""

    def say(**what: object) -> None:
        print(json.dumps(what, ensure_ascii=True), flush=True)

    try:
        for share, chat in read(Path(sys.argv[1])):
            say(chat=asdict(chat) | {"left_out": dict(chat.left_out)}, progress=round(share, 3))
    except UnknownFile as error:
        say(problem=str(error))
    except MemoryError:
        say(problem=tr("The file needs more memory than there is: export fewer chats at once."))


if __name__ == "__main__":
    main()
