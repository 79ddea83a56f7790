"""Values as lines of JSON and back: one request, answer or piece of news per line.

to the library    {"id": 3, "ask": "ShowModel", "with": {"name": "..."}}
from it           {"id": 3, "value": ..., "more": false}     the last part of an answer has no "more"
                  {"id": 3, "trouble": {"sentence": "..."}}
                  {"news": "downloads", "value": [...]}      or "quantisings", or "judged": what was found of some rows
                  {"news": "models"}                         the list has changed
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from models.formatting.json_values import plain, value_of
from models.library.requests import ROUTES
from models.library.values import Download, Quantising, RowReport, Trouble

KINDS: dict[str, type] = {route.request.__name__: route.request for route in ROUTES}
DOWNLOADS, MODELS, QUANTISINGS, JUDGED = "downloads", "models", "quantisings", "judged"


class BadMessageLine(ValueError):
    """A line that is no message."""


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """A part of what answers a request, as JSON gave it, or the trouble."""

    id: int
    value: Any = None
    trouble: Trouble | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class LibraryNews:
    """What happened without being asked for; ``downloads``, ``quantisings`` or ``judged`` are set for news of these."""

    name: str
    downloads: tuple[Download, ...] = ()
    quantisings: tuple[Quantising, ...] = ()
    judged: tuple[RowReport, ...] = ()


def request_line(number: int, request: Any) -> bytes:
    """Return a request as a line."""
    return _line({"id": number, "ask": type(request).__name__, "with": asdict(request)})


def answer_line(number: int, value: Any, *, has_more: bool = False) -> bytes:
    """Return a part of an answer as a line."""
    return _line({"id": number, "value": plain(value)} | ({"more": True} if has_more else {}))


def trouble_line(number: int, trouble: Trouble) -> bytes:
    """Return what went wrong with a request as a line."""
    return _line({"id": number, "trouble": asdict(trouble)})


def news_line(name: str, value: Any = None) -> bytes:
    """Return a piece of news as a line."""
    return _line({"news": name, "value": plain(value)})


def read_request(line: bytes) -> tuple[int, Any]:
    """Read a line to the library; raises BadLine."""
    found = _object(line)
    number, kind = found.get("id"), KINDS.get(str(found.get("ask")))
    if type(number) is not int or kind is None:
        raise BadMessageLine("no request")
    try:
        return number, value_of(kind, found.get("with"))
    except (TypeError, ValueError, KeyError) as error:
        raise BadMessageLine(str(error)) from error


def read_message(line: bytes) -> LibraryAnswer | LibraryNews:
    """Read a line from the library; raises BadLine."""
    found = _object(line)
    try:
        if "news" in found:
            return _news(str(found["news"]), found.get("value"))
        trouble = found.get("trouble")
        told = value_of(Trouble, trouble) if trouble is not None else None
        return LibraryAnswer(int(found["id"]), found.get("value"), told, bool(found.get("more")))
    except (TypeError, ValueError, KeyError) as error:
        raise BadMessageLine(str(error)) from error


def _news(name: str, value: Any) -> LibraryNews:
    if name == DOWNLOADS:
        return LibraryNews(name, downloads=value_of(tuple[Download, ...], value))
    if name == QUANTISINGS:
        return LibraryNews(name, quantisings=value_of(tuple[Quantising, ...], value))
    if name == JUDGED:
        return LibraryNews(name, judged=value_of(tuple[RowReport, ...], value))
    return LibraryNews(name)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadMessageLine("no JSON") from error
    if not isinstance(found, dict):
        raise BadMessageLine("no object")
    return found


def _line(found: dict[str, Any]) -> bytes:
    # Names of files may hold what UTF-8 cannot; ASCII carries everything, and no line feed of its own.
    return json.dumps(found).encode() + b"\n"
