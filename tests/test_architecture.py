"""The rooms and their arrows, the rooms of the heavy libraries, and a docstring on top of every module."""

from __future__ import annotations

import ast
import gc
import graphlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.structure import DOCUMENT, PARTS, PICTURES, statements, table, table_in
from tools.structure import read_rooms as read_rooms_anew

ROOT = Path(__file__).resolve().parents[1]
OURS = (*PARTS, "tests", "benchmarks", "tools")
# Which parts each part may import.
MAY_IMPORT = {
    "app": {"app", "ui", "core", "models"},
    "ui": {"ui", "core", "models"},
    "core": {"core", "models"},
    "models": {"models"},
    "tools": {"app", "ui", "core", "models", "tools"},
    "benchmarks": {"app", "ui", "core", "models", "tools", "benchmarks"},
}
# Library -> the places that may import it.
ONLY_IN = {
    "PySide6": ("ui/", "app/desktop/", "tools/", "benchmarks/ui_stall.py", "benchmarks/frame_probe.py"),
    "shiboken6": ("ui/", "app/desktop/", "tools/"),
    "llama_cpp": ("core/llama/", "benchmarks/bare_loop.py"),
    "fastapi": ("app/server/",),
    "starlette": ("app/server/",),
    "uvicorn": ("app/server/",),
    "prometheus_client": ("app/server/",),
}
# Rooms of the core that the window knows: values, not machinery.
KNOWN_TO_UI = {"core/values"}
# The bindings know what they are asked with and answer with, and the sentences of their errors.
KNOWN_TO_BINDINGS = {"core/values", "models/formatting"}
# Rooms that decide and count, and so can be tried without a model. What has to know llama.cpp's values is left out.
PREFIX_CACHE = tuple(f"core/kv_cache/{name}.py" for name in ("prefix_tree", "segment_store", "disk_cache"))
POLICY = tuple(f"core/speculation/{name}" for name in ("speculator", "draft", "proposer_choice"))
WITHOUT_LLAMA = ("core/values/", *PREFIX_CACHE, *POLICY)
MOST_FILES = 15

read_rooms = cache(read_rooms_anew)
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for part in (*PARTS, "tools", "benchmarks")
    for path in sorted((ROOT / part).rglob("*.py"))
}


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module as it is written."""
    return {name: ast.parse(source) for name, source in SOURCES.items()}


@pytest.fixture(autouse=True, scope="module")
def _unwatched() -> Iterator[None]:
    """Pause the garbage collector, which takes most of the time where so much is parsed; keep none of it."""
    gc.disable()
    yield
    trees.cache_clear()
    gc.enable()


@cache
def all_imports() -> list[tuple[str, str]]:
    """Return each module's file with each module that it imports."""
    return [(name, module) for name, tree in trees().items() for module in imports_of(tree)]


def test_a_part_imports_only_what_it_may() -> None:
    wrong = [
        (name, module)
        for name, module in all_imports()
        if (top := module.split(".")[0]) in OURS and top not in MAY_IMPORT[name.split("/")[0]]
    ]
    assert wrong == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    order = graphlib.TopologicalSorter({name: room.imports for name, room in read_rooms().items()})
    order.prepare()  # raises CycleError, which names the circle


def test_a_room_can_be_read_in_one_sitting() -> None:
    rooms = read_rooms()
    assert {name: len(room.files) for name, room in rooms.items() if len(room.files) > MOST_FILES} == {}
    assert [name for name in rooms if name in PARTS and rooms[name].files != ["__main__"]] == [], "nothing lies flat"


def test_a_room_says_where_to_begin() -> None:
    """Its first lines name modules that are there."""
    silent = [
        name
        for name, room in read_rooms().items()
        if name not in PARTS and not any(f"``{file}.py``" in SOURCES[f"{name}/__init__.py"] for file in room.files)
    ]
    assert silent == []
    named = [
        (name, module)
        for name in read_rooms()
        for module in re.findall(r"``([a-z_/]+\.py)``", SOURCES[f"{name}/__init__.py"])
    ]
    assert [one for one in named if one[1] not in SOURCES and "/".join(one) not in SOURCES] == []


def test_the_document_shows_the_rooms_as_they_are() -> None:
    """``python -m tools.structure`` renews it."""
    rooms = read_rooms()
    assert table_in(DOCUMENT.read_text(encoding="utf-8")) == table(rooms)
    for part, picture in PICTURES.items():
        text = picture.read_text(encoding="utf-8")
        shown = [name for name, room in rooms.items() if room.part == part and name != part]
        assert [name for name in shown if f">{name.removeprefix(part + '/')}<" not in text] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not within functions; only what is imported for its type alone may look back."""
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in SOURCES}
    arrows: dict[str, set[str]] = {}
    for module, name in modules.items():
        found = Counter(imports_of(trees()[name]))
        for block in filter(is_for_types, trees()[name].body):
            found -= Counter(imports_of(block))
        arrows[module] = {one for one in found if one in modules and one != module}
    order = graphlib.TopologicalSorter(arrows)
    order.prepare()  # raises CycleError, which names the circle


def test_imports_are_absolute_and_a_heavy_library_stays_in_its_room() -> None:
    assert [(name, module) for name, module in all_imports() if module.startswith(".")] == []
    wrong = [
        (name, module)
        for name, module in all_imports()
        if (places := ONLY_IN.get(module.split(".")[0])) and not name.startswith(places)
    ]
    assert wrong == []


def test_the_window_knows_only_values_of_the_core() -> None:
    rooms = read_rooms().values()
    wrong = {room.name: {one for one in room.imports if one.startswith("core/")} - KNOWN_TO_UI for room in rooms}
    assert {name: found for name, found in wrong.items() if name.startswith("ui/") and found} == {}


def test_the_bindings_know_only_values() -> None:
    assert read_rooms()["core/llama"].imports - KNOWN_TO_BINDINGS == set()


def test_what_decides_needs_no_llama() -> None:
    wrong = [
        (name, module)
        for name, module in all_imports()
        if name.startswith(WITHOUT_LLAMA) and module.startswith(("core.llama", "llama_cpp"))
    ]
    assert wrong == []


def test_a_module_says_what_it_is_in_its_first_line() -> None:
    assert [name for name, tree in trees().items() if not has_summary(ast.get_docstring(tree))] == []


def has_summary(docstring: str | None) -> bool:
    first, *rest = (docstring or "").split("\n")
    return bool(first.strip()) and not (rest and rest[0].strip())


def test_what_the_pages_name_is_there() -> None:
    """Links lead to files and headings, and paths in backticks are those of this project."""
    missing = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:\]\(|(?:src|srcset)=")([^)"\s]+)', text):
            path, _, heading = link.partition("#")
            target = page.parent / path if path else page
            if "://" in link:
                continue
            if not target.exists() or (heading and heading not in headings_of(target)):
                missing.append((page.name, link))
        named = re.findall(r"`((?:app|ui|core|models|tools|tests|benchmarks|packaging)/[\w/]+(?:\.\w+)?/?)`", text)
        # What users keep their models in is a folder of theirs.
        theirs = ("models/MAKER/", "models/quantised/")
        missing += [(page.name, one) for one in named if not (ROOT / one).exists() and not one.startswith(theirs)]
    assert missing == []


def headings_of(page: Path) -> set[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}
