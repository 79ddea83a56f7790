"""What is estimated of a model before its header is read, beside models whose headers are known."""

from __future__ import annotations

import pytest

from models.catalog.curated import curated
from models.recommend.outline import outline, smallest_quantisation, usual_quantisation

KNOWN = [model for model in curated().models if model.files[0].quantisation == "Q4_K_M"]
# These keep tables beside their layers that no token reads whole.
ODD = ("Gemma 4 E2B", "Gemma 4 E4B")


@pytest.mark.parametrize("model", [model for model in KNOWN if model.title not in ODD], ids=lambda model: model.title)
def test_an_outline_is_near_to_the_model_that_has_its_size(model) -> None:
    name = "acme/fox" if not model.facts.n_experts else f"acme/fox-A{model.facts.n_active_params / 1e9:.1f}B"
    real, found = model.facts_of(model.files[0]), outline(name, "llama", model.n_params, "Q4_K_M")
    assert found is not None
    assert found.problem is None
    assert found.n_params == pytest.approx(real.n_params, rel=0.02)
    assert found.weight_bytes == pytest.approx(real.weight_bytes, rel=0.15)
    assert found.active_bytes_per_token == pytest.approx(real.active_bytes_per_token, rel=0.3)


def test_a_model_of_the_list_is_known_better_than_by_its_size() -> None:
    model = KNOWN[0]
    found = outline("acme/any", model.facts.architecture, model.n_params, "Q4_K_M")
    assert found is not None
    assert found.caches == model.facts.caches


@pytest.mark.parametrize(
    ("name", "architecture", "n_params", "quantisation"),
    [("acme/fox-8x7B", "llama", 46_000_000_000, "Q4_K_M"), ("acme/fox", "qwen3moe", 60_000_000_000, "Q4_K_M"),
     ("acme/fox", "llama", 8_000_000_000, "FOX"), ("acme/fox", "llama", 0, "Q4_K_M")],
)  # fmt: skip
def test_where_too_little_is_known_nothing_is_said(name, architecture, n_params, quantisation) -> None:
    assert outline(name, architecture, n_params, quantisation) is None


@pytest.mark.parametrize(
    ("there", "usual", "smallest"),
    [(("BF16", "Q8_0", "Q4_K_M", "IQ2_XXS"), "Q4_K_M", "IQ2_XXS"), (("F16",), "F16", "F16"), (("FOX",), "", ""),
     ((), "", "")],
)  # fmt: skip
def test_the_usual_quantisation_is_judged_and_the_smallest(there, usual, smallest) -> None:
    assert (usual_quantisation(there), smallest_quantisation(there)) == (usual, smallest)
