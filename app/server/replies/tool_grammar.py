"""The grammar of replies that must call tools, or call them as their schemas say, in the model's own form.

Where the answer has a form too, a reply is calls or that answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.server.replies.constraints import LOOSE, JsonSchema, ToolBinding, is_loose, written
from app.server.replies.reply_format import (
    ANY,
    GEMMA_QUOTE,
    CallForm,
    Channels,
    JsonCalls,
    KeyedArguments,
    PythonCalls,
    ReplyFormat,
    TaggedCalls,
)
from core.values.request import Constraint

# An id or a number within a marker, and a key if no schema lists the keys.
_ID, _KEY = "/[A-Za-z0-9_.:-]{1,40}/", '/[^<>"\\n]{1,100}/'
_COMMA = ' ", " '
# White space as templates write it (``tojson``): the next turn's prompt has a call as it was generated, so none of it
# is read again.
_AS_RENDERED = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_SCALARS = ("integer", "number", "boolean", "null")


def tool_grammar(form: ReplyFormat, binding: ToolBinding, thought: tuple[str, str] | None = None) -> Constraint:
    """Return the constraint of replies in this ``form``; ``thought`` as in Constraint."""
    rules = _Rules()
    names = [
        rules.add("call", _call(form, rules, name, schema), number)
        for number, (name, schema) in enumerate(binding.tools)
    ]
    any_call = f"({' | '.join(names)})"
    opening, between, closing, is_one = _frame(form, rules)
    more = "" if binding.at_most_one or is_one else f" ({between} {any_call})*"
    if binding.must_call or binding.answer is not None:
        start = f'("\\n" | " ")? {opening(rules.marker)} {any_call}{more} {closing}'
        if binding.answer is not None:
            start = f"{start} | answer"
            rules.lines.append(f"answer: {_json(json.loads(binding.answer.text))}")
    else:
        # Calls that go on without a section around them may come again after text.
        start = f"({opening(rules.until)} {any_call}{more} {closing}){'?' if binding.at_most_one else '*'} rest"
        rules.lines.append("rest: TEXT")
    lark = "\n".join([f"start: {start}", *rules.lines, "TEXT: /(.|\\n)*/"])
    field = "tools" if binding.answer is None else binding.answer.field
    return Constraint("lark", lark, field, tuple(rules.markers), thought)


@dataclass(slots=True)
class _Rules:
    """The rules of a grammar, and the markers that they name (see Constraint)."""

    lines: list[str] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)

    def add(self, name: str, body: str, number: int | None = None) -> str:
        """Add a rule and return its name."""
        name = f"{name}_{len(self.lines) if number is None else f'of_tool_{number}'}"
        self.lines.append(f"{name}: {body}")
        return name

    def marker(self, text: str) -> str:
        """Return what matches a marker; ANY in it is an id."""
        return f" {_ID} ".join(self._named("marker", part) for part in text.split(ANY)) if text else ""

    def until(self, text: str) -> str:
        """Return what matches any text up to a marker, and the marker."""
        first, *others = text.split(ANY)
        return " ".join([self._named("until", first), *(f"{_ID} {self._named('marker', part)}" for part in others)])

    def _named(self, kind: str, text: str) -> str:
        if not text:
            return ""
        if text not in self.markers:
            self.markers.append(text)
        return f"{kind}_{self.markers.index(text)}"


_Opening = Callable[[Callable[[str], str]], str]


def _frame(form: ReplyFormat, rules: _Rules) -> tuple[_Opening, str, str, bool]:
    """Return what stands before the first call, between two, behind the last, and whether there is only ever one.

    What stands before is given what is to be done with its first marker.
    """
    calls = form.calls
    if form.channels is not None:
        return _channel_frame(form.channels, calls, rules)
    assert calls is not None
    close, opened = rules.marker(calls.close.rstrip()), calls.open.lstrip()
    if isinstance(calls, PythonCalls):
        return (lambda first: f'{first(opened)} "["'), '", "', f'"]" {close}', False
    between = rules.marker(calls.between)
    if isinstance(calls, TaggedCalls):
        return (lambda first: first(opened)), between, close, not calls.between
    begin, end = map(_quoted, calls.brackets)
    return (lambda first: f"{first(opened) if opened else ''} {begin}"), between, f"{end} {close}", not calls.between


def _channel_frame(channels: Channels, calls: CallForm | None, rules: _Rules) -> tuple[_Opening, str, str, bool]:
    if calls is not None:  # each call is a message with its own tags
        header = f"/[^<]{{1,100}}/ {rules.marker(channels.header_end)} {rules.marker(calls.open)}"
        close, next_one = rules.marker(calls.close), rules.marker(f"{channels.ends[0]}{channels.start} to=")
        return (
            (lambda first: f"{first(' to=')} {header}" if first == rules.marker else first(calls.open)),
            f"{close} {next_one} {header}",
            close,
            False,
        )
    if channels.answer:  # a header is a name, and text before it a message of its own
        return (
            (lambda first: "" if first == rules.marker else f"{rules.marker('all')} {first(channels.start)}"),
            rules.marker(channels.start),
            "",
            False,
        )
    return ((lambda first: first("<|channel|>commentary to=functions.")), "", "", True)


def _call(form: ReplyFormat, rules: _Rules, name: str, schema: JsonSchema) -> str:
    """Return the body of one call: from its name, or the object with its name, to the end of its arguments."""
    calls = form.calls
    if form.channels is not None and calls is None:
        end = " <|constrain|>json<|message|>" if not form.channels.answer else form.channels.header_end
        return f"{_quoted(name)} {rules.marker(end)} {_json(schema)}"
    if isinstance(calls, JsonCalls):
        return _json_call(calls, name, schema)
    if isinstance(calls, PythonCalls):
        items = _entries(rules, schema, lambda key, value, root: f"{_quoted(key + '=')} {_json(_rooted(value, root))}")
        free = f'({_KEY} "=" {_json(True)} ({_COMMA} {_KEY} "=" {_json(True)})*)?'
        return f'{_quoted(name + "(")} {_joined(items, ", ") if items is not None else free} ")"'
    assert isinstance(calls, TaggedCalls)
    head = f"{_quoted(name)} {rules.marker(calls.after_name)}"
    if calls.arguments == "json":
        return f"{head} {_json(schema)}"
    if calls.arguments == "gemma":
        items = _entries(rules, schema, lambda key, value, root: f"{_quoted(key + ':')} {_gemma(rules, value)}")
        return f'{head} "{{" {_joined(items, ",")} "}}"' if items is not None else f"{head} {_gemma(rules, True)}"
    assert isinstance(calls.arguments, KeyedArguments)
    keyed = calls.arguments
    items = _entries(rules, schema, lambda key, value, root: _keyed(rules, keyed, key, value, root))
    if items is None:
        free = f"{rules.marker(keyed.before_key)} {_KEY} {rules.marker(keyed.after_key)} {rules.until(keyed.close)}"
        return f"{head} ({free})*"
    return f"{head} {' '.join(rule if is_required else f'({rule})?' for rule, is_required in items)}"


def _json_call(calls: JsonCalls, name: str, schema: JsonSchema) -> str:
    if not calls.name:
        return f'{_quoted("{" + _dumped(name) + ": ")} {_json(schema)} "}}"'
    parts = [_quoted(f"{_dumped(calls.name)}: {_dumped(name)}, {_dumped(calls.arguments)}: ") + f" {_json(schema)}"]
    if calls.id:
        mark = _quoted('"')
        text = "/[0-9]/" if calls.is_id_first else "/[a-zA-Z0-9]{9}/"
        id_ = f"{_quoted(_dumped(calls.id) + ': ')} {mark} {text} {mark}"
        parts.insert(0 if calls.is_id_first else 1, id_)
    return f'"{{" {_COMMA.join(parts)} "}}"'


_Entry = tuple[str, bool]


def _entries(
    rules: _Rules, schema: JsonSchema, write: Callable[[str, JsonSchema, Mapping[str, Any]], str]
) -> list[_Entry] | None:
    """Return a rule for each property of the arguments and whether it is required; None where none are listed."""
    root = schema if isinstance(schema, dict) else {}
    properties = root.get("properties")
    if not isinstance(properties, dict) or not properties:
        return [] if root.get("additionalProperties") is False else None
    required = root.get("required") if isinstance(root.get("required"), list) else []
    return [
        (rules.add("entry", write(str(key), value, root)), key in (required or ())) for key, value in properties.items()
    ]


def _joined(items: list[_Entry], separator: str) -> str:
    """Return the required entries and then the others, with a separator between those that are there."""
    gap = _quoted(separator)
    required = [rule for rule, is_required in items if is_required]
    others = [rule for rule, is_required in items if not is_required]
    behind = [" ".join(f"({gap} {rule})?" for rule in others[i:]) for i in range(len(others) + 1)]
    if required:
        return f" {gap} ".join(required) + f" {behind[0]}"
    return f"({' | '.join(f'{rule} {behind[i + 1]}' for i, rule in enumerate(others))})?" if others else ""


def _keyed(rules: _Rules, keyed: KeyedArguments, key: str, value: JsonSchema, root: Mapping[str, Any]) -> str:
    before = f"{rules.marker(keyed.before_key)} {_quoted(key)}"
    close = keyed.close.replace(ANY, key)
    texts = _texts(value)
    kind = ""
    if ANY in keyed.after_key:
        before_kind, _, after_kind = keyed.after_key.partition(ANY)
        # DeepSeek V3.2 says whether a value is text, Kimi K3 which type of JSON it is.
        is_flag = "string=" in before_kind
        type_ = value.get("type", "object") if isinstance(value, dict) else "object"
        word = str(texts is not None).lower() if is_flag else "number" if type_ == "integer" else str(type_)
        kind = f"{rules.marker(before_kind)} {_quoted(word)} {rules.marker(after_kind)}"
    else:
        kind = rules.marker(keyed.after_key)
    if texts is None:
        return f"{before} {kind} {_json(_rooted(value, root))} {rules.marker(close)}"
    if texts:
        return f"{before} {kind} ({' | '.join(map(_quoted, texts))}) {rules.marker(close)}"
    return f"{before} {kind} {rules.until(close)}"


def _texts(schema: JsonSchema) -> list[str] | None:
    """Return the texts that a value may be: [] for any text, None where it is no text."""
    if not isinstance(schema, dict):
        return None
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list) and listed:
        return listed if all(isinstance(entry, str) for entry in listed) else None
    return [] if schema.get("type") == "string" else None


def _gemma(rules: _Rules, schema: JsonSchema) -> str:
    quote = rules.marker(GEMMA_QUOTE)
    texts = _texts(schema)
    if texts:
        return f"{quote} ({' | '.join(map(_quoted, texts))}) {quote}"
    if texts is not None:
        return f"{quote} {rules.until(GEMMA_QUOTE)}"
    if isinstance(schema, dict) and schema.get("type") in _SCALARS:
        return _json(schema)
    # Its lists and objects, with texts between quotes of its own.
    nested = f"nested_{len(rules.lines)}"
    rules.lines.append(
        f'{nested}: ("[" | "{{") (/[^<>\\[\\]{{}}]+/ | {quote} {rules.until(GEMMA_QUOTE)} | {nested})* ("]" | "}}")'
    )
    return nested


def _rooted(schema: JsonSchema, root: Mapping[str, Any]) -> JsonSchema:
    """Return a property's schema with the definitions that it may refer to, and the options of the whole."""
    if not isinstance(schema, dict):
        return schema
    return {key: root[key] for key in ("$defs", "definitions", "x-guidance") if key in root} | schema


def _json(schema: JsonSchema) -> str:
    if schema is False:
        return "%json false"
    schema = schema if isinstance(schema, dict) else {}
    options = _AS_RENDERED | (LOOSE if is_loose(schema) else {})
    return f"%json {written(schema | {'x-guidance': options}, 'tools')}"


def _dumped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _quoted(text: str) -> str:
    """Return a text as Lark writes it."""
    return json.dumps(text, ensure_ascii=False)
