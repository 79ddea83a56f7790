"""The devices llama.cpp can compute on, with free and total memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import StrEnum

from core.llama.library import declare, ggml, start_backend

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


class BackendDeviceType(StrEnum):
    """``ggml_backend_dev_type``."""

    CPU = "cpu"
    GPU = "gpu"
    IGPU = "igpu"
    ACCELERATOR = "accelerator"
    META = "meta"


_KINDS = {
    0: BackendDeviceType.CPU,
    1: BackendDeviceType.GPU,
    2: BackendDeviceType.IGPU,
    3: BackendDeviceType.ACCELERATOR,
    4: BackendDeviceType.META,
}


@dataclass(frozen=True, slots=True)
class Device:
    """A device; ``free`` and ``total`` are bytes (the host's memory for the CPU)."""

    name: str
    description: str
    kind: BackendDeviceType
    free: int
    total: int

    @property
    def is_gpu(self) -> bool:
        """True for discrete and integrated GPUs."""
        return self.kind in (BackendDeviceType.GPU, BackendDeviceType.IGPU)


def list_devices() -> tuple[Device, ...]:
    """Return every device of the loaded backends, in llama.cpp's order."""
    start_backend()
    return tuple(_describe(_get(index)) for index in range(_count()))


def device_handle(name: str) -> int | None:
    """Return the ``ggml_backend_dev_t`` of the device called ``name``, or None."""
    start_backend()
    for index in range(_count()):
        handle = _get(index)
        if _name(handle).decode("utf-8", "replace") == name:
            return int(handle)
    return None


def _describe(handle: int) -> Device:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _memory(handle, ctypes.byref(free), ctypes.byref(total))
    return Device(
        name=_name(handle).decode("utf-8", "replace"),
        description=_description(handle).decode("utf-8", "replace"),
        kind=_KINDS.get(_type(handle), BackendDeviceType.ACCELERATOR),
        free=free.value,
        total=total.value,
    )
