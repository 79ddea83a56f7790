"""Applies the patches beside it to llama.cpp's sources: all of them, or none.

``python llama_patches.py FOLDER`` is run by the build of llama.cpp (``llama_sources.cmake``). It needs neither git nor
patch, which a user's machine may lack.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATCHES = Path(__file__).with_name("patches")
# Where the headers that the patches include belong.
_HEADERS = Path("ggml/src/ggml-cpu")
# In a folder that has the patches.
_STAMP = "slipstream-patches.txt"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


class PatchError(Exception):
    """A patch does not belong to these sources, or was changed by hand and is none any more."""


@dataclass(frozen=True)
class Hunk:
    """Lines of a file, counted from ``start`` (0 is the first), and what takes their place."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def patch_files() -> list[Path]:
    """Return the patches in the order in which they are applied."""
    return sorted(PATCHES.glob("*.patch"))


def read_patch(text: str) -> Iterator[tuple[str, list[Hunk]]]:
    """Yield the files of a unified diff by path, with their hunks; what comes before the first file is a message.

    Raises PatchError where a hunk has not the lines that its head counts: git and patch would refuse it.
    """
    for part in re.split(r"^--- a/", text, flags=re.MULTILINE)[1:]:
        lines = _split(part)
        hunks: list[Hunk] = []
        for place, line in enumerate(lines):
            if (head := _HUNK.match(line)) is None:
                continue
            body = lines[place + 1 :]
            end = next((n for n, other in enumerate(body) if other[0] not in " +-"), len(body))
            old = tuple(other[1:] for other in body[:end] if other[0] != "+")
            new = tuple(other[1:] for other in body[:end] if other[0] != "-")
            if (len(old), len(new)) != (int(head[2] or 1), int(head[3] or 1)):
                raise PatchError(f"the patch has other lines than it counts: {line.strip()}")
            hunks.append(Hunk(int(head[1]) - 1, old, new))
        yield lines[0].strip(), hunks


def patched(lines: list[str], hunks: list[Hunk], name: str) -> list[str]:
    """Return the lines of a file after hunks, each found at the nearest place where all its old lines stand.

    Raises PatchError where one is not found.
    """
    lines, moved = list(lines), 0
    for hunk in hunks:
        wanted, old = hunk.start + moved, list(hunk.old)
        places = (n for n in range(len(lines) - len(old) + 1) if lines[n : n + len(old)] == old)
        found = min(places, key=lambda n: abs(n - wanted), default=None)
        if found is None:
            raise PatchError(f"{name} has no lines like those from {hunk.start + 1} on in the patch")
        lines[found : found + len(old)] = hunk.new
        moved = found - hunk.start + len(hunk.new) - len(old)
    return lines


def apply_patches(folder: Path) -> bool:
    """Patch the sources of llama.cpp in ``folder``; return False where they were patched before.

    Raises PatchError, before anything is written, and OSError.
    """
    if (folder / _STAMP).exists():
        return False
    contents: dict[str, list[str]] = {}
    for path in patch_files():
        for name, hunks in read_patch(path.read_text(encoding="utf-8")):
            if name not in contents:
                contents[name] = _lines_of(folder / name)
            contents[name] = patched(contents[name], hunks, f"{path.name}: {name}")
    for header in PATCHES.glob("*.h"):
        shutil.copy(header, folder / _HEADERS)
    for name, lines in contents.items():
        (folder / name).write_text("".join(lines), encoding="utf-8", newline="")
    (folder / _STAMP).write_text("\n".join(path.name for path in patch_files()) + "\n", encoding="utf-8")
    return True


def _lines_of(path: Path) -> list[str]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return _split(file.read())
    except FileNotFoundError as error:
        raise PatchError(f"there is no {path.name} in {path.parent}") from error


def _split(text: str) -> list[str]:
    """Return the lines of a text with their ends; ``splitlines`` would split at form feeds too."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def main(arguments: list[str]) -> int:
    """Patch the folder that is named, and say what was done."""
    try:
        is_new = apply_patches(Path(arguments[0]))
    except (PatchError, OSError, UnicodeDecodeError) as error:
        print(f"llama.cpp's sources stay as they are: {error}")
        return 1
    print(", ".join(path.stem for path in patch_files()) if is_new else "llama.cpp's sources were patched before")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
