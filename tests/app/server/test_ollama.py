"""Ollama's routes with its own client, and what other programs look at: models, pulls, bodies without a type."""

from __future__ import annotations

import json
import re

import httpx
import ollama
import pytest

from models.catalog.catalog import STARTER, STARTER_FOLDER
from tests.app.server.conftest import MODEL, WEATHER, RunningServer
from tools.stand_ins.hub_server import HubServer

NAME = f"{MODEL}:latest"
GREEDY = {"temperature": 0, "num_predict": 24, "num_ctx": 4096}
STORY = [{"role": "user", "content": "Tell me a story about a fox."}]
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}


def client_of(server: RunningServer) -> ollama.Client:
    return ollama.Client(host=server.url, headers=server.headers)


@pytest.fixture(scope="module")
def client(server):
    with client_of(server) as client:
        yield client


def test_a_chat_says_what_openais_says_and_what_it_cost(server, client):
    expected = server.chat("Tell me a story about a fox.").choices[0].message.content
    whole = client.chat(NAME, STORY, options=GREEDY)
    assert (whole.message.content, whole.message.role) == (expected, "assistant")
    assert (whole.model, whole.done, whole.done_reason, whole.eval_count) == (NAME, True, "length", 24)
    assert whole.prompt_eval_count > 5
    assert 0 < whole.eval_duration <= whole.total_duration
    assert whole.load_duration < whole.total_duration - whole.eval_duration, "the model was there"
    *lines, last = client.chat(MODEL, STORY, options=GREEDY, stream=True)
    assert "".join(line.message.content for line in lines) == expected
    assert [line.done for line in lines] == [False] * len(lines)
    assert (last.done, last.done_reason, last.eval_count) == (True, "length", 24)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_the_result_of_a_tool(client, stream):
    fields = {"tools": [WEATHER], "options": GREEDY | {"num_predict": 80}}
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    answer = client.chat(NAME, messages, stream=stream, **fields)
    calls = [call for line in (answer if stream else [answer]) for call in line.message.tool_calls or ()]
    assert [(call.function.name, call.function.arguments) for call in calls] == [("get_weather", {"city": "Paris"})]
    said = {"role": "assistant", "tool_calls": [call.model_dump() for call in calls]}
    messages += [said, {"role": "tool", "content": "sunny", "tool_name": "get_weather"}]
    assert client.chat(NAME, messages, **fields).message.content


@pytest.mark.parametrize(("form", "check"), [("json", dict), (SCHEMA, lambda told: told["n"] in (1, 2))])
def test_a_reply_has_the_format_that_is_asked_for(client, form, check):
    told = client.chat(NAME, STORY, format=form, options={"num_predict": 200, "temperature": 0})
    if told.done_reason == "stop":
        assert check(json.loads(told.message.content)) is not None
    else:
        assert told.message.content.startswith("{")


def test_a_prompt_is_answered_goes_on_by_its_context_and_a_middle_is_filled_in(client, server):
    first = client.generate(NAME, STORY[0]["content"], options=GREEDY)
    assert first.response == client.chat(NAME, STORY, options=GREEDY).message.content
    second = client.generate(NAME, "And then?", context=first.context, options=GREEDY)
    messages = [*STORY, {"role": "assistant", "content": first.response}, {"role": "user", "content": "And then?"}]
    assert second.response == client.chat(NAME, messages, options=GREEDY).message.content
    text = server.client.completions.create(model=MODEL, prompt="Once upon a", max_tokens=24, temperature=0)
    raw = client.generate(NAME, "Once upon a", raw=True, options=GREEDY, stream=True)
    assert "".join(line.response for line in raw) == text.choices[0].text
    middle = client.generate(NAME, "Once upon", suffix=" the end.", options=GREEDY)
    posted = {"input_prefix": "Once upon", "input_suffix": " the end.", "n_predict": 24, "temperature": 0}
    assert middle.response == server.http.post("/infill", json=posted).json()["content"]


def test_logprobs_come_with_the_tokens(client):
    told = client.chat(NAME, STORY, logprobs=True, top_logprobs=2, options=GREEDY | {"num_predict": 3})
    assert "".join(one.token for one in told.logprobs) == told.message.content
    assert [len(one.top_logprobs) for one in told.logprobs] == [2, 2, 2]
    written = client.generate(NAME, "Once", raw=True, logprobs=True, options=GREEDY | {"num_predict": 3})
    assert len(written.logprobs) == 3


def test_texts_become_vectors_and_long_ones_are_cut(server, client):
    expected = server.client.embeddings.create(model=MODEL, input=["one", "two"])
    told = client.embed(NAME, ["one", "two"])
    assert [list(one) for one in told.embeddings] == [one.embedding for one in expected.data]
    assert told.prompt_eval_count == expected.usage.prompt_tokens
    assert list(client.embeddings(NAME, "one").embedding) == expected.data[0].embedding
    assert len(client.embed(NAME, "one", dimensions=3).embeddings[0]) == 3
    long = "fox " * 3_000
    assert client.embed(NAME, long).prompt_eval_count <= server.state["n_ctx"]
    with pytest.raises(ollama.ResponseError, match="tokens"):
        client.embed(NAME, long, truncate=False)


def test_a_chat_that_is_too_long_loses_its_oldest_turns_unless_that_is_forbidden(server, client):
    turns = [{"role": role, "content": "fox " * 400} for role in ("user", "assistant") * 4]
    told = client.chat(NAME, [*turns, *STORY], options=GREEDY)
    assert told.prompt_eval_count < server.state["n_ctx"]
    body = {"model": NAME, "messages": [*turns, *STORY], "truncate": False, "stream": False}
    assert server.http.post("/api/chat", json=body).status_code == 400


def test_a_long_chat_that_is_cut_is_read_few_times_and_keeps_what_has_room(server, client):
    def n_refused() -> float:
        found = re.search(r'requests_ended_total\{reason="failed"\} (\S+)', server.http.get("/metrics").text)
        return float(found[1]) if found else 0.0

    turns = [{"role": role, "content": f"The {n}th fox."} for n in range(300) for role in ("user", "assistant")]
    before = n_refused()
    told = client.chat(NAME, [*turns, *STORY], options=GREEDY)
    n_ctx = server.state["n_ctx"]
    assert 0.9 * n_ctx < told.prompt_eval_count <= n_ctx - GREEDY["num_predict"]
    assert n_refused() - before < 20
    # An answer of any length has room too.
    told = client.chat(NAME, [*turns, *STORY], options={"temperature": 0})
    assert 0.8 * n_ctx < told.prompt_eval_count <= n_ctx * 7 / 8


def test_models_are_listed_shown_and_said_to_run(server, client):
    listed = {model.model: model for model in client.list().models}
    assert NAME in listed
    assert listed[NAME].details.family == "llama"
    assert len(listed[NAME].digest) == 64
    shown = client.show(NAME)
    architecture = shown.modelinfo["general.architecture"]
    assert shown.modelinfo[f"{architecture}.context_length"] == server.state["n_ctx_train"]
    assert shown.modelinfo["tokenizer.ggml.tokens"] is None
    assert set(shown.capabilities) == {"completion", "tools", "insert"}
    assert f"num_ctx{'':24}{server.state['n_ctx']}" in shown.parameters
    assert "messages" in shown.template
    verbose = server.http.post("/api/show", json={"name": MODEL, "verbose": True}).json()
    assert len(verbose["model_info"]["tokenizer.ggml.tokens"]) > 1_000
    copilot = {"User-Agent": "GitHubCopilotChat/0.40"}
    named = server.http.post("/api/show", json={"model": NAME}, headers=copilot).json()["model_info"]
    assert named["general.basename"] == NAME, "it shows a model by this"
    (running,) = client.ps().models
    assert (running.model, running.context_length) == (NAME, server.state["n_ctx"])
    assert running.expires_at.timestamp() > 0
    major, minor, patch = map(int, server.http.get("/api/version").json()["version"].split("."))
    assert (major, minor, patch) > (0, 14, 2), "Copilot wants 0.6.4, codex 0.13.4, others 0.14"
    assert server.http.get("/").text == "Ollama is running"
    assert server.http.head("/").status_code == server.http.head("/api/version").status_code == 200
    assert "Slipstream" in server.http.get("/", headers={"Accept": "text/html"}).text


# As these programs send it, with all that their users can set.
OPEN_WEBUI = {
    "stream": False,
    "num_predict": 9,
    "metadata": {"chat_id": "1"},
    "options": {
        "num_ctx": 2048,
        "num_keep": 24,
        "use_mmap": True,
        "temperature": 0.0,
        "reasoning_effort": "low",
        "logit_bias": {"5": -100},
        "max_tokens": 5,
        "think": False,
        "keep_alive": "5m",
        "format": SCHEMA,
        "user": "me",
    },
}
HOME_ASSISTANT = {
    "stream": False,
    "keep_alive": -1,
    "think": False,
    "format": None,
    "options": {"num_ctx": 8192},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "HassTurnOn",
                "parameters": {"type": "object", "properties": {"area": {"nullable": True}}},
            },
        }
    ],
}
ZED = {
    "stream": False,
    "keep_alive": -1,
    "options": {"num_ctx": 4096, "num_predict": None, "stop": [], "temperature": 1.0, "top_p": None},
    "tools": [],
    "think": None,
}


@pytest.mark.parametrize("body", [OPEN_WEBUI, HOME_ASSISTANT, ZED])
def test_bodies_of_other_programs_are_taken(server, body):
    options = {"num_predict": 8} | body["options"]
    told = server.http.post("/api/chat", json={"model": NAME, "messages": STORY} | body | {"options": options})
    assert told.status_code == 200, told.text
    if body is OPEN_WEBUI:
        assert told.json()["eval_count"] == 5, "max_tokens goes last"
        assert told.json()["message"]["content"].startswith("{"), "the format is followed"


@pytest.mark.parametrize(
    ("route", "body", "status", "words"),
    [
        ("chat", {"messages": STORY}, 400, "model"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"reasoning_effort": "?"}}, 400, "reasoning_effort"),
        ("chat", {"model": NAME, "messages": [{"role": "wizard", "content": "?"}]}, 400, "role"),
        ("chat", {"model": NAME, "messages": STORY, "format": "xml"}, 400, "format"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"num_predict": -3}}, 400, "num_predict"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"tfs_z": 0.5}}, 400, "tfs_z"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"temprature": 1}}, 400, "temprature"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"temperature": 900}}, 400, "temperature"),
        ("chat", {"model": NAME, "messages": STORY, "think": True}, 400, "does not support thinking"),
        ("chat", {"model": NAME, "messages": [STORY[0] | {"images": ["AAAA"]}]}, 400, "projector"),
        ("chat", {"model": NAME, "messages": STORY, "options": {"temperature": "hot"}}, 400, "temperature"),
        ("chat", {"model": NAME, "messages": STORY, "format": {"type": "string", "pattern": "("}}, 400, "format: "),
        ("generate", {"model": NAME, "prompt": "?", "format": {"$ref": "#/none"}}, 400, "format: "),
        ("generate", {"model": NAME, "prompt": "?", "context": [10**9]}, 400, "context: "),
        ("generate", {"model": NAME, "prompt": "?", "context": [10**30]}, 400, "context: "),
        ("generate", {"model": NAME, "prompt": "?", "images": ["AAAA"]}, 400, "images"),
        ("generate", {"model": NAME, "prompt": "?", "suffix": "!", "logprobs": True, "top_logprobs": 999}, 400, "top_"),
        ("generate", {"model": NAME, "prompt": "?", "template": "{{ .Prompt }}"}, 400, "template"),
        ("generate", {"model": NAME, "prompt": "?", "raw": True, "system": "Be brief."}, 400, "system"),
        ("embed", {"model": NAME, "input": [""]}, 400, "input"),
        ("show", {"model": "none"}, 404, "none"),
        ("show", {}, 400, "model"),
        ("copy", {"source": NAME, "destination": "b"}, 501, "/api/copy"),
        ("create", {"model": "b", "from": NAME}, 501, "GGUF"),
        ("nothing", {}, 404, "/api/nothing"),
    ],
)
def test_errors_have_the_form_of_the_protocol(server, route, body, status, words):
    answer = server.http.post(f"/api/{route}", json=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {"model": NAME, "messages": STORY, "think": True, "stream": False}),
        ("/api/v1/chat", {"model": NAME, "input": "Tell me a story.", "reasoning": "on"}),
    ],
)
def test_a_model_that_cannot_think_is_refused_before_it_writes(server, path, body):
    def n_generated() -> str:
        return re.search(r"^llamacpp:tokens_predicted_total (.*)$", server.http.get("/metrics").text, re.MULTILINE)[1]

    before = n_generated()
    assert server.http.post(path, json=body).status_code == 400
    assert n_generated() == before


def test_a_body_is_json_whatever_it_is_called_but_for_pages_and_our_own_routes(server):
    body = json.dumps({"model": NAME, "messages": STORY, "options": GREEDY, "stream": False})
    for kind in (None, "application/x-www-form-urlencoded", "text/plain"):
        request = server.http.build_request("POST", "/api/chat", content=body)
        if kind is not None:
            request.headers["content-type"] = kind
        assert server.http.send(request).json()["done"]
    plain = {"content": body, "headers": {"Content-Type": "text/plain"}}
    page = server.http.post("/api/chat", **(plain | {"headers": {**plain["headers"], "Sec-Fetch-Site": "cross-site"}}))
    assert page.status_code == 415
    foreign = server.http.post("/api/chat", **(plain | {"headers": {"Origin": "https://pages.example"}}))
    assert (foreign.status_code, list(foreign.json())) == (403, ["error"])
    openai = {"content": json.dumps({"messages": STORY, "max_tokens": 1}), "headers": plain["headers"]}
    assert server.http.post("/v1/chat/completions", **openai).json()["usage"]["completion_tokens"] == 1
    assert server.http.post("/slipstream/unload", **plain).status_code == 415
    without_key = httpx.post(f"{server.url}/api/chat", content=body)
    assert (without_key.status_code, list(without_key.json())) == (401, ["error"])


def test_the_model_is_loaded_and_unloaded_by_calls_without_a_prompt(own_server):
    with client_of(own_server) as client:
        assert client.generate(NAME).done_reason == "load"
        assert client.generate(NAME, keep_alive=0).done_reason == "unload"
        own_server.wait_until(lambda state: state["phase"] == "empty")
        assert client.ps().models == []
        assert client.chat(NAME, STORY, options=GREEDY, keep_alive="0s").message.content
        own_server.wait_until(lambda state: state["phase"] == "empty")
        assert client.chat(NAME, [], keep_alive="5m").done_reason == "load"


def test_a_pulled_model_answers_by_its_name_on_the_hub(hub_server: HubServer, tmp_path, monkeypatch):
    for name in ("SLIPSTREAM_HOME", "XDG_DATA_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    ember = (STARTER_FOLDER / "ember-draft-q8_0.gguf").read_bytes()
    hub_server.add("acme/fox-GGUF", {"fox-Q8_0.gguf": ember})
    hub_server.add("other/fox-GGUF", {"fox-Q8_0.gguf": STARTER.read_bytes()})
    name = "hf.co/acme/fox-GGUF:Q8_0"
    with RunningServer("--no-draft", "--no-calibration") as server, client_of(server) as client:
        *steps, last = client.pull(name, stream=True)
        assert last.status == "success"
        (told,) = {(step.digest, step.total) for step in steps if step.total}
        assert told[1] == len(ember)
        assert client.pull(name).status == "success", "it is there"
        other = "hf.co/other/fox-GGUF:Q8_0"  # another maker's of the same name
        assert client.pull(other).status == "success"
        assert client.show(other).details.quantization_level == "Q8_0"
        assert client.chat(other, STORY, options=GREEDY).model == "fox-GGUF/fox-Q8_0:latest"
        assert client.delete("fox-GGUF/fox-Q8_0:latest").status == "success"
        with pytest.raises(ollama.ResponseError, match="fox-GGUF"):
            client.delete(other)  # acme's is not it
        assert {model.model for model in client.list().models} >= {"fox-Q8_0:latest"}
        assert client.chat(name, STORY, options=GREEDY).model == "fox-Q8_0:latest"
        with pytest.raises(ollama.ResponseError, match="no repository"):
            client.pull("hf.co/acme/none:Q8_0")
        with pytest.raises(ollama.ResponseError, match="OWNER/REPOSITORY"):
            list(client.pull("no-such-model", stream=True))
        client.generate(MODEL)  # a file that is in use cannot be moved everywhere
        assert "fox-Q8_0:latest" in {model.model for model in client.ps().models}
        assert client.delete(name).status == "success"
        server.wait_until(lambda state: "fox-Q8_0:latest" not in {model.model for model in client.ps().models})
        with pytest.raises(ollama.ResponseError, match="fox"):
            client.delete(name)
        with pytest.raises(ollama.ResponseError, match="part of Slipstream"):
            client.delete(NAME)
