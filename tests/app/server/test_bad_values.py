"""Every field of every route with values that it should not have: each gets an answer in the form of its route."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

import pytest

from app.server.http.errors import is_ollama
from tests.app.server.conftest import RunningServer

USER = [{"role": "user", "content": "Hi"}]
OLLAMA = {"model": "ember-q8_0", "stream": False, "options": {"num_predict": 1}}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": USER, "max_tokens": 1},
    "/v1/chat/completions/input_tokens": {"messages": USER},
    "/v1/chat/completions/control": {"id": "chatcmpl-x", "action": "reasoning_end"},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 1, "store": False},
    "/v1/responses/input_tokens": {"input": "Hi"},
    "/v1/embeddings": {"input": "Hi"},
    "/v1/rerank": {"query": "a", "documents": ["b"]},
    "/v1/batches": {"input_file_id": "file-x", "endpoint": "/v1/chat/completions", "completion_window": "24h"},
    "/v1/messages": {"messages": USER, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": USER},
    "/completion": {"prompt": "Hi", "n_predict": 1},
    "/infill": {"input_prefix": "a", "input_suffix": "b", "n_predict": 1},
    "/embedding": {"content": "Hi"},
    "/rerank": {"query": "a", "documents": ["b"]},
    "/tokenize": {"content": "Hi"},
    "/detokenize": {"tokens": [300]},
    "/apply-template": {"messages": USER},
    "/models": {"model": "ember-q8_0"},
    "/models/load": {"model": "ember-q8_0"},
    "/slipstream/load": {"model": "ember-q8_0"},
    "/api/v1/models/load": {"model": "ember-q8_0"},
    "/api/pull": {"model": "ember-q8_0", "stream": False},
    "/api/v1/models/download": {"model": "ember-q8_0"},
    "/api/v1/chat": {"model": "ember-q8_0", "input": "Hi", "max_output_tokens": 1, "store": False},
    "/api/show": {"model": "ember-q8_0"},
    "/api/chat": {"messages": USER, **OLLAMA},
    "/api/generate": {"prompt": "Hi", **OLLAMA},
    "/api/embed": {"model": "ember-q8_0", "input": "Hi"},
    "/api/embeddings": {"model": "ember-q8_0", "prompt": "Hi"},
}
BROKEN_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}
# As they stand in a body: JSON as most programs write it, and what only some of them do.
VALUES = (
    *("null", "true", "-1", "1e999", "NaN", "123456789012345678901234567890", "1.5", '""', '"\\ud800"'),
    *("[]", "[null]", '["a", 1]', "{}", '{"a": {"b": [1, {"c": null}]}}'),
    json.dumps("x" * 2_000),
    "[" * 300 + "]" * 300,
)
# For what may hold messages.
MESSAGES = (
    '[{"role": "alien", "content": "Hi"}]',
    '[{"role": "tool", "content": "x", "tool_call_id": "none"}]',
    '[{"role": "assistant", "content": null}]',
    json.dumps([{"role": "user", "content": [BROKEN_IMAGE]}]),
)
# Each has the body of another route, where all fields are tried: here are those that it needs.
BODY_OF_ANOTHER = (
    *("/v1/chat/completions/input_tokens", "/v1/responses/input_tokens", "/v1/messages/count_tokens"),
    "/apply-template",
)
# Some numbers mean no limit in these, and so does their absence: no reply of a model would end then.
UNBOUNDED = {"n_predict", "max_tokens", "max_output_tokens", "options"}
NO_NUMBER = ('"', "[", "NaN")

# Errors that no single field is the cause of: a text is too long with the others, or the usual body is refused.
OTHERWISE = re.compile(
    "context size|too long|tokens, and this model takes|leaves no room|does not score|no file 'file-x'"
)


FUNCTION = {"name": "roll", "description": "Rolls dice.", "parameters": {"type": "object", "properties": {"n": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "roll", "arguments": '{"n": 1}'}}
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
CHAT = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": "Roll.", "name": "Ana"},
        {"role": "assistant", "content": None, "reasoning_content": "Dice.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "4"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "max_tokens": 1,
}
# Bodies with something in most of what they can hold.
FULL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/chat/completions", CHAT | {"tool_choice": {"type": "function", "function": {"name": "roll"}}}),
    ("/v1/chat/completions", CHAT | {"stream": True, "stream_options": {"include_usage": True}}),
    (
        "/v1/chat/completions",
        {
            "messages": USER,
            "max_tokens": 1,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
            "tools": [{"type": "custom", "custom": {"name": "shell", "description": "d", "format": {"type": "text"}}}],
            "tool_choice": {"type": "custom", "custom": {"name": "shell"}},
            "logit_bias": {"5": 1.5},
            "lora": [],
            "reasoning": {"effort": "low", "max_tokens": 5},
            "samplers": ["top_k"],
            "stop": ["x"],
            "chat_template_kwargs": {"a": 1},
            "dry_sequence_breakers": ["\n"],
        },
    ),
    ("/v1/completions", {"prompt": [[300, 301], [302]], "max_tokens": 1, "stop": ["x"], "logit_bias": {"5": 1}}),
    (
        "/completion",
        {"prompt": ["a", [300, 301]], "n_predict": 1, "logit_bias": [[5, False]], "response_fields": ["a"]},
    ),
    ("/infill", {"input_prefix": "a", "input_extra": [{"text": "b", "filename": "c"}], "n_predict": 1}),
    ("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "base64", "dimensions": 8}),
    ("/tokenize", {"content": ["a", 300], "with_pieces": True}),
    (
        "/v1/responses",
        {
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
                {"role": "user", "content": "Roll."},
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Dice."}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "abcd"},
                {"type": "function_call", "call_id": "call_1", "name": "roll", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "4"}]},
                {"type": "custom_tool_call", "call_id": "call_2", "name": "shell", "input": "ls"},
                {"type": "custom_tool_call_output", "call_id": "call_2", "output": "a"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Four.", "annotations": []}]},
                {"role": "user", "content": "Again."},
            ],
            "tools": [
                {"type": "function", "parameters": {}, "strict": False, "name": "roll"},
                {"type": "custom", "name": "shell", "description": "d", "format": {"type": "text"}},
                {"type": "namespace", "name": "space", "tools": [{"type": "function", "name": "f"}]},
            ],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "roll"}]},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "low"},
            "reasoning": {"effort": "low"},
            "metadata": {"a": "b"},
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 1,
            "store": True,
        },
    ),
    (
        "/v1/messages",
        {
            "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Roll."}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Dice.", "signature": "s"},
                        {"type": "tool_use", "id": "call_1", "name": "roll", "input": {"n": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "4"}]},
                        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
                        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "c"}]}},
                        {
                            "type": "search_result",
                            "source": "s",
                            "title": "t",
                            "content": [{"type": "text", "text": "r"}],
                        },
                    ],
                },
            ],
            "tools": [{"name": "roll", "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 1},
            "stop_sequences": ["x"],
            "max_tokens": 1,
        },
    ),
    (
        "/api/chat",
        {
            "messages": [
                {"role": "user", "content": "Roll."},
                {
                    "role": "assistant",
                    "thinking": "Dice.",
                    "tool_calls": [{"function": {"name": "roll", "arguments": {"n": 1}}}],
                },
                {"role": "tool", "content": "4", "tool_name": "roll"},
            ],
            "tools": [{"type": "function", "function": FUNCTION}],
            "format": SCHEMA,
            **OLLAMA,
            "options": {"num_predict": 1, "stop": ["x"], "temperature": 0, "seed": 1, "num_ctx": 512},
        },
    ),
    ("/api/generate", {"prompt": "Hi", "context": [300], **OLLAMA}),
    (
        "/api/v1/chat",
        {"model": "ember-q8_0", "input": [{"type": "text", "content": "Hi"}], "max_output_tokens": 1}
        | {"store": True, "stream": True},
    ),
    ("/v1/rerank", {"query": "a", "documents": ["b", {"text": "c"}]}),
)
INSIDE = ("null", "true", "-1", "NaN", "1e999", '""', '"\\ud800"', '"x"', "[null]", '[["x"]]', "{}", "[5]")


class Case(NamedTuple):
    path: str
    field: str
    value: str
    body: str


def fields_of(server: RunningServer) -> dict[str, set[str]]:
    """The fields that the body of each route has, as it is described."""
    document = server.http.get("/openapi.json").json()
    found = {}
    for path, usual in BODIES.items():
        schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        found[path] = set(schema["properties"])
        assert found[path] >= set(usual) - {"options"}, f"{path} is not described as it is"
    return found


def cases(server: RunningServer) -> Iterator[Case]:
    for path, fields in fields_of(server).items():
        usual = BODIES[path]
        for value in (*VALUES, *MESSAGES):
            yield Case(path, "", value, value)
        for field in sorted(fields if path not in BODY_OF_ANOTHER else usual):
            others = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in usual.items() if name != field]
            values = (*VALUES, *MESSAGES) if field in ("messages", "input", "prompt") else VALUES
            for value in (one for one in values if field not in UNBOUNDED or one.startswith(NO_NUMBER)):
                yield Case(path, field, value, "{" + ", ".join([*others, f"{json.dumps(field)}: {value}"]) + "}")
        for field in set(usual) - UNBOUNDED:
            yield Case(path, field, "", json.dumps({name: one for name, one in usual.items() if name != field}))


def problem(case: Case, status: int, text: str) -> str | None:
    """Say what is wrong with an answer; None where nothing is."""
    if status == 200:
        return None
    if not 400 <= status < 500:
        return f"{case.path} {case.field}={case.value[:60]}: {status} {text[:200]}"
    error = json.loads(text)["error"]
    message = error if is_ollama(case.path) else error["message"]
    if not message:
        return f"{case.path} {case.field}={case.value[:60]}: no message"
    named = message if is_ollama(case.path) else f"{error.get('param')} {message}"
    if any(name in named for name in case.field.split("/")) or OTHERWISE.search(message):
        return None
    return f"{case.path} {case.field}={case.value[:60]} is not named: {text[:300]}"


def problems(server: RunningServer, every: list[Case]) -> list[str]:
    """Send all of them over a few connections, and return what is wrong with the answers."""
    headers = {"Content-Type": "application/json", **server.headers}

    # Without httpx, which takes as long for a request as the server does.
    def send(some: list[Case]) -> list[str]:
        found: list[str | None] = []
        with closing(HTTPConnection(server.url.removeprefix("http://"), timeout=60)) as connection:
            for case in some:
                try:
                    connection.request("POST", case.path, case.body.encode(), headers)
                    with connection.getresponse() as answer:
                        found.append(problem(case, answer.status, answer.read().decode()))
                except (HTTPException, OSError) as error:
                    found.append(f"{case.path} {case.field}={case.value[:60]}: {error!r}, for {case.body[:2_000]}")
                    connection.close()
        return [words for words in found if words]

    with ThreadPoolExecutor(8) as threads:
        return [words for some in threads.map(send, (every[part::8] for part in range(8))) for words in some]


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where in a body a value stands, from the outside in."""
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*before, name)
        yield from places(inner, (*before, name))


def changed(value: Any, place: tuple[Any, ...], to: str) -> str:
    """Return a body as JSON with other JSON in a place."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = "@here@"
    return json.dumps(copy).replace('"@here@"', to)


def cases_inside(_: RunningServer) -> Iterator[Case]:
    for path, body in FULL:
        yield Case(path, "", "", json.dumps(body))
        for place in places(body):
            is_unbounded = not UNBOUNDED.isdisjoint(map(str, place[:1])) and place[-1] in (*UNBOUNDED, "num_predict")
            for value in (one for one in INSIDE if not is_unbounded or one.startswith(NO_NUMBER)):
                yield Case(
                    path, "/".join(name for name in place if isinstance(name, str)), value, changed(body, place, value)
                )


@pytest.mark.slow
@pytest.mark.parametrize(("made", "least"), [(cases, 5_000), (cases_inside, 3_000)])
def test_no_value_of_a_field_or_inside_one_breaks_a_route(
    server: RunningServer, made: Callable[[RunningServer], Iterator[Case]], least: int
) -> None:
    """A twelfth of the cases, other ones in each run: what fails is named with its route, field and value."""
    every = list(made(server))
    assert len(every) > least
    assert problems(server, random.sample(every, len(every) // 12)) == []
    assert not any(slot["is_processing"] for slot in server.http.get("/slots").json())
    assert server.chat(max_tokens=1).choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("path", "field"),
    [("/v1/responses", "limit"), ("/v1/files", "limit"), ("/v1/batches", "limit"), ("/slipstream/log", "lines")],
)
def test_a_number_in_a_query_is_one_or_is_named(server: RunningServer, path: str, field: str) -> None:
    for value in ("", "0", "-1", "1.5", "x", "٣", "9" * 5_000, "000001" + "0" * 30):
        answer = server.http.get(path, params={field: value})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, field), value
    assert server.http.get(path, params={field: "999999"}).status_code == 200


def test_null_is_the_default_of_every_field(server: RunningServer) -> None:
    for path, fields in fields_of(server).items():
        plain, with_nulls = (
            server.http.post(path, json=body) for body in (BODIES[path], dict.fromkeys(fields) | BODIES[path])
        )
        assert with_nulls.status_code == plain.status_code, (path, with_nulls.text)


TOLD = (
    ("/v1/responses", {}, "input", "Missing required field: input."),
    ("/v1/responses", {"input": None}, "input", "Missing required field: input."),
    ("/v1/responses", {"input": []}, "input", "input must have 1 or more entries, not 0."),
    ("/v1/responses", {"input": {}}, "input", "input must be a valid string or a list."),
    ("/v1/responses/input_tokens", {}, "input", "Missing required field: input."),
    ("/api/v1/chat", {"model": "x", "input": []}, "input", "input must have 1 or more entries, not 0."),
    ("/v1/rerank", {"query": "", "documents": ["a"]}, "query", "query must have 1 or more characters."),
    (
        "/v1/chat/completions",
        {"messages": USER, "tools": [{"type": "function", "function": {"name": "f" * 129}}]},
        "tools[0].function.name",
        "tools[0].function.name must have 128 or fewer characters.",
    ),
    ("/embedding", {"content": [""]}, "content[0]", "content[0] must be a text or token ids, and not be empty"),
    ("/tokenize", {"content": {}}, "content", "content must be a valid string or a list."),
    (
        "/v1/responses",
        {"input": "Hi", "text": {"format": {"type": "x"}}},
        "text.format.type",
        "text.format.type must be 'text', 'json_object' or 'json_schema'.",
    ),
    (
        "/v1/responses",
        {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "a", "schema": 7}}},
        "text.format.schema",
        "text.format.schema must be a JSON object or true or false.",
    ),
    (
        "/v1/responses",
        {"instructions": "b", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": 7}]}]},
        "input",
        "input must be a valid string.",
    ),
)


@pytest.mark.parametrize(("path", "body", "param", "words"), TOLD)
def test_what_is_missing_is_not_called_empty_nor_what_is_empty_of_another_type(
    server: RunningServer, path: str, body: dict[str, Any], param: str, words: str
) -> None:
    answer = server.http.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert error["message"].startswith(words)


def test_a_conversation_goes_on_without_an_input(server: RunningServer) -> None:
    first = server.http.post("/v1/responses", json={"input": "Hi", "max_output_tokens": 2}).json()
    more = {"previous_response_id": first["id"], "max_output_tokens": 2}
    assert server.http.post("/v1/responses", json=more).status_code == 200


@pytest.mark.parametrize("name", ["a b", "x-y", "é", "list[int]", "z" * 10_000])
def test_an_unknown_field_is_named_whatever_it_is_called(server: RunningServer, name: str) -> None:
    for path in ("/v1/chat/completions", "/v1/embeddings", "/v1/responses"):
        answer = server.http.post(path, json=BODIES[path] | {name: 1})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"][:200]) == (400, "unknown_parameter", name[:200])
        assert f"The field {name[:200]}" in error["message"]
