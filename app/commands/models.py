"""``slipstream models``: what models there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from models.catalog import ModelEntry

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def build() -> typer.Typer:
    """Return the commands below ``models``."""
    app = typer.Typer(help="List and describe the models of this machine.", no_args_is_help=True)
    app.command(name="list")(_list)
    app.command(name="show")(_show)
    return app


def _list(as_json: _Json = False) -> None:
    """List the models, the bundled ones first."""
    from app.model_choice import catalog
    from app.paths import models_folder

    models = catalog()
    entries = models.entries()
    if as_json:
        print(json.dumps([_facts(entry) for entry in entries], ensure_ascii=False))
        return
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        print(f"{entry.name:{width}}  {entry.problem or _summary(entry)}")
    for problem in models.folder_problems:
        print(f"{problem.folder}: {problem.sentence}")
    print(f"\nModels are looked for in {models_folder()}.")


def _show(
    name: Annotated[str, typer.Argument(help="Name, title or path of a model.", show_default=False)],
    as_json: _Json = False,
) -> None:
    """Describe one model."""
    from app.model_choice import find_model

    facts = _facts(find_model(name))
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    for label, value in facts.items():
        if value is not None:
            print(f"{label:14} {value}")


def _summary(entry: ModelEntry) -> str:
    parts = [entry.title, entry.architecture, _count(entry.n_params), entry.quantisation, _size(entry.n_bytes)]
    return "  ".join([*(part for part in parts if part), *(["(a toy to try everything with)"] if entry.is_toy else [])])


def _facts(entry: ModelEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "path": str(entry.path),
        "architecture": entry.architecture,
        "quantisation": entry.quantisation,
        "n_params": entry.n_params,
        "n_bytes": entry.n_bytes,
        "n_ctx_train": entry.n_ctx_train,
        "licence": entry.licence,
        "is_toy": entry.is_toy,
        "problem": entry.problem,
    }


def _count(n_params: int) -> str:
    for size, unit in ((1e9, "B"), (1e6, "M")):
        if n_params >= size:
            return f"{n_params / size:.1f}{unit}"
    return str(n_params) if n_params else ""


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
