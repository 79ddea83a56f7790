"""/v1/audio/*: not done here, said plainly."""

from __future__ import annotations

from fastapi import Request as HttpRequest
from fastapi.responses import Response

from app.server.http.errors import refuse


async def audio(kind: str, http: HttpRequest) -> Response:
    """Refuse: the models that run here read and write text."""
    raise refuse(501, f"{http.url.path} is not done here: the models of this server read and write text.")
