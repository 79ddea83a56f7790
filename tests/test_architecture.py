"""The import arrow, the rooms of the heavy libraries, and a docstring on top of every module."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("app", "core", "models", "ui")
OURS = (*ROOMS, "tests", "benchmarks")
MAY_IMPORT = {
    "app": {"app", "ui", "core", "models"},
    "ui": {"ui", "core", "models"},
    "core": {"core", "models"},
    "models": {"models"},
}
# Library -> the places that may import it.
ONLY_IN = {
    "PySide6": ("ui/", "app/desktop.py"),
    "shiboken6": ("ui/", "app/desktop.py"),
    "llama_cpp": ("core/llama/",),
    "fastapi": ("app/server/",),
    "starlette": ("app/server/",),
    "uvicorn": ("app/server/",),
}
# ``ui`` knows the core's values, not its machinery.
VALUES = {
    f"core.{name}"
    for name in (
        "errors",
        "events",
        "loaded_model",
        "model_settings",
        "options",
        "receipt",
        "request",
        "sampling_params",
        "bandwidth",
        "snapshot",
    )
}

PURE = ("planner", "slots", "sequence", "text_stream", "sampling_params", "request", "events", "options", "receipt")
PURE += ("account", "meter", "snapshot", "near_tie", "slot_search", "slot_contents", "cost_model", "rollback", "roster")
PURE += tuple(
    f"speculative/{name}"
    for name in ("acceptance", "contest", "depth", "fixed_depth", "growth", "lookup", "prices", "probes", "ledger")
)
PURE += tuple(f"speculative/{name}" for name in ("record", "records", "selection", "tree"))

SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def without_types(source: str) -> ast.AST:
    """Return a module without what only type checkers see."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module as it is written."""
    return {name: ast.parse(source) for name, source in SOURCES.items()}


@cache
def all_imports() -> list[tuple[str, str]]:
    """Return each module's file with each module that it imports."""
    return [(name, module) for name, tree in trees().items() for module in imports_of(tree)]


def test_a_module_imports_only_what_its_room_may() -> None:
    wrong = [
        (name, module)
        for name, module in all_imports()
        if (top := module.split(".")[0]) in (*ROOMS, "tests", "benchmarks")
        and top not in MAY_IMPORT[name.split("/")[0]]
    ]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not within functions; only what is imported for its type alone may look back."""
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in SOURCES}
    arrows = {
        module: {found for found in imports_of(without_types(SOURCES[name])) if found in modules and found != module}
        for module, name in modules.items()
    }
    order = graphlib.TopologicalSorter(arrows)
    order.prepare()  # raises CycleError, which names the circle


def test_imports_are_absolute() -> None:
    assert [(name, module) for name, module in all_imports() if module.startswith(".")] == []


def test_a_heavy_library_stays_in_its_room() -> None:
    wrong = [
        (name, module)
        for name, module in all_imports()
        if (places := ONLY_IN.get(module.split(".")[0])) and not name.startswith(places)
    ]
    assert wrong == []


def test_the_window_knows_only_values_of_the_core() -> None:
    wrong = [
        (name, module)
        for name, module in all_imports()
        if name.startswith("ui/") and module.startswith("core.") and ".".join(module.split(".")[:2]) not in VALUES
    ]
    assert wrong == []


def test_planning_needs_no_llama_and_values_need_nothing() -> None:
    pure = {f"core/{name}.py" for name in PURE}
    assert pure <= SOURCES.keys()
    assert [(name, module) for name, module in all_imports() if name in pure and module.startswith("core.llama")] == []


def test_a_module_says_what_it_is_in_its_first_line() -> None:
    assert [name for name, tree in trees().items() if not has_summary(ast.get_docstring(tree))] == []


def has_summary(docstring: str | None) -> bool:
    first, *rest = (docstring or "").split("\n")
    return bool(first.strip()) and not (rest and rest[0].strip())
