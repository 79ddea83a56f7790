"""``slipstream bench``: the benchmarks of this project, each a module in benchmarks/ with ``run(options) -> dict``."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import BadOption

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Benchmark to run; without it they are listed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure this machine; what follows NAME goes to the benchmark, as in: slipstream bench engine --widths 1,4"""
    known = benches()
    if name is None:
        _list(known, as_json)
        return
    if name not in known:
        raise BadOption(
            f"There is no benchmark called {name!r}. Benchmarks: {', '.join(known) or 'none is installed'}."
        )
    result = importlib.import_module(f"benchmarks.{name}").run(parse_options(context.args))
    print(json.dumps(result) if as_json else render(result))


def benches() -> dict[str, str]:
    """Return the benchmarks' names with a line about each, without importing them."""
    sources = {path.stem: path for path in sorted(_FOLDER.glob("*.py")) if not path.stem.startswith("_")}
    trees = {name: ast.parse(path.read_bytes()) for name, path in sources.items()}
    return {name: _first_line(tree) for name, tree in trees.items() if _is_bench(tree)}


def parse_options(words: Sequence[str]) -> dict[str, str]:
    """Return ``--name value``, ``--name=value`` and ``--name`` as a mapping; the last kind has the value "true"."""
    options: dict[str, str] = {}
    name = None
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].replace("-", "_").partition("=")
            options[name] = word.partition("=")[2] if value else "true"
        elif name is None:
            raise BadOption(f"{word!r} is not an option: a benchmark takes --name value.")
        else:
            options[name], name = word, None
    return options


def render(result: dict[str, Any]) -> str:
    """Return a result's rows as a table with its summary below."""
    rows: list[dict[str, Any]] = result.get("rows") or []
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = [columns, *([_cell(row.get(column)) for column in columns] for row in rows)] if columns else []
    widths = [max(len(line[index]) for line in table) for index in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    summary = [f"{name}: {_cell(value)}" for name, value in (result.get("summary") or {}).items()]
    return "\n".join([*lines, "", *summary]).strip("\n")


def _list(known: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(known))
        return
    width = max((len(name) for name in known), default=0)
    for name, line in known.items():
        print(f"{name:{width}}  {line}")


def _is_bench(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def _first_line(tree: ast.Module) -> str:
    return ((ast.get_docstring(tree) or "").splitlines() or [""])[0]


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
