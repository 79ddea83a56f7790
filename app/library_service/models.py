"""The models of this machine as the library shows them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import folders_file, models_folder
from app.library.errors import LibraryError, writing
from app.library.find_model import UnknownModel, catalog
from app.library.model_rows import FileChanges, RowReader
from app.library.removal import remove_model
from app.library.repair import repair_plan
from app.library.trouble import as_library_errors
from app.pairing.service import ListedModels
from models.catalog.catalog import ModelEntry, has_models
from models.catalog.imported_folders import (
    PLACES_BELOW,
    ImportedFolder,
    known_places,
    read_folders,
    recognise,
    write_folders,
)
from models.files.disk import full_path
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason
from models.library.values import FolderPlace, ModelRow, ModelRows, RowReport

if TYPE_CHECKING:
    from models.download.model_download import DownloadRequest


ROWS_AT_ONCE = 100  # a line that the window reads in a millisecond
_STAND_IN = "\N{REPLACEMENT CHARACTER}"  # what Qt has for bytes that are not UTF-8


class ModelService:
    """Lists, describes, removes and imports models. One catalogue for all, so that files are read once."""

    def __init__(self) -> None:
        self.catalog = catalog()
        self._changes = FileChanges()
        self._importing = threading.Lock()  # while the list of folders or of files is read and written
        self.listed = ListedModels(())

    def rows(
        self, judged: Callable[[ModelEntry], RowReport | None], then: Callable[[Sequence[ModelEntry]], None]
    ) -> Iterator[ModelRows]:
        """Yield the models, some at a time; the last part says where was looked.

        ``judged`` gives what is known of one, ``then`` takes all once they have been listed.
        """
        notices = self._changes.look()
        entries = self.catalog.entries()
        self.listed = ListedModels(entries)
        known = RowReader(judged)
        problems = tuple(problem.sentence for problem in self.catalog.folder_problems)
        for start in range(0, len(entries), ROWS_AT_ONCE):
            yield ModelRows(tuple(known.row(entry) for entry in entries[start : start + ROWS_AT_ONCE]))
        folders = (models_folder(), *(folder.path for folder in read_folders(folders_file())))
        yield ModelRows((), tuple(map(str, folders)), problems, notices)
        then(entries)

    def row(self, name: str, judged: Callable[[ModelEntry], RowReport | None]) -> ModelRow:
        """Return one model; raises UnknownModel."""
        return RowReader(judged).row(self.entry(name))

    def remove(self, name: str, *, for_good: bool = False) -> tuple[str, ...]:
        """Move a downloaded model to the trash, and return its files; raises UnknownModel and LibraryError."""
        return tuple(map(str, remove_model(self.entry(name), for_good=for_good)))

    def import_folder(self, folder: str) -> FolderPlace:
        """Use the models of a folder where they are; raises LibraryError."""
        with self._importing, as_library_errors():
            chosen = recognise(Path(folder))
            known = read_folders(folders_file())
            _save((*(other for other in known if other.path != chosen.path), chosen))
        return _place(chosen, is_imported=True)

    def import_file(self, file: str) -> str:
        """Use one model file where it is, and return the model's name; raises LibraryError."""
        path = Path(os.path.expanduser(file)).absolute()
        if path.is_dir():
            raise LibraryError(
                "{name} is a folder. Import it in the library to use the models in it where they are.",
                ExitCode.MODEL,
                name=path.name,
            )
        with self._importing:
            return self._import_file(path)

    def _import_file(self, path: Path) -> str:
        entry = self._at(path)
        if entry is None:
            found = self.catalog.find(str(path))
            if found is None and _STAND_IN in str(path):
                raise LibraryError(
                    "{name} cannot be opened: its name is not UTF-8. Rename the file, or import its folder in the "
                    "library.",
                    ExitCode.MODEL,
                    name=path.name,
                )
            if found is None:
                raise LibraryError("{path} is no model file that is there.", ExitCode.MODEL, path=path)
            if found.problem is not None:
                raise LibraryError(
                    "{name} cannot be used: {problem}", ExitCode.MODEL, name=path.name, problem=found.problem
                )
            link_model(path)
            entry = self._at(path)
        if entry is None:
            raise LibraryError(
                "{name} is a part of a model; open the model's first file.", ExitCode.MODEL, name=path.name
            )
        if entry.problem is not None:
            raise LibraryError(
                "{name} cannot be used: {problem}", ExitCode.MODEL, name=path.name, problem=entry.problem
            )
        return entry.name

    def _at(self, path: Path) -> ModelEntry | None:
        real = path.resolve()
        return next((entry for entry in self.catalog.entries() if entry.path.resolve() == real), None)

    def forget(self, folder: str) -> str:
        """No longer look through an imported folder, and return its path; raises LibraryError for another one."""
        path = full_path(Path(folder))
        # As with importing, a program's whole folder stands for the folder of models in it.
        meant = {path / below for below in PLACES_BELOW}
        with self._importing:
            known = read_folders(folders_file())
            others = tuple(other for other in known if other.path not in meant)
            if others == known:
                # The window lists what was beside the question.
                how = advice(f" `{PROGRAM} models import` lists what was.", "")
                raise LibraryError("{path} was not imported.{how}", ExitCode.USAGE, path=path, how=how)
            _save(others)
        return str(path)

    def places(self) -> tuple[FolderPlace, ...]:
        """Return the folders that are imported, and those that could be."""
        known = read_folders(folders_file())
        others = [place for place in known_places() if place not in known and has_models(place)]
        return tuple(_place(place, is_imported=place in known) for place in (*known, *others))

    def repair_request(self, name: str) -> DownloadRequest:
        """Return the download that mends a model; raises UnknownModel, and LibraryError where there is none."""
        entry = self.entry(name)
        how = repair_plan(entry)
        request = how.request if how is not None else None
        if request is None:
            unknown = Sentence("{name} was not downloaded here, so what it was is not known.", name=name)
            raise LibraryError(how.for_window if how is not None else unknown, ExitCode.USAGE)
        return request

    def dismiss(self, path: str) -> None:
        """Say no more of what happened to a file."""
        self._changes.dismiss(path)

    def entry(self, name: str) -> ModelEntry:
        """Return the model with this name; raises UnknownModel."""
        entry = self.catalog.find(name)
        if entry is None:
            raise UnknownModel(
                "There is no model called {name} any more. Its file may have been moved or deleted.", name=repr(name)
            )
        self.models()
        return entry

    def models(self) -> tuple[ModelEntry, ...]:
        """Return all of them, as they were last listed."""
        if not self.listed.models:
            self.listed = ListedModels(self.catalog.entries())
        return self.listed.models

    def find(self, path: Path) -> ModelEntry | None:
        """Return the model in a file."""
        return self.catalog.find(str(path))


def _place(folder: ImportedFolder, *, is_imported: bool) -> FolderPlace:
    return FolderPlace(str(folder.path), folder.kind.value, is_imported)


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
            "{name} cannot be linked in {place}: {reason}. Import its folder in the library.",
            ExitCode.ERROR,
            name=file.name,
            place=place,
            reason=system_reason(error),
        ) from error


def _save(folders: tuple[ImportedFolder, ...]) -> None:
    with writing(folders_file()):
        write_folders(folders_file(), folders)
