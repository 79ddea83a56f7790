"""A conversation as it is sent to the server: system prompt, turns, and how to answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_DEEP_SLOTS = 4  # drafts that run at once


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """How replies are made: sampling fields of a request, ``max_tokens``, stop strings and ``speed``."""

    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    stop: Sequence[str] = ()
    speed: str | None = None

    @property
    def n_slots(self) -> int:
        """How many slots a server needs that answers only this: the drafts of a deep reply run side by side."""
        return _DEEP_SLOTS if self.speed == "deep" else 1

    def fields(self) -> dict[str, Any]:
        """Return these as fields of a request."""
        limit = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        speed = {} if self.speed is None else {"speed": self.speed}
        return {**self.sampling, **limit, **speed, **({"stop": list(self.stop)} if self.stop else {})}


class Conversation:
    """Turns of one chat. ``body`` is the request for the next reply."""

    def __init__(self, settings: AnswerSettings, model: str | None = None, system: str | None = None) -> None:
        self.settings, self.model, self.system = settings, model, system
        self._turns: list[dict[str, str]] = []

    @property
    def is_empty(self) -> bool:
        """True before the first turn."""
        return not self._turns

    def ask(self, text: str) -> None:
        """Add the user's turn."""
        self._turns.append({"role": "user", "content": text})

    def answer(self, text: str) -> None:
        """Add the model's turn."""
        self._turns.append({"role": "assistant", "content": text})

    def take_back(self) -> None:
        """Remove the last turn: it got no reply."""
        self._turns.pop()

    def clear(self) -> None:
        """Start over; system prompt, model and settings stay."""
        self._turns.clear()

    def body(self) -> dict[str, Any]:
        """Return the request for the next reply."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        named = {"model": self.model} if self.model else {}
        return {**named, "messages": [*system, *self._turns], **self.settings.fields()}
