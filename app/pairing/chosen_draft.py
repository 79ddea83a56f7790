"""Who drafts for a model that is loaded. A module of its own: the server starts the engine before it imports more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ChosenDraft:
    """Who drafts for a model: ``path`` None is no file of its own. ``why`` is a sentence, as are ``notices``.

    ``uses_heads`` says whether the prediction heads in the model's file may draft, where there are any.
    """

    path: Path | None = None
    name: str | None = None
    why: str = ""
    notices: tuple[str, ...] = ()
    uses_heads: bool = True
