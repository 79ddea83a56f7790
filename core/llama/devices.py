"""The devices llama.cpp can compute on, with free and total memory; and those that machines lend to each other (RPC).

Only a build of llama.cpp with Slipstream's patch takes connected sockets (packaging/first_start/patches/0004-…). Any
other build would open a port without authentication, so it is not used for that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

from core.llama.library import declare, ggml, start_backend
from core.values.engine_options import Device
from core.values.errors import BadOption, LoadFailed
from models.formatting.program import PROGRAM, advice
from models.formatting.sentence import Sentence

_count = declare(ggml, "ggml_backend_dev_count", ctypes.c_size_t)
_get = declare(ggml, "ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
_name = declare(ggml, "ggml_backend_dev_name", ctypes.c_char_p, ctypes.c_void_p)
_description = declare(ggml, "ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
_type = declare(ggml, "ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
_memory = declare(
    ggml,
    "ggml_backend_dev_memory",
    None,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
# By ``ggml_backend_dev_type``.
_KINDS = ("cpu", "gpu", "igpu", "accelerator", "meta")
# Devices that workers lend, by llama.cpp's handle; its own names only number them.
_borrowed: dict[int, Device] = {}


def name_borrowed(n_before: int, devices: Sequence[Device]) -> None:
    """Describe the devices that were added after the first ``n_before``."""
    for index, device in enumerate(devices, n_before):
        _borrowed[int(_get(index))] = device


def n_devices() -> int:
    """Return the number of devices that llama.cpp knows."""
    start_backend()
    return int(_count())


def list_devices() -> tuple[Device, ...]:
    """Return every device of the loaded backends, in llama.cpp's order."""
    return tuple(_describe(_get(index)) for index in range(n_devices()))


def device_handles(name: str) -> list[int]:
    """Return the ``ggml_backend_dev_t`` of the device called ``name``, or those that the worker ``name`` lends."""
    handles = [int(_get(index)) for index in range(n_devices())]
    lent = [handle for handle in handles if _worker_of(handle) == name]
    return lent or [handle for handle in handles if _name(handle).decode("utf-8", "replace") == name]


def _worker_of(handle: int) -> str | None:
    lent = _borrowed[handle].lent if handle in _borrowed else None
    return lent.worker if lent is not None else None


def handles_of(names: Sequence[str]) -> list[int]:
    """Return the handles of all devices with these names; raises BadOption for one that is not there."""
    found = [(name, device_handles(name)) for name in names]
    for name, handles in found:
        if not handles:
            how = advice(
                f"{PROGRAM} doctor lists the devices.", Sentence("Choose another one in Settings under Engine.")
            )
            raise BadOption("There is no device called {name}. {how}", name=repr(name), how=how)
    return [handle for _, handles in found for handle in handles]


def _describe(handle: int) -> Device:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _memory(handle, ctypes.byref(free), ctypes.byref(total))
    if (borrowed := _borrowed.get(int(handle))) is not None:
        return replace(borrowed, free=free.value, total=total.value)
    return Device(
        name=_name(handle).decode("utf-8", "replace"),
        description=_description(handle).decode("utf-8", "replace"),
        kind=_KINDS[_type(handle)],
        free=free.value,
        total=total.value,
    )


_reg_by_name = declare(ggml, "ggml_backend_reg_by_name", ctypes.c_void_p, ctypes.c_char_p)
_proc_address = declare(ggml, "ggml_backend_reg_get_proc_address", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_register = declare(ggml, "ggml_backend_register", None, ctypes.c_void_p)
_HANDLES = ctypes.POINTER(ctypes.c_void_p)


def can_use_rpc() -> bool:
    """Return whether this build of llama.cpp can use and lend devices over a socket."""
    return bool(_rpc_function("slipstream_rpc_serve"))


def add_rpc_server(fd: int) -> None:
    """Add the devices at the other end of a connected socket to ggml's; raises LoadFailed.

    ggml closes a connection when its last backend is freed, and a socket cannot be connected again. So one backend is
    never freed.
    """
    check_rpc()
    endpoint = b"fd:%d" % fd
    declare(ggml, "ggml_backend_rpc_init", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)(endpoint, 0)
    prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
    _register(prototype(_rpc_function("ggml_backend_rpc_add_server"))(endpoint))


def serve_rpc(fd: int, devices: tuple[str, ...], memory: int, n_threads: int) -> None:
    """Lend devices to the client at the other end of a connected socket until it leaves.

    It may allocate ``memory`` bytes on each of them. Raises LoadFailed, and BadOption for a device that is not there.
    """
    check_rpc()
    handles = handles_of(devices)
    size_t = ctypes.c_size_t
    prototype = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int, size_t, size_t, size_t, _HANDLES)
    run = prototype(_rpc_function("slipstream_rpc_serve"))
    if not run(fd, memory, n_threads, len(handles), (ctypes.c_void_p * len(handles))(*handles)):
        raise LoadFailed(Sentence("llama.cpp cannot use the devices that are to be lent."))


def check_rpc() -> None:
    """Raise LoadFailed if this build of llama.cpp cannot use devices over a socket."""
    if not can_use_rpc():
        how = advice(
            f"{PROGRAM} setup --fresh builds it anew; CMAKE_ARGS with -DGGML_RPC=off must not be set then.",
            Sentence("Take the worker out of the model's settings."),
        )
        raise LoadFailed("This build of llama.cpp cannot use devices of other machines. {how}", how=how)


def _rpc_function(name: str) -> int:
    """Return the address of a function of ggml's RPC; 0 if this build has none."""
    start_backend()
    registry = _reg_by_name(b"RPC")
    return int(_proc_address(registry, name.encode()) or 0) if registry else 0
