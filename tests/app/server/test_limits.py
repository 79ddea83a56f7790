"""What is turned away at the door is answered, however its body comes."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException

from app.server.application import create_application
from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.schemas import CompletionBody
from app.server.chat.chat_call import ChatCall
from app.server.http import limits
from app.server.http.keys import ApiKeys
from app.server.http.limits import MAX_VALUES, AllowedOrigins, BodyLimit, HostCheck, OriginCheck
from app.server.llama_cpp.completion import LlamaBody
from app.server.openai.embeddings import EmbeddingsBody
from app.server.templates.chat_template import MAX_CHARS
from app.settings.api_keys import KeyStore
from app.settings.server_settings import ServerSettings
from core.values.addresses import host_of, origins_of

pytestmark = pytest.mark.anyio


async def read_all(_scope, receive, _send):
    while (await receive()).get("more_body"):
        pass


def client_that_sends(parts: list):
    """Return a ``receive`` of these messages, and then of nothing for as long as the client keeps the connection."""
    left = list(parts)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


async def sent_through(limit: BodyLimit, receive, send=None, headers=()) -> None:
    await asyncio.wait_for(limit({"type": "http", "headers": list(headers)}, receive, send), 5)


@pytest.mark.parametrize("n_parts", [0, 1])
async def test_a_body_that_does_not_end_is_given_up(n_parts):
    parts = [{"type": "http.request", "body": b"x", "more_body": True}] * n_parts
    with pytest.raises(HTTPException) as caught:
        await sent_through(BodyLimit(read_all, patience=0.01), client_that_sends(parts))
    assert caught.value.status_code == 408
    assert "The body stopped for" in caught.value.detail


async def test_zstd_is_not_taken_where_python_was_built_without(monkeypatch):
    sent = []

    async def send(message):
        sent.append(message)

    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    limits._zstd.cache_clear()
    try:
        await sent_through(BodyLimit(read_all), client_that_sends([]), send, [(b"content-encoding", b"zstd")])
    finally:
        limits._zstd.cache_clear()
    assert sent[0]["status"] == 415
    assert dict(sent[0]["headers"])[b"accept-encoding"] == b"gzip, deflate"


async def test_a_body_that_comes_byte_by_byte_is_given_up():
    n_sent = 0

    async def a_byte_now_and_then():
        nonlocal n_sent
        n_sent += 1
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(HTTPException) as caught:
        await sent_through(BodyLimit(read_all, patience=0.1, slowest=1_000), a_byte_now_and_then)
    assert caught.value.status_code == 408
    assert 1 < n_sent < 50


async def test_a_client_may_take_its_time_once_its_body_is_here():
    async def wait_for_the_end(_scope, receive, _send):
        assert not (await receive())["more_body"]
        await receive()

    whole = [{"type": "http.request", "body": b"x", "more_body": False}]
    limit = BodyLimit(wait_for_the_end, patience=0.01)
    calling = asyncio.ensure_future(sent_through(limit, client_that_sends(whole)))
    done, _ = await asyncio.wait([calling], timeout=0.1)
    calling.cancel()
    assert not done


async def test_a_body_that_says_it_is_too_long_and_does_not_come_is_refused():
    sent = []

    async def send(message):
        sent.append(message)

    limit = BodyLimit(read_all, limit=10, patience=0.01)
    await sent_through(limit, client_that_sends([]), send, headers=[(b"content-length", b"11")])
    assert sent[0]["status"] == 413


async def test_a_body_that_is_refused_and_comes_byte_by_byte_is_answered_all_the_same():
    sent = []

    async def send(message):
        sent.append(message)

    async def a_byte_now_and_then():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    limit = BodyLimit(read_all, limit=10, patience=0.1)
    await sent_through(limit, a_byte_now_and_then, send, headers=[(b"content-length", b"1000000")])
    assert sent[0]["status"] == 413


async def through(check, settings: ServerSettings, method: str = "GET", **headers: str) -> httpx.Response:
    """The answer of an application that says yes, behind a check."""

    async def say_yes(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"yes"})

    keys = ApiKeys(settings, KeyStore(Path("nowhere") / "keys.json"))
    transport = httpx.ASGITransport(check(say_yes, settings, keys))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8642") as client:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.request(method, "/v1/models", headers=fields)


@pytest.mark.parametrize(
    ("settings", "name", "status"),
    [
        ({}, "evil.example", 400),
        ({}, "127.0.0.1.nip.io", 400),
        ({}, "localhost:1", 200),
        ({}, "host.docker.internal:8642", 200),
        ({}, "host.containers.internal:8642", 200),
        ({}, "127.0.0.2:8642", 200),
        ({}, "app.localhost:8642", 200),
        ({}, "127.evil.example", 400),
        ({}, "localhost.:8642", 200),
        ({"allowed_hosts": ("Box.Tailnet",)}, "box.tailnet:8642", 200),
        ({"allowed_hosts": ("box.tailnet",)}, "other.tailnet", 400),
        ({"api_keys": ("k",)}, "evil.example", 200),
        ({"hosts": ("0.0.0.0",), "api_keys": ("k",)}, "192.168.1.7", 200),
    ],
)
async def test_without_a_key_only_known_names_are_let_in(settings, name, status):
    answer = await through(HostCheck, ServerSettings(**settings), host=name)
    assert answer.status_code == status
    if status != 200:
        told = answer.json()["error"]["message"]
        assert "use http://127.0.0.1:8642, start it with --allow-host" in told


async def test_a_check_of_health_that_names_no_host_is_let_in():
    asked, told = [], []

    async def application(scope, receive, send):
        asked.append(scope)

    async def send(message):
        told.append(message)

    check = HostCheck(application, ServerSettings(), ApiKeys(ServerSettings(), KeyStore(Path("nowhere") / "keys.json")))
    scope = {"type": "http", "http_version": "1.0", "path": "/health", "headers": [], "server": ("127.0.0.1", 8642)}
    await check(scope, client_that_sends([]), send)
    assert asked == [scope]
    await check({**scope, "http_version": "1.1"}, client_that_sends([]), send)
    assert (asked, told[0]["status"]) == ([scope], 400), "HTTP/1.1 asks for a name"


@pytest.mark.parametrize("name", ["my-box.tailnet:8642", "a b", "*", ""])
async def test_the_name_that_is_told_to_be_let_in_can_be(name):
    told = (await through(HostCheck, ServerSettings(), host=name)).json()["error"]["message"]
    advised = host_of(told.partition("--allow-host ")[2].partition(",")[0])
    assert advised in ("my-box.tailnet", "name")


async def test_after_an_unforeseen_error_the_client_hears_that_the_connection_is_closed():
    application = create_application(ServerSettings(), None)  # any use of the pool is an error that nobody foresaw
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8642") as client:
        answer = await client.get("/v1/models")
    assert (answer.status_code, answer.headers["connection"]) == (500, "close")
    assert answer.json()["error"]["code"] == "internal_error"


def origin_check(app, settings: ServerSettings, keys: ApiKeys) -> OriginCheck:
    return OriginCheck(app, AllowedOrigins(origins_of(settings.cors)), keys)


@pytest.mark.parametrize(
    ("settings", "origin", "is_allowed"),
    [
        ({}, "https://pages.example", False),
        ({}, "http://localhost:3000", False),
        ({}, "app://obsidian.md", False),
        ({"cors": ("https://pages.example/",)}, "https://pages.example", True),
        ({"cors": ("https://pages.example",)}, "https://other.example", False),
        ({"cors": ("*",)}, "https://other.example", True),
        ({"cors": ("localhost",)}, "http://localhost:3000", True),
        ({"cors": ("localhost",)}, "http://127.0.0.1:5173", True),
        ({"cors": ("localhost",)}, "https://localhost.example", False),
        ({"api_keys": ("k",)}, "http://localhost:3000", True),
        ({"api_keys": ("k",)}, "tauri://localhost", True),
        ({"api_keys": ("k",)}, "http://tauri.localhost", True),
        ({"api_keys": ("k",)}, "https://pages.example", False),
    ],
)
async def test_pages_of_other_origins_are_let_in_where_the_user_or_a_key_says_so(settings, origin, is_allowed):
    answer = await through(origin_check, ServerSettings(**settings), origin=origin)
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "authorization,content-type"}
    preflight = await through(origin_check, ServerSettings(**settings), "OPTIONS", origin=origin, **asked)
    if not is_allowed:
        assert (answer.status_code, preflight.status_code) == (403, 403)
        told = answer.json()["error"]["message"]
        assert "--cors" in told
        assert ("--api-key" in told) is not origin.startswith("https://"), "where a key would help"
        return
    assert answer.headers["access-control-allow-origin"] == origin
    assert (answer.text, preflight.status_code) == ("yes", 204)
    assert preflight.headers["access-control-allow-headers"] == asked["access_control_request_headers"]
    assert "POST" in preflight.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": ""}] * 20_001}, "messages"),
        ("/v1/messages", {"messages": [{"role": "user", "content": ""}] * 20_001, "max_tokens": 1}, "messages"),
        ("/api/chat", {"messages": [{"role": "user", "content": ""}] * 20_001}, "messages"),
        ("/v1/chat/completions", {"tools": [{"type": "function", "function": {"name": "f"}}] * 1_025}, "tools"),
        ("/v1/responses", {"input": [{"type": "reasoning"}] * 20_001}, "input"),
        ("/v1/responses", {"input": "Hi", "tools": [{"type": "function", "name": "f"}] * 1_025}, "tools"),
    ],
)
def test_more_messages_or_tools_than_anybody_has_are_refused_by_name(server, path, body, field):
    found = server.http.post(path, json={"model": "ember", "messages": [{"role": "user", "content": "Hi"}]} | body)
    assert found.status_code == 400
    assert field in found.text
    assert "or fewer entries" in found.text


ONE = [{"role": "user", "content": "Hi"}]
TEXT = {"type": "text", "text": "a"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": [TEXT] * 5_000}


@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        ("/v1/chat/completions", "messages", {"role": "user", "content": [TEXT] * 5_001}),
        ("/v1/chat/completions", "messages", {"role": "assistant", "content": "a", "tool_calls": [CALL] * 5_001}),
        ("/v1/messages", "messages", {"role": "user", "content": [TEXT, RESULT]}),
        ("/v1/responses", "input", {"role": "user", "content": [{"type": "input_text", "text": "a"}] * 5_001}),
        ("/api/chat", "messages", {"role": "assistant", "content": "a", "tool_calls": [CALL] * 5_001}),
    ],
)
def test_more_parts_and_calls_than_anybody_has_are_refused_by_name(server, path, field, message):
    found = server.http.post(path, json={"model": "ember", "max_tokens": 1, field: [message] * 4})
    assert found.status_code == 400
    assert f"{field}: there may be 20,000 parts and calls in all, not 2" in found.text


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/completions", {"prompt": "a", "lora": [{"id": 0, "scale": 1.0}] * 1_025}, "lora"),
        ("/v1/completions", {"prompt": "a", "stop": ["a"] * 65}, "stop"),
        ("/v1/completions", {"prompt": "a", "logit_bias": dict.fromkeys(map(str, range(153_001)), 1)}, "logit_bias"),
        ("/v1/responses", {"input": "a", "stop": ["a"] * 65}, "stop"),
        ("/v1/messages", {"messages": ONE, "max_tokens": 1, "stop_sequences": ["a"] * 65}, "stop_sequences"),
        ("/v1/messages", {"messages": ONE, "max_tokens": 1, "system": [TEXT] * 20_001}, "system"),
        ("/api/chat", {"model": "ember", "messages": ONE, "options": {"stop": ["a"] * 65}}, "options.stop"),
        ("/infill", {"input_extra": [{"text": "a"}] * 1_025}, "input_extra"),
    ],
)
def test_a_list_that_is_longer_than_any_need_is_refused_by_name(server, path, body, field):
    error = server.http.post(path, json=body).json()["error"]
    if path.startswith("/api/"):
        assert error == f"{field} must have 64 or fewer entries, not 65."
        return
    assert error["param"] == field
    assert "or fewer entries, not" in error["message"]


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
def test_a_bias_can_be_given_to_each_token_of_a_large_vocabulary(server, path):
    body = json.dumps({"prompt": "a", "logit_bias": dict.fromkeys(map(str, range(151_936)), -100)})
    answer = server.http.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert "logit_bias names token" in answer.json()["error"]["message"], "it was read, and the model has fewer"


def test_more_values_than_anybody_sends_are_refused_and_their_marks_in_a_text_are_none(server):
    many = {"messages": [{"role": "user", "content": "Hi"}], "metadata": {"list": [[]] * (MAX_VALUES // 6)}}
    for path in ("/v1/chat/completions", "/v1/messages", "/api/chat", "/slipstream/load"):
        answer = server.http.post(path, json=many)
        assert (answer.status_code, "2,000,000 values" in answer.text) == (413, True), path
    # Read by bytes, the letter in UTF-16 would begin a text that hides what follows.
    hidden = json.dumps({"prompt": "\N{IDENTICAL TO}"} | many, ensure_ascii=False).encode("utf-16")
    assert server.http.post("/v1/completions", content=hidden).status_code == 413
    answer = server.http.post("/v1/completions", json={"prompt": '[{,"\\"\n' * (MAX_VALUES // 6), "max_tokens": 1})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded"), answer.text


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        (b"[" + b"1," * 1_500_000 + b"1]", True),
        (b"[" + b"123456," * 1_000_000 + b"1]", True),
        (b"[" + b"[]," * 300_000 + b"1]", True),
        (b"[" + b"0.12345," * 250_000 + b"1]", True),
        (b"[" + b"0.12345," * 300_000 + b"1]", False),
        (b"[" + b"1E-300," * 150_000 + b"1]", False),
        (b"[" + b"true,false," * 300_000 + b"1]", True),
        (b"[" + b"9" * 17_000_000 + b"]", False),
        (b"[" + b'"a",' * 900_000 + b"1]", True),
        (b"[" + b'"a",' * 1_000_000 + b"1]", False),
        (json.dumps(dict.fromkeys(map(str, range(150_000)), 1)).encode(), True),
        (json.dumps(dict.fromkeys(map(str, range(200_000)), 1)).encode(), False),
        (b"[" + b"1," * MAX_VALUES + b"1]", False),
    ],
)
async def test_values_count_by_how_long_they_take_to_be_read(body, is_taken):
    receive = client_that_sends([{"type": "http.request", "body": body}])
    with nullcontext() if is_taken else pytest.raises(HTTPException, match="a key as twelve"):
        await sent_through(BodyLimit(read_all), receive)


@pytest.mark.parametrize("mark", [b'"A text of some length.",', b'"a",'])
async def test_others_go_on_while_a_body_that_was_packed_in_one_part_is_counted(mark):
    n_turns = 0

    async def others():
        nonlocal n_turns
        while True:
            n_turns += 1
            await asyncio.sleep(0)

    receive = client_that_sends([{"type": "http.request", "body": gzip.compress(mark * ((8 << 20) // len(mark)))}])
    working = asyncio.ensure_future(others())
    headers = [(b"content-encoding", b"gzip")]
    with pytest.raises(HTTPException, match="values") if mark == b'"a",' else nullcontext():
        await sent_through(BodyLimit(read_all), receive, headers=headers)
    working.cancel()
    assert n_turns > 12


def test_messages_that_no_template_may_write_are_too_long_and_no_fault_of_the_template(server):
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": "a " * 9_000_000}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "b"}
    messages = [*ONE, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    answer = server.http.post("/v1/messages", json={"max_tokens": 1, "messages": messages})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "context_length_exceeded"), answer.text
    assert error["message"] == "prompt is too long: 2097152 tokens > 1024 maximum"
    # Emoji make Python's texts four times as large: a template's process would run out of memory before.
    plain = {"model": "m", "messages": [{"role": "user", "content": "\N{HATCHING CHICK}" + "a" * MAX_CHARS}]}
    answer = server.http.post("/v1/chat/completions", json=plain)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded"), answer.text


def test_turns_above_what_can_be_written_leave_a_chat_at_once_and_not_one_by_one():
    said = [{"role": role, "content": "a" * 1_580} for role in ("user", "assistant")]
    messages = [{"role": "system", "content": "Be short."}, *said * 9_999]
    call = ChatCall(ChatCompletionBody.model_validate({"messages": messages}), None, None)
    assert all(call.drop_oldest(0.0) for _ in range(2))
    left = call.body.messages
    assert MAX_CHARS - 4_000 < sum(one.n_chars for one in left) <= MAX_CHARS
    assert [one.role for one in left[:2]] == ["system", "user"]


def test_more_pieces_than_can_be_shown_are_refused(server):
    sent = {"content": [300] * 200_001, "with_pieces": True}
    error = server.http.post("/tokenize", json=sent).json()["error"]
    assert error["param"] == "with_pieces"
    assert "200,000 tokens at most, not 200,001" in error["message"]
    assert server.http.post("/tokenize", json=sent | {"with_pieces": False}).json()["count"] == 200_001


def test_a_million_token_ids_are_checked_almost_as_fast_as_they_are_read():
    def seconds(work):
        taken = []
        for _ in range(3):
            begin = time.process_time()
            work()
            taken.append(time.process_time() - begin)
        return min(taken)

    text = json.dumps([1] * 1_000_000)
    ids = json.loads(text)
    bodies = LlamaBody(prompt=ids), CompletionBody(prompt=ids)
    assert [body.prompts for body in bodies] == [[tuple(ids)]] * 2
    assert EmbeddingsBody(input=ids).input == (tuple(ids),)
    took = seconds(lambda: (LlamaBody(prompt=ids), CompletionBody(prompt=ids)))
    assert took < 3.5 * seconds(lambda: json.loads(text)), "each in a step of Python, it is five times as long"
