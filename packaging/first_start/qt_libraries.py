"""Whether the system has all libraries that Qt's own libraries load."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from first_start.machine import output_of

_LIBRARIES = ("Qt/lib/libQt6Widgets.so.6", "Qt/lib/libQt6Network.so.6")
_PLUGINS = ("platforms/libqoffscreen.so", "platforms/libqxcb.so", "platforms/libqwayland*.so")


def parse_missing(ldd: str) -> frozenset[str]:
    """Return the libraries that ``ldd`` did not find."""
    return frozenset(re.findall(r"^\s*(\S+) => not found", ldd, re.MULTILINE))


def missing_libraries(site_packages: Path) -> tuple[str, ...]:
    """Return the libraries that Qt needs and the system lacks. Qt's own error message names the wrong one."""
    folder = site_packages / "PySide6"
    if not folder.exists() or not shutil.which("ldd"):
        return ()
    files = [folder / name for name in _LIBRARIES]
    for pattern in _PLUGINS:
        files += sorted((folder / "Qt" / "plugins").glob(pattern))
    there = [str(file) for file in files if file.exists()]
    return tuple(sorted(parse_missing(output_of("ldd", *there)))) if there else ()
