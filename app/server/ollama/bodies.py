"""The bodies of Ollama's routes, translated to those of our calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from app.server.calls.chat_body import MAX_MESSAGES, MAX_TOOLS, ChatCompletionBody, not_endless
from app.server.calls.schemas import HINTS, GenerationBody, Text
from app.server.http.body import LenientBody, WholeNumbers, valid
from app.server.llama_cpp.completion import LlamaBody
from app.server.llama_cpp.infill import InfillBody
from core.values.errors import BadRequest
from core.values.request import SamplingParams

Message = dict[str, Any]
# Options that are passed on unchanged.
_SAMPLING = frozenset(one.name for one in fields(SamplingParams)) & frozenset(GenerationBody.model_fields) | {"stop"}
# Fields of OpenAI's chats that some send as options: Open WebUI puts all there that a user has set.
_OPENAI = frozenset(ChatCompletionBody.model_fields) - {
    *("model", "messages", "stream", "stream_options", "n", "tools", "logprobs", "top_logprobs"),
    *("return_progress", "timings_per_token", "drafted_spans", "add_generation_prompt", "continue_final_message"),
}
# Fields that some clients send among the options, though they belong beside them.
_BESIDE = ("format", "keep_alive", "think")
# The fields of our calls by their names here.
_SENT_FIELDS = {
    "enable_thinking": "think",
    "input_prefix": "prompt",
    "input_suffix": "suffix",
    "max_tokens": "options.num_predict",
    "n_probs": "top_logprobs",
    "reasoning_effort": "think",
    "response_format": "format",
    "tokens": "context",
    **{name: f"options.{name}" for name in _SAMPLING},
}
# Samplers that llama.cpp no longer has, with the values that say what happens without them.
_GONE: dict[str, Any] = {"tfs_z": 1, "penalize_newline": True}
_AS_MANY_AS_FIT = (-1, -2)
_NO_TIME = re.compile(r"[+-]?0+(\.0*)?(ns|us|µs|ms|s|m|h)?")


class ModelBody(LenientBody):
    """A body that names a model, by its newer or its older field."""

    model: str | None = None
    name: str | None = None

    @property
    def named(self) -> str:
        """The name. Raises BadRequest where there is none."""
        if not (self.model or self.name):
            raise BadRequest("Say which model is meant, in the field model.", param="model")
        return self.model or self.name or ""


class RunBody(WholeNumbers, LenientBody):
    """The fields of all calls of a model. ``keep_alive`` counts only if it is 0: the model leaves memory then."""

    model: str = Field(min_length=1)
    options: dict[str, Any] | None = None
    keep_alive: Any = None

    @model_validator(mode="before")
    @classmethod
    def _beside_the_options(cls, sent: Any) -> Any:
        options = sent.get("options") if isinstance(sent, dict) else None
        if not isinstance(options, dict) or options.keys().isdisjoint(_BESIDE):
            return sent
        moved = {name: options[name] for name in _BESIDE if name in options and sent.get(name) is None}
        return sent | moved | {"options": {name: value for name, value in options.items() if name not in _BESIDE}}

    @property
    def unloads(self) -> bool:
        """True where the model leaves memory when the call is over."""
        if isinstance(self.keep_alive, str):
            return _NO_TIME.fullmatch(self.keep_alive) is not None
        return type(self.keep_alive) in (int, float) and self.keep_alive == 0


class WritingBody(RunBody):
    """The fields of both chats and texts."""

    stream: bool | None = None
    format: Literal["", "json"] | dict[str, Any] | None = None
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    truncate: bool | None = None

    @property
    def streams(self) -> bool:
        """True where the answer comes in lines, as it does unless that is switched off."""
        return self.stream is not False

    @property
    def sent_fields(self) -> dict[str, str]:
        """The names of this body's fields, by those of the call that is made of it."""
        return _SENT_FIELDS | {name: f"options.{name}" for name in self.options or {} if name in _OPENAI}

    def generation(self) -> dict[str, Any]:
        """Return the fields of a call's body; raises BadRequest for an option that would not be honoured."""
        asked = {name: value for name, value in (self.options or {}).items() if value is not None}
        made: dict[str, Any] = {"model": self.model}
        for name, value in asked.items():
            if name in _SAMPLING or name in _OPENAI:
                made[name] = value
            elif name == "num_predict":
                made["max_tokens"] = _limit(value)
            elif name in _GONE:
                if value != _GONE[name]:
                    raise BadRequest(f"The option {name} is not honoured here: leave it out.", param=f"options.{name}")
            elif name not in HINTS:
                message = f"The option {name} is not known or not supported here: leave it out."
                raise BadRequest(message, param=f"options.{name}")
        if self.format == "json":
            made["response_format"] = {"type": "json_object"}
        elif self.format:
            schema = {"name": "format", "schema": self.format}
            made["response_format"] = {"type": "json_schema", "json_schema": schema}
        return made

    def as_chat(self, messages: list[Message], tools: list[Message] | None = None) -> ChatCompletionBody:
        """Return the chat call's body; raises BadRequest and ApiError."""
        made = self.generation()
        made |= {"messages": messages, "tools": tools or None}
        if self.logprobs:
            made |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        if isinstance(self.think, bool):
            made["enable_thinking"] = self.think
        elif self.think is not None:
            made["reasoning_effort"] = self.think
        return valid(ChatCompletionBody, made, self.sent_fields)


class SentFunction(LenientBody):
    """The function of a call."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class SentCall(LenientBody):
    """A call that the assistant made earlier."""

    id: str | None = None
    function: SentFunction


class OllamaMessage(LenientBody):
    """One turn."""

    role: str
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[SentCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None

    @field_validator("role")
    @classmethod
    def _in_lower_case(cls, role: str) -> str:
        return role.lower()


class OllamaChatBody(WritingBody):
    """The body of POST /api/chat; without messages, the model is loaded."""

    messages: Annotated[list[OllamaMessage] | None, BeforeValidator(not_endless)] = Field(None, max_length=MAX_MESSAGES)
    tools: list[Message] | None = Field(None, max_length=MAX_TOOLS)

    def chat(self) -> ChatCompletionBody:
        """Return the chat call's body; raises BadRequest and ApiError."""
        return self.as_chat(list(_messages(self.messages or [])), [{"type": "function"} | t for t in self.tools or ()])


class GenerateBody(WritingBody):
    """The body of POST /api/generate; without a prompt, the model is loaded."""

    prompt: Text | None = None
    suffix: str | None = None
    system: Text | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    images: list[str] | None = None

    @model_validator(mode="after")
    def _can_be_done(self) -> GenerateBody:
        if self.template:
            raise ValueError("template is not taken: the model's own is used, or none with raw")
        is_plain = self.raw or self.suffix
        unfit = [name for name in ("system", "context", "images") if getattr(self, name)] if is_plain else []
        if unfit:
            raise ValueError(f"{unfit[0]} cannot be sent with {'raw' if self.raw else 'suffix'}")
        if self.raw and self.suffix:
            raise ValueError("suffix cannot be sent with raw: write the model's own tokens into the prompt")
        if self.context and self.images:
            raise ValueError("images cannot be sent with context: send all messages to /api/chat")
        return self

    @property
    def is_text(self) -> bool:
        """True where the prompt is no message of a chat."""
        return bool(self.raw or self.suffix)

    @property
    def sent_fields(self) -> dict[str, str]:
        """The names of this body's fields, by those of the call that is made of it."""
        return super().sent_fields | {"messages": "images" if self.images else "prompt"}

    def chat(self) -> ChatCompletionBody:
        """Return the chat call's body; raises BadRequest and ApiError."""
        messages: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return self.as_chat([*messages, _turn("user", self.prompt or "", self.images)])

    def text(self) -> LlamaBody:
        """Return the body of a text that goes on, or of a middle that is filled in; raises BadRequest and ApiError."""
        made = self.generation()
        if self.logprobs:
            made["n_probs"] = max(self.top_logprobs or 0, 1)
        if self.suffix:
            around = {"input_prefix": self.prompt or "", "input_suffix": self.suffix}
            return valid(InfillBody, made | around, self.sent_fields)
        return valid(LlamaBody, made | {"prompt": self.prompt or ""}, self.sent_fields)

    def openai_text(self) -> dict[str, Any]:
        """Return the text as OpenAI's completions read it, for a model of another server; raises BadRequest."""
        if self.logprobs:
            raise BadRequest("logprobs of a text are not told by a remote's model: leave it out.", param="logprobs")
        return self.generation() | {"prompt": self.prompt or ""} | ({"suffix": self.suffix} if self.suffix else {})


class EmbedBody(RunBody):
    """The body of POST /api/embed; without an input, the model is loaded."""

    input: str | list[str] | None = None
    truncate: bool | None = None
    dimensions: int | None = Field(default=None, ge=1)


class LegacyEmbedBody(RunBody):
    """The body of POST /api/embeddings."""

    prompt: Text | None = None


class ShowBody(ModelBody):
    """The body of POST /api/show."""

    verbose: bool | None = None


class PullBody(ModelBody):
    """The body of POST /api/pull."""

    stream: bool | None = None


def _limit(value: Any) -> int | None:
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if not is_whole or (value < 0 and value not in _AS_MANY_AS_FIT):
        raise BadRequest(
            f"options.num_predict must be a number of tokens, or -1 for as many as there is room for, not {value!r}.",
            param="options.num_predict",
        )
    return int(value) if value >= 0 else None


def _messages(sent: list[OllamaMessage]) -> Iterator[Message]:
    """Yield the messages; calls get ids where they have none, and results those of the calls that they answer."""
    number, open_calls = 0, list[tuple[str, str]]()  # ids and names of calls without a result
    for one in sent:
        message = _turn(one.role, one.content or "", one.images)
        if one.thinking:
            message["reasoning_content"] = one.thinking
        if one.tool_calls:
            calls = []
            for call in one.tool_calls:
                number += 1
                call_id = call.id or f"call{number:05}"  # nine letters and digits, as Mistral's templates want
                open_calls.append((call_id, call.function.name))
                calls.append({"id": call_id, "type": "function", "function": call.function.model_dump()})
            message["tool_calls"] = calls
        if one.role == "tool":
            message |= _answered(one, open_calls)
        yield message


def _answered(result: OllamaMessage, open_calls: list[tuple[str, str]]) -> Message:
    """Return which call a result is of: the one it names, else the first that waits."""
    found = next((call for call in open_calls if result.tool_call_id == call[0]), None)
    if found is None and result.tool_call_id is None:
        found = next((call for call in open_calls if result.tool_name == call[1]), next(iter(open_calls), None))
    if found is not None:
        open_calls.remove(found)
    call_id, name = found or (result.tool_call_id, result.tool_name)
    return {"tool_call_id": call_id, "name": result.tool_name or name}


def _turn(role: str, text: str, images: list[str] | None) -> Message:
    if not images:
        return {"role": role, "content": text}
    # The file itself says what kind of image it is.
    parts: list[Message] = [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in images]
    return {"role": role, "content": [*parts, {"type": "text", "text": text}]}


def _data_url(image: str) -> str:
    return image if image.startswith("data:") else f"data:image/png;base64,{image}"
