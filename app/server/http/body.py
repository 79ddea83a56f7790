"""The base of all request bodies, and the body of an answer: how it is wanted, and how many numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, to_json
from starlette.requests import HTTPConnection
from starlette.responses import Response

from app.server.http.errors import ApiError, from_validation, refuse, renamed
from models.formatting.json_values import plain

_MOST_DIGITS = 6
_MOST_FIELDS = 1_000
LISTED, MOST_LISTED = 20, 100  # where a query does not say how many, and at most


def _fail_fast(schema: Any) -> None:  # stands before what uses it while it is made
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "dict"):
            schema["fail_fast"] = True
        for part in schema.values():
            _fail_fast(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _fail_fast(part)


class Body(BaseModel):
    """Refuses unknown fields and does not turn text into numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let lists end at their first wrong entry: a million errors would hold up the server for a minute."""
        schema = handler(source)
        _fail_fast(handler.resolve_ref_schema(schema))
        return schema


class LenientBody(Body):
    """An object inside a body. Clients send back what they got from elsewhere: what is not known is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


class WholeNumbers(Body):
    """Takes a whole number also with a point, as 10.0: some languages write no other."""

    @model_validator(mode="before")
    @classmethod
    def _without_point(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if len(value) > _MOST_FIELDS:  # each that is not known would be an error of its own
            raise PydanticCustomError("too_many_fields", "", {"n": len(value), "most": _MOST_FIELDS})
        whole = {
            name: int(value[name])
            for name in value.keys() & _integers(cls)
            if isinstance(value[name], float) and value[name].is_integer()
        }
        return value | whole if whole else value


def _or_none(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        return None


HINT = WrapValidator(_or_none)
"""Marks a field that changes no answer: a value that it cannot have asks for nothing, as at llama-server."""


@cache
def _integers(body: type[Body]) -> frozenset[str]:
    """Return the fields that take integers and no other numbers."""
    kinds = {name: get_args(field.annotation) or (field.annotation,) for name, field in body.model_fields.items()}
    return frozenset(name for name, members in kinds.items() if int in members and float not in members)


_Body = TypeVar("_Body", bound=Body)


def valid(kind: type[_Body], fields: Mapping[str, Any], names: Mapping[str, str]) -> _Body:
    """Return the body that another protocol's fields make; raises ApiError and BadRequest, which name its fields.

    ``names`` are those of the fields there, by ours.
    """
    with renamed(names):
        try:
            return kind.model_validate(fields)
        except ValidationError as error:
            raise from_validation((dict(one) for one in error.errors()), names) from None


def query_number(http: HTTPConnection, name: str, usual: int, most: int) -> int:
    """Return a number of the query, from 1; ``usual`` where it has none, at most ``most``. Raises ApiError."""
    text = http.query_params.get(name, str(usual))
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or int(text) < 1:
        raise refuse(400, f"{name} must be a number from 1 to {most}.", param=name)
    return min(int(text), most)


def asked_page(http: HTTPConnection, listed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the part of a list that ``after`` and ``limit`` of the query ask for. Raises ApiError."""
    limit, after = query_number(http, "limit", LISTED, MOST_LISTED), http.query_params.get("after")
    begin = 0 if after is None else next((i + 1 for i, one in enumerate(listed) if one.get("id") == after), None)
    if begin is None:
        raise not_listed(after)
    return page(listed[begin : begin + limit], has_more=len(listed) > begin + limit)


def not_listed(after: str | None) -> ApiError:
    """Return the error for a page behind what is not in the list: with the first page clients would never end."""
    return refuse(400, f"There is no {after!r} in this list.", param="after")


def page(data: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return a part of a list in OpenAI's shape."""
    ids = [one.get("id") for one in data] or [None]
    return {"object": "list", "data": list(data), "first_id": ids[0], "last_id": ids[-1], "has_more": has_more}


def wants_facts(http: HTTPConnection) -> bool:
    """Return whether a client says sentences itself (``Prefer: facts``): others get them in English."""
    return http.headers.get("prefer") == "facts"


def as_asked(http: HTTPConnection, value: Any) -> Any:
    """Return what is answered, its sentences with their facts for those who want them."""
    return plain(value) if wants_facts(http) else value


def json_response(data: Any) -> Response:
    """Return a response of many numbers, which ``json`` writes ten times as slowly; null for what JSON cannot say."""
    return Response(to_json(data, inf_nan_mode="null"), media_type="application/json")
