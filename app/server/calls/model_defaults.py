"""Defaults for a request: the options of the server, and the settings of the model that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from app.server.calls.schemas import ChatCompletionBody, ChatMessage, GenerationBody
from core.values.errors import BadRequest
from core.values.messages import LoadedModel
from core.values.model_settings import ModelSettings
from core.values.request import ReplySpeed

_RECOMMENDED = ModelSettings()
_Body = TypeVar("_Body", bound=GenerationBody)


def with_defaults(
    body: _Body, own: ModelSettings, model: LoadedModel, sampling: Mapping[str, Any] | None = None
) -> _Body:
    """Return the body with sampling, speed and system message where it has none; itself where nothing is set.

    ``sampling`` are fields of bodies in place of those of ``own``, as in ``ModelHost.sampling``.
    """
    found = own.sampling if sampling is None else sampling
    if own == _RECOMMENDED and not found:
        return body
    changes: dict[str, Any] = {name: value for name, value in found.items() if getattr(body, name) is None}
    if own.speed is not None and body.speed is None and body.service_tier is None and _can(own.speed, body, model):
        changes["speed"] = own.speed
    if own.system is not None and isinstance(body, ChatCompletionBody) and not _has_system(body):
        changes["messages"] = [ChatMessage(role="system", content=own.system), *body.messages]
    return body.model_copy(update=changes) if changes else body


def _can(speed: str, body: GenerationBody, model: LoadedModel) -> bool:
    """Whether this request can have it: nobody asked for it here, so it must not be refused for it."""
    if speed == ReplySpeed.SPARK:
        return model.spark is not None
    if speed != ReplySpeed.DEEP:
        return True
    try:
        if isinstance(body, ChatCompletionBody):
            body.check_deep()
            return True
    except BadRequest:
        return False
    return False


def _has_system(body: ChatCompletionBody) -> bool:
    return any(message.role in ("system", "developer") for message in body.messages)
