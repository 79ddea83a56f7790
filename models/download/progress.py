"""Figures of a download: options, progress, rate, time left, and the result. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# Seconds over which the rate is measured.
WINDOW_SECONDS = 8.0
# Seconds without a byte after which a user is told: a slow network has shorter ones all the time.
SILENT_SECONDS = 5.0


class DownloadPhase(StrEnum):
    """The phase that a download is in."""

    QUEUED = "queued"
    OTHER_INSTANCE = "waiting for another Slipstream that downloads it"
    CHECKING = "checking what is there"
    DOWNLOADING = "downloading"
    VERIFYING = "verifying"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"


AT_REST = frozenset({DownloadPhase.PAUSED, DownloadPhase.FAILED, DownloadPhase.CANCELLED, DownloadPhase.DONE})


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """``n_done`` of ``n_total`` bytes have arrived; bytes per second, ``eta`` in seconds; None if unknown.

    ``silence`` is how many seconds ago the last byte arrived.
    """

    phase: DownloadPhase
    n_done: int
    n_total: int
    bytes_per_second: float = 0.0
    eta: float | None = None
    silence: float = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether it waits for a network that sends nothing."""
        return self.phase is DownloadPhase.DOWNLOADING and self.silence >= SILENT_SECONDS


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The result of a download. ``was_there`` is True if nothing had to be fetched.

    ``repo_id`` is the repository's present name, which differs from the requested one if it was renamed.
    """

    name: str
    repo_id: str
    commit: str
    n_bytes: int
    files: tuple[Path, ...]
    was_there: bool


class TransferRate:
    """Bytes per second over the last ``WINDOW_SECONDS``, and for how long none has arrived."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._last_arrival = 0.0

    def progress(
        self, now: float, n_done: int, n_total: int, phase: DownloadPhase = DownloadPhase.DOWNLOADING
    ) -> DownloadProgress:
        """Record ``n_done`` bytes at ``now`` (seconds) and return the progress."""
        if phase is DownloadPhase.CHECKING or (self._seen and n_done < self._seen[-1][1]):
            self._seen.clear()  # bytes found on disk do not count for the rate
        if not self._seen or phase is not DownloadPhase.DOWNLOADING or n_done != self._seen[-1][1]:
            self._last_arrival = now
        self._seen.append((now, n_done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()
        since, n_before = self._seen[0]
        speed = (n_done - n_before) / (now - since) if now > since else 0.0
        eta = (n_total - n_done) / speed if speed > 0 else None
        return DownloadProgress(phase, n_done, n_total, speed, eta, now - self._last_arrival)


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    """Limits of a download.

    It gives up after ``patience`` seconds without a byte. The wait between retries starts with ``retry`` seconds and
    doubles up to ``longest_wait``. A kill loses at most ``record_bytes`` per connection, or ``record_seconds``.
    ``reserve_bytes`` stay free on the disk.
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
