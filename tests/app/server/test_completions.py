"""Text completions: the real client, a real socket, the real engine; and receipts in the words of the wire."""

from __future__ import annotations

import openai
import pytest

from app.server.openai.timings import timings
from core.values.messages import Receipt


def complete(server, prompt="Once upon a time", **fields):
    fields = {"model": "ember", "max_tokens": 12, "seed": 1, "temperature": 0} | fields
    return server.client.completions.create(prompt=prompt, **fields)


def test_a_prompt_is_continued_whole_and_as_a_stream(server):
    answer = complete(server)
    (choice,) = answer.choices
    assert (answer.object, choice.finish_reason) == ("text_completion", "length")
    assert choice.text
    assert answer.usage.completion_tokens == answer.timings["decode_tokens"] == 12
    *chunks, last, usage = complete(server, stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].text for chunk in [*chunks, last]) == choice.text
    assert (last.choices[0].finish_reason, last.timings["decode_tokens"]) == ("length", 12)
    assert usage.usage.completion_tokens == 12
    options = {"include_usage": True, "continuous_usage_stats": True}
    counted = [chunk.usage for chunk in complete(server, stream=True, stream_options=options)]
    assert counted[-1].completion_tokens == counted[-2].completion_tokens == 12
    assert {one.prompt_tokens for one in counted} == {usage.usage.prompt_tokens}


def test_a_prompt_can_be_token_ids_and_the_reply_empty_or_of_sixteen_tokens(server):
    assert complete(server, [1, 200, 300]).usage.prompt_tokens == 3
    assert len(complete(server, [[200, 300], [301]]).choices) == 2
    ids = server.http.post("/tokenize", json={"content": "A fox ran."}).json()["tokens"]
    assert complete(server, ids, echo=True, max_tokens=0).choices[0].text == "A fox ran."
    empty = complete(server, max_tokens=0)
    assert (empty.choices[0].text, empty.choices[0].finish_reason) == ("", "length")
    assert empty.usage.completion_tokens == 0
    assert complete(server, "def add(a, b):", max_tokens=None).usage.completion_tokens <= 16


def test_several_prompts_with_several_choices_come_in_order(server):
    prompts = ["def add(a, b):", "Once upon a time"]
    answer = complete(server, prompts, n=2, temperature=0)
    alone = [complete(server, prompt) for prompt in prompts]
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    expected = [one.choices[0].text for one in alone for _ in range(2)]
    assert [choice.text for choice in answer.choices] == expected
    assert answer.usage.prompt_tokens == sum(one.usage.prompt_tokens for one in alone)


def test_a_suffix_is_met_by_the_tokens_for_filling_in(server):
    plain = complete(server, "def add(a, b):\n    ")
    filled = complete(server, "def add(a, b):\n    ", suffix="\n\nprint(add(1, 2))\n")
    assert filled.usage.prompt_tokens > plain.usage.prompt_tokens
    assert filled.choices[0].text != plain.choices[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_echo_begins_with_the_prompt(server, stream):
    answer = complete(server, echo=True, stream=stream)
    text = "".join(chunk.choices[0].text for chunk in answer) if stream else answer.choices[0].text
    assert text == "Once upon a time" + complete(server).choices[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_echo_scores_the_prompt_as_its_tokens_were_when_they_were_written(server, stream):
    """What evaluation harnesses ask for: how likely is this text, given that one?"""
    written = complete(server, logprobs=1).choices[0]
    whole = "Once upon a time" + written.text
    answer = complete(server, whole, echo=True, logprobs=1, max_tokens=1, stream=stream)
    parts = [chunk.choices[0].logprobs for chunk in answer] if stream else [answer.choices[0].logprobs]
    tokens, values, tops, offsets = (
        [one for part in parts if part is not None for one in getattr(part, name)]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    )
    assert "".join(tokens[:-1]) == whole
    assert [whole[start : start + len(token)] for start, token in zip(offsets, tokens[:-1], strict=False)] == tokens[
        :-1
    ]
    assert (values[0], tops[0]) == (None, None)
    assert all(token in top for token, top in zip(tokens[-13:], tops[-13:], strict=True))
    assert values[-13:-1] == pytest.approx(written.logprobs.token_logprobs, abs=0.05)


@pytest.mark.parametrize("stream", [False, True])
def test_a_scored_prompt_is_followed_by_one_token_also_where_the_text_ends(server, stream):
    """Evaluation harnesses take the last log probability off: it must not be one of the prompt's."""
    (end,) = server.http.post("/tokenize", json={"content": "<|im_end|>"}).json()["tokens"]
    ids = server.http.post("/tokenize", json={"content": "Once upon a time"}).json()["tokens"]
    fields = {"echo": True, "logprobs": 1, "max_tokens": 1, "stream": stream}
    answer = complete(server, ids, logit_bias={str(end): 100}, **fields)
    choices = [chunk.choices[0] for chunk in answer] if stream else [answer.choices[0]]
    assert (choices[-1].finish_reason, "".join(one.text for one in choices)) == ("stop", "Once upon a time")
    values = [one for choice in choices if choice.logprobs for one in choice.logprobs.token_logprobs]
    assert (len(values), values[0]) == (len(ids) + 1, None)


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_say_where_each_token_stands(server, stream):
    answer = complete(server, logprobs=2, stream=stream)
    choices = [chunk.choices[0] for chunk in answer] if stream else [answer.choices[0]]
    text = "".join(choice.text for choice in choices)
    parts = [choice.logprobs for choice in choices if choice.logprobs]
    tokens = [token for part in parts for token in part.tokens]
    offsets = [offset for part in parts for offset in part.text_offset]
    tops = [top for part in parts for top in part.top_logprobs]
    assert "".join(tokens) == text
    assert [text[start : start + len(token)] for start, token in zip(offsets, tokens, strict=True)] == tokens
    assert all(len(top) == 2 for top in tops)
    assert all(value <= 0 for part in parts for value in part.token_logprobs)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [-1]}, "prompt"),
        ({"prompt": [5, "a"]}, "prompt"), ({"prompt": [4096]}, "prompt"), ({"prompt": "fox " * 3000}, "prompt"),
        ({"max_tokens": -2}, "max_tokens"), ({"best_of": 2}, "best_of"), ({"echo": True, "suffix": "x"}, "echo"),
        ({"prompt": [5], "suffix": "x"}, "suffix"), ({"prompt": ["a"] * 100, "n": 2}, "prompt"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_with_its_field(server, fields, param):
    prompt = fields.pop("prompt", "Hi")
    with pytest.raises(openai.BadRequestError) as caught:
        complete(server, prompt, **fields)
    assert caught.value.param == param
    assert prompt != "" or "none of them empty" in caught.value.message


def test_choices_of_one_call_are_added_up() -> None:
    one = Receipt(n_generated=10, n_drafted=8, n_accepted=6, bytes_per_token=1e6, peak_share=0.25, speedup=2.0)
    other = Receipt(n_generated=30, n_drafted=2, n_accepted=1, bytes_per_token=2e6, speedup=1.0)
    found = timings([one, other])
    assert (found["drafted_tokens"], found["accepted_tokens"]) == (10, 7)
    assert (found["bytes_per_token"], found["peak_share"], found["speedup"]) == (1_750_000, 0.25, 1.25)
    unknown = Receipt(n_generated=30, n_drafted=2, speedup=None)
    assert timings([one, unknown])["speedup"] is None, "too few plain steps were seen"
    nothing = timings([Receipt(kv_type="q8_0")])
    assert (nothing["drafted_tokens"], nothing["bytes_per_token"], nothing["peak_share"]) == (0, 0, None)
    assert (nothing["speedup"], nothing["kv_type"]) == (1.0, "q8_0")
