"""How soon a reply is wanted, over HTTP."""

from __future__ import annotations

import openai
import pytest

from app.server.calls.speed import wanted_speed
from core.values.errors import BadRequest
from core.values.request import ReplySpeed


@pytest.mark.parametrize(
    ("speed", "tier", "wanted"),
    [
        (None, None, ReplySpeed.STANDARD),
        (None, "auto", ReplySpeed.STANDARD),
        (None, "default", ReplySpeed.STANDARD),
        (None, "priority", ReplySpeed.FAST),
        (None, "flex", ReplySpeed.BATCH),
        ("fast", None, ReplySpeed.FAST),
        ("fast", "auto", ReplySpeed.FAST),
        ("fast", "priority", ReplySpeed.FAST),
        ("batch", "flex", ReplySpeed.BATCH),
        ("standard", "default", ReplySpeed.STANDARD),
    ],
)
def test_the_fields_agree_on_a_speed(speed, tier, wanted):
    assert wanted_speed(speed, tier) is wanted


@pytest.mark.parametrize(("speed", "tier"), [("fast", "flex"), ("fast", "default"), ("batch", "priority")])
def test_fields_that_contradict_each_other_are_refused(speed, tier):
    with pytest.raises(BadRequest, match="contradict"):
        wanted_speed(speed, tier)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"speed": "warp"}, ("standard", "fast", "batch", "spark", "deep", "warp")),
        ({"service_tier": "gold"}, ("auto", "default", "priority", "flex", "gold")),
    ],
)
def test_an_unknown_speed_is_refused_with_the_list(server, fields, names):
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat(max_tokens=4, extra_body=fields)
    assert caught.value.param == next(iter(fields))
    assert all(name in caught.value.message for name in names)


@pytest.mark.parametrize(
    ("asked", "named"), [("auto", "default"), ("default", "default"), ("flex", "flex"), ("priority", "priority")]
)
def test_a_reply_names_the_tier_it_was_served_in(server, asked, named):
    assert server.chat(service_tier=asked, max_tokens=2).service_tier == named


def test_a_plain_reply_carries_no_marks(server):
    reply = server.chat(max_tokens=2).model_dump()
    assert not {"speed", "answered_by"} & reply.keys()
    assert reply["service_tier"] is None


def test_spark_without_a_small_model_is_refused_with_the_way_to_pair_one(server):
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat(max_tokens=4, extra_body={"speed": "spark"})
    assert caught.value.param == "speed"
    assert "No small model is paired" in caught.value.message
    assert "--draft" in caught.value.message


def test_spark_is_answered_by_the_small_model_and_says_so(paired):
    assert paired.state["spark"] == "ember-draft-q8_0"
    spark = paired.chat(max_tokens=30, extra_body={"speed": "spark"})
    standard = paired.chat(max_tokens=30)
    assert (spark.model, spark.speed, spark.answered_by) == (standard.model, "spark", "ember-draft-q8_0")
    assert spark.choices[0].message.content != standard.choices[0].message.content
    assert spark.system_fingerprint != standard.system_fingerprint
    assert spark.usage.completion_tokens == 30


def test_each_chunk_of_a_spark_stream_says_so(paired):
    stream = paired.chat(max_tokens=8, stream=True, extra_body={"speed": "spark"})
    assert {chunk.answered_by for chunk in stream} == {"ember-draft-q8_0"}


def test_a_text_completion_by_spark_says_so_too(paired):
    body = {"prompt": "Once upon a time", "max_tokens": 8, "speed": "spark", "temperature": 0}
    reply = paired.http.post("/v1/completions", json=body).json()
    assert (reply["speed"], reply["answered_by"]) == ("spark", "ember-draft-q8_0")
    assert reply["usage"]["completion_tokens"] == 8


def test_the_state_counts_requests_by_lane(paired):
    counts = paired.wait_until(lambda state: state["snapshot"] is not None)["snapshot"]["lanes"]
    assert [one["lane"] for one in counts] == ["fast", "standard", "batch", "spark"]


def test_a_spark_request_ends_when_the_engine_dies(paired):
    stream = paired.chat(max_tokens=900, stream=True, extra_body={"speed": "spark", "ignore_eos": True})
    next(stream)
    paired.engine.kill()
    with pytest.raises(openai.APIError):
        for _ in stream:
            pass
    paired.wait_until(lambda state: state["phase"] == "ready")
    assert paired.chat(max_tokens=4, extra_body={"speed": "spark"}).answered_by == "ember-draft-q8_0"
