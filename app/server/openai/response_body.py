"""The body of POST /v1/responses, translated to the chat call's.

What is not translated here goes on as it is: the chat's body knows it, ignores it as a hint, or refuses it by name.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from app.server.calls.chat_body import (
    MAX_MESSAGES,
    MAX_TOOLS,
    ChatCompletionBody,
    arguments_of_text,
    not_endless,
    text_function,
    with_own,
)
from app.server.calls.schemas import Text, TokenLimit
from app.server.http.body import HINT, WholeNumbers, valid
from app.server.http.errors import refuse
from app.server.replies.json_text import read_json
from core.values.errors import BadRequest

Item = dict[str, Any]
Message = dict[str, Any]

# Fields that do not speak of the text to generate.
_HINTS = frozenset(
    {"access_programs", "background_options", "client_metadata", "context_management", "image", "max_tool_calls"}
)
# Items that add tools to those of the request.
_ADDING = ("additional_tools", "tool_search_output")
# Tools that OpenAI runs on its own machines and that a reply may do without, and what they left in a conversation.
_HOSTED = ("web_search", "image_generation")  # some have a word or a date behind
_HOSTED_CALLS = ("web_search_call", "file_search_call", "image_generation_call")
# Fields of the chat's body by other names.
SENT_FIELDS = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
_SEALED = b"slipstream-reasoning:"


class ResponseBody(WholeNumbers):
    """What a response is made from; the fields of a chat are taken besides."""

    model_config = ConfigDict(extra="allow", strict=True)

    input: str | list[Item] = Field(default_factory=list)
    instructions: Text | None = None
    model: Text | None = None
    stream: bool | None = None
    store: bool | None = None
    metadata: Annotated[dict[Text, Text] | None, HINT] = None
    previous_response_id: Text | None = None
    max_output_tokens: TokenLimit = None
    tools: list[Item] | None = Field(default=None, max_length=MAX_TOOLS)
    tool_choice: Text | Item | None = None
    reasoning: Item | None = None
    text: Item | None = None
    include: list[str] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Literal[False] | None = None
    conversation: None = None
    prompt: None = None
    stream_options: Annotated[Item | None, HINT] = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("input", ...) is None:
            return {name: one for name, one in value.items() if name != "input"}
        return value

    @field_validator("input", "tools", "tool_choice", "reasoning", "text")
    @classmethod
    def _can_be_told_again(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what a reply, which repeats it, could not say: numbers that are not finite, and no text."""
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            name = info.field_name
            raise ValueError(
                f"{name} holds a number that is not finite, half of a surrogate pair, or too deep"
            ) from None
        return value

    @field_validator("input")
    @classmethod
    def _is_not_endless(cls, value: str | list[Item]) -> str | list[Item]:
        if not isinstance(value, str) and len(value) > MAX_MESSAGES:
            raise ValueError(f"input must have {MAX_MESSAGES:,} or fewer entries")
        not_endless(value)
        return value

    @property
    def items(self) -> list[Item]:
        """The input as items."""
        if isinstance(self.input, str):
            return [{"type": "message", "role": "user", "content": self.input}]
        return self.input

    def tool_names(self, earlier: Sequence[Item]) -> ToolNames:
        """Return the tools, with those that items of the conversation add; raises BadRequest."""
        tools = ToolNames(self.tools or ())
        for item in (*earlier, *self.items):
            if item.get("type") in _ADDING:
                tools.add(item.get("tools"), "input")
        return tools

    def chat(self, earlier: Sequence[Item], tools: ToolNames) -> ChatCompletionBody:
        """Return the chat call's body, for a conversation that ``earlier`` items begin; raises BadRequest, ApiError."""
        if "input" not in self.model_fields_set and not earlier and not self.instructions:
            raise refuse(400, "Missing required field: input.", param="input", code="missing_required_parameter")
        items = [*earlier, *self.items]
        reasoning, text = _updated("reasoning", self.reasoning, items), _updated("text", self.text, items)
        fields = {name: value for name, value in (self.model_extra or {}).items() if name not in _HINTS}
        own = {
            "model": self.model,
            "stream": self.stream,
            "messages": messages_of(self.instructions, items, tools),
            "max_completion_tokens": self.max_output_tokens,
            **tools.chosen(self.tool_choice),
        }
        fields = with_own(fields, own, ("messages", "n"))
        if reasoning:  # OpenRouter's budget and switch too
            fields["reasoning"] = reasoning
        if reasoning.get("effort") is not None:
            fields["reasoning_effort"] = reasoning["effort"]
        fields |= _format_of(text)
        if fields.get("top_logprobs") is not None or "message.output_text.logprobs" in (self.include or ()):
            fields["logprobs"] = True
        return valid(ChatCompletionBody, fields, SENT_FIELDS)

    @property
    def seals_reasoning(self) -> bool:
        """True where the client keeps the reasoning and sends it back, as nothing is stored."""
        return "reasoning.encrypted_content" in (self.include or ())


def _updated(name: str, sent: Item | None, items: Sequence[Item]) -> Item:
    """Return a field of the request as the last item of the conversation that updates it leaves it."""
    found = dict(sent or {})
    for item in items:
        if item.get("type") == "configuration_update":
            update = item.get(name) or {}
            if not isinstance(update, dict):
                raise BadRequest(f"input: {name} of a configuration_update must be an object.", param="input")
            found |= update
    return found


def _format_of(text: Item) -> Item:
    """Return the chat's field for the form of the text."""
    form = text.get("format")
    if not isinstance(form, dict) or form.get("type") in (None, "text"):
        return {}
    if form.get("type") != "json_schema":
        return {"response_format": form}
    schema = {name: form[name] for name in ("name", "description", "schema", "strict") if name in form}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


class SentTool(NamedTuple):
    """A tool as the client knows it: its kind (``function``, ``custom`` or ``tool_search``), name, and namespace."""

    kind: str
    name: str
    namespace: str | None = None


class ToolNames:
    """The tools of a request: as the model sees them, all of them functions, and as the client knows them."""

    def __init__(self, tools: Sequence[Item]) -> None:
        self._functions: dict[str, Item] = {}
        self._sent: dict[str, SentTool] = {}
        self.add(tools, "tools")

    @property
    def functions(self) -> list[Item]:
        """The tools as the model sees them."""
        return list(self._functions.values())

    def add(self, tools: Any, param: str) -> None:
        """Add tools, in the place of those with the same name; raises BadRequest, which names the field ``param``."""
        for tool in _objects(tools, param, "tools"):
            self._add(tool, None, param)

    def sent(self, name: str) -> SentTool:
        """Return how the client knows the function that the model calls by this name."""
        return self._sent.get(name, SentTool("function", name))

    def seen(self, name: str, namespace: str | None) -> str:
        """Return the name that the model knows a tool by."""
        return f"{namespace}__{name}" if namespace else name

    def chosen(self, choice: str | Item | None) -> Item:
        """Return the chat's fields ``tools`` and ``tool_choice``; raises BadRequest."""
        if not isinstance(choice, dict):
            return {"tools": self.functions or None, "tool_choice": choice if self.functions else None}
        kind = choice.get("type")
        if kind == "allowed_tools":
            listed = _objects(choice.get("tools"), "tool_choice", "tools")
            names = {self.seen(str(one.get("name") or one.get("type")), one.get("namespace")) for one in listed}
            allowed = [tool for tool in self.functions if tool["function"]["name"] in names]
            return {"tools": allowed or None, "tool_choice": choice.get("mode", "auto") if allowed else None}
        if kind not in ("function", "custom"):
            raise BadRequest(f"tool_choice cannot name a tool of the type {kind!r}.", param="tool_choice")
        name = self.seen(str(choice.get("name")), choice.get("namespace"))
        return {"tools": self.functions, "tool_choice": {"type": "function", "function": {"name": name}}}

    def _add(self, tool: Item, namespace: str | None, param: str) -> None:
        kind, name = tool.get("type"), tool.get("name")
        if str(kind).startswith(_HOSTED):
            return
        if kind == "namespace":
            for one in _objects(tool.get("tools"), param, "tools"):
                self._add(one, str(name), param)
            return
        if kind == "tool_search":
            if tool.get("execution") != "client":
                return  # all that could be found are tools already
            name = kind
        elif kind not in ("function", "custom"):
            raise BadRequest(
                f"Tools of the type {kind!r} cannot be used here: send functions, or leave it out.", param=param
            )
        if not isinstance(name, str):
            raise BadRequest(
                f"A tool of the type {kind!r} has no name: in a response its name and the rest stand beside its type, "
                f"not in a field {kind!r} as in a chat.",
                param=param,
            )
        seen = self.seen(name, namespace)
        self._sent[seen] = SentTool(kind, name, namespace)
        function = text_function(tool) if kind == "custom" else {"parameters": tool.get("parameters")}
        function |= {"name": seen, "strict": tool.get("strict")}
        function.setdefault("description", tool.get("description"))
        self._functions[seen] = {"type": "function", "function": function}


def _objects(found: Any, param: str, what: str) -> list[Item]:
    """Return what must be a list of objects, or nothing; raises BadRequest."""
    if not isinstance(found or [], list) or not all(isinstance(one, dict) for one in found or ()):
        raise BadRequest(f"{param}: {what} must be a list of objects.", param=param)
    return found or []


def object_of_arguments(arguments: str) -> Any:
    """Return a call's arguments as the object that they are; as text where a reply could not say them as JSON."""
    try:
        found = read_json(arguments)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return arguments
    return found


def messages_of(instructions: str | None, items: Sequence[Item], tools: ToolNames) -> list[Message]:
    """Return the messages that items of a conversation stand for; raises BadRequest.

    Calls, text and reasoning of one turn become one message, as chat templates expect. What stands before the first
    turn in the roles ``system`` and ``developer`` becomes one message too: many templates take a single one.
    """
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    for index, item in enumerate(items):
        _take(messages, item, f"input[{index}]", tools)
    return [message for message in messages if len(message) > 1]


def _take(messages: list[Message], item: Item, where: str, tools: ToolNames) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        _take_message(messages, item, where)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") if kind == "function_call" else arguments_of_text(item.get("input"))
        name = tools.seen(str(item.get("name")), item.get("namespace"))
        call = {"id": item.get("call_id"), "type": "function", "function": {"name": name, "arguments": arguments}}
        _turn(messages).setdefault("tool_calls", []).append(call)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        content = output if isinstance(output, str) else _parts(output, where)
        messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": content})
    elif kind == "tool_search_call" and _is_clients(item):
        arguments = item.get("arguments")
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        function = {"name": "tool_search", "arguments": arguments}
        _turn(messages).setdefault("tool_calls", []).append(
            {"id": item["call_id"], "type": "function", "function": function}
        )
    elif kind == "tool_search_output" and _is_clients(item):
        found = [tool["function"]["name"] for tool in ToolNames(item.get("tools") or ()).functions]
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": json.dumps({"tools": found})})
    elif kind in (*_HOSTED_CALLS, *_ADDING, "tool_search_call", "configuration_update"):
        return  # what was found is not in it; tools and configurations are taken apart from the messages
    elif kind == "reasoning":
        if text := reasoning_of(item):
            turn = _turn(messages)
            turn["reasoning_content"] = turn.get("reasoning_content", "") + text
    elif kind == "compaction_trigger":
        raise BadRequest(
            f"{where} is of the type {kind!r}: conversations are not summed up here. Leave it out.", param="input"
        )
    elif str(kind).startswith("compaction"):
        raise BadRequest(
            f"{where} is of the type {kind!r}: conversations are not summed up here, and summaries of other servers "
            "cannot be read. Leave it out, and send the turns that it stands for.",
            param="input",
        )
    else:
        raise BadRequest(f"{where} is of the type {kind!r}, which cannot be read here.", param="input")


def _is_clients(item: Item) -> bool:
    """Whether a search for tools was the client's; the model knows of no other."""
    return item.get("call_id") is not None and item.get("execution") != "server"


def _take_message(messages: list[Message], item: Item, where: str) -> None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(content, str):
        content = _parts(content, where)
    if role == "assistant":
        turn = _turn(messages)
        turn["content"] = f"{turn.get('content', '')}{_plain(content, where)}"
    elif role in ("system", "developer") and all(message["role"] == "system" for message in messages):
        before = f"{messages[0]['content']}\n\n" if messages else ""
        messages[:] = [{"role": "system", "content": before + _plain(content, where)}]
    else:
        messages.append({"role": role, "content": content})


def _turn(messages: list[Message]) -> Message:
    """Return the assistant's turn that goes on: a new one after anybody else's."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant"})
    return messages[-1]


def _plain(content: str | list[Item], where: str) -> str:
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    if not all(isinstance(text, str) for text in texts):
        raise BadRequest(f"{where} has a part whose text is no text.", param="input")
    return "".join(texts)


def _parts(content: Any, where: str) -> list[Item]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise BadRequest(f"{where} needs content: text, or a list of parts.", param="input")
    return [_part(part, where) for part in content]


def _part(part: Item, where: str) -> Item:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part.get("text")}
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal")}
    if kind == "input_image" and part.get("image_url"):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if kind == "input_image" and part.get("file_id"):
        return {"type": "image_url", "image_url": {"url": "", "file_id": part["file_id"]}}
    readable = "input_text, or input_image with image_url or file_id"
    raise BadRequest(f"{where} has a part of the type {kind!r}, which cannot be read: send {readable}.", param="input")


def sealed(reasoning: str) -> str:
    """Return reasoning as ``encrypted_content``: it is no secret of this machine's, and needs no key."""
    return base64.b64encode(_SEALED + reasoning.encode()).decode()


def reasoning_of(item: Item) -> str:
    """Return the text of a reasoning item; "" where it holds none that can be read."""
    parts = item.get("content")
    if isinstance(parts, list) and parts:
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    try:
        kept = base64.b64decode(item.get("encrypted_content") or "", validate=True)
        return kept.removeprefix(_SEALED).decode() if kept.startswith(_SEALED) else ""
    except (ValueError, TypeError):
        return ""
