"""The base of all request bodies."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """Refuses unknown fields and does not turn text into numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)
