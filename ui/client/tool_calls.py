"""Calls of tools in a reply: what is kept of them, and how the model is told of them. No Qt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from models.formatting.json_values import value_of
from ui.client.attachments import Attachment


class CallStatus(StrEnum):
    """How far a call is."""

    ASKED = "asked"  # the user has to allow it
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


OPEN = (CallStatus.ASKED, CallStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, after ``at`` characters of the reply; calls with one ``round`` were made together.

    ``name`` is what the model calls it, ``tool`` what its ``server`` does.
    """

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it
    server: str = ""
    tool: str = ""
    result: str = ""
    status: CallStatus = CallStatus.ASKED
    at: int = 0
    round: int = 0
    images: tuple[Attachment, ...] = ()  # in the result; only the user sees them


def messages_of(content: str, calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
    """Yield a reply with its calls as the chat route takes it: text and calls, their results, then the next text."""
    begin = 0
    for _, made in groupby(calls, key=lambda call: call.round):
        together = list(made)
        end = together[0].at
        yield {
            "role": "assistant",
            "content": content[begin:end].lstrip("\n"),
            "tool_calls": [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in together
            ],
        }
        for call in together:
            yield {"role": "tool", "tool_call_id": call.id, "content": call.result or "Nothing came back."}
        begin = end
    if rest := content[begin:].lstrip("\n"):
        yield {"role": "assistant", "content": rest}


def to_json(calls: Sequence[ToolCall]) -> str:
    """Return calls as they are kept."""
    return json.dumps([asdict(call) for call in calls], ensure_ascii=False)


def from_json(text: str) -> tuple[ToolCall, ...]:
    """Read what ``to_json`` wrote; what was open is over."""
    try:
        calls: tuple[ToolCall, ...] = value_of(tuple[ToolCall, ...], json.loads(text))
    except (ValueError, TypeError, KeyError):
        return ()
    return tuple(closed(call) if call.status in OPEN else call for call in calls)


def closed(call: ToolCall) -> ToolCall:
    """Return a call that was not made, as one that is over."""
    return replace(call, result="It was stopped.", status=CallStatus.REFUSED)
