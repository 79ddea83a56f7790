"""Routes of the server's owner: the port for other programs, the keys, and the log."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.server.calls.schemas import Text
from app.server.http.body import Body, query_number
from app.server.http.errors import STATUSES, ApiError, refuse
from app.server.http.http_server import HttpServer
from app.server.http.keys import ApiKeys
from app.server.http.limits import AllowedOrigins, check_here, check_owner
from app.server.http.listening_socket import EVERYWHERE, PortForbidden, PortTaken, lan_address, listen
from app.settings.api_keys import endpoint_key
from app.settings.server_settings import DEFAULT_HOST, DEFAULT_PORT
from core.values.addresses import origins_of
from core.values.errors import BadOption, SlipstreamError
from models.formatting.sentence import Sentence, joined
from models.formatting.system_error import system_reason

_LINES, _MOST_LINES = 100, 1_000
_MOST_ORIGINS = 64


class EndpointBody(Body):
    """The body of POST /slipstream/endpoint; what is left out stays as it is."""

    open: bool
    lan: bool = False
    port: int = Field(default=DEFAULT_PORT, ge=1_024, le=65_535)
    new_key: bool = False
    origins: list[Text] | None = Field(default=None, max_length=_MOST_ORIGINS)


class KeyBody(Body):
    """The body of POST /slipstream/keys."""

    name: str = Field(min_length=1)
    may_manage: bool = False


class KeyChangeBody(Body):
    """The body of POST /slipstream/keys/NAME."""

    may_manage: bool


@dataclass(slots=True)
class OpenPort:
    """The port by which other programs reach a server that was started for one caller."""

    server: HttpServer
    keys: ApiKeys
    allowed: AllowedOrigins
    is_open: bool = False
    is_lan: bool = False
    port: int = DEFAULT_PORT
    key: str = ""
    origins: tuple[str, ...] = ()
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def set(self, body: EndpointBody) -> None:
        """Open or shut it. Raises PortTaken, BadOption and SlipstreamError; then it is as before, or shut."""
        async with self._changing:  # two at once would leave a port open that nothing shuts any more
            await self._set(body)

    async def _set(self, body: EndpointBody) -> None:
        if body.origins is not None:
            self.origins = origins_of(body.origins)
            self.allowed.choose(self.origins)
        wanted = (body.open, body.lan, body.port)
        if body.open:
            key = await asyncio.to_thread(endpoint_key, anew=body.new_key)
            self.keys.open_to_others(key)
            self.key = key
        if wanted == (self.is_open, self.is_lan, self.port):
            return
        self.server.unlisten()
        self.is_open, self.is_lan, self.port = False, body.lan, body.port
        if body.open:
            listening = await asyncio.to_thread(listen, EVERYWHERE if body.lan else DEFAULT_HOST, body.port)
            await self.server.listen(listening)
            self.is_open = True

    def as_dict(self) -> dict[str, Any]:
        """Return how others reach the server: ``urls`` has the address here, and behind it the one in the network."""
        hosts = [DEFAULT_HOST, *([lan] if self.is_lan and (lan := lan_address()) else [])]
        urls = [f"http://{host}:{self.port}" for host in hosts] if self.is_open else []
        return {
            "object": "endpoint",
            "open": self.is_open,
            "lan": self.is_lan,
            "port": self.port,
            "urls": urls,
            "key": self.key if self.is_open else None,
            "origins": list(self.origins),
        }


async def get_endpoint(http: HttpRequest) -> Response:
    """Say whether other programs may use this server, at which addresses and with which key."""
    check_owner(http, "The endpoint is shown")
    return JSONResponse(_port(http).as_dict())


async def set_endpoint(body: EndpointBody, http: HttpRequest) -> Response:
    """Open the port for other programs of this machine, or of its network, or shut it."""
    check_owner(http, "The endpoint is changed")
    port = _port(http)
    try:
        origins_of(body.origins or ())
    except BadOption as error:
        raise refuse(400, error.message, param="origins", code="invalid_origin") from None
    try:
        await port.set(body)
    except PortTaken as taken:
        raise _PortTaken(body.port, taken.free) from None
    except PortForbidden:
        message = Sentence("The system does not let this account use port {port}.", port=str(body.port))
        raise refuse(400, message, param="port", code="port_forbidden") from None
    except BadOption as error:
        raise refuse(503, error.message, code="cannot_listen") from None
    return JSONResponse(port.as_dict())


class _PortTaken(ApiError):
    """Another program has the port; a port that is free goes with it, where one was found."""

    def __init__(self, port: int, free: int | None) -> None:
        other = Sentence("Port {port} is free.", port=str(free)) if free else ""
        message = joined((Sentence("Another program uses port {port}.", port=str(port)), other))
        super().__init__(STATUSES[400]._replace(code="port_taken"), message, param="port")
        self._free = free

    def body(self) -> dict[str, Any]:
        body = super().body()
        body["error"]["free_port"] = self._free
        return body


async def list_keys(http: HttpRequest) -> Response:
    """List the names of the clients' keys, never the keys."""
    check_owner(http, "Keys are listed")
    found = await asyncio.to_thread(_keys(http).store.all)
    return JSONResponse({"object": "list", "data": [asdict(key) for key in found]})


async def add_key(body: KeyBody, http: HttpRequest) -> Response:
    """Make a key for a client; the answer is the only one that has it."""
    check_owner(http, "Keys are made")
    with _as_bad_request():
        key = await asyncio.to_thread(_keys(http).store.add, body.name, may_manage=body.may_manage)
    return JSONResponse({"name": body.name, "key": key}, 201)


async def change_key(name: str, body: KeyChangeBody, http: HttpRequest) -> Response:
    """Let a client's key manage models, or only use them."""
    check_owner(http, "Keys are changed")
    with _as_bad_request():
        await asyncio.to_thread(_keys(http).store.let, name, may_manage=body.may_manage)
    return JSONResponse({"name": name, "may_manage": body.may_manage})


async def revoke_key(name: str, http: HttpRequest) -> Response:
    """Refuse a client's key from now on."""
    check_owner(http, "Keys are revoked")
    with _as_bad_request():
        await asyncio.to_thread(_keys(http).store.revoke, name)
    return JSONResponse({"name": name, "revoked": True})


async def get_log(http: HttpRequest) -> Response:
    """Return the last lines of the server's log, ``lines`` of them."""
    check_here(http, "The log is shown")
    n_lines = query_number(http, "lines", _LINES, _MOST_LINES)
    return JSONResponse({"lines": await asyncio.to_thread(_last_lines, n_lines)})


def _last_lines(n_lines: int) -> list[str]:
    handlers = (one for one in logging.getLogger().handlers if isinstance(one, logging.FileHandler))
    path = next((one.baseFilename for one in handlers), None)
    if path is None:  # the folder cannot be written
        return []
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, n_lines)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SlipstreamError(
            "The log {path} cannot be read: {reason}.", path=path, reason=system_reason(error)
        ) from None


@contextmanager
def _as_bad_request() -> Iterator[None]:
    try:
        yield
    except BadOption as error:
        raise refuse(400, str(error), param="name") from None


def _keys(http: HttpRequest) -> ApiKeys:
    keys: ApiKeys = http.app.state.keys
    return keys


def _port(http: HttpRequest) -> OpenPort:
    port: OpenPort | None = getattr(http.app.state, "open_port", None)
    if port is None:
        raise refuse(503, "The server is starting: try again in a moment.")
    return port
