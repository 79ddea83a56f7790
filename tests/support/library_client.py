"""A client of the library's routes that waits for answers, for tests that are no window.

Each answer has the form that our OpenAPI describes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from models.formatting.json_values import value_of
from models.library.requests import EVENTS, ROUTES, Route
from models.library.values import Download, Quantising, Trouble, TroubleKind
from tools.stand_ins.library_server import KEY, LibraryServer

# Longer than measuring this machine takes while other tests keep its cores, shorter than pytest waits.
SECONDS = 240.0
ROUTE_OF = {route.request: route for route in ROUTES}
_forms: dict[Route, Draft202012Validator] = {}  # of answers, as any server describes them


class LibraryClient:
    """Asks a library over HTTP and waits; news is kept."""

    def __init__(self, server: LibraryServer) -> None:
        self.server = server
        self.http = httpx.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=SECONDS, trust_env=False
        )
        self.news: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, request: object) -> Any:
        """Return what answers a request, or a Trouble."""
        route = ROUTE_OF[type(request)]
        answer = self.http.request(route.method, route.path, **_given(request))
        if answer.status_code == 200:
            self._form_of(route).validate(answer.json())
        return _answer(route.answer, answer)

    def get(self, request: object) -> Any:
        """Return what answers; trouble fails the test."""
        answer = self.ask(request)
        assert not isinstance(answer, Trouble), answer
        return answer

    @contextmanager
    def parts(self, request: object) -> Iterator[Iterator[Any]]:
        """Ask for an answer in parts, and give them as they come; the last may be a Trouble."""
        route = ROUTE_OF[type(request)]
        headers = {"Accept": "text/event-stream"}
        with self.http.stream(route.method, route.path, headers=headers, **_given(request)) as response:
            if response.status_code != 200:
                response.read()
                yield iter([_trouble(response.json())])
            else:
                yield (_trouble(event) if "error" in event else self._part(route, event) for event in _events(response))

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The downloads as they were told last."""
        return self._told("downloads", tuple[Download, ...])

    @property
    def quantisings(self) -> tuple[Quantising, ...]:
        """The copies being made as they were told last."""
        return self._told("quantisings", tuple[Quantising, ...])

    def heard(self, name: str) -> bool:
        """Return whether there was news of this name."""
        return any(news["news"] == name for news in self.news)

    def wait_for(self, reached: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, SECONDS), self.news[-3:]

    def close(self) -> None:
        self.server.close()
        self._reader.join(SECONDS)
        self.http.close()

    def _part(self, route: Route, found: Any) -> Any:
        self._form_of(route).validate(found)
        return value_of(route.answer, found)

    def _form_of(self, route: Route) -> Draft202012Validator:
        if not _forms:
            document = self.http.get("/openapi.json").json()
            for one in ROUTES:
                described = document["paths"][one.path][one.method.lower()]["responses"]["200"]
                form = described["content"]["application/json"]["schema"]
                _forms[one] = Draft202012Validator(form | {"components": document["components"]})
        return _forms[route]

    def _told(self, name: str, kind: Any) -> Any:
        return next((value_of(kind, news["value"]) for news in reversed(self.news) if news["news"] == name), ())

    def _read(self) -> None:
        # The server may have left before it is asked, and may be killed at any time.
        with suppress(httpx.TransportError), self.http.stream("GET", EVENTS, timeout=None) as response:
            for event in _events(response):
                with self._changed:
                    self.news.append(event)
                    self._changed.notify_all()


def give_places(folder: Path, hub: str, patch: pytest.MonkeyPatch) -> None:
    """Give what is started from now on folders of its own below ``folder``, and a Hub of its own."""
    for name in ("home", "xdg"):
        (folder / name).mkdir()
    patch.setenv("HF_ENDPOINT", hub)
    patch.setenv("HF_HOME", str(folder / "hf-home"))
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("XDG_DATA_HOME", str(folder / "xdg"))
    patch.setenv("SLIPSTREAM_HOME", str(folder / "slipstream"))
    patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def _given(request: Any) -> dict[str, Any]:
    return {"params" if ROUTE_OF[type(request)].method == "GET" else "json": asdict(request)}


def _answer(kind: Any, response: httpx.Response) -> Any:
    found = response.json()
    if response.status_code != 200:
        return _trouble(found)
    return None if found is None or kind is None else value_of(kind, found)


def _trouble(found: Any) -> Trouble:
    kinds = {kind.value: kind for kind in TroubleKind}
    return Trouble(found["error"]["message"], kinds.get(found["error"]["code"], TroubleKind.OTHER))


def _events(response: httpx.Response) -> Iterator[Any]:
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))
