"""Serves a path with slashes too many as the one that is meant."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class PlainPath:
    """Drop slashes at the end of the path, and doubled ones.

    Base URLs end with a slash or not, and clients join them with a path that begins with one. A redirect would lose
    the request: most clients do not follow one with a body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under its plain path."""
        if scope["type"] == "http":
            scope = {**scope, "path": plain_path(scope["path"])}
        await self._app(scope, receive, send)


def plain_path(path: str) -> str:
    """Return ``path`` with one slash where there are several, and none at its end."""
    return "/" + "/".join(part for part in path.split("/") if part)
