"""The desktop app: the window first, then its private server."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from app.client.server_process import new_api_key, serve_command, serve_environment
from app.environment.early_interrupts import EarlyInterrupts
from app.environment.exit_codes import ExitCode
from app.environment.paths import config_folder, data_folder, make_private, runtime_folder
from models.formatting.program import IN_WINDOW, PROGRAM_FOLDER
from ui.platform.display import WITHOUT_WINDOW, leave_sources_unread, why_no_window

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtWidgets import QApplication, QWidget

    from ui.platform.single_instance import SingleInstance
    from ui.window.main_window import MainWindow

TITLE_BAR = 40  # pixels, which desktops draw above a window
LIBRARY_MS = 4_000  # the start is over by then
CHECK_MS = 60_000  # models are loaded by then
THREADS_SECONDS = 5.0  # what is begun on other threads takes less; only a disk that hangs takes longer
TRACE_VARIABLE = "SLIPSTREAM_TRACE_START"
# On Wayland Qt warns of each change of the focus, and of a desktop without portals: nobody can do anything about it.
QUIET = "qt.qpa.wayland.textinput.warning=false\nqt.qpa.services.warning=false"


def run_desktop(file: Path | None = None) -> int:
    """Open the window, and a model file in it, and stay until it is closed; return the exit code."""
    before = signal.getsignal(signal.SIGINT)
    gc.disable()  # until the window is there: each collection goes through all that was imported before
    try:
        # Ctrl-C in the middle of Qt's imports would look as if Qt were missing.
        opened = "" if file is None else str(file.absolute())
        with suppress(OSError):
            os.chdir(Path.home())  # where dialogs of files begin: else in the program's folder, if it is started there
        return _open(EarlyInterrupts(), opened)
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)


def _open(interrupts: EarlyInterrupts, file: str) -> int:
    problem = why_no_window()
    if interrupts.came:
        return ExitCode.INTERRUPTED
    if problem is not None:
        print(f"slipstream: {problem}\n{WITHOUT_WINDOW}", file=sys.stderr)
        return ExitCode.NO_DISPLAY
    leave_sources_unread()
    from PySide6.QtCore import QLoggingCategory
    from PySide6.QtWidgets import QApplication

    from ui.platform.single_instance import SingleInstance

    os.environ[IN_WINDOW] = "1"
    QLoggingCategory.setFilterRules(QUIET)
    application = QApplication(["slipstream"])
    application.setApplicationName("Slipstream")
    application.setDesktopFileName("slipstream")
    folder = runtime_folder()
    _make(folder)
    instance = SingleInstance(folder)
    try:
        if not instance.claim():
            return _show_other(instance, file)
        return _run(application, instance, interrupts, file)
    finally:
        instance.release()
        # Left to the end of Python, Qt would be destroyed while modules go away.
        application.shutdown()


def _run(application: QApplication, instance: SingleInstance, interrupts: EarlyInterrupts, file: str) -> int:
    from PySide6.QtCore import QLocale, QSettings, QTimer, QTranslator

    from ui import language

    settings = config_folder() / "window.ini"
    # Before the modules of the window are imported, which hold texts.
    language.choose(str(QSettings(str(settings), QSettings.Format.IniFormat).value("language", "")))
    application.setLayoutDirection(QLocale().textDirection())
    words_of_qt = QTranslator(application)
    if (words := language.qt_translation()) is not None and words_of_qt.load(str(words)):
        application.installTranslator(words_of_qt)

    from ui.client.api import Api
    from ui.client.private_server import PrivateServer
    from ui.platform.display import tune_python
    from ui.theme.appearance import Appearance
    from ui.theme.icons import icon
    from ui.window.main_window import MainWindow
    from ui.window.server_link import ServerLink

    appearance = Appearance(application)
    application.setWindowIcon(icon("stream", appearance.palette.accent, size=64))
    api = Api()
    window = MainWindow(api, appearance, data_folder() / "chats.db", settings)
    _fit(window)
    window.show()
    key = new_api_key()
    options = window.kept.engine_in_use
    server = PrivateServer(_serve(options), serve_environment(key, listed=True), str(PROGRAM_FOLDER))
    link = ServerLink(server, key, api, window.watch, window.chats.first.server_banner, is_recommended=not options)
    window.restart_wanted.connect(lambda options: link.restart(_serve(options), is_recommended=not options))
    link.recommended_wanted.connect(window.use_recommended_engine)
    instance.asked.connect(lambda other: _on_asked(window, other))
    if file:
        QTimer.singleShot(0, application, lambda: window.chats.open_file(file))
    # The window is painted first: only then the other processes compete for the machine.
    QTimer.singleShot(0, application, _trace_start)
    QTimer.singleShot(0, application, link.start)
    QTimer.singleShot(0, application, tune_python)
    QTimer.singleShot(1_500, application, window.tools.colours.warm_up)
    # Downloads that were interrupted go on; the model that answers comes first.
    QTimer.singleShot(LIBRARY_MS, application, window.prepare_pages)
    QTimer.singleShot(LIBRARY_MS, application, window.link.start)
    QTimer.singleShot(CHECK_MS, application, window.chats.check_chats)
    # Closing the window may leave the app running, and closing a dialog then is no reason to quit.
    application.setQuitOnLastWindowClosed(False)
    application.commitDataRequest.connect(lambda manager: window.quit_unasked())
    window.closed.connect(application.quit)
    with _Signals(application, window.quit_unasked):
        if interrupts.came:
            QTimer.singleShot(0, application, window.quit_unasked)
        code = application.exec()
    server.stop()
    _take_down(window, link, server, api, appearance)
    return code


def _fit(window: QWidget) -> None:
    """Let the window be seen whole: its usual size is more than a small laptop's screen has."""
    if not window.isMaximized():
        room = window.screen().availableSize()
        window.resize(min(window.width(), room.width()), min(window.height(), room.height() - TITLE_BAR))


def _take_down(*parts: QObject) -> None:
    """Destroy what the app was made of, the window first: left to Python, each could go while others still need it."""
    import shiboken6

    # A thread that writes a pasted file, or imports what draws plots, would speak to what is gone.
    until = time.monotonic() + THREADS_SECONDS
    for thread in threading.enumerate():
        if type(thread) is threading.Thread and thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))
    for part in parts:
        shiboken6.delete(part)


def _serve(engine: list[str]) -> list[str]:
    return serve_command(["--last-model", *engine])


def _on_asked(window: MainWindow, file: str) -> None:
    window.bring_forward()
    if file:
        window.chats.open_file(file)


def _show_other(instance: SingleInstance, file: str) -> int:
    if instance.ask_other(file):
        return ExitCode.OK
    process = "" if instance.holder is None else f" (process {instance.holder})"
    print(
        f"slipstream: The app is running already{process}, but its window does not answer. If it hangs, end that "
        "process, and start it again.",
        file=sys.stderr,
    )
    return ExitCode.ERROR


def _make(folder: Path) -> None:
    try:
        make_private(folder)
    except OSError:
        # Then there is no lock, and the window says itself what cannot be kept.
        return


def _trace_start() -> None:
    if os.environ.get(TRACE_VARIABLE):
        print(f"slipstream: window shown after {_age() * 1000:.0f} ms", file=sys.stderr, flush=True)


def _age() -> float:
    """Return the seconds since this process began."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        import psutil

        return time.time() - psutil.Process().create_time()
    # The start in ticks since boot; the clock of the day is only known to the second there.
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


class _Signals:
    """Ctrl-C and a polite kill close the window: Python's handlers only run when Qt hands over, so Qt is woken."""

    def __init__(self, application: QApplication, act: Callable[[], object]) -> None:
        from PySide6.QtCore import QSocketNotifier

        self._application, self._act = application, act
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, application)
        self._notifier.activated.connect(lambda: self._ours.recv(64))

    def __enter__(self) -> None:
        self._before = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before)
        self._notifier.setEnabled(False)
        self._ours.close()
        self._theirs.close()

    def _on_signal(self, number: int, frame: object) -> None:
        from PySide6.QtCore import QTimer

        # Not here: what was interrupted may hold a lock that closing needs.
        QTimer.singleShot(0, self._application, self._act)
