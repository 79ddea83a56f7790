"""Reads the rooms of the project and their imports: ``python -m tools.structure`` renews docs/architecture.md.

A room is a folder with modules. The document's table says which rooms each room imports, and pictures show it. A test
compares the table with the sources, so a review shows each new arrow between two rooms.
"""

from __future__ import annotations

import ast
import graphlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("app", "ui", "core", "models")
DOCUMENT = ROOT / "docs" / "architecture.md"
_BEGIN, _END = "<!-- rooms -->", "<!-- end of rooms -->"
PICTURES = {part: ROOT / "docs" / "images" / f"rooms-{part}.svg" for part in PARTS}
_SWEEPS = 8
_ARROW = {"arrowstyle": "-|>", "color": "#6e7781", "linewidth": 0.0, "shrinkA": 0, "shrinkB": 0}
_INK, _QUIET, _LINE, _FACE = "#1f2328", "#6e7781", "#8c959f", "#f6f8fa"


@dataclass(slots=True)
class Room:
    """A folder: its modules without ``__init__``, what it is for, and the rooms that it imports."""

    name: str
    purpose: str
    files: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)

    @property
    def part(self) -> str:
        """The part of the program that it belongs to."""
        return self.name.split("/")[0]


def read_rooms(root: Path = ROOT) -> dict[str, Room]:
    """Return the rooms of the program by their folders."""
    paths = {path.relative_to(root): path for part in PARTS for path in sorted((root / part).rglob("*.py"))}
    room_of = {".".join(path.with_suffix("").parts): path.parent.as_posix() for path in paths}
    rooms: dict[str, Room] = {}
    for path, source in paths.items():
        tree = ast.parse(source.read_text(encoding="utf-8"))
        folder = path.parent.as_posix()
        room = rooms.setdefault(folder, Room(folder, ""))
        if path.name == "__init__.py":
            room.purpose = (ast.get_docstring(tree) or "").split("\n")[0].replace("``", "`")
            continue
        room.files.append(path.stem)
        room.imports |= {room_of[module] for module in _imported(tree) if module in room_of} - {folder}
    return {name: room for name, room in sorted(rooms.items()) if room.files}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module's statements at all depths. Expressions are skipped: most of a tree, they import nothing."""
    below = [tree]
    while below:
        node = below.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            below += getattr(node, part, ())


def _imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def table(rooms: Mapping[str, Room]) -> str:
    """Return the rooms as a table; rooms that others import come last."""
    lines = ["| room | what it is for | imports |", "|---|---|---|"]
    for part in PARTS:
        for name in reversed(_order(rooms, part)):
            room = rooms[name]
            # Rooms of the same part are named without it.
            imports = [one.removeprefix(f"{part}/") if one.startswith(f"{part}/") else one for one in room.imports]
            arrows = ", ".join(sorted(imports, key=lambda one: (one.split("/")[0] in PARTS, one)))
            lines.append(f"| **{name}** ({len(room.files)}) | {room.purpose} | {arrows or 'nothing of ours'} |")
    return "\n".join(lines)


def _order(rooms: Mapping[str, Room], part: str) -> list[str]:
    """Return the rooms of a part, each after the rooms that it imports. Raises graphlib.CycleError."""
    own = {name: sorted(one for one in room.imports if one in rooms) for name, room in rooms.items()}
    return [name for name in graphlib.TopologicalSorter(own).static_order() if rooms[name].part == part]


def table_in(document: str) -> str:
    """Return the table that a document has."""
    found = re.search(rf"{_BEGIN}\n(.*?)\n{_END}", document, re.DOTALL)
    return found[1].strip() if found else ""


def _levels(rooms: Mapping[str, Room], part: str) -> list[list[str]]:
    """Return the rooms of a part by level; level 0 imports no room of the part."""
    level: dict[str, int] = {}
    for name in _order(rooms, part):
        level[name] = max([level[one] + 1 for one in rooms[name].imports if one in level], default=0)
    return [[name for name in level if level[name] == height] for height in range(max(level.values()) + 1)]


def draw(rooms: Mapping[str, Room], part: str, path: Path) -> None:
    """Draw the rooms of a part and their import arrows, without transitive ones."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "slipstream", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    levels = _levels(rooms, part)
    names = {name for row in levels for name in row}
    own = {name: {one for one in rooms[name].imports if one in names} for name in names}
    arrows = sorted(
        (name, one)
        for name, imports in own.items()
        for one in imports
        if not any(one in _below(own, other) for other in imports if other != one)
    )
    ways, places = _lay_out(levels, arrows)
    width = max(x for x, _ in places.values()) + 1
    figure, axes = pyplot.subplots(figsize=(2.0 * width, 1.1 * len(levels)))
    for way in ways:
        points = [places[place] for place in way]
        axes.plot(*zip(*points, strict=True), color=_QUIET, linewidth=0.9, zorder=1, solid_joinstyle="round")
        (x, y), (above_x, above_y) = points[-1], points[-2]
        # The arrow's tip is at the upper edge of the box.
        tip = (x + (above_x - x) * 0.27, y + 0.27)
        axes.annotate("", xy=tip, xytext=(above_x, above_y), arrowprops={**_ARROW}, zorder=1)
    for row in levels:
        for name in row:
            n_files = len(rooms[name].files)
            label = f"{name.removeprefix(part + '/')}\n{n_files} file{'s' if n_files > 1 else ''}"
            box = {"boxstyle": "round,pad=0.5", "facecolor": _FACE, "edgecolor": _LINE}
            axes.text(*places[name], label, ha="center", va="center", fontsize=10, color=_INK, bbox=box, zorder=2)
    axes.set(xlim=(-0.6, width - 0.4), ylim=(-0.5, len(levels) - 0.5))
    axes.axis("off")
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


Place = str | tuple[str, str, int]


def _lay_out(
    levels: list[list[str]], arrows: list[tuple[str, str]]
) -> tuple[list[list[Place]], dict[Place, tuple[float, float]]]:
    """Return the path of each arrow, and all coordinates; an arrow takes a place in each level that it passes.

    Places of a level are ordered by the mean of their neighbours, from above and from below in turns (Sugiyama).
    """
    height = {name: level for level, row in enumerate(levels) for name in row}
    rows: list[list[Place]] = [list(row) for row in levels]
    ways: list[list[Place]] = []
    for begin, end in arrows:
        passed: list[Place] = [(begin, end, level) for level in range(height[begin] - 1, height[end], -1)]
        for place in passed:
            assert isinstance(place, tuple)
            rows[place[2]].append(place)
        ways.append([begin, *passed, end])
    beside: dict[Place, list[Place]] = {}
    for way in ways:
        for above, below in itertools.pairwise(way):
            beside.setdefault(above, []).append(below)
            beside.setdefault(below, []).append(above)
    places: dict[Place, tuple[float, float]] = {}
    widest = max(len(row) for row in rows)

    def place_row(level: int) -> None:
        first = (widest - len(rows[level])) / 2
        for index, place in enumerate(rows[level]):
            places[place] = first + index, float(level)

    for level in range(len(rows)):
        place_row(level)
    for _ in range(_SWEEPS):
        for level in [*range(len(rows)), *reversed(range(len(rows)))]:
            means = {
                place: sum(places[one][0] for one in beside.get(place, [place])) / len(beside.get(place, [place]))
                for place in rows[level]
            }
            rows[level].sort(key=lambda place, means=means: (means[place], str(place)))  # type: ignore[misc]  # mypy reads no default of a lambda
            place_row(level)
    return ways, places


def _below(own: Mapping[str, set[str]], name: str) -> set[str]:
    """Return all rooms that a room imports, directly or indirectly, itself included."""
    return {name}.union(*(_below(own, one) for one in own[name]))


def main() -> None:
    """Renew the table and the pictures."""
    rooms = read_rooms()
    text = DOCUMENT.read_text(encoding="utf-8")
    begin, end = text.index(_BEGIN) + len(_BEGIN), text.index(_END)
    DOCUMENT.write_text(f"{text[:begin]}\n{table(rooms)}\n{text[end:]}", encoding="utf-8")
    for part, picture in PICTURES.items():
        draw(rooms, part, picture)


if __name__ == "__main__":
    main()
