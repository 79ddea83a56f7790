"""The system's packages: which are missing, and how to install them."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from first_start.command import Log, run_logged
from first_start.errors import CommandFailed, PackagesMissing, SetupError

_CHECK = "check"
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")


@dataclass(frozen=True)
class Need:
    """One thing the machine must have: a program, a shared library or a Python module, and its Debian package.

    A program of the kind "check" is one that only the checks use.
    """

    kind: str
    name: str
    package: str


def parse_needs(text: str) -> tuple[Need, ...]:
    """Return the needs in ``system-packages.txt``: lines of kind, name and package, comments aside."""
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return tuple(Need(*row) for row in rows)


def python_need() -> Need:
    """The part of the running Python that Debian and Ubuntu keep in a package of its own."""
    return Need("module", "ensurepip", f"python{sys.version_info.major}.{sys.version_info.minor}-venv")


def is_there(need: Need) -> bool:
    """Whether the machine has it. Libraries are found by file name: distributions name packages differently."""
    if need.kind == "module":
        return importlib.util.find_spec(need.name) is not None
    if need.kind in ("program", _CHECK):
        # clang will do in place of gcc.
        stand_in = {"gcc": "clang", "g++": "clang++"}.get(need.name)
        named = {"gcc": os.environ.get("CC"), "g++": os.environ.get("CXX")}.get(need.name)
        return any(shutil.which(name) for name in (need.name, stand_in, named) if name)
    try:
        ctypes.CDLL(need.name)
    except OSError:
        return False
    return True


def missing(needs: Sequence[Need], check: Callable[[Need], bool] = is_there) -> tuple[Need, ...]:
    """Return the needs that are not met. macOS brings its libraries, so only a compiler is needed there."""
    if platform.system() == "Darwin":
        needs = [need for need in needs if need.kind != "library"]
    return tuple(need for need in needs if not check(need))


def command_to_type(needs: Sequence[Need], has: Callable[[str], bool] = lambda name: bool(shutil.which(name))) -> str:
    """Return a sentence with the command that installs the packages, for a user to type."""
    intro = "Slipstream needs system packages that are not installed."
    then = "Type this, or have whoever administers this machine type it, then start Slipstream again"
    packages = " ".join(dict.fromkeys(need.package for need in needs))
    if has("apt-get"):
        install = f"{' '.join(_INSTALL)} {packages}"
        command = f"sudo apt-get update && sudo {install}" if has("sudo") else f"su -c 'apt-get update && {install}'"
        return f"{intro} {then}:\n\n    {command}\n"
    if platform.system() == "Darwin":
        return f"{intro} {then}:\n\n    xcode-select --install\n"
    if has("dnf"):
        # dnf finds packages by the libraries that they hold, so no table of names is needed.
        wanted = [f"{need.name}()(64bit)" if need.kind == "library" else f"/usr/bin/{need.name}" for need in needs]
        return f"{intro} {then}:\n\n    sudo dnf install -y {shlex.join(wanted)}\n"
    names = ", ".join(need.name for need in needs)
    hint = "Install the packages that hold these with your system's package manager"
    return f"{intro} {hint}, then start Slipstream again: {names}"


def ensure(needs: Sequence[Need], log: Log, on_line: Callable[[str], None]) -> str:
    """Install missing packages if this user may, else raise PackagesMissing. Return what was done, in words."""
    lacking = missing(needs)
    if not lacking:
        return "all there"
    # Without this module Python cannot make a venv, so the set-up cannot go on.
    can_go_on = all(need.kind != "module" for need in lacking)
    if can_go_on and os.environ.get("SLIPSTREAM_SKIP_PACKAGES"):
        return f"going on without {', '.join(need.name for need in lacking)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise PackagesMissing("\n".join((command_to_type(lacking), *_ways_without(lacking))))
    packages = list(dict.fromkeys(need.package for need in lacking))
    _apt_install(packages, log, on_line)
    importlib.invalidate_caches()
    still = missing(lacking)
    if still:
        names = ", ".join(need.name for need in still)
        raise SetupError(f"apt-get installed {' '.join(packages)}, but {names} cannot be used.")
    return f"installed {len(packages)} package{'s' if len(packages) > 1 else ''}"


def _ways_without(needs: Sequence[Need]) -> tuple[str, ...]:
    """Return what a user can try who cannot have the packages; nothing that could not succeed."""
    kinds = {need.kind for need in needs}
    if "module" in kinds:
        return ("A Python of your own, 3.11 or newer, does too: SLIPSTREAM_PYTHON=FILE ./slipstream",)
    if "program" in kinds:
        return ("A compiler of your own does too: CC=FILE CXX=FILE ./slipstream",)
    return ("To try without them: SLIPSTREAM_SKIP_PACKAGES=1 ./slipstream",)


def _apt_install(packages: Sequence[str], log: Log, on_line: Callable[[str], None]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"}
    wait = ("-o", "DPkg::Lock::Timeout=600")
    run_logged("apt-get update", ("apt-get", "update", "-q", *wait), log, environment, on_line)
    # An interrupted installation leaves packages that must be configured before others can be installed.
    run_logged("dpkg --configure", ("dpkg", "--configure", "-a"), log, environment, on_line)
    try:
        run_logged("apt-get install", (*_INSTALL, "-q", *wait, *packages), log, environment, on_line)
    except CommandFailed as error:
        raise CommandFailed(f"The installation of {' '.join(packages)} with apt-get", 100, error.tail) from error


def read_needs(root: Path) -> tuple[Need, ...]:
    """Return all that the set-up needs from the system."""
    return (python_need(), *(need for need in _listed(root) if need.kind != _CHECK))


def ensure_checks(root: Path, log: Log, on_line: Callable[[str], None]) -> str:
    """Install programs that only the checks use, if this user may. Return a sentence about what is left out."""
    lacking = missing([need for need in _listed(root) if need.kind == _CHECK])
    if not lacking:
        return ""
    packages = [need.package for need in lacking]
    if os.geteuid() == 0 and shutil.which("apt-get") and not os.environ.get("SLIPSTREAM_SKIP_PACKAGES"):
        try:
            _apt_install(packages, log, on_line)
        except CommandFailed:
            pass
        else:
            return ""
    return f"The checks that need {' and '.join(packages)} are left out."


def _listed(root: Path) -> tuple[Need, ...]:
    return parse_needs((root / "packaging" / "system-packages.txt").read_text(encoding="utf-8"))
