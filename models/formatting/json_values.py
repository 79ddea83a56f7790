"""Converts frozen values to JSON and back. Input is checked, since any program may have written it."""

import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from models.formatting.sentence import Sentence, as_object, from_object

_Value = TypeVar("_Value")
_MISFITS = (TypeError, ValueError, KeyError)


def plain(value: Any) -> Any:
    """Return ``value`` as JSON types; sentences keep their facts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sentence):
        return as_object(value)
    return value.value if isinstance(value, Enum) else value


def value_of(kind: Any, found: Any) -> Any:
    """Convert ``found`` (JSON types) to a value of ``kind``; raises TypeError, ValueError or KeyError.

    Unknown fields are ignored, and missing ones take their defaults. Numbers must be finite.
    """
    return _reader(kind)(found)


def fitting(kind: type[_Value], found: Any) -> _Value | None:
    """Convert ``found`` as far as it fits, for what other versions and programs have written.

    Fields of another type take their defaults, and entries of another type are left out of tuples. None if ``found`` is
    no object, or lacks a field without a default.
    """
    try:
        value: _Value = _reader(cast("Any", kind), is_lenient=True)(found)
    except _MISFITS:
        return None
    return value


@cache
def _reader(kind: Any, *, is_lenient: bool = False) -> Callable[[Any], Any]:
    """Return a function that reads values of a type.

    It is made once per type, because lists have thousands of values.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        read = _reader(inner, is_lenient=is_lenient)
        return lambda found: None if found is None else read(found)
    if origin is tuple:
        return _tuple_reader(arguments, is_lenient)
    if origin in (Mapping, dict):
        item = _reader(arguments[1], is_lenient=is_lenient)
        return lambda found: {name: item(one) for name, one in _checked(dict, found).items()}
    if origin is Literal:
        return lambda found: arguments[arguments.index(found)]
    if is_dataclass(kind):
        return _object_reader(kind, is_lenient)
    if kind is Any:
        return lambda found: found
    if kind is str:
        return lambda found: from_object(found) if isinstance(found, dict) else _checked(str, found)
    if kind is datetime:
        return datetime.fromisoformat
    if kind is Path:
        return lambda found: Path(_checked(str, found))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is float:
        return _number
    return lambda found: found if type(found) is kind else _checked(kind, found)


def _tuple_reader(arguments: tuple[Any, ...], is_lenient: bool) -> Callable[[Any], Any]:
    if arguments[-1] is Ellipsis:
        item = _reader(arguments[0], is_lenient=is_lenient)
        if not is_lenient:
            return lambda found: tuple(map(item, _checked(list, found)))
        return lambda found: tuple(_each(item, _checked(list, found)))
    items = [_reader(argument, is_lenient=is_lenient) for argument in arguments]
    return lambda found: tuple(item(one) for item, one in zip(items, _checked(list, found), strict=True))


def _each(read: Callable[[Any], Any], found: Iterable[Any]) -> Iterator[Any]:
    """Yield what is read of each; one that does not fit is left out."""
    for one in found:
        with suppress(*_MISFITS):
            yield read(one)


def _object_reader(kind: Any, is_lenient: bool) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name], is_lenient=is_lenient) for field in fields(kind)}

    def read(found: Any) -> Any:
        known = _checked(dict, found)
        try:  # nearly always all of it fits, and figures come ten times a second
            return kind(**{name: reader(known[name]) for name, reader in readers.items() if name in known})
        except _MISFITS:
            if not is_lenient:
                raise
        names = (name for name in readers if name in known)
        return kind(**dict(_each(lambda name: (name, readers[name](known[name])), names)))

    return read


def _number(found: Any) -> Any:
    if not math.isfinite(found if type(found) is float else _checked((int, float), found)):
        raise ValueError("no finite number")
    return found


def _checked(kind: Any, found: Any) -> Any:
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise TypeError(f"{type(found).__name__} where {kind} belongs")
    return found
