"""What is said to who asks for a websocket: there is none, but LM Studio's packages show only what comes over one."""

from __future__ import annotations

import base64
import hashlib
import json
import struct

# Where LM Studio's packages open one.
_PATHS = frozenset({"/system", "/llm", "/embedding", "/files", "/repository", "/diagnostics", "/plugins"})
_ACCEPTED = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_TEXT, _CLOSE = 0x81, 0x88  # whole frames
_IN_TWO_BYTES = 126
_DONE = 1000
_MOST_OF_HOST = 80  # characters: a frame has room for 65,535 bytes


def handshake(headers: dict[bytes, bytes]) -> bytes:
    """Return the head that opens a websocket."""
    digest = hashlib.sha1(headers[b"sec-websocket-key"] + _ACCEPTED, usedforsecurity=False).digest()
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: " + base64.b64encode(digest) + b"\r\n\r\n"
    )


def refusal(path: str, headers: dict[bytes, bytes]) -> bytes | None:
    """Return the answer to the first message of LM Studio's packages, as frames; None for any other request."""
    if path not in _PATHS or b"sec-websocket-key" not in headers:
        return None
    host = headers.get(b"host", b"127.0.0.1")[:_MOST_OF_HOST].decode("latin-1")
    sentence = (
        "Slipstream does not speak the protocol of LM Studio's own packages: use the package openai, with the base URL "
        f"http://{host}/v1."
    )
    # The package for Python shows objects, the one for JavaScript texts.
    error = {"title": sentence} if b"python" in headers.get(b"user-agent", b"") else sentence
    answer = json.dumps({"success": False, "error": error}).encode()
    return struct.pack(">BBH", _TEXT, _IN_TWO_BYTES, len(answer)) + answer + struct.pack(">BBH", _CLOSE, 2, _DONE)
