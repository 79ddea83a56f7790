"""Messages between a quantising process and the one that started it: frozen values, matched by type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuantiseTask:
    """The first message: what to make of what."""

    source: str
    target: str
    file_type: int
    n_threads: int
    may_requantise: bool


@dataclass(frozen=True, slots=True)
class Go:
    """Begin to write."""


@dataclass(frozen=True, slots=True)
class Sized:
    """Bytes of all tensors that the result will have."""

    n_bytes: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """``n_done`` of the source's bytes of weights are converted."""

    n_done: int


@dataclass(frozen=True, slots=True)
class FileWritten:
    """The file is written; it is being loaded."""

    n_tensors: int
    n_fallback: int


@dataclass(frozen=True, slots=True)
class Verified:
    """The file was loaded and computes; ``sha256`` is that of its bytes."""

    sha256: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work, and why."""

    reason: str


QuantiseEvent = Sized | Stepped | FileWritten | Verified | Failed
