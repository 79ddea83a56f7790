"""llama.cpp's log: silenced, or read for the memory that it allocates."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from core.llama.library import L

# llama_max_devices() takes no arguments and only reads a constant: as a log callback it does nothing, in C.
NO_LOG = ctypes.cast(L._lib.llama_max_devices, L.llama_log_callback)


def silence() -> None:
    """Drop every log line without leaving C."""
    L.llama_log_set(NO_LOG, ctypes.c_void_p(0))


def to_stderr() -> None:
    """Let llama.cpp print to stderr, its default."""
    L.llama_log_set(L.llama_log_callback(), ctypes.c_void_p(0))


# Bytes of the unit in llama.cpp's log.
MIB = 1 << 20
# "load_tensors: CPU_Mapped model buffer size = 11.47 MiB", and so on.
_BUFFER = re.compile(r"(\S+)\s+(model|KV|RS|compute|output)\s+buffer size\s+=\s+([\d.]+) MiB")
# "llama_kv_cache: size = 4.50 MiB ( 1024 cells, ...": size of the cache, also with no_alloc.
_CACHE = re.compile(r"llama_kv_cache\w*: size =\s+([\d.]+) MiB")


@dataclass
class AllocationLog:
    """Bytes by (buffer type, use), where use is model, KV, RS (recurrent state), compute or output."""

    buffers: Counter[tuple[str, str]] = field(default_factory=Counter)
    kv_cache: int = 0

    def add(self, line: str) -> None:
        """Take a line of llama.cpp's log."""
        if (found := _BUFFER.search(line)) is not None:
            self.buffers[found[1], found[2]] += round(float(found[3]) * MIB)
        elif (found := _CACHE.search(line)) is not None:
            self.kv_cache += round(float(found[1]) * MIB)

    def of(self, *uses: str) -> int:
        """Bytes of these uses on all devices."""
        return sum(n_bytes for (_, use), n_bytes in self.buffers.items() if use in uses)


@contextmanager
def listening() -> Iterator[AllocationLog]:
    """Collect the allocations inside the block; only for a process that does nothing else: C calls into Python."""
    collected, broken = AllocationLog(), [b""]

    def take(_level: int, text: bytes, _data: object) -> None:
        # Long lines come in pieces.
        *lines, broken[0] = (broken[0] + (text or b"")).split(b"\n")
        for line in lines:
            collected.add(line.decode("utf-8", "replace"))

    callback = L.llama_log_callback(take)
    L.llama_log_set(callback, None)
    try:
        yield collected
    finally:
        silence()
