"""The body of a chat: its messages with their parts, its tools, and how the model shall think.

Inside messages, their parts and tools, what is not known is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field, model_validator

from app.server.calls.schemas import OTHER_NAMES, GenerationBody, Text, TokenLimit
from app.server.http.body import HINT, LenientBody
from app.server.http.errors import refuse
from app.server.replies.constraints import ANY_ARGUMENTS, NO_ARGUMENTS, JsonSchema, ToolBinding, loose, schema_text
from app.server.replies.json_text import whole_characters
from core.values.errors import BadRequest
from core.values.request import MAX_TOP_LOGPROBS, Constraint, ReasoningFormat
from models.formatting.sentence import Sentence

# Far more than an agent's longest conversation. A body of 32 MB could hold a million, and all callers would wait while
# they are read.
MAX_MESSAGES, MAX_TOOLS = 20_000, 1_024


def not_endless(messages: Any) -> Any:
    """Return messages as they are; raises ValueError where they have more parts and calls together than may be sent."""
    n_parts = 0
    for message in messages if isinstance(messages, list) else ():
        for listed in message.values() if isinstance(message, dict) else ():
            if isinstance(listed, list):
                results = (part["content"] for part in listed if isinstance(part, dict) and "content" in part)
                n_parts += len(listed) + sum(len(result) for result in results if isinstance(result, list))
    if n_parts > MAX_MESSAGES:
        raise ValueError(f"there may be {MAX_MESSAGES:,} parts and calls in all, not {n_parts:,}")
    return messages


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
# Templates know three.
_EFFORTS = {"minimal": "low", "xhigh": "high", "max": "high"}
# Told to a model that has tools beside a form of its answer; llama.cpp has a sentence for that too.
_ANSWER_FORM = "If you call no tool, answer with JSON that follows this schema:"
# What OpenRouter says of reasoning, by its names and ours.
_REASONING = {"effort": "reasoning_effort", "enabled": "enable_thinking", "max_tokens": "reasoning_budget"}


class ImageUrl(LenientBody):
    """Where an image is: a data URL, an address, or a file that was uploaded, whose URL is found later.

    ``detail`` is a hint: a projector looks in one way only.
    """

    url: str
    file_id: str | None = None
    detail: Literal["auto", "low", "high", "original"] | None = None


class ContentPart(LenientBody):
    """A part of a message's content: a text or an image."""

    type: Literal["text", "image_url"]
    text: Text | None = None
    image_url: ImageUrl | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_known(cls, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        kind = part.get("type")
        if kind in ("input_text", "output_text", "input_image"):
            part = part | {"type": "image_url" if kind == "input_image" else "text"}
            if "detail" in part:  # beside the address
                part["image_url"] = {"url": part.get("image_url"), "detail": part.pop("detail")}
        elif kind == "refusal":
            part = {"type": "text", "text": part.get("refusal")}
        elif isinstance(kind, str) and kind not in ("text", "image_url"):
            raise ValueError(f"parts of type {kind!r} cannot be read, only text, image_url and thinking")
        return part | {"image_url": {"url": part["image_url"]}} if isinstance(part.get("image_url"), str) else part

    @model_validator(mode="after")
    def _has_one(self) -> ContentPart:
        kinds = [kind for kind in ("text", "image_url") if getattr(self, kind) is not None]
        if kinds != [self.type]:
            raise ValueError(f"a part of type {self.type} needs the field {self.type} and no other")
        return self


class CalledFunction(LenientBody):
    """The function of a tool call."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class CalledTool(LenientBody):
    """A tool call that the assistant made earlier."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _takes_text(cls, call: Any) -> Any:
        custom = _custom_of(call)
        if custom is None:
            return call
        if not (isinstance(custom.get("name"), str) and isinstance(custom.get("input"), str)):
            raise ValueError("a call of type custom needs the field custom with name and input")
        function = {"name": custom.get("name"), "arguments": arguments_of_text(custom["input"])}
        return call | {"type": "function", "function": function}


class SentImage(NamedTuple):
    """An image of a request: where in the body it stands, and its URL."""

    place: str
    url: str


class ChatMessage(LenientBody):
    """One turn."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[CalledTool] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_thoughts(cls, message: Any) -> Any:
        """Take thoughts as others write them: the field ``reasoning``, and Mistral's parts of the content."""
        if not isinstance(message, dict):
            return message
        content, thoughts = message.get("content"), message.get("reasoning")
        if isinstance(content, list) and any(map(_is_thought, content)):
            message = message | {"content": [part for part in content if not _is_thought(part)]}
            thoughts = "".join(text for part in content if _is_thought(part) for text in _thoughts(part))
        if isinstance(thoughts, str) and message.get("reasoning_content") is None:
            message = message | {"reasoning_content": thoughts}
        return message

    @model_validator(mode="after")
    def _has_content(self) -> ChatMessage:
        if self.content is None and self.role == "tool":
            self.content = ""  # agents send null for a tool that returns nothing
        elif self.content is None and self.role != "assistant":
            raise ValueError(f"a message of the role {self.role} needs content")
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"only messages of the role assistant have tool_calls, not {self.role}")
        return self

    @property
    def n_chars(self) -> int:
        """How long its text is."""
        if isinstance(self.content, list):
            return sum(len(part.text or "") for part in self.content)
        return len(self.content or "")

    def template_value(self, marks: Iterator[str]) -> dict[str, Any]:
        """Return the message as chat templates read it, with the next of ``marks`` for each image."""
        value: dict[str, Any] = {"role": self.role, "content": self._text(marks)}
        for field in ("name", "tool_call_id", "reasoning_content"):
            if getattr(self, field) is not None:
                value[field] = getattr(self, field)
        if self.tool_calls:
            value["tool_calls"] = [call.model_dump(exclude={"index"}, exclude_none=True) for call in self.tool_calls]
        return value

    def _text(self, marks: Iterator[str]) -> str | None:
        if isinstance(self.content, list):
            return "".join(next(marks) if part.text is None else part.text for part in self.content)
        return self.refusal if self.content is None else self.content


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "thinking"


def _thoughts(part: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a part with thoughts; raises ValueError where it has none."""
    thoughts = part.get("thinking")
    for one in thoughts if isinstance(thoughts, list) else [thoughts]:
        text = one.get("text") if isinstance(one, dict) else one
        if not isinstance(text, str):
            raise ValueError("a part of type thinking needs the field thinking: a text, or parts of type text")
        yield text


class Function(LenientBody):
    """A function that the model may call."""

    name: str = Field(min_length=1, max_length=128)
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    def schema_of_arguments(self, must_call: bool) -> JsonSchema:
        """Return what a call's arguments must be; any object where nothing binds them. Raises BadRequest."""
        if not must_call and not self.strict:
            return ANY_ARGUMENTS
        if not self.parameters:
            return NO_ARGUMENTS
        kind = self.parameters.get("type")
        if kind not in (None, "object"):
            message = Sentence("The parameters of the function {name} must be of type object.", name=self.name)
            raise BadRequest(message, param="tools")
        schema = self.parameters if "$ref" in self.parameters else {"type": "object"} | self.parameters
        return schema if self.strict else loose(schema)


class ChatTool(LenientBody):
    """A tool that the model may call. One of the type ``custom``, which takes free text, is a function to the model."""

    type: Literal["function", "custom"]
    function: Function

    @model_validator(mode="before")
    @classmethod
    def _takes_text(cls, tool: Any) -> Any:
        custom = _custom_of(tool)
        if custom is None:
            return tool
        _check_name(custom, "tool")
        return tool | {"function": text_function(custom) | {"name": custom["name"]}}

    @property
    def template_value(self) -> dict[str, Any]:
        """The tool as chat templates read it."""
        return {"type": "function", "function": {name: value for name, value in self.function if value is not None}}


class ChosenFunction(LenientBody):
    """The name of the function that must be called."""

    name: str


class ChosenTool(LenientBody):
    """The tool that must be called."""

    type: Literal["function"]
    function: ChosenFunction

    @model_validator(mode="before")
    @classmethod
    def _takes_text(cls, choice: Any) -> Any:
        custom = _custom_of(choice)
        return choice if custom is None else {"type": "function", "function": custom}


def _custom_of(tool: Any) -> dict[str, Any] | None:
    """Return what stands in the field ``custom`` of a tool that takes free text, of its call or its choice.

    That is {} where the field is missing, and None for all others.
    """
    if not isinstance(tool, dict) or tool.get("type") != "custom":
        return None
    custom = tool.get("custom")
    return custom if isinstance(custom, dict) else {}


def _check_name(custom: Mapping[str, Any], what: str) -> None:
    """Raise ValueError where there is no name: it would be called the one of a function, which was not sent."""
    if not (isinstance(custom.get("name"), str) and custom["name"]):
        raise ValueError(f"a {what} of the type custom needs the field custom with a name")


def text_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a custom tool, which takes free text, as a function of one text but for its name; raises BadRequest."""
    description, form = tool.get("description") or "", tool.get("format") or {}
    if not (isinstance(description, str) and isinstance(form, dict)):
        raise BadRequest("tools: the description of a tool is text, and its format an object.", param="tools")
    if form.get("type") == "grammar":
        inner = form.get("grammar")
        grammar = inner if isinstance(inner, dict) else form  # in a chat there is an object more
        syntax, definition = grammar.get("syntax"), grammar.get("definition")
        if not (isinstance(syntax, str) and isinstance(definition, str)):
            message = "tools: the format of a tool that is a grammar needs the texts syntax and definition."
            raise BadRequest(message, param="tools")
        description += f"\nThe input follows this {syntax} grammar:\n{definition}"
    properties = {"input": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["input"], "additionalProperties": False}
    return {"description": description, "parameters": parameters}


def arguments_of_text(text: Any) -> str:
    """Return the arguments of a custom tool's call, as those of the function that it is to the model."""
    return json.dumps({"input": text})


_LONGEST_ESCAPE = 12  # two halves of a character beyond U+FFFF


def text_of_arguments(arguments: str) -> str:
    """Return the free text of a custom tool's call, as far as it goes where the call was cut."""
    begun = (arguments[: len(arguments) - n_cut] + '"}' for n_cut in range(_LONGEST_ESCAPE))
    for written in (arguments, *begun):
        try:
            found = json.loads(written)["input"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(found, str):  # half of a surrogate pair is no text; the other one is what was cut off
            return whole_characters(found, "replace" if written is arguments else "ignore")
    return "" if '{"input":"'.startswith("".join(arguments.split())) else arguments


def _ours_for_groqs(form: Any) -> Any:
    """Return llama-server's word for how thoughts are told where ``form`` is Groq's."""
    return {"parsed": "deepseek", "raw": "none"}.get(form, form) if isinstance(form, str) else form


def _plain_choice(choice: Any) -> Any:
    """Return a choice of tools, in OpenAI's word where it is Mistral's; raises ValueError where it names nothing."""
    custom = _custom_of(choice)
    if custom is not None:
        _check_name(custom, "choice")
    return "required" if choice == "any" else choice


class ChatCompletionBody(GenerationBody):
    """The body of POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], BeforeValidator(not_endless)] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS)
    tools: list[ChatTool] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Annotated[Literal["auto", "none", "required"] | ChosenTool | None, BeforeValidator(_plain_choice)] = (
        None
    )
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = None
    timings_per_token: Annotated[bool | None, HINT] = None
    drafted_spans: Annotated[bool | None, HINT] = None
    speculation: bool | None = None
    reasoning_effort: ReasoningEffort | None = None
    enable_thinking: bool | None = None
    reasoning_budget: int | None = Field(default=None, ge=-1)
    thinking_budget_tokens: int | None = Field(default=None, ge=-1)
    reasoning_control: Annotated[bool | None, HINT] = None
    reasoning_format: Annotated[ReasoningFormat | None, BeforeValidator(_ours_for_groqs)] = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | Literal["content", "reasoning_content"] | None = None

    @classmethod
    def known(cls, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the fields that a chat knows and that change its answer."""
        fields = cls.model_fields
        return {
            name: value
            for name, value in sent.items()
            if name in OTHER_NAMES or (name in fields and HINT not in fields[name].metadata)
        }

    @model_validator(mode="before")
    @classmethod
    def _thinks_as_asked(cls, value: Any) -> Any:
        """Take OpenRouter's ``reasoning``, GLM's ``thinking`` and Ollama's ``think``.

        The first is an effort, a budget in tokens, or only whether; the second is as Anthropic has it; the last is
        whether, or an effort.
        """
        if not isinstance(value, dict):
            return value
        sent, wishes = dict(value), dict[str, Any]()
        think, thinking = sent.get("think"), sent.get("thinking")
        if isinstance(think, bool):
            wishes["enabled"] = think
        elif think in get_args(ReasoningEffort):
            wishes["effort"] = think
        if isinstance(thinking, dict):
            is_on = {"enabled": True, "disabled": False}.get(str(thinking.get("type")))
            wishes |= {"enabled": is_on, "max_tokens": thinking.get("budget_tokens")}
        if isinstance(sent.get("reasoning"), dict):
            wishes |= sent.pop("reasoning")
        for name, ours in _REASONING.items():
            if (wish := wishes.get(name)) is not None:
                sent.setdefault(ours, wish)
        return sent

    @model_validator(mode="before")
    @classmethod
    def _allows_some_tools(cls, value: Any) -> Any:
        """Take OpenAI's choice among some of the tools: the others are left out."""
        choice = value.get("tool_choice") if isinstance(value, dict) else None
        if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
            return value
        allowed, tools = choice.get("allowed_tools"), value.get("tools")
        allowed = allowed if isinstance(allowed, dict) else {}
        listed = allowed.get("tools")
        if not isinstance(listed, list) or not isinstance(tools, list):
            raise ValueError("tool_choice allowed_tools needs a mode and a list of some of the tools")
        names = [_function_name(one) for one in listed]
        chosen = {"tool_choice": allowed.get("mode", "auto")}
        return value | chosen | {"tools": [one for one in tools if _function_name(one) in names]}

    @model_validator(mode="after")
    def _choice_is_there(self) -> ChatCompletionBody:
        names = [tool.function.name for tool in self.tools or ()]
        if self.tool_choice == "required" and not names:
            raise ValueError("tool_choice required needs tools")
        if isinstance(self.tool_choice, ChosenTool) and self.tool_choice.function.name not in names:
            raise ValueError(f"tool_choice names {self.tool_choice.function.name!r}, which is not among the tools")
        return self

    @property
    def constraint(self) -> Constraint | None:
        """What the answer must look like, None where it is free. Raises BadRequest where that is said twice."""
        constraint = super().constraint
        if constraint is not None and constraint.kind != "json_schema" and self.binding is not None:
            raise BadRequest(f"{constraint.field} and tools cannot be followed both: send one of them.", param="tools")
        return constraint

    @cached_property
    def binding(self) -> ToolBinding | None:
        """Which calls the answer must have, or how they must look; None where calls are free. Raises BadRequest."""
        if not self.uses_tools:
            return None
        tools, choice = [tool.function for tool in self.tools or ()], self.tool_choice
        must_call = choice == "required" or isinstance(choice, ChosenTool)
        if isinstance(choice, ChosenTool):
            tools = [tool for tool in tools if tool.name == choice.function.name]
        asked = super().constraint
        answer = asked if asked is not None and asked.kind == "json_schema" and not must_call else None
        if not must_call and answer is None and not any(tool.strict for tool in tools):
            return None
        calls = tuple((tool.name, tool.schema_of_arguments(must_call)) for tool in tools)
        at_most_one = self.parallel_tool_calls is False or isinstance(choice, ChosenTool)
        return ToolBinding(calls, must_call, at_most_one, answer)

    @property
    def continues(self) -> Literal["content", "reasoning_content"] | None:
        """What of the last message, which is the assistant's, the reply goes on with. Raises BadRequest.

        As in vLLM, but that a last message of the assistant's is gone on with unless a new turn is asked for. Thoughts
        without content go on as thoughts, as at llama-server.
        """
        last, wish = self.messages[-1], self.continue_final_message
        can = last.role == "assistant" and not last.tool_calls
        if wish is False or (wish is None and (not can or self.add_generation_prompt)):
            return None
        if wish and self.add_generation_prompt:
            raise BadRequest(
                "continue_final_message goes on with the last message and add_generation_prompt begins a new one: "
                "send one of them.",
                param="continue_final_message",
            )
        if not can:
            message = "continue_final_message needs a last message of the role assistant, without tool_calls."
            raise BadRequest(message, param="continue_final_message")
        is_thought = bool(last.reasoning_content and last.reasoning_content.strip()) and not last.n_chars
        if wish == "reasoning_content" and not is_thought:
            message = "continue_final_message reasoning_content needs a last message with thoughts and without content."
            raise BadRequest(message, param="continue_final_message")
        return "reasoning_content" if is_thought and wish != "content" else "content"

    def check_deep(self) -> None:
        """Raise BadRequest for what a deep reply cannot honour."""
        if self.n_choices > 1:
            message = Sentence("A deep reply is one answer made of several drafts: leave n out.")
            raise BadRequest(message, param="n")
        if self.uses_tools:
            message = Sentence("Deep replies call no tools: leave tools out, or use another speed.")
            raise BadRequest(message, param="tools")
        if self.messages[-1].role != "user":
            message = Sentence("A deep reply answers a user's message: the last message must be one.")
            raise BadRequest(message, param="messages")
        if self.images:
            message = Sentence("Deep replies see no images: use another speed.")
            raise BadRequest(message, param=self.images[0].place)

    @property
    def uses_tools(self) -> bool:
        """True where the model may call tools."""
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def token_limit(self) -> int | None:
        """How many tokens may be generated, or None; raises BadRequest when two limits differ."""
        limit: int | None = self.agreed("max_tokens", "max_completion_tokens")
        return limit

    @property
    def n_top_logprobs(self) -> int | None:
        """How many alternatives are listed for each token; None without logprobs. Raises BadRequest."""
        if self.top_logprobs and not self.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true.", param="top_logprobs")
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def images(self) -> list[SentImage]:
        """The images of all messages, in order."""
        return [
            SentImage(f"messages[{m}].content[{p}]", part.image_url.url)
            for m, message in enumerate(self.messages)
            if isinstance(message.content, list)
            for p, part in enumerate(message.content)
            if part.image_url is not None
        ]

    @property
    def wants_thinking(self) -> bool | None:
        """Whether the model shall think before it answers; None leaves it to the template."""
        if self.enable_thinking is not None:
            return self.enable_thinking
        if self.reasoning_effort is not None:
            return self.reasoning_effort != "none"
        return False if self.thinking_budget == 0 else None

    @property
    def thinking_budget(self) -> int | None:
        """How many tokens the model may think: -1 for any number, None if not said. Raises BadRequest if two differ."""
        budget: int | None = self.agreed("reasoning_budget", "thinking_budget_tokens")
        if budget is not None:
            return budget
        is_off = self.enable_thinking is False or (self.enable_thinking is None and self.reasoning_effort == "none")
        return 0 if is_off else None

    def template_variables(self, marks: Sequence[str] = ()) -> dict[str, Any]:
        """Return what the chat template reads, with one of ``marks`` in the place of each image."""
        extra: dict[str, Any] = {}
        if self.wants_thinking is not None:
            # Qwen's name for it, and DeepSeek's.
            extra |= {"enable_thinking": self.wants_thinking, "thinking": self.wants_thinking}
        if self.reasoning_effort not in (None, "none"):
            extra["reasoning_effort"] = _EFFORTS.get(str(self.reasoning_effort), self.reasoning_effort)
        extra |= self.chat_template_kwargs or {}
        tools = [tool.template_value for tool in self.tools or ()] if self.uses_tools else None
        places = iter(marks)
        messages = [message.template_value(places) for message in self.messages]
        binding = self.binding
        if binding is not None and binding.answer is not None:
            # A model that does not know the form of its answer would call tools for ever.
            hint = f"{_ANSWER_FORM}\n{schema_text(binding.answer)}"
            messages[0] |= {"content": f"{messages[0]['content'] or ''}\n\n{hint}".lstrip()}
        return extra | {"messages": messages, "tools": tools}


def with_own(sent: Mapping[str, Any], own: Mapping[str, Any], unsayable: Collection[str]) -> dict[str, Any]:
    """Return the fields of a chat's body: those that another protocol's body has for it, and those it was ``sent``.

    Its own win. Raises ApiError for an ``unsayable`` field: an answer in that protocol cannot say what it asks for.
    """
    for name in unsayable:
        if sent.get(name) and (name, sent[name]) != ("n", 1):
            message = f"The field {name} is not known or not supported here: leave it out."
            raise refuse(400, message, param=name, code="unknown_parameter")
    return {**sent, **{name: value for name, value in own.items() if value is not None}}


def _function_name(tool: Any) -> Any:
    """Return the name of a tool's function; None where it is no such tool."""
    function = _custom_of(tool) or (tool.get("function") if isinstance(tool, dict) else None)
    return function.get("name") if isinstance(function, dict) else None
