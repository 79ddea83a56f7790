"""Who may use the server: the bearer of the API key, where one is set."""

from __future__ import annotations

import secrets

from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.http.errors import refuse
from app.server.http.limits import header, send_error

OPEN_PATHS = frozenset({"/health"})


class BearerAuth:
    """Refuse requests without ``Authorization: Bearer KEY``; health can be asked by anyone."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._key = api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_known(scope):
            await self._app(scope, receive, send)
            return
        message = "This server needs an API key: send it as the header 'Authorization: Bearer KEY'."
        if header(scope, b"authorization"):
            message = "The API key is not the one of this server."
        await send_error(send, refuse(401, message), {"www-authenticate": "Bearer"})

    def _is_known(self, scope: Scope) -> bool:
        scheme, _, key = (header(scope, b"authorization") or b"").partition(b" ")
        return scheme.lower() == b"bearer" and secrets.compare_digest(key.strip(), self._key)
