"""A worker in this process that lends the processor, for tests; the devices are lent by a real process."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import psutil

from core.remote_devices.borrowing import Offered
from core.remote_devices.lending import Lending, Offer
from models.estimate.speed.machine import DeviceKind

TOKEN = "a token that only tests know"
CPU = Offered("CPU", "a processor", DeviceKind.CPU, 1 << 40, 1 << 40, bandwidth=5e9)


class TestWorker:
    """A worker at ``address``, with all that it said. ``port`` 0 takes a free one."""

    __test__ = False

    def __init__(self, port: int = 0, memory: int = 1 << 29) -> None:
        listening = socket.create_server(("127.0.0.1", port))
        self.port = listening.getsockname()[1]
        self.address = f"rpc://127.0.0.1:{self.port}"
        self.said: list[str] = []
        self._lending = Lending(listening, TOKEN, Offer((CPU,), memory), self.said.append)
        self._thread = threading.Thread(target=self._lending.run)
        self._thread.start()

    @property
    def lender(self) -> psutil.Process:
        """The process that serves the client of now."""
        found = []
        for child in psutil.Process().children():  # those of other workers among them
            with suppress(psutil.NoSuchProcess):  # one that has just ended
                if any(self.port == connection.laddr.port for connection in child.net_connections()):
                    found.append(child)
        (lender,) = found
        return lender

    def close(self) -> None:
        self._lending.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
