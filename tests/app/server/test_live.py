"""What runs just now: the list of requests, their cancelling, the stream of states; and the page of routes."""

from __future__ import annotations

import itertools
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin

import pytest

from app.server.http.limits import OPEN_PATHS
from models.library.requests import ROUTES
from tests.support.waiting import until

LONG = {"prompt": "Tell me.", "max_tokens": 900, "ignore_eos": True}
CHAT = {"messages": [{"role": "user", "content": "Tell me."}]}
WRITING = (  # by each protocol, for long
    ("/v1/completions", LONG),
    ("/v1/chat/completions", CHAT | {"max_tokens": 900, "ignore_eos": True}),
    ("/v1/messages", CHAT | {"max_tokens": 900, "ignore_eos": True}),
    ("/v1/responses", {"input": "Tell me.", "max_output_tokens": 900, "ignore_eos": True}),
    ("/api/chat", CHAT | {"model": "ember", "stream": False, "options": {"num_predict": 900, "ignore_eos": True}}),
    ("/api/v1/chat", {"model": "ember", "input": "Tell me.", "max_output_tokens": 900, "ignore_eos": True}),
    ("/completion", LONG),
)


@pytest.mark.parametrize(
    ("path", "body", "phases"),
    [
        *((path, body, ("prefill", "decode")) for path, body in WRITING),
        ("/v1/embeddings", {"input": ["a fox " * 400] * 200}, ("embed",)),
    ],
)
def test_requests_that_run_are_listed_and_cancelled(server, path, body, phases):
    def listed() -> list[dict]:
        return server.http.get("/slipstream/requests").json()["data"]

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(server.http.post, path, json=body)
        (running,) = until(lambda: [one for one in listed() if one["phase"] in phases])
        assert running["lane"] == "standard"
        if phases == ("embed",):
            assert running["n_inputs"] == 200
        else:
            slots = server.http.get("/slots").json()
            assert [slot["id"] for slot in slots if slot["is_processing"]] == [running["slot"]]
        assert server.http.delete(f"/slipstream/requests/{running['id']}").json()["cancelled"]
        answer = asking.result(60)
    assert answer.status_code == 499
    assert "cancelled" in answer.text
    assert answer.headers["x-should-retry"] == "false"
    assert listed() == []
    gone = server.http.delete(f"/slipstream/requests/{running['id']}")
    assert (gone.status_code, gone.json()["error"]["param"]) == (404, "request_id")


@pytest.mark.parametrize(("path", "body"), WRITING)
def test_a_stream_that_is_cancelled_keeps_what_came_and_ends_with_an_error(server, path, body):
    with server.http.stream("POST", path, json=body | {"stream": True}) as answer:
        lines = answer.iter_lines()
        seen = [next(line for line in lines if len(line) > 100)]
        (running,) = until(
            lambda: [one for one in server.http.get("/slipstream/requests").json()["data"] if one["n_generated"] > 9]
        )
        assert server.http.delete(f"/slipstream/requests/{running['id']}").json()["cancelled"]
        seen += [line for line in lines if line]
    text = "\n".join(seen)
    assert "The request was cancelled." in "\n".join(seen[-3:])
    assert len(seen) > 2
    ends = ('"finish_reason":"', "[DONE]", "message_stop", "response.completed", '"done":true', '"stop":true')
    assert not [end for end in ends if end in text]


def test_states_come_as_they_change(server):
    seen = []
    with server.http.stream("GET", "/slipstream/events") as stream:
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(lines)["active"] == 0
        asking = threading.Thread(target=lambda: server.http.post("/v1/completions", json=LONG))
        asking.start()
        while not any(state["requests"] for state in seen) or seen[-1]["requests"]:
            seen.append(next(lines))
        asking.join()
    counts = [state["requests"][0]["n_generated"] for state in seen if state["requests"]]
    assert counts == sorted(counts)
    assert all(before != after for before, after in itertools.pairwise(seen))


def test_the_page_of_routes_needs_nothing_from_elsewhere_and_audio_is_refused_plainly(server):
    page = server.http.get("/docs")
    assert "script" not in page.text
    assert "https://" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    paths = server.http.get("/openapi.json").json()["paths"]
    assert all(f"<code>{path}</code>" in page.text for path in paths)
    assert "/v1/chat/completions" in paths
    spoken = server.http.post("/v1/audio/speech", json={"input": "Hello"})
    heard = server.http.post("/v1/audio/transcriptions", files={"file": ("a.wav", b"RIFF")})
    voices = server.http.get("/v1/audio/voices")
    assert (spoken.status_code, heard.status_code, voices.status_code) == (501, 501, 501)
    assert "text" in spoken.json()["error"]["message"]


def is_described(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value has the form of a schema, as far as those of errors go."""
    if "const" in schema:
        return value == schema["const"]
    kinds = {"object": dict, "string": str, "integer": int, "null": type(None)}
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    fields = schema.get("properties", {})
    is_kind = isinstance(value, tuple(kinds[name] for name in named))
    return is_kind and all(name in value and is_described(value[name], one) for name, one in fields.items())


def test_each_route_describes_its_path_and_its_errors_as_they_are(server):
    described = server.http.get("/openapi.json").json()["paths"]
    for path, methods in described.items():
        for method, operation in methods.items():
            assert "422" not in operation["responses"]
            places = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
            assert places == set(re.findall("{(.*?)}", path)), path
            schema = operation["responses"]["default"]["content"]["application/json"]["schema"]
            if path not in OPEN_PATHS:  # which anybody may ask
                answer = server.http.request(method, re.sub("{.*?}", "1", path), headers={"Authorization": "Bearer x"})
                assert is_described(answer.json(), schema), f"{method} {path}: {answer.text}"


def test_each_route_of_the_library_describes_what_it_takes_and_answers(server):
    document, page = server.http.get("/openapi.json").json(), server.http.get("/docs").text
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        if route.method == "GET":
            told = {one["name"]: one["required"] for one in operation["parameters"]}
        else:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            schema = document["components"]["schemas"][reference.rpartition("/")[2]]
            told = {name: name in schema.get("required", ()) for name in schema["properties"]}
            assert operation["requestBody"]["required"] is any(told.values())
            assert schema["additionalProperties"] is False
        assert told == {field.name: field.default is MISSING for field in fields(route.request)}
        form = operation["responses"]["200"]["content"]["application/json"]["schema"]
        named = form.get("items", form).get("$ref", "").rpartition("/")[2]
        answered = document["components"]["schemas"][named]["properties"] if named else {}
        kind = get_args(route.answer)[0] if get_origin(route.answer) is tuple else route.answer
        assert list(answered) == ([field.name for field in fields(kind)] if is_dataclass(kind) else [])
        assert (
            form == {"type": "null"} if kind is None else form["type"] == "array" if kind is not route.answer else form
        )
        assert operation["description"].split(".")[0] in route.request.__doc__
        assert all(f"<code>{name}</code>" in page for name in (*told, *answered))
