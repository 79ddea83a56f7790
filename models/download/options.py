"""How downloads go about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    """Numbers of a download. ``patience`` is seconds without a byte before it gives up; ``retry`` the first wait.

    ``record_bytes`` may be lost per connection when the process is killed. ``reserve_bytes`` stay free on the disk.
    """

    n_connections: int = 4
    n_files: int = 2
    piece_bytes: int | None = None
    record_bytes: int = 1 << 20
    record_seconds: float = 1.0
    patience: float = 300.0
    retry: float = 0.5
    longest_wait: float = 30.0
    reserve_bytes: int = 128 << 20
