"""A server that answers every request with the bytes it was given, and notes what it was sent."""

from __future__ import annotations

import contextlib
import socket
import threading

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def json_reply(status: str, body: bytes, *headers: str, kind: str = "application/json") -> bytes:
    head = (f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close")
    return "\r\n".join([*head, *headers]).encode() + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class ScriptedRemote:
    """``reply`` is sent to each request, unless ``go`` is cleared; the connection closes then, unless it ``stays``."""

    def __init__(self) -> None:
        self.reply = b""
        self.stays = False
        self.go = threading.Event()
        self.go.set()
        self.requests: list[bytes] = []
        self.left = threading.Event()  # a client went away while its connection stayed
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            data = connection.recv(1 << 16)
            head, _, body = data.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            while len(body) < length:
                body += connection.recv(1 << 16)
            self.requests.append(head + b"\r\n\r\n" + body)
            self.go.wait()
            connection.sendall(self.reply)
            if self.stays:
                connection.recv(1)
                self.left.set()
