"""The base of all request bodies."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """Refuses unknown fields and does not turn text into numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LenientBody(Body):
    """An object inside a body. Clients send back what they got from elsewhere: what is not known is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)
