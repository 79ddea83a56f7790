"""What every object and chunk of one answer repeats."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from app import __version__
from core.values.messages import LoadedModel


@dataclass(frozen=True, slots=True)
class Identity:
    """Id, kind, time, model and the fingerprint of what computes the answer; ``marks`` say how it was served."""

    id: str
    object: str
    model: str
    fingerprint: str
    marks: dict[str, Any] = field(default_factory=dict)
    created: int = field(default_factory=lambda: int(time.time()))

    def head(self) -> dict[str, Any]:
        """Return the fields in OpenAI's order."""
        return {
            "id": self.id,
            "object": self.object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            **self.marks,
        }


def fingerprint(model: LoadedModel) -> str:
    """Return a short name for the version, the model and the options: equal where a seed gives the same text."""
    facts = (__version__, model.description, model.n_bytes, model.n_ctx, model.kv_type, model.devices, model.n_threads)
    return "fp_" + hashlib.sha256(repr(facts).encode()).hexdigest()[:12]
