"""The models in the form that Anthropic's clients expect."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any


def as_anthropic(models: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a list of models in OpenAI's form as a whole page of Anthropic's."""
    data = [anthropic_model(model) for model in models]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"data": data, "has_more": False, **ends}


def anthropic_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model in OpenAI's form as one in Anthropic's."""
    created = datetime.fromtimestamp(model.get("created") or 0, UTC).isoformat().replace("+00:00", "Z")
    return {"type": "model", "id": model["id"], "display_name": model["id"], "created_at": created}
