"""One window per user: a second start asks the first one to come to the front."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from ui.platform.display import ACTIVATION_TOKEN, use_activation_token

ASK_MS = 1_500
ANSWER_MS = 10_000  # a window that still starts on a busy machine is not one that hangs
LONGEST_PATH = 90  # bytes: a socket's takes 107, and Qt makes it under a longer name
# One line of JSON: the file that the second start was given, or "". One more: its activation token.
MOST_BYTES = 64 << 10


class SingleInstance(QObject):
    """The claim to be the one instance that keeps its lock in ``folder``."""

    asked = Signal(str)  # another start wants to see the window, and this file in it, "" for none

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._name = str(folder / "desktop.socket")
        if len(os.fsencode(self._name)) > LONGEST_PATH:
            # Among the temporary files, where another user could take the name first, and be asked instead.
            self._name = f"slipstream-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        self._lock = QLockFile(str(folder / "desktop.lock"))
        # Only the owner's death makes a lock stale, never its age.
        self._lock.setStaleLockTime(0)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def claim(self) -> bool:
        """Become the one instance; False where another one is. Without a place for a lock this is the one."""
        if not self._lock.tryLock(100) and self._lock.error() == QLockFile.LockError.LockFailedError:
            return False
        QLocalServer.removeServer(self._name)
        self._server.listen(self._name)
        return True

    @property
    def holder(self) -> int | None:
        """The process of the instance that has the lock; None where that is not known."""
        pid, *_ = self._lock.getLockInfo()
        return pid or None

    def ask_other(self, file: str = "") -> bool:
        """Ask the other instance to show itself and to open a file; False where it does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(ASK_MS):
            return False
        token = os.environ.get(ACTIVATION_TOKEN, "")
        socket.write(f"{json.dumps(file)}\n{json.dumps(token)}\n".encode())
        answered = socket.waitForBytesWritten(ASK_MS) and socket.waitForReadyRead(ANSWER_MS)
        socket.disconnectFromServer()
        return answered

    def release(self) -> None:
        """Let another instance start."""
        self._server.close()
        self._lock.unlock()

    def _on_connection(self) -> None:
        socket = self._server.nextPendingConnection()
        socket.readyRead.connect(lambda: self._on_words(socket))
        socket.disconnected.connect(socket.deleteLater)

    def _on_words(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            if socket.bytesAvailable() > MOST_BYTES:
                socket.abort()
            return
        try:
            file, *token = [json.loads(line) for line in bytes(socket.readAll().data()).splitlines()]
        except ValueError:
            return
        if isinstance(file, str):
            socket.write(b"ok\n")
            if token and isinstance(token[0], str):
                use_activation_token(token[0])
            self.asked.emit(file)
