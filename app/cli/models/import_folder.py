"""``slipstream models import``: models of other programs, used where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.terminal.text import say, say_json, table
from models.formatting.figures import how_many
from models.formatting.program import PROGRAM
from models.formatting.safe_text import one_line


def import_folder(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="A folder with GGUF files.", show_default=False)
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="No longer list this folder's models.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Use the models in a folder where they are; nothing is copied or changed there.

    The folders of the Hugging Face cache, LM Studio, Ollama, Jan and GPT4All are recognised. Without a folder, those
    on this machine are listed.
    """
    if folder is None:
        _print_places(as_json)
    elif forget:
        _forget(folder, as_json)
    else:
        _import(folder, as_json)


def _import(folder: Path, as_json: bool) -> None:
    from app.cli.models.library import answer
    from models.catalog.catalog import Catalog
    from models.catalog.imported_folders import FolderKind, ImportedFolder
    from models.files.disk import full_path
    from models.library.requests import ImportFolder

    place = answer(ImportFolder(str(full_path(folder))))
    catalog = Catalog([], starter=None, imported=[ImportedFolder(Path(place.path), FolderKind(place.kind))])
    entries = catalog.entries()
    problems = [problem.sentence for problem in catalog.folder_problems]
    if as_json:
        listed = {"folder": place.path, "kind": place.kind, "problems": problems}
        say_json({**listed, "models": [entry.name for entry in entries]})
        return
    usable = [entry for entry in entries if entry.problem is None]
    what = "" if place.kind == "folder" else f" ({place.kind})"
    found = (
        f"{len(usable)} of {how_many(len(entries), 'model')} can be used." if entries else "there are no models yet."
    )
    lines = [*(f"  {one_line(entry.name)}" for entry in usable[:50]), *problems]
    say("\n".join([f"{place.path}{what}: {found}", *lines]))


def _forget(folder: Path, as_json: bool) -> None:
    from app.cli.models.library import answer
    from models.files.disk import full_path
    from models.library.requests import ForgetFolder

    path = answer(ForgetFolder(str(full_path(folder))))
    if as_json:
        say_json({"forgotten": path})
    else:
        say(f"{path} is no longer looked through.")


def _print_places(as_json: bool) -> None:
    from app.cli.models.library import own_answer
    from models.library.requests import ListPlaces

    places = own_answer(ListPlaces())
    if as_json:
        listed = {"imported": True, "found": False}
        say_json(
            {
                name: [{"folder": one.path, "kind": one.kind} for one in places if one.is_imported is is_imported]
                for name, is_imported in listed.items()
            }
        )
        return
    rows = [[one.path, one.kind, "imported" if one.is_imported else "not imported"] for one in places]
    print(table(rows) or "No folder was imported, and no other program's models were found.")
    print(f"\n`{PROGRAM} models import FOLDER` uses the models of a folder where they are.")
