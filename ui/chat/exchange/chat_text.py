"""A chat as text: JSON that can be imported again, or Markdown to read. No Qt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ui.chat.storage.message_tree import MessageTree
from ui.client.chat_records import Chat, ChatSummary, Message, Role
from ui.client.tool_calls import ToolCall
from ui.language import day, tr

FORMAT, VERSION = "slipstream-chats", 1
HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "chats": [\n'
FOOT = "\n]}\n"


def as_json(chat: Chat, summary: ChatSummary, messages: Sequence[Message]) -> str:
    """Return all of a chat, with its branches, as one JSON object."""
    sorting = {"folder": summary.folder, "is_pinned": summary.is_pinned, "is_archived": summary.is_archived}
    whole: dict[str, Any] = asdict(chat) | sorting | {"messages": [asdict(message) for message in messages]}
    return json.dumps(whole, ensure_ascii=False)


def as_markdown(chat: Chat, messages: Sequence[Message]) -> str:
    """Return the branch that is shown, with the names of files, and thoughts and calls of tools folded."""
    begun = chat.created_ms / 1000
    parts = [f"# {chat.title}", f"*{day(begun)}, {datetime.fromtimestamp(begun):%H:%M}*"]
    if chat.settings.system_prompt:
        parts += [f"## {tr('Instructions')}", chat.settings.system_prompt]
    for message in MessageTree(messages, chat.leaf_id).path:
        by = f" ({message.model})" if message.model else ""
        parts.append(f"## {tr('You')}" if message.role is Role.USER else f"## {tr('Reply')}{by}")
        parts += [f"*{tr('File')}: {one.name}*" for one in message.attachments]
        if message.thoughts:
            parts.append(_folded(tr("Thoughts"), message.thoughts.strip()))
        parts += _text_and_calls(message)
        if not message.content:
            parts.append(f"*{message.problem or tr('No text.')}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _text_and_calls(message: Message) -> list[str]:
    """Return what was said, in pieces, with each call of a tool where it was made."""
    parts, begin = list[str](), 0
    for call in message.calls:
        parts.append(message.content[begin : call.at].strip("\n"))
        parts.append(_folded(tr("Tool {words}", words=call.tool or call.name), _call_text(call)))
        begin = max(begin, call.at)
    return [*parts, message.content[begin:].strip("\n") if parts else message.content]


def _folded(name: str, text: str) -> str:
    return f"<details><summary>{name}</summary>\n\n{text}\n\n</details>"


def _call_text(call: ToolCall) -> str:
    return f"~~~~\n{call.arguments}\n\n{call.result}\n~~~~"


def file_name(title: str, number: int = 0) -> str:
    """Return a title as a file can be named by it, without a suffix."""
    kept = "".join(letter if letter.isalnum() or letter in " -_.," else " " for letter in title)
    name = " ".join(kept.split()).strip(". ")[:80] or tr("Chat")
    return f"{name} ({number})" if number else name
