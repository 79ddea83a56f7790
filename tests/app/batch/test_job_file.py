"""The file of requests: its lines, and what becomes of one."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.jobs.batch import job_file
from app.jobs.batch.job_file import BadBatchLine, BatchRequest, JobFile, parse
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


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")
def test_what_is_piped_in_can_be_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}\n[]\n")))
    jobs = JobFile("-")
    assert len(list(jobs.lines())) == len(list(jobs.lines())) == 2
    jobs.close()
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


SAID = {"messages": [{"role": "user", "content": "Hi"}]}
GOOD: dict[str, Any] = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": SAID}


def line(**changed: Any) -> bytes:
    return json.dumps({name: value for name, value in (GOOD | changed).items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (b"{", "invalid_json", "not valid JSON"),
        (b"\xff{}", "invalid_json", "UTF-8"),
        (b"[" * 100_000, "invalid_json", "nested too deep"),
        (b"[]", "invalid_json", "not a JSON object"),
        (line(custom_id=...), "missing_custom_id", "no custom_id"),
        (line(custom_id=7), "missing_custom_id", "no custom_id"),
        (line(custom_id=""), "missing_custom_id", "no custom_id"),
        (line(method=...), "invalid_method", "not missing"),
        (line(method="GET"), "invalid_method", "'GET'"),
        (line(url="/v1/images"), "invalid_url", "/v1/rerank, /v1/messages, not '/v1/images'"),
        (line(url=["x"]), "invalid_url", "x"),
        (line(body=...), "invalid_body", "must be an object"),
        (line(body="{}"), "invalid_body", "must be an object"),
        (line(body=GOOD["body"] | {"stream": True}), "stream_in_batch", "leave stream out"),
    ],
)
def test_a_line_that_cannot_be_sent_says_why(data: bytes, code: str, says: str) -> None:
    with pytest.raises(BadBatchLine) as caught:
        parse(data)
    assert caught.value.code == code
    assert says in caught.value.message
    assert caught.value.custom_id in ("a", None)


def test_a_line_rides_in_the_batch_lane_unless_it_says_otherwise_and_may_get_another_model() -> None:
    assert parse(line(more="ignored")) == BatchRequest("a", "/v1/chat/completions", GOOD["body"])
    job = parse(line(body={"model": "gpt"}))
    assert (job.adapted("ember", None)["model"], job.adapted(None, None)["model"]) == ("ember", "gpt")
    assert job.body == {"model": "gpt"}
    assert parse(line()).adapted(None, "batch")["speed"] == "batch"
    assert parse(line(body={"speed": "fast"})).adapted(None, "batch")["speed"] == "fast"
    assert "speed" not in parse(line(body={"service_tier": "priority"})).adapted(None, "batch")
    assert "speed" not in parse(line()).adapted(None, None)
    message = line(url="/v1/messages", body={"service_tier": "auto"})  # which is not about time there
    assert parse(message).adapted(None, "batch")["speed"] == "batch"
