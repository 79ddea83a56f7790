"""What clients' keys may: what one made is not there for another's, and only some manage models."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import openai
import pytest

from app.server.http.errors import is_ollama
from app.server.http.keys import ApiKeys
from app.server.openai.response_store import KEPT_SECONDS, ResponseStore, StoredResponse
from app.settings.server_settings import ServerSettings
from models.files.disk import backup_of
from models.library.requests import EVENTS
from models.library.requests import ROUTES as LIBRARY_ROUTES
from tests.app.server.conftest import MODEL, RunningServer
from tests.app.server.test_batches import chat_line, request_line, results, submit, until
from tests.support import waiting

SHORT = {"model": MODEL, "input": "Hello", "max_output_tokens": 4}


class Client:
    """Someone with a key of this name."""

    def __init__(self, server: RunningServer, name: str) -> None:
        self.name = name
        self.key = server.http.post("/slipstream/keys", json={"name": name}).json()["key"]
        self.openai = openai.OpenAI(base_url=f"{server.url}/v1", api_key=self.key, max_retries=0, timeout=60)
        self.headers = {"Authorization": f"Bearer {self.key}"}
        self._server = server

    def may_manage(self, may: bool) -> None:
        changed = self._server.http.post(f"/slipstream/keys/{self.name}", json={"may_manage": may})
        assert changed.json() == {"name": self.name, "may_manage": may}

    def sends(self, method: str, path: str, **more):
        return self._server.http.request(method, path, headers=self.headers, **more)


@pytest.fixture
def clients(server: RunningServer) -> Iterator[tuple[Client, Client]]:
    """Two clients of a server."""
    names = ("laptop", "phone")
    both = Client(server, names[0]), Client(server, names[1])
    yield both
    for name in names:
        server.http.delete(f"/slipstream/keys/{name}")


def test_a_stored_response_is_there_for_its_key_and_the_owner(server, clients):
    laptop, phone = clients
    mine = laptop.openai.responses.create(**SHORT)
    theirs = server.client.responses.create(**SHORT)
    for others, one in ((phone, mine), (laptop, theirs)):
        paths = (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", ""))
        answers = [others.sends(method, f"/v1/responses/{one.id}{path}", json={}) for method, path in paths]
        assert [answer.status_code for answer in answers] == [404] * 4
        assert one.id not in others.sends("GET", "/v1/responses", params={"limit": 100}).text
        asked = {"model": MODEL, "input": "And?", "previous_response_id": one.id}
        for path in ("/v1/responses", "/v1/responses/input_tokens", "/api/v1/chat"):
            refused = others.sends("POST", path, json=asked)
            assert (refused.status_code, one.id in refused.text) == (400, True)
        item = {"model": MODEL, "input": [{"type": "item_reference", "id": one.output[0].id}]}
        assert others.sends("POST", "/v1/responses", json=item).json()["error"]["code"] == "item_not_found"
    assert laptop.openai.responses.retrieve(mine.id).output_text == mine.output_text
    assert [one["id"] for one in laptop.sends("GET", "/v1/responses").json()["data"]] == [mine.id]
    streamed = list(laptop.openai.responses.create(**SHORT, previous_response_id=mine.id, stream=True))[-1].response
    assert phone.sends("GET", f"/v1/responses/{streamed.id}").status_code == 404
    told = server.client.responses.create(**SHORT, previous_response_id=streamed.id)
    assert laptop.sends("GET", f"/v1/responses/{told.id}").status_code == 404, "the owner goes on for itself"
    kept = laptop.sends("POST", "/api/v1/chat", json={"model": MODEL, "input": "Hello"}).json()["response_id"]
    assert [one.sends("GET", f"/v1/responses/{kept}").status_code for one in clients] == [200, 404]


def test_what_a_revoked_key_made_is_the_owners_and_not_that_of_the_next_key_of_its_name(server, clients):
    laptop, _ = clients
    response, file = laptop.openai.responses.create(**SHORT), upload(laptop.openai)
    server.http.delete("/slipstream/keys/laptop")
    anew = Client(server, "laptop")
    for path in (f"/v1/responses/{response.id}", f"/v1/files/{file.id}"):
        assert anew.sends("GET", path).status_code == 404
        assert server.http.get(path).status_code == 200


def upload(client: openai.OpenAI, purpose: str = "batch", content: bytes = b"{}\n"):
    return client.files.create(file=("a.jsonl", content), purpose=purpose)


def test_files_and_batches_are_there_for_their_key_and_the_owner(server, clients):
    laptop, phone = clients
    long = [chat_line(number, max_tokens=900, ignore_eos=True) for number in range(60)]
    mine = submit(laptop.openai, [request_line("r", "/v1/responses", input="Hi", max_output_tokens=3), *long])
    running = until(laptop.openai, mine.id, lambda one: one.request_counts.completed > 0)
    for path in (
        f"/v1/files/{mine.input_file_id}",
        f"/v1/files/{mine.input_file_id}/content",
        f"/v1/batches/{mine.id}",
    ):
        assert [one.sends("GET", path).status_code for one in clients] == [200, 404]
        assert "made_by" not in laptop.sends("GET", path).text
    acts = (f"/v1/batches/{mine.id}/cancel", f"/slipstream/batches/{mine.id}/pause")
    assert [phone.sends("POST", path, json={}).status_code for path in acts] == [404, 404]
    removals = (f"/v1/files/{mine.input_file_id}", f"/slipstream/batches/{mine.id}")
    assert [phone.sends("DELETE", path).status_code for path in removals] == [404, 404]
    assert (phone.openai.files.list().data, phone.openai.batches.list().data) == ([], [])
    with pytest.raises(openai.BadRequestError, match="There is no file"):
        phone.openai.batches.create(input_file_id=mine.input_file_id, endpoint=mine.endpoint, completion_window="24h")
    assert running.status == "in_progress"
    server.client.batches.cancel(mine.id)
    ended = until(laptop.openai, mine.id, lambda one: one.status == "cancelled")
    answered = results(laptop.openai, ended.output_file_id)["r"]["response"]["body"]["id"]
    assert phone.sends("GET", f"/v1/files/{ended.output_file_id}").status_code == 404
    assert [one.sends("GET", f"/v1/responses/{answered}").status_code for one in clients] == [200, 404]
    listed = {one.id for one in server.client.files.list(limit=100)}
    assert {ended.input_file_id, ended.output_file_id} <= listed


def test_a_line_of_a_batch_reads_only_what_its_key_may(server, clients):
    laptop, phone = clients
    theirs = phone.openai.responses.create(**SHORT)
    line = request_line("r", "/v1/responses", input="And?", previous_response_id=theirs.id)
    ended = until(
        laptop.openai, submit(laptop.openai, [line]).id, lambda one: one.status in ("completed", "failed", "cancelled")
    )
    error = results(laptop.openai, ended.error_file_id)["r"]["response"]["body"]["error"]
    assert error["code"] == "previous_response_not_found"


def test_an_image_of_another_key_is_no_file(server, clients):
    laptop, phone = clients
    image = upload(phone.openai, "vision", b"\x89PNG\r\n\x1a\n")
    asked = [{"role": "user", "content": [{"type": "input_image", "file_id": image.id}]}]
    refused = laptop.sends("POST", "/v1/responses", json={"model": MODEL, "input": asked}).json()["error"]
    own = phone.sends("POST", "/v1/responses", json={"model": MODEL, "input": asked}).json()["error"]
    assert (refused["code"], own["code"]) == ("file_not_found", "images_not_supported")


TEXT = "{} is the first word of a secret that nobody else has sent: the red boats come home on Tuesday."
CALLS = {
    "/v1/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 1},
    "/v1/completions": lambda text: {"prompt": text, "max_tokens": 1},
    "/v1/responses": lambda text: {"input": text, "max_output_tokens": 1, "store": False},
    "/v1/messages": lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 1},
    "/completion": lambda text: {"prompt": text, "n_predict": 1},
}
CACHED = re.compile(r'"(?:cached_tokens|cache_read_input_tokens|cache_n)":\s*(\d+)')


@pytest.mark.parametrize("path", CALLS)
def test_the_cached_texts_of_a_key_are_found_by_this_key_only(server, clients, path):
    body = {"model": MODEL, **CALLS[path](TEXT.format(path))}

    def finds(**more) -> list[bool]:
        answers = [one.sends("POST", path, json=body | more).text for one in (*clients, *clients)]
        return [int(CACHED.search(answer)[1]) > len(TEXT) // 5 for answer in answers]

    assert finds() == [False, False, True, True]
    assert finds(cache_salt="of a user") == [False, False, True, True]
    found = [CACHED.search(server.http.post(path, json=body).text)[1] for _ in range(2)]
    assert [int(count) > len(TEXT) // 5 for count in found] == [False, True], "the owner has its own too"


def test_where_a_prompt_parts_from_a_cached_text_is_told_of_those_of_its_key_only(server, clients):
    laptop, phone = clients
    missed = []
    for one, word in ((phone, "boats"), (laptop, "hats"), (laptop, "foxes")):
        asked = {"messages": [{"role": "user", "content": f"Nobody may read of thirteen {word}."}], "max_tokens": 1}
        missed.append(one.sends("POST", "/v1/chat/completions", json=asked).text)
    assert "hats" in missed[2]
    assert not any("boats" in answer for answer in missed[1:])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "Tell me.", "max_tokens": 900, "ignore_eos": True, "stop": ["my secret"]}),
        ("/v1/embeddings", {"input": ["a fox " * 400] * 200}),
    ],
)
def test_requests_that_run_are_seen_and_ended_by_their_key_and_the_owner(server, clients, path, body):
    laptop, phone = clients
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(laptop.sends, "POST", path, json=body)
        (mine,) = waiting.until(lambda: laptop.sends("GET", "/slipstream/requests").json()["data"])
        waiting.until(lambda: server.state["active"] or path == "/v1/embeddings")
        assert phone.sends("GET", "/slipstream/requests").json()["data"] == []
        with server.http.stream("GET", "/slipstream/events", headers=phone.headers) as stream:
            assert json.loads(next(stream.iter_lines()).removeprefix("data: "))["requests"] == []
        (seen,) = server.http.get("/slipstream/requests").json()["data"]
        slots = [one.sends("GET", "/slots").text for one in (laptop, phone)]
        assert phone.sends("DELETE", f"/slipstream/requests/{mine['id']}").status_code == 404
        assert laptop.sends("DELETE", f"/slipstream/requests/{mine['id']}").json()["cancelled"]
        asking.result(60)
    assert (seen["id"], seen["who"]) == (mine["id"], "laptop")
    if "stop" in body:
        assert ["my secret" in one for one in slots] == [True, False]
        assert ['"is_processing":true' in one for one in slots] == [True, True]


def test_slots_and_scales_are_changed_with_keys_that_manage(home, tmp_path):
    with RunningServer("--no-draft", "--slot-save-path", str(tmp_path)) as server:
        tablet = Client(server, "tablet")
        server.chat(max_tokens=1)
        file = {"filename": "a.bin"}
        for action in ("save", "restore", "erase"):
            refused = tablet.sends("POST", f"/slots/0?action={action}", json=file)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, 403)
        assert tablet.sends("POST", "/lora-adapters", json=[]).status_code == 403
        assert server.http.post("/slots/0?action=save", json=file).json()["n_saved"] > 0
        tablet.may_manage(True)
        assert tablet.sends("POST", "/slots/0?action=erase", json=file).json()["n_erased"] > 0
        server.http.delete("/slipstream/keys/tablet")


MANAGING = (
    ("POST", "/slipstream/load", {"model": "none"}),
    ("DELETE", "/slipstream/load", None),
    ("POST", "/slipstream/unload", {}),
    ("POST", "/models/load", {"model": "none"}),
    ("POST", "/models/unload", {"model": "none"}),
    ("POST", "/models", {"model": "nobody/none:Q4_0"}),
    ("DELETE", "/models?model=none", None),
    ("POST", "/api/pull", {"model": "none"}),
    ("DELETE", "/api/delete", {"model": "none"}),
    ("POST", "/api/chat", {"model": MODEL, "messages": [], "keep_alive": 0}),
    ("POST", "/api/generate", {"model": MODEL, "keep_alive": "0s"}),
    ("POST", "/api/v1/models/load", {"model": "none"}),
    ("POST", "/api/v1/models/unload", {"instance_id": "none"}),
    ("POST", "/api/v1/models/download", {"model": "nobody/none"}),
    ("GET", "/slipstream/log", None),
    ("HEAD", "/slipstream/log", None),
    ("GET", "/slipstream/workers", None),
    ("POST", "/slipstream/workers", {"address": "rpc://127.0.0.1:1", "token": "x"}),
    ("DELETE", "/slipstream/workers/127.0.0.1:1", None),
    ("POST", "/slipstream/remotes", {"name": "none", "url": "ftp://none"}),
    ("POST", "/slipstream/remotes/none/test", {}),
    ("DELETE", "/slipstream/remotes/none", None),
    *((route.method, route.path, {}) for route in LIBRARY_ROUTES),
    ("GET", EVENTS, None),
)


def test_a_key_uses_models_and_manages_them_only_if_it_may(server, clients):
    laptop, _ = clients
    for method, path, body in MANAGING:
        refused = laptop.sends(method, path, json=body)
        assert refused.status_code == 403, (method, path)
        if method == "HEAD":
            continue
        told = refused.json()
        error = told["error"] if is_ollama(path) else told["error"]["message"]
        assert error.startswith("The key 'laptop' may use models, not manage them: "), (method, path)
        assert "slipstream keys change laptop --manage" in error
    uses = (("GET", "/api/ps"), ("GET", "/models"), ("GET", "/api/v1/models"), ("GET", "/slipstream/state"))
    assert [laptop.sends(method, path).status_code for method, path in uses] == [200] * 4
    said = [{"role": "user", "content": "Hello"}]
    asked = {"model": MODEL, "messages": said, "stream": False, "keep_alive": 0, "options": {"num_predict": 2}}
    assert laptop.sends("POST", "/api/chat", json=asked).json()["done_reason"] == "length"
    assert laptop.sends("POST", "/api/chat", json={"model": MODEL}).json()["done_reason"] == "load"
    assert server.state["phase"] == "ready", "the model has not left for this key"
    laptop.may_manage(True)
    wrong = [laptop.sends(*one[:2], json=one[2]).status_code for one in MANAGING if "none" in str(one[1:])]
    assert 403 not in wrong
    assert laptop.sends("GET", "/slipstream/log").status_code == 200
    owners = [laptop.sends("GET", path).status_code for path in ("/slipstream/keys", "/slipstream/endpoint")]
    assert owners == [403, 403], "what it made there would outlive its end"
    laptop.may_manage(False)
    assert laptop.sends("GET", "/slipstream/log").status_code == 403


def test_of_several_keys_without_a_name_each_is_a_client_and_the_users_own_programs_have_another():
    keys = ApiKeys(ServerSettings(api_keys=("one", "two")))
    ids = {keys.id_of(keys.name_of(key), key) for key in (b"one", b"two")}
    assert len(ids - {None}) == 2
    own = keys.local.encode()
    assert (keys.name_of(own), keys.id_of(keys.name_of(own), own)) == ("", None)
    assert [keys.may_manage("", key) for key in (b"one", b"two", own)] == [False, False, True]
    alone = ApiKeys(ServerSettings(api_keys=("one", "one")))
    assert (alone.local, alone.id_of("", b"one"), alone.may_manage("", b"one")) == ("one", None, True)


def test_responses_from_before_are_the_owners_and_a_copy_is_kept_as_long_as_they_are(tmp_path):
    file = tmp_path / "responses.sqlite"
    old = StoredResponse({"id": "resp_1", "output": []}, [], made_by=None)
    row = store_before(file, old)
    new = StoredResponse({"id": "resp_2", "output": []}, [], "resp_1", made_by="laptop")
    with closing(ResponseStore(file)) as store, closing(ResponseStore(file)) as another:
        assert store.get("resp_1") == old
        assert another.put(new)
        assert store.chain("resp_2") == [old, new]
    copy = backup_of(file)
    with closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("SELECT * FROM responses").fetchall() == [row]
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(ResponseStore(file)) as store:
        assert not store.delete("resp_3")
        assert copy.exists()
        assert store.delete("resp_1")
        assert not copy.exists(), "what is deleted is there no more"
        aged(copy)
        assert store.put(StoredResponse({"id": "resp_4", "output": []}, []))
    assert list(tmp_path.iterdir()) == [file]


def test_two_servers_may_begin_with_responses_from_before_at_once(tmp_path):
    old = StoredResponse({"id": "resp_1", "output": [], "text": "x" * 1_000_000}, [], made_by=None)
    for place in range(10):
        file = tmp_path / f"{place}.sqlite"
        store_before(file, old)
        with closing(ResponseStore(file)) as one, closing(ResponseStore(file)) as two, ThreadPoolExecutor() as pool:
            assert list(pool.map(lambda store: store.get("resp_1"), (one, two))) == [old, old]
    assert not list(tmp_path.glob("*.new"))


def store_before(file: Path, response: StoredResponse) -> tuple[object, ...]:
    """Store a response as a version before this one did; return its row."""
    row = (response.response["id"], time.time(), None, "[]", json.dumps(response.response))
    with closing(sqlite3.connect(file)) as before, before:
        before.execute(
            "CREATE TABLE responses (id TEXT PRIMARY KEY, created REAL NOT NULL, previous TEXT, "
            "input TEXT NOT NULL, response TEXT NOT NULL) WITHOUT ROWID"
        )
        before.execute("INSERT INTO responses VALUES (?, ?, ?, ?, ?)", row)
    file.chmod(0o600)
    return row


def aged(copy: Path) -> None:
    """Let a copy be older than any response that is kept."""
    copy.write_bytes(b"")
    os.utime(copy, (time.time() - KEPT_SECONDS - 60,) * 2)
