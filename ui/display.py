"""Whether a window can be shown here: Qt ends the whole process when it cannot, so this is found out before."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from models.program import PROGRAM

WITHOUT_WINDOW = (
    "Without a window, everything else works:\n"
    f"  {PROGRAM} chat     talk to a model here in the terminal\n"
    f"  {PROGRAM} serve    an OpenAI-style endpoint for editors and scripts"
)


def why_no_window() -> str | None:
    """Return why no window can be shown, as a sentence; None where one can."""
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return _why_no_qt()
    if os.environ.get("WAYLAND_DISPLAY"):
        return _why_no_qt()
    if not os.environ.get("DISPLAY"):
        return "There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set."
    return _why_no_qt() or _why_no_xcb()


def _why_no_qt() -> str | None:
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        return f"Qt cannot be loaded: {error}. Run {PROGRAM} setup to install what is missing."
    return None


def _why_no_xcb() -> str | None:
    """Try what Qt's X11 plugin needs: a missing library or a display that refuses would abort the process."""
    spec = importlib.util.find_spec("PySide6")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    plugin = folder / "Qt" / "plugins" / "platforms" / "libqxcb.so" if folder is not None else None
    try:
        if plugin is not None and plugin.exists():
            ctypes.CDLL(str(plugin))
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        return f"A library that windows need is missing: {error}. Run {PROGRAM} setup to install it."
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    is_refused = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return f"The display {os.environ['DISPLAY']} cannot be opened." if is_refused else None
