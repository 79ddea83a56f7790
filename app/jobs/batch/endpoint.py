"""The server as a batch sees it: one request after another, many at once, and what each answer means for the batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_CONNECT_SECONDS = 10.0
_LONGEST_WAIT = 60.0  # a server that asks for more is asked again after this


class ServerGone(Exception):
    """The connection broke, or nobody answered: the request may not have been seen."""


class RetryVerdict(Enum):
    """The next step after an answer."""

    FINAL = "final"  # it is the line's answer
    ENGINE_DIED = "engine died"  # in the middle of it, maybe because of it: again, a few times
    FAULT = "fault"  # of the server: again, a few times
    BUSY = "busy"  # later, as often as it takes
    NO_ENGINE = "no engine"  # loading, or gone for good: the server's state says which
    LEAVING = "leaving"  # the server is being stopped
    LOCKED_OUT = "locked out"  # no line would be let in


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """One answer. ``retry_after`` is in seconds, None where the server does not say.

    ``is_remotes``: a remote of the server gave it.
    """

    status: int
    body: Any
    request_id: str
    retry_after: float | None = None
    is_remotes: bool = False

    @property
    def code(self) -> str | None:
        """The code of the error, None where there is none."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, str) else None

    @property
    def message(self) -> str:
        """The sentence of the error."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        return str(message or f"The server answered {self.status}.")

    @property
    def verdict(self) -> RetryVerdict:
        """The next step after this answer."""
        by_code = {
            "engine_died": RetryVerdict.ENGINE_DIED,
            # An engine that keeps dying, but says when to try again, is left alone until then.
            "engine_unavailable": RetryVerdict.NO_ENGINE if self.retry_after is None else RetryVerdict.BUSY,
            "shutting_down": RetryVerdict.LEAVING,
            "model_load_failed": RetryVerdict.FINAL,
        }
        if self.status == 503 and self.code in by_code:
            return by_code[self.code]
        if self.status in (429, 503):
            return RetryVerdict.BUSY
        if self.status in (401, 403) and not self.is_remotes:  # other lines go elsewhere
            return RetryVerdict.LOCKED_OUT
        return RetryVerdict.FAULT if self.status in (500, 502, 504) else RetryVerdict.FINAL


class BatchEndpoint:
    """Posts requests to one server; at most ``n_parallel`` at a time have a connection."""

    def __init__(
        self, url: str, headers: Mapping[str, str], n_parallel: int, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """``transport`` is another way to the server than a connection."""
        import httpx  # a tenth of a server's start, and most servers run no batch

        self._client = httpx.AsyncClient(
            base_url=url,
            headers=dict(headers),
            # An answer may take as long as it takes: the line may wait behind everybody else.
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=n_parallel, max_keepalive_connections=n_parallel),
            transport=transport,
            trust_env=False,  # a proxy for the internet cannot reach this machine
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> EndpointAnswer:
        """Send a request and return its answer. Raises ServerGone."""
        import httpx

        try:
            response = await self._client.post(path, content=json.dumps(body).encode())
        except httpx.TransportError as error:
            raise ServerGone(str(error) or type(error).__name__) from error
        return _answer(response)

    async def state(self) -> dict[str, Any] | None:
        """Return the server's state, {} of a server of another kind, None where nobody answers."""
        import httpx

        try:
            response = await self._client.get("/slipstream/state", timeout=_CONNECT_SECONDS)
        except httpx.TransportError:
            return None
        body = _parsed(response.content) if response.status_code == 200 else {}
        return body if isinstance(body, dict) else {}

    async def close(self) -> None:
        """Close the connections; requests that run are cancelled."""
        await self._client.aclose()


def _answer(response: httpx.Response) -> EndpointAnswer:
    body = _parsed(response.content)
    request_id = response.headers.get("x-request-id") or (body.get("id") if isinstance(body, dict) else None)
    return EndpointAnswer(
        response.status_code,
        body,
        str(request_id or ""),
        _seconds(response.headers.get("retry-after")),
        "x-slipstream-remote" in response.headers,
    )


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return {"error": {"message": content[:1_000].decode("utf-8", "replace"), "code": None}}


def _seconds(text: str | None) -> float | None:
    try:
        return min(max(float(text or ""), 0.0), _LONGEST_WAIT)
    except ValueError:
        return None
