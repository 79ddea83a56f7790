"""The socket that the server listens on: opened first, so that a taken port is known before a model is loaded."""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from core.values.errors import BadOption, SlipstreamError

BACKLOG = 1_024
_TRIED_PORTS = 100


class PortTaken(SlipstreamError):
    """Another program listens on the port; the sentence says which, where it can be known, and offers another."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raises PortTaken or BadOption."""
    try:
        return _open(host, port)
    except UnicodeError:
        raise BadOption(f"{host!r} is no address to listen on: use 127.0.0.1 to serve this machine only.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(_taken(host, port)) from None
        if error.errno == errno.EACCES:
            raise BadOption(f"Port {port} may not be used by this account: choose one above 1023.") from None
        raise BadOption(f"The server cannot listen on {host} port {port}: {error.strerror or error}.") from None


def _open(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def _taken(host: str, port: int) -> str:
    message = f"Port {port} is taken by {_holder(port) or 'another program'}."
    free = _next_free(host, port)
    return f"{message} Free is port {free}: add --port {free}." if free else f"{message} Choose another with --port."


def _next_free(host: str, port: int) -> int | None:
    for candidate in range(port + 1, min(port + _TRIED_PORTS, 65_535) + 1):
        with contextlib.suppress(OSError), _open(host, candidate):
            return candidate
    return None


def _holder(port: int) -> str | None:
    """Return name and id of the process that listens on the port; None where the system does not tell."""
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            is_it = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
            if is_it and connection.pid is not None:
                return _described(connection.pid)
    return None


def _described(pid: int) -> str:
    import psutil

    from app.client.discovery import running_servers

    if any(server.pid == pid for server in running_servers()):
        return f"another Slipstream server (process {pid})"
    with contextlib.suppress(psutil.Error, OSError):
        return f"{psutil.Process(pid).name()} (process {pid})"
    return f"process {pid}"
