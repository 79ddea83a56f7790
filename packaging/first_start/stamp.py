"""Stamps say what a finished set-up was made from. The launcher compares them with the present state."""

from __future__ import annotations

from pathlib import Path

from first_start.venv_folder import VenvFolder

APP = ".slipstream-stamp"
DEVELOPMENT = ".slipstream-stamp-dev"


def stamp_text(fingerprint: str, venv: VenvFolder) -> str:
    """Return a stamp: the launcher's fingerprint and the venv's Python."""
    return f"{fingerprint}\npython {venv.version}\n"


def is_stamped(venv: VenvFolder, fingerprint: str, names: tuple[str, ...]) -> bool:
    """Whether all stamps ``names`` are there and up to date."""
    text = stamp_text(fingerprint, venv)
    return venv.python.exists() and all(_read(venv.path / name) == text for name in names)


def put(venv: VenvFolder, fingerprint: str, names: tuple[str, ...]) -> None:
    """Write the stamps: the set-up is finished."""
    for name in names:
        (venv.path / name).write_text(stamp_text(fingerprint, venv), encoding="utf-8", errors="surrogateescape")


def remove(venv: VenvFolder) -> None:
    """Remove the stamps, so that after an interruption the launcher runs the set-up again."""
    for name in (APP, DEVELOPMENT):
        (venv.path / name).unlink(missing_ok=True)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
