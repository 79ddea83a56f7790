"""Waiting for something that happens elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from core.process.supervisor import Supervisor
from core.values.errors import LoadFailed
from core.values.messages import EnginePhase, LoadedModel

_Found = TypeVar("_Found")


def until(find: Callable[[], _Found], seconds: float = 60.0, pause: float = 0.02) -> _Found:
    """Return what ``find`` gives as soon as that is true; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain"
        time.sleep(pause)
    return found


def wait_ready(supervisor: Supervisor) -> LoadedModel:
    """Return the model that an engine process is loading, once it is there; raises LoadFailed."""
    ended = (EnginePhase.READY, EnginePhase.FAILED)
    until(lambda: supervisor.state.phase in ended)
    state = supervisor.state
    if state.model is None:
        raise LoadFailed(state.problem or "")
    return state.model
