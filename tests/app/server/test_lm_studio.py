"""LM Studio's own routes: what models are, and what a call measured."""

from __future__ import annotations

import json

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
    assert told["model_info"] == {
        "arch": "llama",
        "quant": "Q8_0",
        "format": "gguf",
        "context_length": server.state["n_ctx"],
    }
    assert told["runtime"]["supported_formats"] == ["gguf"]
    with server.http.stream("POST", f"/api/v0/{route}", json=body | {"stream": True}) as answer:
        chunks = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
    assert [chunk["stats"]["stop_reason"] for chunk in chunks if "stats" in chunk] == ["maxPredictedTokensReached"]


def test_a_text_without_a_limit_goes_on(client):
    text = client.completions.create(model=MODEL, prompt="Once", temperature=0, max_tokens=-1)
    assert text.usage.completion_tokens > 16
    assert text.stats["stop_reason"] == "eosFound"


def test_vectors_and_errors_have_openais_form(server, client):
    assert client.embeddings.create(model=MODEL, input="one").data[0].embedding
    with pytest.raises(openai.NotFoundError, match="nobody"):
        client.models.retrieve("nobody")
    assert server.http.post("/api/v0/chat/completions", json={"messages": []}).json()["error"]["param"] == "messages"
