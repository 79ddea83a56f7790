"""How to repair a model whose files have changed: sentences for the window and for commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.paths import models_folder
from models.catalog.catalog import ModelEntry
from models.files.errors import UnsafeName
from models.files.provenance import FileOrigin, read_record
from models.files.safe_path import target
from models.formatting.program import PROGRAM, command
from models.formatting.sentence import Sentence

if TYPE_CHECKING:
    from models.download.model_download import DownloadRequest


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The way to mend a changed model: where it came from, and where a download of that would put it."""

    entry: ModelEntry
    record: FileOrigin
    place: Path | None

    @property
    def request(self) -> DownloadRequest | None:
        """The download that mends it, None where it came from no repository."""
        from models.download.model_download import DownloadRequest

        record = self.record
        return (
            DownloadRequest(record.repo_id, record.path, record.commit, or_newest=True)
            if self.place is not None
            else None
        )

    @property
    def command(self) -> str | None:
        """The command that mends it or downloads it anew, None where there is none."""
        if self.place is None:
            return None
        name = f"{self.record.repo_id}:{self.record.path}"
        return command("models pull", name, f"--revision {self.record.commit}")

    @property
    def for_command(self) -> str:
        """The advice for a terminal: what to type."""
        remove = f"`{command('models rm', self.entry.name)}`"
        if self.place == self.entry.path:
            return f"`{self.command}` downloads it again."
        if self.place is not None:
            return f"It was moved: `{self.command}` downloads it again to {self.place}, {remove} removes this one."
        if self.record.made_from:
            return (
                f"It was made here from {self.record.made_from}: remove it with {remove}, and make it again with "
                f"`{PROGRAM} models quantize`."
            )
        return f"Where it came from is not known: remove it with {remove}, and get it from where you had it."

    @property
    def for_window(self) -> str:
        """The advice for the window: what has happened and what to click."""
        if self.place == self.entry.path:
            remedy = Sentence("download it again.")
        elif self.place is not None:
            remedy = Sentence(
                "download it again. It was moved, so a new copy comes to {parent}; then remove this one.",
                parent=self.place.parent,
            )
        elif self.record.made_from:
            made = Sentence(
                "Its file has changed since it was made here from {made_from}.", made_from=self.record.made_from
            )
            return Sentence("{made} If you did not change it, remove it and make the copy again.", made=made)
        else:
            remedy = Sentence("remove it and get it from where you had it: where it came from is not known here.")
        return Sentence(
            "Its files have changed since they were downloaded. If you did not change them, {remedy}", remedy=remedy
        )


def repair_plan(entry: ModelEntry) -> RepairPlan | None:
    """Return how a model is made right; None where nothing is known of what it was."""
    folder = models_folder()
    record = read_record(folder, entry.path)
    if record is None:
        return None
    try:
        place = target(folder, record.repo_id, record.path) if record.repo_id and record.path else None
    except UnsafeName:
        place = None
    return RepairPlan(entry, record, place)
