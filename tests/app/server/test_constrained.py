"""Constrained replies over HTTP, with the client that editors and agents use."""

from __future__ import annotations

import json
import re

import openai
import pytest
from pydantic import BaseModel

from app.server.replies.constraints import loose
from tests.app.server.conftest import tool_calls_of

USER = [{"role": "user", "content": "Tell me about Otto."}]


class Address(BaseModel):
    street: str
    number: int


class Person(BaseModel):
    name: str
    age: int
    address: Address


def tool(name, strict=None, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "parameters": parameters | {"additionalProperties": False}}
    return {"type": "function", "function": function | ({"strict": strict} if strict is not None else {})}


# As guidance writes it.
YES_OR_NO = '%llguidance {}\n\nstart: z\nz[capture]: Z\n\nZ: "yes"\n     | "no"\n\n'
WEATHER = tool("get_weather", city={"type": "string", "maxLength": 20})
DICE = tool("roll_dice", sides={"enum": [6, 20]}, count={"type": "integer", "minimum": 1, "maximum": 4})


def test_json_mode_a_type_of_the_client_and_a_stream_are_constrained(server):
    for seed in range(3):
        answer = server.chat(temperature=0.9, seed=seed, max_tokens=400, response_format={"type": "json_object"})
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
        assert answer.choices[0].finish_reason == "stop"
    # pydantic's schemas have references and definitions.
    answer = server.client.chat.completions.parse(
        model="ember", messages=USER, response_format=Person, temperature=0, max_tokens=400
    )
    assert isinstance(answer.choices[0].message.parsed, Person)
    schema = {"name": "list", "schema": {"type": "array", "items": {"enum": ["tea", "jam"]}, "maxItems": 4}}
    form = {"type": "json_schema", "json_schema": schema | {"strict": "true"}}  # as in LM Studio's examples
    chunks = server.chat(stream=True, max_tokens=100, response_format=form)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert set(json.loads(text)) <= {"tea", "jam"}


@pytest.mark.parametrize(
    ("field", "pattern"),
    [
        ({"regex": "(yes|no)"}, "yes|no"),
        ({"grammar": 'root ::= "a" [0-9] | "b"'}, r"a[0-9]|b"),
        ({"grammar": 'start: /[a-c]{3}/ "!"'}, r"[a-c]{3}!"),
        ({"grammar": 'start: "a ::= " /[a-c]/'}, r"a ::= [a-c]"),
        ({"grammar": '# a number\nroot ::= ([0-9]{2})? "x"'}, r"([0-9]{2})?x"),
        ({"json_schema": {"type": "integer", "minimum": 1, "maximum": 9}}, r"[1-9]"),
        ({"response_format": {"type": "json_object", "schema": {"const": {"a": 1}}}}, r'\{\s*"a":\s*1\s*\}'),
        ({"response_format": {"type": "json_schema", "schema": {"const": {"a": 1}}}}, r'\{\s*"a":\s*1\s*\}'),
        # TGI's spelling, which huggingface_hub makes of any schema, and the one of its own example.
        ({"response_format": {"type": "json_object", "value": {"const": {"a": 1}}}}, r'\{\s*"a":\s*1\s*\}'),
        ({"response_format": {"type": "json", "value": {"const": {"a": 1}}}}, r'\{\s*"a":\s*1\s*\}'),
        ({"response_format": {"type": "json", "schema": {"const": {"a": 1}}}}, r'\{\s*"a":\s*1\s*\}'),
        # vLLM's spellings, as outlines and guidance send them, and SGLang's.
        ({"structured_outputs": {"json": {"const": {"a": 1}}, "whitespace_pattern": None}}, r'\{\s*"a":\s*1\s*\}'),
        ({"structured_outputs": {"json": '{"enum": [7]}'}}, "7"),
        ({"structured_outputs": {"regex": "[0-9]{3}"}}, "[0-9]{3}"),
        ({"structured_outputs": {"choice": ['oh "no"', "ja, \u00fcber\n"]}}, 'oh "no"|ja, \u00fcber\n'),
        (
            {
                "structured_outputs": {"grammar": YES_OR_NO},
                "guided_grammar": YES_OR_NO,
                "guided_decoding_backend": "guidance",
            },
            "yes|no",
        ),
        ({"guided_choice": ["tea"]}, "tea"),
        ({"ebnf": 'root ::= "a" | "b"'}, "a|b"),
    ],
)
def test_grammars_work_in_chats_and_completions(server, field, pattern):
    answer = server.chat(max_tokens=60, extra_body=field)
    assert re.fullmatch(pattern, answer.choices[0].message.content)
    completed = server.client.completions.create(model="ember", prompt="Once", max_tokens=60, extra_body=field)
    assert re.fullmatch(pattern, completed.choices[0].text)


@pytest.mark.parametrize(
    "asked",
    [
        *({"json": "{"}, {"json": "[" * 100_000}, {"choice": []}, {"choice": [1]}, {"choice": "yes"}, {"regex": 3}),
        {"regex": "a", "choice": ["a"], "grammar": 'start: "a"'},
        "json",
    ],
)
def test_a_form_of_vllm_s_that_is_none_is_refused(server, asked):
    answer = server.http.post("/v1/chat/completions", json={"messages": USER, "structured_outputs": asked})
    message = answer.json()["error"]["message"]
    assert (answer.status_code, "structured_outputs" in message or "regex" in message) == (400, True), message


@pytest.mark.parametrize("word", ["required", "any"])  # the second is Mistral's
def test_a_required_call_is_a_call_of_one_of_the_tools(server, word):
    asked = {"tools": [WEATHER, DICE], "tool_choice": word}
    answer = server.chat(extra_body=asked, temperature=1, n=3, max_tokens=300)
    for choice in answer.choices:
        assert (choice.finish_reason, choice.message.content or "") == ("tool_calls", "")
        for call in choice.message.tool_calls:
            arguments = json.loads(call.function.arguments)
            if call.function.name == "get_weather":
                assert len(arguments["city"]) <= 20
            else:
                assert call.function.name == "roll_dice"
                assert arguments["sides"] in (6, 20)
                assert 1 <= arguments["count"] <= 4


def test_a_function_without_parameters_is_called_without_arguments(server):
    for more in ({}, {"parameters": {}}, {"strict": True}):
        now = {"type": "function", "function": {"name": "now"} | more}
        answer = server.chat("What is the weather in Paris?", tools=[now], tool_choice="required", max_tokens=200)
        (call, *_) = answer.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments) == ("now", "{}")


@pytest.mark.parametrize("parameters", [{"properties": {"a": {"enum": [1]}}, "required": ["a"]}, {"minProperties": 0}])
def test_the_arguments_of_a_call_are_an_object_whatever_the_schema_leaves_out(server, parameters):
    lax = {"type": "function", "function": {"name": "lax", "parameters": parameters}}
    answer = server.chat("Tell me a number.", tools=[lax], tool_choice="required", max_tokens=300, seed=2)
    (call, *_) = answer.choices[0].message.tool_calls
    assert isinstance(json.loads(call.function.arguments), dict)


# As tools of MCP servers and zod's records have it, and llguidance does not.
LOOSELY = {
    "a": {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "string"}},
    "b": {"type": "array", "items": {"type": "string", "pattern": "^(?!x).*$"}, "uniqueItems": True, "maxItems": 2},
    "c": {"type": "string", "format": "google-datetime"},
    "d": {"oneOf": [{"type": "object", "properties": {name: {"type": "string"}}} for name in "ef"]},
}


def test_a_tool_that_is_not_strict_binds_by_what_of_its_schema_can_be_followed(server):
    asked = {"tool_choice": "required", "max_tokens": 1}
    answer = server.chat(tools=[tool("list", n={"enum": [7]}, **LOOSELY)], **asked | {"max_tokens": 20})
    assert answer.choices[0].message.tool_calls[0].function.arguments.startswith('{"n": 7')
    with pytest.raises(openai.BadRequestError, match="uniqueItems"):
        server.chat(tools=[tool("list", strict=True, b={"type": "array", "uniqueItems": True})], **asked)
    server.chat(tools=[tool("list", strict=True, a=LOOSELY["a"])], **asked)
    named = tool("list", propertyNames={"enum": [7]})["function"]["parameters"]
    assert server.chat(extra_body={"json_schema": named}).choices[0].message.content == '{"propertyNames": 7}'


OPEN = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schema", "is_closed"),
    [
        (OPEN, True),
        ({"type": ["object", "null"], "properties": {}}, True),
        ({"anyOf": [OPEN, {"$ref": "#/$defs/other"}], "$defs": {"other": OPEN}}, True),
        (OPEN | {"additionalProperties": True}, False),
        (OPEN | {"required": ["n", "m"]}, False),
        ({"allOf": [OPEN, {"type": "object", "properties": {"m": {"enum": [1]}}}]}, False),
        (OPEN | {"anyOf": [{"properties": {"m": {}}}]}, False),
        (OPEN | {"dependencies": {"n": {"properties": {"m": {}}}}}, False),
    ],
)
def test_an_object_that_is_not_strict_has_the_properties_that_are_listed(server, schema, is_closed):
    bound = loose(schema)
    written = {name: part for name, part in bound.items() if name != "x-guidance"}
    assert (written != schema) is is_closed
    fields = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    more = server.chat("Name a person.", temperature=1, n=8, max_tokens=60, seed=4, extra_body=fields)
    for choice in more.choices:
        if choice.finish_reason == "stop" and is_closed:
            assert set(json.loads(choice.message.content) or ()) <= {"n"}
    assert any(choice.finish_reason == "stop" for choice in more.choices) or not is_closed


def test_properties_that_are_named_as_parts_of_a_schema_are_still_properties():
    closed = OPEN | {"additionalProperties": False}
    for names in (("type", "properties", "required"), ("enum", "default"), ("properties", "if", "allOf", "$ref")):
        schema = {"type": "object", "properties": dict.fromkeys(names, OPEN)}
        assert loose(schema)["properties"] == dict.fromkeys(names, closed)
        assert loose({"$ref": "#/$defs/if", "$defs": schema["properties"]})["$defs"] == dict.fromkeys(names, closed)


@pytest.mark.parametrize("stream", [False, True])
def test_a_named_tool_is_called_once(server, stream):
    chosen = {"type": "function", "function": {"name": "roll_dice"}}
    answer = server.chat(tools=[WEATHER, DICE], tool_choice=chosen, max_tokens=300, stream=stream)
    if stream:
        (call,) = tool_calls_of(answer)
    else:
        (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "roll_dice"
    assert json.loads(call.function.arguments)["sides"] in (6, 20)


def test_only_allowed_tools_are_called_and_strict_ones_bind_the_arguments(server):
    some = {"mode": "required", "tools": [{"type": "function", "function": {"name": "roll_dice"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": some}
    answer = server.chat("What is the weather in Paris?", tools=[WEATHER, DICE], tool_choice=choice, max_tokens=300)
    assert {call.function.name for call in answer.choices[0].message.tool_calls} == {"roll_dice"}
    strict = tool("get_weather", strict=True, town={"enum": ["Oslo", "Lima"]})
    answer = server.chat("What is the weather in Paris?", tools=[strict], max_tokens=200)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments)["town"] in ("Oslo", "Lima")
    told = server.chat("Tell me a story about a fox.", tools=[strict], max_tokens=30)
    assert told.choices[0].message.content
    assert not told.choices[0].message.tool_calls


def test_beside_a_form_of_the_answer_tools_are_called_or_the_answer_has_it(server):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}}
    for strict in (None, True):  # as agents send their tools
        more = {"tools": [tool("get_weather", strict, city={"type": "string"})], "response_format": form}
        called = server.chat("What is the weather in Paris?", max_tokens=200, **more).choices[0]
        assert (called.finish_reason, called.message.content) == ("tool_calls", None)
        assert "city" in json.loads(called.message.tool_calls[0].function.arguments)
        tokens = server.http.post("/tokenize", json={"content": "<tool_call>"}).json()["tokens"]
        no_call = {str(token): -100 for token in tokens}  # the toy calls whatever is asked
        answer = server.chat("Tell me a number.", max_tokens=200, logit_bias=no_call, **more).choices[0]
        assert json.loads(answer.message.content).keys() == {"n"}
        told = server.chat("What is the weather in Paris?", max_tokens=200, tool_choice="none", **more).choices[0]
        assert json.loads(told.message.content).keys() == {"n"}
        # The model is told of the form: it would not begin with a brace by itself, and rather call again.
        for first in ("user", "system"):
            messages = [{"role": first, "content": "Be brief."}, *USER]
            shown = server.http.post("/apply-template", json={"messages": messages, **more}).json()["prompt"]
            assert (
                f"Be brief.\n\nIf you call no tool, answer with JSON that follows this schema:\n{json.dumps(schema)}"
                in shown
            )


# Wherever a reply is cut, its parser tells calls from text: test_real_templates.py.
@pytest.mark.parametrize("n_tokens", [3, 8, 20])
def test_a_call_that_is_cut_is_never_shown_as_text(server, n_tokens):
    answer = server.chat(tools=[WEATHER, DICE], tool_choice="required", temperature=1, n=8, max_tokens=n_tokens)
    for choice in answer.choices:
        calls = choice.message.tool_calls or []
        assert not choice.message.content
        assert {call.function.name for call in calls} <= {"get_weather", "roll_dice"}
        assert choice.finish_reason == "length" or len(calls) > 0
    named = [choice for choice in answer.choices if choice.message.tool_calls]
    assert named or n_tokens < 20, "a call with a name is given as far as it came"
    chunks = list(server.chat("What is the weather in Paris?", tools=[WEATHER], stream=True, max_tokens=n_tokens))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ""
    assert chunks[-1].choices[0].finish_reason in ("length", "tool_calls")


def form(**fields: object) -> dict:
    return {"response_format": {"type": "json_schema"} | fields}


def test_a_stop_string_in_a_call_leaves_it_unfinished_and_shows_no_marker(server):
    asked = {"tools": [WEATHER], "temperature": 0, "max_tokens": 60}
    for stop, why, arguments in (
        ("Paris", "stop", '{"city": "'),
        ("</tool_call>", "tool_calls", '{"city": "Paris"}'),
        ('"name"', "stop", None),
    ):
        choice = server.chat("What is the weather in Paris?", stop=[stop], **asked).choices[0]
        calls = [call.function.arguments for call in choice.message.tool_calls or ()]
        assert (choice.finish_reason, calls) == (why, [arguments] if arguments else [])
        assert not choice.message.content


SHELL_FORM = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /[^\\n]+/"}}
SHELL = {"name": "shell", "description": "Runs a line.", "format": SHELL_FORM}


@pytest.mark.parametrize("n_tokens", [300, 20])
@pytest.mark.parametrize("chosen", ["required", {"type": "custom", "custom": {"name": "shell"}}])
def test_a_tool_of_free_text_is_called_with_text_whole_or_cut_and_streamed_alike(server, chosen, n_tokens):
    asked = {"tools": [{"type": "custom", "custom": SHELL}], "tool_choice": chosen, "max_tokens": n_tokens}
    whole = server.chat("Note: buy milk.", **asked).choices[0]
    call = whole.message.tool_calls[0].to_dict()
    assert (call["type"], call["custom"]["name"]) == ("custom", "shell")
    assert whole.finish_reason == ("length" if n_tokens == 20 else "tool_calls")
    assert call["custom"]["input"]
    assert "{" not in call["custom"]["input"]
    chunks = [chunk.to_dict() for chunk in server.chat("Note: buy milk.", stream=True, **asked)]
    pieces = [piece for one in chunks for made in one["choices"] for piece in made["delta"].get("tool_calls", ())]
    texts = [one.to_dict()["custom"]["input"] for one in whole.message.tool_calls]
    assert [piece["index"] for piece in pieces] == [i for i in range(len(texts)) for _ in (0, 1)]
    assert {(begun["type"], *begun["custom"].items()) for begun in pieces[::2]} == {
        ("custom", ("name", "shell"), ("input", ""))
    }
    assert [said["custom"] for said in pieces[1::2]] == [{"input": text} for text in texts]
    turns = [
        {"role": "user", "content": "Note: buy milk."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "done"},
    ]
    sent = server.http.post("/apply-template", json={"messages": turns, "tools": asked["tools"]}).json()["prompt"]
    assert json.dumps(call["custom"]["input"])[1:-1] in sent


def choice(tool_choice: object, *tools: dict) -> dict:
    return {"tool_choice": tool_choice, "tools": list(tools or [DICE])}


TEXT_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}
LOOKS = {"type": "string", "pattern": "^(?!x)[a-c]{3}$"}


def test_a_schema_that_is_not_strict_is_followed_as_far_as_it_can_be(server):
    schema = {"type": "object", "properties": {"a": LOOKS, "b": {"enum": [7]}}, "required": ["a", "b"], "not": {}}
    schema["additionalProperties"] = False
    for fields in (
        {"json_schema": schema},
        form(json_schema={"name": "x", "schema": schema, "strict": False}),
        form(json_schema={"name": "x", "schema": schema}) | {"tools": [DICE]},
    ):
        answer = server.chat("Hello", max_tokens=60, extra_body=fields).choices[0].message
        assert answer.tool_calls or re.fullmatch(r'\{\s*"a":\s*"[a-c]{3}",\s*"b":\s*7\s*\}', answer.content), answer


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        (form(type="yaml"), "response_format.type", "json_object"),
        (form(type="json_schema", value={"name": "x", "schema": {"const": 1}}), "response_format.value", "not known"),
        (form(), "response_format", "needs"),
        (form(type="text", schema={}), "response_format", "takes no schema"),
        (form(json_schema={"name": "x", "schema": {"type": "nope"}}), "response_format", "Invalid type: nope"),
        (form(json_schema={"name": "x", "schema": 3}), "response_format.json_schema.schema", "be a JSON object or"),
        ({"regex": "(("}, "regex", "unclosed group"),
        ({"regex": ""}, "regex", "empty"),
        ({"grammar": "root ::= x"}, "grammar", "Rule 'x' not found"),
        (form(json_schema={"name": "x", "schema": {"not": {}}, "strict": True}), "response_format", "Unimplemented"),
        (form(json_schema={"name": "x", "schema": LOOKS, "strict": "true"}), "response_format", '"^(?!x)[a-c]{3}$"'),
        (choice("auto", tool("f", strict=True, x=LOOKS)), "tools", "looks around"),
        ({"guided_json": 3}, "guided_json", "guided_json must be a JSON schema."),
        ({"guided_choice": []}, "guided_choice", "guided_choice must be a list of texts."),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "must be a JSON schema."),
        ({"json_schema": 3}, "json_schema", "json_schema must be a JSON object or true or false."),
        ({"regex": "a", "grammar": 'root ::= "a"'}, "grammar", "regex and grammar cannot be followed both"),
        ({"tool_choice": "required"}, "tool_choice", "needs tools"),
        (choice("sometimes"), "tool_choice", "required"),
        (choice({"type": "function", "function": {"name": "fly"}}), "tool_choice", "'fly', which is not among"),
        (choice({"type": "function", "name": "roll_dice"}), "tool_choice.function", "Missing required field: tool_"),
        (choice({"type": "custom"}), "tool_choice", "a choice of the type custom needs the field custom with a name"),
        (choice({"type": "custom", "custom": {"name": "fly"}}), "tool_choice", "'fly', which is not among"),
        (choice("auto", {"type": "custom", "custom": {"name": "f", "format": 3}}), "tools", "and its format an object"),
        (choice("auto", {"type": "custom", "name": "f"}), "tools[0]", "a tool of the type custom needs the field"),
        (choice("auto", {"type": "custom", "custom": {"name": ""}}), "tools[0]", "needs the field custom with a name"),
        (choice("auto", {"type": "custom", "custom": SHELL | {"format": {"type": "grammar"}}}), "tools", "definition"),
        (choice({"type": "allowed_tools"}), "tool_choice", "needs a mode and a list of some of the tools."),
        (choice("required", TEXT_TOOL), "tools", "The parameters of the function f must be of type object."),
        (choice("auto", tool("f", strict=True, x={"type": "nope"})), "tools", "The form of the tools cannot be"),
        ({"json_schema": {"type": "nope"}, "tools": [DICE]}, "json_schema", "Invalid type: nope"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_field(server, fields, param, says):
    body = {"model": "ember", "messages": USER, "max_tokens": 5} | fields
    answer = server.http.post("/v1/chat/completions", json=body)
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert says in error["message"]
    assert error["param"] == param, error


def test_a_schema_that_is_nested_without_end_or_huge_is_refused_and_the_next_request_works(server):
    deep = '{"items":' * 3000 + "{}" + "}" * 3000
    body = '{"model": "ember", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}], "json_schema": '
    answer = server.http.post(
        "/v1/chat/completions", content=f"{body}{deep}}}", headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert len(answer.json()["error"]["message"]) < 700
    steps = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(3_000)} | {"d3000": {"const": 7}}
    deep_schema = {"$ref": "#/$defs/d0", "$defs": steps}
    assert server.chat(max_tokens=5, extra_body={"json_schema": deep_schema}).choices[0].message.content == "7"
    huge = {"enum": [str(number) for number in range(30_000)]}
    with pytest.raises(openai.BadRequestError, match="at most 131,072"):
        server.chat(max_tokens=5, extra_body={"json_schema": huge})
    assert loose(huge) is huge, "what is refused is not gone through"
    assert server.chat(max_tokens=5, extra_body={"regex": "ok"}).choices[0].message.content == "ok"
