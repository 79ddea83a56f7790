"""``slipstream models rm``: moves a model's files to the system's trash."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.text import say, say_json
from models.formatting.figures import size


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a downloaded model.", show_default=False)],
    delete: Annotated[bool, typer.Option("--delete", help="Delete for good instead of using the trash.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Move a downloaded model to the system's trash, all of its files."""
    from app.cli.models.library import answer, asked_as
    from app.library.find_model import catalog, find_entry
    from models.library.requests import RemoveModel

    models = catalog()
    entry = find_entry(name, models)
    files = answer(RemoveModel(asked_as(entry, models), for_good=delete))
    if as_json:
        done = {"name": entry.name, "files": files, "n_bytes": entry.n_bytes}
        say_json({**done, "is_in_trash": not delete})
        return
    where = "deleted" if delete else "in the trash"
    say(f"{entry.name} ({size(entry.n_bytes)}) is {where}.")
