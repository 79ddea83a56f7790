"""The routes of the model library: each asks the library's process, and one streams what happens there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_type_hints

from fastapi import Request as HttpRequest
from fastapi.responses import Response
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from app.environment.paths import models_folder
from app.server.calls.model_pool import pool_of
from app.server.http.body import Body, wants_facts
from app.server.http.described import JSON, Schema
from app.server.http.errors import ApiError, from_validation, refuse
from app.server.http.sse import DONE, EventStream, encode_event, while_connected
from app.server.library.worker import library_of
from core.values.errors import SlipstreamError
from models.formatting.sentence import without_facts
from models.library.requests import ROUTES, MoveModels, RemoveModel, Route

_NEEDS_KEY = "Only a server with an API key lets this be changed: start it with --api-key."
Handler = Callable[[HttpRequest], Awaitable[Response]]
_Form = tuple[tuple[Route, str], Literal["validation", "serialization"], TypeAdapter[Any]]


def handler_of(route: Route) -> Handler:
    """Return what answers a route: the answer as JSON, or in its parts where the client accepts an event stream."""

    async def handle(http: HttpRequest) -> Response:
        if route.needs_key:
            _check_key(http)
        text = await http.body() if route.method == "POST" else json.dumps(dict(http.query_params)).encode()
        try:
            body = _body(route.request).model_validate_json(text or b"{}")
        except ValidationError as error:
            raise from_validation(dict(problem) for problem in error.errors()) from None
        fields = body.model_dump()
        if route.request is RemoveModel and fields["for_good"]:
            _check_key(http)  # what is in the trash could be taken back
        parts = library_of(http).ask(route.request.__name__, fields)
        if route.request in (RemoveModel, MoveModels):
            parts = _out_of_memory(http, parts, fields.get("name"))
        if not wants_facts(http):
            parts = _in_english(parts)
        if "text/event-stream" in http.headers.get("accept", ""):
            return EventStream(_events(parts))
        # The library removes a model whether or not somebody waits, and until then it must not come back to memory.
        is_kept = route.request is RemoveModel
        found = await (_all(parts) if is_kept else while_connected(http.receive, _all(parts)))
        # In ASCII: names of files may hold what UTF-8 cannot.
        return Response(json.dumps(_whole(found)), media_type="application/json")

    handle.__name__, handle.__doc__ = route.request.__name__, route.request.__doc__  # for our OpenAPI
    return handle


class _AsSent(GenerateJsonSchema):
    """Requires all fields of a value that is sent, those with a default too."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Return whether a field is always there."""
        return self.mode == "serialization" or super().field_is_required(field, total)


def describe(document: Schema) -> None:
    """Add to our OpenAPI what each route takes, from what checks it, and what it answers, from what is sent."""
    forms: list[_Form] = [((route, "taken"), "validation", TypeAdapter(_body(route.request))) for route in ROUTES]
    forms += [((route, "sent"), "serialization", TypeAdapter(route.answer)) for route in ROUTES]
    found, definitions = TypeAdapter.json_schemas(
        forms, ref_template="#/components/schemas/{model}", schema_generator=_AsSent
    )
    schemas: dict[str, Schema] = definitions["$defs"]
    for route in ROUTES:
        operation, name = document["paths"][route.path][route.method.lower()], _body(route.request).__name__
        operation["responses"]["200"]["content"][JSON]["schema"] = found[(route, "sent"), "serialization"]
        if route.method == "POST":
            reference = found[(route, "taken"), "validation"]
            operation["requestBody"] = {
                "required": "required" in schemas[name],
                "content": {JSON: {"schema": reference}},
            }
        else:
            fields = schemas.pop(name)
            operation["parameters"] = [
                {"name": field, "in": "query", "required": field in fields.get("required", ()), "schema": schema}
                for field, schema in fields["properties"].items()
            ]
    document["components"]["schemas"] |= schemas


def _check_key(http: HttpRequest) -> None:
    if not http.app.state.keys.is_needed:
        raise refuse(403, _NEEDS_KEY, code="api_key_needed")


async def _out_of_memory(
    http: HttpRequest, parts: AsyncGenerator[Any, None], name: str | None
) -> AsyncGenerator[Any, None]:
    """Yield the parts of an answer while the model of this name (None: all of the models folder) is not in memory.

    What lies elsewhere is neither removed nor moved, so it stays.
    """
    pool = pool_of(http)
    folder, file = models_folder(), None
    if name is not None:
        with suppress(ApiError, SlipstreamError):  # the library says what is wrong with the name
            file = (await asyncio.to_thread(pool.find, name)).path

    def goes(path: Path) -> bool:
        return path.is_relative_to(folder) and (name is None or path == file)

    async with pool.without(goes), aclosing(parts):
        async for part in parts:
            yield part


async def library_events(http: HttpRequest) -> Response:
    """Stream what happens in the library, and begin with its downloads; the library's process is started for it."""
    news = library_of(http).news()
    return EventStream(_news(news if wants_facts(http) else _in_english(news)))


async def _news(news: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    async for one in news:
        yield encode_event(one)


async def _in_english(parts: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    async with aclosing(parts):
        async for part in parts:
            yield without_facts(part)


async def _events(parts: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    async for part in parts:
        yield encode_event(part)
    yield DONE


async def _all(parts: AsyncGenerator[Any, None]) -> list[Any]:
    async with aclosing(parts):
        return [part async for part in parts]


def _whole(parts: list[Any]) -> Any:
    """Return an answer of several parts as one: their lists joined, and the rest as in the last one."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return {
        name: [item for part in parts for item in part[name]] if isinstance(last, list) else last
        for name, last in parts[-1].items()
    }


@cache
def _body(kind: type) -> type[BaseModel]:
    """Return what checks a request's fields as those of every other body."""
    hints = get_type_hints(kind)
    listed: dict[str, Any] = {
        field.name: (hints[field.name], ... if field.default is MISSING else field.default) for field in fields(kind)
    }
    return create_model(kind.__name__, __base__=Body, __doc__=kind.__doc__, **listed)
