"""What may be quantised to what, and what the result is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.facts.model_facts import ModelFacts, read_model
from models.gguf.header import read_header
from models.quantise.plan import TARGETS, QuantiseRefused, make_plan, result_name, target_type
from models.quantise.progress import Quantised, seconds_left
from tests.support.quantised import ember_f16
from tools.model_factory.gguf_factory import EMBER


@pytest.fixture(scope="module")
def original() -> ModelFacts:
    return read_model(ember_f16())


@pytest.fixture(scope="module")
def quantised() -> ModelFacts:
    return read_model(EMBER)


def plan(facts: ModelFacts, type_name: str, folder: Path, **options):
    return make_plan(facts, name="ember-f16", type_name=type_name, folder=folder, **options)


def refusal(facts: ModelFacts, type_name: str, folder: Path, **options) -> str:
    with pytest.raises(QuantiseRefused) as caught:
        plan(facts, type_name, folder, **options)
    return str(caught.value)


@pytest.mark.parametrize("type_name", ["Q4_K_M", "q4_k_m", "q4-k-m", " Q4_K_M "])
def test_a_plan_names_everything(original, tmp_path, type_name):
    made = plan(original, type_name, tmp_path)
    assert made.target == tmp_path / "quantised" / "ember-Q4_K_M.gguf"
    assert (made.name, made.type.file_type, made.source) == ("ember-Q4_K_M", 15, ember_f16())
    assert (made.source_type, made.weight_bytes) == ("F16", original.weight_bytes)


def test_what_cannot_be_quantised_is_refused_with_its_reason(original, tmp_path, quantised):
    said = refusal(original, "Q4_K_XXL", tmp_path)
    assert "no type 'Q4_K_XXL'" in said
    assert all(target.name in said for target in TARGETS)
    assert "importance matrix" in refusal(original, "IQ2_XXS", tmp_path)
    said = refusal(quantised, "Q4_0", tmp_path)
    assert "quantised already (Q8_0)" in said
    assert "allow it" in said
    assert plan(quantised, "Q4_0", tmp_path, may_requantise=True).may_requantise
    smallest = replace(quantised, quantisation="Q2_K", weight_bytes=quantised.n_params * 2 // 8)
    assert "Use it as it is" in refusal(smallest, "Q4_0", tmp_path, may_requantise=True)
    assert "no tokenizer" in refusal(replace(original, problem="The file has no tokenizer."), "Q4_0", tmp_path)
    head = replace(original, architecture="eagle3", problem="This file drafts tokens for a larger model.")
    assert "head that drafts" in refusal(head, "Q4_0", tmp_path)
    made = plan(original, "Q4_0", tmp_path)
    made.target.parent.mkdir()
    made.target.touch()
    assert "already" in refusal(original, "Q4_0", tmp_path)
    assert plan(original, "Q4_0", tmp_path, output="other").name == "other"


@pytest.mark.parametrize("type_name", ["Q8_0", "F16", "BF16"])
def test_no_type_gives_back_what_was_lost_or_gains_nothing(original, quantised, tmp_path, type_name):
    said = refusal(quantised, type_name, tmp_path, may_requantise=True)
    assert "less than 5 % smaller and no better. Choose a smaller type: Q6_K, Q5_1," in said
    if type_name != "Q8_0":
        assert "less than 5 % smaller" in refusal(original, type_name, tmp_path)


def test_f32_becomes_f16(original, tmp_path):
    wide = replace(original, quantisation="F32", weight_bytes=original.n_params * 4)
    assert plan(wide, "F16", tmp_path).type.name == "F16"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ember-f16", "ember-Q4_0"),
        ("Qwen3-8B-BF16", "Qwen3-8B-Q4_0"),
        ("maker/model-F16", "model-Q4_0"),
        ("llama3.2:3b-fp16", "llama3.2-3b-Q4_0"),
        ("模型 نموذج 🦊", "模型 نموذج 🦊-Q4_0"),
    ],
)
def test_the_result_is_called_after_the_model(name, expected):
    assert result_name(name, target_type("Q4_0"), None) == expected
    assert result_name(name, target_type("Q4_0"), "mine.gguf") == "mine"


@pytest.mark.parametrize("output", ["../up", "a/b", ".hidden", "", "  ", "nul", "a\0b", "x" * 300, ".gguf", "a\u202eb"])
def test_a_name_that_is_no_file_name_is_refused(output):
    with pytest.raises(QuantiseRefused, match="cannot be a model's name"):
        result_name("ember", target_type("Q4_0"), output)


def test_the_time_left_is_unknown_at_first_and_types_that_rows_do_not_fit_are_noticed(tmp_path):
    assert [seconds_left(n, 1000, s) for n, s in ((1, 1.0), (250, 1.0), (1000, 4.0))] == [None, 3.0, 0.0]
    assert Quantised("a", tmp_path, 1, 5, 0, 1.0).notice is None
    assert "2 of 5 tensors" in (Quantised("a", tmp_path, 1, 5, 2, 1.0).notice or "")


def test_the_types_are_those_of_llama_cpp():
    gguf = pytest.importorskip("gguf")
    for target in TARGETS:
        assert getattr(gguf.LlamaFileType, f"MOSTLY_{target.name}") == target.file_type
    assert read_header(ember_f16()).integer("general.file_type") == target_type("F16").file_type
