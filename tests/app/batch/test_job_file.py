from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from app.jobs.batch import job_file
from app.jobs.batch.job_file import JobFile
from core.values.errors import BadRequest


def test_blank_lines_count_but_are_no_jobs(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf{}\r\n\n  \n[]")
    jobs = JobFile(str(path))
    assert [(line.number, line.data) for line in jobs.lines()] == [(1, b"{}"), (4, b"[]")]
    assert [line.number for line in jobs.lines()] == [1, 4], "as often as needed"
    jobs.close()


def test_the_digest_is_of_what_a_line_says(tmp_path: Path) -> None:
    digests = []
    for name, data in (("unix", b"{}\n[]\n"), ("windows", b"{}\r\n[]"), ("other", b"{1}\n[]\n")):
        (tmp_path / name).write_bytes(data)
        jobs = JobFile(str(tmp_path / name))
        digests.append([line.digest for line in jobs.lines()])
        jobs.close()
    assert digests[0] == digests[1]
    assert digests[2][0] != digests[0][0]
    assert digests[2][1] == digests[0][1]


def test_a_line_that_is_too_long_is_passed_over_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_file, "MAX_LINE", 100)
    monkeypatch.setattr(job_file, "_CHUNK", 64)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"a" * 1000 + b"\n{}\n" + b"b" * 101)
    jobs = JobFile(str(path))
    lines = list(jobs.lines())
    assert [(line.number, line.data) for line in lines] == [(1, None), (2, b"{}"), (3, None)]
    assert lines[0].digest != lines[2].digest
    jobs.close()


def test_what_is_piped_in_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}\n[]\n")))
    jobs = JobFile("-")
    assert len(list(jobs.lines())) == len(list(jobs.lines())) == 2
    jobs.close()


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")
def test_a_named_pipe_can_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"{}\n[]\n",))
    writer.start()
    jobs = JobFile(str(tmp_path / "pipe"))
    writer.join()
    assert len(list(jobs.lines())) == len(list(jobs.lines())) == 2
    jobs.close()


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="is a folder"):
        JobFile(str(tmp_path))
    with pytest.raises(BadRequest, match="No such file"):
        JobFile(str(tmp_path / "none"))
    with pytest.raises(BadRequest, match="null"):
        JobFile("a\0b")


def test_a_file_is_known_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"{}\n")
    (tmp_path / "link").symlink_to(path)
    jobs = JobFile(str(path))
    assert jobs.is_same_as(tmp_path / "link")
    assert not jobs.is_same_as(tmp_path / "none")
    jobs.close()
