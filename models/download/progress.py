"""How far a download is, how fast, and how long it will take. Pure: the time is given."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

WINDOW_SECONDS = 8.0


class DownloadPhase(StrEnum):
    """What a download is doing."""

    QUEUED = "queued"
    OTHER_INSTANCE = "waiting for another Slipstream that downloads it"
    CHECKING = "checking what is there"
    DOWNLOADING = "downloading"
    VERIFYING = "verifying"
    REPAIRING = "repairing"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """``n_done`` of ``n_total`` bytes are there; speed in bytes per second, ``eta`` in seconds, None if unknown."""

    phase: DownloadPhase
    n_done: int
    n_total: int
    bytes_per_second: float = 0.0
    eta: float | None = None


class TransferRate:
    """Bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def progress(
        self, now: float, n_done: int, n_total: int, phase: DownloadPhase = DownloadPhase.DOWNLOADING
    ) -> DownloadProgress:
        """Take note of ``n_done`` at ``now`` (seconds) and say how it goes."""
        if phase is DownloadPhase.CHECKING or (self._seen and n_done < self._seen[-1][1]):
            self._seen.clear()  # what is found on the disk is not downloaded
        self._seen.append((now, n_done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()
        since, n_before = self._seen[0]
        speed = (n_done - n_before) / (now - since) if now > since else 0.0
        return DownloadProgress(phase, n_done, n_total, speed, (n_total - n_done) / speed if speed > 0 else None)
