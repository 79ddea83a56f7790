"""``slipstream models import``: models of other programs, used where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal.text import say, table
from models.formatting.program import PROGRAM
from models.formatting.safe_text import one_line

if TYPE_CHECKING:
    from models.catalog.imported_folders import ImportedFolder

_Folders = tuple["ImportedFolder", ...]


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
        from app.library.imported_folders import places

        _print_places(*places(), as_json)
    elif forget:
        _forget(folder, as_json)
    else:
        _import(folder, as_json)


def _import(folder: Path, as_json: bool) -> None:
    from app.library.imported_folders import import_folder as add
    from models.catalog.catalog import Catalog

    chosen = add(folder)
    catalog = Catalog([], starter=None, imported=[chosen])
    entries = catalog.entries()
    problems = [problem.sentence for problem in catalog.folder_problems]
    if as_json:
        listed = {"folder": str(chosen.path), "kind": chosen.kind.value, "problems": problems}
        print(json.dumps({**listed, "models": [entry.name for entry in entries]}, ensure_ascii=False))
        return
    usable = [entry for entry in entries if entry.problem is None]
    what = "" if chosen.kind.value == "folder" else f" ({chosen.kind.value})"
    say(f"{chosen.path}{what}: {len(usable)} of {len(entries)} models can be used.")
    say("\n".join([*(f"  {one_line(entry.name)}" for entry in usable[:50]), *problems]))


def _forget(folder: Path, as_json: bool) -> None:
    from app.library.imported_folders import forget_folder

    path = forget_folder(folder)
    print(json.dumps({"forgotten": str(path)}) if as_json else f"{path} is no longer looked through.")


def _print_places(known: _Folders, found: _Folders, as_json: bool) -> None:
    if as_json:
        listed = {"imported": known, "found": found}
        print(
            json.dumps(
                {name: [{"folder": str(f.path), "kind": f.kind.value} for f in all_] for name, all_ in listed.items()},
                ensure_ascii=False,
            )
        )
        return
    rows = [[str(place.path), place.kind.value, "imported"] for place in known]
    rows += [[str(place.path), place.kind.value, "not imported"] for place in found]
    print(table(rows) or "No folder was imported, and no other program's models were found.")
    print(f"\n`{PROGRAM} models import FOLDER` uses the models of a folder where they are.")
