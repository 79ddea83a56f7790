"""The models of this machine as the library shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.imported_folders import forget_folder, import_folder, places
from app.library import folders_file
from app.model_choice import UnknownModel, catalog
from app.model_settings import LastUsed, UsageStore
from app.paths import models_folder, usage_file
from app.removal import remove_model, why_not_ours
from models.catalog import ModelEntry
from models.download.records import is_verified, read_record
from models.imported import read_folders
from models.library.values import ModelDetails, ModelRow, ModelRows, Place

ROWS_AT_ONCE = 100  # a line that the window reads in a millisecond


class ModelShelf:
    """Lists, describes, removes and imports models. One catalogue for all, so that files are read once."""

    def __init__(self) -> None:
        self.catalog = catalog()

    def rows(self) -> Iterator[ModelRows]:
        """Yield the models, some at a time; the last part says where was looked."""
        entries = self.catalog.entries()
        used = UsageStore(usage_file()).all()
        problems = tuple(problem.sentence for problem in self.catalog.folder_problems)
        for start in range(0, len(entries), ROWS_AT_ONCE):
            yield ModelRows(tuple(_row(entry, used) for entry in entries[start : start + ROWS_AT_ONCE]))
        folders = (models_folder(), *(folder.path for folder in read_folders(folders_file())))
        yield ModelRows((), tuple(map(str, folders)), problems)

    def details(self, name: str) -> ModelDetails:
        """Describe one model; raises UnknownModel."""
        entry = self.entry(name)
        facts = entry.facts
        row = _row(entry, UsageStore(usage_file()).all())
        if facts is None:
            return ModelDetails(row, (str(entry.path),))
        return ModelDetails(
            row,
            tuple(map(str, facts.files)),
            n_layers=facts.n_layers,
            n_experts=facts.n_experts,
            n_experts_used=facts.n_experts_used,
            n_vocab=facts.n_vocab,
            weight_bytes=facts.weight_bytes,
            bytes_per_token=facts.active_bytes_per_token,
            kv_bytes_per_token=facts.kv_bytes_per_token(),
            tokenizer=facts.tokenizer.model if facts.tokenizer else None,
            has_chat_template=facts.has_chat_template,
        )

    def entry(self, name: str) -> ModelEntry:
        """Return one model as the catalogue has it; raises UnknownModel."""
        entry = self.catalog.find(name)
        if entry is None:
            raise UnknownModel(f"There is no model called {name!r} any more. Its file may have been moved or deleted.")
        return entry

    def remove(self, name: str) -> None:
        """Move a downloaded model to the trash; raises UnknownModel and LibraryError."""
        remove_model(self.entry(name))

    def import_folder(self, folder: str) -> None:
        """Use the models of a folder where they are; raises LibraryError."""
        import_folder(Path(folder))

    def forget(self, folder: str) -> None:
        """No longer look through an imported folder; raises LibraryError."""
        forget_folder(Path(folder))

    def places(self) -> tuple[Place, ...]:
        """Return the folders that are imported, and those that could be."""
        known, others = places()
        listed = [(place, True) for place in known] + [(place, False) for place in others]
        return tuple(Place(str(place.path), place.kind.value, is_imported) for place, is_imported in listed)


def _row(entry: ModelEntry, used: LastUsed) -> ModelRow:
    folder = models_folder()
    record = read_record(folder, entry.path)
    return ModelRow(
        name=entry.name,
        path=str(entry.path),
        title=entry.title,
        architecture=entry.architecture,
        quantisation=entry.quantisation,
        n_params=entry.n_params,
        n_active_params=entry.facts.n_active_params if entry.facts is not None else 0,
        n_bytes=entry.n_bytes,
        n_ctx_train=entry.n_ctx_train,
        licence=entry.licence,
        source=f"{record.repo_id}@{record.commit[:12]}" if record is not None else None,
        origin=entry.origin,
        is_toy=entry.is_toy,
        is_verified=is_verified(folder, entry.path),
        can_remove=why_not_ours(entry) is None,
        problem=entry.problem,
        last_used=used.of(entry.path),
    )
