"""What the server tells the engine process: frozen values that cross the pipe, matched by type.

Closing the pipe tells the engine process to leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.options import EngineOptions
from core.request import Request


@dataclass(frozen=True, slots=True)
class Load:
    """The first command: load a model. ``cache_folder`` keeps measurements."""

    options: EngineOptions
    cache_folder: Path


@dataclass(frozen=True, slots=True)
class Submit:
    """Run a request."""

    request: Request


@dataclass(frozen=True, slots=True)
class Cancel:
    """End a request."""

    request_id: str


Command = Load | Submit | Cancel
