"""One line of the input as a request that can be sent, or the reason why it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MESSAGES = "/v1/messages"
URLS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/rerank", _MESSAGES)


class BadBatchLine(Exception):
    """A line that is no request. ``code`` is for programs; ``custom_id`` is its own, if it has one."""

    def __init__(self, code: str, message: str, custom_id: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.custom_id = code, message, custom_id


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request in OpenAI's batch format; the method is always POST."""

    custom_id: str
    url: str
    body: Mapping[str, Any]

    def adapted(self, model: str | None, speed: str | None) -> dict[str, Any]:
        """Return the body with ``model`` in place of its own, and ``speed`` where it does not say how soon it is due.

        None leaves things as they are.
        """
        body = dict(self.body)
        if model is not None:
            body["model"] = model
        # Anthropic's tiers do not say how soon a message is due.
        tier = None if self.url == _MESSAGES else body.get("service_tier")
        if speed is not None and body.get("speed") is None and tier is None:
            body["speed"] = speed
        return body


def parse(data: bytes) -> BatchRequest:
    """Return the request of a line. Raises BadLine."""
    fields = _object(data)
    custom_id = fields.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        raise BadBatchLine("missing_custom_id", "The line has no custom_id: give each line a text of its own.")
    if fields.get("method") != "POST":
        raise BadBatchLine("invalid_method", f"method must be POST, not {_shown(fields.get('method'))}.", custom_id)
    url = fields.get("url")
    if url not in URLS:
        raise BadBatchLine("invalid_url", f"url must be one of {', '.join(URLS)}, not {_shown(url)}.", custom_id)
    body = fields.get("body")
    if not isinstance(body, dict):
        raise BadBatchLine("invalid_body", "body must be an object: the request as it would be sent.", custom_id)
    if body.get("stream"):
        raise BadBatchLine("stream_in_batch", "A batch has no streams: leave stream out of the body.", custom_id)
    return BatchRequest(custom_id, url, body)


def _object(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadBatchLine("invalid_json", f"The line is not valid UTF-8 (byte {error.start + 1}).") from None
    except RecursionError:
        raise BadBatchLine("invalid_json", "The line's JSON is nested too deep.") from None
    except ValueError as error:
        raise BadBatchLine("invalid_json", f"The line is not valid JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise BadBatchLine("invalid_json", "The line is not a JSON object.")
    return fields


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]
