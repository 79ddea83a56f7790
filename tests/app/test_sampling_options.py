from __future__ import annotations

from dataclasses import fields

import pytest

from app.cli.chat.sampling_options import SamplingOptions
from core.values.errors import BadRequest
from core.values.request import SamplingParams


def test_every_setting_that_shapes_text_has_an_option() -> None:
    options = {option.name for option in fields(SamplingOptions)}
    settings = {setting.name for setting in fields(SamplingParams)} - {"logprobs", "top_logprobs"}
    assert options - {"dry_sequence_breaker"} == settings - {"dry_sequence_breakers"}


def test_what_was_not_asked_for_is_not_sent() -> None:
    assert SamplingOptions().fields() == {}
    assert SamplingOptions(temperature=0.0, top_k=0).fields() == {"temperature": 0.0, "top_k": 0}
    assert SamplingOptions(ignore_eos=True).fields() == {"ignore_eos": True}


def test_lists_take_their_shape_in_a_request() -> None:
    asked = SamplingOptions(dry_sequence_breaker=["\n", "."], logit_bias=["7=-5", "8+1.5"])
    assert asked.fields() == {"dry_sequence_breakers": ["\n", "."], "logit_bias": {"7": -5.0, "8": 1.5}}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (SamplingOptions(temperature=-1.0), "temperature must be between"),
        (SamplingOptions(temperature=float("nan")), "temperature must be a finite number"),
        (SamplingOptions(mirostat=1), "mirostat must be 0"),
        (SamplingOptions(logit_bias=["x=1"]), "TOKEN=BIAS"),
        (SamplingOptions(logit_bias=["7"]), "TOKEN=BIAS"),
        (SamplingOptions(seed=2**70), "seed must be between"),
    ],
)
def test_a_bad_value_is_refused_before_anything_starts(options: SamplingOptions, sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        options.fields()
