"""The queue of downloads, and news of it at a pace that a window can show."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.environment.paths import models_folder
from app.library.hub_access import hub
from app.library.trouble import library_error, trouble_of
from app.library_service.outbox import ChangeNotifier
from models.download.model_download import DownloadRequest
from models.download.progress import AT_REST, DownloadPhase
from models.download.queue import DownloadQueue, QueuedDownload
from models.formatting.sentence import Sentence
from models.hub.errors import HubError
from models.library.values import Download, Trouble, TroubleKind


class DownloadService:
    """Downloads one model after the other. ``tell`` gets all downloads whenever one has changed, ``arrived`` nothing.

    Both are called from threads. Methods raise HubError where the Hub's settings cannot be used, and
    LibraryError for a number that no download had.
    """

    def __init__(self, tell: Callable[[tuple[Download, ...]], None], arrived: Callable[[], None]) -> None:
        self._tell, self._arrived = tell, arrived
        self._queue: DownloadQueue | None = None
        self._lock = threading.Lock()
        self._notifier = ChangeNotifier(self._tell_all)

    def start(self) -> None:
        """Go on with what the last process left, and tell from now on."""
        self._notifier.start()
        try:
            queue = self.queue
        except HubError:
            return  # whoever asks for a download is told
        for number in queue.interrupted:
            queue.resume(number)
        self._notifier.note()

    def stop(self) -> None:
        """Tell no more. The next process goes on with what runs."""
        self._notifier.stop()

    @property
    def queue(self) -> DownloadQueue:
        """The queue, opened when it is first needed, and again where models were moved; raises BadHubSetting."""
        with self._lock:
            folder = models_folder()
            if self._queue is not None and self._queue.folder != folder:
                self._queue.close()
                self._queue = None
            if self._queue is None:
                self._queue = DownloadQueue(hub(), folder, changed=self._on_change)
            return self._queue

    @property
    def downloads(self) -> tuple[Download, ...]:
        """All downloads of the queue; raises BadHubSetting."""
        return tuple(map(_download, self.queue.jobs))

    @property
    def is_busy(self) -> bool:
        """Whether something is downloaded, or waits for that; raises BadHubSetting."""
        return any(job.phase not in AT_REST for job in self.queue.jobs)

    def look(self) -> None:
        """See whether files of what was downloaded are gone."""
        self._notifier.note()

    def add(self, request: DownloadRequest) -> Download:
        """Download what is wished for when it is its turn."""
        added = _download(self.queue.add(request))
        self._notifier.tell()  # before the answer, so that whoever follows it hears nothing older afterwards
        return added

    def pause(self, number: int) -> None:
        """Stop one and keep what has arrived."""
        self._queue_of(number).pause(number)
        self._notifier.note()

    def resume(self, number: int) -> None:
        """Let one go on."""
        self._queue_of(number).resume(number)
        self._notifier.note()

    def cancel(self, number: int) -> None:
        """End one and remove what has arrived."""
        self._queue_of(number).cancel(number)
        self._notifier.note()

    def move(self, number: int, position: int) -> None:
        """Put one at a place of the queue."""
        self._queue_of(number).move(number, max(0, position))
        self._notifier.note()

    def clear_ended(self) -> None:
        """Take those that have ended off the list."""
        self.queue.clear_ended()
        self._notifier.note()

    def _queue_of(self, number: int) -> DownloadQueue:
        """Return the queue; raises LibraryError where it never gave this number.

        What is over by now can still be asked for: it may have ended after the client looked.
        """
        queue = self.queue
        if not queue.has_given(number):
            raise library_error(Trouble(Sentence("There is no download {number}.", number=number), TroubleKind.MISSING))
        return queue

    def use_settings(self) -> None:
        """Ask the Hub as it is set now."""
        self.queue.use(hub())

    def _on_change(self, job: QueuedDownload) -> None:
        if job.phase is DownloadPhase.DONE:
            self._arrived()
        # The queue may be in the middle of it, and what is told here could be overtaken by what was told before.
        self._notifier.note()

    def _tell_all(self) -> None:
        if self._queue is not None:
            self.queue.clear_removed()
            self._tell(self.downloads)


def _download(job: QueuedDownload) -> Download:
    trouble = trouble_of(job.error) if job.error is not None else None
    return Download(job.number, job.request.repo_id, job.request.wanted, job.progress, trouble, job.done)
