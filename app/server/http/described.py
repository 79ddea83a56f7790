"""How our OpenAPI describes what routes take in their query, what they answer, and their errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.server.http.errors import ANTHROPIC, is_llama_cpp, is_ollama

JSON, EVENT_STREAM, LINES = "application/json", "text/event-stream", "application/x-ndjson"
TEXT, FILE = "text/plain", "application/octet-stream"
Schema = dict[str, Any]
_WORDS: Schema = {"type": "string"}
_WORDS_OR_NONE: Schema = {"type": ["string", "null"]}
_NUMBERS = ("limit", "lines")  # in queries


def answers(path: str, kinds: Iterable[str], status: int = 200) -> dict[int | str, Schema]:
    """Return the answers of a route: one of these media types, and else an error in the form of its protocol."""
    good: Schema = {kind: {"schema": _WORDS if kind in (TEXT, FILE) else {}} for kind in kinds}
    error = {"description": "An error", "content": {JSON: {"schema": _error(path)}}}
    return {status: {"content": good} if good else {}, "default": error}


def query(names: Iterable[str]) -> list[Schema]:
    """Return the fields of a query, none of which is needed."""
    number: Schema = {"type": "integer", "minimum": 1}
    return [{"name": name, "in": "query", "schema": number if name in _NUMBERS else _WORDS} for name in names]


def form(**fields: Schema) -> Schema:
    """Return the body of a route that takes a form with these fields."""
    schema = _object(**fields)
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "required": list(fields), "properties": fields}


def _error(path: str) -> Schema:
    """Return what ``ApiError.encoded`` gives for a path."""
    if is_ollama(path):
        return _object(error=_WORDS)
    code: Schema = {"type": "integer"} if is_llama_cpp(path) else _WORDS_OR_NONE
    error = _object(message=_WORDS, type=_WORDS, param=_WORDS_OR_NONE, code=code)
    return _object(type={"const": "error"}, error=error) if path.startswith(ANTHROPIC) else _object(error=error)
