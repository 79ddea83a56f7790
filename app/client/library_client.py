"""The library of a server: what is asked of it goes to its routes, and what it answers comes back as values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from app.client.http_client import Client, ServerRefused
from app.library.trouble import library_error
from models.formatting.json_values import value_of
from models.library.requests import EVENTS, ROUTES
from models.library.values import Download, Quantising, Trouble, TroubleKind

_ROUTE_OF = {route.request: route for route in ROUTES}


class LibraryClient:
    """Asks as ``LibraryService`` answers. Raises LibraryError, and what the client raises."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def answer(self, request: Any) -> Any:
        """Return the answer to one of ``models.library.requests``, whole."""
        route = _ROUTE_OF[type(request)]
        with _library_errors():
            found = self._client.call(route.method, route.path, asdict(request))
        return found if found is None or route.answer is None else value_of(route.answer, found)

    def parts(self, request: Any) -> Iterator[Any]:
        """Yield the parts of the answer as they come."""
        route = _ROUTE_OF[type(request)]
        with _library_errors():
            for part in self._client.events(route.method, route.path, asdict(request)):
                yield value_of(route.answer, part)

    def downloads(self) -> Iterator[tuple[Download, ...]]:
        """Yield the queue of downloads as it is and whenever it changes, until the library or its server stops."""
        return self._news("downloads", tuple[Download, ...])

    def quantisings(self) -> Iterator[tuple[Quantising, ...]]:
        """Yield the smaller copies that are made as they are and whenever one changes, as for downloads."""
        return self._news("quantisings", tuple[Quantising, ...])

    def _news(self, name: str, kind: Any) -> Iterator[Any]:
        for news in self._client.events("GET", EVENTS, {}):
            if news.get("news") == "lost":
                return
            if news.get("news") == name:
                yield value_of(kind, news["value"])


@contextmanager
def _library_errors() -> Iterator[None]:
    try:
        yield
    except ServerRefused as refusal:
        if refusal.code not in set(TroubleKind):
            raise
        trouble = {"sentence": refusal.message, "kind": refusal.code, **refusal.fields}
        raise library_error(value_of(Trouble, trouble)) from refusal
