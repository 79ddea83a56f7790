"""How an engine and a worker prove to each other that they know a token, before ggml uses the connection.

ggml's RPC serves every connection. So both sides prove the token first, and only then hand the connection to ggml. Each
side sends a random challenge, and each answers with an HMAC of both: the token itself never crosses the network, and no
answer can be used again. Nothing is encrypted or signed after that, so it is only for trusted networks.

Messages are JSON objects behind their length. The engine may ask for the devices ("look"), measure the link
("measure"), and at last borrow the devices ("lend"). From then on the connection is ggml's.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
import time
from typing import Any

from models.formatting.sentence import Sentence

# Version of the messages; both sides must have the same.
PROTOCOL = 1
# Limit for a whole handshake, on slow networks too.
HANDSHAKE_SECONDS = 20.0
_LENGTH = struct.Struct(">I")
# Bytes of one message at most, far above what many devices and their probes take; and of one read of a measurement.
_MOST_BYTES = _PIECE = 1 << 16
# A peer that lost power cannot close its connection. TCP keep-alive finds out: after so many quiet seconds it asks,
# again every _ASK_SECONDS, and gives up after _ASKED times.
_QUIET_SECONDS, _ASK_SECONDS, _ASKED = 10, 5, 3


class NotUnderstood(Exception):
    """The other side does not speak this protocol, or said nothing in time."""


class MessageSocket:
    """JSON objects and bytes over a connected socket, all within ``seconds``. Raises NotUnderstood."""

    def __init__(self, connection: socket.socket, seconds: float = HANDSHAKE_SECONDS) -> None:
        self.connection = connection
        self._deadline = time.monotonic() + seconds

    def send(self, **fields: object) -> None:
        """Send an object."""
        body = json.dumps(fields).encode()
        self.send_bytes(_LENGTH.pack(len(body)) + body)

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        try:
            self._wait_no_longer()
            self.connection.sendall(data)
        except OSError as error:
            raise NotUnderstood(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """Wait for an object."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if size > _MOST_BYTES:
            raise NotUnderstood(Sentence("the message is too long"))
        try:
            fields = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise NotUnderstood(str(error)) from error
        if not isinstance(fields, dict):
            raise NotUnderstood(Sentence("the message is not an object"))
        return fields

    def skip(self, n_bytes: int) -> None:
        """Read and discard bytes."""
        while n_bytes > 0:
            n_bytes -= len(self._read(min(n_bytes, _PIECE)))

    def hand_over(self) -> socket.socket:
        """Return the socket as ggml expects it: without a timeout, and with keep-alive to notice a lost peer."""
        self.connection.settimeout(None)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        lost_after = _QUIET_SECONDS + _ASK_SECONDS * _ASKED
        for name, value in (
            ("TCP_KEEPIDLE", _QUIET_SECONDS),
            ("TCP_KEEPALIVE", _QUIET_SECONDS),  # the same on macOS
            ("TCP_KEEPINTVL", _ASK_SECONDS),
            ("TCP_KEEPCNT", _ASKED),
            ("TCP_USER_TIMEOUT", 1000 * lost_after),
        ):
            if hasattr(socket, name):
                self.connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return self.connection

    def _read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes: one more could belong to ggml."""
        parts = []
        while size:
            try:
                self._wait_no_longer()
                part = self.connection.recv(size)
            except OSError as error:
                raise NotUnderstood(str(error)) from error
            if not part:
                raise NotUnderstood(Sentence("it closed the connection"))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise NotUnderstood(Sentence("it took too long"))
        self.connection.settimeout(left)


def admit(channel: MessageSocket, token: str) -> bool:
    """Check the engine's proof that it knows the token, and prove the same to it; False if its proof is wrong."""
    mine = secrets.token_hex(16)
    channel.send(slipstream_worker=PROTOCOL, challenge=mine)
    answer = channel.receive()
    theirs = str(answer.get("challenge", ""))
    if not hmac.compare_digest(_proof(token, "engine", mine, theirs), str(answer.get("proof", "")).encode()):
        channel.send(problem="token")
        return False
    channel.send(proof=_proof(token, "worker", mine, theirs).decode())
    return True


def enter(channel: MessageSocket, token: str) -> bool:
    """Prove to a worker that we know the token; False if either side does not. Raises NotUnderstood."""
    hello = channel.receive()
    if hello.get("slipstream_worker") != PROTOCOL:
        raise NotUnderstood(
            Sentence(
                "it speaks version {its}, and this program {own}",
                its=hello.get("slipstream_worker"),
                own=PROTOCOL,
            )
        )
    theirs, mine = str(hello.get("challenge", "")), secrets.token_hex(16)
    channel.send(challenge=mine, proof=_proof(token, "engine", theirs, mine).decode())
    answer = str(channel.receive().get("proof", ""))
    return hmac.compare_digest(_proof(token, "worker", theirs, mine), answer.encode())


def _proof(token: str, who: str, of_worker: str, of_engine: str) -> bytes:
    said = f"slipstream {PROTOCOL} {who} {of_worker} {of_engine}"
    return hmac.new(token.encode(), said.encode(), "sha256").hexdigest().encode()
