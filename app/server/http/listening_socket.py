"""The socket that the server listens on: opened first, so that a taken port is known before a model is loaded."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Sequence

from app.environment.exit_codes import ExitCode
from core.values.errors import BadOption, SlipstreamError
from models.formatting.system_error import system_reason

BACKLOG = 1_024
EVERYWHERE = "0.0.0.0"
_TRIED_PORTS = 100
_FIRST_OPEN = 1_024  # those below are for the system's own servers


class PortTaken(SlipstreamError):
    """Another program listens on the port; the sentence says which, where it can be known, and offers another.

    ``free`` is a port that can be had, None where none was found.
    """

    exit_code = ExitCode.PORT_TAKEN

    def __init__(self, message: str, free: int | None = None) -> None:
        super().__init__(message)
        self.free = free


class PortForbidden(BadOption):
    """The system does not let this account use the port; another one may be had."""


def is_socket_path(host: str) -> bool:
    """True where ``host`` is the path of a Unix socket."""
    return "/" in host


def listen_on(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Return a listening socket for each address; port 0 takes one that is free. Raises PortTaken or BadOption.

    Later addresses have the port that the first one got.
    """
    opened: list[socket.socket] = []
    try:
        for host in hosts:
            opened.append(listen(host, port))
            if not is_socket_path(host):
                port = opened[-1].getsockname()[1]
    except SlipstreamError:
        stop_listening(opened, hosts[: len(opened)])
        raise
    return opened


def stop_listening(listening: Sequence[socket.socket], hosts: Sequence[str]) -> None:
    """Close the sockets that ``listen_on`` returned for ``hosts``, and remove the files of Unix sockets."""
    for one, host in zip(listening, hosts, strict=True):
        one.close()
        if is_socket_path(host):
            with contextlib.suppress(OSError):
                os.unlink(host)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. ``host`` may be the path of a Unix socket.

    Raises PortTaken or BadOption.
    """
    try:
        return _open_path(host) if is_socket_path(host) else _open(host, port)
    except UnicodeError:
        raise BadOption(f"{host!r} is no address to listen on: use 127.0.0.1 to serve this machine only.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            in_use = f"Another program listens on {host}: stop it, or choose another path."
            raise PortTaken(in_use) if is_socket_path(host) else _taken(host, port) from None
        if is_socket_path(host):
            raise BadOption(f"The server cannot listen on {host}: {error.strerror or error}.") from None
        if error.errno == errno.EACCES:
            other = "one above 1023" if port < _FIRST_OPEN else "another with --port"
            raise PortForbidden(f"Port {port} may not be used by this account: choose {other}.") from None
        reason = system_reason(error)
        if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            raise BadOption(
                "{host} is no address of this machine ({reason}). 127.0.0.1 serves this machine only, 0.0.0.0 others "
                "too.",
                host=host,
                reason=reason,
            ) from None
        raise BadOption(
            "The server cannot listen on {host} port {port}: {reason}.", host=host, port=str(port), reason=reason
        ) from None


def lan_address() -> str | None:
    """Return this machine's address in its network; None where it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: only the route to it is looked up
            found = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if found.startswith("127.") else found


def address_of(host: str) -> str | None:
    """Return how other machines write the address of what listens on ``host``; None where this one has no network."""
    if host.strip("[]") in (EVERYWHERE, "::"):
        return lan_address()
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


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


def _open_path(path: str) -> socket.socket:
    """Return a listening Unix socket that only this user may connect to."""
    if not hasattr(socket, "AF_UNIX"):
        raise BadOption("This system has no Unix sockets: listen on 127.0.0.1.")
    opened = socket.socket(socket.AF_UNIX)
    try:
        _remove_dead(path)
        mask = os.umask(0o177)
        try:
            opened.bind(path)
        finally:
            os.umask(mask)
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def _remove_dead(path: str) -> None:
    """Remove the socket of a server that is gone; one that answers stays."""
    try:
        is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError(errno.EEXIST, "a file of this name is there")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def _taken(host: str, port: int) -> PortTaken:
    message = f"Port {port} is taken by {_holder(port) or 'another program'}."
    free = _next_free(host, port)
    how = f"Free is port {free}: add --port {free}." if free else "Choose another with --port."
    return PortTaken(f"{message} {how}", free)


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
