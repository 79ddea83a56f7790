"""/v1/messages with Anthropic's own client: text, streams, tools, counting, and errors in its form."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

import httpx
import pytest

from app.server.anthropic.message_body import MessageBody
from app.server.anthropic.messages import MessageReply
from app.server.calls.generation import ChoiceUpdate
from app.server.chat.run import Choice
from app.server.replies.pieces import CallArguments, CallBegun, CallEnded
from tests.app.server.conftest import CITY, GET_WEATHER, MODEL
from ui.server.snippets import Address, snippets

TOOL = GET_WEATHER | {"input_schema": CITY}
STORY = {"model": MODEL, "max_tokens": 24, "messages": [{"role": "user", "content": "Tell me a story about a fox."}]}
GREEDY = {"temperature": 0}


def change(kind: str, **tool: object) -> dict:
    return {"role": "system", "content": [{"type": kind, "tool": tool}]}


@pytest.fixture(scope="module")
def client(server):
    import anthropic  # takes two seconds, which only the worker that runs these tests shall spend

    with anthropic.Anthropic(base_url=server.url, api_key=server.process.api_key, max_retries=0) as client:
        yield client


def test_a_message_says_what_a_chat_says_whole_and_as_a_stream(server, client):
    chat = server.chat("Tell me a story about a fox.", max_tokens=24)
    told = client.messages.create(**STORY, extra_body=GREEDY)
    with client.messages.stream(**STORY, extra_body=GREEDY) as stream:
        assert stream.response.headers["request-id"].startswith("req_")
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    for one in (told, final):
        assert one.content[0].text == chat.choices[0].message.content
        assert (one.stop_reason, one.model, one.role) == ("max_tokens", MODEL, "assistant")
        assert one.usage.input_tokens + one.usage.cache_read_input_tokens == chat.usage.prompt_tokens
        assert one.usage.output_tokens == 24
        assert one.id.startswith("msg_")
    model = client.models.retrieve(MODEL)
    assert (model.type, model.id, model.display_name) == ("model", MODEL, MODEL)
    assert model.created_at.year >= 2024


def test_the_script_that_the_window_copies_runs(server, client):
    (script,) = (
        one.text
        for one in snippets(Address(server.url, server.process.api_key, MODEL, 1_024))
        if one.client == "Python: anthropic"
    )
    names = {}
    with redirect_stdout(StringIO()) as said:
        exec(compile(script, "script", "exec"), names)
    names["client"].close()
    assert len(said.getvalue().split()) > 5


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_the_result_of_a_tool(client, stream):
    fields = {"model": MODEL, "max_tokens": 80, "tools": [TOOL], "extra_body": GREEDY}
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    if stream:
        with client.messages.stream(messages=messages, **fields) as events:
            first = events.get_final_message()
    else:
        first = client.messages.create(messages=messages, **fields)
    call = first.content[-1]
    assert (first.stop_reason, call.type) == ("tool_use", "tool_use")
    assert (call.name, call.input) == ("get_weather", {"city": "Paris"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(messages=messages, **fields)
    assert second.content[0].text
    assert second.usage.cache_read_input_tokens > second.usage.input_tokens


def test_a_tool_can_be_forced_and_forbidden(client):
    fields = {"model": MODEL, "max_tokens": 200, "tools": [TOOL], "messages": [{"role": "user", "content": "Hello"}]}
    forced = client.messages.create(tool_choice={"type": "tool", "name": "get_weather"}, **fields)
    assert [block.type for block in forced.content] == ["tool_use"]
    free = client.messages.create(tool_choice={"type": "none"}, **(fields | {"max_tokens": 16}))
    assert [block.type for block in free.content] == ["text"]


def test_blocks_of_the_system_stop_sequences_and_a_beginning_are_honoured(client):
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    told = client.messages.create(**(STORY | {"max_tokens": 80}), system=system, stop_sequences=["."])
    assert (told.stop_reason, told.stop_sequence) == ("stop_sequence", ".")
    begun = [*STORY["messages"], {"role": "assistant", "content": "Once upon a"}]
    goes_on = client.messages.create(**(STORY | {"messages": begun}), extra_body=GREEDY)
    assert goes_on.content[0].text.startswith(" ")


def test_tokens_are_counted_as_the_model_reads_them(client):
    told = client.messages.create(**STORY)
    counted = client.messages.count_tokens(model=MODEL, messages=STORY["messages"])
    assert counted.input_tokens == told.usage.input_tokens + told.usage.cache_read_input_tokens
    assert client.messages.count_tokens(model=MODEL, messages=STORY["messages"], tools=[TOOL]).input_tokens > 40


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "video"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "bash_20250124"),
        ({"tool_choice": {"type": "all"}}, "tool_choice"),
        ({"max_tokens": -2}, "max_tokens"),
        ({"temperature": 900}, "temperature"),
        ({"mcp_servers": [{"type": "url", "url": "http://x"}]}, "mcp_servers"),
        ({"compaction": {"type": "summarize"}}, "compaction"),
        ({"n": 2}, "field n "),
        ({"logprobs": True}, "field logprobs "),
        ({"min_p": 9}, "min_p"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config"),
        ({"messages": [{"role": "system", "output_config": {}}]}, "messages[0].content"),
        ({"messages": [change("tool_addition", type="tool_reference", name="unknown")]}, "'unknown'"),
        ({"messages": [change("tool_removal", type="mcp_toolset_reference", server_name="x")]}, "mcp_toolset"),
    ],
)
def test_errors_have_the_form_of_the_protocol(server, fields, sentence):
    answer = server.http.post("/v1/messages", json=STORY | fields)
    body = answer.json()
    assert (answer.status_code, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
    assert sentence in body["error"]["message"]


# What the tool runner of @anthropic-ai/sdk 1.14.0 sends first.
RUNS_TOOLS = (
    b'{"model":"ember-q8_0","max_tokens":80,"temperature":0,"tools":[{"type":"custom","name":"get_weather",'
    b'"description":"Get the weather in a city.","input_schema":{"type":"object","properties":'
    b'{"city":{"type":"string"}},"required":["city"]}}],"messages":[{"role":"user",'
    b'"content":"What is the weather in Paris?"}],"thread":{"type":"create"},"stream":false}'
)


def test_a_client_is_told_by_the_code_it_looks_for_that_no_thread_is_kept(server):
    headers = {"content-type": "application/json", "anthropic-beta": "message-threads-2026-08-12"}
    answer = server.http.post("/v1/messages", content=RUNS_TOOLS, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", "thread")
    assert error["details"]["error_code"] == "thread_unsupported_request", "it then sends the same without a thread"
    again = json.loads(RUNS_TOOLS) | {"thread": None}
    message = server.http.post("/v1/messages", json=again, headers=headers).json()
    assert message["content"][-1]["input"] == {"city": "Paris"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"grammar": 'root ::= "yes"'}, ("yes", "end_turn")),
        ({"stop": ["ime"]}, ("Once upon a t", "stop_sequence")),
        ({"max_tokens": None, "max_completion_tokens": 3}, ("Once upon a", "max_tokens")),
        ({"max_tokens": 3, "n": 1, "service_tier": "standard_only", "container": "c"}, ("Once upon a", "max_tokens")),
    ],
)
def test_fields_of_a_chat_count_beside_a_messages_own(server, fields, expected):
    messages = [{"role": "user", "content": "Tell me a story"}]
    answer = server.http.post("/v1/messages", json=STORY | GREEDY | {"messages": messages} | fields).json()
    assert (answer["content"][0]["text"], answer["stop_reason"]) == expected


def test_a_wrong_key_is_an_authentication_error_and_a_foreign_page_is_refused(server):
    wrong = httpx.post(f"{server.url}/v1/messages", json=STORY, headers={"x-api-key": "wrong"})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")
    right = httpx.post(f"{server.url}/v1/messages", json=STORY, headers={"x-api-key": server.process.api_key})
    assert right.status_code == 200
    page = server.http.post("/v1/messages", json=STORY, headers={"Origin": "https://pages.example"})
    assert (page.status_code, page.json()["error"]["type"]) == (403, "permission_error")


FORM = {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"const": 7}}, "required": ["a"]}}
FORM["schema"]["additionalProperties"] = False


@pytest.mark.parametrize("how", [{"output_config": {"format": FORM, "effort": "max"}}, {"output_format": FORM}])
def test_a_message_has_the_form_that_is_asked_for(server, how):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 40, **how}
    answer = server.http.post("/v1/messages", json=body).json()
    assert json.loads(answer["content"][0]["text"]) == {"a": 7}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "fox"}]}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "fox"}},
        {"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": "fox"}]},
    ],
)
def test_documents_of_text_are_read(server, block):
    said = [{"role": "user", "content": [block, {"type": "text", "text": "Hi"}]}]
    with_it = server.http.post("/v1/messages/count_tokens", json={"messages": said}).json()["input_tokens"]
    plain = [{"role": "user", "content": "Hi"}]
    assert with_it > server.http.post("/v1/messages/count_tokens", json={"messages": plain}).json()["input_tokens"]


def test_a_conversation_that_began_at_anthropic_goes_on_here(server):
    searched = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "fox"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}},
        {"type": "mcp_tool_use", "id": "m1", "name": "look", "server_name": "there", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "A fox."},
        {"type": "mcp_tool_listing", "mcp_server_name": "there", "tools": []},
        {"type": "fallback", "to": {"model": "another"}},
        {"type": "compaction", "content": None, "encrypted_content": "x"},
    ]

    def count(*blocks: dict) -> int:
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": list(blocks)}]
        body = {"messages": [*turns, {"role": "user", "content": "And?"}], "max_tokens": 2}
        assert server.http.post("/v1/messages", json=body).status_code == 200
        return server.http.post("/v1/messages/count_tokens", json=body).json()["input_tokens"]

    said = {"type": "text", "text": "A fox."}
    assert count(*searched, said) == count({"type": "compaction", "content": "A fox."}) == count(said)
    assert count(*searched) == count() < count(said)


def test_tools_come_and_go_in_the_middle_of_a_conversation(server):
    hi, roll = {"role": "user", "content": "Hi"}, {"name": "roll_dice", "input_schema": {"type": "object"}}
    removal = change("tool_removal", type="tool_reference", name="get_weather")
    addition = change("tool_addition", type="tool_reference", name="get_weather")
    definition = change("tool_addition", type="tool_definition", definition=roll)
    summary = {
        "type": "compaction",
        "content": "So far.",
        "tool_changes": [*removal["content"], *definition["content"]],
    }
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}

    def offered(*messages: dict) -> list[str]:
        body = {"messages": [hi, *messages], "tools": [TOOL, search]}
        return [tool.function.name for tool in MessageBody.model_validate(body).chat().tools or ()]

    assert offered() == offered(removal, addition) == ["get_weather"]
    assert offered(definition) == ["get_weather", "roll_dice"]
    assert offered(removal) == []
    assert offered({"role": "assistant", "content": [summary]}) == ["roll_dice"]
    body = {"messages": [hi, removal, definition], "tools": [TOOL], "tool_choice": {"type": "any"}, "max_tokens": 60}
    (block,) = server.http.post("/v1/messages", json=body).json()["content"]
    assert (block["type"], block["name"]) == ("tool_use", "roll_dice")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tools": [{"type": "browser_toolset_20260801"}]}, "of the type browser_toolset_20260801, which runs"),
        ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "a"}]}, "of the type mcp_toolset, which runs elsewhere"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "The tool bash is of the type bash_20250124"),
        ({"tools": [{"input_schema": {"type": "object"}}]}, "Missing required field: tools[0].name"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]},
         "an image of the type file: send it in base64"),
    ],
)  # fmt: skip
def test_what_only_anthropic_has_is_refused_by_its_name(server, fields, words):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1} | fields
    refused = server.http.post("/v1/messages", json=body)
    assert (refused.status_code, words in refused.json()["error"]["message"]) == (400, True), refused.text


def test_a_message_of_the_system_may_be_for_one_turn_only_and_set_the_effort():
    def told(*turns: dict) -> tuple[int, object]:
        chat = MessageBody.model_validate({"messages": [{"role": "user", "content": "Hi"}, *turns]}).chat()
        return len(chat.messages), (chat.chat_template_kwargs or {}).get("reasoning_effort")

    later = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "And?"}]
    short = {"role": "system", "content": "Be brief.", "clear_at": "next_user_message"}
    effort = {"role": "system", "output_config": {"effort": "low"}}
    assert told(short, *later) == (3, None)
    assert told(*later, short) == (4, None)
    assert told(*later, effort) == (3, "low")
    assert told(effort, *later) == (3, None)


def test_thoughts_between_tools_are_over_their_results():
    def wants(content: object, kind: str) -> bool | None:
        said = [{"role": "user", "content": content}]
        return MessageBody.model_validate({"messages": said, "thinking": {"type": kind}}).chat().wants_thinking

    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]
    found = [(wants("Hi", kind), wants(result, kind)) for kind in ("between_tools", "enabled", "disabled", "adaptive")]
    assert found == [(False, True), (True, True), (False, False), (None, None)]


def test_half_of_a_surrogate_pair_in_the_input_of_a_tool_is_replaced():
    reply = MessageReply(SimpleNamespace(name="m", choices=[Choice()]))
    reply.events(ChoiceUpdate(0, pieces=[CallBegun("a", "f"), CallArguments(r'{"x": "\ud83d"}'), CallEnded()]))
    assert reply.message()["content"][0]["input"] == {"x": "\N{REPLACEMENT CHARACTER}"}
