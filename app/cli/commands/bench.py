"""``slipstream bench``: the benchmarks of this project, each a program in benchmarks/."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from core.values.errors import BadOption

_ROOT = Path(__file__).resolve().parents[3]


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Benchmark to run; without it they are listed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure this machine.

    Other options go to the benchmark, as in: ./slipstream bench engine --rounds 3

    It shows its own options with: ./slipstream bench NAME -- --help
    """
    known = benches()
    if name is None:
        print(json.dumps(known) if as_json else _table(known))
        return
    if name not in known:
        names = ", ".join(known) or "none is installed"
        raise BadOption(f"There is no benchmark called {name!r}. Benchmarks: {names}.")
    raise typer.Exit(_run(name, [*context.args, *(["--json"] if as_json else [])]))


def benches() -> dict[str, str]:
    """Return the benchmarks' names with a line about each, without importing them."""
    trees = {path.stem: ast.parse(path.read_bytes()) for path in sorted((_ROOT / "benchmarks").glob("*.py"))}
    return {name: _first_line(tree) for name, tree in trees.items() if _is_program(tree) and _reports(tree)}


def _run(name: str, options: list[str]) -> int:
    # A process of its own: it sets variables that libraries read when they are loaded.
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONSAFEPATH": "1"}, check=False
    ).returncode


def _table(known: dict[str, str]) -> str:
    width = max((len(name) for name in known), default=0)
    return "\n".join(f"{name:{width}}  {line}" for name, line in known.items())


def _is_program(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)


def _reports(tree: ast.Module) -> bool:
    """Whether it prints a report, as all benchmarks do; the others are programs that one of them starts."""
    return any(isinstance(node, ast.ImportFrom) and node.module == "benchmarks.report" for node in tree.body)


def _first_line(tree: ast.Module) -> str:
    return ((ast.get_docstring(tree) or "").splitlines() or [""])[0]
