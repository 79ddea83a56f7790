"""What is typed for a chat: the prompt, and options of sampling."""

from __future__ import annotations

from dataclasses import fields

import pytest

from app.cli.chat.conversation import checked, join_prompt, piped_text
from app.cli.chat.sampling_options import SamplingOptions
from core.values.errors import BadRequest
from core.values.request import SamplingParams


def test_what_was_asked_for_is_sent_in_the_shape_of_a_request() -> None:
    options = {option.name for option in fields(SamplingOptions)}
    settings = {setting.name for setting in fields(SamplingParams)} - {"logprobs", "top_logprobs"}
    assert options - {"dry_sequence_breaker"} == settings - {"dry_sequence_breakers"}
    assert SamplingOptions().fields() == {}
    assert SamplingOptions(temperature=0.0, top_k=0).fields() == {"temperature": 0.0, "top_k": 0}
    assert SamplingOptions(ignore_eos=True).fields() == {"ignore_eos": True}
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


def never() -> str:
    raise AssertionError("standard input was read")


@pytest.mark.parametrize(("words", "piped"), [([], ""), ([""], "x"), (["-"], " \n"), ([" ", "-"], "")])
def test_an_empty_prompt_is_refused(words: list[str], piped: str) -> None:
    with pytest.raises(BadRequest, match="empty"):
        join_prompt(words, lambda: piped)


def test_bytes_that_are_not_utf8_are_named() -> None:
    assert piped_text("\ufeffGrüße\n".encode()) == "Grüße"
    with pytest.raises(BadRequest, match="0xff at offset 2"):
        piped_text(b"ab\xff")
    with pytest.raises(BadRequest, match="character 3"):
        checked("ab\udcff")
