"""News of downloads: what is told last is how things are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from app.library_service.downloads import DownloadService
from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import DownloadPhase, DownloadProgress
from models.files.errors import Stopped
from models.library.values import Download

TELLING_SECONDS = 0.3  # more than the pause between two pieces of news


def until(reached: Callable[[], object]) -> None:
    end = time.monotonic() + 10.0
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_is_told_last_is_how_downloads_are(open_library, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Download, ...]] = []
    is_wanted, steps = threading.Semaphore(0), threading.Semaphore(0)

    def run(self: ModelDownload, report: Callable[[DownloadProgress], None]) -> None:
        report(DownloadProgress(DownloadPhase.DOWNLOADING, 1, 2))
        is_wanted.acquire()  # it takes its time to stop
        raise Stopped

    def tell(downloads: tuple[Download, ...]) -> None:
        steps.release()
        time.sleep(TELLING_SECONDS)
        told.append(downloads)

    def phases() -> list[DownloadPhase]:
        return [one.phase for one in told[-1]]

    monkeypatch.setattr(ModelDownload, "run", run)
    service = DownloadService(tell, arrived=lambda: None)
    service.start()
    number = service.add(DownloadRequest("acme/fox")).number
    until(lambda: told and phases() == [DownloadPhase.DOWNLOADING])
    service.pause(number)
    while steps.acquire(blocking=False):
        pass
    service.look()
    steps.acquire()  # it is being told how things are, while they change
    is_wanted.release()
    until(lambda: service.downloads[0].phase is DownloadPhase.PAUSED)
    time.sleep(3 * TELLING_SECONDS)
    assert phases() == [DownloadPhase.PAUSED]
    service.resume(number)
    until(lambda: phases() == [DownloadPhase.DOWNLOADING])
    service.cancel(number)
    time.sleep(3 * TELLING_SECONDS)
    is_wanted.release()
    until(lambda: service.downloads == ())
    until(lambda: told[-1] == ())
    service.stop()
