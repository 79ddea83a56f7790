"""One question to the engine that generates no text, and its answer."""

from __future__ import annotations

from typing import TypeVar

from app.server.calls.engine_bridge import EngineBridge
from app.server.http.errors import RequestFailed, refuse
from core.values.messages import Answer, AnyRequest, Ended, FinishReason

_Answer = TypeVar("_Answer", bound=Answer)


async def ask(bridge: EngineBridge, request: AnyRequest, kind: type[_Answer]) -> _Answer:
    """Return the engine's answer, which is of ``kind``; raises RequestFailed. Cancelled when the caller is."""
    channel = bridge.open([request], streams=False)
    try:
        *answers, ended = await channel.take()
    finally:
        bridge.close(channel)
    assert isinstance(ended, Ended)
    if ended.failure is not None:
        raise RequestFailed(ended.failure)
    if ended.reason is FinishReason.CANCELLED:
        raise refuse(503, "The request was cancelled.", code="cancelled")
    return next(answer for answer in answers if isinstance(answer, kind))
