"""Settings of one model, and what a request leaves open comes from those of the model that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.server.calls.chat_body import ChatCompletionBody
from app.server.calls.schemas import CompletionBody
from app.server.chat.call import with_defaults
from app.settings.model_settings_store import ModelSettingsStore, UsageStore
from app.settings.server_settings import USUAL_ENGINE, ServerSettings
from core.values.model_settings import (
    BadSetting,
    ModelSettings,
    settings_from,
)
from tests.app.server.conftest import RunningServer
from tests.support.scripted_engine import loaded
from tools.model_factory.gguf_factory import EMBER

MODEL = loaded("a.gguf")
OWN = ModelSettings(temperature=0.25, top_k=7, speed="fast", system="Be brief.")


def chat(**fields) -> ChatCompletionBody:
    return ChatCompletionBody(**{"messages": [{"role": "user", "content": "Hi"}]} | fields)


def test_what_is_left_open_is_filled_and_what_is_said_stands():
    body = chat()
    assert with_defaults(body, ModelSettings(ctx=512), MODEL) is body
    body = with_defaults(chat(top_k=3), OWN, MODEL)
    (params,) = body.sampling(None)
    assert (params.temperature, params.top_k, params.top_p) == (0.25, 3, 0.95)
    assert body.wanted_speed == "fast"
    assert [(m.role, m.content) for m in body.messages] == [("system", "Be brief."), ("user", "Hi")]
    assert len(body.template_variables()["messages"]) == 2
    for role in ("system", "developer"):
        body = chat(messages=[{"role": role, "content": "Mine."}, {"role": "user", "content": "Hi"}])
        assert with_defaults(body, OWN, MODEL).messages == body.messages
    for fields in ({"speed": "standard"}, {"service_tier": "flex"}):
        body = chat(**fields)
        assert with_defaults(body, OWN, MODEL).wanted_speed is body.wanted_speed
    text = with_defaults(CompletionBody(prompt="x"), OWN, MODEL)
    assert (text.temperature, text.prompt) == (0.25, "x"), "without a system prompt"


def test_a_default_speed_that_cannot_be_is_not_an_error():
    tools = [{"type": "function", "function": {"name": "f"}}]
    for body, speed in ((chat(), "spark"), (chat(tools=tools), "deep"), (CompletionBody(prompt="x"), "deep")):
        assert with_defaults(body, ModelSettings(speed=speed), MODEL).wanted_speed == "standard"
    assert with_defaults(chat(), ModelSettings(speed="deep"), MODEL).wanted_speed == "deep"


def test_options_of_the_server_stand_before_those_of_the_model():
    own = ModelSettings(ctx=512, kv_type="q8_0", threads=1, gpu_layers=0)
    options = ServerSettings(engine=replace(USUAL_ENGINE, n_ctx=256, kv_type="f16")).engine_options("m.gguf", own)
    assert (options.n_ctx, options.kv_type, options.n_threads, options.n_gpu_layers) == (256, "f16", 1, 0)
    assert ServerSettings().engine_options("m.gguf", own).kv_type == "q8_0"
    options = ServerSettings().engine_options("m.gguf")
    assert (options.kv_type, options.n_cpu_moe, options.n_gpu_layers) == (None, None, None)


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(folder))
        yield folder


def test_a_real_server_honours_them(own_home: Path):
    store = ModelSettingsStore(own_home / "config" / "models.json")
    own = ModelSettings(ctx=256, kv_type="q8_0", threads=1, draft="ember-draft-q8_0", temperature=0.0)
    store.change(EMBER, "ember", lambda old: own)
    with RunningServer("--parallel", "2") as running:
        state = running.state
        assert (state["n_ctx"], state["kv_type"], state["n_threads"], state["n_cpu_moe"]) == (256, "q8_0", 1, 0)
        assert state["spark"] == "ember-draft-q8_0"
        usage = UsageStore(own_home / "data" / "usage.json")
        running.wait_until(lambda _: usage.all().of(EMBER) is not None)

        def told(**fields) -> str:
            body = {"messages": [{"role": "user", "content": "Tell me of a fox."}], "max_tokens": 16} | fields
            return running.http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]

        assert told(seed=1) == told(seed=2)
        assert len({told(seed=seed, temperature=5.0) for seed in range(4)}) > 1
        # A change of what requests leave open counts at once.
        n_before = _prompt_tokens(running)
        store.change(EMBER, "ember", lambda old: replace(old, system="You are a pirate on a large ship."))
        assert _prompt_tokens(running) > n_before + 5


def _prompt_tokens(running: RunningServer) -> int:
    return running.chat("Hello.").usage.prompt_tokens


def test_settings_that_contradict_the_servers_options_do_not_cost_the_model(own_home: Path):
    ModelSettingsStore(own_home / "config" / "models.json").change(
        EMBER, "ember", lambda old: ModelSettings(kv_type="q8_0", draft="a model that is gone")
    )
    with RunningServer("--flash-attention", "off") as running:
        assert running.state["kv_type"] == "f16"


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
