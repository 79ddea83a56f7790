"""What has come of a batch so far, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Counts over output lines: ``n_done`` answered, ``n_failed`` with an error, by its code; tokens of all."""

    n_done: int = 0
    n_failed: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def n_lines(self) -> int:
        """Lines that are finished, one way or the other."""
        return self.n_done + self.n_failed

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one output line."""
        response = record.get("response")
        response = response if isinstance(response, dict) else {}
        body = response.get("body")
        body = body if isinstance(body, dict) else {}
        if response.get("status_code") == 200:
            self.n_done += 1
            usage = body.get("usage") or {}
            self.n_prompt_tokens += int(usage.get("prompt_tokens") or 0)
            self.n_completion_tokens += int(usage.get("completion_tokens") or 0)
            return
        self.n_failed += 1
        error = record.get("error") or body.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        self.errors[str(code or f"status_{response.get('status_code')}")] += 1
