"""Connections to remotes: how they are asked, what is sent of a request's headers and kept of a reply's."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from app.environment.exit_codes import ExitCode
from app.server.http.errors import ANTHROPIC
from app.server.remotes.store import Remote, RemoteStore, is_key, key_of
from core.values.errors import SlipstreamError
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    import httpx

_CONNECT_SECONDS = 5.0
# A list of models comes at once or is not worth waiting for.
_LIST_SECONDS = 10.0
_MOST_LISTED, _MOST_LIST_BYTES = 5_000, 16 << 20
# A peer that is gone without a word is noticed after a minute: 30 s of silence, then three questions.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
# Headers of one connection, those that name us to the client, and whatever the client shows to us alone.
_NOT_SENT = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade expect host "
    b"content-length accept-encoding authorization x-api-key api-key cookie origin referer forwarded".split()
)
_NOT_SENT_BEGINNINGS = (b"sec-", b"x-forwarded-", b"x-real-ip", b"access-control-")
# By this header, and by ``through`` of what is listed, servers that have each other as remotes know their own models.
SERVER_ID = "x-slipstream-server"
_KEPT = frozenset({"content-type", "retry-after", "x-should-retry", "x-request-id", "request-id"})
_KEPT_BEGINNINGS = ("openai-", "anthropic-", "x-ratelimit-")


class RemoteUnreachable(SlipstreamError):
    """A remote gives no answer that could be used; the text names it and says why."""

    exit_code = ExitCode.UNREACHABLE


class Sent(NamedTuple):
    """Where a request goes, in paths of ours as "/v1/chat/completions", and what goes with its body."""

    path: str
    headers: Iterable[tuple[bytes, bytes]] = ()
    query: bytes = b""
    method: str = "POST"


class ModelList(NamedTuple):
    """What a remote listed, and why it could not be asked the last time; ``at`` is on ``time.monotonic``."""

    listed: list[dict[str, Any]]
    problem: str | None
    at: float

    def as_dict(self, remote: Remote) -> dict[str, Any]:
        """Return what is known of a remote, as JSON has it."""
        return {
            "name": remote.name,
            "url": remote.url,
            "has_key": remote.has_key,
            "fallback": remote.fallback,
            "models": [f"{remote.name}/{one['id']}" for one in self.listed],
            "problem": self.problem,
        }


class Upstream:
    """All connections of this server to remotes, and their lists of models.

    The HTTP client is made when the first one is asked. A list is asked for again after a minute, beside those who read
    it.
    """

    MAX_AGE = 60.0
    # Seconds by which a remote that does not answer delays a list of all models.
    PATIENCE = 2.0

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self.id = secrets.token_hex(8)
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()
        self._keys: dict[Remote, str] = {}
        self._lists: dict[Remote, ModelList] = {}
        self._asking: dict[Remote, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def request(self, remote: Remote, sent: Sent, body: bytes) -> httpx.Request:
        """Return the request to be sent on."""
        client = await self.client()
        fields = [(name, value) for name, value in sent.headers if _is_sent(name)]
        fields += [*await self._auth(remote, sent.path), (b"accept-encoding", b"identity")]
        url = _address(remote, sent.path) + (f"?{sent.query.decode('latin-1')}" if sent.query else "")
        return client.build_request(sent.method, url, headers=fields, content=body or None)

    async def client(self) -> httpx.AsyncClient:
        """Return the HTTP client."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(_new_client)  # certificates take a while to read
        return self._client

    async def lists(self) -> dict[Remote, ModelList]:
        """Return the lists of all remotes, also old ones; one that was never asked for is waited for a little."""
        remotes = list(self.store.all().values())
        self._lists = {remote: known for remote, known in self._lists.items() if remote in remotes}
        now = time.monotonic()
        for remote in remotes:
            known = self._lists.get(remote)
            if remote not in self._asking and (known is None or now - known.at > self.MAX_AGE):
                self._asking[remote] = asyncio.ensure_future(self._ask(remote))
        unknown = [self._asking[remote] for remote in remotes if remote not in self._lists]
        if unknown:
            await asyncio.wait(unknown, timeout=self.PATIENCE)
        return {remote: self._lists.get(remote, ModelList([], "It has not answered yet.", now)) for remote in remotes}

    async def ask(self, remote: Remote) -> ModelList:
        """Ask a remote for its models now, and return its list."""
        await self._ask(remote)
        return self._lists[remote]

    async def _ask(self, remote: Remote) -> None:
        before = self._lists.get(remote)
        listed = before.listed if before is not None else [{"id": model} for model in remote.models]
        problem = None
        try:
            found = await self._models(remote)
            listed = [one for one in found if one["id"] in remote.models] if remote.models else found
        except RemoteUnreachable as error:
            problem = error.message
        finally:
            self._asking.pop(remote, None)
        self._lists[remote] = ModelList(listed, problem, time.monotonic())

    async def _models(self, remote: Remote) -> list[dict[str, Any]]:
        """Return the remote's models as it lists them; raises RemoteUnreachable."""
        import httpx

        client = await self.client()
        headers = await self._auth(remote, "/v1/models")
        try:
            async with (
                asyncio.timeout(_LIST_SECONDS),
                client.stream("GET", _address(remote, "/v1/models"), headers=headers) as response,
            ):
                body = await read_all(response, _MOST_LIST_BYTES)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            raise unreachable(remote, error) from error
        if (server := response.headers.get(SERVER_ID)) == self.id:
            raise RemoteUnreachable(
                "The remote {name} is this server itself: it has no further models.", name=remote.name
            )
        if response.status_code in (401, 403):
            raise RemoteUnreachable(
                "The remote {name} {what}: {words}",
                name=remote.name,
                what=Sentence("refuses its key") if remote.sends_key else Sentence("wants a key"),
                words=error_text(body),
            )
        if response.status_code != httpx.codes.OK:
            raise RemoteUnreachable(
                "The remote {name} answers {status_code} at {url}: is its address right?",
                name=remote.name,
                status_code=response.status_code,
                url=response.url,
            )
        found = _listed(remote, body)
        for one in found:
            further = one.get("through")
            one["through"] = [str(id_) for id_ in (server, *(further if isinstance(further, list) else ())) if id_]
        return [one for one in found if self.id not in one["through"]]

    async def _auth(self, remote: Remote, path: str) -> list[tuple[bytes, bytes]]:
        found = self._keys.get(remote)
        if found is None:
            found = await asyncio.to_thread(key_of, remote)
            self._keys = {known: self._keys[known] for known in self.store.all().values() if known in self._keys}
            if found is not None:
                self._keys[remote] = found
        if found is None:
            return []
        if not is_key(found):  # an error of the HTTP client would show it
            raise RemoteUnreachable(
                "The remote {name} was not asked: {variable} holds no API key, which is one word of printable ASCII.",
                name=remote.name,
                variable=remote.key_variable,
            )
        named = [(b"x-api-key", found.encode())] if path.startswith(ANTHROPIC) else []
        return [(b"authorization", b"Bearer " + found.encode()), *named]


def _new_client() -> httpx.AsyncClient:
    import httpx

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [(socket.IPPROTO_TCP, getattr(socket, name), n) for name, n in _KEEP_ALIVE if hasattr(socket, name)]
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20), socket_options=options
        ),
        timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
        headers={"user-agent": "slipstream"},
    )


def _address(remote: Remote, path: str) -> str:
    """Return where a path of ours is found there: below its base URL, or beside that for what is not under /v1."""
    if path.startswith("/v1/"):
        return remote.url + path.removeprefix("/v1")
    return remote.url.removesuffix("/v1") + path


def _is_sent(name: bytes) -> bool:
    return name not in _NOT_SENT and not name.startswith(_NOT_SENT_BEGINNINGS)


def kept_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return those headers of a remote's reply that are for the client."""
    kept = ((name.lower(), value) for name, value in headers.items())
    return [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in kept
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    ]


async def read_all(response: httpx.Response, limit: int) -> bytes:
    """Return the whole body; raises ValueError where it is larger than ``limit`` bytes."""
    parts, n_bytes = [], 0
    async for part in response.aiter_bytes():
        n_bytes += len(part)
        if n_bytes > limit:
            raise ValueError(f"its answer is larger than {limit:,} bytes")
        parts.append(part)
    return b"".join(parts)


def unreachable(remote: Remote, error: Exception) -> RemoteUnreachable:
    """Return what to say of a remote that could not be asked."""
    import httpx

    why = system_reason(error)
    if isinstance(error, (TimeoutError, httpx.TimeoutException)):
        why = Sentence("it took too long")
    elif isinstance(error, (EOFError, httpx.RemoteProtocolError, httpx.ReadError)):
        why = Sentence("it ended the connection before the answer was complete")
    return RemoteUnreachable(
        "The remote {name} ({url}) does not answer: {why}.", name=remote.name, url=remote.url, why=why
    )


def error_text(body: bytes) -> str:
    """Return what the body of an error says, whatever its form: OpenAI's, vLLM's, FastAPI's, or text."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body[:500].decode("utf-8", "replace").split()) or "it does not say why."
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(name):
            found = found[name]
    return str(found)[:2_000]


def _listed(remote: Remote, body: bytes) -> list[dict[str, Any]]:
    try:
        found = json.loads(body)
        data = found["data"] if isinstance(found, dict) else found
        return [one for one in data[:_MOST_LISTED] if isinstance(one.get("id"), str)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RemoteUnreachable(
            "What answers at {url}/models lists no models: the address of an OpenAI-style server ends with /v1.",
            url=remote.url,
        ) from error
