"""How a worker is named: another machine that lends its devices, as rpc://HOST:PORT."""

from __future__ import annotations

from urllib.parse import urlsplit

from core.values.errors import BadOption
from models.formatting.sentence import Sentence

SCHEME = "rpc://"
DEFAULT_WORKER_PORT = 8643  # the server has 8642
# What ggml says when it aborts because a connection to a worker is gone (RPC_STATUS_ASSERT in ggml-rpc.cpp).
LOST_WORKER = "Remote RPC server crashed"


def is_worker(device: str) -> bool:
    """Whether a device's name stands for the devices of a worker."""
    return device.startswith(SCHEME)


def worker_address(device: str) -> tuple[str, int]:
    """Return host and port of a worker; raises BadOption."""
    try:
        parts = urlsplit(device)
        host, port = parts.hostname, parts.port or DEFAULT_WORKER_PORT
    except ValueError:
        host = None
    if not is_worker(device) or not host or parts.path or parts.query or parts.username:
        raise BadOption(
            Sentence(
                "A worker is named as rpc://HOST:PORT, as ./slipstream worker prints it, not {device}.",
                device=repr(device),
            )
        )
    return host, port
