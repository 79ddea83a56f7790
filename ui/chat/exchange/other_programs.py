"""Chats as ChatGPT, LM Studio and Open WebUI export them; each reader takes one chat's object. No Qt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from ui.chat.exchange.chat_text import FORMAT
from ui.chat.exchange.found_chat import FoundChat, Said, UnknownFile, as_text, epoch_milliseconds
from ui.client.chat_records import Role
from ui.language import tr

Reader = Callable[[dict[str, Any]], FoundChat]
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}


def chats_in(data: object) -> Iterator[tuple[Reader, dict[str, Any]]]:
    """Yield each chat of a file with who reads it. Raises UnknownFile."""
    if isinstance(data, dict) and data.get("format") == FORMAT:
        chats = data.get("chats")
        if not isinstance(chats, list):
            raise UnknownFile(tr("This file of chats from Slipstream is damaged."))
        yield from ((ours, chat) for chat in chats if isinstance(chat, dict))
        return
    if data == []:  # who exports without a chat gets such a file
        return
    entries = data if isinstance(data, list) else [data]
    readers = [(entry, reader_of(entry)) for entry in entries if isinstance(entry, dict)]
    if not any(reader for _, reader in readers):
        raise UnknownFile(tr("This is not a file of chats from Slipstream, ChatGPT, LM Studio, Open WebUI or GPT4All."))
    yield from ((reader, entry) for entry, reader in readers if reader is not None)


def reader_of(entry: dict[str, Any]) -> Reader | None:
    """Return who reads an object, by what is in it."""
    if isinstance(entry.get("mapping"), dict):
        return chatgpt
    chat = entry.get("chat")
    if isinstance(chat, dict) and ("history" in chat or "messages" in chat):
        return open_webui
    messages = entry.get("messages")
    if isinstance(messages, list) and any(isinstance(one, dict) and "versions" in one for one in messages):
        return lm_studio
    return None


def ours(entry: dict[str, Any]) -> FoundChat:
    """Read a chat of our own file."""
    at_ms = entry.get("created_ms") if isinstance(entry.get("created_ms"), int) else 0
    return FoundChat(f"slipstream:{entry.get('id')}:{at_ms}", as_text(entry.get("title")), at_ms or 0, whole=entry)


def chatgpt(entry: dict[str, Any]) -> FoundChat:
    """Read one of ``conversations.json``: a tree of nodes, of which some only hold the tree together."""
    mapping: dict[str, Any] = entry["mapping"]
    found = _found("chatgpt", entry, entry.get("conversation_id") or entry.get("id"), entry.get("create_time"))
    found.is_archived = entry.get("is_archived") is True
    texts = {key: _chatgpt_message(key, node, found) for key, node in mapping.items() if isinstance(node, dict)}
    for key in mapping:
        if (said := texts.get(key)) is not None:
            said.parent = _kept_above(mapping[key].get("parent"), mapping, texts)
            found.said.append(said)
    found.shown = _kept_above(entry.get("current_node"), mapping, texts)
    return found


def _chatgpt_message(key: str, node: dict[str, Any], found: FoundChat) -> Said | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    author, content, more = (_object(message.get(name)) for name in ("author", "content", "metadata"))
    role, kind = as_text(author.get("role")), as_text(content.get("content_type"))
    parts = content.get("parts") if isinstance(content.get("parts"), list) else [content.get("text")]
    text = "\n".join(part for part in parts or () if isinstance(part, str))
    n_others = sum(isinstance(part, dict) for part in parts or ())
    found.left_out["image or file"] += n_others + len(more.get("attachments") or ()) * (not n_others)
    if role == "system" or more.get("is_visually_hidden_from_conversation"):
        return None
    if role not in _ROLES or kind not in ("text", "multimodal_text", "code"):
        found.left_out["tool result or thought"] += bool(kind)
        return None
    if kind == "code":
        text = f"```{as_text(content.get('language')).replace('unknown', '')}\n{text}\n```"
    if not text.strip():
        return None
    return Said(key, "", _ROLES[role], text, epoch_milliseconds(message.get("create_time")), more.get("model_slug"))


def _kept_above(key: object, mapping: dict[str, Any], kept: dict[str, Said | None]) -> str:
    """Return the nearest node at or above ``key`` whose message is kept, "" for none."""
    seen: set[object] = set()
    while isinstance(key, str) and key in mapping and key not in seen:
        if kept.get(key) is not None:
            return key
        seen.add(key)
        key = _object(mapping[key]).get("parent")
    return ""


def open_webui(entry: dict[str, Any]) -> FoundChat:
    """Read one of an export: a tree in ``history``, or a list in old ones."""
    chat = entry["chat"]
    at = entry.get("created_at") or chat.get("timestamp")
    found = _found("open-webui", {"title": entry.get("title") or chat.get("title")}, entry.get("id"), at, chat)
    found.is_pinned, found.is_archived = entry.get("pinned") is True, entry.get("archived") is True
    found.system_prompt = as_text(_object(chat.get("params")).get("system") or chat.get("system"))
    history = _object(chat.get("history"))
    tree = _object(history.get("messages"))
    listed = [one for one in chat.get("messages") or () if isinstance(one, dict)]
    messages = tree or {as_text(one.get("id")) or str(at): one for at, one in enumerate(listed)}
    last = ""
    for key, message in messages.items():
        message = _object(message)
        found.left_out["image or file"] += len(message.get("files") or ()) + len(message.get("images") or ())
        role, text = as_text(message.get("role")), as_text(message.get("content"))
        if role not in _ROLES or not text.strip():
            continue
        thoughts, text = _open_webui_thoughts(text)
        parent = as_text(message.get("parentId")) if tree else last
        at_ms = epoch_milliseconds(message.get("timestamp"))
        found.said.append(Said(key, parent, _ROLES[role], text, at_ms, message.get("model"), thoughts))
        last = key
    found.shown = as_text(history.get("currentId")) or last
    return found


def _open_webui_thoughts(text: str) -> tuple[str, str]:
    """Take apart what it keeps in one: ``<details type="reasoning">`` before the reply."""
    begin, end = '<details type="reasoning"', "</details>"
    if not text.lstrip().startswith(begin) or end not in text:
        return "", text
    inside, _, reply = text.partition(end)
    thoughts = inside.partition("</summary>")[2]
    lines = (line.removeprefix(">").removeprefix("&gt;").strip() for line in thoughts.strip().splitlines())
    return "\n".join(lines), reply.lstrip()


# Where a chat of LM Studio keeps instructions that were changed for it alone.
_LM_STUDIO_INSTRUCTIONS = "llm.prediction.systemPrompt"
# Steps of a reply without text: the state of a tool's call, and notes for debugging.
_LM_STUDIO_SILENT = ("debugInfoBlock", "status", "toolStatus")


def lm_studio(entry: dict[str, Any]) -> FoundChat:
    """Read a ``.conversation.json``: a list of messages, each with its versions."""
    found = _found("lm-studio", {"title": entry.get("name")}, None, entry.get("createdAt"), entry)
    found.is_pinned = entry.get("pinned") is True
    found.system_prompt = _lm_studio_instructions(entry) or as_text(entry.get("systemPrompt"))
    last_model = as_text(_object(entry.get("lastUsedModel")).get("identifier"))
    before = ""
    for place, message in enumerate(entry["messages"]):
        versions = [one for one in _object(message).get("versions") or () if isinstance(one, dict)]
        at = _object(message).get("currentlySelected")
        chosen = before
        for number, version in enumerate(versions):
            said = _lm_studio_version(f"{place}.{number}", version, found, last_model)
            if said is not None:
                said.parent = before
                found.said.append(said)
                if number == at or chosen == before:
                    chosen = said.key
        before = chosen
    found.shown = before
    return found


def _lm_studio_instructions(entry: dict[str, Any]) -> str:
    fields = _object(entry.get("perChatPredictionConfig")).get("fields")
    found = [_object(field) for field in fields] if isinstance(fields, list) else []
    return next((as_text(field.get("value")) for field in found if field.get("key") == _LM_STUDIO_INSTRUCTIONS), "")


def _lm_studio_version(key: str, version: dict[str, Any], found: FoundChat, last_model: str) -> Said | None:
    """Read a version: of a reply it has steps, of what the user said its content."""
    steps = version["steps"] if isinstance(version.get("steps"), list) else [version | {"type": "contentBlock"}]
    texts: list[str] = []
    thoughts: list[str] = []
    model = as_text(_object(version.get("senderInfo")).get("senderName"))
    for step in map(_object, steps):
        if step.get("type") != "contentBlock":
            found.left_out["tool result or thought"] += step.get("type") not in _LM_STUDIO_SILENT
            continue
        is_thought = _object(step.get("style")).get("type") == "thinking"
        made_by = _object(step.get("genInfo"))
        model = as_text(made_by.get("identifier")) or as_text(made_by.get("indexedModelIdentifier")) or model
        for part in map(_object, step.get("content") or ()):
            if part.get("type") == "text":
                (thoughts if is_thought else texts).append(as_text(part.get("text")))
            found.left_out["image or file"] += part.get("type") == "file"
            found.left_out["tool result or thought"] += part.get("type") == "toolCallResult"
    role, text = as_text(version.get("role")), "".join(texts)
    if role not in _ROLES or not text.strip():
        return None
    by = (model or last_model or None) if _ROLES[role] is Role.ASSISTANT else None
    return Said(key, "", _ROLES[role], text, _lm_studio_time(steps), by, "".join(thoughts))


def _lm_studio_time(steps: list[Any]) -> int:
    """Return when a reply began: steps are named by it, as "1733000000000-0.123"."""
    name = as_text(_object(steps[0]).get("stepIdentifier")) if steps else ""
    milli = name.partition("-")[0]
    return epoch_milliseconds(int(milli)) if milli.isascii() and milli.isdigit() and len(milli) < 20 else 0


def _found(program: str, entry: dict[str, Any], key: object, at: object, whole: object = None) -> FoundChat:
    """Begin a chat; without a key of its own it is known by its content."""
    digest = hashlib.sha256(json.dumps(whole or entry, sort_keys=True).encode()).hexdigest()
    title = " ".join(as_text(entry.get("title")).split())
    return FoundChat(f"{program}:{key if isinstance(key, str) and key else digest}", title, epoch_milliseconds(at))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
