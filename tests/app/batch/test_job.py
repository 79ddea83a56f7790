from __future__ import annotations

import json
from typing import Any

import pytest

from app.jobs.batch.job import BadBatchLine, BatchRequest, parse

GOOD: dict[str, Any] = {
    "custom_id": "a",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {"messages": [{"role": "user", "content": "Hi"}]},
}


def line(**changed: Any) -> bytes:
    return json.dumps({name: value for name, value in (GOOD | changed).items() if value is not ...}).encode()


def test_a_good_line_is_a_job() -> None:
    assert parse(line(more="ignored")) == BatchRequest("a", "/v1/chat/completions", GOOD["body"])


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (b"{", "invalid_json", "not valid JSON"),
        (b"\xff{}", "invalid_json", "UTF-8"),
        (b"[" * 100_000, "invalid_json", "nested too deep"),
        (b"[]", "invalid_json", "not a JSON object"),
        (line(custom_id=...), "missing_custom_id", "no custom_id"),
        (line(custom_id=7), "missing_custom_id", "no custom_id"),
        (line(custom_id=""), "missing_custom_id", "no custom_id"),
        (line(method=...), "invalid_method", "not missing"),
        (line(method="GET"), "invalid_method", "'GET'"),
        (line(url="/v1/images"), "invalid_url", "/v1/embeddings, /v1/messages, not '/v1/images'"),
        (line(url=["x"]), "invalid_url", "x"),
        (line(body=...), "invalid_body", "must be an object"),
        (line(body="{}"), "invalid_body", "must be an object"),
        (line(body=GOOD["body"] | {"stream": True}), "stream_in_batch", "leave stream out"),
    ],
)
def test_a_line_that_cannot_be_sent_says_why(data: bytes, code: str, says: str) -> None:
    with pytest.raises(BadBatchLine) as caught:
        parse(data)
    assert caught.value.code == code
    assert says in caught.value.message
    assert caught.value.custom_id in ("a", None)


def test_a_line_rides_in_the_batch_lane_unless_it_says_otherwise() -> None:
    assert parse(line()).adapted(None, "batch")["speed"] == "batch"
    assert parse(line(body={"speed": "fast"})).adapted(None, "batch")["speed"] == "fast"
    assert "speed" not in parse(line(body={"service_tier": "priority"})).adapted(None, "batch")
    assert "speed" not in parse(line()).adapted(None, None)
    message = line(url="/v1/messages", body={"service_tier": "auto"})  # which is not about time there
    assert parse(message).adapted(None, "batch")["speed"] == "batch"


def test_a_model_that_was_asked_for_replaces_the_lines_own() -> None:
    job = parse(line(body={"model": "gpt"}))
    assert job.adapted("ember", None)["model"] == "ember"
    assert job.adapted(None, None)["model"] == "gpt"
    assert job.body == {"model": "gpt"}
