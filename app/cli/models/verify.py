"""``slipstream models verify``: is a downloaded model still what its checksum said?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.progress_line import ProgressLine
from app.cli.terminal.text import say, say_json
from app.environment.exit_codes import ExitCode
from models.formatting.figures import size
from models.formatting.program import PROGRAM

if TYPE_CHECKING:
    from models.files.integrity import IntegrityState


def verify(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, title or path of a downloaded model.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read a model's files and compare their SHA-256 with that of the download.

    Exit code 1 where they differ, 2 where nothing is known to compare with.
    """
    from app.environment.paths import models_folder
    from app.library.errors import LibraryError
    from app.library.find_model import find_entry
    from app.library.repair import repair_plan
    from models.facts.split_files import parts
    from models.files.integrity import IntegrityState, worst

    entry = find_entry(name)
    try:
        found = {file: _verify(models_folder(), file) for file in parts(entry.path)}
    except OSError as error:
        raise LibraryError(f"{entry.name} cannot be read: {error.strerror}.", ExitCode.MODEL) from error
    state = worst(found.values())
    how = repair_plan(entry) if state is IntegrityState.CHANGED else None
    if as_json:
        files = {str(file): stands.value for file, stands in found.items()}
        facts = {"name": entry.name, "verified": state.value, "files": files}
        say_json(facts | {"mended_by": how.command if how is not None else None})
    if state is IntegrityState.CHANGED:
        changed = ", ".join(str(file) for file, stands in found.items() if stands is IntegrityState.CHANGED)
        raise LibraryError(
            f"{changed} is not what it was: its SHA-256 differs. {how.for_command if how is not None else ''}".rstrip(),
            ExitCode.ERROR,
        )
    if state is IntegrityState.UNKNOWN:
        raise LibraryError(
            f"{entry.name} was not downloaded or made here, so there is no checksum to compare it with. If it does not "
            f"work, get it again from where you had it, or look for it with `{PROGRAM} models search WORDS`.",
            ExitCode.USAGE,
        )
    if not as_json:
        say(f"{entry.name} ({size(entry.n_bytes)}) is what it was: its SHA-256 is the recorded one.")


def _verify(folder: Path, file: Path) -> IntegrityState:
    from models.files.integrity import verify

    line = ProgressLine()
    try:
        return verify(folder, file, lambda n_done, n_total: line.show(_text(file, n_done, n_total), file.name))
    finally:
        line.end()


def _text(file: Path, n_done: int, n_total: int) -> str:
    return f"reading {file.name}: {n_done / n_total:4.0%} of {size(n_total)}"
