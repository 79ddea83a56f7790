"""Chat completions: the real client, a real socket, the real engine."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import openai
import pytest

from tests.app.server.conftest import MODEL, WEATHER, tool_calls_of

TOOLS = [WEATHER]


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def text_of(stream) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def test_a_chat_is_answered_with_text_usage_and_timings(server):
    answer = server.chat()
    choice = answer.choices[0]
    assert (choice.message.role, choice.finish_reason) == ("assistant", "length")
    assert "fox" in choice.message.content
    assert (answer.object, answer.model) == ("chat.completion", MODEL)
    assert answer.system_fingerprint.startswith("fp_")
    assert answer.usage.completion_tokens == 24
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 24
    assert 0 <= answer.usage.prompt_tokens_details.cached_tokens < answer.usage.prompt_tokens
    timings = answer.timings
    assert set(timings) == {
        "ttft_ms", "prefill_ms", "decode_ms", "total_ms", "queued_ms", "prefill_tokens", "prefill_per_second",
        "decode_tokens", "decode_per_second", "cached_tokens", "cache_miss", "drafted_tokens", "accepted_tokens",
        "bytes_per_token", "peak_share", "limited_by", "speedup", "seed", "kv_type",
        # The same, in the words of llama-server.
        "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_n", "predicted_ms",
        "predicted_per_token_ms", "predicted_per_second", "draft_n", "draft_n_accepted",
    }  # fmt: skip
    assert timings["decode_tokens"] == timings["predicted_n"] == 24
    assert timings["seed"] == 1
    assert 0 < timings["ttft_ms"] <= timings["total_ms"]
    # The first token costs no step of its own, so 23 steps took this time.
    assert timings["predicted_per_second"] == timings["decode_per_second"] > 0
    assert timings["predicted_per_token_ms"] == pytest.approx(timings["predicted_ms"] / 23, abs=0.001)
    assert 0 <= timings["accepted_tokens"] <= timings["drafted_tokens"]
    assert timings["bytes_per_token"] > 1_000_000


@pytest.mark.parametrize(
    ("path", "limit", "answered"),
    [
        ("/v1/chat/completions", {"max_tokens": 0}, {"content": "", "finish_reason": "length"}),
        ("/v1/chat/completions", {"n_predict": 0, "speed": "deep"}, {"content": "", "finish_reason": "length"}),
        ("/v1/chat/completions", {"max_tokens": 0, "stream": True}, {"finish_reason": "length"}),
        ("/v1/messages", {"max_tokens": 0}, {"content": [], "stop_reason": "max_tokens"}),
        ("/v1/messages", {"max_tokens": 0, "stream": True}, {"stop_reason": "max_tokens"}),
        ("/v1/responses", {"max_output_tokens": 0}, {"output": [], "reason": "max_output_tokens"}),
        ("/api/chat", {"options": {"num_predict": 0}, "stream": False}, {"content": "", "done_reason": "length"}),
        ("/api/v1/chat", {"max_output_tokens": 0}, {"output": [], "total_output_tokens": 0}),
    ],
)
def test_a_reply_of_no_tokens_reads_the_messages_ahead(server, path, limit, answered):
    question = f"Why is the sea blue? So asks one at {path} with {limit}."
    said = {"input": question} if path in ("/v1/responses", "/api/v1/chat") else {"messages": user(question)}
    answer = server.http.post(path, json=said | limit | {"model": MODEL})
    assert answer.status_code == 200, answer.text
    told = json.dumps(answer.json()) if "stream" not in limit or not limit["stream"] else answer.text
    told = told.replace('":"', '": "')  # as streams write it
    assert all(json.dumps({name: value})[1:-1] in told for name, value in answered.items()), told
    usage = server.chat(question, max_tokens=1).usage
    assert usage.prompt_tokens_details.cached_tokens >= usage.prompt_tokens - 1


def test_a_stream_gives_the_same_text_as_the_whole_answer(server):
    whole = server.chat().choices[0].message.content
    chunks = list(server.chat(stream=True, stream_options={"include_usage": True}))
    assert text_of(chunks) == whole
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    last_choice, usage = chunks[-2], chunks[-1]
    assert last_choice.choices[0].finish_reason == "length"
    assert last_choice.timings["decode_tokens"] == 24
    assert usage.choices == []
    assert usage.usage.completion_tokens == 24
    # As at llama-server: OpenAI's null would hide the text from programs that look for the key, as Strands does.
    assert not any("usage" in chunk.model_fields_set for chunk in chunks[:-1])


@pytest.mark.parametrize("more", [{}, {"logprobs": True}, {"extra_body": {"timings_per_token": True}}])
def test_each_chunk_has_the_usage_so_far_where_that_is_asked_for_as_at_vllm(server, more):
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = list(server.chat(stream=True, stream_options=options, **more))
    counts = [chunk.usage.completion_tokens for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[-2:] == [24, 24]
    (n_prompt,) = {chunk.usage.prompt_tokens for chunk in chunks}
    assert {chunk.usage.total_tokens - chunk.usage.completion_tokens for chunk in chunks} == {n_prompt}
    alone = server.chat(stream=True, stream_options={"continuous_usage_stats": True}, **more)
    assert not any("usage" in chunk.model_fields_set for chunk in alone)


@pytest.mark.parametrize("more", [{}, {"logprobs": True}])
def test_each_chunk_says_how_many_tokens_have_come_where_that_is_asked_for(server, more):
    chunks = list(server.chat(stream=True, extra_body={"timings_per_token": True}, **more))
    counts = [chunk.timings["decode_tokens"] for chunk in chunks if chunk.choices[0].delta.content]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert counts[-1] == chunks[-1].timings["decode_tokens"] == 24
    # As llama-server's clients show it while a reply comes.
    late, last = chunks[-2].timings, chunks[-1].timings
    assert [late[name] for name in ("predicted_n", "cache_n", "prompt_n")] == [24, last["cache_n"], last["prompt_n"]]
    assert late["predicted_per_second"] > 0
    assert {chunk.timings["ttft_ms"] for chunk in chunks if chunk.choices[0].delta.content} == {last["ttft_ms"]}
    assert not any(hasattr(chunk, "timings") for chunk in list(server.chat(stream=True))[:-1])


def test_the_bytes_of_a_stream_are_server_sent_events_that_end_with_done(server):
    body = {"messages": [{"role": "user", "content": "Count to 3."}], "max_tokens": 5, "stream": True}
    answer = server.http.post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = answer.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all("usage" not in json.loads(event.removeprefix("data: ")) for event in events[:-2])


def test_the_asynchronous_client_runs_streams_side_by_side(server):
    async def run() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.process.api_key) as client:

            async def one(name: str) -> str:
                messages = [{"role": "user", "content": f"Tell me a story about {name}."}]
                fields = {"max_tokens": 20, "temperature": 0, "stream": True}
                stream = await client.chat.completions.create(model="ember", messages=messages, **fields)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

            return await asyncio.gather(*(one(name) for name in ("a fox", "a bear", "a cat", "a boat")))

    texts = asyncio.run(run())
    assert all(texts)
    assert len(set(texts)) > 1


@pytest.mark.parametrize("seed", [40, 2**64 - 1])
def test_n_choices_have_seeds_that_count_up_also_as_a_stream(server, seed):
    asked = {"n": 3, "temperature": 1.0, "seed": seed}
    answer, chunks = server.chat(**asked), list(server.chat(stream=True, **asked))
    alone = [server.chat(temperature=1.0, seed=(seed + i) % 2**64).choices[0].message.content for i in range(3)]
    assert len(set(alone)) > 1
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.message.content for choice in answer.choices] == alone
    assert answer.usage.completion_tokens == 72
    for index in range(3):
        mine = [chunk.choices[0] for chunk in chunks if chunk.choices[0].index == index]
        assert (mine[0].delta.role, mine[-1].finish_reason) == ("assistant", "length")
        assert "".join(choice.delta.content or "" for choice in mine) == alone[index]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_is_found_across_token_borders(server, stream):
    question = "What is speculative decoding?"  # its answer has no near-ties
    whole = server.chat(question, max_tokens=40).choices[0].message.content
    cut = whole.index(" draft") + 3  # begins inside one token and ends inside the next
    stop = whole[cut : cut + 8]
    answer = server.chat(question, max_tokens=40, stop=["never there", stop], stream=stream)
    chunks = list(answer) if stream else []
    text = text_of(chunks) if stream else answer.choices[0].message.content
    assert text == whole[: whole.index(stop)]
    assert (chunks[-1] if stream else answer).choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_name_each_token_with_its_alternatives(server, stream):
    answer = server.chat(max_tokens=6, logprobs=True, top_logprobs=3, stream=stream)
    if stream:
        chunks = list(answer)
        text = text_of(chunks)
        tokens = [token for chunk in chunks if chunk.choices[0].logprobs for token in chunk.choices[0].logprobs.content]
    else:
        text, tokens = answer.choices[0].message.content, answer.choices[0].logprobs.content
    assert len(tokens) == 6
    assert "".join(token.token for token in tokens) == text
    for token in tokens:
        assert bytes(token.bytes).decode() == token.token
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob
        assert token.top_logprobs[0].token == token.token  # greedy takes the most likely one


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_comes_as_a_tool_call(server, stream):
    fields = {"tools": TOOLS, "tool_choice": "auto", "max_tokens": 80, "parallel_tool_calls": False}
    answer = server.chat("What is the weather in Paris?", stream=stream, **fields)
    if stream:
        chunks = list(answer)
        (call,) = tool_calls_of(chunks)
        reason, text = chunks[-1].choices[0].finish_reason, text_of(chunks)
    else:
        choice = answer.choices[0]
        call, reason, text = choice.message.tool_calls[0], choice.finish_reason, choice.message.content
    assert call.id.startswith("call_")
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    assert reason == "tool_calls"
    assert not text


def test_the_result_of_a_tool_goes_back_to_the_model(server):
    asked = {"role": "user", "content": "What is the weather in Paris?"}
    call = server.chat(asked["content"], tools=TOOLS, max_tokens=80).choices[0].message

    def answer(result: str | None) -> Any:
        told = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": result}
        return server.client.chat.completions.create(
            model="ember", messages=[asked, call.model_dump(), told], tools=TOOLS, temperature=0, max_tokens=60
        )

    assert answer('{"weather": "sunny"}').choices[0].message.content
    assert answer(None).usage.prompt_tokens == answer("").usage.prompt_tokens, "a tool may return nothing"
    forbidden = server.chat(asked["content"], tools=TOOLS, tool_choice="none", max_tokens=40)
    assert forbidden.choices[0].message.tool_calls is None


def test_what_comes_from_the_cache_is_told_and_where_a_prompt_parts_from_an_earlier_one(server):
    ask = "A prompt that nobody else sends: {}.".format
    server.chat(ask("thirteen wooden boats"))
    again = server.chat(ask("thirteen wooden boats"))
    assert again.timings["cached_tokens"] == again.usage.prompt_tokens_details.cached_tokens > 0
    assert again.timings["cache_miss"] is None
    other = server.chat(ask("thirteen golden coins"))
    miss = other.timings["cache_miss"]
    assert miss["position"] == other.timings["cached_tokens"]
    assert "boats" in miss["stored"]
    assert "coins" in miss["prompt"]
    assert other.usage.prompt_tokens_details.cache_miss == miss


USER = [{"role": "user", "content": "Hi"}]
SAID = {"role": "assistant", "content": "Once upon a time"}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
THOUGHT = {"role": "assistant", "content": "", "reasoning_content": "Hm"}
GO_ON_THINKING = {"continue_final_message": "reasoning_content"}
BOTH_ENDS = {"continue_final_message": True, "add_generation_prompt": True}


@pytest.mark.parametrize(
    ("fields", "param", "code", "says"),
    [
        ({"frobnicate": 1}, "frobnicate", "unknown_parameter", ""),
        ({"moderation": {"model": "m"}}, "moderation", "unknown_parameter", ""),
        ({"messages": []}, "messages", "array_below_min_length", "messages must have 1 or more entries, not 0."),
        ({"messages": None}, "messages", "missing_required_parameter", ""),
        ({"messages": "Hi"}, "messages", "invalid_value", "messages must be a list."),
        ({"messages": ["Hi"]}, "messages[0]", "invalid_value", "messages[0] must be a JSON object."),
        ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages[0].role", "invalid_value", ""),
        ({"messages": [{"role": "user"}]}, "messages[0]", "invalid_value", ""),
        ({"messages": [IMAGE]}, "messages[0].content[0]", "images_not_supported", ""),
        ({"max_tokens": -2}, "max_tokens", "integer_below_min_value", "max_tokens must be 0 or more, not -2."),
        ({"max_completion_tokens": -2}, "max_completion_tokens", "integer_below_min_value", ""),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens", "invalid_value", ""),
        ({"temperature": "warm"}, "temperature", "invalid_value", ""),
        ({"temperature": -1}, "temperature", "invalid_value", ""),
        ({"top_p": 7}, "top_p", "invalid_value", "top_p must be between 0.0 and 1.0, not 7.0."),
        ({"seed": 1.5}, "seed", "invalid_value", "seed must be a valid integer."),
        ({"stream": "yes"}, "stream", "invalid_value", "stream must be true or false."),
        ({"n": 0}, "n", "integer_below_min_value", ""),
        ({"n": 1000}, "n", "integer_above_max_value", "n must be 128 or less, not 1000."),
        ({"stop": ["x" * 1_025]}, "stop", "invalid_value", ""),
        ({"stop": ["x"] * 65}, "stop", "array_above_max_length", ""),
        ({"logit_bias": 1}, "logit_bias", "invalid_value", "logit_bias must be a JSON object."),
        ({"logit_bias": {"a": 1}}, "logit_bias", "invalid_value", ""),
        ({"logit_bias": {"99999": 1}}, "logit_bias", "invalid_value", ""),
        ({"logit_bias": {"9" * 5000: 1}}, "logit_bias", "invalid_value", ""),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "integer_above_max_value", ""),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value", ""),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", "missing_required_parameter", ""),
        ({"reasoning_effort": "huge"}, "reasoning_effort", "invalid_value", ""),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value", ""),
        ({"reasoning_budget": -2}, "reasoning_budget", "integer_below_min_value", ""),
        ({"continue_final_message": True}, "continue_final_message", "invalid_value", ""),
        ({"messages": [*USER, SAID], **BOTH_ENDS}, "continue_final_message", "invalid_value", ""),
        ({"messages": [*USER, SAID], **GO_ON_THINKING}, "continue_final_message", "invalid_value", ""),
        ({"messages": [*USER, THOUGHT], **GO_ON_THINKING}, "continue_final_message", "invalid_value", ""),
        ({"messages": [*USER, SAID], "continue_final_message": "x"}, "continue_final_message", "invalid_value", ""),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages[0].content", "invalid_value", ""),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_its_field(server, fields, param, code, says):
    body = json.dumps({"model": "ember", "messages": USER, "max_tokens": 1} | fields)
    answer = server.http.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    told = (answer.status_code, error["type"], error["param"], error["code"])
    assert told == (400, "invalid_request_error", param, code), error
    assert error["message"] == says or (not says and len(error["message"]) > 10)


HINTS = {
    "user": "me", "metadata": {"a": "b"}, "store": True, "verbosity": "low", "web_search_options": {},
    "prediction": {"type": "content", "content": "x"}, "reasoning_effort": "low", "reasoning_control": True,
    "chat_template_kwargs": {"nothing": 1}, "cache_prompt": True, "id_slot": 3, "keep_alive": "5m", "num_ctx": 4096,
    "stream_options": {"include_usage": True, "more": 1}, "prompt_cache_key": "k", "session_id": "s",
    "prompt_cache_options": {"mode": "implicit", "ttl": "30m"},
    "usage": {"include": True}, "functions": None, "guided_json": None, "skip_special_tokens": True, "min_tokens": 0,
    "length_penalty": 1.0, "use_beam_search": False, "backend_sampling": False, "samplers": ["top_k", "temperature"],
    "dynatemp_exponent": 1.0, "typ_p": 1.0, "t_max_prompt_ms": 500, "snippy": {"enabled": False},
    "service_tier": "scale", "parse_tool_calls": True, "safe_prompt": False, "models": ["other"], "route": "fallback",
    # What Open WebUI sends to all servers where a user has set it in the panel beside a chat.
    "num_batch": 512, "num_gpu": 0, "num_keep": 24, "num_thread": 2, "use_mlock": False, "use_mmap": True, "tfs_z": 1,
}  # fmt: skip


def test_hints_are_taken_and_change_nothing(server):
    plain = server.chat(max_tokens=8)
    told = server.chat(max_tokens=8, extra_body=HINTS)
    assert told.choices[0].message.content == plain.choices[0].message.content
    assert told.usage.prompt_tokens == plain.usage.prompt_tokens


HINTS_OF_ANY_TYPE = (
    *("cache_prompt", "id_slot", "keep_alive", "num_ctx", "prediction", "return_progress"),
    *("stream_options", "timings_per_token", "user", "verbose", "verbosity", "web_search_options"),
)


# They change nothing of a text that is no chat.
OF_CHATS = ("reasoning_effort", "chat_template_kwargs", "enable_thinking", "reasoning", "parallel_tool_calls")


@pytest.mark.parametrize("value", ["x", -5, 1.5, [], {"include_usage": "x"}])
def test_hints_of_a_wrong_type_ask_for_nothing(server, value):
    for path, fields, more in (
        ("/v1/chat/completions", {"messages": USER}, ("store", "metadata", "reasoning_control", "drafted_spans")),
        ("/v1/completions", {"prompt": "Hi"}, ("store", "metadata", *OF_CHATS)),
        ("/v1/responses", {"input": "Hi", "store": False}, ("metadata",)),
        ("/completion", {"prompt": "Hi"}, ()),
    ):
        limit = "max_output_tokens" if "input" in fields else "max_tokens"
        hints = dict.fromkeys((*HINTS_OF_ANY_TYPE, *more), value)
        answer = server.http.post(path, json=hints | fields | {limit: 1})
        assert answer.status_code == 200, answer.text


def test_messages_are_counted_as_llama_server_does_and_parts_are_text(server):
    def count(*messages: dict) -> int:
        return server.http.post("/chat/completions/input_tokens", json={"messages": messages}).json()["input_tokens"]

    def said(content: object, role: str = "assistant") -> dict:
        return {"role": role, "content": content}

    assert count(*USER) == server.chat(USER[0]["content"], max_tokens=1).usage.prompt_tokens
    refusal = [{"type": "refusal", "refusal": "No fox."}]
    assert count(*USER, said(refusal), *USER) == count(*USER, said("No fox."), *USER)
    parts = [{"type": "text", "text": "Who "}, {"type": "output_text", "text": "are you?", "annotations": []}]
    plain = count(said("Be brief.", "system"), said("Who are you?", "user"))
    assert plain == count(said("Be brief.", "developer"), said(parts, "user"))


@pytest.mark.parametrize("field", [{"functions": []}, {"skip_special_tokens": False}, {"min_tokens": 3}, {"top_a": 1}])
def test_what_other_servers_would_do_and_this_one_does_not_is_refused(server, field):
    error = server.http.post("/v1/chat/completions", json={"messages": USER, **field}).json()["error"]
    assert (error["param"], error["code"]) == (next(iter(field)), "unknown_parameter")


def test_a_least_number_of_tokens_is_met_where_the_end_is_ignored(server):
    """As benchmarks ask for it: llama-benchy, guidellm, aiperf."""
    body = {"min_tokens": 20, "max_tokens": 20, "ignore_eos": True, "return_token_ids": True, "cache_prompt": False}
    assert server.chat("Hi", extra_body=body).usage.completion_tokens == 20


def test_other_spellings_of_fields_are_taken(server):
    asked = {"messages": USER, "temperature": 0, "top_k": 20.0, "seed": 1.0}
    first = server.http.post("/v1/chat/completions", json={**asked, "max_tokens": 3.0, "repeat_penalty": 1.3}).json()
    others = {"n_predict": 3, "repetition_penalty": 1.3, "random_seed": asked.pop("seed")}
    second = server.http.post("/v1/chat/completions", json=asked | others).json()
    assert first["usage"]["completion_tokens"] == 3
    assert first["choices"][0]["message"] == second["choices"][0]["message"]
    assert second["timings"]["seed"] == 1
    drawn = [server.chat(max_tokens=1, seed=-1).timings["seed"] for _ in range(2)]
    assert len({*drawn, -1, 2**64 - 1}) == 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": USER, "max_tokens": 1.0, "thinking": {"type": "enabled", "budget_tokens": 9.0}}),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 1.0}),
        ("/v1/embeddings", {"input": "Hi", "dimensions": 8.0}),
        ("/api/embed", {"model": MODEL, "input": "Hi", "dimensions": 8.0}),
        ("/api/v1/chat", {"model": MODEL, "input": "Hi", "max_output_tokens": 1.0}),
        ("/completion", {"prompt": "Hi", "n_predict": 1.0}),
    ],
)
def test_a_whole_number_may_have_a_point_in_every_protocol(server, path, body):
    answer = server.http.post(path, json=body)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        ("/v1/chat/completions", {"messages": USER, "max_tokens": -1}, "finish_reason"),
        ("/v1/chat/completions", {"messages": USER, "max_completion_tokens": -1}, "finish_reason"),
        ("/v1/completions", {"prompt": "Once", "max_tokens": -1}, "finish_reason"),
        ("/v1/messages", {"messages": USER, "max_tokens": -1}, "stop_reason"),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": -1}, "status"),
        ("/api/v1/chat", {"model": MODEL, "input": "Hi", "max_output_tokens": -1}, "stats"),
        ("/completion", {"prompt": "Once", "n_predict": -1}, "stop_type"),
    ],
)
def test_minus_one_is_no_limit_in_every_protocol(server, path, body, end):
    answer = server.http.post(path, json=body | {"temperature": 0}).json()
    told = answer.get("choices", [answer])[0][end]
    assert told in ("stop", "end_turn", "completed", "eos") or told["total_output_tokens"] > 0


def test_messages_come_back_with_all_that_clients_put_into_them(server):
    answer = server.chat(max_tokens=8).choices[0].message.model_dump()
    more = {"provider_specific_fields": {"refusal": None}, "reasoning": "x", "reasoning_details": [{}], "id": "msg_1"}
    user = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}
    tool = {"type": "function", "cache_control": {}, "function": {"name": "f", "parameters": {}, "more": 1}}
    told = server.client.chat.completions.create(
        model=MODEL, messages=[user, answer | more, user | {"copilot_cache_control": {}}], tools=[tool], max_tokens=2
    )
    assert told.usage.completion_tokens


@pytest.mark.parametrize("name", ["ember", "openai/ember-q8_0", "ember-q8_0.gguf", "gpt-4o", "vendor/any-model"])
def test_any_name_is_answered_and_the_reply_says_by_whom(server, name):
    assert server.chat(model=name, max_tokens=1).model == MODEL


def test_the_assistants_last_message_is_continued(server):
    def ask(**fields):
        asked = {"messages": [*USER, SAID], "max_tokens": 6, "temperature": 0, **fields}
        return server.http.post("/v1/chat/completions", json=asked).json()

    template = server.http.get("/props").json()["chat_template"]
    assert "<|im_start|>" in template
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nOnce upon a time"
    by_hand = server.http.post("/completion", json={"prompt": prompt, "n_predict": 6, "temperature": 0}).json()
    assert ask()["choices"][0]["message"]["content"] == by_hand["content"]
    assert ask()["usage"]["prompt_tokens"] == by_hand["tokens_evaluated"]
    anew = ask(add_generation_prompt=True)
    assert anew["usage"]["prompt_tokens"] > by_hand["tokens_evaluated"]
    bare = ask(add_generation_prompt=False, continue_final_message=False)
    assert bare["usage"]["prompt_tokens"] < anew["usage"]["prompt_tokens"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_refused_with_both_numbers(server, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat("fox " * 3000, stream=stream)
    assert caught.value.code == "context_length_exceeded"
    assert "exceeds the available context size of 1024" in caught.value.message
    assert caught.value.body["n_ctx"] == 1024
    assert caught.value.body["n_prompt_tokens"] > 1024


def test_a_prompt_that_is_too_long_is_told_in_the_words_that_each_protocols_clients_look_for(server):
    long = "fox " * 3000
    answer = server.http.post("/completion", json={"prompt": long})
    assert answer.status_code == 400
    assert {"type": "exceed_context_size_error", "n_ctx": 1024}.items() <= answer.json()["error"].items()
    answer = server.http.post("/v1/messages", json={"max_tokens": 8, "messages": [{"role": "user", "content": long}]})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert re.fullmatch(r"prompt is too long: \d+ tokens > 1024 maximum", error["message"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_slot(server, stream):
    body = {"messages": USER, "ignore_eos": True, "seed": 1, "n": 1 if stream else 8, "stream": stream}
    if stream:
        with server.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            next(answer.iter_bytes())
    else:
        with pytest.raises(httpx.ReadTimeout), httpx.Client(headers=server.headers) as client:
            client.post(f"{server.url}/v1/chat/completions", json=body, timeout=0.3)
    server.wait_until(lambda state: state["active"] + state["queued"] == 0, seconds=5)
