"""The end of a batch: whatever comes between, its results are given out once and no line runs twice."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.server.batches import batch_runner
from app.server.batches.batch_runner import BatchRunner
from app.server.batches.file_store import FileStore, Record
from app.server.calls.generation import new_id
from tests.support.disks import fill_up, small_disk
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
N_LINES = 3


class SlowFiles(FileStore):
    """Files whose results are not written before they may be."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_writing, self.may_write = threading.Event(), threading.Event()

    def add(self, name: str, purpose: str, write: Any) -> Record:
        if purpose == "batch_output":
            self.is_writing.set()
            assert self.may_write.wait(60)
        return super().add(name, purpose, write)


class Machine:
    """What a server is made of as far as batches see it; ``n_asked`` counts the lines that were answered."""

    def __init__(self, folder: Path) -> None:
        self.n_asked = 0
        self.folder, self.files = folder, SlowFiles(folder / "files")

    def runner(self) -> BatchRunner:
        return BatchRunner(self.folder / "batches", self.files, self.answer, lambda: 1)

    def batch(self) -> Record:
        lines = [
            {"custom_id": str(number), "method": "POST", "url": "/v1/completions", "body": {"prompt": "x"}}
            for number in range(N_LINES)
        ]
        file = self.files.copy(io.BytesIO("\n".join(map(json.dumps, lines)).encode()), "in.jsonl", "batch")
        return {"id": new_id("batch"), "status": "validating", "input_file_id": file["id"]}

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.n_asked += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


async def until_results_are_written(machine: Machine, runner: BatchRunner) -> str:
    """Start a batch, and return its id as soon as its results are being written."""
    record = machine.batch()
    runner.start()
    runner.add(record)
    await asyncio.to_thread(machine.files.is_writing.wait, 60)
    return str(record["id"])


async def until_over(runner: BatchRunner, batch_id: str) -> Record:
    ends = ("completed", "cancelled", "failed")
    while (found := runner.batches.get(batch_id)) is None or found["status"] not in ends:
        await asyncio.sleep(0.01)
    await runner.close()
    return found


def check(machine: Machine, found: Record) -> None:
    assert found["status"] == "completed"
    assert machine.n_asked == N_LINES
    assert len(machine.files.path(found["output_file_id"]).read_text().splitlines()) == N_LINES
    assert len([one for one in machine.files.all() if one["purpose"] == "batch_output"]) == 1
    until(lambda: not list(machine.folder.rglob("*.results")))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_batch_that_is_paused_or_cancelled_while_its_results_are_written_is_complete(machine, is_cancelled):
    runner = machine.runner()
    batch_id = await until_results_are_written(machine, runner)
    asyncio.get_running_loop().call_later(0.05, machine.files.may_write.set)
    await (runner.cancel(batch_id) if is_cancelled else runner.pause(batch_id))
    check(machine, await until_over(runner, batch_id))


def test_a_server_that_leaves_while_results_are_written_does_not_run_the_batch_again(machine):
    async def leave() -> str:
        runner = machine.runner()
        batch_id = await until_results_are_written(machine, runner)
        await runner.close()
        machine.files.may_write.set()
        return batch_id  # the loop waits for its threads, as a server's does

    async def come_back(batch_id: str) -> Record:
        runner = machine.runner()
        runner.start()
        return await until_over(runner, batch_id)

    batch_id = asyncio.run(asyncio.wait_for(leave(), 60))
    check(machine, asyncio.run(asyncio.wait_for(come_back(batch_id), 60)))


async def test_a_batch_for_whose_results_the_disk_has_no_room_goes_on_when_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_runner, "_AGAIN_SECONDS", 0.05)
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        machine = Machine(disk)
        runner, record = machine.runner(), machine.batch()
        runner.batches.put(record)
        machine.files.may_write.set()
        fill_up(disk / "full")
        runner.start()
        await asyncio.sleep(0.2)
        for change in (runner.pause, runner.cancel):
            with pytest.raises(OSError, match="No space"):
                await change(record["id"])
        assert runner.batches.get(record["id"])["status"] == "validating"
        (disk / "full").unlink()
        check(machine, await until_over(runner, record["id"]))


async def test_a_batch_that_cannot_go_on_gives_out_what_is_finished(machine, monkeypatch):
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        is_state, machine.n_asked = scope["path"] == "/slipstream/state", machine.n_asked + 1
        body = {"phase": "failed"} if is_state else {"error": {"code": "engine_unavailable", "message": "No memory."}}
        is_good = is_state or machine.n_asked < N_LINES
        await send({"type": "http.response.start", "status": 200 if is_good else 503, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    monkeypatch.setattr(machine, "answer", answer)
    monkeypatch.setattr(batch_runner, "_LINES_PER_SLOT", 1)
    machine.files.may_write.set()
    runner, record = machine.runner(), machine.batch()
    runner.start()
    runner.add(record)
    found = await until_over(runner, record["id"])
    assert (found["status"], found["errors"]["data"][0]["code"]) == ("failed", "batch_failed")
    assert len(machine.files.path(found["output_file_id"]).read_text().splitlines()) == N_LINES - 1


async def test_what_was_being_cancelled_when_the_server_ended_is_cancelled_with_what_was_finished(machine):
    machine.files.may_write.set()
    runner, record = machine.runner(), machine.batch() | {"status": "cancelling"}
    runner.batches.put(record)
    answered = {"id": "batch_req_1_0", "custom_id": "0", "response": {"status_code": 200, "body": {}}}
    (runner.batches.folder / f"{record['id']}.results").write_text(json.dumps(answered) + "\n")
    runner.start()
    found = await until_over(runner, record["id"])
    assert found["status"] == "cancelled"
    assert machine.files.path(found["output_file_id"]).read_text().count("\n") == 1


@pytest.mark.parametrize(
    "damaged", ["{}", "[]", "null", "{", '{"id": "batch_2", "status": "validating"}', "[" * 100_000]
)
async def test_damaged_records_are_left_out(machine, damaged):
    machine.files.may_write.set()
    runner, record = machine.runner(), machine.batch()
    runner.batches.put(record)
    for name, folder in (("batch_1", runner.batches), ("batch_2", runner.batches), ("file-1", machine.files)):
        (folder.folder / f"{name}.json").write_text(damaged)
        assert (folder.get(name), folder.delete(name)) == (None, False)
    runner.start()
    check(machine, await until_over(runner, record["id"]))


LOCK = """
import sys
from pathlib import Path
from app.jobs.batch.result_file import ResultFile
held = ResultFile(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


async def test_a_batch_goes_on_here_when_the_server_that_ran_it_has_left(machine, monkeypatch):
    monkeypatch.setattr(batch_runner, "_AGAIN_SECONDS", 0.05)
    machine.files.may_write.set()
    runner, record = machine.runner(), machine.batch()
    runner.batches.put(record)
    results = runner.batches.folder / f"{record['id']}.results"
    with subprocess.Popen(
        [sys.executable, "-c", LOCK, str(results)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert await asyncio.to_thread(other.stdout.readline) == b"held\n"
        runner.start()
        await asyncio.sleep(0.2)
        assert runner.batches.get(record["id"])["status"] == "validating"
        other.stdin.close()
    check(machine, await until_over(runner, record["id"]))
