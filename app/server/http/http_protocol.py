"""uvicorn's reading of HTTP, with a limit for headers and with errors that the clients of this server can read."""

from __future__ import annotations

from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.server.http.errors import refuse

# Room for more than one read: how a read is split into heads and bodies is not known here.
MAX_HEAD = 1 << 20


class HttpProtocol(HttpToolsProtocol):
    """One connection. What is no HTTP, or a head without an end, is answered and closed."""

    _is_in_head = False
    _n_head = 0

    def data_received(self, data: bytes) -> None:
        """Read on; the parser keeps what it has of a head, so that one may not grow without end."""
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._n_head += len(data)
            if self._n_head > MAX_HEAD:
                self._refuse(431, f"The request's headers may have {MAX_HEAD:,} bytes: send fewer.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_in_head, self._n_head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._is_in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no request; what uvicorn says goes to the log."""
        self._refuse(400, "This is not a request in HTTP/1.1, or its address or headers are not valid.")

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = refuse(status, message).encoded()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
