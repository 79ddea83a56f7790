"""Settings of one model: checked with a sentence, kept where they can be used."""

from __future__ import annotations

import pytest

from core.values.model_settings import (
    BadSetting,
    ModelSettings,
    settings_from,
)

NOTHING = ModelSettings()


def test_texts_and_saved_settings_become_values_and_wrong_ones_cost_only_themselves():
    plain = {"system": " Be brief. \n", "speed": "fast"}
    made = NOTHING.with_texts({"ctx": " 4096 ", "KV-Type": "q8_0", "temperature": "0.6", "top_k": "20", **plain})
    assert made.given == {"ctx": 4096, "kv_type": "q8_0", "temperature": 0.6, "top_k": 20, **plain}
    assert made.sampling == {"temperature": 0.6, "top_k": 20}
    assert made.without(("temperature", "top-k", "ctx")).given == {"kv_type": "q8_0", **plain}
    saved = {"ctx": 2048, "temperature": "hot", "top_k": 3.5, "kv_type": "q9", "colour": 1, "threads": True, "top_p": 1}
    settings, problems = settings_from(saved)
    assert settings.given == {"ctx": 2048, "top_p": 1}
    assert len(problems) == 5
    assert settings_from([1]) == (NOTHING, settings_from([1])[1])
    assert settings_from({}) == (NOTHING, ())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("ctx", "many", "a whole number"),
        ("ctx", "1.5", "a whole number"),
        ("ctx", "-1", "at least"),
        ("kv_type", "q3_0", "type of the KV cache"),
        ("gpu_layers", "-2", "at least 0"),
        ("threads", "100000", "between 1 and 512"),
        ("speed", "ludicrous", "must be one of standard, fast"),
        ("temperature", "hot", "a number"),
        ("temperature", "nan", "finite"),
        ("temperature", "-1", "Temperature must be between"),
        ("top_p", "1.5", "Top_p must be between 0.0 and 1.0"),
        ("system", "   ", "empty"),
        ("system", "x" * 100_001, "100,001 characters"),
        ("system", "\ud800", "surrogate"),
        ("draft", "", "name of a model"),
        ("colour", "red", "no setting 'colour'"),
    ],
)
def test_what_cannot_be_is_said(name, text, says):
    with pytest.raises(BadSetting, match=says) as caught:
        NOTHING.with_texts({name: text})
    assert not caught.value.message.endswith("..")
