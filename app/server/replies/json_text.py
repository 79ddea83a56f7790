"""JSON that comes in pieces: objects passed on as they come, strings decoded, other notations turned into JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from app.server.replies.reply_format import ANY, GEMMA_QUOTE, KeyedArguments
from app.server.replies.text_source import Give, Reading, TextSource

_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_CLOSER = {"{": "}", "[": "]"}
# A key, a number or a word such as true.
_LONGEST_WORD = 200
_DEEPEST = 100


def stream_json(source: TextSource, give: Give) -> Reading[bool]:
    """Pass on the object or list that comes next, as it is written; False where its brackets do not match."""
    closers: list[str] = []
    while True:
        mark = _MARK.search(source.text, source.at)
        if mark is None:
            _pass_on(source, len(source.text), give)
            yield from source.more()
            continue
        _pass_on(source, mark.end(), give)
        if mark[0] == '"':
            yield from _pass_string(source, give)
        elif mark[0] in _CLOSER:
            closers.append(_CLOSER[mark[0]])
        elif not closers or closers.pop() != mark[0]:
            return False
        elif not closers:
            return True


def _pass_on(source: TextSource, end: int, give: Give) -> None:
    if end > source.at:
        text, source.at = source.text[source.at : end], end
        source.take()
        give(text)


def _pass_string(source: TextSource, give: Give) -> Reading[None]:
    while True:
        mark = _IN_STRING.search(source.text, source.at)
        end = len(source.text) if mark is None else mark.start() if mark[0] == "\\" else mark.end()
        _pass_on(source, end, give)
        if mark is not None and mark[0] == '"':
            return
        while mark is not None and len(source.text) - source.at < 2:
            yield from source.more()
        if mark is not None:
            _pass_on(source, source.at + 2, give)
        else:
            yield from source.more()


def stream_string(source: TextSource, give: Give, quote: str = '"') -> Reading[bool]:
    """Pass on the content of the string whose opening quote was read; False for an invalid escape."""
    while True:
        ends = [at for at in (source.text.find(mark, source.at) for mark in (quote, "\\")) if at >= 0]
        _pass_on(source, min(ends, default=len(source.text)), give)
        if not ends:
            yield from source.more()
        elif source.text[source.at] == quote:
            source.at += 1
            return True
        else:
            said = yield from _escaped(source)
            if said is None:
                return False
            source.take()
            give(said)


def _escaped(source: TextSource) -> Reading[str | None]:
    """Read an escape; both halves of a character beyond U+FFFF."""
    size = 2
    while True:
        while len(source.text) - source.at < size:
            yield from source.more()
        escape = source.text[source.at : source.at + size]
        if escape[1] == "u" and size == 2:
            size = 6
            continue
        if escape[1] == "'":
            said = "'"  # Python's
        else:
            try:
                said = json.loads(f'"{escape}"')
            except ValueError:
                return None
        if size == 6 and "\ud800" <= said <= "\udbff":
            while len(source.text) - source.at < 8:
                yield from source.more()
            if source.text.startswith("\\u", source.at + 6):
                size = 12
                continue
        source.at += size
        return whole_characters(said)


def whole_characters(text: str, halves: Literal["replace", "ignore"] = "replace") -> str:
    """Return a text with both halves of a surrogate pair as their character; one alone is U+FFFD, or left out."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", halves)


def read_json(text: str) -> Any:
    """Return what JSON says, U+FFFD for half of a surrogate pair, which is no text. Raises ValueError."""
    said = json.dumps(json.loads(text), ensure_ascii=False)
    return json.loads(whole_characters(said))


def quoted(text: str) -> str:
    """Return text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _give_word(word: str, give: Give) -> None:
    word = {"True": "true", "False": "false", "None": "null"}.get(word, word)
    try:
        json.loads(word)
    except ValueError:
        word = json.dumps(word, ensure_ascii=False)
    give(word)


def stream_gemma(source: TextSource, give: Give) -> Reading[bool]:
    """Pass on Gemma's form of an object, ``{city:<|"|>Paris<|"|>,days:3}``, as JSON; False if it is malformed."""
    closers: list[str] = []
    while True:
        mark = yield from source.skip_space()
        if mark in _CLOSER:
            closers.append(_CLOSER[mark])
        if mark in "{}[],:":
            _pass_on(source, source.at + 1, give)
            if mark in "}]" and (not closers or closers.pop() != mark):
                return False
            if not closers:
                return True
        elif mark == "<":
            if not (yield from source.literal(GEMMA_QUOTE)):
                return False
            source.take()
            give('"')
            yield from source.stream_until([GEMMA_QUOTE], lambda text: give(quoted(text)))
            source.take()
            give('"')
        else:
            word, delimiter = yield from source.until([":", ",", "}", "]"], _LONGEST_WORD)
            if not delimiter:
                return False
            source.at -= 1
            source.take()
            if delimiter == ":":
                give(json.dumps(word.strip(), ensure_ascii=False))
            else:
                _give_word(word.strip(), give)


def stream_python(source: TextSource, give: Give, depth: int = 0) -> Reading[bool]:
    """Pass on a Python literal as JSON; False if it is malformed or nested too deeply."""
    mark = yield from source.skip_space()
    if mark in "\"'":
        source.at += 1
        source.take()
        give('"')
        is_whole = yield from stream_string(source, lambda text: give(quoted(text)), quote=mark)
        give('"')
        return is_whole
    if mark not in _CLOSER:
        word, delimiter = yield from source.until([",", ")", "]", "}", ":"], _LONGEST_WORD)
        if not delimiter:
            return False
        source.at -= 1
        source.take()
        _give_word(word.strip(), give)
        return True
    _pass_on(source, source.at + 1, give)
    while (next_one := (yield from source.skip_space())) != _CLOSER[mark]:
        if next_one in ",:":
            _pass_on(source, source.at + 1, give)
        elif depth > _DEEPEST or not (yield from stream_python(source, give, depth + 1)):
            return False
    _pass_on(source, source.at + 1, give)
    return True


# What DeepSeek V3.2 and Kimi K3 say of an argument that is text.
_IS_TEXT = ("true", "string")
_LONGEST_PYTHON = 100_000


def is_text_by(schema: Mapping[str, Any], key: str, kind: str) -> bool | None:
    """Return whether an argument is text, by what the model says of it, else by the schema; None if nobody says."""
    if kind in _IS_TEXT:
        return True
    if kind:
        return False
    properties = schema.get("properties")
    found = properties.get(key) if isinstance(properties, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    type_ = found.get("type")
    if type_ == "string" or (isinstance(found.get("enum"), list) and all(isinstance(e, str) for e in found["enum"])):
        return True
    return False if isinstance(type_, str) else None


def value_as_json(text: str, is_text: bool | None, keyed: KeyedArguments) -> str:
    """Return a value as JSON. A text that is neither JSON nor a Python literal becomes a string."""
    text = text.strip()
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    else:
        return text
    if keyed.before_key in text and ANY in keyed.close:
        try:
            nested = _nested(text, keyed)
            if nested is not None:
                return json.dumps(nested, ensure_ascii=False)
        except RecursionError:
            pass
    if is_text is False and len(text) < _LONGEST_PYTHON:
        # Templates that write values with jinja's own ``string`` teach models Python's notation.
        try:
            return json.dumps(ast.literal_eval(text), ensure_ascii=False, allow_nan=False)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
        if text in ("true", "false", "null"):
            return text
    return json.dumps(text, ensure_ascii=False)


def _nested(text: str, keyed: KeyedArguments) -> Any:
    """Return an object, or a list of ``item``, whose entries stand between markers like arguments: MiniMax M3."""
    found: list[tuple[str, Any]] = []
    text = text.strip()
    while text:
        key, is_key, behind = text.removeprefix(keyed.before_key).partition(keyed.after_key)
        inner, is_closed, rest = behind.partition(keyed.close.replace(ANY, key))
        if not (text.startswith(keyed.before_key) and is_key and is_closed):
            return None
        value = _nested(inner, keyed) if keyed.before_key in inner else json.loads(value_as_json(inner, None, keyed))
        found.append((key, value))
        text = rest.strip()
    return [value for _, value in found] if all(key == "item" for key, _ in found) else dict(found)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
