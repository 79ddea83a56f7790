"""The base of all request bodies, and how the body of an answer is wanted."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.requests import HTTPConnection

from models.formatting.json_values import plain


class Body(BaseModel):
    """Refuses unknown fields and does not turn text into numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LenientBody(Body):
    """An object inside a body. Clients send back what they got from elsewhere: what is not known is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


def wants_facts(http: HTTPConnection) -> bool:
    """Return whether a client says sentences itself (``Prefer: facts``): others get them in English."""
    return http.headers.get("prefer") == "facts"


def as_asked(http: HTTPConnection, value: Any) -> Any:
    """Return what is answered, its sentences with their facts for those who want them."""
    return plain(value) if wants_facts(http) else value
