"""Which folders of other programs are used: adds one to the list, takes one off, names what there is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import folders_file, models_folder
from app.library.errors import LibraryError
from app.library.trouble import as_library_errors
from models.formatting.program import PROGRAM
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from models.catalog.imported_folders import ImportedFolder


def import_folder(folder: Path) -> ImportedFolder:
    """Use the models below ``folder`` from now on; raises LibraryError."""
    from models.catalog.imported_folders import read_folders, recognise

    with as_library_errors():
        chosen = recognise(folder)
    known = read_folders(folders_file())
    _save((*(other for other in known if other.path != chosen.path), chosen))
    return chosen


def link_model(file: Path) -> None:
    """Use a model file, and the others that it consists of, by links in our own folder; raises LibraryError."""
    from models.facts.split_files import parts

    place = models_folder() / "opened"
    number = 1
    while any(os.path.lexists(place / part.name) for part in parts(file)):
        number += 1
        place = models_folder() / "opened" / str(number)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for part in parts(file):
            (place / part.name).symlink_to(part)
    except OSError as error:
        raise LibraryError(
            Sentence(
                "{name} cannot be linked in {place}: {reason}. Import its folder in the library.",
                name=file.name,
                place=place,
                reason=system_reason(error),
            ),
            ExitCode.ERROR,
        ) from error


def forget_folder(folder: Path) -> Path:
    """No longer look through an imported folder; raises LibraryError where it is not on the list."""
    from models.catalog.imported_folders import read_folders

    known = read_folders(folders_file())
    path = Path(folder.expanduser().absolute())
    others = tuple(other for other in known if path not in (other.path, other.path.parent))
    if others == known:
        raise LibraryError(f"{path} was not imported. `{PROGRAM} models import` lists what was.", ExitCode.USAGE)
    _save(others)
    return path


def places() -> tuple[tuple[ImportedFolder, ...], tuple[ImportedFolder, ...]]:
    """Return the folders that are imported, and those of other programs on this machine that are not."""
    from models.catalog.imported_folders import known_places, read_folders

    known = read_folders(folders_file())
    return known, tuple(place for place in known_places() if place not in known)


def _save(folders: tuple[ImportedFolder, ...]) -> None:
    from models.catalog.imported_folders import write_folders

    try:
        write_folders(folders_file(), folders)
    except OSError as error:
        raise LibraryError(
            Sentence("{file} cannot be written: {reason}.", file=folders_file(), reason=system_reason(error)),
            ExitCode.ERROR,
        ) from error
