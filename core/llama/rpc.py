"""ggml's RPC over connected sockets: devices of another machine among ours, and ours lent to another.

Only a build of llama.cpp with Slipstream's patch takes sockets (packaging/first_start/patches/0004-…). Any other build
would open a port without authentication, so it is not used.
"""

from __future__ import annotations

import ctypes

from core.llama.devices import handles_of
from core.llama.library import declare, ggml, start_backend
from core.values.errors import LoadFailed
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

_reg_by_name = declare(ggml, "ggml_backend_reg_by_name", ctypes.c_void_p, ctypes.c_char_p)
_proc_address = declare(ggml, "ggml_backend_reg_get_proc_address", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_register = declare(ggml, "ggml_backend_register", None, ctypes.c_void_p)
_HANDLES = ctypes.POINTER(ctypes.c_void_p)


def is_available() -> bool:
    """Return whether this build of llama.cpp can use and lend devices over a socket."""
    return bool(_function("slipstream_rpc_serve"))


def add_server(fd: int) -> None:
    """Add the devices at the other end of a connected socket to ggml's; raises LoadFailed.

    ggml closes a connection when its last backend is freed, and a socket cannot be connected again. So one backend is
    never freed.
    """
    check()
    endpoint = b"fd:%d" % fd
    declare(ggml, "ggml_backend_rpc_init", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)(endpoint, 0)
    prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
    _register(prototype(_function("ggml_backend_rpc_add_server"))(endpoint))


def serve(fd: int, devices: tuple[str, ...], memory: int, n_threads: int) -> None:
    """Lend devices to the client at the other end of a connected socket until it leaves.

    It may allocate ``memory`` bytes on each of them. Raises LoadFailed, and BadOption for a device that is not there.
    """
    check()
    handles = handles_of(devices)
    size_t = ctypes.c_size_t
    prototype = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int, size_t, size_t, size_t, _HANDLES)
    run = prototype(_function("slipstream_rpc_serve"))
    if not run(fd, memory, n_threads, len(handles), (ctypes.c_void_p * len(handles))(*handles)):
        raise LoadFailed(Sentence("llama.cpp cannot use the devices that are to be lent."))


def check() -> None:
    """Raise LoadFailed if this build of llama.cpp cannot use devices over a socket."""
    if not is_available():
        how = advice(
            f"{PROGRAM} setup --fresh builds it anew; CMAKE_ARGS with -DGGML_RPC=off must not be set then.",
            Sentence("Take the worker out of the model's settings."),
        )
        raise LoadFailed(Sentence("This build of llama.cpp cannot use devices of other machines. {how}", how=how))


def _function(name: str) -> int:
    """Return the address of a function of ggml's RPC; 0 if this build has none."""
    start_backend()
    registry = _reg_by_name(b"RPC")
    return int(_proc_address(registry, name.encode()) or 0) if registry else 0
