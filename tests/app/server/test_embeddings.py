"""Vectors over a real socket: OpenAI's and llama-server's routes, an encoder and a model that writes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest

from tests.app.server.conftest import MODEL, RunningServer
from tests.support.waiting import until
from tools.model_factory.embedder_factory import bert

TEXTS = ["The fox ran into the wood.", "A boat on a lake", "one"]


@pytest.fixture(scope="module")
def encoder(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a model that cannot write."""
    path = bert(tmp_path_factory.mktemp("encoder") / "tiny-bert.gguf")
    with RunningServer("--model", str(path)) as running:
        yield running


def vectors(server: RunningServer, texts: object = TEXTS, **fields) -> np.ndarray:
    found = server.client.embeddings.create(model=server.state["model"], input=texts, **fields)
    assert [one.index for one in found.data] == list(range(len(found.data)))
    return np.array([one.embedding for one in found.data])


@pytest.mark.parametrize("name", ["encoder", "server"])
def test_openais_client_gets_vectors_of_length_one(name, request):
    server = request.getfixturevalue(name)
    found = vectors(server)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(vectors(server, TEXTS[1]), found[1:2], atol=1e-5)
    np.testing.assert_allclose(vectors(server, encoding_format="float"), found, atol=1e-6)
    tokens = [server.http.post("/tokenize", json={"content": t, "add_special": True}).json()["tokens"] for t in TEXTS]
    np.testing.assert_allclose(vectors(server, tokens), found, atol=1e-6)
    np.testing.assert_allclose(vectors(server, tokens[0]), found[:1], atol=1e-5)


def test_a_text_may_come_in_an_object_as_jina_and_llama_server_take_it(encoder):
    parts = [{"type": "text", "text": TEXTS[0][:7]}, {"type": "text", "text": TEXTS[0][7:]}]
    plain = vectors(encoder, TEXTS[0])
    for one in ({"text": TEXTS[0]}, {"prompt_string": TEXTS[0]}, {"content": parts}):
        answer = encoder.http.post("/v1/embeddings", json={"input": [one, TEXTS[1]]}).json()
        np.testing.assert_allclose(answer["data"][0]["embedding"], plain[0], atol=1e-5)
        assert answer["id"].startswith("embd-"), "Mistral's client checks for one, as vLLM gives it"
    seen = ({"prompt_string": "a", "multimodal_data": ["x"]}, {"text": "a", "image": "x"})
    for bad in (*seen, {}, {"text": None}, {"content": "a"}, {"content": [{"type": "image_url"}]}, {"content": []}):
        answer = encoder.http.post("/v1/embeddings", json={"input": bad})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input"), bad


def test_fewer_dimensions_are_the_first_ones_at_length_one_and_tokens_are_counted(encoder):
    found, cut = vectors(encoder), vectors(encoder, dimensions=8)
    expected = found[:, :8] / np.linalg.norm(found[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(cut, expected, rtol=1e-5)
    counted = encoder.client.embeddings.create(model="tiny-bert", input=[[5, 6, 7], [8]])
    assert (counted.usage.prompt_tokens, counted.usage.total_tokens, counted.model) == (4, 4, "tiny-bert")
    with pytest.raises(openai.BadRequestError, match="300") as caught:
        vectors(encoder, [[5] * 300])
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize("lane", [{"speed": "fast"}, {"speed": "batch"}, {"service_tier": "flex"}, {"priority": 3}])
def test_vectors_of_each_lane_are_the_same(encoder, lane):
    expected = vectors(encoder)
    np.testing.assert_allclose(vectors(encoder, extra_body=lane), expected, atol=1e-6)
    found = encoder.http.post("/embedding", json={"content": TEXTS} | lane).json()
    np.testing.assert_allclose([one["embedding"][0] for one in found], expected, atol=1e-6)


def test_llama_servers_routes_have_its_shapes(encoder):
    expected = vectors(encoder)
    for route, field in (("/embedding", "content"), ("/embeddings", "input")):
        found = encoder.http.post(route, json={field: TEXTS}).json()
        assert [one["index"] for one in found] == [0, 1, 2]
        np.testing.assert_allclose([one["embedding"][0] for one in found], expected, rtol=1e-5)
    raw = encoder.http.post("/embedding", json={"content": TEXTS[0], "embd_normalize": -1}).json()[0]["embedding"][0]
    np.testing.assert_allclose(raw / np.linalg.norm(raw), expected[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        ("/v1/embeddings", {"input": []}, "input"),
        ("/v1/embeddings", {"input": ""}, "input"),
        ("/v1/embeddings", {"input": [["a"]]}, "input"),
        ("/v1/embeddings", {"input": [None]}, "input"),
        ("/v1/embeddings", {"input": "a", "dimensions": 0}, "dimensions"),
        ("/v1/embeddings", {"input": "a", "dimensions": 65}, "dimensions"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ("/v1/embeddings", {"input": [[5] * 300]}, "input"),
        ("/v1/embeddings", {"input": [99_999]}, "input"),
        ("/v1/embeddings", {"input": "a", "speed": "deep"}, "speed"),
        ("/v1/embeddings", {"input": "a", "service_tier": "soon"}, "service_tier"),
        ("/v1/embeddings", {"input": "a", "lane": "batch"}, "lane"),
        ("/embedding", {"content": "a", "speed": "spark"}, "speed"),
        ("/embedding", {"content": [[5] * 300]}, "content"),
        ("/v1/embeddings", {}, "input"),
        ("/embedding", {}, "content"),
        ("/embedding", {"content": "a", "embd_normalize": -2}, "embd_normalize"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}, "model"),
        ("/completion", {"prompt": "Hello"}, "model"),
        ("/v1/rerank", {"query": "q", "documents": ["a"]}, "model"),
    ],
)
def test_what_cannot_be_done_is_a_400_that_names_the_field(encoder, route, body, param):
    answer = encoder.http.post(route, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param, answer.text
    assert len(vectors(encoder, "after it")) == 1


def test_an_empty_text_among_many_is_named(encoder):
    answer = encoder.http.post("/v1/embeddings", json={"input": ["a", ""]})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("input[1] ")


def test_vectors_come_while_a_chat_runs_and_change_nothing_of_it(server):
    alone = server.chat(max_tokens=60).choices[0].message.content
    stream = server.chat(max_tokens=60, stream=True)
    first = next(iter(stream))
    found = vectors(server, TEXTS * 20)
    assert len(found) == 60
    rest = [chunk.choices[0].delta.content or "" for chunk in [first, *stream] if chunk.choices]
    assert "".join(rest) == alone
    assert server.client.embeddings.create(model=MODEL, input="a").usage.prompt_tokens > 0


def ranked(server: RunningServer, route: str = "/v1/rerank", **fields):
    answer = server.http.post(route, json={"query": "Where is the fox?", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_documents_come_best_first_with_what_is_wanted_of_them(reranker):
    answer = ranked(reranker, documents=TEXTS)
    scores = [one["relevance_score"] for one in answer["results"]]
    assert sorted(one["index"] for one in answer["results"]) == [0, 1, 2]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
    assert answer["usage"]["total_tokens"] > 3 * 5
    assert ranked(reranker, "/v2/rerank", documents=TEXTS) == answer, "where Cohere's client asks"
    documents = [{"text": text, "title": ""} for text in TEXTS]
    best = ranked(reranker, "/rerank", documents=documents, top_n=1, return_documents=True)
    index = answer["results"][0]["index"]
    assert best["results"] == [
        {"index": index, "relevance_score": pytest.approx(scores[0], rel=1e-4), "document": {"text": TEXTS[index]}}
    ]


def test_documents_named_texts_are_answered_as_tei_does(reranker):
    expected = ranked(reranker, documents=TEXTS)["results"]
    found = ranked(reranker, "/rerank", texts=TEXTS, return_text=True)
    assert [(one["index"], one["text"]) for one in found] == [(one["index"], TEXTS[one["index"]]) for one in expected]
    assert [one["score"] for one in found] == [one["relevance_score"] for one in expected]
    shares = ranked(reranker, "/rerank", texts=TEXTS, raw_scores=False, truncate=True, truncation_direction="Right")
    assert [one["score"] for one in shares] == pytest.approx([1 / (1 + math.exp(-one["score"])) for one in found])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"documents": ["a"]}, "query"),
        ({"input": "a"}, "model"),
        ({"query": "", "documents": ["a"]}, "query"),
        ({"query": "q"}, "documents"),
        ({"query": "q", "documents": []}, "documents"),
        ({"query": "q", "documents": [3]}, "documents[0]"),
        ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n"),
        ({"query": "q", "documents": ["a " * 300]}, "documents"),
        ({"query": "q", "texts": ["a " * 300]}, "texts"),
        ({"query": "q", "documents": ["a"], "speed": "fast", "service_tier": "flex"}, "speed"),
    ],
)
def test_a_bad_rerank_is_a_400_that_names_the_field(reranker, body, param):
    answer = reranker.http.post("/v1/embeddings" if "input" in body else "/v1/rerank", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_scores_are_the_same_in_each_lane_and_in_a_batch(reranker):
    expected = ranked(reranker, documents=TEXTS)
    assert ranked(reranker, documents=TEXTS, service_tier="priority") == expected
    line = {"custom_id": "ranked", "method": "POST", "url": "/v1/rerank"}
    text = json.dumps(line | {"body": {"query": "Where is the fox?", "documents": TEXTS}})
    client = reranker.client
    file = client.files.create(file=("lines.jsonl", text.encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/rerank", completion_window="24h")
    output = until(lambda: client.batches.retrieve(batch.id).output_file_id)
    assert json.loads(client.files.content(output).text)["response"]["body"] == expected
