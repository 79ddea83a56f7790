"""What the factory makes loads in llama.cpp and says what Ember says."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from models.facts.model_facts import read_model
from models.gguf.header import read_header
from tests.support.broken_gguf import UNUSABLE
from tests.support.llama_probe import Answer, Question, ask
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe, cached, deep_ember
from tools.model_factory.wide_factory import WideShape, make_wide

# Weighted sums of equal experts and products in other types round differently.
ROUNDING = {"experts": 0.1, "f16": 0.5}


@functools.cache
def story(path: Path) -> Answer:
    """The greedy answer to a chat about a fox."""
    template = read_header(EMBER).text("tokenizer.chat_template")
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    prompt = environment.from_string(template).render(messages=messages, add_generation_prompt=True)
    return ask(Question(str(path), prompt, n_tokens=80))


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(n_layers=16),
        Recipe(n_experts=8, n_experts_used=2),
        Recipe(n_layers=8, n_experts=4, n_experts_used=1),
        Recipe(n_vocab=20_000),
        Recipe(n_layers=8, tensor_type="F16"),
    ],
    ids=lambda recipe: recipe.name,
)
def test_the_text_is_embers(recipe):
    ember, made = story(EMBER), story(cached(recipe))
    assert "fox" in ember.text
    tolerance = next((value for part, value in ROUNDING.items() if part in recipe.name), 1e-3)
    differs = made.logits.argmax(axis=1) != ember.logits.argmax(axis=1)
    # Where it differs it is a near-tie, and behind it are two texts.
    n_same = int(differs.argmax()) + 1 if differs.any() else len(differs)
    assert n_same > 20
    np.testing.assert_allclose(made.logits[:n_same, :4096], ember.logits[:n_same], rtol=0, atol=tolerance)


@pytest.mark.parametrize("source", [EMBER, EMBER_DRAFT])
def test_a_wide_model_says_what_its_source_says_in_its_type(tmp_path, source):
    ember = story(cached(Recipe(tensor_type="Q4_0", source=source)))
    shape = WideShape(n_embd=768, n_layers=8, n_ff=2048, n_heads=12, n_kv_heads=3, n_vocab=8192, source=source)
    wide = story(make_wide(tmp_path / "wide.gguf", shape))
    assert wide.text == ember.text
    np.testing.assert_allclose(wide.logits[:, :4096], ember.logits, rtol=0, atol=0.3)
    assert not wide.logits[:, 4096:].any()


def test_silent_layers_change_nothing_in_any_type():
    shallow = story(cached(Recipe(n_layers=6, tensor_type="Q4_0")))
    deep = story(cached(Recipe(n_layers=16, tensor_type="Q4_0")))
    assert deep.text == shallow.text
    np.testing.assert_allclose(deep.logits, shallow.logits, rtol=0, atol=1e-3)


@pytest.mark.parametrize("source", [EMBER, EMBER_DRAFT], ids=["ember", "draft"])
def test_no_added_layers_give_the_same_file(source, tmp_path):
    n_layers = read_model(source).n_layers
    assert deep_ember(tmp_path / "same.gguf", n_layers, source).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", ["no tokenizer", "unknown architecture", "no context length", "a million layers"])
def test_llama_cpp_refuses_unusable_files_too(name, tmp_path):
    path = tmp_path / "model.gguf"
    next(unusable for unusable in UNUSABLE if unusable.name == name).write(path)
    assert not ask(Question(str(path))).loaded
