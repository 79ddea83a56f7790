"""``slipstream models rm``: moves a model's files to the system's trash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.exit_codes import ExitCode
from app.sizes import size

if TYPE_CHECKING:
    from models.catalog import ModelEntry


def remove(
    name: Annotated[str, typer.Argument(help="Name of a downloaded model.", show_default=False)],
    delete: Annotated[bool, typer.Option("--delete", help="Delete for good instead of using the trash.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Move a downloaded model to the system's trash, all of its files."""
    from app.library import LibraryError
    from app.model_choice import find_entry
    from app.paths import models_folder
    from models.download.records import remove_empty, remove_record

    entry = find_entry(name)
    folder = models_folder()
    _check_is_ours(entry, folder)
    files = _files(entry)
    for file in files:
        try:
            _remove_file(file, for_good=delete)
        except OSError as error:
            raise LibraryError(
                f"{file} could not be moved to the trash: {error.strerror or error}. "
                "With --delete it is deleted for good.",
                ExitCode.ERROR,
            ) from error
        remove_record(folder, file)
        remove_empty(file.parent, folder)
    if as_json:
        done = {"name": entry.name, "files": [str(file) for file in files], "n_bytes": entry.n_bytes}
        print(json.dumps({**done, "is_in_trash": not delete}, ensure_ascii=False))
        return
    where = "deleted" if delete else "in the trash"
    print(f"{entry.name} ({size(entry.n_bytes)}) is {where}.")


def _check_is_ours(entry: ModelEntry, folder: Path) -> None:
    """Refuse what was not downloaded here."""
    from app.library import LibraryError

    if entry.is_toy:
        raise LibraryError(f"{entry.name} is a part of Slipstream and stays.", ExitCode.USAGE)
    if not entry.path.is_relative_to(folder):
        owner = f"belongs to {entry.origin}" if entry.origin not in ("", "folder") else "is in a folder of yours"
        raise LibraryError(
            f"{entry.name} {owner} and is only used from there: {entry.path}. Remove it there, or take the folder off "
            "the list with `slipstream models import FOLDER --forget`.",
            ExitCode.USAGE,
        )


def _files(entry: ModelEntry) -> list[Path]:
    from models.split_files import parts

    return [path for path in parts(entry.path) if path.exists()]


def _remove_file(file: Path, *, for_good: bool) -> None:
    if for_good:
        file.unlink()
        return
    from send2trash import send2trash

    send2trash(file)
