"""Models of other servers: a second server of ours, and one that answers what it was told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.server.http.sse import PING
from app.server.remotes.exchange import Remotes
from app.server.remotes.pass_through import PassThrough
from app.server.remotes.store import RemoteStore
from models.formatting.program import IN_WINDOW
from tests.app.server.conftest import MODEL, RunningServer
from tests.support.scripted_remote import HEAD, ScriptedRemote, chunk, json_reply
from tests.support.waiting import until

MESSAGES = [{"role": "user", "content": "Tell me a story about a fox."}]
CHAT = {"messages": MESSAGES, "max_tokens": 12, "temperature": 0, "seed": 1}
BROKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {"type": "object", "properties": {"word": {"enum": ["fox", "owl"]}}, "required": ["word"]},
    },
}


@pytest.fixture(scope="module")
def front(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A second server of ours, for which the first is the remote ``rack``."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("front")
        patch.setenv("PYTHON_KEYRING_BACKEND", "tests.support.file_keyring.FileKeyring")
        patch.setenv("KEYRING_FILE", str(folder / "keys.json"))
        patch.setenv("SLIPSTREAM_HOME", str(folder / "home"))
        running = RunningServer("--parallel", "2", "--no-draft", "--no-calibration")
    added = add(running, "rack", f"{server.url}/v1", key=server.process.api_key)
    assert f"rack/{MODEL}" in added["models"]
    yield running
    running.close()


@pytest.fixture
def scripted(front: RunningServer) -> Iterator[ScriptedRemote]:
    """A remote called ``odd``."""
    remote = ScriptedRemote()
    remote.reply = json_reply("200 OK", b'{"data": []}')
    add(front, "odd", remote.url, key="other-key")
    remote.requests.clear()
    yield remote
    front.http.delete("/slipstream/remotes/odd")
    remote.close()


def add(front: RunningServer, name: str, url: str, **fields) -> dict:
    answer = front.http.post("/slipstream/remotes", json={"name": name, "url": url, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def events(front: RunningServer, path: str, body: dict) -> list[str]:
    """The events of a stream, without comments."""
    with front.http.stream("POST", path, json=body | {"stream": True}) as stream:
        text = "".join(stream.iter_text())
    return [event for event in text.split("\n\n") if event and not event.startswith(":")]


def test_models_are_listed_and_answer_as_at_home(front, server):
    listed = {one["id"]: one["owned_by"] for one in front.http.get("/v1/models").json()["data"]}
    assert listed[f"rack/{MODEL}"] == "rack"
    assert listed[MODEL] == "slipstream"
    assert front.http.get("/slipstream/state").json()["remotes"] == ["rack"]
    assert front.http.get(f"/v1/models/rack/{MODEL}").json()["owned_by"] == "rack"
    here = server.http.post("/v1/chat/completions", json=CHAT | {"model": MODEL})
    there = front.http.post("/v1/chat/completions", json=CHAT | {"model": f"rack/{MODEL}"})
    assert there.headers["x-slipstream-remote"] == "rack"
    assert there.json()["choices"] == here.json()["choices"]
    tagged = front.http.post("/v1/chat/completions", json=CHAT | {"model": f"rack/{MODEL}:latest"})
    assert (tagged.json()["model"], tagged.json()["choices"]) == (MODEL, here.json()["choices"])
    assert "x-slipstream-remote" not in front.http.post("/v1/chat/completions", json=CHAT).headers


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v0/completions", {"prompt": "Once", "max_tokens": 8, "temperature": 0, "seed": 1}),
        ("/v1/responses/input_tokens", {"input": "Tell me."}),
        ("/v1/completions", {"prompt": "Once", "max_tokens": 8, "temperature": 0, "seed": 1}),
        ("/v1/responses", {"input": "Tell me.", "max_output_tokens": 8, "temperature": 0, "store": False}),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 8, "temperature": 0}),
        ("/v1/messages/count_tokens", {"messages": MESSAGES}),
        ("/v1/embeddings", {"input": ["a fox", "an owl"]}),
        ("/tokenize", {"content": "a fox"}),
        ("/completion", {"prompt": "Once", "n_predict": 4, "temperature": 0, "seed": 1}),
    ],
)
def test_every_protocol_passes(front, server, path, body):
    named = {"model": f"rack/{MODEL}"}
    answer = front.http.post(path, json=body | named)
    assert answer.status_code == 200, answer.text
    home = server.http.post(path, json=body | {"model": MODEL})
    kept = ("choices", "content", "data", "tokens", "input_tokens")
    assert {key: answer.json().get(key) for key in kept} == {key: home.json().get(key) for key in kept}


def test_streams_and_tools_pass(front):
    create, asked = front.client.chat.completions.create, {"model": f"rack/{MODEL}", **CHAT}
    chunks = list(create(stream=True, stream_options={"include_usage": True}, **asked))
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    whole = create(**asked)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 12
    called = create(model=f"rack/{MODEL}", messages=MESSAGES, tools=[TOOL], tool_choice="required", max_tokens=60)
    assert called.choices[0].message.tool_calls[0].function.name == "look_up"
    named = events(front, "/v1/messages", {"model": f"rack/{MODEL}", "messages": MESSAGES, "max_tokens": 4})
    assert named[0].startswith("event: message_start")
    assert named[-1].startswith("event: message_stop")


@pytest.mark.parametrize("path", ["/props", "/slots", "/lora-adapters"])
def test_what_llama_server_tells_of_a_model_is_asked_for_where_it_is(front, server, path):
    there = front.http.get(path, params={"model": f"rack/{MODEL}", "autoload": "1"})
    assert (there.status_code, there.headers["x-slipstream-remote"]) == (200, "rack")
    assert there.json() == server.http.get(path, params={"model": MODEL}).json()
    assert "x-slipstream-remote" not in front.http.get(path, params={"model": MODEL}).headers
    assert front.http.head(path, params={"model": f"rack/{MODEL}"}).status_code == 200


def test_what_a_remote_does_not_tell_is_refused_by_its_name(front, scripted):
    named = {"model": "odd/a b"}
    scripted.reply = json_reply("404 Not Found", b'{"detail": "Not Found"}')
    unknown = front.http.get("/props", params=named)
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (404, "model")
    assert "odd" in unknown.json()["error"]["message"]
    assert scripted.requests[-1].startswith(b"GET /props?model=a+b HTTP/1.1")
    scripted.reply = b""
    gone = front.http.get("/slots", params=named)
    assert (gone.status_code, gone.json()["error"]["code"]) == (502, 502)
    add(front, "odd", scripted.url, fallback=MODEL)
    instead = front.http.get("/props", params=named)
    assert (instead.json()["model_alias"], instead.headers["x-slipstream-fallback"]) == (MODEL, MODEL)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/props?model=rack%2Fember-q8_0", {}),
        ("GET", "/metrics?model=rack/ember-q8_0", None),
        ("POST", "/api/v1/models/unload", {"instance_id": f"rack/{MODEL}"}),
        ("POST", "/models/unload", {"model": f"rack/{MODEL}"}),
    ],
)
def test_what_is_done_to_models_of_this_machine_is_not_done_to_one_of_a_remotes_name(front, method, path, body):
    refused = front.http.request(method, path, json=body)
    assert (refused.status_code, "rack is a remote" in refused.json()["error"]["message"]) == (400, True)
    assert front.state["phase"] == "ready"


def test_errors_are_the_remotes_own_and_figures_are_kept_by_remote(front, server):
    wrong = CHAT | {"temperature": "hot"}
    here = server.http.post("/v1/chat/completions", json=wrong | {"model": MODEL})
    there = front.http.post("/v1/chat/completions", json=wrong | {"model": f"rack/{MODEL}"})
    assert (there.status_code, there.json()) == (here.status_code, here.json())
    ranked = front.http.post("/reranking", json={"model": f"rack/{MODEL}", "query": "fox", "documents": ["a"]})
    assert (ranked.status_code, ranked.headers["x-slipstream-remote"]) == (400, "rack")
    front.http.post("/v1/chat/completions", json=CHAT | {"model": f"rack/{MODEL}"})
    until(lambda: remote_figure(front, 'requests_ended_total{reason="stop",remote="rack"}') >= 1)
    assert remote_figure(front, 'tokens_predicted_total{remote="rack"}') >= 12


def remote_figure(server, name: str) -> float:
    """A figure of /metrics about remotes; 0 where it is not there yet."""
    lines = server.http.get("/metrics").text.splitlines()
    figures = dict(line.rsplit(" ", 1) for line in lines if line.startswith("slipstream:remote_"))
    return float(figures.get(f"slipstream:remote_{name}", 0))


def n_failed(server, remote: str) -> float:
    return remote_figure(server, f'requests_ended_total{{reason="failed",remote="{remote}"}}')


@pytest.mark.parametrize("how", ["client leaves", "DELETE"])
def test_an_early_end_reaches_the_remote(front, server, how):
    body = {"model": f"rack/{MODEL}", "prompt": "Tell me.", "max_tokens": 900, "ignore_eos": True, "speed": "fast"}
    with front.http.stream("POST", "/v1/completions", json=body | {"stream": True}) as stream:
        pieces = stream.iter_text()
        next(pieces)
        (running,) = until(lambda: [one for one in requests(front) if one["n_generated"] > 2])
        assert (running["model"], running["lane"], running["phase"]) == (f"rack/{MODEL}", "fast", "decode")
        assert running["tokens_per_second"] > 0
        until(lambda: server.state["active"] == 1)
        if how == "DELETE":
            assert front.http.delete(f"/slipstream/requests/{running['id']}").json()["cancelled"]
            rest = "".join(pieces)
            assert '"code": "cancelled"' in rest
            assert "[DONE]" not in rest
    until(lambda: server.state["active"] == 0)
    assert requests(front) == []


def requests(front: RunningServer) -> list[dict]:
    return front.http.get("/slipstream/requests").json()["data"]


def ollama(front: RunningServer, path: str, **body) -> dict:
    answer = front.http.post(path, json=body | {"stream": False})
    assert answer.status_code == 200, answer.text
    return answer.json()


SETTLED = {"options": {"temperature": 0, "seed": 1, "num_predict": 12}}
TIMES = {"created_at", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "context", "model"}


def without_times(answer: dict) -> dict:
    return {name: value for name, value in answer.items() if name not in TIMES}


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        (f"rack/{MODEL}:latest", "/api/chat", {"messages": MESSAGES, **SETTLED}),
        (f"rack/{MODEL}", "/api/chat", {"messages": MESSAGES, "logprobs": True, "top_logprobs": 2, **SETTLED}),
        (f"rack/{MODEL}", "/api/generate", {"prompt": "Tell me a story.", "system": "Be short.", **SETTLED}),
        (f"rack/{MODEL}:latest", "/api/generate", {"prompt": "Once upon", "raw": True, **SETTLED}),
    ],
)
def test_ollamas_clients_reach_a_remotes_model(front, server, name, path, body):
    here = ollama(server, path, model=MODEL, **body)
    there = ollama(front, path, model=name, **body)
    assert there["model"] == f"rack/{MODEL}:latest"
    assert without_times(there) == without_times(here)
    with front.http.stream("POST", path, json=body | {"model": name}) as stream:
        lines = [json.loads(line) for line in stream.iter_lines()]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    said = [line["message"]["content"] if path == "/api/chat" else line["response"] for line in lines]
    assert len(said) > 1
    assert "".join(said) == (here["message"]["content"] if path == "/api/chat" else here["response"])
    assert lines[-1]["eval_count"] == 12
    assert lines[-1]["prompt_eval_count"] == here["prompt_eval_count"]


def test_ollamas_lists_have_a_remotes_models(front, server):
    name = f"rack/{MODEL}:latest"
    listed = {one["name"]: one for one in front.http.get("/api/tags").json()["models"]}
    assert {name, f"{MODEL}:latest"} <= listed.keys()
    assert (listed[name]["remote_model"], listed[name]["remote_host"]) == (MODEL, f"{server.url}/v1")
    shown = front.http.post("/api/show", json={"model": name}).json()
    assert {"completion", "tools"} <= set(shown["capabilities"])
    assert shown["model_info"]["remote.context_length"] == server.state["n_ctx"]
    missing = front.http.post("/api/show", json={"model": "rack/nobody"})
    assert (missing.status_code, name.removesuffix(":latest") in missing.json()["error"]) == (404, True)
    ollama(front, "/api/chat", model=name, messages=MESSAGES, **SETTLED)
    running = {one["name"] for one in front.http.get("/api/ps").json()["models"]}
    assert running == {name, f"{MODEL}:latest"}
    assert ollama(front, "/api/chat", model=name)["done_reason"] == "load"
    assert ollama(front, "/api/generate", model=name, keep_alive=0)["done_reason"] == "unload"
    assert ollama(front, "/api/pull", model=name)["status"] == "success"
    kept = front.http.request("DELETE", "/api/delete", json={"model": name})
    assert (kept.status_code, "remotes remove" in kept.json()["error"]) == (400, True)


def test_ollamas_tools_and_schemas_reach_a_remotes_model(front, server):
    bound = {"properties": {"n": {"const": None}}, "required": ["n"], "additionalProperties": False}
    asked = {"messages": MESSAGES, "format": {"type": "object", **bound}, **SETTLED}
    assert json.loads(ollama(front, "/api/chat", model=f"rack/{MODEL}", **asked)["message"]["content"]) == {"n": None}
    said = {"role": "assistant", "tool_calls": [{"function": {"name": "look_up", "arguments": {"word": "fox"}}}]}
    answered = [*MESSAGES, said, {"role": "tool", "tool_name": "look_up", "content": "a red animal"}]
    body = {"messages": answered, "tools": [TOOL], **SETTLED}
    here = ollama(server, "/api/chat", model=MODEL, **body)
    there = ollama(front, "/api/chat", model=f"rack/{MODEL}", **body)
    assert without_times(there) == without_times(here)


def test_ollamas_vectors_come_from_a_remote(front, server):
    body = {"input": ["a fox", "an owl"]}
    here, there = (
        ollama(one, "/api/embed", **body, model=name) for one, name in ((server, MODEL), (front, f"rack/{MODEL}"))
    )
    assert there["prompt_eval_count"] == here["prompt_eval_count"]
    assert there["embeddings"] == here["embeddings"]
    older = ollama(front, "/api/embeddings", model=f"rack/{MODEL}", prompt="a fox")
    assert older["embedding"] == here["embeddings"][0]


def test_lm_studios_clients_reach_a_remotes_model(front, server):
    body = {"input": "Tell me a story.", "temperature": 0, "max_output_tokens": 12}
    here = server.http.post("/api/v1/chat", json=body | {"model": MODEL}).json()
    there = front.http.post("/api/v1/chat", json=body | {"model": f"rack/{MODEL}"}).json()
    assert (there["model_instance_id"], there["output"]) == (f"rack/{MODEL}", here["output"])
    assert there["stats"]["input_tokens"] == here["stats"]["input_tokens"]
    gone_on = front.http.post(
        "/api/v1/chat", json=body | {"model": f"rack/{MODEL}", "previous_response_id": there["response_id"]}
    )
    assert gone_on.json()["stats"]["input_tokens"] > there["stats"]["input_tokens"]
    newer = {one["key"]: one for one in front.http.get("/api/v1/models").json()["models"]}
    assert newer[f"rack/{MODEL}"]["loaded_instances"][0]["config"]["context_length"] == server.state["n_ctx"]
    older = front.http.get(f"/api/v0/models/rack/{MODEL}").json()
    assert (older["state"], older["publisher"]) == ("loaded", "rack")


def test_a_remote_that_fails_in_lm_studios_stream_is_one_error_and_one_end(front, scripted):
    scripted.reply = HEAD + chunk(BROKEN)
    got = events(front, "/api/v1/chat", {"model": "odd/m", "input": "Hi"})
    names = [event.partition("\n")[0].removeprefix("event: ") for event in got]
    assert names[-4:] == ["message.delta", "message.end", "error", "chat.end"]
    ended = json.loads(got[-1].partition("data: ")[2])["result"]
    assert ended["output"] == [{"type": "message", "content": "a"}]
    assert "odd" in json.loads(got[-2].partition("data: ")[2])["error"]["message"]


@pytest.mark.parametrize(
    ("details", "n_reasoning"), [({}, 15), ({"completion_tokens_details": {"reasoning_tokens": 17}}, 17)]
)
def test_thoughts_of_a_remote_are_counted_in_lm_studios_answer(front, scripted, details, n_reasoning):
    message = {"role": "assistant", "reasoning_content": "One and one. " * 3, "content": "Two, I think."}
    usage = {"prompt_tokens": 5, "completion_tokens": 20, **details}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    scripted.reply = json_reply("200 OK", json.dumps(whole).encode())
    answer = front.http.post("/api/v1/chat", json={"model": "odd/m", "input": "1 + 1?"}).json()
    assert [one["type"] for one in answer["output"]] == ["reasoning", "message"]
    assert (answer["stats"]["total_output_tokens"], answer["stats"]["reasoning_output_tokens"]) == (20, n_reasoning)
    deltas = [{"reasoning_content": "One "}, {"reasoning_content": "and one."}, {"content": "Two."}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    scripted.reply = HEAD + as_events([*chunks, {"choices": [], "usage": usage}]) + chunk(b"")
    *_, last = events(front, "/api/v1/chat", {"model": "odd/m", "input": "1 + 1?"})
    stats = json.loads(last.partition("data: ")[2])["result"]["stats"]
    assert stats["reasoning_output_tokens"] == (17 if details else 2)


@pytest.mark.parametrize("path", ["/v1/messages", "/api/chat"])
def test_arguments_of_a_remotes_call_that_are_nested_too_deep_end_nothing(front, scripted, path):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "[" * 1_500 + "]" * 1_500}}
    message = {"role": "assistant", "content": "Well.", "tool_calls": [call]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    scripted.reply = json_reply("200 OK", json.dumps(whole).encode())
    body = {"model": "odd/m", "max_tokens": 20, "messages": [{"role": "user", "content": "Hi"}], "stream": False}
    answer = front.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert "Well." in answer.text


def test_half_of_a_surrogate_pair_in_arguments_of_a_remotes_call_ends_nothing(front, scripted):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": r'{"x": "b\ud83d"}'}}
    whole = {"choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    scripted.reply = json_reply("200 OK", json.dumps(whole).encode())
    body = {"model": "odd/m", "max_tokens": 20, "messages": [{"role": "user", "content": "Hi"}], "stream": False}
    answer = front.http.post("/api/chat", json=body)
    assert answer.status_code == 200, answer.text
    assert '{"x":"b\N{REPLACEMENT CHARACTER}"}' in answer.text


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": " So."}]}, {"type": "text", "text": "Well"}]
CHUNKS = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None, "reasoning": "Hm."}}]},
    {"choices": [{"delta": {"content": PARTS}}]},  # as Mistral's models answer that think
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"x": '}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]}}]},
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}},
]


def as_events(chunks: list[dict]) -> bytes:
    return b"".join(chunk(b"data: " + json.dumps(one).encode() + b"\n\n") for one in chunks) + chunk(
        b"data: [DONE]\n\n"
    )


def test_thoughts_and_calls_of_a_remote_are_told_as_ollamas(front, scripted):
    scripted.reply = HEAD + as_events(CHUNKS) + chunk(b"")
    with front.http.stream("POST", "/api/chat", json={"model": "odd/m", "messages": MESSAGES, "think": True}) as stream:
        lines = [json.loads(line) for line in stream.iter_lines()]
    messages = [line["message"] for line in lines]
    assert "".join(one.get("thinking", "") for one in messages) == "Hm. So."
    assert "".join(one.get("content", "") for one in messages) == "Well"
    calls = [call["function"] for one in messages for call in one.get("tool_calls", ())]
    assert calls == [{"index": 0, "name": "f", "arguments": {"x": 1}}, {"index": 1, "name": "g", "arguments": {}}]
    assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == (5, 9)
    sent = json.loads(scripted.requests[0].partition(b"\r\n\r\n")[2])
    assert sent["chat_template_kwargs"] == {"enable_thinking": True, "thinking": True}
    assert sent["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (json_reply("401 Unauthorized", b'{"error": {"message": "bad key"}}'), 401, "odd refuses its key"),
        (json_reply("400 Bad", b'{"error": {"message": "no such thing"}}'), 400, "no such thing"),
        (json_reply("500 Oops", b"<h1>Broken</h1>", kind="text/html"), 500, "odd answers 500"),
        (b"", 502, "odd"),
    ],
)
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/embed"])
def test_a_remotes_failure_has_ollamas_form(front, scripted, path, reply, status, words):
    scripted.reply = reply
    answer = front.http.post(path, json={"model": "odd/m", "messages": MESSAGES, "prompt": "Hi", "input": "Hi"})
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert words in answer.json()["error"]


ONE_VECTOR = b'{"data": [{"embedding": [1.0]}], "usage": %s}'


@pytest.mark.parametrize("body", [b"{}", b"[]", b"7", ONE_VECTOR % b"{}", ONE_VECTOR % b"[7]"])
def test_a_remote_that_gives_no_vectors_is_named(front, scripted, body):
    scripted.reply = json_reply("200 OK", body)
    before = n_failed(front, "odd")
    answer = front.http.post("/api/embed", json={"model": "odd/m", "input": ["Hi", "Ho"]})
    assert n_failed(front, "odd") == before + 1
    problem = "The remote odd does not answer with a vector of each text."
    assert (answer.status_code, answer.json()) == (502, {"error": problem})


def test_a_vector_of_what_json_cannot_say_is_json_all_the_same(front, scripted):
    scripted.reply = json_reply("200 OK", b'{"data": [{"embedding": [1e999, 2]}]}')
    answer = front.http.post("/api/embed", json={"model": "odd/m", "input": "Hi"})
    assert json.loads(answer.content, parse_constant=pytest.fail)["embeddings"] == [[None, 2.0]]


@pytest.mark.parametrize(
    "reply",
    [
        json_reply("200 OK", b'{"choices": [{"message": "text"}]}'),
        json_reply("200 OK", b'{"choices": [{"message": {"tool_calls": [{"function": "f"}]}}]}'),
        json_reply("200 OK", b"{}"),
        HEAD + chunk(b"data: hello\n\ndata: [DONE]\n\n") + chunk(b""),
    ],
    ids=["text", "call", "nothing", "no JSON"],
)
@pytest.mark.parametrize("path", ["/api/chat", "/api/v1/chat"])
def test_a_remote_that_answers_in_a_form_of_its_own_is_named(front, scripted, path, reply):
    scripted.reply = reply
    body = {"model": "odd/m", "messages": MESSAGES, "stream": False}
    before = n_failed(front, "odd")
    answer = front.http.post(path, json=body if path == "/api/chat" else {"model": "odd/m", "input": "Hi"})
    assert (answer.status_code, "odd answers in another form" in answer.text) == (502, True)
    assert n_failed(front, "odd") == before + 1


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + chunk(BROKEN),
        HEAD + chunk(BROKEN + b'data: {"half'),
        HEAD + chunk(BROKEN + b'data: {"error": {"message": "odd broke"}}\n\n'),
        HEAD + chunk(BROKEN) + chunk(b""),
    ],
    ids=["dies", "half", "says so", "ends too early"],
)
def test_a_remote_that_fails_in_ollamas_stream_is_one_error_at_its_end(front, scripted, reply):
    scripted.reply = reply
    with front.http.stream("POST", "/api/chat", json={"model": "odd/m", "messages": MESSAGES}) as stream:
        lines = [json.loads(line) for line in stream.iter_lines()]
    assert ["error" in line for line in lines] == [False, True]
    assert "odd" in lines[-1]["error"]
    assert requests(front) == []


@pytest.mark.parametrize("how", ["client leaves", "DELETE"])
def test_an_early_end_in_ollamas_protocol_reaches_the_remote(front, scripted, how):
    scripted.reply, scripted.stays = HEAD + chunk(BROKEN), True
    with front.http.stream("POST", "/api/chat", json={"model": "odd/m", "messages": MESSAGES}) as stream:
        lines = stream.iter_lines()
        assert json.loads(next(lines))["message"]["content"] == "a"
        (running,) = requests(front)
        if how == "DELETE":
            assert front.http.delete(f"/slipstream/requests/{running['id']}").json()["cancelled"]
            assert ["cancelled" in line for line in lines] == [True]
    assert scripted.left.wait(60)
    until(lambda: requests(front) == [])


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/embed"])
@pytest.mark.parametrize("is_raw", [False, True])
def test_a_model_of_this_machine_steps_in_for_ollamas_clients(front, scripted, path, is_raw):
    add(front, "odd", scripted.url, fallback=MODEL)
    scripted.reply = b""
    body = {"model": "odd/m", "messages": MESSAGES, "prompt": "Hi", "input": "Hi", **SETTLED, "raw": is_raw}
    assert ollama(front, path, **body)["model"] == f"{MODEL}:latest"


@pytest.mark.parametrize(
    ("says", "n_tries"),
    [
        ("This model's maximum context length is 9 tokens.", 40),  # nobody knows how much is too much
        ("This model's maximum context length is 20 tokens. However, your messages resulted in 40 tokens.", 25),
        ("The input (40 tokens) is longer than the model's context length (20 tokens).", 25),
        ("The first 40 tokens when the context overflows. But the context length is 20 tokens.", 25),
        ("maximum context length is 20 tokens. You asked for 5 output tokens and have at least 36 input tokens.", 30),
        ("A context length of 99999999999999999999 tokens.", 40),
        ("A context length of 2,000 tokens. However, your messages resulted in 4,000 tokens.", 25),
        ("A context window of 20k tokens is exceeded: there are 10000 tokens.", 40),
        (
            "maximum context length is 20 tokens. You requested 40000 tokens (10 in the messages, 39990 to complete).",
            40,
        ),
    ],
)
def test_a_conversation_that_is_too_long_for_a_remote_loses_its_oldest_turns(front, scripted, says, n_tries):
    scripted.reply = json_reply("400 Bad", json.dumps({"error": {"message": says, "code": 400}}).encode())
    turns = [{"role": role, "content": f"{n:03}"} for n in range(200) for role in ("user", "assistant")]
    messages = [{"role": "system", "content": "A"}, *turns, {"role": "user", "content": "Z"}]
    answer = front.http.post("/api/chat", json={"model": "odd/m", "messages": messages})
    assert answer.status_code == 400
    sent = [json.loads(one.partition(b"\r\n\r\n")[2])["messages"] for one in scripted.requests]
    assert len(sent[0]) == len(messages)
    # No more goes at once than is too much, and the last turn stays.
    assert all(len(after) > 0.7 * len(before) for before, after in pairwise(sent[:4]))
    assert [one["role"] for one in sent[-1]] == ["system", "user"]
    assert len(sent) <= n_tries


def test_the_sizes_of_a_prompt_that_is_too_long_are_told_where_a_remote_says_them_in_fields(front, scripted):
    says = (
        "This model's maximum context length is 32768 tokens. However, you requested 33000 tokens (1000 in the "
        "messages, 32000 in the completion). Please reduce the length of the messages or completion."
    )
    body = {"model": "odd/m", "messages": MESSAGES, "max_tokens": 32_000}
    told = []
    for error in (
        {"message": says},
        {"message": "The context length is 512 tokens, and there are 1234 tokens."},
        {"message": "Too long.", "type": "exceed_context_size_error", "n_prompt_tokens": 1_234, "n_ctx": 512},
        {"message": "Too long.", "type": "exceed_context_size_error", "n_prompt_tokens": "1234", "n_ctx": None},
    ):
        scripted.reply = json_reply("400 Bad", json.dumps({"error": error}).encode())
        answer = front.http.post("/v1/messages", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded"), answer.text
        told.append(answer.json()["error"]["message"])
    assert says in told[0], "the prompt is short, the answer is long"
    assert "are 1234 tokens" in told[1]
    assert told[2] == "prompt is too long: 1234 tokens > 512 maximum"
    assert told[3] == "The remote odd answers 400: Too long."


def test_a_long_conversation_keeps_what_has_room_at_a_remote(front, server):
    turns = [{"role": role, "content": f"The {n}th fox."} for n in range(300) for role in ("user", "assistant")]
    told = ollama(front, "/api/chat", model=f"rack/{MODEL}", messages=[*turns, *MESSAGES], **SETTLED)
    assert 0.9 * server.state["n_ctx"] < told["prompt_eval_count"] < server.state["n_ctx"]


def test_a_request_goes_on_with_the_remotes_key_and_without_the_clients(front, scripted):
    scripted.reply = json_reply("200 OK", b'{"choices": []}', "set-cookie: a=b", "x-request-id: 7", "server: odd")
    body = CHAT | {"model": "odd/some/model", "n": 1e3, "big": 2**70, "text": "ä\ud800"}
    own = {"cookie": "secret", "x-mine": "1", "content-type": "application/json"}
    answer = front.http.post("/v1/chat/completions?beta=true", content=json.dumps(body), headers=own)
    head, _, sent = scripted.requests[0].partition(b"\r\n\r\n")
    assert json.loads(sent) == body | {"model": "some/model"}
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith("post /v1/chat/completions?beta=true")
    assert "authorization: bearer other-key" in lines
    assert "x-mine: 1" in lines
    assert not [line for line in lines if "secret" in line or front.process.api_key in line]
    assert answer.headers["x-request-id"] == "7"
    assert not {"set-cookie", "server"} & set(answer.headers)


def test_a_remote_that_was_given_no_key_is_said_to_want_one(front, scripted):
    add(front, "open", scripted.url)
    scripted.reply = json_reply("401 No", b'{"error": {"message": "no key"}}')
    try:
        answer = front.http.post("/v1/chat/completions", json=CHAT | {"model": "open/m"})
    finally:
        front.http.delete("/slipstream/remotes/open")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (401, "remote_key_refused")
    assert "The remote open wants a key (401: no key). Add it again with the right one" in error["message"]


OVERLOADED = b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}'


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (json_reply("401 No", b'{"error": {"message": "bad key"}}'), 401, "odd refuses its key (401: bad key)"),
        (json_reply("403 No", b'{"error": {"message": "flagged"}}'), 403, "flagged"),
        (json_reply("429 Too Many", b'{"error": {"message": "slow down", "type": "x"}}'), 429, "slow down"),
        (json_reply("500 Oops", b"<h1>Broken</h1>", kind="text/html"), 500, "odd answers 500: <h1>Broken</h1>"),
        (json_reply("302 Found", b"", "location: http://169.254.169.254/"), 502, "another address"),
        (json_reply("200 OK", b"<html>", kind="text/html"), 502, "address right"),
        (b"", 502, "odd"),
        (HEAD.replace(b"200", b"503"), 502, "odd"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{", 502, "odd"),
        (json_reply("200 OK", b""), 502, "no JSON"),
        (json_reply("200 OK", b'{"choices": ['), 502, "no JSON"),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_a_remote_that_fails_is_named(front, scripted, reply, status, words, streams):
    scripted.reply = reply
    answer = front.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/m", "stream": streams})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_in_the_window_no_sentence_names_a_command(monkeypatch, tmp_path):
    monkeypatch.setenv(IN_WINDOW, "1")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    remote = ScriptedRemote()
    with RunningServer("--no-draft", "--no-calibration") as window:

        def ask(reply: bytes) -> httpx.Response:
            remote.reply = reply
            return window.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/m"})

        remote.reply = json_reply("200 OK", b'{"data": []}')
        none = window.http.delete("/slipstream/remotes/odd")
        add(window, "odd", remote.url)
        wrong = {"name": "odd", "url": remote.url, "fallback": "odd/m"}
        answers = (
            none,
            ask(json_reply("302 Found", b"", "location: http://169.254.169.254/")),
            ask(json_reply("401 No", b'{"error": {"message": "bad key"}}')),
            window.http.post("/slipstream/remotes", json=wrong),
            window.http.request("DELETE", "/api/delete", json={"model": "odd/m"}),
        )
    remote.close()
    words = ("page Server", "page Server", "page Server", "the library", "page Server")
    for answer, word in zip(answers, words, strict=True):
        assert answer.status_code >= 400
        assert word in answer.text
        assert "slipstream " not in answer.text


def test_errors_have_the_form_of_the_path(front, scripted):
    body = {"model": "odd/m", "messages": MESSAGES, "max_tokens": 4}
    scripted.reply = json_reply("529 Overloaded", OVERLOADED, "retry-after: 9")
    kept = front.http.post("/v1/messages", json=body)
    assert (kept.status_code, kept.content, kept.headers["retry-after"]) == (529, OVERLOADED, "9")
    scripted.reply = json_reply("500 Oops", b'{"detail": "oops"}')
    made = front.http.post("/v1/messages", json=body).json()
    assert (made["type"], made["error"]["message"]) == ("error", "The remote odd answers 500: oops")


CLOSED_BY_ITS_END = HEAD.replace(b"transfer-encoding: chunked\r\n", b"")


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + chunk(BROKEN + b'data: {"half'),
        HEAD + chunk(BROKEN + BROKEN[:-1]),
        HEAD + chunk(BROKEN),
        HEAD + chunk(BROKEN) + chunk(b""),
        CLOSED_BY_ITS_END + BROKEN,
    ],
    ids=["half an event", "no empty line", "no end", "an end too early", "no length"],
)
def test_a_remote_that_dies_in_a_stream_is_one_error_and_one_end(front, scripted, reply):
    scripted.reply = reply
    got = events(front, "/v1/chat/completions", CHAT | {"model": "odd/m"})
    parsed = [json.loads(event.removeprefix("data: ")) for event in got]
    assert ["error" in one for one in parsed] == [False] * (len(parsed) - 1) + [True]
    assert "odd" in parsed[-1]["error"]["message"]


def test_a_client_that_leaves_before_the_first_byte_is_noticed(front, scripted):
    scripted.reply, scripted.stays = b"", True
    with pytest.raises(httpx.ReadTimeout):
        front.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/m"}, timeout=0.3)
    assert scripted.left.wait(60)


@pytest.mark.parametrize(
    ("reply", "streams"),
    [
        (b"", False),
        (json_reply("503 No", b"{}"), False),
        (json_reply("429 No", b"{}"), True),
        (HEAD, True),
        (HEAD + chunk(b""), True),
    ],
)
def test_a_model_of_this_machine_steps_in(front, scripted, reply, streams):
    add(front, "odd", scripted.url, fallback=MODEL)
    scripted.reply = reply
    body = CHAT | {"model": "odd/m", "stream": streams}
    answer = front.http.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.headers["x-slipstream-fallback"]) == (200, MODEL)
    assert MODEL in answer.text


def test_servers_that_have_each_other_as_remotes_list_none_of_their_own_models(front, scripted):
    itself = add(front, "itself", f"{front.url}/v1", key=front.process.api_key)
    assert (itself["models"], "is this server itself" in itself["problem"]) == ([], True)
    own = front.http.get("/v1/models").headers["x-slipstream-server"]
    theirs = [{"id": "x"}, {"id": "back/y", "through": [own]}, {"id": "third/z", "through": ["third"]}]
    body = json.dumps({"data": theirs}).encode()
    scripted.reply = json_reply("200 OK", body, "x-slipstream-server: other")
    assert front.http.post("/slipstream/remotes/odd/test", json={}).json()["models"] == ["odd/x", "odd/third/z"]
    listed = front.http.get("/v1/models").json()["data"]
    assert {one["id"]: one["through"] for one in listed if one["id"].startswith(("odd/", "itself/"))} == {
        "odd/x": ["other"],
        "odd/third/z": ["other", "third"],
    }
    round_and_round = CHAT | {"model": "itself/" * 50 + MODEL}
    assert front.http.post("/v1/chat/completions", json=round_and_round).status_code == 404
    assert front.http.delete("/slipstream/remotes/itself").status_code == 200


def test_two_remotes_may_have_the_same_models_and_a_remote_a_models_name(front, scripted):
    scripted.reply = json_reply("200 OK", json.dumps({"data": [{"id": MODEL}]}).encode())
    add(front, MODEL, scripted.url)
    front.http.post("/slipstream/remotes/odd/test", json={})
    names = {one["id"] for one in front.http.get("/v1/models").json()["data"]}
    assert {MODEL, f"rack/{MODEL}", f"odd/{MODEL}", f"{MODEL}/{MODEL}"} <= names
    scripted.requests.clear()
    scripted.reply = json_reply("200 OK", b'{"choices": []}')
    assert front.http.post("/v1/chat/completions", json=CHAT | {"model": MODEL}).json()["choices"]
    assert front.http.post("/v1/chat/completions", json=CHAT | {"model": f"openai/{MODEL}"}).json()["choices"]
    assert scripted.requests == []
    assert front.http.post("/v1/chat/completions", json=CHAT | {"model": f"{MODEL}/x"}).json() == {"choices": []}
    front.http.delete(f"/slipstream/remotes/{MODEL}")


def test_what_is_not_passed_on_is_refused(front, scripted):
    loaded = front.http.post("/slipstream/load", json={"model": f"rack/{MODEL}"})
    assert (loaded.status_code, loaded.json()["error"]["param"]) == (400, "model")
    add(front, "odd", scripted.url, models=["a", "b/c"])
    scripted.reply = json_reply("200 OK", b'{"choices": []}')
    assert front.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/a:latest"}).status_code == 200
    assert json.loads(scripted.requests[-1].partition(b"\r\n\r\n")[2])["model"] == "a"
    unknown = front.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/z"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert "odd/b/c" in unknown.json()["error"]["message"]


def test_remotes_are_shown_without_their_keys(front, scripted):
    scripted.close()
    front.http.post("/slipstream/remotes/odd/test", json={})
    answer = front.http.get("/slipstream/remotes")
    listed = {one["name"]: one for one in answer.json()["data"]}
    assert (listed["rack"]["problem"], listed["rack"]["has_key"]) == (None, True)
    assert "does not answer" in listed["odd"]["problem"]
    assert "other-key" not in answer.text
    missing = front.http.delete("/slipstream/remotes/nobody")
    assert (missing.status_code, missing.json()["error"]["param"]) == (400, "name")


def test_a_batch_may_name_a_remotes_model(front, scripted):
    scripted.reply = json_reply("200 OK", b'{"choices": [], "usage": {"completion_tokens": 3}}')
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": CHAT | {"model": "odd/m"}}
    uploaded = front.client.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
    batch = front.client.batches.create(
        input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    until(lambda: front.client.batches.retrieve(batch.id).status == "completed")
    sent = json.loads(scripted.requests[0].partition(b"\r\n\r\n")[2])
    assert sent == CHAT | {"model": "m"}


@pytest.mark.parametrize("status", [401, 403])
def test_a_remote_that_refuses_a_line_of_a_batch_ends_no_others(front, scripted, status):
    scripted.reply = json_reply(f"{status} No", b'{"error": {"message": "no"}}')
    lines = [
        {"custom_id": model, "method": "POST", "url": "/v1/chat/completions", "body": CHAT | {"model": model}}
        for model in ("odd/m", MODEL)
    ]
    uploaded = front.client.files.create(file=("in.jsonl", "\n".join(map(json.dumps, lines)).encode()), purpose="batch")
    made = front.client.batches.create(
        input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    batch = until(
        lambda: one if (one := front.client.batches.retrieve(made.id)).completed_at or one.failed_at else None
    )
    assert batch.status == "completed"
    answered, refused = (
        json.loads(front.client.files.content(file_id).text) for file_id in (batch.output_file_id, batch.error_file_id)
    )
    assert (answered["custom_id"], refused["custom_id"]) == (MODEL, "odd/m")
    assert refused["response"]["status_code"] == status


def test_the_live_events_show_remote_requests(front, scripted):
    scripted.reply, scripted.stays = HEAD + chunk(BROKEN), True
    with front.http.stream("GET", "/slipstream/events") as stream:
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        next(lines)
        asking = threading.Thread(
            target=lambda: front.http.post("/v1/chat/completions", json=CHAT | {"model": "odd/m", "stream": True})
        )
        asking.start()
        seen = next(one for state in lines for one in state["requests"] if one["phase"] == "decode")
        assert (seen["remote"], seen["n_generated"]) == ("odd", 1)
        front.http.delete(f"/slipstream/requests/{seen['id']}")
        asking.join()


async def local_app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers the model ``good`` with a stream, and refuses others."""
    is_good = json.loads((await receive())["body"])["model"] == "good"
    status, body = (200, b"data: local\n\n") if is_good else (404, b'{"error": {"message": "no such model"}}')
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})


FAILING = json_reply("500 Oops", b'{"error": {"message": "oops"}}')


async def exchange(remotes: Remotes, see: Callable[[dict], None], *, ping_seconds: float = 99.0) -> list[dict]:
    """Send a streamed chat for ``odd/m`` through the layer; return what was sent back, each shown to ``see``."""
    incoming = [{"type": "http.request", "body": json.dumps(CHAT | {"model": "odd/m", "stream": True}).encode()}]
    sent: list[dict] = []

    async def receive() -> dict:
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message: dict) -> None:
        sent.append(message)
        see(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await PassThrough(local_app, remotes, ping_seconds)(scope, receive, send)
    await remotes.upstream.close()
    return sent


@pytest.fixture
def unserved(tmp_path: Path) -> Iterator[tuple[Remotes, ScriptedRemote]]:
    """The remote ``odd``, without a server of ours before it."""
    remote = ScriptedRemote()
    remotes = Remotes(RemoteStore(tmp_path / "remotes.json"))
    remotes.store.add("odd", remote.url)
    yield remotes, remote
    remote.close()


def test_a_server_that_leaves_ends_remote_requests_with_a_sentence(unserved):
    remotes, remote = unserved
    remote.reply, remote.stays = HEAD + chunk(BROKEN), True
    sent = asyncio.run(exchange(remotes, lambda one: remotes.figures.end_all() if one.get("body") == BROKEN else None))
    assert (sent[1]["body"], len(sent)) == (BROKEN, 4)
    assert b"shutting down" in sent[2]["body"]
    assert sent[3]["more_body"] is False


@pytest.mark.parametrize(
    ("reply", "fallback", "last"),
    [
        (HEAD + chunk(BROKEN.replace(b"}}", b'}, "finish_reason": "stop"}')) + chunk(b""), None, '"a"'),
        (json_reply("200 OK", b'{\n"a": 1\n}'), None, 'data: { "a": 1 }'),
        (FAILING, None, "oops"),
        (FAILING, "good", "data: local"),
        (FAILING, "bad", "no such model"),
    ],
)
def test_a_stream_that_waits_gets_comments_and_then_the_answer(unserved, reply, fallback, last):
    remotes, remote = unserved
    remotes.store.add("odd", remote.url, fallback=fallback)
    remote.reply = reply
    remote.go.clear()
    ping = exchange(remotes, lambda one: remote.go.set() if one.get("body") == PING else None, ping_seconds=0.02)
    sent = asyncio.run(ping)
    assert [one["type"] for one in sent].count("http.response.start") == 1
    assert (sent[0]["status"], sent[1]["body"]) == (200, PING)
    (event,) = (one["body"].decode() for one in sent[1:] if one["body"] not in (PING, b""))
    assert last in event
    assert [one.get("more_body", False) for one in sent[1:]] == [True] * (len(sent) - 2) + [False]
