"""What an argument between tags is in JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from app.server.replies.reply_format import ANY, KeyedArguments

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


def value_of(text: str, is_text: bool | None, keyed: KeyedArguments) -> str:
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
        value = _nested(inner, keyed) if keyed.before_key in inner else json.loads(value_of(inner, None, keyed))
        found.append((key, value))
        text = rest.strip()
    return [value for _, value in found] if all(key == "item" for key, _ in found) else dict(found)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
