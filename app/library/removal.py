"""Removes a downloaded model: all its files and its projector, to the system's trash or for good."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.environment.exit_codes import ExitCode
from app.environment.paths import models_folder
from app.library.errors import LibraryError
from models.formatting.sentence import Sentence
from models.formatting.system_error import system_reason

if TYPE_CHECKING:
    from models.catalog.catalog import ModelEntry
    from models.library.values import Trouble


def remove_model(entry: ModelEntry, *, for_good: bool = False) -> tuple[Path, ...]:
    """Remove the files of a model and return them; raises LibraryError where it is not ours or cannot be moved."""
    from models.facts.projector import projector_beside
    from models.facts.split_files import parts
    from models.files.provenance import remove_empty, remove_record

    refused = why_not_ours(entry)
    if refused is not None:
        raise LibraryError(refused.sentence, ExitCode.USAGE, refused)
    folder = models_folder()
    beside = projector_beside(entry.path)
    files = tuple(path for path in parts(entry.path) if path.exists())
    if beside is not None and beside.is_relative_to(folder) and not _is_wanted(beside, files):
        files += (beside,)
    for file in files:
        try:
            remove_file(file, for_good=for_good)
        except OSError as error:
            raise _not_removed(entry.name, file, error, for_good=for_good) from error
        remove_record(folder, file)
        remove_empty(file.parent, folder)
    return files


def _not_removed(name: str, file: Path, error: OSError, *, for_good: bool) -> LibraryError:
    from models.library.values import Remedy, Trouble

    reason = system_reason(error)
    if for_good:
        return LibraryError(
            "{file} could not be deleted: {reason}. Check the permissions of its folder.",
            ExitCode.ERROR,
            file=file,
            reason=reason,
        )
    sentence = Sentence("{file} could not be moved to the trash: {reason}.", file=file, reason=reason)
    return LibraryError(sentence, ExitCode.ERROR, Trouble(sentence, remedies=(Remedy.DELETE,), about=name))


def why_not_ours(entry: ModelEntry) -> Trouble | None:
    """Return why a model stays: it was not downloaded here, or is a link. None where it may be removed."""
    from models.library.values import Remedy, Trouble, TroubleKind

    if entry.is_toy:
        return Trouble(Sentence("{name} is a part of Slipstream and stays.", name=entry.name), TroubleKind.REFUSED)
    if entry.path.is_relative_to(models_folder()):
        return _why_a_link_stays(entry)
    if not entry.origin:  # named by its path
        sentence = Sentence("{path} was not downloaded here, so it stays: remove the file itself.", path=entry.path)
        return Trouble(sentence, TroubleKind.REFUSED)
    owner = (
        Sentence("belongs to {origin}", origin=entry.origin)
        if entry.origin != "folder"
        else Sentence("is in a folder of yours")
    )
    sentence = Sentence(
        "{name} {owner} and is only used from there: {path}. Remove it there, or take the folder off the list.",
        name=entry.name,
        owner=owner,
        path=entry.path,
    )
    return Trouble(sentence, TroubleKind.REFUSED, (Remedy.FORGET,))


def _why_a_link_stays(entry: ModelEntry) -> Trouble | None:
    """Return why a model stays that is a link to another one of our folder, or is in a linked one; None for another.

    The model would still be there, by another name; and what is in a linked folder belongs to others. A link to a file
    elsewhere was made when that was opened: it goes alone, as does one to a file that is listed nowhere else.
    """
    from models.facts.split_files import parts
    from models.library.values import Trouble, TroubleKind

    ours, parent = models_folder().resolve(), entry.path.parent.resolve()
    if not parent.is_relative_to(ours):
        sentence = Sentence(
            "{name} is in a folder that is a link: {folder} leads to {target}. Nothing was removed: remove the link, "
            "or the file where it is.",
            name=entry.name,
            folder=entry.path.parent,
            target=parent,
        )
        return Trouble(sentence, TroubleKind.REFUSED)
    targets = ((path, path.resolve()) for path in parts(entry.path) if path.is_symlink())
    found = next((one for one in targets if one[1].suffix == ".gguf" and one[1].is_relative_to(ours)), None)
    if found is None:
        return None
    link, target = found
    sentence = Sentence(
        "{name} is a link to another file: {link} leads to {target}. Nothing was removed: remove the link itself.",
        name=entry.name,
        link=link,
        target=target,
    )
    return Trouble(sentence, TroubleKind.REFUSED)


def _is_wanted(projector: Path, files: tuple[Path, ...]) -> bool:
    """Return whether a projector is also that of a model whose file is not among ``files``."""
    from models.facts.projector import projector_beside

    others = (path for path in projector.parent.rglob("*.gguf") if path not in files and path != projector)
    return any(projector_beside(path) == projector for path in others)


def remove_file(file: Path, *, for_good: bool) -> None:
    """Move a file to the trash, or delete it ``for_good``; raises what the system does."""
    if for_good:
        file.unlink()
        return
    from send2trash import send2trash

    send2trash(file)
