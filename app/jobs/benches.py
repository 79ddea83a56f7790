"""The benchmarks of this project: each is a program in benchmarks/, found without importing it."""

from __future__ import annotations

import ast

from models.formatting.program import PROGRAM_FOLDER


def benches() -> dict[str, str]:
    """Return the benchmarks' names with a line about each; none where they are not installed."""
    trees = {path.stem: ast.parse(path.read_bytes()) for path in sorted((PROGRAM_FOLDER / "benchmarks").glob("*.py"))}
    return {name: _first_line(tree) for name, tree in trees.items() if _is_program(tree) and _reports(tree)}


def _is_program(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)


def _reports(tree: ast.Module) -> bool:
    """Whether it prints a report, as all benchmarks do; the others are programs that one of them starts."""
    return any(isinstance(node, ast.ImportFrom) and node.module == "benchmarks.report" for node in tree.body)


def _first_line(tree: ast.Module) -> str:
    return ((ast.get_docstring(tree) or "").splitlines() or [""])[0]
