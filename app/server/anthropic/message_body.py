"""The body of POST /v1/messages, translated to the chat call's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError

from app.server.calls.schemas import MAX_MESSAGES, MAX_TOOLS, ChatCompletionBody, Text
from app.server.http.body import LenientBody
from app.server.http.errors import from_validation
from core.values.errors import BadRequest

Block = dict[str, Any]
Message = dict[str, Any]
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class SentMessage(LenientBody):
    """One turn: text or blocks."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class SentTool(LenientBody):
    """A tool of the client's; ``type`` names those that Anthropic runs itself."""

    name: str
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class Thinking(LenientBody):
    """Whether and how long the model thinks before it answers."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = Field(default=None, ge=1)


class MessageBody(LenientBody):
    """What a message is made from. ``metadata``, ``cache_control`` and what is not known change nothing here."""

    messages: list[SentMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    model: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    system: Text | list[Block] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    tools: list[SentTool] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Block | None = None
    thinking: Thinking | None = None
    service_tier: str | None = None

    def chat(self) -> ChatCompletionBody:
        """Return the chat call's body; raises BadRequest and ApiError."""
        fields: dict[str, Any] = {
            "model": self.model,
            "messages": self._messages(),
            "max_completion_tokens": self.max_tokens,
            "stop": self.stop_sequences,
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "tools": [_function(tool) for tool in self.tools or ()] or None,
            **self._chosen(),
        }
        if self.thinking is not None and self.thinking.type != "adaptive":
            fields["enable_thinking"] = self.thinking.type == "enabled"
            fields["reasoning_budget"] = self.thinking.budget_tokens
        try:
            return ChatCompletionBody.model_validate(fields)
        except ValidationError as error:
            raise from_validation(dict(one) for one in error.errors()) from None

    def _messages(self) -> list[Message]:
        messages: list[Message] = []
        if self.system:
            messages.append({"role": "system", "content": _text(self.system)})
        for index, sent in enumerate(self.messages):
            blocks = [{"type": "text", "text": sent.content}] if isinstance(sent.content, str) else sent.content
            where = f"messages[{index}]"
            messages += _said(blocks, where) if sent.role == "assistant" else _asked(sent.role, blocks, where)
        return messages

    def _chosen(self) -> dict[str, Any]:
        choice = self.tool_choice
        if choice is None:
            return {}
        single = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
        kind = choice.get("type")
        if kind == "tool":
            return {"tool_choice": {"type": "function", "function": {"name": choice.get("name")}}, **single}
        if kind not in _CHOICES:
            raise BadRequest("tool_choice.type must be auto, any, tool or none.", param="tool_choice")
        return {"tool_choice": _CHOICES[kind], **single}


def _function(tool: SentTool) -> dict[str, Any]:
    if tool.input_schema is None:
        raise BadRequest(
            f"The tool {tool.name} is of the type {tool.type}, which runs elsewhere: send tools with an input_schema.",
            param="tools",
        )
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _text(blocks: str | Sequence[Block]) -> str:
    if isinstance(blocks, str):
        return blocks
    return "\n\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _said(blocks: Sequence[Block], where: str) -> list[Message]:
    """Return an assistant's turn: text, thoughts and calls become one message."""
    turn: Message = {"role": "assistant"}
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            turn["content"] = turn.get("content", "") + str(block.get("text", ""))
        elif kind == "thinking":
            turn["reasoning_content"] = turn.get("reasoning_content", "") + str(block.get("thinking", ""))
        elif kind == "tool_use":
            function = {
                "name": block.get("name"),
                "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False),
            }
            turn.setdefault("tool_calls", []).append({"id": block.get("id"), "type": "function", "function": function})
        elif kind != "redacted_thinking":  # nobody here can read it
            raise _unreadable(kind, where)
    return [turn]


def _asked(role: str, blocks: Sequence[Block], where: str) -> list[Message]:
    """Return a user's turn: the results of tools first, each a message of its own, then what the user says."""
    results: list[Message] = []
    parts: list[Block] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            results.append(_result(block, where))
        else:
            parts.append(_part(block, where))
    if not parts:
        return results
    plain = "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else parts
    return [*results, {"role": role, "content": plain}]


def _result(block: Block, where: str) -> Message:
    content = block.get("content") or ""
    if not isinstance(content, str):
        parts = [_part(part, where) for part in content]
        content = "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else parts
    if block.get("is_error") and isinstance(content, str):
        content = f"Error: {content}"
    return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}


def _part(block: Block, where: str) -> Block:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": block.get("text", "")}
    if kind == "image":
        source = block.get("source") or {}
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "document" and (block.get("source") or {}).get("type") == "text":
        return {"type": "text", "text": block["source"].get("data", "")}
    raise _unreadable(kind, where)


def _unreadable(kind: Any, where: str) -> BadRequest:
    return BadRequest(f"{where} has a block of the type {kind!r}, which cannot be read here.", param="messages")
