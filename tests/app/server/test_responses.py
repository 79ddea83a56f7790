"""/v1/responses with OpenAI's own client: text, streams, tools, what is stored, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import openai
import pytest

from app.server.calls.generation import ChoiceUpdate
from app.server.openai.response_body import ResponseBody, ToolNames
from app.server.openai.response_store import ResponseStore, StoredResponse
from app.server.openai.responses import Asked, ResponseReply
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded, ContentText
from core.values.messages import Logprob, TokenLogprob
from tests.app.server.conftest import CITY, GET_WEATHER, MODEL

WEATHER = {"type": "function", **GET_WEATHER, "parameters": CITY}
STORY = {"model": MODEL, "input": "Tell me a story about a fox.", "max_output_tokens": 24, "temperature": 0}


@pytest.fixture(scope="module")
def responses(server):
    return server.client.responses


@pytest.fixture(scope="module")
def story(responses):
    return responses.create(**STORY, instructions="You tell stories.", metadata={"topic": "fox"})


def streamed(responses, **fields):
    """The events of a stream, after checks that hold for every stream."""
    events = list(responses.create(stream=True, **fields))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    added = [event.output_index for event in events if event.type == "response.output_item.added"]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert added == list(range(len(done)))
    final = events[-1].response
    assert [item.id for item in final.output] == [item.id for item in done]
    assert {item.status for item in done} <= {"completed", "incomplete"}
    return events, final


def test_a_response_says_what_a_chat_says(server, story):
    chat = server.chat(STORY["input"], max_tokens=24)
    told = server.client.responses.create(**STORY)
    assert told.output_text == chat.choices[0].message.content
    assert told.status == "incomplete"
    assert told.incomplete_details.reason == "max_output_tokens"
    assert (told.usage.input_tokens, told.usage.output_tokens) == (chat.usage.prompt_tokens, 24)
    assert told.model == MODEL
    assert story.metadata == {"topic": "fox"}
    assert story.output[0].status == "incomplete"


def test_a_response_names_its_penalties_for_clients_that_check_every_field(responses, story):
    assert {"frequency_penalty", "presence_penalty"} <= story.to_dict().keys()  # OpenRouter's client
    told = responses.create(**STORY, extra_body={"frequency_penalty": 0.5}).to_dict()
    assert (told["frequency_penalty"], told["presence_penalty"]) == (0.5, None)


def test_a_stream_has_the_same_text_as_the_whole(responses):
    whole = responses.create(**STORY)
    events, final = streamed(responses, **STORY)
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    (done,) = [event.text for event in events if event.type == "response.output_text.done"]
    assert deltas == done == final.output_text == whole.output_text
    assert events[-1].type == "response.incomplete"
    assert final.usage.output_tokens == 24
    # The client's own way to put events together; it takes only responses that are complete.
    with responses.stream(**STORY, extra_body={"stop": "."}) as stream:
        assert deltas.startswith(stream.get_final_response().output_text)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_the_result_of_a_tool(responses, stream):
    fields = {"model": MODEL, "tools": [WEATHER], "temperature": 0, "max_output_tokens": 80}
    asked = {"input": "What is the weather in Paris?", **fields}
    if stream:
        events, first = streamed(responses, **asked)
        pieces = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        assert "".join(pieces) == first.output[-1].arguments
    else:
        first = responses.create(**asked)
    call = first.output[-1]
    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed")
    assert json.loads(call.arguments) == {"city": "Paris"}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": '{"weather": "sunny"}'}
    by_id = responses.create(input=[result], previous_response_id=first.id, **fields)
    sent_again = [{"role": "user", "content": asked["input"]}, *(item.to_dict() for item in first.output), result]
    in_full = responses.create(input=sent_again, store=False, **fields)
    assert by_id.output_text == in_full.output_text != ""
    assert by_id.usage.input_tokens == in_full.usage.input_tokens
    # The conversation is found in the cache, whichever way it was sent.
    assert in_full.usage.input_tokens_details.cached_tokens >= 0.9 * in_full.usage.input_tokens


def test_a_tool_of_free_text_and_one_in_a_namespace_come_back_as_they_were_sent(responses):
    patch = {"type": "custom", "name": "write_note", "description": "Write a note."}
    fields = {"model": MODEL, "input": "Note: buy milk.", "max_output_tokens": 200, "store": False, "temperature": 0}
    events, told = streamed(responses, tools=[patch], tool_choice={"type": "custom", "name": "write_note"}, **fields)
    call = told.output[-1]
    assert (call.type, call.name) == ("custom_tool_call", "write_note")
    assert [event.input for event in events if event.type == "response.custom_tool_call_input.done"] == [call.input]
    some = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "roll_dice"}]}
    told = responses.create(tools=[WEATHER, WEATHER | {"name": "roll_dice"}], tool_choice=some, **fields)
    assert {call.name for call in told.output} == {"roll_dice"}
    space = {"type": "namespace", "name": "home", "description": "At home.", "tools": [WEATHER]}
    hosted = [{"type": "web_search_2025_08_26"}, {"type": "image_generation", "output_format": "png"}]
    told = responses.create(tools=[space, *hosted], tool_choice="required", **fields)
    assert (told.output[-1].name, told.output[-1].namespace) == ("get_weather", "home")


SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"topic": {"enum": ["weather"]}}, "required": ["topic"]},
}
SPACE = {"type": "namespace", "name": "home", "description": "At home.", "tools": [WEATHER]}


def test_tools_that_an_item_adds_are_tools_until_the_conversation_ends(responses):
    fields = {"model": MODEL, "tool_choice": "required", "max_output_tokens": 80, "temperature": 0}
    added = {"type": "additional_tools", "role": "developer", "tools": [SPACE]}
    first = responses.create(input=[added, {"role": "user", "content": "The weather in Paris?"}], **fields)
    assert (first.output[-1].name, first.output[-1].namespace) == ("get_weather", "home")
    again = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "sunny"}
    second = responses.create(input=[again], previous_response_id=first.id, **fields)
    assert second.output[-1].name == "get_weather"
    anew = SPACE | {"tools": [WEATHER | {"parameters": {"type": "object", "properties": {"now": {"enum": [True]}}}}]}
    third = responses.create(input=[added | {"tools": [anew]}], previous_response_id=second.id, **fields)
    assert "city" not in third.output[-1].arguments


@pytest.mark.parametrize("stream", [False, True])
def test_tools_that_the_clients_search_finds_are_tools(responses, stream):
    fields = {"model": MODEL, "tools": [SEARCH], "max_output_tokens": 80, "temperature": 0}
    asked = {"input": "What is the weather in Paris?", "tool_choice": "required", **fields}
    first = streamed(responses, **asked)[1] if stream else responses.create(**asked)
    call = first.output[-1]
    assert (call.type, call.execution, call.arguments) == ("tool_search_call", "client", {"topic": "weather"})
    found = {"type": "tool_search_output", "call_id": call.call_id, "execution": "client", "tools": [SPACE]}
    choice = {"tool_choice": {"type": "function", "name": "get_weather", "namespace": "home"}}
    second = responses.create(input=[found], previous_response_id=first.id, **fields, **choice)
    assert (second.output[-1].name, second.output[-1].namespace) == ("get_weather", "home")
    sent_again = [{"role": "user", "content": asked["input"]}, *(item.to_dict() for item in first.output), found]
    in_full = responses.create(input=sent_again, store=False, **fields, **choice)
    assert in_full.usage.input_tokens == second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"topic": "weather"}', {"topic": "weather"}),
        ('{"n": NaN}', '{"n": NaN}'),
        ("{", "{"),
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
    ],
)
def test_what_a_search_is_told_can_be_said_in_json(written, told):
    reply = ResponseReply(Asked(ResponseBody(input="Hi", tools=[SEARCH]), None, None, ToolNames([SEARCH])), None)
    pieces = [CallBegun("call_1", "tool_search"), CallArguments(written), CallEnded()]
    *_, done = reply.events(ChoiceUpdate(0, pieces=pieces))
    assert (done["type"], done["item"]["arguments"]) == ("response.output_item.done", told)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (r'{"input": "echo \ud83d', "echo "),
        (r'{"input": "echo \ud83d\ude', "echo "),
        (r'{"input": "echo \ud83d\ude00', "echo \N{GRINNING FACE}"),
        (r'{"input": "echo \ud83d!"}', "echo \N{REPLACEMENT CHARACTER}!"),
    ],
)
def test_half_of_a_surrogate_pair_in_a_call_with_free_text_is_no_part_of_it(written, told):
    tools = [{"type": "custom", "name": "shell"}]
    reply = ResponseReply(Asked(ResponseBody(input="Hi", tools=tools), None, None, ToolNames(tools)), None)
    pieces = [CallBegun("call_1", "shell"), CallArguments(written), CallEnded()]
    *_, done = reply.events(ChoiceUpdate(0, pieces=pieces))
    assert (done["item"]["type"], done["item"]["input"]) == ("custom_tool_call", told)


def test_what_a_search_at_openai_would_find_are_tools_already(responses):
    fields = {"model": MODEL, "tool_choice": "required", "max_output_tokens": 80, "store": False}
    call = {"type": "tool_search_call", "arguments": {}, "execution": "server", "call_id": None}
    items = [{"role": "user", "content": "Weather?"}, call, {"type": "tool_search_output", "tools": [WEATHER]}]
    for sent in ({"input": "Weather?", "tools": [{"type": "tool_search"}, WEATHER]}, {"input": items}):
        assert responses.create(**sent, **fields).output[-1].name == "get_weather"


def test_an_update_of_the_configuration_holds_until_the_next(responses):
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}
    form = {"type": "json_schema", "name": "number", "schema": schema, "strict": True}
    update = {"type": "configuration_update", "text": {"format": form}, "reasoning": {"effort": "low"}}
    fields = {"model": MODEL, "max_output_tokens": 24, "temperature": 0}
    first = responses.create(input=[update, {"role": "user", "content": "A number?"}], **fields)
    second = responses.create(input="Another?", previous_response_id=first.id, **fields)
    assert [json.loads(one.output_text) for one in (first, second)] == [{"n": 7}] * 2
    assert second.reasoning.effort == "low"
    back = update | {"text": {"format": {"type": "text"}}, "reasoning": {"effort": None}}
    third = responses.create(input=[back, {"role": "user", "content": "Hi"}], previous_response_id=second.id, **fields)
    assert third.output_text not in ("", second.output_text)
    assert third.reasoning.effort is None


def test_tokens_are_counted_log_probabilities_told_and_a_schema_followed(server, responses, story):
    counted = responses.input_tokens.count(model=MODEL, input=STORY["input"], instructions="You tell stories.")
    assert counted.input_tokens == story.usage.input_tokens
    after = server.http.post("/v1/responses/input_tokens", json={"input": "And?", "previous_response_id": story.id})
    assert after.json()["input_tokens"] > story.usage.total_tokens
    told = responses.create(**STORY, include=["message.output_text.logprobs"], top_logprobs=2)
    logprobs = told.output[0].content[0].logprobs
    assert [len(one.top_logprobs) for one in logprobs] == [2] * 24
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "name": "number", "schema": schema, "strict": True}
    told = responses.create(model=MODEL, input="A number?", text={"format": form}, temperature=0, store=False)
    assert isinstance(json.loads(told.output_text)["n"], int)
    # Searches of OpenAI's in a conversation are passed over.
    items = [{"role": "user", "content": "Hi"}, {"type": "web_search_call", "id": "ws_1", "status": "completed"}]
    assert server.http.post("/v1/responses", json={"input": items, "max_output_tokens": 2}).status_code == 200


def test_log_probabilities_of_text_that_is_held_back_come_with_it():
    reply = ResponseReply(Asked(ResponseBody(input="Hi"), None, None, ToolNames(())), None)
    space, fox = (TokenLogprob(Logprob(0, piece, -0.5), ()) for piece in (b" ", b" fox"))
    assert reply.events(ChoiceUpdate(0, n_tokens=1, logprobs=[space])) == []
    *_, delta = reply.events(ChoiceUpdate(0, n_tokens=1, logprobs=[fox], pieces=[ContentText("  fox")]))
    assert [one["token"] for one in delta["logprobs"]] == [" ", " fox"]


def test_a_reply_that_cannot_be_stored_comes_all_the_same_and_says_so(server, home, responses, story):
    told = {"model": MODEL, "input": "Hello", "max_output_tokens": 4}
    with closing(sqlite3.connect(home / "data" / "responses.sqlite")) as kept:
        kept.execute("ALTER TABLE responses RENAME TO away")
        try:
            whole = responses.create(**STORY)
            _, final = streamed(responses, **STORY)
            lm_studio = server.http.post("/api/v1/chat", json=told)
        finally:
            kept.execute("ALTER TABLE away RENAME TO responses")
    assert whole.output_text == final.output_text != ""
    assert [one.to_dict()["store"] for one in (whole, final, story)] == [False, False, True]
    assert lm_studio.status_code == 200
    assert "response_id" not in lm_studio.json()


def test_beside_a_newer_version_responses_are_stored_or_it_is_said_why_not(server, home, responses, story):
    """One that adds columns, and one that changes what there is."""
    with closing(sqlite3.connect(home / "data" / "responses.sqlite")) as newer:
        newer.execute("ALTER TABLE responses ADD COLUMN place TEXT")
        try:
            stored = responses.create(**STORY)
            assert stored.to_dict()["store"]
            assert responses.retrieve(stored.id).output_text == stored.output_text
            newer.execute("ALTER TABLE responses RENAME COLUMN response TO text")
            assert not responses.create(**STORY).to_dict()["store"]
            for method, path in (("GET", f"/{story.id}"), ("GET", f"/{story.id}/input_items"), ("GET", "")):
                error = server.http.request(method, f"/v1/responses{path}").json()["error"]
                assert "A newer Slipstream has changed" in error["message"]
            log = server.http.get("/slipstream/log").json()["lines"]
        finally:
            columns = {row[1] for row in newer.execute("PRAGMA table_info(responses)")}
            if "text" in columns:
                newer.execute("ALTER TABLE responses RENAME COLUMN text TO response")
            newer.execute("ALTER TABLE responses DROP COLUMN place")
    assert any("could not be stored: A newer Slipstream has changed" in line for line in log)
    assert not any("unforeseen" in line for line in log)


@pytest.mark.parametrize("is_open", [False, True], ids=["from its beginning", "behind its first page"])
def test_a_damaged_file_of_responses_is_kept_and_a_new_one_begins(tmp_path, is_open):
    file = tmp_path / "responses.sqlite"
    file.write_bytes(b"" if is_open else b"no database " * 100)
    stored = StoredResponse({"id": "resp_1", "output": []}, [])
    if is_open:
        with closing(ResponseStore(file)) as store:
            for number in range(200):
                assert store.put(StoredResponse({"id": f"resp_1{number}", "output": ["x" * 100]}, []))
        with file.open("r+b") as damaged:  # a disk that lost all but what is read first
            damaged.seek(4096)
            damaged.write(b"no database " * (file.stat().st_size // 12 - 400))
    with closing(ResponseStore(file)) as store:
        assert store.get("resp_1") is None
        assert store.put(stored)
        assert store.get("resp_1") == stored
    (aside,) = tmp_path.glob("*.broken-*")
    assert b"no database" in aside.read_bytes()


def test_stored_responses_are_read_listed_and_deleted(server, responses, story):
    assert responses.retrieve(story.id).output_text == story.output_text
    second = responses.create(model=MODEL, input="And then?", previous_response_id=story.id, max_output_tokens=8)
    items = responses.input_items.list(second.id, order="asc", limit=2)
    assert [item.content[0].text for item in items.data] == [STORY["input"], story.output_text]
    assert [item.content[0].text for item in items] == [STORY["input"], story.output_text, "And then?"]
    assert next(iter(responses.input_items.list(second.id))).content[0].text == "And then?"
    listed = server.http.get("/v1/responses", params={"limit": 1}).json()
    assert ([one["id"] for one in listed["data"]], listed["has_more"]) == ([second.id], True)
    assert isinstance(listed["data"][0]["created_at"], int), "LiteLLM's proxy takes no fraction"
    pages, after = [], None
    while after is None or pages[-1]["has_more"]:
        asked = {"limit": 1, "order": "asc"} | ({"after": after} if after else {})
        pages.append(server.http.get("/v1/responses", params=asked).json())
        after = pages[-1]["last_id"]
        assert len(pages) < 300, "each page says that there are more"
    every = [one["id"] for one in server.http.get("/v1/responses", params={"limit": 100}).json()["data"]]
    assert [one["id"] for one_page in reversed(pages) for one in one_page["data"]][:100] == every
    for path in ("/v1/responses", f"/v1/responses/{story.id}/input_items", "/v1/files", "/v1/batches"):
        unknown = server.http.get(path, params={"after": "none"})
        assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "after")
    responses.delete(story.id)
    with pytest.raises(openai.NotFoundError):
        responses.retrieve(story.id)
    with pytest.raises(openai.BadRequestError) as refused:
        responses.create(model=MODEL, input="And?", previous_response_id=second.id)
    assert refused.value.code == "previous_response_not_found"
    unstored = responses.create(model=MODEL, input="Hello", store=False, max_output_tokens=4)
    with pytest.raises(openai.NotFoundError):
        responses.retrieve(unstored.id)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_loses_its_oldest_turns_where_that_is_allowed(responses, stream):
    turns = [{"role": role, "content": "word " * 300} for role in ("user", "assistant")] * 2
    long = {"model": MODEL, "input": [*turns, {"role": "user", "content": "Hello"}], "max_output_tokens": 4}
    with pytest.raises(openai.BadRequestError) as refused:
        responses.create(**long, stream=stream)
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")
    told = streamed(responses, truncation="auto", **long)[1] if stream else responses.create(truncation="auto", **long)
    assert 300 < told.usage.input_tokens < 1000


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": 3}, "input"),
        ({"input": [{"type": "computer_call"}]}, "input"),
        ({"input": [{"role": "user", "content": None}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "x"}]}]}, "input"),
        ({"input": []}, "input"),
        ({"input": "x", "tools": [{"type": "code_interpreter"}]}, "tools"),
        ({"input": "x", "tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"input": "x", "max_output_tokens": -2}, "max_output_tokens"),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "conversation": "conv_1"}, "conversation"),
        ({"input": "x", "moderation": {"model": "omni-moderation-latest"}}, "moderation"),
        ({"input": [{"type": "additional_tools", "tools": [{"type": "code_interpreter"}]}]}, "input"),
        ({"input": [{"type": "tool_search_output", "tools": ["x"]}]}, "input"),
        ({"input": [{"type": "configuration_update", "text": 1}]}, "input"),
        ({"input": [{"type": "compaction_trigger"}]}, "input"),
        ({"input": [{"type": "compaction", "encrypted_content": "eA=="}, {"role": "user", "content": "x"}]}, "input"),
        ({"input": "x", "truncation": "some"}, "truncation"),
        ({"input": "x", "temperature": "hot"}, "temperature"),
        ({"input": "x", "n": 2}, "n"),
        ({"input": "x", "previous_response_id": "resp_none"}, "previous_response_id"),
        ({"input": "x", "text": {"format": {"type": "json_schema", "name": "a"}}}, "text"),
    ],
)
def test_a_wish_that_is_not_met_is_refused_by_name(server, fields, param):
    answer = server.http.post("/v1/responses", json={"model": MODEL, **fields})
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert error["param"].partition("[")[0].partition(".")[0] == param
    assert error["message"].endswith(".")
    assert "None" not in error["message"], "JSON has null"
    assert "messages" not in error["message"], "it is the chat's name for the input"


def test_a_wish_to_sum_a_conversation_up_is_told_to_be_left_out(server):
    sent = {"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}
    message = server.http.post("/v1/responses", json=sent).json()["error"]["message"]
    assert message.endswith("'compaction_trigger': conversations are not summed up here. Leave it out.")


def test_a_conversation_by_the_name_of_chats_is_refused_beside_the_input(server):
    body = {"model": MODEL, "input": "x", "messages": [{"role": "user", "content": "y"}], "max_output_tokens": 1}
    answer = server.http.post("/v1/responses", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_chats_limit_counts_where_a_responses_own_is_not_sent(server, name):
    body = {"model": MODEL, "input": "Tell me a story", "store": False, name: 3}
    answer = server.http.post("/v1/responses", json=body).json()
    assert (answer["usage"]["output_tokens"], answer["status"]) == (3, "incomplete")


def test_a_tool_in_the_form_of_chats_is_told_what_a_response_s_has(server):
    chats = {"type": "function", "function": GET_WEATHER | {"parameters": CITY}}
    error = server.http.post("/v1/responses", json={"input": "x", "tools": [chats]}).json()["error"]
    assert (error["param"], "'function' has no name" in error["message"]) == ("tools", True)


def test_a_conversation_is_not_summed_up(server):
    answer = server.http.post("/v1/responses/compact", json={"model": MODEL, "input": "Hi"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_supported")


def test_stored_items_may_be_named_in_place_of_sent(server):
    first = server.client.responses.create(model=MODEL, input="My name is Lily.", max_output_tokens=8, temperature=0)
    assert first.id.startswith("resp_")
    assert first.output[0].id.startswith("msg_")
    (asked,) = server.client.responses.input_items.list(first.id).data
    last = {"role": "user", "content": "Who?"}
    named = [{"type": "item_reference", "id": asked.id}, {"id": first.output[0].id}, last]
    answered = {"role": "assistant", "content": first.output_text}
    sent = [{"role": "user", "content": "My name is Lily."}, answered, last]

    def count(items: list) -> int:
        return server.http.post("/v1/responses/input_tokens", json={"input": items}).json()["input_tokens"]

    assert count(named) == count(sent)
    answer = server.http.post("/v1/responses", json={"input": named, "max_output_tokens": 4})
    assert answer.status_code == 200
    unknown = server.http.post("/v1/responses", json={"input": [{"type": "item_reference", "id": "msg_0_1"}]})
    error = unknown.json()["error"]
    assert (unknown.status_code, error["param"], error["code"]) == (400, "input[0]", "item_not_found")
