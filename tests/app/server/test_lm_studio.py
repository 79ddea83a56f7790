"""LM Studio's own routes: what models are, and what a call measured."""

from __future__ import annotations

import json
import socket
import struct

import openai
import pytest

from tests.app.server.conftest import MODEL

STORY = {"model": MODEL, "messages": [{"role": "user", "content": "Tell me a story about a fox."}], "temperature": 0}


@pytest.fixture(scope="module")
def client(server):
    key = server.process.api_key
    with openai.OpenAI(base_url=f"{server.url}/api/v0", api_key=key, max_retries=0) as client:
        yield client


def test_models_say_what_they_are(server):
    listed = {one["id"]: one for one in server.http.get("/api/v0/models").json()["data"]}
    ember, state = listed[MODEL], server.state
    assert (ember["type"], ember["arch"], ember["quantization"], ember["state"]) == ("llm", "llama", "Q8_0", "loaded")
    assert (ember["max_context_length"], ember["loaded_context_length"]) == (state["n_ctx_train"], state["n_ctx"])
    assert server.http.get(f"/api/v0/models/{MODEL}").json() == ember
    draft = listed["ember-draft-q8_0"]
    assert draft["state"] == "not-loaded"
    newer = {one["key"]: one for one in server.http.get("/api/v1/models").json()["models"]}
    assert newer[MODEL]["loaded_instances"][0]["config"]["context_length"] == state["n_ctx"]
    assert newer[MODEL]["capabilities"] == {"vision": False, "trained_for_tool_use": True}
    assert newer["ember-draft-q8_0"]["loaded_instances"] == []


@pytest.mark.parametrize(
    ("route", "fields"),
    [("chat/completions", STORY), ("completions", {"model": MODEL, "prompt": "Once", "temperature": 0})],
)
def test_an_answer_says_what_was_measured(server, route, fields):
    body = fields | {"max_tokens": 20, "ttl": 300, "draft_model": "ember-draft-q8_0"}
    plain = server.http.post(f"/v1/{route}", json=body).json()
    told = server.http.post(f"/api/v0/{route}", json=body).json()
    assert told["choices"] == plain["choices"]
    assert told["stats"]["tokens_per_second"] > 0
    assert told["stats"]["stop_reason"] == "maxPredictedTokensReached"
    n_ctx = server.state["n_ctx"]
    assert told["model_info"] == {"arch": "llama", "quant": "Q8_0", "format": "gguf", "context_length": n_ctx}
    assert told["runtime"]["supported_formats"] == ["gguf"]
    with server.http.stream("POST", f"/api/v0/{route}", json=body | {"stream": True}) as answer:
        chunks = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
    assert [chunk["stats"]["stop_reason"] for chunk in chunks if "stats" in chunk] == ["maxPredictedTokensReached"]


def test_vectors_errors_and_texts_without_a_limit_have_openais_form(server, client):
    text = client.completions.create(model=MODEL, prompt="Once", temperature=0, max_tokens=-1)
    assert text.usage.completion_tokens > 16
    assert text.stats["stop_reason"] == "eosFound"
    assert client.embeddings.create(model=MODEL, input="one").data[0].embedding
    with pytest.raises(openai.NotFoundError, match="nobody"):
        client.models.retrieve("nobody")
    assert server.http.post("/api/v0/chat/completions", json={"messages": []}).json()["error"]["param"] == "messages"


def chat(server, **body) -> dict:
    answer = server.http.post("/api/v1/chat", json={"model": MODEL, "temperature": 0, "max_output_tokens": 20} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(server, **body) -> list[tuple[str, dict]]:
    """The named events of a streamed chat."""
    asked = {"model": MODEL, "temperature": 0, "max_output_tokens": 20, "stream": True} | body
    with server.http.stream("POST", "/api/v1/chat", json=asked) as answer:
        lines = [line.partition(": ")[2] for line in answer.iter_lines() if line]
    return [(name, json.loads(data)) for name, data in zip(lines[::2], lines[1::2], strict=True)]


def test_a_chat_answers_as_openais_does(server):
    told = chat(server, input="Tell me a story about a fox.", context_length=8_000, ttl=60)
    plain = server.http.post("/v1/chat/completions", json=STORY | {"max_tokens": 20}).json()
    assert told["model_instance_id"] == MODEL
    assert told["output"] == [{"type": "message", "content": plain["choices"][0]["message"]["content"]}]
    assert told["stats"]["input_tokens"] == plain["usage"]["prompt_tokens"]
    assert told["stats"]["total_output_tokens"] == 20
    assert told["stats"]["tokens_per_second"] > 0
    assert told["response_id"].startswith("resp_")
    named = events(server, input=[{"type": "message", "content": "Tell me a story about a fox."}])
    reading = [f"prompt_processing.{what}" for what in ("start", "progress", "end")]
    assert list(dict.fromkeys(name for name, _ in named))[:5] == ["chat.start", *reading, "message.start"]
    assert [name for name, _ in named][-2:] == ["message.end", "chat.end"]
    assert all(name == data["type"] for name, data in named)
    assert "".join(data["content"] for name, data in named if name == "message.delta") == told["output"][0]["content"]
    assert named[-1][1]["result"]["output"] == told["output"]


def test_it_is_told_how_much_of_a_long_prompt_was_read(server):
    named = events(server, input=f"{server.url} {'one two three four ' * 120}", store=False)
    shares = [data["progress"] for name, data in named if name == "prompt_processing.progress"]
    assert len(shares) > 1
    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0
    names = [name for name, _ in named]
    assert names.index("prompt_processing.end") == names.index("message.start") - 1 == 2 + len(shares)


def test_a_chat_goes_on_from_what_was_stored(server):
    first = chat(server, input="My name is Lily.", system_prompt="Be kind.")
    second = chat(server, input="And my cat is Tom.", previous_response_id=first["response_id"])
    third = chat(
        server, input="Who?", system_prompt="Be short.", previous_response_id=second["response_id"], store=False
    )
    assert "response_id" not in third
    said = [one["output"][0]["content"] for one in (first, second)]
    users = ["My name is Lily.", "And my cat is Tom.", "Who?"]
    turns = [{"role": "system", "content": "Be short."}, {"role": "user", "content": users[0]}]
    turns += [{"role": "assistant", "content": said[0]}, {"role": "user", "content": users[1]}]
    turns += [{"role": "assistant", "content": said[1]}, {"role": "user", "content": users[2]}]
    plain = server.client.chat.completions.create(model=MODEL, messages=turns, temperature=0, max_tokens=20)
    assert third["output"][0]["content"] == plain.choices[0].message.content
    assert third["stats"]["input_tokens"] == plain.usage.prompt_tokens
    assert server.client.responses.retrieve(second["response_id"]).output_text == said[1]


def test_a_limit_by_the_name_of_chats_counts(server):
    body = {"model": MODEL, "input": "Tell me a story", "store": False, "max_completion_tokens": 3}
    assert server.http.post("/api/v1/chat", json=body).json()["stats"]["total_output_tokens"] == 3


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "Hi", "integrations": ["mcp/x"]}, "integrations"),
        ({"input": "Hi", "reasoning": "on"}, "reasoning"),
        ({"input": "Hi", "reasoning": "much"}, "reasoning"),
        ({"input": "Hi", "previous_response_id": "resp_0"}, "previous_response_id"),
        ({"input": "Hi", "max_output_tokens": -2}, "max_output_tokens"),
        ({"input": "Hi", "nonsense": 1}, "nonsense"),
        ({"input": "Hi", "n": 2}, "n"),
        ({"input": "Hi", "logprobs": True}, "logprobs"),
        ({"input": "Hi", "tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}, "messages"),
        ({"input": []}, "input"),
        ({"input": [{"type": "image"}]}, "input[0].data_url"),
        ({"input": "word " * 9_000}, "input"),
        ({}, "input"),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_what_a_chat_cannot_do_is_refused_by_name(server, body, param, streams):
    answer = server.http.post("/api/v1/chat", json={"model": MODEL, "stream": streams} | body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request", param)
    assert error["code"]


def test_a_chat_tells_of_the_load_that_it_waits_for(own_server):
    body = {"model": "ember-draft-q8_0", "input": "Hi", "max_output_tokens": 2}
    first = events(own_server, **body)
    names = [name for name, _ in first if name != "model_load.progress"]
    assert names[:4] == ["chat.start", "model_load.start", "model_load.end", "prompt_processing.start"]
    assert {data["model_instance_id"] for name, data in first if name.startswith("model_load")} == {body["model"]}
    stats = first[-1][1]["result"]["stats"]
    assert stats["model_load_time_seconds"] == dict(first)["model_load.end"]["load_time_seconds"]
    again = events(own_server, **body)
    assert not any(name.startswith("model_load") for name, _ in again)
    assert "model_load_time_seconds" not in again[-1][1]["result"]["stats"]
    back = chat(own_server, input="Hi")
    assert (back["model_instance_id"], back["stats"]["model_load_time_seconds"] > 0) == (MODEL, True)


def test_a_model_is_loaded_and_unloaded(server):
    loaded = server.http.post("/api/v1/models/load", json={"model": "ember-draft-q8_0", "context_length": 99}).json()
    assert (loaded["instance_id"], loaded["status"], loaded["type"]) == ("ember-draft-q8_0", "loaded", "llm")
    gone = server.http.post("/api/v1/models/unload", json={"instance_id": "ember-draft-q8_0"})
    assert gone.json()["instance_id"] == "ember-draft-q8_0"
    assert server.http.post("/api/v1/models/load", json={"model": MODEL}).json()["instance_id"] == MODEL
    missing = server.http.post("/api/v1/models/load", json={"model": "nobody"})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "model_not_found")


@pytest.mark.parametrize("package", ["python-httpx/0.28", "node"])
def test_lm_studios_packages_are_told_what_to_use_instead(server, package):
    assert server.http.get("/lmstudio-greeting").json() == {"lmstudio": True}
    host, port = server.http.base_url.host, server.http.base_url.port
    asked = (
        f"GET /llm HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"User-Agent: {package}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection((host, port), timeout=10) as wire, wire.makefile("rb") as told:
        wire.sendall(asked.encode())
        head = b"".join(iter(told.readline, b"\r\n"))
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head, "as in RFC 6455, 1.3"
        wire.sendall(b"\x81\x82\0\0\0\0{}")
        kind, marker, n_bytes = struct.unpack(">BBH", told.read(4))
        assert (kind, marker) == (0x81, 126)
        answer = json.loads(told.read(n_bytes))
        assert not answer["success"]
        said = answer["error"]["title"] if "python" in package else answer["error"]
        assert f"use the package openai, with the base URL http://{host}:{port}/v1." in said
        assert told.read(4) == b"\x88\x02\x03\xe8"
