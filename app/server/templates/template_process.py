"""The process that renders chat templates: they come with model files from anywhere, so they run apart.

It reads one JSON object per frame (4 bytes of length, big-endian, then UTF-8) on standard input and answers each on
standard output. Whoever started it kills it when an answer takes too long. It needs jinja2 and nothing of Slipstream.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import json
import re
import secrets
import signal
import struct
import sys
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from jinja2 import ChainableUndefined, TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

MAX_MEMORY = 1 << 29
MAX_OPEN_FILES = 3
# Those who wait for an answer give up much sooner; this ends a template that loops when they are gone.
LONGEST_RENDERING = 60
MAX_TEMPLATES = 8
LATE_IMPORTS = ("encodings.unicode_escape", "jinja2.constants", "jinja2.debug", "pprint", "textwrap")
LENGTH = struct.Struct(">I")
_TEMPLATE_FILE = "<template>"  # as jinja calls one that was no file
# Templates' names for a model's thoughts before its answer; messages come here with the first.
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
THINKING_PART = "part"  # a part of the content, as Mistral's want it
_SOURCE = secrets.token_hex(8)  # around the number of a text in JSON that is replaced by it; in no message
_SHORT_ID = re.compile("[a-zA-Z0-9]{9}")
_IDS = ("call_probe", "abcdefghi")  # for trying, an ordinary and a short one
TemplateMessage = dict[str, Any]


class OutputTooLarge(Exception):
    """The template wrote more than it may."""


class GenerationTag(Extension):
    """``{% generation %}`` marks the assistant's text for training; rendering passes over it."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the statements inside."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def make_environment() -> SandboxedEnvironment:
    """Return an environment in which the templates of Hugging Face models work.

    Templates may append to lists, as those of Kimi K2 do: all that they can change is the copy of one request.
    """
    environment = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationTag]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Dump as plain JSON, without the HTML escapes of jinja2's own filter.

    The arguments of calls stay as the model wrote them, unless the template wants a form of its own.
    """
    is_plain = indent is None and separators is None and not sort_keys
    sources: list[str] = []

    def convert(other: Any) -> Any:
        if isinstance(other, ParsedArguments):
            if not is_plain:
                return other.data
            sources.append(other.source)
            return f"{_SOURCE}{len(sources) - 1}{_SOURCE}"
        if isinstance(other, Iterator):  # as of ``map``, which llama.cpp's renderer takes for a list
            return list(other)
        raise TypeError(f"a value of type {type(other).__name__} cannot be written as JSON")

    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=convert
    )
    if not sources:
        return text
    return re.sub(f'"{_SOURCE}(\\d+){_SOURCE}"', lambda found: sources[int(found[1])], text)


class ParsedArguments(UserDict[str, Any]):
    """The arguments of a call that came as text: an object for templates, with the text in ``source``."""

    def __init__(self, arguments: dict[str, Any], source: str) -> None:
        super().__init__(arguments)
        self.source = source


def raise_exception(message: str) -> None:
    """Refuse the messages."""
    raise TemplateError(message)


def strftime_now(form: str) -> str:
    """Format the present local time."""
    return datetime.datetime.now().strftime(form)


class ChatTemplate:
    """A compiled template and, found by trying, which shapes of messages it understands."""

    def __init__(self, environment: SandboxedEnvironment, source: str, max_chars: int) -> None:
        self._environment, self._source = environment, source
        self._template = environment.from_string(source)
        self._max_chars = max_chars
        user = {"role": "user", "content": "u-probe"}
        parts = [{"role": "user", "content": [{"type": "text", "text": "u-probe"}]}]
        self.wants_parts = not self._shows("u-probe", [user]) and self._shows("u-probe", parts)
        self.has_system = self._shows("s-probe", [{"role": "system", "content": "s-probe"}, user])
        calls = {
            (is_short, is_object): self._shows(
                "k-probe",
                [user, _call({"k-probe": "v"} if is_object else '{"k-probe": "v"}', "", _IDS[is_short])],
                hides="{'k-probe'" if is_object else None,
            )
            for is_short in (False, True)
            for is_object in (False, True)
        }
        is_ordinary = calls[False, False] or calls[False, True]
        self.wants_short_ids = not is_ordinary and (calls[True, False] or calls[True, True])
        self.wants_objects = calls[self.wants_short_ids, True]
        self.takes_null = self._shows("f-probe", [user, self._call(None)], hides="None")
        probe = {"type": "string", "description": "d-probe"}
        parameters = {"type": "object", "properties": {"p-probe": probe}, "required": ["p-probe"]}
        tool = {"name": "t-probe", "description": "d-probe", "parameters": parameters}
        self.has_tools = self._shows("t-probe", [user], tools=[{"type": "function", "function": tool}])
        self.reasoning_field = self._find_reasoning_field(user)

    def _find_reasoning_field(self, user: TemplateMessage) -> str:
        """Return under which name the template reads what the model thought; "" if under none."""
        said = {"role": "assistant", "content": "c-probe"}
        for field in REASONING_FIELDS:
            for message in (said | {field: "r-probe"}, self._call() | {field: "r-probe"}):
                if self._shows("r-probe", [user, message], enable_thinking=True, thinking=True):
                    return field
        parts = [{"type": "thinking", "thinking": "r-probe"}, {"type": "text", "text": "c-probe"}]
        is_part = self._shows("r-probe", [user, said | {"content": parts}], hides="'r-probe'")
        is_part = is_part and self._shows("r-probe", [user, said | {"content": parts}], hides='"r-probe"')
        return THINKING_PART if is_part else ""

    def _call(self, content: str | None = "") -> TemplateMessage:
        """Return a call in the shape that the template understands."""
        return _call({} if self.wants_objects else "{}", content, _IDS[self.wants_short_ids])

    def _shows(self, text: str, messages: list[TemplateMessage], hides: str | None = None, **variables: Any) -> bool:
        messages = [self._with_content(message) for message in messages]
        try:
            prompt = self._write({"messages": messages, "add_generation_prompt": True, "tools": None, **variables})
        except (MemoryError, OutputTooLarge):
            raise
        except Exception:
            # Whatever a template does with a shape that it does not know: it does not take that shape.
            return False
        return text in prompt and (hides is None or hides not in prompt)

    def _with_content(self, message: TemplateMessage) -> TemplateMessage:
        content = message.get("content")
        if getattr(self, "wants_parts", False) and isinstance(content, str):
            return message | {"content": [{"type": "text", "text": content}]}
        return message

    def render(self, variables: TemplateMessage) -> str:
        """Return the prompt; raises what the template raises."""
        messages = [self._adapt(message) for message in variables["messages"]]
        if not self.has_system:
            messages = _fold_system(messages)
        messages = [self._with_content(message) for message in messages]
        try:
            return self._write(variables | {"messages": messages})
        except UndefinedError:
            # A field that a tool or a message lacks counts as empty, as in llama.cpp.
            lenient = self._environment.overlay(undefined=ChainableUndefined)
            self._template = lenient.from_string(self._source)
            return self._write(variables | {"messages": messages})

    def render_each(self, several: list[TemplateMessage]) -> list[str | None]:
        """Return a prompt for each set of variables; None where the template refuses it."""
        prompts: list[str | None] = []
        for variables in several:
            try:
                prompts.append(self.render(variables))
            except (MemoryError, OutputTooLarge):
                raise
            except Exception:
                prompts.append(None)  # as in ``_shows``
        return prompts

    def _adapt(self, message: TemplateMessage) -> TemplateMessage:
        message = dict(message)
        if message["role"] == "developer":
            message["role"] = "system"
        if message.get("content") is None and not self.takes_null:
            message["content"] = ""
        if message.get("tool_calls"):
            convert = _to_object if self.wants_objects else _to_text
            calls = [_with_arguments(call, convert) for call in message["tool_calls"]]
            message["tool_calls"] = [self._with_id(call, "id") for call in calls]
        if message.get(REASONING_FIELDS[0]):
            self._place_reasoning(message)
        return self._with_id(message, "tool_call_id")

    def _with_id(self, value: TemplateMessage, field: str) -> TemplateMessage:
        """Return a call or a result with an id that the template takes: Mistral's want nine letters and digits."""
        id_ = value.get(field)
        if not self.wants_short_ids or not isinstance(id_, str) or _SHORT_ID.fullmatch(id_):
            return value
        return value | {field: hashlib.sha256(id_.encode("utf-8", "replace")).hexdigest()[:9]}

    def _place_reasoning(self, message: TemplateMessage) -> None:
        """Move what the model thought to where the template reads it."""
        reasoning = message.pop(REASONING_FIELDS[0])
        if self.reasoning_field == THINKING_PART:
            said = message["content"]
            texts = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
            message["content"] = [{"type": "thinking", "thinking": reasoning}, *texts]
        elif self.reasoning_field:
            message[self.reasoning_field] = reasoning
            if self.reasoning_field == "thinking" and message.get("tool_calls"):
                message["content"] = ""  # gpt-oss takes one of them beside a call

    def _write(self, variables: TemplateMessage) -> str:
        parts, n_chars = [], 0
        tools = variables.get("tools") or []
        # What Firefunction reads.
        usual = {"functions": tojson(tools, indent=4), "datetime": strftime_now("%b %d %Y")}
        usual |= {"bos_token": "", "eos_token": ""}
        for part in self._template.generate(usual | variables):
            n_chars += len(part)
            if n_chars > self._max_chars:
                raise OutputTooLarge
            parts.append(part)
        return "".join(parts)


def _call(arguments: Any, content: str | None, id_: str) -> TemplateMessage:
    function = {"name": "f-probe", "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": id_, "type": "function", "function": function}],
    }


def _fold_system(messages: list[TemplateMessage]) -> list[TemplateMessage]:
    """Put what the system says before what the user says first: the template knows no system turn."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    if not system:
        return rest
    if rest and rest[0]["role"] == "user":
        return [rest[0] | {"content": f"{system}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{"role": "user", "content": system}, *rest]


def _with_arguments(call: TemplateMessage, convert: Callable[[Any], Any]) -> TemplateMessage:
    function = call["function"]
    return call | {"function": function | {"arguments": convert(function.get("arguments"))}}


def _to_object(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None  # a call that was cut, or is nested too deep: many templates would fail
    return ParsedArguments(value if isinstance(value, dict) else {}, arguments or "{}")


def _to_text(arguments: Any) -> Any:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


class Renderer:
    """Answers requests; keeps the templates it has compiled."""

    def __init__(self) -> None:
        self._environment = make_environment()
        self._templates: dict[tuple[str, int], ChatTemplate] = {}

    def answer(self, request: TemplateMessage) -> TemplateMessage:
        """Return {"text", "has_tools"}, {"texts"} for several, or {"error", "kind"}.

        The kind is "messages" where the template refused them, and "length" where it wrote more than ``max_chars``.
        """
        try:
            template = self._template(request["source"], request["max_chars"])
            if "several" in request:
                return {"texts": template.render_each(request["several"])}
            return {"text": template.render(request["variables"]), "has_tools": template.has_tools}
        except OutputTooLarge:
            return {"kind": "length", "error": f"it wrote more than {request['max_chars']} characters"}
        except MemoryError:
            return {"kind": "template", "error": "it took too much memory"}
        except RecursionError:
            return {"kind": "template", "error": "it is nested too deep"}
        except TemplateSyntaxError as error:
            return {"kind": "template", "error": f"line {error.lineno}: {error.message}"[:1_000].rstrip(".")}
        except TemplateError as error:
            kind, place = ("messages", "") if type(error) is TemplateError else ("template", _place_of(error))
            return {"kind": kind, "error": f"{place}{error}"[:1_000].rstrip(".")}  # a sentence goes on
        except Exception as error:
            return {"kind": "template", "error": f"{_place_of(error)}{type(error).__name__}: {error}"[:1_000]}

    def _template(self, source: str, max_chars: int) -> ChatTemplate:
        key = (source, max_chars)
        if key not in self._templates:
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._templates[key] = ChatTemplate(self._environment, source, max_chars)
        return self._templates[key]


def _place_of(error: Exception) -> str:
    """Return the line of the template in which an error was raised, "" where that is not known."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TEMPLATE_FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""


def give_up_rights() -> None:
    """Limit memory and take away files and sockets: a template that breaks out of the sandbox finds little."""
    # Everything that reads a file at its first use is used once while that is still allowed.
    for module in LATE_IMPORTS:
        importlib.import_module(module)
    strftime_now("%Y")
    try:
        import resource
    except ImportError:
        return
    limits = ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_NOFILE, MAX_OPEN_FILES), (resource.RLIMIT_FSIZE, 0))
    for kind, limit in limits:
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):
            continue


def _end_process_in(seconds: int, computing: float) -> None:
    """Let the system end this process after so many seconds, or so many of ``computing``; 0 takes that back.

    SIGPROF ends it then, also in the middle of a long multiplication.
    """
    if hasattr(signal, "setitimer"):
        signal.alarm(seconds)
        signal.setitimer(signal.ITIMER_PROF, computing)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer frames until the input ends."""
    renderer = Renderer()
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        request = json.loads(source.read(LENGTH.unpack(head)[0]))
        _end_process_in(LONGEST_RENDERING, request["seconds"])
        answer = renderer.answer(request)
        _end_process_in(0, 0)
        try:
            body = json.dumps(answer).encode()
        except MemoryError:
            body = json.dumps({"kind": "template", "error": "it took too much memory"}).encode()
        sink.write(LENGTH.pack(len(body)) + body)
        sink.flush()


if __name__ == "__main__":
    give_up_rights()
    serve(sys.stdin.buffer, sys.stdout.buffer)
