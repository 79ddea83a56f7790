"""The queue: order, pause, resume, cancel, and what is left of it after a restart."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from dataclasses import asdict

import pytest

from models.download.model_download import DownloadRequest
from models.download.progress import DownloadOptions, DownloadPhase, TransferRate
from models.download.queue import DownloadQueue
from models.hub.client import Hub
from models.hub.errors import Unreachable
from models.hub.repository import Repository
from models.hub.settings import HubSettings
from tests.support.waiting import until
from tools.stand_ins.hub_server import Fault

CONTENT = random.Random(3).randbytes(800_000)
OPTIONS = DownloadOptions(piece_bytes=1 << 16, record_bytes=1 << 14, patience=60, retry=0.01, reserve_bytes=0)
NAMES = ("one", "two", "three")


def request(name: str) -> DownloadRequest:
    return DownloadRequest(f"acme/{name}", "Q4_0")


@pytest.fixture
def open_queue(server, hub, tmp_path):
    for name in NAMES:
        server.add(f"acme/{name}", {f"{name}-Q4_0.gguf": CONTENT})
    opened = []

    def make(**options) -> DownloadQueue:
        opened.append(DownloadQueue(hub, tmp_path / "models", OPTIONS, **options))
        return opened[-1]

    yield make
    for queue in opened:
        queue.close()


def slow(server, name: str) -> None:
    server.fault(f"{name}-Q4_0.gguf", Fault(bytes_per_second=2e5))


def wait_for(queue: DownloadQueue, reached) -> None:
    until(lambda: reached(queue.jobs))


def phases(queue: DownloadQueue) -> list[DownloadPhase]:
    return [job.phase for job in queue.jobs]


def test_a_job_that_is_gone_from_the_list_needs_nothing(open_queue, server):
    slow(server, "one")
    queue = open_queue()
    running = queue.add(request("one")).number
    gone = queue.add(request("two")).number
    for act in (queue.cancel, queue.pause, queue.resume, queue.cancel, lambda number: queue.move(number, 0)):
        act(gone)
    assert [job.number for job in queue.jobs] == [running]


def test_jobs_run_one_at_a_time_in_their_order_each_request_once(open_queue, server):
    began = []
    slow(server, "one")
    queue = open_queue(changed=lambda job: began.append(job.request.repo_id))
    for name in NAMES:
        queue.add(request(name))
    wait_for(queue, lambda jobs: jobs[0].phase is DownloadPhase.DOWNLOADING)
    assert phases(queue)[1:] == [DownloadPhase.QUEUED] * 2
    assert queue.add(request("three")).number == queue.jobs[2].number
    server.heal()
    wait_for(queue, lambda jobs: all(job.phase is DownloadPhase.DONE for job in jobs))
    assert list(dict.fromkeys(began)) == [f"acme/{name}" for name in NAMES]
    queue.clear_ended()
    assert queue.jobs == ()
    queue.add(request("one"))  # its file is there, so nothing was told of it
    wait_for(queue, lambda jobs: jobs[0].phase is DownloadPhase.DONE)
    assert (queue.jobs[0].progress.n_done, queue.jobs[0].progress.n_total) == (len(CONTENT), len(CONTENT))


def test_paused_and_resumed_or_cancelled(open_queue, server, tmp_path):
    slow(server, "one")
    queue = open_queue()
    job = queue.add(request("one"))
    wait_for(queue, lambda jobs: jobs[0].progress.n_done > 50_000)
    queue.pause(job.number)
    wait_for(queue, lambda jobs: jobs[0].phase is DownloadPhase.PAUSED)
    server.heal()
    queue.resume(job.number)
    wait_for(queue, lambda jobs: jobs[0].phase is DownloadPhase.DONE)
    assert server.n_content_bytes < 1.6 * len(CONTENT)
    slow(server, "two")
    job = queue.add(request("two"))
    wait_for(queue, lambda jobs: jobs[1].progress.n_done > 0)
    queue.cancel(job.number)
    wait_for(queue, lambda jobs: len(jobs) == 1)
    assert list((tmp_path / "models").rglob("*.part")) == []


class LostHub(Hub):
    """One that cannot be reached, which takes a while to be known."""

    def __init__(self) -> None:
        super().__init__(HubSettings("http://127.0.0.1:1"))
        self.is_asked, self.is_lost = threading.Event(), threading.Event()

    def repository(self, repo_id: str, revision: str | None = None) -> Repository:
        self.is_asked.set()
        self.is_lost.wait()
        raise Unreachable(self.settings.address, "Connection refused")


@pytest.mark.parametrize(("stop", "left"), [("pause", [DownloadPhase.PAUSED]), ("cancel", [])])
def test_what_was_stopped_is_no_failure_where_the_hub_went_away_meanwhile(tmp_path, stop, left):
    hub = LostHub()
    queue = DownloadQueue(hub, tmp_path / "models", OPTIONS)
    job = queue.add(request("one"))
    hub.is_asked.wait()
    getattr(queue, stop)(job.number)
    hub.is_lost.set()
    queue.wait()
    assert [(job.phase, job.error) for job in queue.jobs] == [(phase, None) for phase in left]
    queue.close()


@pytest.mark.parametrize("stop", ["pause", "cancel"])
def test_what_is_wanted_again_while_it_still_stops_goes_on(open_queue, server, stop):
    slow(server, "one")
    queue = open_queue()
    job = queue.add(request("one"))
    wait_for(queue, lambda jobs: jobs[0].progress.n_done > 50_000)
    getattr(queue, stop)(job.number)
    server.heal()
    assert queue.add(request("one")).number == job.number
    wait_for(queue, lambda jobs: [job.phase for job in jobs] == [DownloadPhase.DONE])
    assert server.n_content_bytes < 1.6 * len(CONTENT)


def test_cancelled_offline_in_a_later_run_leaves_nothing_and_the_others_keep_their_places(open_queue, server, tmp_path):
    slow(server, "one")
    queue = open_queue()
    queue.add(request("one"))
    queue.add(request("two"))
    queue.add(request("three"))
    wait_for(queue, lambda jobs: jobs[0].progress.n_done > 0)
    queue.close()
    again = open_queue()
    assert list((tmp_path / "models").rglob("*.part")) != []
    server.fault("/api/models/acme/one", Fault(status=500))
    again.cancel(again.jobs[0].number)
    assert [job.request for job in again.jobs] == [request("two"), request("three")]
    assert list((tmp_path / "models").rglob("*.part")) == []
    assert list((tmp_path / "models").rglob("*.journal")) == []
    again.move(again.jobs[0].number, 1)
    assert [job.request for job in again.jobs] == [request("three"), request("two")]


def test_cancelling_leaves_what_another_download_needs(open_queue, server, tmp_path):
    files = {"m-Q4_0.gguf": b"4" * 40, "m-Q8_0.gguf": b"8" * 80, "mmproj-m.gguf": CONTENT}
    server.add("acme/eyes", files)
    server.fault("mmproj-m.gguf", Fault(bytes_per_second=2e5))
    queue = open_queue()
    first, _ = [queue.add(DownloadRequest("acme/eyes", wanted)) for wanted in ("Q4_0", "Q8_0")]
    wait_for(queue, lambda jobs: jobs[0].progress.n_done > 50_000)
    queue.pause(first.number)
    wait_for(queue, lambda jobs: jobs[1].progress.n_done > 100_000)
    queue.cancel(first.number)
    server.heal()
    wait_for(queue, lambda jobs: [job.phase for job in jobs] == [DownloadPhase.DONE])
    assert (tmp_path / "models" / "acme" / "eyes" / "mmproj-m.gguf").read_bytes() == CONTENT
    assert server.n_content_bytes < 1.6 * len(CONTENT)


@pytest.mark.parametrize("way", ["deleted", "the disk was pulled out"])
def test_what_was_removed_since_is_no_longer_said_to_be_downloaded(open_queue, tmp_path, monkeypatch, way):
    queue = open_queue()
    queue.add(request("one"))
    wait_for(queue, lambda jobs: phases(queue) == [DownloadPhase.DONE])
    queue.clear_removed()
    assert phases(queue) == [DownloadPhase.DONE]
    real = os.stat

    def gone(path, *arguments, **options):
        if str(path).endswith("one-Q4_0.gguf"):
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *arguments, **options)

    if way == "deleted":
        (tmp_path / "models" / "acme" / "one" / "one-Q4_0.gguf").unlink()
    else:
        monkeypatch.setattr(os, "stat", gone)
    queue.clear_removed()
    assert queue.jobs == ()


def test_a_failure_is_told_the_others_go_on_and_it_can_be_tried_again(open_queue, server):
    server.fault("/api/models/acme/one", Fault(times=1, status=500))
    queue = open_queue()
    first = queue.add(request("one"))
    queue.add(request("two"))
    wait_for(queue, lambda jobs: [job.phase for job in jobs] == [DownloadPhase.FAILED, DownloadPhase.DONE])
    assert "has a problem" in str(queue.jobs[0].error)
    queue.resume(first.number)
    wait_for(queue, lambda jobs: jobs[0].phase is DownloadPhase.DONE)
    assert queue.jobs[0].error is None


def test_what_had_not_ended_is_there_after_a_restart(open_queue, server):
    slow(server, "one")
    queue = open_queue()
    for name in NAMES[:2]:
        queue.add(request(name))
    wait_for(queue, lambda jobs: jobs[0].progress.n_done > 50_000)
    queue.close()
    server.heal()
    again = open_queue()
    assert [(job.request, job.phase) for job in again.jobs] == [
        (request(name), DownloadPhase.PAUSED) for name in NAMES[:2]
    ]
    assert again.jobs[0].progress.n_done >= 40_000
    assert again.jobs[0].progress.n_total == len(CONTENT)
    for job in again.jobs:
        again.resume(job.number)
    wait_for(again, lambda jobs: all(job.phase is DownloadPhase.DONE for job in jobs))
    assert open_queue().jobs == ()


def test_queues_of_one_folder_at_the_same_time_keep_their_own_downloads(open_queue, server, tmp_path):
    for name in NAMES:
        slow(server, name)
    first = open_queue()
    first.add(request("one"))
    second = open_queue()
    assert second.jobs == (), "what runs elsewhere is not begun here too"
    second.add(request("two"))
    first.add(request("three"))
    second.close()
    third = open_queue()
    assert [job.request for job in third.jobs] == [request("two")]
    assert [job.request for job in first.jobs] == [request("one"), request("three")]
    first.close()
    third.close()
    last = open_queue()
    assert [job.request for job in last.jobs] == [request(name) for name in ("one", "three", "two")]
    assert len(last.interrupted) == 3
    assert [path.name for path in (tmp_path / "models" / ".partial").glob("*.json")] == ["queue.json"]
    last.close()
    assert [job.request for job in open_queue().jobs] == [job.request for job in last.jobs]


def test_an_entry_that_cannot_be_read_takes_no_other_with_it(open_queue, tmp_path):
    folder = tmp_path / "models" / ".partial"
    folder.mkdir(parents=True)
    (folder / "queue.json").write_text('[{"repo": 1}, 5]')
    (folder / "queue-2.json").write_text(json.dumps([asdict(request("one"))]))
    assert [job.request for job in open_queue().jobs] == [request("one")]


def test_speed_and_eta():
    speed = TransferRate()
    assert speed.progress(0.0, 100, 1100).eta is None
    progress = speed.progress(1.0, 200, 1100)
    assert (progress.bytes_per_second, progress.eta) == (100, 9)
    for second in range(2, 30):
        assert progress.is_silent == (progress.silence >= 5.0)
        progress = speed.progress(float(second), 200, 1100)
    assert (progress.bytes_per_second, progress.eta, progress.silence) == (0, None, 28)
    assert not speed.progress(30.0, 201, 1100).is_silent
    assert speed.progress(31.0, 0, 1100).bytes_per_second == 0


def test_only_what_nobody_had_paused_was_interrupted(open_queue, server):
    slow(server, "one")
    queue = open_queue()
    _, two, three = [queue.add(request(name)) for name in NAMES]
    queue.pause(two.number)
    queue.pause(three.number)
    queue.resume(three.number)
    queue.close()
    again = open_queue()
    by_number = {job.number: job.request.repo_id for job in again.jobs}
    assert [by_number[number] for number in again.interrupted] == ["acme/one", "acme/three"]
