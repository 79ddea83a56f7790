"""The body of POST /v1/messages, translated to the chat call's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from app.server.calls.chat_body import MAX_MESSAGES, MAX_TOOLS, ChatCompletionBody, not_endless, with_own
from app.server.calls.schemas import Text, TokenLimit, checked_text
from app.server.http.body import LenientBody, WholeNumbers, valid
from app.server.http.errors import ApiError, refuse
from core.values.errors import BadRequest

Block = dict[str, Any]
Message = dict[str, Any]
# Blocks that change which tools are on offer from there on.
_CHANGES = ("tool_addition", "tool_removal")
# Blocks of an assistant's turn that only Anthropic can read, besides the results of tools that ran there.
_UNREAD = ("redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_listing", "container_upload", "fallback")
# Fields of the chat's body by other names.
SENT_FIELDS = {
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
    "response_format": "output_config",
    "chat_template_kwargs": "output_config",
    "enable_thinking": "thinking",
    "reasoning_budget": "thinking",
}
# What a message has no place for.
_UNSAYABLE = ("n", "logprobs", "top_logprobs")
_EFFORTS = {"xhigh": "high", "max": "high"}  # templates know three
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class AnthropicTool(LenientBody):
    """A tool of the client's; ``type`` names those that Anthropic runs itself."""

    name: str
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _a_toolset_is_called_by_its_type(cls, tool: Any) -> Any:
        is_nameless = isinstance(tool, dict) and "name" not in tool and tool.get("type") not in (None, "custom")
        return tool | {"name": tool["type"]} if is_nameless else tool


class AnthropicThinking(WholeNumbers, LenientBody):
    """Whether and how long the model thinks before it answers; ``between_tools``: only over the results of tools."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: int | None = Field(default=None, ge=1)


class OutputConfig(LenientBody):
    """How the message is written: the form that it must have, and how much is thought over it."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: Block | None = None


class AnthropicMessage(LenientBody):
    """One turn: text or blocks.

    One of the system's may hold for the turn that it follows only, and may only set the effort.
    """

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]
    clear_at: Literal["next_user_message", "never"] | None = None
    output_config: OutputConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _may_only_set_the_effort(cls, message: Any) -> Any:
        if isinstance(message, dict) and message.get("role") == "system" and message.get("output_config"):
            return {"content": []} | message
        return message


class MessageBody(WholeNumbers, LenientBody):
    """What a message is made from; the fields of a chat are taken besides.

    ``metadata``, ``cache_control`` and what is not known change nothing here: Anthropic's clients send more with each
    version. ``service_tier`` is about capacity there. ``output_format`` is the older name of the format in
    ``output_config``.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    messages: Annotated[list[AnthropicMessage], BeforeValidator(not_endless)] = Field(
        min_length=1, max_length=MAX_MESSAGES
    )
    model: str | None = None
    max_tokens: TokenLimit = None
    system: Text | Annotated[list[Block], Field(max_length=MAX_MESSAGES)] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    tools: list[AnthropicTool] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Block | None = None
    thinking: AnthropicThinking | None = None
    output_config: OutputConfig | None = None
    output_format: Block | None = None
    speed: str | None = None
    cache_salt: Text | None = None
    mcp_servers: list[Any] | None = Field(default=None, max_length=0)
    compaction: None = None
    service_tier: Any = None
    thread: Any = None

    def chat(self) -> ChatCompletionBody:
        """Return the chat call's body; raises BadRequest and ApiError."""
        if self.thread is not None:
            raise _keeps_no_threads()
        effort = self._effort
        fields: dict[str, Any] = {
            "model": self.model,
            "messages": self._messages(),
            "max_completion_tokens": self.max_tokens,
            "stop": self.stop_sequences,
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "tools": [_function(tool) for tool in self._offered()] or None,
            "response_format": self._form(),
            "speed": self.speed,
            "cache_salt": self.cache_salt,
            # Whether there is reasoning at all is said by ``thinking``.
            "chat_template_kwargs": {"reasoning_effort": _EFFORTS.get(effort, effort)} if effort else None,
            **self._chosen(),
        }
        if self.thinking is not None and self.thinking.type != "adaptive":
            kind = self.thinking.type
            fields["enable_thinking"] = kind == "enabled" or (kind == "between_tools" and self._has_results)
            fields["reasoning_budget"] = self.thinking.budget_tokens
        beside = ChatCompletionBody.known(self.model_extra or {})
        return valid(ChatCompletionBody, with_own(beside, fields, _UNSAYABLE), SENT_FIELDS)

    @property
    def _has_results(self) -> bool:
        """Whether the last turn has results of tools."""
        last = self.messages[-1].content
        return not isinstance(last, str) and any(block.get("type") == "tool_result" for block in last)

    @property
    def _effort(self) -> str | None:
        configs = [self.output_config, *(message.output_config for message in self.messages[self._n_past :])]
        efforts = [config.effort for config in configs if config is not None and config.effort is not None]
        return efforts[-1] if efforts else None

    @property
    def _n_past(self) -> int:
        """How many messages come before the user's last."""
        return max((index for index, message in enumerate(self.messages) if message.role == "user"), default=0)

    def _offered(self) -> list[AnthropicTool]:
        """Return the tools that are on offer in the end. Raises BadRequest.

        Those that a search at Anthropic would find are on offer anyway, so there is nothing to search.
        """
        known = {tool.name: tool for tool in self.tools or ()}
        offered = {name: tool for name, tool in known.items() if not str(tool.type).startswith("tool_search_tool")}
        for index, message in enumerate(self.messages):
            for change in _tool_changes(message.content):
                tool = _changed_tool(change, known, f"messages[{index}]")
                known[tool.name] = tool
                offered.pop(tool.name, None)
                if change["type"] == "tool_addition":
                    offered[tool.name] = tool
        return list(offered.values())

    def _messages(self) -> list[Message]:
        messages: list[Message] = []
        n_past = self._n_past
        if self.system:
            messages.append({"role": "system", "content": _text(self.system, "system")})
        for index, sent in enumerate(self.messages):
            if sent.clear_at == "next_user_message" and index < n_past:
                continue
            blocks = [{"type": "text", "text": sent.content}] if isinstance(sent.content, str) else sent.content
            where = f"messages[{index}]"
            messages += _said(blocks, where) if sent.role == "assistant" else _asked(sent.role, blocks, where)
        return messages

    def _form(self) -> dict[str, Any] | None:
        form = (self.output_config.format if self.output_config is not None else None) or self.output_format
        if form is None:
            return None
        if form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
            where = "output_config" if self.output_config is not None else "output_format"
            raise BadRequest(f"{where}: a format is {{'type': 'json_schema', 'schema': …}}.", param=where)
        return {"type": "json_schema", "json_schema": {"name": "message", "schema": form["schema"], "strict": True}}

    def _chosen(self) -> dict[str, Any]:
        choice = self.tool_choice
        if choice is None:
            return {}
        single = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
        kind = choice.get("type")
        if kind == "tool":
            return {"tool_choice": {"type": "function", "function": {"name": choice.get("name")}}, **single}
        if not isinstance(kind, str) or kind not in _CHOICES:
            raise BadRequest("tool_choice.type must be auto, any, tool or none.", param="tool_choice")
        return {"tool_choice": _CHOICES[kind], **single}


def _tool_changes(content: str | list[Block]) -> Iterator[Block]:
    """Yield the blocks that change which tools are on offer, also of turns that were summarised."""
    for block in content if not isinstance(content, str) else ():
        changes = block.get("tool_changes") if block.get("type") == "compaction" else [block]
        listed = changes if isinstance(changes, list) else []
        yield from (one for one in listed if isinstance(one, dict) and one.get("type") in _CHANGES)


def _changed_tool(change: Block, known: Mapping[str, AnthropicTool], where: str) -> AnthropicTool:
    """Return the tool that comes or goes: one of ``known``, or one that is defined there. Raises BadRequest."""
    tool = change.get("tool")
    named: Block = tool if isinstance(tool, dict) else {}
    if named.get("type") == "tool_definition" and isinstance(named.get("definition"), dict):
        return valid(AnthropicTool, named["definition"], {})
    found = known.get(str(named.get("name"))) if named.get("type") == "tool_reference" else None
    if found is None:
        problem = f"{where} has a {change['type']} of {str(tool)[:200]}, which is not among the tools."
        raise BadRequest(problem, param="messages")
    return found


def _function(tool: AnthropicTool) -> dict[str, Any]:
    if tool.input_schema is None:
        raise BadRequest(
            f"The tool {tool.name} is of the type {tool.type}, which runs elsewhere: send tools with an input_schema.",
            param="tools",
        )
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function | {"strict": tool.strict}}


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(
        _string(block, "text", where) for block in _blocks(content, where) if block.get("type") == "text"
    )


def _blocks(content: Any, where: str) -> list[Block]:
    """Return content that is a list of blocks; raises BadRequest."""
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise BadRequest(f"{where} has content that is neither text nor a list of blocks.", param=where)
    return content


def _string(block: Block, field: str, where: str) -> str:
    """Return a text of a block, "" where it has none; raises BadRequest."""
    value = block.get(field, "")
    if not isinstance(value, str):
        raise BadRequest(f"{where} has a block of the type {block['type']} whose {field} is no text.", param=where)
    try:
        return checked_text(value)
    except ValueError as error:
        raise BadRequest(f"{where}: {error}.", param=where) from None


def _said(blocks: Sequence[Block], where: str) -> list[Message]:
    """Return an assistant's turn: text, thoughts and calls become one message."""
    turn: Message = {"role": "assistant"}
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            turn["content"] = turn.get("content", "") + _string(block, "text", where)
        elif kind == "thinking":
            turn["reasoning_content"] = turn.get("reasoning_content", "") + _string(block, "thinking", where)
        elif kind == "tool_use":
            if not isinstance(block.get("input") or {}, dict):
                raise BadRequest(f"{where} has a block of the type tool_use whose input is no object.", param=where)
            function = {
                "name": block.get("name"),
                "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False),
            }
            turn.setdefault("tool_calls", []).append({"id": block.get("id"), "type": "function", "function": function})
        elif kind == "compaction":  # a summary of what was said before, null where that failed
            told = {"type": kind, "content": block.get("content") or ""}
            turn["content"] = turn.get("content", "") + _string(told, "content", where)
        elif kind not in (*_UNREAD, *_CHANGES) and not str(kind).endswith("_tool_result"):
            raise _unreadable(kind, where)
    return [turn if len(turn) > 1 else turn | {"content": ""}]


def _asked(role: str, blocks: Sequence[Block], where: str) -> list[Message]:
    """Return a user's turn: the results of tools first, each a message of its own, then what the user says."""
    results: list[Message] = []
    parts: list[Block] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            results.append(_result(block, where))
        elif kind not in _CHANGES:
            parts.append(_part(block, where))
    if not parts:
        return results
    plain = "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else parts
    return [*results, {"role": role, "content": plain}]


def _result(block: Block, where: str) -> Message:
    content = block.get("content") or ""
    if not isinstance(content, str):
        parts = [_part(part, where) for part in _blocks(content, where)]
        content = "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else parts
    if block.get("is_error") and isinstance(content, str):
        content = f"Error: {content}"
    return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}


def _part(block: Block, where: str) -> Block:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": _string(block, "text", where)}
    if kind == "image":
        source = block.get("source")
        if not isinstance(source, dict):
            raise BadRequest(f"{where} has a block of the type image without a source.", param=where)
        if source.get("type") == "file":
            raise BadRequest(f"{where} has an image of the type file: send it in base64.", param="messages")
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    text = _text_of(block, where)
    if text is not None:
        return {"type": "text", "text": text}
    raise _unreadable(kind, where)


def _text_of(block: Block, where: str) -> str | None:
    """Return the text of a block that is one in another shape; None where it has none that can be read."""
    kind, source = block.get("type"), block.get("source")
    if kind == "tool_reference":
        return str(block.get("tool_name", ""))
    if kind == "search_result" and isinstance(block.get("content"), list):
        return f"{block.get('title', '')}\n{source}\n{_text(block['content'], where)}"
    if kind != "document" or not isinstance(source, dict):
        return None
    content = source.get("content") if source.get("type") == "content" else None
    if isinstance(content, str | list):
        return _text(content, where)
    return str(source.get("data", "")) if source.get("type") == "text" else None


def _keeps_no_threads() -> ApiError:
    """Return the error by which Anthropic's clients know that they must send all messages themselves."""
    error = refuse(400, "No conversation is kept here: send all messages, and no thread.", param="thread")
    error.details = {"error_code": "thread_unsupported_request"}
    return error


def _unreadable(kind: Any, where: str) -> BadRequest:
    return BadRequest(f"{where} has a block of the type {kind!r}, which cannot be read here.", param="messages")
