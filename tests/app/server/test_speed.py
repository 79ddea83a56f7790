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
        *((speed, tier, None) for speed, tier in (("fast", "flex"), ("fast", "default"), ("batch", "priority"))),
    ],
)
def test_the_fields_agree_on_a_speed(speed, tier, wanted):
    if wanted is None:
        with pytest.raises(BadRequest, match="contradict"):
            wanted_speed(speed, tier)
    else:
        assert wanted_speed(speed, tier) is wanted


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"speed": "warp"}, ("standard", "fast", "batch", "spark", "deep", "warp")),
        ({"service_tier": "gold"}, ("auto", "default", "priority", "flex", "gold")),
        ({"speed": "spark"}, ("drafting is switched off", "choose another speed")),
    ],
)
def test_a_speed_that_cannot_be_is_refused_with_what_can(server, fields, names):
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat(max_tokens=4, extra_body=fields)
    assert caught.value.param == next(iter(fields))
    assert all(name in caught.value.message for name in names)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("auto", "default"),
        ("default", "default"),
        ("flex", "flex"),
        ("priority", "priority"),
        ("fast", "priority"),
        ("ultrafast", "priority"),
    ],
)
def test_a_reply_names_the_tier_it_was_served_in(server, asked, named):
    assert server.chat(service_tier=asked, max_tokens=2).service_tier == named
    plain = server.chat(max_tokens=2).model_dump()
    assert not {"speed", "answered_by"} & plain.keys()
    assert plain["service_tier"] is None


def test_spark_is_answered_by_the_small_model_and_says_so(paired):
    assert paired.state["spark"] == "ember-draft-q8_0"
    spark = paired.chat(max_tokens=30, extra_body={"speed": "spark"})
    standard = paired.chat(max_tokens=30)
    assert (spark.model, spark.speed, spark.answered_by) == (standard.model, "spark", "ember-draft-q8_0")
    assert spark.choices[0].message.content != standard.choices[0].message.content
    assert spark.system_fingerprint != standard.system_fingerprint
    assert spark.usage.completion_tokens == 30
    stream = paired.chat(max_tokens=8, stream=True, extra_body={"speed": "spark"})
    assert {chunk.answered_by for chunk in stream} == {"ember-draft-q8_0"}
    body = {"prompt": "Once upon a time", "max_tokens": 8, "speed": "spark", "temperature": 0}
    text = paired.http.post("/v1/completions", json=body).json()
    assert (text["speed"], text["answered_by"], text["usage"]["completion_tokens"]) == ("spark", "ember-draft-q8_0", 8)
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
