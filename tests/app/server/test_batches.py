"""/v1/files and /v1/batches with OpenAI's own client: a file is run, cancelled, and goes on after a restart."""

from __future__ import annotations

import json
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import openai
import psutil
import pytest

from tests.app.server.conftest import MODEL, RunningServer
from tests.support import waiting
from tests.support.disks import fill_up, small_disk


def request_line(custom_id: str, url: str, **body) -> str:
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": {"model": MODEL} | body})


def chat_line(number: int, **fields) -> str:
    asked = {"messages": [{"role": "user", "content": f"Say {number}."}], "max_tokens": 4} | fields
    return request_line(f"line-{number}", "/v1/chat/completions", **asked)


def submit(client: openai.OpenAI, lines: list[str], endpoint: str = "/v1/chat/completions") -> openai.types.Batch:
    file = client.files.create(file=("requests.jsonl", "\n".join(lines).encode()), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")


def until(client: openai.OpenAI, batch_id: str, is_so) -> openai.types.Batch:
    """The batch as soon as it ``is_so``."""
    return waiting.until(lambda: batch if is_so(batch := client.batches.retrieve(batch_id)) else None)


def results(client: openai.OpenAI, file_id: str) -> dict[str, dict]:
    lines = client.files.content(file_id).text.splitlines()
    return {line["custom_id"]: line for line in map(json.loads, lines)}


def test_a_batch_answers_each_line_and_tells_the_errors_apart(server):
    client = server.client
    response = request_line("r", "/v1/responses", input="Hi", max_output_tokens=3)
    lines = [chat_line(1), chat_line(2, temperature=-1), chat_line(3), response, "{broken"]
    batch = submit(client, lines)
    assert batch.status == "validating"
    batch = until(client, batch.id, lambda one: one.status == "completed")
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (5, 3, 2)
    good = results(client, batch.output_file_id)
    assert set(good) == {"line-1", "line-3", "r"}
    assert good["line-1"]["response"]["body"]["choices"][0]["message"]["content"]
    bad = results(client, batch.error_file_id)
    assert bad["line-2"]["response"]["body"]["error"]["param"] == "temperature"
    assert bad[None]["error"]["code"] == "invalid_json"
    assert batch.id in [one.id for one in client.batches.list()]


def test_lines_of_vectors_and_of_messages_are_answered_as_by_their_routes(server):
    client, user = server.client, [{"role": "user", "content": "Say one."}]
    vectors = {"input": ["a fox", "an owl"], "encoding_format": "base64", "dimensions": 8}
    message = {"messages": user, "max_tokens": 4, "temperature": 0, "service_tier": "auto"}
    lines = [
        request_line("vectors", "/v1/embeddings", **vectors),
        request_line("message", "/v1/messages", **message),
        request_line("no vectors", "/v1/embeddings", input="a fox", dimensions=100_000),
        request_line("no message", "/v1/messages", messages=user, max_tokens=4, stop_sequences=["x" * 2_000]),
        request_line("no speed", "/v1/embeddings", input="a fox", speed="deep"),
        request_line("streamed", "/v1/messages", **message, stream=True),
    ]
    batch = until(client, submit(client, lines, "/v1/embeddings").id, lambda one: one.status == "completed")
    assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 4)
    good = {name: line["response"]["body"] for name, line in results(client, batch.output_file_id).items()}
    assert good["vectors"]["data"] == server.http.post("/v1/embeddings", json=vectors).json()["data"]
    alone = server.http.post("/v1/messages", json={"model": MODEL, **message}).json()
    assert good["message"]["content"] == alone["content"]
    bad = results(client, batch.error_file_id)
    wrong = {name: line["response"]["body"]["error"] for name, line in bad.items() if line["response"] is not None}
    assert {name: error["param"] for name, error in wrong.items()} == {
        "no vectors": "dimensions",
        "no message": "stop_sequences",
        "no speed": "speed",
    }
    assert bad["streamed"]["error"]["code"] == "stream_in_batch"


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 900}),
        ("/v1/embeddings", {"input": ["one two three " * 60] * 400}),
    ],
)
def test_each_line_waits_in_the_batch_lane(server, url, body):
    lanes: set[str] = set()

    def is_seen(batch: openai.types.Batch) -> bool:
        lanes.update(one["lane"] for one in server.http.get("/slipstream/requests").json()["data"])
        return bool(lanes)

    batch = submit(server.client, [request_line(f"line-{number}", url, **body) for number in range(40)])
    until(server.client, batch.id, is_seen)
    server.client.batches.cancel(batch.id)
    assert lanes == {"batch"}


def test_a_deep_reply_in_a_batch_says_how_far_it_is(server):
    seen: list[dict] = []

    def is_over(batch: openai.types.Batch) -> bool:
        seen.extend(getattr(batch, "deep", None) or [])
        return batch.status == "completed"

    batch = submit(server.client, [chat_line(1, max_tokens=200, ignore_eos=True, speed="deep")])
    until(server.client, batch.id, is_over)
    stages = [one["stage"] for one in seen]
    assert stages
    order = ("drafting", "distilling", "refining") if "plain" not in stages else ("plain",)
    assert stages == sorted(stages, key=order.index)
    tokens = [one["tokens"] for one in seen]
    assert tokens == sorted(tokens)
    assert tokens[-1] > 0


def test_files_are_listed_read_and_deleted_and_need_a_purpose(server):
    client, upload = server.client, {"file": ("a.jsonl", b"one\n")}
    file = client.files.create(file=("a.jsonl", b"one\n"), purpose="batch")
    assert client.files.retrieve(file.id).bytes == 4
    assert client.files.content(file.id).text == "one\n"
    assert next(iter(client.files.list(limit=1))).id == file.id
    assert [one.id for one in client.files.list(order="asc")] == [one.id for one in client.files.list()][::-1]
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.content(file.id)
    assert server.http.post("/v1/files", files=upload).json()["error"]["param"] == "purpose"
    assert server.http.post("/v1/files", files=upload, data={"purpose": "fine-tune"}).status_code == 400
    assert server.http.post("/v1/files", files={"purpose": (None, "batch")}).json()["error"]["param"] == "file"
    assert server.http.post("/v1/files", json={}).status_code == 415
    page = {"Origin": "https://pages.example"}
    assert server.http.post("/v1/files", files=upload, data={"purpose": "batch"}, headers=page).status_code == 403


def test_a_file_whose_name_is_no_text_stays_readable_in_the_list(server):
    part = 'Content-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    parts = (part.format("purpose", "", "batch"), part.format("file", '; filename="a+2AA-b.jsonl"', "one"))
    form = "".join(f"--edge\r\n{one}" for one in parts) + "--edge--\r\n"
    half_a_pair = {"Content-Type": "multipart/form-data; boundary=edge; charset=utf-7"}
    uploaded = server.http.post("/v1/files", content=form.encode(), headers=half_a_pair)
    assert (uploaded.status_code, uploaded.json()["filename"]) == (200, "a?b.jsonl")
    assert uploaded.json()["id"] in [one.id for one in server.client.files.list()]
    server.client.files.delete(uploaded.json()["id"])


def files_on(disk: Path) -> list[Path]:
    return sorted(path for path in disk.rglob("*") if path.is_file())


def test_what_the_disk_has_no_room_for_is_told_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    with small_disk(tmp_path / "data", 1 << 20) as disk, RunningServer("--no-draft", "--no-calibration") as server:
        client = server.client
        kept = client.files.create(file=("a.jsonl", chat_line(1).encode()), purpose="batch")
        fill_up(disk / "full")
        before = files_on(disk)
        with pytest.raises(openai.InternalServerError, match="No space left on device") as told:
            client.files.create(file=("b.jsonl", bytes(300_000)), purpose="batch")
        assert (told.value.status_code, told.value.code) == (507, "disk_full")
        fields = {"input_file_id": kept.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        headers = {"Content-Type": "application/json", **server.headers}
        with closing(HTTPConnection(httpx.URL(server.url).netloc.decode())) as connection:
            for method, path, status in (("POST", "/v1/batches", 507), ("GET", "/v1/files", 200)):
                connection.request(method, path, json.dumps(fields), headers)
                answer = connection.getresponse()
                assert (answer.status, bool(answer.read())) == (status, True)
                time.sleep(0.1)  # in which it may be closed, though nothing was said of that
        assert files_on(disk) == before
        assert (client.files.content(kept.id).text, client.batches.list().data) == (chat_line(1), [])
        (disk / "full").unlink()
        batch = until(client, client.batches.create(**fields).id, lambda one: one.status == "completed")
        assert batch.request_counts.completed == 1


def test_a_batch_is_cancelled_with_what_is_finished(server):
    client = server.client
    long = [chat_line(number, max_tokens=900, ignore_eos=True) for number in range(60)]
    batch = submit(client, [chat_line(100), *long])
    until(client, batch.id, lambda one: one.status == "in_progress")
    client.batches.cancel(batch.id)
    batch = until(client, batch.id, lambda one: one.status == "cancelled")
    server.wait_until(lambda state: state["active"] + state["queued"] == 0)
    with pytest.raises(openai.BadRequestError):
        client.batches.cancel(batch.id)


def test_a_batch_waits_while_it_is_paused_and_is_forgotten_when_it_is_over(server):
    client, http = server.client, server.http
    batch = submit(client, [chat_line(number, max_tokens=100, ignore_eos=True) for number in range(12)])
    until(client, batch.id, lambda one: one.status == "in_progress")
    assert http.post(f"/slipstream/batches/{batch.id}/pause", json={}).json()["paused"]
    assert http.post(f"/slipstream/batches/{batch.id}/pause", json={}).status_code == 400
    server.wait_until(lambda state: state["active"] + state["queued"] == 0)
    other = until(client, submit(client, [chat_line(1)]).id, lambda one: one.status == "completed")
    assert client.batches.retrieve(batch.id).status == "in_progress"
    assert http.delete(f"/slipstream/batches/{batch.id}").status_code == 400
    assert http.post(f"/slipstream/batches/{batch.id}/resume", json={}).json()["paused"] is False
    assert http.post(f"/slipstream/batches/{batch.id}/resume", json={}).status_code == 400
    over = until(client, batch.id, lambda one: one.status == "completed")
    assert over.request_counts.completed == 12
    for one in (over, other):
        assert http.delete(f"/slipstream/batches/{one.id}").json()["deleted"]
        with pytest.raises(openai.NotFoundError):
            client.batches.retrieve(one.id)
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(over.output_file_id)


@pytest.mark.slow
def test_a_batch_goes_on_after_the_server_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    options = ("--parallel", "2", "--no-draft", "--no-calibration")
    first = RunningServer(*options)
    lines = [chat_line(number, max_tokens=150, ignore_eos=True) for number in range(12)]
    batch = submit(first.client, lines)
    until(first.client, batch.id, lambda one: one.request_counts.total == 12)
    psutil.Process(first.process.pid).kill()
    first.close()
    with RunningServer(*options) as second:
        batch = until(second.client, batch.id, lambda one: one.status == "completed")
        assert batch.request_counts.completed == 12
        assert set(results(second.client, batch.output_file_id)) == {f"line-{number}" for number in range(12)}


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({}, "input_file_id"),
        ({"input_file_id": "../../x"}, "input_file_id"),
        ({"input_file_id": None}, "input_file_id"),
        ({"endpoint": "/v1/audio"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
    ],
)
def test_a_batch_that_cannot_be_run_is_refused_by_name(server, wrong, param):
    fields = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = server.http.post("/v1/batches", json=fields | wrong)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
