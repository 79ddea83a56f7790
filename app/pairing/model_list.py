"""A list of models, so that the search for partners need not read the folders again."""

from __future__ import annotations

from dataclasses import dataclass

from models.catalog.catalog import ModelEntry

# Each is compared with all others: among more, partners are looked for where one model is shown.
MOST_PAIRED = 200


@dataclass(frozen=True, slots=True)
class ListedModels:
    """Those that one scan found."""

    models: tuple[ModelEntry, ...]

    def entries(self) -> tuple[ModelEntry, ...]:
        """Return all of them."""
        return self.models

    def find(self, name: str) -> ModelEntry | None:
        """Return the one with this name or path."""
        return next((entry for entry in self.models if name in (entry.name, str(entry.path))), None)
