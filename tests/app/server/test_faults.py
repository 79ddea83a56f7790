"""What goes wrong around a running server: dead engines, bad clients, crowds, and a change of model."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import shutil
import socket
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import psutil
import pytest
from pydantic import ValidationError

from app.environment.paths import models_folder
from app.server.anthropic.message_body import MessageBody
from app.server.calls.chat_body import ChatCompletionBody
from app.server.http.limits import MAX_BODY
from app.server.lm_studio.chat import LmStudioChatBody
from app.server.openai.response_body import ResponseBody
from models.catalog.catalog import STARTER_FOLDER
from tests.support.fork_server import stood_for
from tests.support.waiting import until

try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
except ImportError:  # a Python that was built without
    zstd = None

USER = [{"role": "user", "content": "Tell me a story about a fox."}]


def test_two_hundred_requests_at_once_all_finish(own_server):
    async def run() -> list:
        client = openai.AsyncOpenAI(
            base_url=f"{own_server.url}/v1", api_key=own_server.process.api_key, max_retries=0, timeout=60
        )
        async with client:
            one = client.chat.completions.create
            calls = [one(model="ember", messages=USER, max_tokens=2, seed=i, temperature=1) for i in range(200)]
            return await asyncio.gather(*calls)

    answers = asyncio.run(run())
    assert len(answers) == 200
    assert all(answer.choices[0].finish_reason in ("length", "stop") for answer in answers)


def test_a_model_that_is_deleted_while_calls_wait_for_it_ends_them_and_no_others(own_server):
    folder = models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    copy = Path(shutil.copy(STARTER_FOLDER / "ember-q8_0.gguf", folder / "soon-gone.gguf"))
    running = own_server.chat(max_tokens=900, stream=True, extra_body={"ignore_eos": True})
    next(iter(running))
    bodies = {path: {"model": "soon-gone", "messages": USER} for path in ("/v1/chat/completions", "/v1/messages")}
    with ThreadPoolExecutor() as threads:
        waiting = [threads.submit(own_server.http.post, path, json=body) for path, body in bodies.items()]
        own_server.wait_until(lambda state: state["queued"] == len(bodies))
        copy.unlink()
        running.close()
    for answer in (one.result() for one in waiting):
        assert (answer.status_code, "There is no model 'soon-gone'" in answer.text) == (404, True), answer.text
    again = own_server.http.post("/slipstream/load", json={"model": "soon-gone"})
    assert (again.status_code, again.json()["error"]["code"]) == (404, "model_not_found"), again.text
    answer = own_server.http.post("/v1/chat/completions", json={"messages": USER, "max_tokens": 1})
    assert (answer.status_code, answer.json().get("model")) == (200, "ember-q8_0"), answer.text


def test_a_model_can_be_loaded_by_name(own_server):
    assert own_server.http.post("/slipstream/load", json={"model": "ember-draft-q8_0"}).status_code == 202
    state = own_server.wait_until(lambda now: now["phase"] == "ready" and now["model"] == "ember-draft-q8_0")
    assert state["n_params"] < 2_000_000
    assert [one["model"] for one in state["models"]] == ["ember-draft-q8_0"], "the other one made way"
    assert own_server.http.get("/health").json()["model"] == "ember-draft-q8_0"
    unknown = own_server.http.post("/slipstream/load", json={"model": "nothing"})
    assert unknown.status_code == 404
    assert "ember-q8_0" in unknown.json()["error"]["message"]
    own_server.http.post("/slipstream/load", json={"model": "ember-q8_0"})
    own_server.wait_until(lambda now: now["phase"] == "ready" and now["model"] == "ember-q8_0")


def test_an_unloaded_model_is_loaded_again_by_the_next_request(own_server):
    other = own_server.http.post("/slipstream/unload", json={"model": "ember-draft-q8_0"})
    assert (other.status_code, other.json()["error"]["param"]) == (400, "model")
    props = own_server.http.get("/props").json()
    assert own_server.http.post("/slipstream/unload", json={}).json() == {"model": "ember-q8_0"}
    own_server.wait_until(lambda now: now["phase"] == "empty")
    # As at llama-server, asking does not wake it.
    assert own_server.http.get("/props").json() == props | {"is_sleeping": True}
    assert [slot["is_processing"] for slot in own_server.http.get("/slots").json()] == [False] * 4
    assert own_server.state["phase"] == "empty"
    health = own_server.http.get("/health")
    assert (health.status_code, health.json()["status"]) == (200, "unloaded")
    assert not any(model["loaded"] for model in own_server.http.get("/v1/models").json()["data"])
    assert own_server.chat(max_tokens=1).model == "ember-q8_0"
    assert own_server.http.get("/health").json()["status"] == "ok"
    assert own_server.http.get("/props").json() == props


def test_a_chat_sent_before_the_death_of_the_engine_is_known_is_answered_by_the_next_one(own_server):
    own_server.engine.suspend()
    with ThreadPoolExecutor() as threads:
        whole = threads.submit(own_server.chat, max_tokens=2)
        stream = threads.submit(lambda: list(own_server.chat(max_tokens=2, stream=True)))
        own_server.wait_until(lambda state: state["queued"] == 2)
        own_server.engine.kill()
        assert whole.result(60).choices[0].finish_reason == "length"
        assert stream.result(60)[-1].choices[0].finish_reason == "length"
    health = own_server.http.get("/health").json()
    assert (health["status"], health["deaths"], health["left_out"]) == ("ok", 1, [])


def test_models_are_listed_and_told(server):
    listed = server.client.models.list().data
    assert [model.id for model in listed][:2] == ["ember-q8_0", "ember-draft-q8_0"]
    assert server.http.get("/v1/models/").json() == server.http.get("/v1/models").json()
    assert server.http.get("/v1/models/none").status_code == 404
    assert server.http.get("/models").json() == server.http.get("/v1/models").json()
    assert server.http.get("/models/ember-q8_0").json()["id"] == "ember-q8_0"
    # What changes the models is llama-server's, and there without the prefix.
    assert server.http.post("/v1/models", json={"model": "ember-q8_0"}).status_code == 405
    assert [server.http.delete(f"/v1/models{name}").status_code for name in ("", "/ember-q8_0")] == [405, 405]
    ember = server.client.models.retrieve("ember-q8_0")
    assert ember.owned_by == "slipstream"
    assert (ember.context_length, ember.quantization) == (1024, "Q8_0")
    assert {"completion", "tools"} <= set(ember.capabilities)
    assert ember.meta["n_params"] == server.state["n_params"]
    told = server.http.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
    assert (told["first_id"], told["has_more"], told["data"][0]["type"]) == ("ember-q8_0", False, "model")
    assert server.http.get("/health").json() == {
        "status": "ok", "model": "ember-q8_0", "progress": 1.0, "problem": None,
        "deaths": 0, "left_out": [], "retry_in": None,
    }  # fmt: skip


def post(server, body: bytes, **headers: str):
    fields = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return server.http.post("/v1/chat/completions", content=body, headers=fields)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', "UTF-8"),
        (b'{"messages": [', "not valid JSON"),
        (b"", "empty"),
        (b"[" * 100_000, "nested too deep"),
        (b"7", "The body must be a JSON object."),
        (b'{"messages": [], "seed": ' + b"9" * 700 + b"}", "too many digits"),
    ],
    ids=["utf-8", "json", "empty", "deep", "number", "digits"],
)
def test_a_body_that_is_no_json_object_is_refused(server, body, sentence):
    answer = post(server, body)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/moderations"), ("GET", "/v1")])
def test_a_route_that_is_not_there_is_answered_with_where_they_are_listed(server, method, path):
    answer = server.http.request(method, path, json={})
    assert answer.status_code == 404
    error = answer.json()["error"]
    # "said" has the facts of a sentence, for those who say it in another language.
    assert set(error) - {"said"} == {"message", "type", "param", "code"}
    assert error["code"] == "not_found"
    assert error["message"] == f"There is no {method} {path} here. GET /docs lists what there is."
    assert "/v1/chat/completions" in server.http.get("/docs").text


@pytest.mark.parametrize("path", ["/models", "/models/ember-q8_0", "/responses", "/files"])
def test_routes_are_found_without_their_prefix(server, path):
    assert server.http.get(path).json().keys() == server.http.get(f"/v1{path}").json().keys()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/ember-q8_0"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/completion"),
    ],
)
@pytest.mark.parametrize("as_sent", ["{}/", "/{}", "{}//?a=b/"])
def test_a_path_with_slashes_too_many_is_the_one_that_is_meant(server, method, path, as_sent):
    # An address of its own: the client would take a path that begins with two slashes for a host.
    meant, sent = (server.http.request(method, server.url + one, json={}) for one in (path, as_sent.format(path)))
    assert sent.status_code == meant.status_code
    assert meant.status_code == (200 if method == "GET" else 400)
    assert sent.json().keys() == meant.json().keys()


def test_another_method_a_doubled_prefix_and_another_type_are_put_right(server):
    answer = server.http.get("/v1/chat/completions")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "/v1/chat/completions does not take GET, but POST."
    message = server.http.post("/v1/v1/chat/completions", json={}).json()["error"]["message"]
    assert "Is /v1/chat/completions meant? The base URL ends with /v1." in message
    assert post(server, b"{}", Content_Type="text/plain", Sec_Fetch_Site="same-origin").status_code == 415


def test_a_body_in_gzip_deflate_or_zstd_is_unpacked(server):
    body = json.dumps({"messages": USER, "max_tokens": 3}).encode()
    plain = post(server, body).json()["usage"]["prompt_tokens"]
    ways = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}
    if zstd is not None:
        ways["zstd"] = zstd.compress
    for name, pack in ways.items():
        packed = pack(body)
        answer = post(server, packed, Content_Encoding=name)
        assert (answer.status_code, answer.json()["usage"]["prompt_tokens"]) == (200, plain), name
        chunked = server.http.post(
            "/v1/chat/completions",
            content=(bytes([byte]) for byte in packed),
            headers={"content-encoding": name, "content-type": "application/json"},
        )
        assert chunked.status_code == 200, name


def test_a_long_text_that_was_only_counted_leaves_the_engine_as_small_as_it_was(server) -> None:
    def engine_size() -> int:
        return server.engine.memory_info().rss

    def counted(text: str) -> int:
        return len(server.http.post("/tokenize", json={"content": text}).json()["tokens"])

    assert counted("a fox")
    before = engine_size()
    assert counted("The quick brown fox jumps over it. " * 90_000) > 1_000_000
    until(lambda: engine_size() - before < 60 << 20)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_a_packed_body_that_is_none_or_too_large_is_refused(server, path):
    def sent(body: bytes, name: str):
        return server.http.post(path, content=body, headers={"content-encoding": name})

    packs = {"gzip": gzip.compress} | ({"zstd": zstd.compress} if zstd is not None else {})
    for name, pack in packs.items():
        assert sent(b"{}", name).status_code == 400
        assert sent(pack(b"{}") * 2, name).status_code == 400
        assert sent(pack(b"{}" * 1_000)[:-9], name).status_code == 400
    ways = "gzip, deflate, zstd" if zstd is not None else "gzip, deflate"
    foreign = sent(b"{}", "br")
    assert (foreign.status_code, foreign.headers["accept-encoding"]) == (415, ways)
    assert f"'br': send it as it is, or in {ways}." in foreign.text
    assert foreign.headers["request-id" if path == "/v1/messages" else "x-request-id"].startswith("req_")
    memory = stood_for(psutil.Process(server.process.pid)).memory_info
    before = memory().rss
    packer = zlib.compressobj(9, wbits=31)
    first, again = (packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    huge = {"gzip": first + again * 63}  # a gigabyte each
    if zstd is not None:
        wide = {zstd.CompressionParameter.window_log: 24}
        told = sent(zstd.compress(os.urandom(1 << 24), options=wide), "zstd").text
        assert "not in zstd, or needs more than 8 MB of memory to be unpacked." in told, "its window is too large"
        packer = zstd.ZstdCompressor()
        huge["zstd"] = b"".join(packer.compress(bytes(1 << 24)) for _ in range(64)) + packer.flush()
    for name, body in huge.items():
        answer = sent(body, name)
        assert (answer.status_code, "unpacked" in answer.text) == (413, True)
    assert memory().rss - before < 500_000_000


def test_who_still_sends_a_body_that_is_too_large_unpacked_sees_the_answer(server):
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(bytes(MAX_BODY + 1) + os.urandom(16_000_000)) + packer.flush()
    lines = ("POST /v1/chat/completions HTTP/1.1", "Host: localhost", f"Content-Length: {len(packed)}")
    head = "\r\n".join((*lines, "Content-Encoding: gzip", f"Authorization: Bearer {server.process.api_key}", "", ""))
    status, error = sent_raw(server, head.encode() + packed)
    assert (status, "unpacked" in error["message"]) == (413, True)


def test_a_name_of_a_model_that_is_endless_is_not_said_back(server):
    answer = server.http.post("/slipstream/load", json={"model": "x" * 100_000})
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert len(message) < 1_000
    assert "ember-q8_0" in message


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("/v1/responses", {"input": "Hi", "previous_response_id": "x" * 1_000_000}, "There is no stored response"),
        ("/v1/responses", {"input": "Hi", "tools": [{"type": "x" * 1_000_000}]}, "Tools of the type"),
        ("/v1/chat/completions", {"messages": USER, "x" * 1_000_000: 1}, "xxx"),
        ("/v1/chat/completions", {"messages": USER, "samplers": "k" * 1_000_000}, "samplers names 64 or fewer"),
        ("/completion", {"prompt": "Hi", "samplers": ["top_k"] * 400_000}, "samplers names 64 or fewer"),
        ("/v1/embeddings", {f"a{n}": 1 for n in range(9_000)}, "The body has 9000 fields, and may have 1000"),
    ],
)
def test_a_value_that_is_endless_is_refused_in_a_few_words(server, path, fields, words):
    answer = server.http.post(path, json=fields)
    assert (answer.status_code, len(answer.content) < 10_000) == (400, True), len(answer.content)
    assert words in answer.json()["error"]["message"]


def test_arguments_that_are_nested_too_deep_are_read_as_none(server):
    function = {"name": "f", "arguments": "[" * 1_500 + "]" * 1_500}
    said = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    result = {"role": "tool", "tool_call_id": "a", "content": "1"}
    answer = server.http.post("/apply-template", json={"messages": [*USER, said, result]})
    assert answer.status_code == 200, answer.text
    assert "[[[[[" in answer.json()["prompt"]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ChatCompletionBody, {"messages": [{"role": "user", "content": [1] * 9_000}]}),
        (ChatCompletionBody, {"messages": [{"role": "assistant", "tool_calls": ["x"] * 9_000}]}),
        (ChatCompletionBody, {"messages": USER, "stop": [{}] * 9_000}),
        (ChatCompletionBody, {"messages": USER, **{f"a{n}": 1 for n in range(9_000)}}),
        (ChatCompletionBody, {"messages": USER, "logit_bias": {str(n): "x" for n in range(9_000)}}),
        (ResponseBody, {"input": [1] * 9_000}),
        (MessageBody, {"messages": [{"role": "user", "content": [1] * 9_000}], "max_tokens": 1}),
        (LmStudioChatBody, {"model": "m", "input": [1] * 9_000}),
    ],
)
def test_what_holds_many_wrong_values_is_left_at_the_first(kind, fields):
    with pytest.raises(ValidationError) as found:
        kind.model_validate(fields)
    assert found.value.error_count() <= 10


def sent_raw(server, *parts: bytes) -> tuple[int, dict]:
    """Return the answer to bytes of any kind."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, json.loads(answer.read())["error"]


@pytest.mark.parametrize(
    "data",
    [b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"],
    ids=["words", "tls", "length"],
)
def test_what_is_no_http_is_answered_like_all_errors(server, data):
    status, error = sent_raw(server, data)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert "HTTP/1.1" in error["message"]


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_beyond_the_limit_is_refused_and_the_server_goes_on(server, is_chunked):
    body = b" " * (MAX_BODY + 1)
    content = iter([body[i : i + 1_000_000] for i in range(0, len(body), 1_000_000)]) if is_chunked else body
    answer = post(server, content)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    below = post(server, json.dumps({"messages": [{"role": "user", "content": "fox " * 1_900_000}]}).encode())
    assert (below.status_code, below.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert server.chat(max_tokens=1)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "my-machine.tailnet.example"}, 200),  # a page does not know the key
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "app://obsidian.md"}, 200),
        ({"Origin": "vscode-webview://1abc"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
    ],
)
def test_the_door_knows_hosts_origins_and_keys(server, headers, status):
    address = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.putrequest("GET", "/v1/models", skip_host="Host" in headers)
    for name, value in ({"Authorization": f"Bearer {server.process.api_key}"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == status
    assert status == 200 or json.loads(body)["error"]["message"]


def test_health_needs_no_key_and_may_be_asked_for_its_head_alone(server):
    for method in ("GET", "HEAD"):
        answer = httpx.request(method, f"{server.url}/health")
        assert (answer.status_code, answer.content == b"") == (200, method == "HEAD")
