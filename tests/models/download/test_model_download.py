"""Downloads over real HTTP: whatever network, disk, links, clocks and Hub do, the file is right or is no model."""

from __future__ import annotations

import hashlib
import io
import os
import random
import threading
import time
from collections import namedtuple
from email.utils import formatdate

import pytest

from models.catalog.catalog import Catalog
from models.download.model_download import DownloadRequest, ModelDownload
from models.download.progress import DownloadOptions, DownloadPhase
from models.download.ranges import RangeRequests
from models.files import disk
from models.files.errors import (
    ChangedOnHub,
    ConnectionLost,
    DiskFull,
    FileRemoved,
    FolderRefused,
    NoSpace,
    NothingToChoose,
    Stopped,
    UnsafeName,
    WrongContent,
)
from models.files.integrity import hasher
from models.files.provenance import is_verified, read_record
from models.hub.errors import (
    FileNotFound,
    GatedForToken,
    GatedWithoutToken,
    HubFault,
    RateLimited,
    RevisionNotFound,
)
from tests.support.disks import fill_up, remount, small_disk
from tools.model_factory.gguf_factory import EMBER
from tools.stand_ins.hub_server import STRANGER, TOKEN, Fault

PIECE = 64 << 10
CONTENT = random.Random(1).randbytes(2_000_003)
REPO = "acme/fox-GGUF"
FILE = "fox-Q4_0.gguf"
OPTIONS = DownloadOptions(
    piece_bytes=PIECE, record_bytes=16 << 10, patience=3, retry=0.01, longest_wait=0.05, reserve_bytes=0
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def pull(server, hub, folder):
    """Downloads and returns what ``run`` returns; options by name."""
    server.add(REPO, {FILE: CONTENT})

    def run(wanted="", *, of=hub, to=folder, report=lambda progress: None, **options):
        changed = DownloadOptions(**{name: getattr(OPTIONS, name) for name in OPTIONS.__slots__} | options)
        return ModelDownload(of, DownloadRequest(REPO, wanted), to, changed).run(report)

    return run


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def visible(folder):
    return [name for name in files_in(folder) if not name.startswith(".")]


def is_right(folder, content=CONTENT):
    return (folder / REPO / FILE).read_bytes() == content


def test_a_model_is_downloaded_over_several_connections(pull, server, folder):
    seen = []
    done = pull(report=seen.append)
    assert done.files == (folder / REPO / FILE,)
    assert is_right(folder)
    assert not done.was_there
    assert len(server.content_requests()) >= OPTIONS.n_connections
    assert seen[-1].phase is DownloadPhase.DONE
    assert [p.n_done for p in seen] == sorted(p.n_done for p in seen)
    record = read_record(folder, done.files[0])
    assert record is not None
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert (record.repo_id, record.commit, record.content) == (REPO, "0" * 40, f"sha256:{sha256}")
    assert is_verified(folder, done.files[0])
    assert visible(folder) == [f"{REPO}/{FILE}"]


def test_a_piece_is_hashed_as_it_arrived_also_after_a_slow_look_at_the_one_before(pull, server, folder, monkeypatch):
    """A reader with a buffer has read its beginning before it arrived."""

    class Slow:
        def __init__(self, *args):
            self._hash, self._n_hashed = hasher(*args), 0

        def update(self, raw):
            self._hash.update(raw)
            self._n_hashed += len(raw)
            if server.n_content_bytes - self._n_hashed < 200_000:  # more arrives meanwhile
                time.sleep(0.003)

        def hexdigest(self):
            return self._hash.hexdigest()

    monkeypatch.setattr("models.download.transfer.hasher", Slow)
    server.fault(FILE, Fault(bytes_per_second=3e6))
    pull(piece_bytes=io.DEFAULT_BUFFER_SIZE // 8)
    assert is_right(folder)
    assert server.n_content_bytes < 1.3 * len(CONTENT), "fetched once"


def test_what_is_there_is_not_fetched_again_unless_it_changed(pull, server, folder):
    pull()
    n = len(server.content_requests())
    assert pull().was_there
    os.utime(folder / REPO / FILE, (1, 1))
    assert pull().was_there, "what was only touched is read"
    assert is_verified(folder, folder / REPO / FILE)
    assert len(server.content_requests()) == n
    (folder / REPO / FILE).write_bytes(b"spoilt")
    assert not is_verified(folder, folder / REPO / FILE)
    assert not pull().was_there
    assert is_right(folder)


def test_a_file_that_was_copied_there_is_read_and_not_fetched(pull, server, folder):
    place = folder / REPO / FILE
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    assert pull().was_there
    assert is_verified(folder, place)
    assert server.content_requests() == []
    spoil(folder)
    (folder / ".verified" / REPO / f"{FILE}.json").unlink()
    assert not pull().was_there
    assert is_right(folder)


def spoil(folder):
    with open(folder / REPO / FILE, "r+b") as file:
        file.write(bytes([CONTENT[0] ^ 1]))


def test_a_changed_file_stays_until_the_right_one_is_whole(pull, server, folder):
    pull()
    spoil(folder)
    changed = (folder / REPO / FILE).read_bytes()
    server.fault(FILE, Fault(status=503))
    with pytest.raises(ConnectionLost):
        pull(patience=0.2)
    assert is_right(folder, changed)
    server.heal()
    pull()
    assert is_right(folder)
    assert is_verified(folder, folder / REPO / FILE)


@pytest.mark.parametrize(
    ("at", "fault", "error", "said"),
    [
        (FILE, Fault(status=302, headers={"Location": "?"}), ConnectionLost, "redirects"),
        ("/resolve/", Fault(status=429, headers={"Retry-After": "3000"}), RateLimited, "in 3000 s,"),
        ("/api/models", Fault(status=500), HubFault, "HTTP status 500"),
    ],
)
def test_what_does_not_pass_soon_is_told(at, fault, error, said, pull, server):
    server.fault(at, fault)
    with pytest.raises(error, match=said):
        pull(patience=0.2)


def test_an_error_that_nobody_foresaw_ends_the_download_at_once(pull, monkeypatch):
    def broken(*_) -> None:
        raise ZeroDivisionError("of a worker")

    monkeypatch.setattr(RangeRequests, "open", broken)
    with pytest.raises(ZeroDivisionError, match="of a worker"):
        pull(patience=60)


def test_the_version_that_was_downloaded_is_fetched_again_and_the_newest_where_that_is_gone(pull, server, hub, folder):
    pull()
    commit = server.repos[REPO].commit
    new = CONTENT[:-1] + b"!"
    server.repos[REPO].change({FILE: new})
    request = DownloadRequest(REPO, FILE, commit, or_newest=True)
    spoil(folder)
    ModelDownload(hub, request, folder, OPTIONS).run()
    assert is_right(folder)
    spoil(folder)
    server.repos[REPO].keeps_old = False
    with pytest.raises(RevisionNotFound):
        ModelDownload(hub, DownloadRequest(REPO, FILE, commit), folder, OPTIONS).run()
    ModelDownload(hub, request, folder, OPTIONS).run()
    assert is_right(folder, new)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1])
def test_files_of_any_size(size, pull, server, folder):
    server.repos[REPO].files = {FILE: CONTENT[:size]}
    pull()
    assert is_right(folder, CONTENT[:size])


def test_a_file_outside_the_large_storage_is_checked_with_gits_hash(pull, server, folder):
    server.repos[REPO].plain = frozenset({FILE})
    server.fault(FILE, Fault(times=1, corrupt_at=(777,)))
    pull(n_connections=1)
    assert is_right(folder)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(cut_after=30_000),
        Fault(cut_after=1),
        Fault(times=4, stall_after=30_000),
        Fault(times=6, status=503),
        Fault(times=3, status=500),
        Fault(times=3, status=408),
        Fault(times=3, status=403),
        Fault(times=3, status=429, headers={"Retry-After": "0"}),
        Fault(times=2, status=503, headers={"Retry-After": formatdate(1_000_000_000, usegmt=True)}),
        Fault(times=2, cut_after=0),
        Fault(ignores_ranges=True),
        Fault(times=2, ignores_ranges=True),
        Fault(times=1, claims_total=5),
        Fault(times=3, status=200, body=b"<html>Log in to this network</html>"),
    ],
    ids=repr,
)
def test_the_network_may_fail_in_many_ways(fault, pull, server, folder, hub_with):
    if fault.cut_after == 1:
        server.repos[REPO].files = {FILE: CONTENT[:40]}
    server.fault(FILE, fault)
    is_silent = fault.stall_after is not None or fault.cut_after == 0
    pull(of=hub_with(timeout=0.3 if is_silent else 60), patience=60)
    assert is_right(folder, server.repos[REPO].files[FILE])
    if fault.cut_after == 30_000 or fault.body:
        assert server.n_content_bytes < 1.3 * len(CONTENT)


class TestStoppedAndResumed:
    def test_stopped_at_any_moment_it_goes_on_where_it_was(self, pull, server, folder):
        server.fault(FILE, Fault(bytes_per_second=3e6))
        for _ in range(4):
            interrupt(pull, after=random.Random(5).randint(100_000, 400_000))
            assert visible(folder) == []
        server.heal()
        pull()
        assert is_right(folder)
        assert server.n_content_bytes < 1.3 * len(CONTENT) + 4 * 4 * 64_000
        assert [name for name in files_in(folder / ".partial") if not name.endswith(".lock")] == []

    def test_the_check_of_the_whole_can_be_stopped_too(self, hub, server, folder, monkeypatch):
        class SlowHash:
            def __init__(self, *about):
                self.hash = hasher(*about)

            def update(self, raw):
                time.sleep(0.02)
                self.hash.update(raw)

            def hexdigest(self):
                return self.hash.hexdigest()

        monkeypatch.setattr("models.download.transfer.hasher", SlowHash)
        server.add(REPO, {FILE: CONTENT})
        download = ModelDownload(hub, DownloadRequest(REPO), folder, OPTIONS)

        def stop_late(progress):
            if progress.n_done == len(CONTENT):
                download.stop()

        with pytest.raises(Stopped):
            download.run(stop_late)
        assert visible(folder) == []
        n_before = server.n_content_bytes
        ModelDownload(hub, DownloadRequest(REPO), folder, OPTIONS).run()
        assert is_right(folder)
        assert server.n_content_bytes == n_before

    def test_stop_from_another_thread(self, hub, server, folder):
        server.add(REPO, {FILE: CONTENT})
        server.fault(FILE, Fault(stall_after=200_000))
        download = ModelDownload(hub, DownloadRequest(REPO), folder, OPTIONS)
        threading.Timer(0.2, download.stop).start()
        with pytest.raises(Stopped, match="goes on from there"):
            download.run()

    @pytest.mark.parametrize("harm", ["part", "journal"])
    def test_what_was_spoilt_between_two_runs_costs_only_itself(self, harm, pull, server, folder):
        interrupt_once(pull, server, after=500_000)
        (path,) = (folder / ".partial").rglob(f"*.{harm}")
        raw = path.read_bytes()
        path.write_bytes(bytes(1000) + raw[1000:] if harm == "part" else raw[:-30])
        pull()
        assert is_right(folder)

    def test_another_size_of_pieces_begins_anew(self, pull, server, folder):
        interrupt_once(pull, server, after=300_000)
        pull(piece_bytes=2 * PIECE)
        assert is_right(folder)


def interrupt_once(pull, server, after):
    server.fault(FILE, Fault(bytes_per_second=3e6))
    interrupt(pull, after)
    server.heal()


def interrupt(pull, after):
    """Ctrl-C once some more bytes are there."""
    start = None

    def report(progress):
        nonlocal start
        start = progress.n_done if start is None else start
        if progress.n_done >= min(start + after, len(CONTENT) - 200_000):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(report=report)


class TestWrongContent:
    @pytest.mark.parametrize("where", [(0,), (1_999_999,), (5, 900_000, 1_800_000)])
    def test_a_file_that_was_spoilt_on_its_way_is_fetched_once_more(self, where, pull, server, folder):
        server.fault(FILE, Fault(times=1, corrupt_at=where))
        pull(n_connections=1)
        assert is_right(folder)
        assert server.n_content_bytes == 2 * len(CONTENT)

    def test_content_that_is_wrong_twice_is_no_model_and_is_deleted(self, pull, server, folder):
        server.fault(FILE, Fault(corrupt_at=(1_000_000,)))
        seen = []
        with pytest.raises(WrongContent, match="not what the Hub announces"):
            pull(n_connections=1, report=seen.append)
        assert seen[-1].n_done == 0, "of what was deleted nothing is said to be there"
        assert server.n_content_bytes == 2 * len(CONTENT)
        assert visible(folder) == []
        assert list((folder / ".partial").rglob("*.part")) == []
        server.heal()
        pull()
        assert is_right(folder)


class TestChanges:
    def test_a_change_before_it_goes_on_begins_anew(self, pull, server, folder):
        interrupt_once(pull, server, after=500_000)
        new = CONTENT[::-1]
        server.repos[REPO].change({FILE: new})
        pull()
        assert is_right(folder, new)

    def test_a_change_in_the_middle_ends_with_one_whole_version(self, pull, server, folder):
        server.fault(FILE, Fault(bytes_per_second=3e6))
        changed = threading.Timer(0.1, lambda: server.repos[REPO].change({FILE: CONTENT[::-1]}))
        changed.start()
        pull()
        changed.join()
        assert is_right(folder)

    def test_a_version_that_vanishes_in_the_middle_begins_anew(self, pull, server, folder):
        server.repos[REPO].keeps_old = False
        server.fault(FILE, Fault(cut_after=50_000))
        new = CONTENT[::-1] + b"longer"
        once = []

        def change(progress):
            if progress.n_done > 100_000 and not once:
                once.append(server.repos[REPO].change({FILE: new}))
                server.heal()

        pull(report=change)
        assert is_right(folder, new)

    def test_a_mirror_that_serves_another_file_is_noticed_by_its_etag(self, pull, server, folder):
        etag = hashlib.sha256(b"another").hexdigest()
        server.fault("/resolve/", Fault(times=1, status=302, headers=moved(server, etag)))
        pull(n_connections=1)
        assert is_right(folder)

    def test_a_file_that_keeps_changing_is_given_up(self, pull, server, folder):
        server.fault("/resolve/", Fault(status=302, headers=moved(server, "0" * 64)))
        with pytest.raises(ChangedOnHub, match="keeps changing"):
            pull()
        assert visible(folder) == []

    @pytest.mark.parametrize(
        ("fault", "error", "said"),
        [
            (Fault(status=416), ChangedOnHub, "is shorter on the Hub"),
            (Fault(status=404, headers={"X-Error-Code": "EntryNotFound"}), FileNotFound, "has no file"),
        ],
    )
    def test_a_file_that_is_short_or_gone_is_told_as_that(self, pull, server, folder, fault, error, said):
        server.fault("/resolve/", fault)
        with pytest.raises(error, match=said):
            pull()
        assert visible(folder) == []


def moved(server, etag):
    return {"Location": f"{server.files_address}/{REPO}/{'0' * 40}/{FILE}", "X-Linked-ETag": f'"{etag}"'}


class TestAccess:
    def test_gated_without_and_with_a_token(self, pull, server, folder, hub_with):
        server.repos[REPO].gated = "auto"
        with pytest.raises(GatedWithoutToken):
            pull()
        assert [name for name in files_in(folder) if not name.endswith(".lock")] == []
        with pytest.raises(GatedForToken):
            pull(of=hub_with(STRANGER))
        pull(of=hub_with(TOKEN))
        assert is_right(folder)
        assert {asked.authorization for asked in server.content_requests()} == {None}

    def test_a_silent_network_is_given_up_with_what_is_there_kept(self, pull, server, folder):
        server.fault(FILE, Fault(skip=2, status=503))
        with pytest.raises(ConnectionLost, match=r"HTTP status 503.*goes on from there"):
            pull(patience=0.3)
        server.heal()
        pull()
        assert is_right(folder)

    def test_a_hub_that_is_gone_in_the_middle(self, pull, server, folder):
        server.fault(FILE, Fault(cut_after=50_000))

        def gone(progress):
            if progress.n_done > 100_000:
                server.stop()

        with pytest.raises(ConnectionLost):
            pull(patience=0.3, report=gone)
        assert visible(folder) == []


class TestDisk:
    def test_a_disk_that_others_fill_in_the_middle_keeps_what_is_there(self, pull, server, tmp_path):
        with small_disk(tmp_path / "disk", 4 << 20) as place:
            server.fault(FILE, Fault(bytes_per_second=2e6))
            other = place / "other"

            def fill(progress):
                if progress.n_done > 500_000 and not other.exists():
                    fill_up(other)

            with pytest.raises(DiskFull, match=r"is full.* [KM]B are still to come.*goes on from there"):
                pull(to=place, report=fill)
            assert Catalog([place], starter=None).entries() == ()
            other.unlink()
            server.heal()
            n_before = server.n_content_bytes
            (path,) = pull(to=place).files
            assert path.read_bytes() == CONTENT
            assert is_verified(place, path)
            assert server.n_content_bytes - n_before < len(CONTENT) - 200_000

    def test_a_disk_that_may_only_be_read_is_told(self, pull, server, tmp_path):
        with small_disk(tmp_path / "disk", 8 << 20) as place:
            remount(place, "ro")
            with pytest.raises(FolderRefused, match="Read-only file system"):
                pull(to=place)
            assert server.content_requests() == []

    def test_too_little_space_is_told_before_the_first_byte(self, pull, server, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 500_003, 500_003))
        with pytest.raises(NoSpace, match=r"2\.0 MB are needed .* 500 KB are free: 1\.5 MB are missing") as caught:
            pull()
        assert caught.value.args[0].facts["needed"] == len(CONTENT)
        with pytest.raises(NoSpace, match=r"^2\.0 MB are needed .* 134 MB .* stay free .*: 136 MB are missing"):
            pull(reserve_bytes=128 << 20)
        assert server.content_requests() == []

    def test_a_partial_file_that_others_remove_in_the_middle_is_told(self, pull, server, folder):
        server.fault(FILE, Fault(bytes_per_second=3e6))

        seen = []

        def remove(progress):
            seen.append(progress)
            for path in (folder / ".partial").rglob("*.part"):
                path.unlink()

        with pytest.raises(FileRemoved, match="another program has removed it"):
            pull(report=remove)
        assert seen[-1].n_done == 0
        server.heal()
        pull()
        assert is_right(folder)

    def test_a_folder_that_cannot_be_written_is_told(self, pull, folder):
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("a file in its place")
        with pytest.raises(FolderRefused, match="cannot be written"):
            pull()

    @pytest.mark.parametrize("name", [f".partial/{REPO}/{FILE}.part", f"{REPO}/{FILE}"])
    def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(self, name, pull, folder, tmp_path):
        precious = tmp_path / "precious"
        precious.write_text("mine")
        place = folder / name
        place.parent.mkdir(parents=True)
        place.symlink_to(precious)
        pull()
        assert precious.read_text() == "mine"
        assert not (folder / REPO / FILE).is_symlink()
        assert is_right(folder)

    def test_a_makers_folder_that_leads_out_is_refused(self, pull, folder, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        folder.mkdir()
        (folder / "acme").symlink_to(outside, target_is_directory=True)
        with pytest.raises(UnsafeName, match="through a link"):
            pull()
        assert list(outside.iterdir()) == []

    @pytest.mark.parametrize("when", [0.0, 4_000_000_000.0])
    def test_a_folder_of_another_time_does_not_matter(self, pull, folder, when):
        (folder / REPO).mkdir(parents=True)
        for path in (folder, folder / REPO):
            os.utime(path, (when, when))
        (path,) = pull().files
        os.utime(path, (when, when))
        assert not is_verified(folder, path)
        assert pull().was_there, "its content is what it was"
        assert is_verified(folder, path)


class TestNames:
    @pytest.mark.parametrize("name", ["../evil.gguf", "a/../../evil.gguf", "\\evil.gguf", "nul.gguf"])
    def test_a_name_that_leads_out_is_refused(self, name, pull, server, folder, tmp_path):
        server.repos[REPO].files = {name: CONTENT}
        with pytest.raises(UnsafeName):
            pull()
        assert not folder.exists()
        assert server.content_requests() == []

    @pytest.mark.parametrize("name", ["mein modell-Q4_0.gguf", "模型 #1.gguf", "a+b%20c&d=e.gguf"])
    def test_names_with_spaces_and_in_any_script(self, name, pull, server, folder):
        server.repos[REPO].files = {name: CONTENT[:50_000]}
        (path,) = pull().files
        assert (path.name, path.read_bytes()) == (name, CONTENT[:50_000])


class TestChoice:
    def test_which_one_must_be_said_with_what_there_is(self, pull, server):
        server.repos[REPO].files = {"m-Q4_0.gguf": b"4" * 40, "m-Q8_0.gguf": b"8" * 80, "mmproj-m.gguf": b"p" * 10}
        with pytest.raises(NothingToChoose, match=r"Q4_0 \(40 B\), Q8_0 \(80 B\). Say which one\.") as caught:
            pull()
        assert caught.value.example == f"{REPO}:Q4_0"
        with pytest.raises(NothingToChoose, match="'Q2_K' is not one of them"):
            pull("Q2_K")
        assert [path.name for path in pull("q8_0").files] == ["m-Q8_0.gguf", "mmproj-m.gguf"]
        assert [path.name for path in pull("mmproj-m.gguf").files] == ["mmproj-m.gguf"]

    def test_what_is_advised_can_be_typed(self, pull, server):
        names = ("v1-Q4_0.gguf", "v2-Q4_0.gguf", "a/same-Q8_0.gguf", "b/same-Q8_0.gguf")
        server.repos[REPO].files = {name: name.encode() for name in names}
        said = {}
        for wanted in ("", "Q4_0", "Q8_0"):
            with pytest.raises(NothingToChoose) as caught:
                pull(wanted)
            said[wanted] = str(caught.value)
            example = caught.value.example.removeprefix(f"{REPO}:")
            (path,) = pull(example).files
            assert path.read_bytes() in map(str.encode, names)
        assert "v1-Q4_0 (12 B), v2-Q4_0 (12 B). Say which one." in said["Q4_0"]
        assert "a/same-Q8_0.gguf (16 B), b/same-Q8_0.gguf (16 B). Say which one." in said["Q8_0"]

    def test_two_that_share_a_projector_come_at_once(self, hub, server, folder):
        eye = "mmproj-m.gguf"
        server.add(REPO, {"m-Q4_0.gguf": b"4" * 40, "m-Q8_0.gguf": b"8" * 80, eye: CONTENT})
        server.fault(eye, Fault(bytes_per_second=4e6))
        failed = []

        def pull(wanted):
            try:
                ModelDownload(hub, DownloadRequest(REPO, wanted), folder, OPTIONS).run()
            except Exception as error:
                failed.append(error)

        both = [threading.Thread(target=pull, args=(wanted,)) for wanted in ("Q4_0", "Q8_0")]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert failed == []
        assert visible(folder) == [f"{REPO}/m-Q4_0.gguf", f"{REPO}/m-Q8_0.gguf", f"{REPO}/{eye}"]
        assert server.n_content_bytes < 1.3 * len(CONTENT), "it is fetched once"

    @pytest.mark.parametrize(
        ("name", "said"), [("README.md", "no GGUF files"), ("m-00001-of-00002.gguf", "lacks 1 of the parts")]
    )
    def test_a_repository_without_a_whole_model(self, name, said, pull, server):
        server.repos[REPO].files = {name: b"x"}
        with pytest.raises(NothingToChoose, match=said):
            pull()


class TestSplit:
    @pytest.fixture
    def parts(self, server, pull):
        names = [f"m-Q4_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
        server.repos[REPO].files = {name: CONTENT[i * 300_000 : (i + 2) * 300_000] for i, name in enumerate(names)}
        return names

    def test_parts_come_together(self, parts, pull, server, folder):
        seen = []
        done = pull("Q4_0", report=seen.append)
        assert [path.name for path in done.files] == parts
        assert [path.read_bytes() for path in done.files] == list(server.repos[REPO].files.values())
        assert seen[-1].n_total == 1_800_000
        assert pull("Q4_0").was_there

    def test_no_part_is_a_model_before_all_are_there(self, parts, pull, server, folder):
        server.fault(parts[2], Fault(status=503))

        def stop_after_two_parts(progress):
            if progress.n_done == 1_200_000:
                raise Stopped

        with pytest.raises(Stopped):
            pull("Q4_0", report=stop_after_two_parts, patience=60)
        assert visible(folder) == []
        assert Catalog([folder], starter=None).entries() == ()
        n_before = server.n_content_bytes
        server.heal()
        pull("Q4_0")
        assert server.n_content_bytes - n_before <= 900_000, "the last part and pieces, not another one"
        assert visible(folder) == [f"{REPO}/{name}" for name in parts]


def test_a_downloaded_model_is_listed_and_a_partial_one_is_not(pull, server, folder):
    server.repos[REPO].files = {FILE: EMBER.read_bytes()}
    server.fault(FILE, Fault(bytes_per_second=20e6))
    catalog = Catalog([folder], starter=None)
    listed = []
    pull(
        report=lambda progress: listed.append(len(catalog.entries()) if progress.phase is not DownloadPhase.DONE else 0)
    )
    assert set(listed) == {0}
    (entry,) = catalog.entries()
    assert (entry.title, entry.problem) == ("Ember", None)
