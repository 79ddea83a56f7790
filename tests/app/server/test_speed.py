"""How soon a reply is wanted, over HTTP."""

from __future__ import annotations

import openai
import pytest

from app.server.speed import Speed, wanted_speed
from core.errors import BadRequest


@pytest.mark.parametrize(
    ("speed", "tier", "wanted"),
    [
        (None, None, Speed.STANDARD),
        (None, "auto", Speed.STANDARD),
        (None, "default", Speed.STANDARD),
        (None, "priority", Speed.FAST),
        (None, "flex", Speed.BATCH),
        ("fast", None, Speed.FAST),
        ("fast", "auto", Speed.FAST),
        ("fast", "priority", Speed.FAST),
        ("batch", "flex", Speed.BATCH),
        ("standard", "default", Speed.STANDARD),
    ],
)
def test_the_fields_agree_on_a_speed(speed, tier, wanted):
    assert wanted_speed(speed, tier) is wanted


@pytest.mark.parametrize(("speed", "tier"), [("fast", "flex"), ("fast", "default"), ("batch", "priority")])
def test_fields_that_contradict_each_other_are_refused(speed, tier):
    with pytest.raises(BadRequest, match="contradict"):
        wanted_speed(speed, tier)


@pytest.mark.parametrize("tier", ["auto", "default", "flex", "priority"])
def test_the_openai_tiers_are_taken(server, tier):
    answer = server.chat(service_tier=tier, max_tokens=4)
    assert answer.usage.completion_tokens == 4


@pytest.mark.parametrize("speed", ["standard", "fast", "batch"])
def test_each_speed_answers(server, speed):
    answer = server.chat(max_tokens=4, extra_body={"speed": speed})
    assert answer.usage.completion_tokens == 4


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"speed": "warp"}, ("standard", "fast", "batch", "deep", "warp")),
        ({"service_tier": "gold"}, ("auto", "default", "priority", "flex", "gold")),
    ],
)
def test_an_unknown_speed_is_refused_with_the_list(server, fields, names):
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat(max_tokens=4, extra_body=fields)
    assert caught.value.param == next(iter(fields))
    assert all(name in caught.value.message for name in names)
