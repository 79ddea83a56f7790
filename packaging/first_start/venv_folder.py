"""The project's virtual environment: made, checked, repaired after a cut-off installation, moved with its folder."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from first_start.command import Log, run_logged
from first_start.machine import output_of

LOCK = ".slipstream-lock"
LOG = ".slipstream-setup.log"
_KEPT = (LOCK, LOG)
_PATH_FILE = "slipstream.pth"
_PROBE = "import sys, pip; print(sys.version_info[0], sys.version_info[1], pip.__version__)"
_OLDEST = (3, 11)
# A longer first line, or one with a space, cannot name an interpreter.
_LONGEST_SHEBANG = 120


class VenvFolder:
    """The folder ``.venv`` of the project in ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".venv"
        self.python = self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where the packages are."""
        return next(iter(sorted(self.path.glob("lib/python3.*/site-packages"))), self.path / "lib")

    @property
    def version(self) -> str:
        """The version of Python in ``pyvenv.cfg``, where the launcher reads it too."""
        return read_version(self.path / "pyvenv.cfg")

    def pip_version(self) -> str | None:
        """Return pip's version if the venv works; None if the venv has to be made anew."""
        if not (self.path / "pyvenv.cfg").exists():
            return None
        words = output_of(str(self.python), "-E", "-s", "-c", _PROBE).split()
        if len(words) != 3 or (int(words[0]), int(words[1])) < _OLDEST:
            return None
        return words[2]

    def make(self, log: Log) -> None:
        """Make it from nothing with the Python that runs this."""
        self.wipe()
        run_logged("The making of .venv", (str(base_python()), "-E", "-s", "-m", "venv", str(self.path)), log)

    def wipe(self) -> None:
        """Remove everything in it except this process's lock and log."""
        for entry in self.path.iterdir() if self.path.exists() else ():
            if entry.name in _KEPT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def follow_its_folder(self) -> bool:
        """Repair the paths inside after the project's folder was moved or copied; False if it must be made anew."""
        old = made_as(self.path)
        if old is None or old == self.path:
            return True
        if not can_be_rewritten(old) or not can_be_rewritten(self.path):
            return False
        for entry in (*(self.path / "bin").iterdir(), self.path / "pyvenv.cfg"):
            if entry.is_file() and not entry.is_symlink():
                rewrite(entry, {str(old): str(self.path)})
        return True

    def link_project(self) -> None:
        """Let the venv's Python import the project from any working directory.

        Python reads the file in the encoding of the locale, and does not start where a path is not of that: so it is
        an import line, in ASCII. The path is in bytes: the next start may have another locale.
        """
        line = f"import os, sys; sys.path.append(os.fsdecode({os.fsencode(self.root)!r}))\n"
        (self.site_packages / _PATH_FILE).write_text(line, encoding="ascii")

    def drop_incomplete(self) -> tuple[str, ...]:
        """Remove packages that lack files, as after an interrupted installation, so that pip installs them again."""
        # Packages that pip set aside during an update that was interrupted.
        for aside in self.site_packages.glob("~*"):
            shutil.rmtree(aside, ignore_errors=True)
        broken = [info for info in sorted(self.site_packages.glob("*.dist-info")) if not is_complete(info)]
        for info in broken:
            shutil.rmtree(info)
        return tuple(info.name.removesuffix(".dist-info") for info in broken)


def base_python() -> Path:
    """Return the Python behind a venv, links followed, by a name that stays the same after an upgrade."""
    base = Path(getattr(sys, "_base_executable", None) or sys.executable)
    versioned = base.with_name(f"python{sys.version_info.major}.{sys.version_info.minor}")
    return versioned if versioned.exists() else base


def read_version(config: Path) -> str:
    """Return the value of ``version`` in a ``pyvenv.cfg``; empty where there is none."""
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    match = re.search(r"^version = (\S*)", text, re.MULTILINE)
    return match.group(1) if match else ""


def made_as(venv: Path) -> Path | None:
    """Return the path under which a venv was made, from its activation script."""
    try:
        script = (venv / "bin" / "activate").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    match = re.search(r"^\s*(?:export )?VIRTUAL_ENV=(['\"]?)(/.*)\1\s*$", script, re.MULTILINE)
    return Path(match.group(2)) if match else None


def can_be_rewritten(venv: Path) -> bool:
    """Whether the venv's scripts name their Python only in their first line, so that replacing the path is enough."""
    return len(str(venv)) < _LONGEST_SHEBANG and not re.search(r"[\s'\"$`\\]", str(venv))


def rewrite(file: Path, replacements: Mapping[str, str]) -> None:
    """Replace texts in a file; leave binaries alone."""
    content = file.read_bytes()
    if b"\0" in content:
        return
    changed = content
    for old, new in replacements.items():
        changed = changed.replace(old.encode(), new.encode())
    if changed != content:
        file.write_bytes(changed)


def is_complete(info: Path) -> bool:
    """Whether every file of an installed package is there, with the size in its RECORD."""
    try:
        with (info / "RECORD").open(encoding="utf-8", newline="") as record:
            return all_there(info.parent, csv.reader(record))
    except (OSError, ValueError, IndexError):
        return False


def all_there(folder: Path, rows: Iterable[list[str]]) -> bool:
    """Whether the files that RECORD's rows (path, hash, size) name are there.

    The sizes of scripts are not compared, since a move rewrites their paths; compiled modules are not checked at all.
    """
    for name, _, size in rows:
        file = folder / name
        if not size or name.endswith(".pyc"):
            continue
        if not file.is_file() or (not name.startswith("..") and file.stat().st_size != int(size)):
            return False
    return True
