"""Whether a window can be shown here, as Qt ends the whole process when it cannot; and what Python spares for one."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from models.formatting.program import PROGRAM

WITHOUT_WINDOW = (
    "Without a window, everything else works:\n"
    f"  {PROGRAM} chat     talk to a model here in the terminal\n"
    f"  {PROGRAM} serve    an OpenAI-style endpoint for editors and scripts"
)


def why_no_window() -> str | None:
    """Return why no window can be shown, as a sentence; None where one can."""
    if not sys.platform.startswith("linux"):
        return _why_no_qt()
    wanted = _wanted_platform()
    if wanted and not wanted.startswith(("wayland", "xcb")):
        return _why_no_qt() or _why_no_plugin(wanted)
    return _why_no_display(wanted) or _why_no_qt()


def _wanted_platform() -> str:
    """Return the platform that QT_QPA_PLATFORM names; "" where it names none, or several to try."""
    names = os.environ.get("QT_QPA_PLATFORM", "").split(";")
    return names[0].partition(":")[0] if len(names) == 1 else ""


def _why_no_display(wanted: str) -> str | None:
    problem = "There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set."
    if not wanted.startswith("xcb") and os.environ.get("WAYLAND_DISPLAY"):
        wayland = _why_no_wayland()
        if wayland is None:
            return None
        problem = wayland
    if not wanted.startswith("wayland") and os.environ.get("DISPLAY"):
        return _why_no_xcb()
    return problem


def _why_no_qt() -> str | None:
    try:
        import PySide6.QtNetwork
        import PySide6.QtSvg
        import PySide6.QtWidgets  # noqa: F401 - only to see whether all that the window is made of loads
    except ImportError as error:
        return f"Qt cannot be loaded: {error}. Run {PROGRAM} setup to install what is missing."
    return None


def _why_no_plugin(name: str) -> str | None:
    folder = _plugins()
    if folder is None or (folder / f"libq{name}.so").exists():
        return None
    return f"QT_QPA_PLATFORM asks for {name!r}, which Qt does not have here."


def _why_no_wayland() -> str | None:
    """Knock at the compositor's socket."""
    name = os.environ["WAYLAND_DISPLAY"]
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "")) / name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
            knocking.connect(str(path))
    except OSError:
        return f"The display {name} cannot be opened."
    return None


def _plugins() -> Path | None:
    spec = importlib.util.find_spec("PySide6")
    folder = Path(spec.origin).parent / "Qt" / "plugins" / "platforms" if spec is not None and spec.origin else None
    return folder if folder is not None and folder.is_dir() else None


def _why_no_xcb() -> str | None:
    """Try what Qt's X11 plugin needs: a missing library or a display that refuses would abort the process."""
    folder = _plugins()
    try:
        if folder is not None and (folder / "libqxcb.so").exists():
            ctypes.CDLL(str(folder / "libqxcb.so"))
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        return f"A library that windows need is missing: {error}. Run {PROGRAM} setup to install it."
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    is_refused = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return f"The display {os.environ['DISPLAY']} cannot be opened." if is_refused else None


# What the start of a program or the click on a notice is given, of the protocol xdg-activation.
ACTIVATION_TOKEN = "XDG_ACTIVATION_TOKEN"


def use_activation_token(token: str) -> None:
    """Let the window come to the front: on Wayland none may that has no token of what the user did. Qt uses it next."""
    if token:
        os.environ[ACTIVATION_TOKEN] = token


def leave_sources_unread() -> None:
    """Keep PySide from reading each module's source at its import: it holds on to every line, 20 MB, for nothing here.

    It looks for modules that use its ``__feature__``, the other names for Qt's methods. Call this before the window's
    modules are imported.
    """
    with suppress(ImportError):
        import_module("PySide6.support.feature")._mod_uses_pyside = lambda module: False  # type: ignore[attr-defined]


SWITCH_SECONDS = 0.0005


def tune_python() -> None:
    """Tune the collector and the switching of threads for a window.

    A collection that goes through all that was imported takes tens of milliseconds, and one of 20,000 new objects
    15 ms. And each call into Qt gives other threads a turn: by default a busy one keeps it for 5 ms, hundreds of times
    a second.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 80, 20)


def give_back_memory() -> None:
    """Give the system back what was freed: the C library keeps it, 100 MB after two hundred messages on Linux."""
    with suppress(TypeError, AttributeError):  # Windows, and C libraries that have no such call
        ctypes.CDLL(None).malloc_trim(0)
