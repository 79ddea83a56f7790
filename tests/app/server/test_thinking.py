"""Thoughts over HTTP: apart from the answer, within their budget, and before what a grammar binds.

The model's template is one of a thinking model whose markers, also those of calls, are special tokens: the text of a
reply has them only where its form needs them.
"""

from __future__ import annotations

import json

import ollama
import openai
import pytest

from app.server.calls.generation import collect
from app.server.chat.run import Choice
from app.server.replies.reply_format import ReplyFormat, Thinking
from app.server.replies.reply_parser import ReplyParser
from core.values.messages import Ended, FinishReason, Token
from tests.app.server.conftest import MODEL, RunningServer, tool_calls_of

OPEN, CLOSE = "<|fim_prefix|>", "<|fim_suffix|>"
TEMPLATE = """
{%- if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}\n
{%- if m.reasoning_content %}OPEN{{ m.reasoning_content }}CLOSE{% endif %}{{ m.content }}
{%- for c in m.tool_calls or () %}<|fim_middle|>{{ c.function | tojson }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant\n
{%- if enable_thinking is defined and not enable_thinking %}OPENCLOSE{% elif opens %}OPEN{% endif %}{% endif %}
""".strip().replace("OPEN", OPEN).replace("CLOSE", CLOSE)  # fmt: skip
USER = [{"role": "user", "content": "Hi"}]
CLOSED = {"additionalProperties": False}
DICE = {
    "type": "function",
    "function": {
        "name": "roll_dice",
        "parameters": {"type": "object", "properties": {"sides": {"enum": [6, 20]}}, "required": ["sides"]} | CLOSED,
    },
}


@pytest.fixture(scope="module")
def thinker(home, tmp_path_factory):
    template = tmp_path_factory.mktemp("thinker") / "template.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    options = ("--chat-template-file", str(template), "--chat-template-kwargs", '{"opens": true}')
    with RunningServer(*options, "--reasoning-budget", "15", "--parallel", "4") as running:
        yield running


@pytest.mark.parametrize("field", ["reasoning_budget", "thinking_budget_tokens", "thinking_budget"])
def test_thoughts_end_with_their_budget_and_come_apart_from_the_answer(thinker, field):
    for n_tokens in (1, 6):
        answer = thinker.chat(max_tokens=40, extra_body={field: n_tokens})
        message = answer.choices[0].message
        assert message.reasoning_content
        assert message.content
        assert OPEN not in message.content
        assert CLOSE not in message.reasoning_content + message.content
        read = thinker.http.post("/tokenize", json={"content": message.reasoning_content}).json()["tokens"]
        assert len(read) <= n_tokens
        assert answer.usage.completion_tokens_details.reasoning_tokens == len(read), "without the markers"


ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 6}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": USER, "max_tokens": 40, "reasoning": {"max_tokens": 6}}),
        ("/v1/chat/completions", {"messages": USER, "max_tokens": 40, **ENABLED}),
        ("/v1/messages", {"messages": USER, "max_tokens": 40, **ENABLED}),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 40, "reasoning_budget": 6}),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 40, "reasoning": {"max_tokens": 6}}),
        ("/api/chat", {"model": MODEL, "messages": USER, "stream": False, "options": {"reasoning_budget": 6}}),
        ("/api/v1/chat", {"model": MODEL, "input": "Hi", "max_output_tokens": 40, "reasoning_budget": 6}),
    ],
)
def test_a_budget_is_kept_in_every_protocol(thinker, path, body):
    told = thinker.http.post(path, json=body).json()
    said = told["choices"][0]["message"] if "choices" in told else told.get("message", {})
    thoughts = said.get("reasoning_content") or said.get("thinking") or ""
    for block in told.get("output") or told.get("content") or ():
        thoughts += block.get("thinking", "") if block["type"] == "thinking" else ""
        if block["type"] == "reasoning":
            thoughts += block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
    n_tokens = len(thinker.http.post("/tokenize", json={"content": thoughts}).json()["tokens"])
    assert 0 < n_tokens <= 6, told


def test_a_stream_tells_thoughts_apart_too(thinker):
    chunks = list(thinker.chat(stream=True, max_tokens=30, extra_body={"reasoning_budget": 8}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    kinds = [
        "reasoning" if getattr(delta, "reasoning_content", None) else "content"
        for delta in deltas
        if getattr(delta, "reasoning_content", None) or delta.content
    ]
    assert kinds == sorted(kinds, reverse=True)
    assert set(kinds) == {"reasoning", "content"}
    whole = thinker.chat(max_tokens=30, extra_body={"reasoning_budget": 8}).choices[0].message
    assert "".join(delta.content or "" for delta in deltas) == whole.content
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == whole.reasoning_content


def test_a_client_ends_the_thoughts_of_a_chat_that_runs(thinker):
    fields = {"reasoning_budget": -1, "reasoning_control": True, "ignore_eos": True}

    def control(chat_id: str) -> dict:
        body = {"id": chat_id, "action": "reasoning_end", "model": MODEL}
        answer = thinker.http.post("/v1/chat/completions/control", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    reasoning, content, ended = "", "", False
    with thinker.chat(stream=True, max_tokens=600, extra_body=fields) as chunks:
        for chunk in chunks:
            delta = chunk.choices[0].delta
            reasoning += getattr(delta, "reasoning_content", None) or ""
            content += delta.content or ""
            if reasoning and not ended:
                assert control(chunk.id) == {"success": True}
                ended = True
    assert content
    assert OPEN not in content
    assert CLOSE not in reasoning + content
    assert "is being answered" in control(chunk.id)["message"]
    with thinker.chat(stream=True, max_tokens=600, extra_body=fields | {"reasoning_control": False}) as chunks:
        told = next(control(chunk.id) for chunk in chunks if getattr(chunk.choices[0].delta, "reasoning_content", None))
    assert not told["success"]
    assert "reasoning_control" in told["message"]


def test_without_a_bound_the_model_thinks_as_long_as_it_likes(thinker):
    for fields in ({}, {"reasoning_effort": "high"}):
        choice = thinker.chat(max_tokens=20, extra_body=fields).choices[0]
        assert choice.message.content, "the server's own bound"
    for fields in ({"reasoning_budget": -1}, {"thinking_budget_tokens": -1}):
        choice = thinker.chat(max_tokens=20, extra_body=fields).choices[0]
        assert choice.message.reasoning_content
        assert not choice.message.content
        assert choice.finish_reason == "length"


@pytest.mark.parametrize(
    "fields",
    [
        {"enable_thinking": False},
        {"reasoning_effort": "none"},
        {"reasoning_budget": 0},
        {"reasoning": {"enabled": False}},
        {"thinking": {"type": "disabled"}},
        {"think": False},
        # The template cannot switch these off.
        {"reasoning_budget": 0, "chat_template_kwargs": {"enable_thinking": True, "opens": True}},
    ],
    ids=str,
)
def test_without_thoughts_the_answer_comes_at_once(thinker, fields):
    message = thinker.chat(max_tokens=20, extra_body=fields).choices[0].message
    assert not getattr(message, "reasoning_content", None)
    assert message.content


@pytest.mark.parametrize("opens", [True, False])
def test_a_grammar_binds_what_comes_after_the_thoughts(thinker, opens):
    more = {"reasoning_budget": 6, "chat_template_kwargs": {"opens": opens}}
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]} | CLOSED
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    message = thinker.chat(max_tokens=60, response_format=form, extra_body=more).choices[0].message
    assert json.loads(message.content)["n"] in (1, 2)
    assert bool(getattr(message, "reasoning_content", None)) == opens


@pytest.mark.parametrize("stream", [False, True])
def test_a_required_call_comes_after_the_thoughts(thinker, stream):
    more = {"extra_body": {"reasoning_budget": 6}, "parallel_tool_calls": False, "stream": stream}
    answer = thinker.chat(max_tokens=80, tools=[DICE], tool_choice="required", **more)
    if stream:
        chunks = list(answer)
        assert any(getattr(chunk.choices[0].delta, "reasoning_content", None) for chunk in chunks if chunk.choices)
        (call,) = tool_calls_of(chunks)
    else:
        assert answer.choices[0].message.reasoning_content
        (call,) = answer.choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["sides"] in (6, 20)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_that_were_cut_go_on(thinker, stream):
    def said(n_tokens: int, budget: int, begun: str = "", **fields) -> tuple[str, str]:
        messages = [*USER, {"role": "assistant", "content": "", "reasoning_content": begun}] if begun else USER
        body = {"messages": messages, "max_tokens": n_tokens, "temperature": 0, "reasoning_budget": budget, **fields}
        if not stream:
            message = thinker.http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
            return message.get("reasoning_content") or "", message["content"]
        chunks = thinker.client.chat.completions.create(
            model=MODEL, messages=messages, max_tokens=n_tokens, temperature=0, stream=True, extra_body=body
        )
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        thoughts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        return thoughts, "".join(delta.content or "" for delta in deltas)

    thoughts, answer = said(30, 12)
    begun, nothing = said(5, 12)
    assert nothing == ""
    for wish in (None, True, "reasoning_content"):
        rest, end = said(25, 12 - 5, begun, continue_final_message=wish)
        assert (begun + rest, end) == (thoughts, answer)
    assert said(9, 4, begun, continue_final_message="content")[0] == "", "they are over"
    prompt = {"messages": [*USER, {"role": "assistant", "reasoning_content": " So"}]}
    assert thinker.http.post("/apply-template", json=prompt).json()["prompt"].endswith(f"{OPEN} So")


@pytest.mark.parametrize(("joined", "parted"), [("none", "deepseek"), ("raw", "parsed")], ids=["llama.cpp", "Groq"])
def test_thoughts_stay_in_the_text_where_a_request_wants_that(thinker, joined, parted):
    def said(form: str):
        body = {"reasoning_budget": 6, "reasoning_format": form}
        return thinker.chat(max_tokens=30, extra_body=body).choices[0].message

    message, apart = said(joined), said(parted)
    assert message.content == f"{OPEN}{apart.reasoning_content}{CLOSE}{apart.content}"
    assert not getattr(message, "reasoning_content", None)


def test_thoughts_are_an_item_of_a_response_and_go_back_into_the_prompt(thinker):
    answer = thinker.client.responses.create(
        model="ember-q8_0", input="Tell me.", max_output_tokens=40, extra_body={"reasoning_budget": 6}
    )
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.output_text
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "He greets."}]}, {"type": "text", "text": "Ho"}]
    for earlier in (
        {"content": "Ho", "reasoning_content": "He greets."},
        {"content": "Ho", "reasoning": "He greets."},  # vLLM's
        {"content": parts},  # Mistral's
    ):
        said = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant"} | earlier,
            {"role": "user", "content": "Again"},
        ]
        prompt = thinker.http.post("/apply-template", json={"messages": said}).json()["prompt"]
        assert f"{OPEN}He greets.{CLOSE}Ho" in prompt, "thoughts go back into the prompt"
    bad = {"role": "assistant", "content": [{"type": "thinking", "thinking": 5}]}
    with pytest.raises(openai.BadRequestError, match="the field thinking"):
        thinker.client.chat.completions.create(model=MODEL, messages=[bad])
    with pytest.raises(openai.BadRequestError, match="differ"):
        thinker.chat(extra_body={"reasoning_budget": 1, "thinking_budget_tokens": 2})


def test_ollamas_client_gets_thoughts_apart_and_can_switch_them(thinker):
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    options = {"num_predict": 30, "temperature": 0}
    with ollama.Client(host=thinker.url, headers=thinker.headers) as client:
        whole = client.chat(MODEL, messages, think=True, options=options).message
        assert whole.thinking
        assert whole.content
        lines = [line.message for line in client.chat(MODEL, messages, think=True, options=options, stream=True)]
        assert "".join(line.thinking or "" for line in lines) == whole.thinking
        assert "".join(line.content for line in lines) == whole.content
        assert client.chat(MODEL, messages, think="low", options=options).message.thinking
        assert client.generate(MODEL, "A fox.", think=True, options=options).thinking
        for answer in (
            client.chat(MODEL, messages, think=False, options=options).message,
            client.generate(MODEL, "A fox.", think=False, options=options),
        ):
            assert not answer.thinking
        assert "thinking" in client.show(MODEL).capabilities


def n_reasoning(*texts: tuple[tuple[str, int], ...], thinks: bool = False) -> int:
    """How many tokens are counted as thoughts where these parts with their tokens come, some of them at once."""
    choice = Choice(ReplyParser(ReplyFormat(Thinking(OPEN, CLOSE)), thinks=thinks))
    for parts in texts:
        (update,) = collect([Token("a", text, n, ()) for text, n in parts], {"a": 0})
        choice.take(update)
    (end,) = collect([Ended("a", FinishReason.STOP)], {"a": 0})
    choice.take(end)
    assert choice.n_tokens == sum(n for parts in texts for _, n in parts)
    return choice.n_reasoning


def test_tokens_are_counted_by_what_they_are_however_they_come():
    reply = ((OPEN, 1), ("Let me think", 3), (" about", 1), (" it.", 2), (CLOSE, 1), ("1", 1), ("2", 1), ("3", 1))
    assert n_reasoning(reply) == n_reasoning(*((part,) for part in reply)) == 6
    assert n_reasoning(*((part,) for part in reply[1:]), thinks=True) == 6
    for n_first in range(1, len(reply)):
        assert n_reasoning(reply[:n_first], reply[n_first:]) == 6
    halves = ((".<|fim", 1), ("_suffix|>1", 2), ("2", 1))
    assert n_reasoning(reply[:3], *((part,) for part in halves)) == n_reasoning(reply[:3] + halves) == 5
    assert n_reasoning(reply[:3], ((" <|", 1), ("fim", 1), ("ally", 1))) == 7, "it only began like the marker"
    emoji = (("", 1), ("", 1), ("🦊", 1)) * 5
    for parts in (emoji, ((OPEN[1:3], 1), ("fim", 1), ("x", 1), ("_p", 1), ("refix", 1))):
        whole = ((OPEN, 1), *parts, (CLOSE, 1), ("1", 1))
        assert n_reasoning(*((part,) for part in whole)) == len(parts)
    assert n_reasoning(((OPEN, 1), *emoji, (CLOSE, 1), ("1", 1))) == len(emoji)
