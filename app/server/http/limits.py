"""Requests that are refused before a route sees them: foreign hosts and origins, bodies too large or not JSON.

Also what only the owner of a server may change, and keys that it lets.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from secrets import token_hex
from typing import Any

from fastapi import Request as HttpRequest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.http.errors import ANTHROPIC, ApiError, refuse
from app.server.http.keys import ApiKeys, caller, caller_id, manages
from app.server.http.listening_socket import is_socket_path
from app.settings.server_settings import ServerSettings
from core.values.addresses import ALL_ORIGINS, LOCAL_ORIGINS, host_of
from core.values.errors import BadOption
from models.formatting.program import PROGRAM, advice, command

# Six photographs of 4 MB, as base64.
MAX_BODY = 32 * 1024 * 1024
# JSON is read on the event loop, and while it is, no stream goes on. What counts as one value takes at most 50 ns, so
# that the usual body takes no more than a tenth of a second: fractions take six times as long as whole numbers, those
# with exponents twenty times. One that was made for it may take most of a second, by fractions of hundreds of digits
# halfway between two that Python tells apart. Nobody sends many of these; a million whole numbers are the tokens of
# many texts. Beside the marks, a text counts as one, and as many bytes outside of texts as _BYTES_PER_VALUE: digits,
# and spaces. The "e" of a word is no exponent.
MAX_VALUES = 2_000_000
_WEIGHTS = {b",": 1, b"[": 5, b"{": 3, b":": 10, b".": 5, b"e": 12, b"E": 12, b"true": -12, b"false": -12}
_BYTES_PER_VALUE = 8
_COUNTED_AT_ONCE = 256 * 1024
# A refused body is read up to this many bytes, so that the client sees the answer and not a reset connection.
MAX_DRAINED = 2 * MAX_BODY
# A client that sends nothing more of a body for so long has gone without saying so.
BODY_SECONDS = 60.0
# One that sends a byte now and then would hold its place for ever: a body comes as fast as this, in bytes per second,
# from a bad mobile line too.
SLOWEST_BODY = 16 * 1024
# A path that takes forms, and files of this size: those of OpenAI's batches.
UPLOADS, MAX_UPLOAD = "/v1/files", 200 * 1024 * 1024
FORMS = (UPLOADS, "/v1/audio/")
OUR_OWN = "/slipstream/"
# Codex and pi send zstd where they are logged in to ChatGPT.
PACKED = ("gzip", "deflate", "zstd")
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32
_ZSTD_WINDOW = 23  # its logarithm: no HTTP body may need more memory to be unpacked, says RFC 9659
# The key of a scope by which a call of this server to itself is known. No request can bring it.
INTERNAL = "slipstream.internal"
# The last two are how containers of Docker and Podman name the machine that they run on.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "host.docker.internal", "host.containers.internal"})


def is_loopback_name(name: str) -> bool:
    """Return whether a name or an address always means this machine, whoever resolves it."""
    return name in LOOPBACK_NAMES or name.endswith(".localhost") or (name.startswith("127.") and _is_address(name))


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header of this lower-case name."""
    return next((value for key, value in scope["headers"] if key == name), None)


async def send_error(scope: Scope, send: Send, error: ApiError, headers: Mapping[str, str] | None = None) -> None:
    """Send an error as a whole response to the request of ``scope``."""
    body = error.encoded(scope.get("path", ""))
    fields = {"content-type": "application/json", "content-length": str(len(body))} | error.headers()
    fields |= dict(headers or {})
    raw = [(key.encode(), value.encode()) for key, value in fields.items()]
    await send({"type": "http.response.start", "status": error.answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def host_name(authority: str) -> str:
    """Return the name of ``name:port``, without brackets and the dot of a full name, in lower case."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower().removesuffix(".")


class HostCheck:
    """Refuse requests that name another host: a web page can point its own name at this machine (DNS rebinding).

    A page cannot know an API key, so that with one any name will do. It cannot reach a Unix socket either, for which
    clients make names up.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, keys: ApiKeys) -> None:
        self._app, self._keys = app, keys
        self._is_loopback = settings.is_loopback
        names = frozenset(name.lower() for name in settings.allowed_hosts)
        self._names: Collection[str] = names if self._is_loopback else names | _own_names()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400."""
        named = header(scope, b"host") if scope["type"] == "http" else None
        name = host_name((named or b"").decode("latin-1"))
        # Browsers always name the host. Checks of health that speak HTTP/1.0 name none.
        may_be_unnamed = named is None and scope.get("http_version") == "1.0"
        if may_be_unnamed or scope["type"] != "http" or self._is_known(name) or _is_at_socket(scope):
            await self._app(scope, receive, send)
            return
        address, port = scope["server"]
        here = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
        message = (
            f"This server is not known as {name[:80]!r}: use {here}, start it with "
            f"--allow-host {_shown(name)}, or with --api-key, which lets any name in."
        )
        await send_error(scope, send, refuse(400, message, code="invalid_host"))

    def _is_known(self, name: str) -> bool:
        if is_loopback_name(name) or name in self._names or self._keys.is_needed:
            return True
        return not self._is_loopback and _is_address(name)


def _shown(name: str) -> str:
    try:
        return host_of(name[:80])
    except BadOption:
        return "NAME"


def _is_at_socket(scope: Scope) -> bool:
    """Return whether a request came by a Unix socket."""
    address, port = scope.get("server") or ("", None)
    return port is None and is_socket_path(address)


def _own_names() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset({name, f"{name.partition('.')[0]}.local"})


def _is_address(name: str) -> bool:
    # Rebinding needs a name: an address in the Host header is the one the client really connected to.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


# Origins of programs with a browser inside. Their pages are their own, and they need the key as everybody.
PROGRAM_SCHEMES = ("app", "vscode-webview", "tauri", "chrome-extension", "moz-extension")


class AllowedOrigins:
    """The origins that the user names: at the start, and in the window while the server runs."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._given, self._chosen = frozenset(given), frozenset[str]()

    def choose(self, origins: Iterable[str]) -> None:
        """Let pages of these in too, instead of those that were chosen before."""
        self._chosen = frozenset(origins)

    def __contains__(self, origin: str) -> bool:
        named = self._given | self._chosen
        is_local = LOCAL_ORIGINS in named and is_loopback_name(host_name(origin.partition("://")[2]))
        return is_local or origin in named or ALL_ORIGINS in named


class OriginCheck:
    """Refuse requests that a browser sends for a page of another origin, and answer preflights of those that may.

    Allowed are the origins that the user names, "*" for all, and with an API key programs with a browser inside and
    pages of this machine.
    """

    def __init__(self, app: ASGIApp, origins: AllowedOrigins, keys: ApiKeys) -> None:
        self._app, self._origins, self._keys = app, origins, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, answer a preflight, or answer 403."""
        origin = header(scope, b"origin") if scope["type"] == "http" else None
        if origin is None or origin.partition(b"://")[2] == header(scope, b"host"):
            await self._app(scope, receive, send)
            return
        named = origin.decode("latin-1").lower()
        if not (named in self._origins or (self._keys.is_needed and _may_have_key(named))):
            shown = origin.decode("latin-1")[:80]
            let_in = advice(f"start the server with --cors {shown}", "add it under Web pages on the page Server")
            or_key = ", or with --api-key, and give the page that key" if _may_have_key(named) else ""
            message = f"Requests from web pages of {shown} are refused: {let_in} to let that page in{or_key}."
            await send_error(scope, send, refuse(403, message, code="foreign_origin"))
            return
        fields = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method"):
            await _answer_preflight(scope, send, fields)
            return

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message["headers"], *fields, (b"access-control-expose-headers", b"*")],
                }
            await send(message)

        await self._app(scope, receive, send_with_origin)


def _may_have_key(origin: str) -> bool:
    """Return whether pages of this origin are let in where they need a key: programs' own, and this machine's."""
    scheme, _, authority = origin.partition("://")
    return scheme in PROGRAM_SCHEMES or is_loopback_name(host_name(authority))


async def _answer_preflight(scope: Scope, send: Send, fields: list[tuple[bytes, bytes]]) -> None:
    wanted = header(scope, b"access-control-request-headers") or b"*"
    more = [
        (b"access-control-allow-methods", b"GET, POST, DELETE, HEAD"),
        (b"access-control-allow-headers", wanted),
        (b"access-control-max-age", b"600"),
        (b"content-length", b"0"),
    ]
    if header(scope, b"access-control-request-private-network"):
        more.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": [*fields, *more]})
    await send({"type": "http.response.body", "body": b""})


class JsonOnly:
    """Refuse POST bodies that are not declared as JSON: a web page can post other types without asking first.

    ``curl -d`` and many scripts do not declare it: but for our own routes a body counts as JSON whatever it is called,
    unless a browser sends it. Those mark what they send for a page (Fetch Metadata, www.w3.org/TR/fetch-metadata),
    and a page cannot change that; requests of foreign origins were refused before, by OriginCheck.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 415."""
        is_plain = scope["type"] == "http" and not scope["path"].startswith((*FORMS, OUR_OWN))
        if is_plain and header(scope, b"sec-fetch-site") is None:
            others = [field for field in scope["headers"] if field[0] != b"content-type"]
            scope = {**scope, "headers": [*others, (b"content-type", b"application/json")]}
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        # The upload of files takes forms, which a page can post: OriginCheck has refused those of foreign pages.
        if not is_post or scope["path"].startswith(FORMS) or _is_json(header(scope, b"content-type") or b""):
            await self._app(scope, receive, send)
            return
        await send_error(
            scope, send, refuse(415, "Send the body as JSON, with the header 'Content-Type: application/json'.")
        )


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


class BodyLimit:
    """Refuse bodies above ``limit`` bytes, whether the client says their length or sends them in chunks.

    Bodies in gzip, deflate or zstd are unpacked, and the same limit holds for what they become. JSON of more than
    ``MAX_VALUES`` is refused too. A body that stops arriving for ``patience`` seconds is given up, and so is one that
    comes more slowly than ``slowest`` bytes per second once these are over.
    """

    def __init__(
        self, app: ASGIApp, limit: int = MAX_BODY, patience: float = BODY_SECONDS, slowest: float = SLOWEST_BODY
    ) -> None:
        self._app = app
        self._limit = limit
        self._patience = patience
        self._slowest = slowest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a ``receive`` that counts and unpacks, or answer 413 or 415."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = MAX_UPLOAD if scope.get("path") == UPLOADS else self._limit
        declared = _length(header(scope, b"content-length"))
        if declared > limit:
            if declared <= MAX_DRAINED:
                await _drain(receive, MAX_DRAINED, self._patience)
            await send_error(scope, send, refuse(413, _too_large(limit, f"{declared} bytes")), {"connection": "close"})
            return
        encoding = (header(scope, b"content-encoding") or b"identity").strip().lower() or b"identity"
        packed = None
        if encoding != b"identity":
            name, known = encoding.decode("latin-1"), PACKED if _zstd() is not None else PACKED[:-1]
            if name not in (*known, "x-gzip"):
                ways = ", ".join(known)
                message = f"The body has the encoding {name[:40]!r}: send it as it is, or in {ways}."
                await send_error(scope, send, refuse(415, message), {"accept-encoding": ways})
                return
            packed = _PackedBody(name)
            fields = [field for field in scope["headers"] if field[0] not in (b"content-encoding", b"content-length")]
            scope = {**scope, "headers": fields}
        values = None if scope.get("path", "").startswith(FORMS) else _Values()
        n_read = n_unpacked = 0
        is_whole = False
        began = time.monotonic()

        async def counting_receive() -> Message:
            nonlocal n_read, n_unpacked, is_whole
            try:
                # When the body is here, this waits for the client to leave.
                left = began + self._patience + n_read / self._slowest - time.monotonic()
                async with asyncio.timeout(None if is_whole else max(0.0, min(self._patience, left))):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, self._too_slow(), {"connection": "close"}) from None
            is_whole = not message.get("more_body")
            n_read += len(message.get("body", b""))
            if packed is not None and message["type"] == "http.request":
                # No more than may be there is ever unpacked: a few bytes can stand for gigabytes.
                message = {**message, "body": packed.unpack(message.get("body", b""), limit - n_unpacked + 1)}
                n_unpacked += len(message["body"])
            problem = None
            if max(n_read, n_unpacked) > limit:
                problem = _too_large(limit, "larger" if n_read > limit else "larger once it is unpacked")
            elif values is not None and await values.are_too_many_with(message.get("body", b"")):
                problem = (
                    f"The body may have {MAX_VALUES:,} values, where a text counts as two, a list or a fraction as "
                    "six, a key as twelve, and an exponent as twelve more: send fewer at once."
                )
            if problem is not None:
                if message.get("more_body"):
                    await _drain(receive, MAX_DRAINED, self._patience)
                raise HTTPException(413, problem, {"connection": "close"})
            if packed is not None and is_whole and message["type"] == "http.request":
                packed.check_end()
            return message

        await self._app(scope, counting_receive, send)

    def _too_slow(self) -> str:
        return (
            f"The body stopped for {self._patience:.0f} s, or came more slowly than {self._slowest:.0f} bytes per "
            "second: send all of it, and its right length."
        )


class _Values:
    """Counts the values of a JSON body as its parts come. Commas and brackets in texts are none."""

    def __init__(self) -> None:
        self._n, self._is_in_text, self._before = 0, False, b""

    async def are_too_many_with(self, part: bytes) -> bool:
        """Return whether there are more than ``MAX_VALUES`` with the next part, which may be a whole body unpacked."""
        for begin in range(0, len(part), _COUNTED_AT_ONCE):
            if begin:
                await asyncio.sleep(0)  # streams go on
            if self._seen_with(part[begin : begin + _COUNTED_AT_ONCE]) > MAX_VALUES:
                return True
        return False

    def _seen_with(self, part: bytes) -> int:
        outside = (self._before + part).rstrip(b"\\")
        n_escapes = len(self._before) + len(part) - len(outside)
        self._before = b"\\" * (n_escapes % 2)  # what it escapes is in the next part
        if b"\0" not in outside:  # UTF-16 and UTF-32 have one in each comma, and quotes in letters
            pieces = outside.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
            self._n += len(pieces) // 2  # texts
            outside = b"".join(pieces[self._is_in_text :: 2])
            self._is_in_text ^= len(pieces) % 2 == 0
        self._n += sum(weight * outside.count(mark) for mark, weight in _WEIGHTS.items())
        self._n += len(outside) // _BYTES_PER_VALUE
        return self._n


class _PackedBody:
    """A body in one of ``PACKED``, or in x-gzip, that arrives in parts."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._parser: Any = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._error: type[Exception] = zlib.error
        if encoding == "zstd" and (zstd := _zstd()) is not None:
            options = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
            self._parser, self._error = zstd.ZstdDecompressor(options=options), zstd.ZstdError

    def unpack(self, part: bytes, most: int) -> bytes:
        """Return what the next part stands for, at most so many bytes. Raises HTTPException."""
        is_over = self._parser.eof
        try:
            body: bytes = b"" if is_over else self._parser.decompress(part, most)
        except self._error:
            problem = f"The body is not in {self._encoding}, as its header says."
            if self._encoding == "zstd":  # its error does not tell one from the other
                most_mib = (1 << _ZSTD_WINDOW) // (1 << 20)
                needs = f"or needs more than {most_mib} MB of memory to be unpacked"
                problem = f"The body cannot be unpacked here: it is not in zstd, {needs}."
            raise HTTPException(400, problem) from None
        if self._parser.unused_data or (is_over and part):
            raise HTTPException(400, f"The body in {self._encoding} goes on behind its end.")
        return body

    def check_end(self) -> None:
        """Raise HTTPException where the last part was not the end."""
        if not self._parser.eof:
            raise HTTPException(400, f"The body in {self._encoding} has no end.")


@cache
def _zstd() -> Any:
    """Return the module for zstd; None where Python was built without."""
    with contextlib.suppress(ImportError):
        return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return None


def _too_large(limit: int, size: str) -> str:
    return f"The body may have {limit} bytes, and this one is {size}: send a shorter one."


def _length(value: bytes | None) -> int:
    return int(value) if value is not None and value.isdigit() else 0


async def _drain(receive: Receive, limit: int, patience: float) -> None:
    """Read what a client sends, so that it sees the answer; one that takes longer than ``patience`` may miss it."""
    n_read = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while n_read <= limit:
                message = await receive()
                n_read += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


OPEN_PATHS = frozenset({"/health", "/v1/health", "/lmstudio-greeting"})


class BearerAuth:
    """Refuse requests without ``Authorization: Bearer KEY`` or ``x-api-key: KEY``; ``OPEN_PATHS`` are for anyone."""

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] != "http" or INTERNAL in scope:
            await self._app(scope, receive, send)
            return
        name, sent = self._key(scope)
        if name is not None or scope["path"] in OPEN_PATHS or not self._keys.is_needed:
            if name:
                asyncio.get_running_loop().run_in_executor(None, self._keys.store.note_use, name)
            caller.set(name or None)
            caller_id.set(self._keys.id_of(name, sent))
            manages.set(self._keys.may_manage(name, sent))
            await self._app(scope, receive, send)
            return
        message = "This server needs an API key: send it as the header 'Authorization: Bearer KEY'."
        if header(scope, b"authorization") or header(scope, b"x-api-key"):
            message = "The API key is none of this server's."
        await send_error(scope, send, refuse(401, message), {"www-authenticate": "Bearer"})

    def _key(self, scope: Scope) -> tuple[str | None, bytes]:
        """Return the first key that is one of ours, and its name; None where there is none."""
        scheme, _, bearer = (header(scope, b"authorization") or b"").partition(b" ")
        sent = bearer if scheme.lower() == b"bearer" else b"", header(scope, b"x-api-key") or b""
        found = [(self._keys.name_of(key), key) for key in map(bytes.strip, sent) if key]
        return next((one for one in found if one[0] is not None), (None, b""))


class RequestIds:
    """Give each answer an id, by which clients name it in their logs and errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; its answer gets the header that its protocol has for that, unless it has one."""
        name = b"request-id" if scope.get("path", "").startswith(ANTHROPIC) else b"x-request-id"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start" and all(key != name for key, _ in message["headers"]):
                message = {**message, "headers": [*message["headers"], (name, b"req_%s" % token_hex(12).encode())]}
            await send(message)

        await self._app(scope, receive, send_with_id)


class PlainPath:
    """Drop slashes at the end of the path, and doubled ones, and add the prefix ``/v1`` where clients leave it out.

    Base URLs end with a slash or not, and clients join them with a path that begins with one. A redirect would lose
    the request: most clients do not follow one with a body.
    """

    def __init__(self, app: ASGIApp, routes: Collection[str] = (), others: Collection[str] = ()) -> None:
        """``routes`` are the paths below the prefix that are also found without it; ``others`` are as they are."""
        self._app = app
        self._routes, self._others = routes, frozenset(others)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under its plain path."""
        if scope["type"] == "http":
            path = plain_path(scope["path"])
            if path not in self._others and any(path == one or path.startswith(f"{one}/") for one in self._routes):
                path = f"/v1{path}"
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def plain_path(path: str) -> str:
    """Return ``path`` with one slash where there are several, and none at its end."""
    return "/" + "/".join(part for part in path.split("/") if part)


async def check_manages(http: HttpRequest) -> None:
    """Refuse keys that may only use models."""
    if manages.get():
        return
    keys: ApiKeys = http.app.state.keys
    name = caller.get()
    if name is not None and keys.store.has(name):
        way = advice(command("keys change", name, "--manage"), "“Allow managing” on the page Server")
        message = f"The key {name!r} may use models, not manage them: {way} allows that."
    else:
        way = advice(f"{PROGRAM} keys add NAME --manage", "“Make a key” and “Allow managing” on the page Server")
        message = f"This key may use models, not manage them: {way} makes one that may."
    raise refuse(403, message, code="may_not_manage")


def check_here(http: HttpRequest, what: str) -> None:
    """Refuse other machines, and a server without a key; ``what`` begins the sentence, as "Remotes are changed"."""
    keys: ApiKeys = http.app.state.keys
    if not keys.is_needed:
        raise refuse(403, f"{what} by a server with an API key only: start it with --api-key.", code="api_key_needed")
    # A Unix socket has no address, and belongs to this machine.
    if http.client is not None and http.client.host not in LOOPBACK_NAMES:
        raise refuse(403, f"{what} on the machine of the server only.", code="not_local")


def check_owner(http: HttpRequest, what: str) -> None:
    """Refuse clients' keys too: one that could make others would outlive its end."""
    check_here(http, what)
    if caller_id.get() is not None:
        raise refuse(403, f"{what} with the server's own key only, not with a client's.", code="not_owner")
