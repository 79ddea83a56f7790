"""Slipstream in the menus of a desktop, after the XDG standards: name, icon, ``.gguf`` files, start at login.

Specifications: Desktop Entry, Shared MIME-info, Icon Theme and Autostart, all on specifications.freedesktop.org.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from models.files.disk import write_whole
from models.formatting.program import PROGRAM_FOLDER
from models.formatting.system_error import system_reason
from ui.language import in_all, tr

LAUNCHER = PROGRAM_FOLDER / "slipstream"
NAME = "slipstream"
MIME_TYPE = "application/x-gguf"
_TOOL_SECONDS = 20.0  # an index of the desktop's is renewed in well under one

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 128 128">
<rect x="8" y="8" width="112" height="112" rx="28" fill="#0b746e"/>
<g fill="none" stroke="#ffffff" stroke-width="8" stroke-linecap="round">
<path d="M28 44c12-12 24 12 36 0s24-12 36 0"/>
<path d="M28 66c12-12 24 12 36 0s24-12 36 0" opacity=".8"/>
<path d="M28 88c12-12 24 12 36 0s24-12 36 0" opacity=".55"/>
</g></svg>
"""
_MIME = f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{MIME_TYPE}">
    <comment>Language model</comment>
    <generic-icon name="{NAME}"/>
    <magic priority="60"><match type="string" offset="0" value="GGUF"/></magic>
    <glob pattern="*.gguf"/>
  </mime-type>
</mime-info>
"""


class EntryRefused(Exception):
    """The desktop's files cannot be written; says why in a sentence."""


class _Files(NamedTuple):
    entry: Path
    icon: Path
    mime: Path


class DesktopEntry:
    """The files that a desktop looks at. ``data`` and ``config`` are the user's XDG folders, unless given."""

    def __init__(self, launcher: Path = LAUNCHER, data: Path | None = None, config: Path | None = None) -> None:
        home = Path.home()
        self._launcher = launcher
        self._data = data or Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        config = config or Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        self._autostart = config / "autostart" / f"{NAME}.desktop"
        self.files = _Files(
            self._data / "applications" / f"{NAME}.desktop",
            self._data / "icons" / "hicolor" / "scalable" / "apps" / f"{NAME}.svg",
            self._data / "mime" / "packages" / f"{NAME}.xml",
        )

    @property
    def is_offered(self) -> bool:
        """Whether this system's desktops look at such files."""
        return sys.platform.startswith("linux")

    @property
    def is_installed(self) -> bool:
        """Whether this copy of Slipstream is in the menus."""
        return _starts(self.files.entry, self._launcher)

    @property
    def starts_at_login(self) -> bool:
        """Whether this copy of Slipstream is started at login."""
        return _starts(self._autostart, self._launcher)

    def install(self) -> None:
        """Put name, icon and ``.gguf`` into the menus, also over those of another copy. Raises EntryRefused."""
        self._refuse_elsewhere()
        icon, mime = ICON, _MIME
        for path, text in zip(self.files, (_entry(self._launcher), icon, mime), strict=True):
            _write(path, text)
        self._renew_indexes()

    def uninstall(self) -> bool:
        """Take them out again, and the start at login; False where nothing was there. Raises EntryRefused."""
        found = [path for path in (*self.files, self._autostart) if path.exists()]
        for path in found:
            _remove(path)
        if found:
            self._renew_indexes()
        return bool(found)

    def start_at_login(self, is_wanted: bool) -> None:
        """Start with the user's session, or no longer. Raises EntryRefused."""
        if is_wanted:
            self._refuse_elsewhere()
            _write(self._autostart, _entry(self._launcher))
        elif self._autostart.exists():
            _remove(self._autostart)

    def _refuse_elsewhere(self) -> None:
        if not self.is_offered:
            raise EntryRefused(tr("Menus of this kind are those of Linux desktops; there are none on this system."))

    def _renew_indexes(self) -> None:
        """Let desktops see it at once; those without these tools see it after a while."""
        for tool, folder in (("update-mime-database", "mime"), ("update-desktop-database", "applications")):
            program = shutil.which(tool)
            if program is not None and (self._data / folder).is_dir():
                with contextlib.suppress(OSError, subprocess.SubprocessError):
                    command = [program, str(self._data / folder)]
                    subprocess.run(command, capture_output=True, check=False, timeout=_TOOL_SECONDS)


def _entry(launcher: Path) -> str:
    lines = {
        "Type": "Application",
        "Name": "Slipstream",
        **_in_all("GenericName", in_all("Language models")),
        **_in_all("Comment", in_all("Run language models on this machine, and see why they are fast")),
        "Exec": f"{_quoted(launcher)} desktop %f",
        "Icon": NAME,
        "Terminal": "false",
        "Categories": "Utility;",
        "Keywords": "AI;LLM;GGUF;chat;",
        "MimeType": f"{MIME_TYPE};",
        "StartupNotify": "true",
        "StartupWMClass": NAME,
    }
    return "[Desktop Entry]\n" + "".join(f"{name}={value}\n" for name, value in lines.items())


def _in_all(key: str, said: dict[str, str]) -> dict[str, str]:
    """Return a key of the file in each language; the one without a code is English."""
    return {key if code == "en" else f"{key}[{code}]": words for code, words in said.items()}


def _quoted(path: Path) -> str:
    """Return a path as an argument of ``Exec``: in quotes, where some signs need a backslash and % is doubled."""
    text = str(path)
    # First the rules of a quoted argument, then those of a string in the file, which doubles backslashes.
    for sign in ("\\", '"', "`", "$"):
        text = text.replace(sign, f"\\{sign}")
    return '"' + text.replace("\\", "\\\\").replace("%", "%%") + '"'


def _starts(file: Path, launcher: Path) -> bool:
    try:
        return f"Exec={_quoted(launcher)} " in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        reason = system_reason(error)
        raise EntryRefused(tr("{path} cannot be written: {strerror}.", path=path, strerror=reason)) from error


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        reason = system_reason(error)
        raise EntryRefused(tr("{path} cannot be removed: {strerror}.", path=path, strerror=reason)) from error
