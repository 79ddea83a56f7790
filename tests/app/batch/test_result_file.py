from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from app.jobs.batch.result_file import OutputFailed, ResultFile
from core.values.errors import BadRequest

ANSWER = {"response": {"status_code": 200, "body": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}}}
REFUSAL = {"response": {"status_code": 400, "body": {"error": {"code": "x"}}}}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and limits of POSIX")


def written(path: Path, numbers: range) -> bytes:
    results = ResultFile(path)
    results.begin(results.read())
    for number in numbers:
        results.append(number, number * 7, f"r{number}", **ANSWER, error=None)
    results.close()
    return path.read_bytes()


def test_what_was_written_is_known_again(tmp_path: Path) -> None:
    data = written(tmp_path / "out", range(1, 4))
    record = json.loads(data.splitlines()[1])
    assert record == {"id": "batch_req_2_000000000000000e", "custom_id": "r2", **ANSWER, "error": None}
    results = ResultFile(tmp_path / "out")
    history = results.read()
    assert [history.digest(number) for number in range(6)] == [0, 7, 14, 21, 0, 0]
    assert (history.tally.n_done, history.tally.n_prompt_tokens, history.tally.n_completion_tokens) == (3, 9, 6)
    assert history.n_bytes == len(data)
    results.close()


def test_errors_are_counted_by_code(tmp_path: Path) -> None:
    results = ResultFile(tmp_path / "out")
    results.begin(results.read())
    results.append(1, 1, "a", **REFUSAL, error=None)
    results.append(2, 1, None, response=None, error={"code": "invalid_json", "message": "no"})
    results.append(3, 1, "c", response={"status_code": 418, "body": 3}, error=None)
    tally = results.read().tally
    assert (tally.n_done, tally.n_failed) == (0, 3)
    assert dict(tally.errors) == {"x": 1, "invalid_json": 1, "status_418": 1}
    results.close()


def test_a_kill_at_any_byte_leaves_whole_lines_behind(tmp_path: Path) -> None:
    path = tmp_path / "out"
    data = written(path, range(1, 4))
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for n_bytes in range(len(data) + 1):
        path.write_bytes(data[:n_bytes])
        results = ResultFile(path)
        history = results.read()
        assert path.stat().st_size == n_bytes, "reading changes nothing"
        results.begin(history)
        n_whole = sum(end <= n_bytes for end in ends)
        assert history.tally.n_lines == n_whole
        assert path.read_bytes() == data[: ([0, *ends])[n_whole]]
        results.close()


def test_zeros_that_a_loss_of_power_left_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out"
    data = written(path, range(1, 3))
    for more in (b"\0" * 5000, b"\0" * 50 + b'{"id": "batch_req_3_00'):
        path.write_bytes(data + more)
        results = ResultFile(path)
        results.begin(results.read())
        results.close()
        assert path.read_bytes() == data


FOREIGN = (
    b"notes of mine",
    b"notes of mine\n",
    b'{"id": "resp_1"}\n',
    b'{"id": "batch_req_abc", "custom_id": "a"}\n',
    b'{"id": "batch_req_0_0000000000000001", "custom_id": "a"}\n',
    b'{"id": "batch_req_99999999999999_0000000000000001", "custom_id": "a"}\n',
    b'{"id": "batch_req_1_0000000000000001", "custom_id": \n',
)


@pytest.mark.parametrize(("data", "n_before"), [*((data, n) for data in FOREIGN for n in (0, 2)), (b"\0" * 100, 0)])
def test_what_is_not_ours_is_refused_and_left_alone(tmp_path: Path, data: bytes, n_before: int) -> None:
    path = tmp_path / "out"
    data = written(path, range(1, n_before + 1)) + data
    path.write_bytes(data)
    results = ResultFile(path)
    with pytest.raises(BadRequest, match=rf"not the output of a batch \(line {n_before + 1}\)"):
        results.read()
    results.close()
    assert path.read_bytes() == data


def test_paths_that_cannot_be_written_say_why(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="is a folder"):
        ResultFile(tmp_path)
    with pytest.raises(BadRequest, match="there is no folder"):
        ResultFile(tmp_path / "none" / "out")
    with pytest.raises(BadRequest, match="is not a file"):
        ResultFile(Path("/dev/null"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadRequest, match="is not a file"):
        ResultFile(tmp_path / "pipe")


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out"
    data = written(path, range(1, 3))
    results = ResultFile(path)
    results.begin(results.read())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) + 20, limits[1]))
        with pytest.raises(OutputFailed, match="cannot be written: File too large"):
            results.append(3, 3, "r3", **ANSWER, error=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert path.read_bytes() == data
    results.close()


def test_a_file_that_was_moved_away_is_noticed(tmp_path: Path) -> None:
    results = ResultFile(tmp_path / "out")
    results.begin(results.read())
    results.sync()
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(OutputFailed, match="was moved or deleted"):
        results.sync()
    results.close()


def test_a_line_that_is_answered_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    data = written(path, range(1, 3))
    path.write_bytes(data + data)
    results = ResultFile(path)
    with pytest.raises(BadRequest, match="answers line 1 of the input twice"):
        results.read()
    results.close()
