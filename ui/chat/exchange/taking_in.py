"""Puts a chat that was found in a file into the store, once. No Qt."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from models.formatting.figures import count
from ui.chat.storage.ids import Ids, now_ms
from ui.chat.storage.store import ChatStore
from ui.client import attachments, tool_calls
from ui.client.chat_records import Chat, ChatSettings, Message, Role, Status, Timings, title_of
from ui.client.speeds import speed_of
from ui.language import tr

_LATEST_MS = 253_402_300_800_000  # the end of the year 9999


@dataclass(slots=True)
class Taken:
    """What became of the chats so far; ``share`` is how much of the file they are."""

    share: float = 0.0
    new: list[int] = field(default_factory=list)  # the chats that have come
    n_archived: int = 0  # of these
    n_known: int = 0
    n_empty: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    is_refused: bool = False  # by the disk: no other file would do better

    def sentence(self) -> str:
        """Return what became of them, in words."""
        words = [tr("{chats} imported.", chats=_number(len(self.new), "chat"))]
        if self.n_archived:
            words.append(tr("In the archive: {n:,}.", n=self.n_archived))
        if self.n_known:
            words.append(
                tr("1 chat was here already.")
                if self.n_known == 1
                else tr("{n:,} chats were here already.", n=self.n_known)
            )
        if self.n_empty:
            words.append(tr("{chats} without text left out.", chats=_number(self.n_empty, "chat")))
        others = [_number(n, what) for what, n in self.left_out.items() if n]
        if others:
            words.append(tr("Left out: {names}.", names=", ".join(others)))
        return " ".join(words)


# One of it, and many, by what the readers of files call it.
_WORDS = {
    "chat": (tr("chat"), tr("chats")), "damaged chat": (tr("damaged chat"), tr("damaged chats")),
    "damaged file": (tr("damaged file"), tr("damaged files")),
    "image or file": (tr("image or file"), tr("images or files")),
    "tool result or thought": (tr("tool result or thought"), tr("tool results or thoughts")),
    "source of a reply": (tr("source of a reply"), tr("sources of replies")),
}  # fmt: skip


def _number(n: int, what: str) -> str:
    one, many = _WORDS.get(what, (what, what))
    return f"{count(n)} {one if n == 1 else many}"


def take_in(store: ChatStore, found: dict[str, Any], ids: Ids, taken: Taken) -> None:
    """Keep a chat, given as ``found_chat.FoundChat`` in JSON's values, unless it is here already."""
    taken.left_out.update({what: n for what, n in found["left_out"].items() if isinstance(n, int)})
    source = str(found["source"])
    if not source:
        return
    if store.chat_from(source) is not None or _is_own(store, source):
        taken.n_known += 1
        return
    made = _of_ours(found["whole"], ids) if found.get("whole") is not None else _of_other(found, ids)
    if made is None:
        taken.n_empty += 1
        return
    chat, messages = made
    whole = found["whole"] or found
    sorting = (str(whole.get("folder") or ""), whole.get("is_pinned") is True, whole.get("is_archived") is True)
    store.add_chat(chat, messages, source, sorting)
    taken.new.append(chat.id)
    taken.n_archived += sorting[2]


def _is_own(store: ChatStore, source: str) -> bool:
    """Return whether a file of ours holds a chat that never left."""
    program, _, key = source.partition(":")
    number, _, created = key.partition(":")
    if program != "slipstream" or not (number.isdigit() and created.isdigit()):
        return False
    chat = store.chat(int(number))
    return chat is not None and chat.created_ms == int(created)


def _of_other(found: dict[str, Any], ids: Ids) -> tuple[Chat, list[Message]] | None:
    said = {one["key"]: one for one in found["said"]}
    if not said:
        return None
    chat_id, at = ids.next(), found["at_ms"] or now_ms()
    numbers: dict[str, int] = {}
    messages: list[Message] = []
    for key in _parents_first(said):
        one = said[key]
        numbers[key] = ids.next()
        messages.append(
            Message(
                numbers[key],
                chat_id,
                numbers.get(one["parent"]),
                Role(one["role"]),
                one["text"],
                one["at_ms"] or at,
                model=one["model"] if isinstance(one["model"], str) else None,
                thoughts=one["thoughts"],
            )
        )
    title = found["title"] or title_of(messages[0].content)
    settings = ChatSettings(system_prompt=found["system_prompt"])
    last = max(message.created_ms for message in messages)
    return Chat(chat_id, title, at, max(at, last), settings, numbers.get(found["shown"], messages[-1].id)), messages


def _parents_first(said: dict[str, dict[str, Any]]) -> list[str]:
    """Return the keys with each parent before its children; a circle of parents is cut."""
    order: dict[str, None] = {}
    for key in said:
        way: dict[str, None] = {}
        while key in said and key not in order and key not in way:
            way[key] = None
            key = said[key]["parent"]
        order.update(dict.fromkeys(reversed(way)))
    return list(order)


def _of_ours(whole: dict[str, Any], ids: Ids) -> tuple[Chat, list[Message]] | None:
    entries = [one for one in whole.get("messages") or () if isinstance(one, dict) and isinstance(one.get("id"), int)]
    numbers: dict[int, int] = {}
    messages: list[Message] = []
    chat_id = ids.next()
    for one in sorted(entries, key=lambda one: one["id"]):
        if one.get("role") not in set(Role):
            continue
        numbers[one["id"]] = ids.next()
        messages.append(_message(one, numbers, chat_id))
    if not messages:
        return None
    settings = ChatSettings.from_json(json.dumps(whole.get("settings")))
    created, updated = (_time(whole.get(name)) or now_ms() for name in ("created_ms", "updated_ms"))
    leaf = numbers.get(whole.get("leaf_id") or 0, messages[-1].id)
    return Chat(chat_id, str(whole.get("title") or tr("Chat")), created, updated, settings, leaf), messages


def _message(one: dict[str, Any], numbers: dict[int, int], chat_id: int) -> Message:
    status = one.get("status")
    return Message(
        numbers[one["id"]],
        chat_id,
        numbers.get(one.get("parent_id") or 0),
        Role(one["role"]),
        str(one.get("content") or ""),
        _time(one.get("created_ms")),
        Status(status) if status in set(Status) and status != Status.STREAMING else Status.STOPPED,
        _text(one.get("problem")),
        _text(one.get("finish_reason")),
        _text(one.get("model")),
        Timings.from_object(one.get("timings")),
        speed_of(one.get("speed")),
        _text(one.get("answered_by")),
        str(one.get("thoughts") or ""),
        thinking_ms if isinstance(thinking_ms := one.get("thinking_ms"), int | float) else None,
        attachments.from_json(json.dumps(one.get("attachments") or [])),
        tool_calls.from_json(json.dumps(one.get("calls") or [])),
        _spans(one.get("drafted")),
    )


def _spans(found: Any) -> tuple[tuple[int, int], ...]:
    """Return spans of characters, none for what is not a list of them."""
    try:
        return tuple((int(begin), int(end)) for begin, end in found)
    except (TypeError, ValueError):
        return ()


def _time(number: object) -> int:
    """Return a time in milliseconds since 1970, 0 for what is none that a date can say."""
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < _LATEST_MS:
        return number
    return 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
