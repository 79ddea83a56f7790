"""The folders and files of Slipstream: one place that knows them all."""

from __future__ import annotations

import os
import stat
import warnings
from contextlib import suppress
from pathlib import Path

import platformdirs

NAME = "slipstream"
HOME_VARIABLE = "SLIPSTREAM_HOME"
# In the folder of settings, once the folders were closed to other users.
_CLOSED = ".closed-to-others"


def settle_home() -> None:
    """Make ``SLIPSTREAM_HOME`` absolute, as our other processes need it: they run in another folder.

    Folders of the desktop that are not absolute are to be ignored, by its own rule. A user whom the system does not
    know, as in a container, may have no home: then it is that folder, or the root, as Docker makes it.
    """
    for name in [name for name in os.environ if name.startswith("XDG_") and name.endswith(("_HOME", "_RUNTIME_DIR"))]:
        if not os.path.isabs(os.environ[name]):
            del os.environ[name]
    if os.environ.get(HOME_VARIABLE):
        os.environ[HOME_VARIABLE] = os.path.abspath(os.path.expanduser(os.environ[HOME_VARIABLE]))
    if os.path.expanduser("~") == "~":
        os.environ["HOME"] = os.environ.get(HOME_VARIABLE) or os.path.abspath(os.sep)


def _folder(kind: str) -> Path:
    """Return the folder of ``kind``; ``SLIPSTREAM_HOME`` moves all of them under one folder (tests, portable use)."""
    home = os.environ.get(HOME_VARIABLE)
    if home:
        return Path(home) / kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs tells users that XDG_RUNTIME_DIR is not set
        return Path(getattr(platformdirs, f"user_{kind}_dir")(NAME, appauthor=False))


def data_folder() -> Path:
    """Chats and downloaded models."""
    return _folder("data")


def config_folder() -> Path:
    """Settings."""
    return _folder("config")


def cache_folder() -> Path:
    """Measurements and other things that can be made again."""
    return _folder("cache")


def log_folder() -> Path:
    """Logs of the engine and the server."""
    return _folder("log")


def runtime_folder() -> Path:
    """Locks and the list of running servers. Make it with ``make_private``."""
    try:
        return _folder("runtime")
    except PermissionError:  # somebody else has taken the name that is ours in the folder of temporary files
        return cache_folder() / "runtime"


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can look into, and what is missing of those around it in the same way.

    A runtime folder that others may look into is not taken for one the next time. Raises OSError.
    """
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_folders_private() -> None:
    """Make the folders that are missing, before others do, as Qt, who let every user of the machine look into them.

    Earlier versions did so too: such folders are closed, once, since somebody may want to share one. Where that fails,
    whoever writes there says so.
    """
    closed = config_folder() / _CLOSED
    is_first_start = not os.path.lexists(closed)
    for folder in (data_folder(), config_folder(), cache_folder(), log_folder()):
        with suppress(OSError):
            if is_first_start:
                _close(folder)
            make_private(folder)
    if is_first_start:
        with suppress(OSError):
            closed.touch(mode=0o600)


def _close(folder: Path) -> None:
    """Keep other users out of a folder that is there. Where it is a link, somebody has chosen the place."""
    if folder.is_dir() and not folder.is_symlink():
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) & stat.S_IRWXU)


def models_folder() -> Path:
    """Models that were downloaded: beside the chats, or where they were moved to."""
    try:
        place = models_place_file().read_text(encoding="utf-8", errors="surrogatepass").strip()
    except (OSError, UnicodeDecodeError):
        place = ""
    return Path(place) if place else data_folder() / "models"


def models_place_file() -> Path:
    """Names the folder of models, where they were moved."""
    return config_folder() / "models-folder.txt"


def model_settings_file() -> Path:
    """Holds the settings of single models."""
    return config_folder() / "models.json"


def hub_file() -> Path:
    """The Hub's address and proxy."""
    return config_folder() / "hub.json"


def folders_file() -> Path:
    """The list of imported folders."""
    return config_folder() / "folders.json"


def usage_file() -> Path:
    """When each model was used last."""
    return data_folder() / "usage.json"
