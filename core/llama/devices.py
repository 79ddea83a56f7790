"""The devices llama.cpp can compute on, with free and total memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

from core.llama.library import declare, ggml, start_backend
from core.values.engine_options import Device
from core.values.errors import BadOption
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
                f"{PROGRAM} doctor lists the devices.",
                Sentence("Choose another one in Settings under Engine."),
            )
            raise BadOption(Sentence("There is no device called {name}. {how}", name=repr(name), how=how))
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
