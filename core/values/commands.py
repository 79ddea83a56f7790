"""Commands from the server to the engine process: frozen values that cross the pipe, matched by type.

Closing the pipe tells the engine process to exit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.values.engine_options import EngineOptions
from core.values.request import Request


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first command: load a model. ``cache_folder`` keeps measurements.

    ``measured`` holds earlier measurements of an engine with these options, by the keys of ``Measurements``.
    """

    options: EngineOptions
    cache_folder: Path
    measured: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submit:
    """Run a request."""

    request: Request


@dataclass(frozen=True, slots=True)
class Cancel:
    """End a request."""

    request_id: str


Command = LoadModel | Submit | Cancel
