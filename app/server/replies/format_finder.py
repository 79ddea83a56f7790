"""Finds a model's form of replies: renders its own template with messages that differ in one thing, and compares.

As ``common/chat-diff-analyzer.cpp`` in llama.cpp does. What a template does not show is in ``families.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.server.replies.families import corrected
from app.server.replies.reply_format import (
    ANY,
    CallForm,
    JsonCalls,
    KeyedArguments,
    PythonCalls,
    ReplyFormat,
    TaggedCalls,
    Thinking,
)

USER, CONTENT, THOUGHT = "user-probe", "content-probe", "thought-probe"
_NAMES, _IDS = ("probe_one", "probe_two"), ("probeid01", "probeid02")
_KEYS, _VALUES = ("key_one", "key_two"), ("value-probe", 4711)
_ARGUMENTS = dict(zip(_KEYS, _VALUES, strict=True))
_PROPERTIES = {
    _KEYS[0]: {"type": "string", "description": "The first."},
    _KEYS[1]: {"type": "integer", "description": "The second."},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does it.",
            "parameters": {"type": "object", "properties": _PROPERTIES, "required": list(_KEYS)},
        },
    }
    for name in _NAMES
]
_THINKS = {"enable_thinking": True, "thinking": True}
# A tag in angle or square brackets, and any marker at the end of a text.
_TAG = re.compile(r"<[^<>\s][^<>]*>|\[/?[A-Z_ ]+\]")


def contrasts() -> list[dict[str, Any]]:
    """Return the variables of the renderings that ``found_format`` compares, in its order."""
    user = {"role": "user", "content": USER}

    def said(content: str, **more: Any) -> dict[str, Any]:
        return {"messages": [user, {"role": "assistant", "content": content, **more}], "tools": TOOLS, **_THINKS}

    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": _ARGUMENTS}}
        for name, id_ in zip(_NAMES, _IDS, strict=True)
    ]
    asked = {"messages": [user], "tools": TOOLS, "add_generation_prompt": True}
    return [
        asked | _THINKS,
        said(CONTENT),
        said(CONTENT, reasoning_content=THOUGHT),
        said("", tool_calls=calls[:1]),
        said("", tool_calls=calls),
        said("", tool_calls=calls[:1], reasoning_content=THOUGHT),
    ]


def found_format(source: str, prompts: Sequence[str | None]) -> ReplyFormat:
    """Return the form of reply of the template with this ``source``, of whose ``contrasts`` these are the prompts.

    A template that does not show the tools has no calls: the server refuses them.
    """
    form = corrected(_shown_format(prompts), source)
    asked = prompts[0]
    return form if asked is None or _NAMES[0] in asked else replace(form, calls=None)


def _shown_format(prompts: Sequence[str | None]) -> ReplyFormat:
    asked, answered, thought, called, called_twice, thought_called = (_turn(prompt) for prompt in prompts)
    thinking = _thinking(thought, answered, THOUGHT, CONTENT) or _thinking(thought_called, answered, THOUGHT, _NAMES[0])
    answer = _answer(thought if THOUGHT in thought else answered)
    head, _, end = answered.partition(CONTENT)
    end = end.removeprefix(answer[1])
    calls = _calls(called, called_twice, [asked, head], end, [*answer, *_markers(thinking)])
    return ReplyFormat(thinking=thinking, answer=answer, calls=calls)


def _turn(prompt: str | None) -> str:
    """Return what stands behind the user's words."""
    return prompt.rpartition(USER)[2] if prompt is not None else ""


def _markers(thinking: Thinking | None) -> list[str]:
    return [thinking.open, thinking.close] if thinking is not None else []


def _thinking(shown: str, answered: str, thought: str, after: str) -> Thinking | None:
    """Return the tags around a thought."""
    if thought not in shown or after not in shown.partition(thought)[2]:
        return None
    before, _, behind = shown.partition(thought)
    close = _TAG.match(behind.lstrip())
    if close is None:
        return None
    opens = list(_TAG.finditer(before.rstrip()))
    is_at_end = bool(opens) and opens[-1].end() == len(before.rstrip())
    open_ = opens[-1][0] if is_at_end else ""
    # A tag that stands before every answer belongs to the turn, not to the thought.
    head = answered.partition(CONTENT)[0]
    if open_ in head and close[0] not in head:
        open_ = ""
    return Thinking(open_, close[0])


def _answer(shown: str) -> tuple[str, str]:
    """Return the tags around the answer, where it has such: one that opens it and its counterpart."""
    before, _, behind = shown.partition(CONTENT)
    opens, close = list(_TAG.finditer(before)), _TAG.match(behind)
    if not opens or opens[-1].end() < len(before) or close is None:
        return "", ""
    name, counterpart = re.sub(r"\W|START", "", opens[-1][0]), re.sub(r"\W|END", "", close[0])
    return (opens[-1][0], close[0]) if name == counterpart else ("", "")


def _calls(called: str, twice: str, heads: list[str], end: str, others: list[str]) -> CallForm | None:
    """Return the form of a call: ``called`` shows one, ``twice`` two."""
    if _NAMES[0] not in called:
        return None
    at = max(_common(called, head) for head in heads)
    body = called[at:]
    for marker in others:
        # An empty thought or answer may stand before the call.
        if marker and marker in body.partition(_NAMES[0])[0]:
            body = body.partition(marker)[2]
    body = _without_end(body, end)
    second = twice if _NAMES[1] in twice else ""
    return _json_calls(body, second) or _tagged_calls(body, second)


def _common(text: str, other: str) -> int:
    """Return how much two texts have in common at the beginning, without a part of a tag."""
    size = _n_shared(text, other)
    for bracket, closer in ("<>", "[]"):
        start = text.rfind(bracket, 0, size)
        if start >= 0 and closer not in text[start:size]:
            size = min(size, start)
    return size


def _n_shared(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _without_end(body: str, end: str) -> str:
    """Return a turn without what ends every turn."""
    behind = body.index(_NAMES[0])
    ends = [at for mark in [*_TAG.findall(end), *end.split()[:1]] if (at := body.find(mark, behind)) >= 0]
    return body[: min(ends)] if ends else body


def _between(second: str, behind: str) -> str:
    """Return what stands between two calls: after the first one's arguments, before the second one's name."""
    if not second:
        return ""
    return second.partition(behind)[2].partition(_NAMES[1])[0] if behind else ""


def _json_calls(body: str, twice: str) -> JsonCalls | None:
    found = _json_around(body, _NAMES[0])
    if found is None:
        return None
    start, stop, value = found
    is_list = isinstance(value, list)
    call = value[0] if is_list else value
    call = call.get("function", call)
    if not isinstance(call, dict) or not any(_is_arguments(entry) for entry in call.values()):
        return None
    named = {key: entry for key, entry in call.items() if isinstance(entry, str)}
    name = next((key for key, entry in named.items() if entry == _NAMES[0]), "")
    id_ = next((key for key, entry in named.items() if entry in (_IDS[0], "0") and key != name), "")
    arguments = next(key for key, entry in call.items() if _is_arguments(entry))
    brackets = ("", "")
    if is_list:
        inner = body[start:stop]
        brackets = inner[: inner.index("{")], inner[inner.rindex("}") + 1 :]
    first, second = (_json_around(twice, each, "{") if twice else None for each in _NAMES)
    between = twice[first[1] : second[0]] if first is not None and second is not None else ""
    is_id_first = bool(id_) and list(call).index(id_) < list(call).index(name)
    return JsonCalls(body[:start], body[stop:], between, name, arguments if name else "", id_, is_id_first, brackets)


def _is_arguments(value: Any) -> bool:
    if isinstance(value, str):
        return _KEYS[0] in value
    return isinstance(value, dict) and _KEYS[0] in value


def _json_around(text: str, name: str, opens: str = "[{") -> tuple[int, int, Any] | None:
    """Return where the outermost JSON value with the function's name begins and ends, and the value."""
    decoder = json.JSONDecoder()
    for start in (at for at, sign in enumerate(text[: text.index(name)]) if sign in opens):
        try:
            value, stop = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if stop > text.index(name):
            return start, stop, value
    return None


def _tagged_calls(body: str, twice: str) -> CallForm | None:
    open_, _, behind = body.partition(_NAMES[0])
    key = behind.find(_KEYS[0])
    if key < 0:
        return None
    if behind.startswith("("):
        return PythonCalls(open_.removesuffix("["), behind[behind.rindex(")") + 1 :].removeprefix("]"))
    if behind.startswith("{" + _KEYS[0]):
        stop = behind.index("}") + 1
        return TaggedCalls(open_, "", behind[stop:], "gemma", _between(twice, behind[:stop]))
    start = behind.find("{")
    if 0 <= start < key:
        try:
            value, stop = json.JSONDecoder().raw_decode(behind, start)
        except ValueError:
            return None
        written = behind[start:stop]
        if not _is_arguments(value):
            return None
        if behind[start - 1 : start] == '"':
            return None
        between = _between(twice, written)
        # The text between name and arguments, and before the name, may hold an id or a number.
        after = _without_id(behind[:start])
        if twice:
            after = _merged(after, _without_id(twice.partition(_NAMES[1])[2].partition(written)[0]))
        return TaggedCalls(_without_id(open_), after, behind[stop:], "json", _without_id(between))
    return _keyed_calls(open_, behind, twice)


def _merged(one: str, other: str) -> str:
    """Return two texts as one, with ANY where they differ."""
    if one == other or not other:
        return one
    head = one[: _n_shared(one, other)]
    rest, others = one[len(head) :], other[len(head) :]
    tail = rest[len(rest) - _n_shared(rest[::-1], others[::-1]) :]
    # Whole words differ, not parts of them.
    return re.sub(r"\w+$", "", head) + ANY + re.sub(r"^\w+", "", tail)


def _without_id(text: str) -> str:
    for id_ in _IDS:
        text = text.replace(id_, ANY)
    return text


def _behind(text: str, close: str) -> str:
    """Return what stands behind the last argument, whose end may have less white space than that of others."""
    return text.removeprefix(close) if text.startswith(close) else text.lstrip().removeprefix(close.strip())


def _keyed_calls(open_: str, behind: str, twice: str) -> TaggedCalls | None:
    first, second = (behind.find(key) for key in _KEYS)
    value, number = behind.find(str(_VALUES[0])), behind.find(str(_VALUES[1]))
    if not 0 <= first < value < second < number:
        return None
    after_name, gap = behind[:first], behind[value + len(str(_VALUES[0])) : second]
    before_key = gap[max(gap.rfind("<"), gap.rfind("[")) :]
    if "<|" in gap and gap.rfind("<|open|>") >= 0:
        before_key = gap[gap.rfind("<|open|>") :]
    if not after_name.endswith(before_key):
        return None
    after_key = _merged(behind[first + len(_KEYS[0]) : value], behind[second + len(_KEYS[1]) : number])
    close_value = gap.removesuffix(before_key)
    rest = behind[number + len(str(_VALUES[1])) :]
    close = _behind(rest, close_value)
    after_name = after_name.removesuffix(before_key)
    between = ""
    if twice:
        last = twice.find(str(_VALUES[1]))
        between = _behind(twice[last:].removeprefix(str(_VALUES[1])), close_value).partition(_NAMES[1])[0]
        after = twice.partition(_NAMES[1])[2].partition(before_key)[0]
        after_name = _merged(after_name, after)
    return TaggedCalls(open_, after_name, close, KeyedArguments(before_key, after_key, close_value), between)
