"""The server's routes of the library on a real socket, without an engine, in front of the library's real process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import httpx
import psutil
import uvicorn

from app.client.library_process import library_command, library_environment
from app.server.application import create_application
from app.server.calls.model_host import ModelHost
from app.server.http.listening_socket import listen
from app.server.library_worker import LibraryWorker
from app.settings.server_settings import ServerSettings
from models.formatting.json_values import value_of
from models.library.requests import EVENTS, ROUTES
from models.library.values import Download, Quantising, Trouble, TroubleKind
from tests.support.fork_server import CAN_FORK, forked_library_command

SECONDS = 60.0
KEY = "key-of-the-test"
ROUTE_OF = {route.request: route for route in ROUTES}


class LibraryServer:
    """A server whose library starts as the app starts it, or, in no time, by a fork of one that has its imports."""

    def __init__(self, *, is_forked: bool = CAN_FORK, api_key: str | None = KEY, **environment: str) -> None:
        # The environment is the test's, in which no setting of the user is left.
        merged = {**library_environment(), **environment}
        settings = ServerSettings(port=0, api_key=api_key)
        application = create_application(settings, cast(ModelHost, SimpleNamespace(attach=lambda: None)))
        application.state.library = LibraryWorker(
            forked_library_command if is_forked else library_command, lambda: merged, (0.1, 0.2)
        )
        self._listening = listen(settings.host, 0)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        config = uvicorn.Config(application, loop="asyncio", log_config=None, lifespan="on")
        config.timeout_graceful_shutdown = 1
        self._server = _Server(config)
        self._server.library = application.state.library
        self._others = {child.pid for child in psutil.Process().children()}
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],))
        self._thread.start()

    @property
    def process(self) -> psutil.Process:
        """The library's process."""
        names = ("fork_client.py", "app.library_service")
        (found,) = (
            child
            for child in psutil.Process().children()
            if child.pid not in self._others and any(name in " ".join(child.cmdline()) for name in names)
        )
        return found

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(SECONDS)
        self._listening.close()


class _Server(uvicorn.Server):
    """Ends the streams of news when it is asked to leave."""

    library: LibraryWorker

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.library.close()
        await super().shutdown(sockets)


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
        return _answer(route.answer, answer)

    def get(self, request: object) -> Any:
        """Return what answers; trouble fails the test."""
        answer = self.ask(request)
        assert not isinstance(answer, Trouble), answer
        return answer

    @contextmanager
    def parts(self, request: object) -> Iterator[Iterator[Any]]:
        """Ask for an answer in parts, and give them as they come."""
        route = ROUTE_OF[type(request)]
        headers = {"Accept": "text/event-stream"}
        with self.http.stream(route.method, route.path, headers=headers, **_given(request)) as response:
            if response.status_code != 200:
                response.read()
                yield iter([_answer(route.answer, response)])
            else:
                yield (value_of(route.answer, event) for event in _events(response))

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

    def _told(self, name: str, kind: Any) -> Any:
        return next((value_of(kind, news["value"]) for news in reversed(self.news) if news["news"] == name), ())

    def _read(self) -> None:
        with self.http.stream("GET", EVENTS, timeout=None) as response:
            try:
                for event in _events(response):
                    with self._changed:
                        self.news.append(event)
                        self._changed.notify_all()
            except httpx.RemoteProtocolError:
                return  # it was killed


def _given(request: Any) -> dict[str, Any]:
    return {"params" if ROUTE_OF[type(request)].method == "GET" else "json": asdict(request)}


def _answer(kind: Any, response: httpx.Response) -> Any:
    found = response.json()
    if response.status_code != 200:
        error = found["error"]
        kinds = {kind.value: kind for kind in TroubleKind}
        return Trouble(error["message"], kinds.get(error["code"], TroubleKind.OTHER))
    return None if found is None or kind is None else value_of(kind, found)


def _events(response: httpx.Response) -> Iterator[Any]:
    for line in response.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))
