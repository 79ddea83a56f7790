"""Which quantisation to take: by quality among those that fit and are quick enough, with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.catalog.curated import curated
from models.estimate.fit.summary import FitVerdict
from models.estimate.speed.speeds import SpeedPrediction
from models.facts.model_facts import read_model
from models.facts.quantisation_rank import is_needless, main_type, rank, resized
from models.recommend.fit_report import FitReport, fit_report
from models.recommend.outline import outline, smallest_quantisation, usual_quantisation
from models.recommend.recommend import QuantisationOption, recommend
from tests.support.made_up_machines import GB, machine
from tools.model_factory.gguf_factory import Recipe, cached


def one(
    quantisation: str, gigabytes: float, rate: float | None, verdict: FitVerdict = FitVerdict.GREEN
) -> QuantisationOption:
    speed = SpeedPrediction(rate, rate, 8192) if rate is not None else None
    judged = FitReport(verdict, f"It needs {gigabytes} GB.", speed=speed)
    return QuantisationOption(quantisation, quantisation, int(gigabytes * 1e9), judged)


def test_the_best_quality_that_is_quick_enough():
    found = recommend([one("Q4_K_M", 5, 18), one("Q6_K", 7, 12), one("Q8_0", 9, 8)])
    assert found.candidate.quantisation == "Q6_K"
    assert found.sentence == "Q6_K, the best quality that fits well and is quick enough: ≈ 12 tok/s here."
    judged = FitReport(FitVerdict.GREEN, "It fits.", speed=SpeedPrediction(18.4, 9.96, 8192))
    found = recommend([QuantisationOption("Q8_0", "Q8_0", 9, judged)])
    assert found.sentence.endswith("≈ 18 tok/s here, ≈ 10 tok/s after 8,192 tokens.")
    assert recommend([one("F16", 16, 40), one("Q8_0", 9, 70)]).candidate.quantisation == "Q8_0"
    assert recommend([one("F16", 16, 40)]).candidate.quantisation == "F16"
    found = recommend([one("Q4_K_M", 5, None), one("Q6_K", 7, None)])
    assert found.candidate.quantisation == "Q6_K"
    twins = [replace(one("Q6_K", 7, 12), name=name) for name in ("v1-Q6_K", "v2-Q6_K")]
    assert recommend(twins).sentence.startswith("v1-Q6_K, the best")
    assert "not known yet" in found.sentence


def test_others_only_where_none_is_quick_or_fits_well():
    found = recommend([one("Q8_0", 9, 3), one("Q4_K_M", 5, 6.25), one("Q2_K", 3, 5)])
    assert found.candidate.quantisation == "Q4_K_M"
    assert "None that fits well keeps 10 tokens/s while its context fills" in found.sentence
    assert found.sentence.endswith("this one is the fastest that fits: ≈ 6.2 tok/s here.")
    tight = one("Q6_K", 7, 20, FitVerdict.TIGHT)
    assert recommend([tight, one("Q4_K_M", 5, 20)]).candidate.quantisation == "Q4_K_M"
    assert recommend([tight, one("Q8_0", 9, None, FitVerdict.NO)]).candidate.quantisation == "Q6_K"
    found = recommend([one("Q8_0", 9, None, FitVerdict.NO), one("Q4_0", 5, None, FitVerdict.NO)])
    assert (found.candidate, found.sentence) == (None, "None fits this machine. The smallest: It needs 5 GB.")
    assert recommend([]).candidate is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [("F16", "Q8_0"), ("Q8_0", "Q6_K"), ("Q5_K_S", "Q4_K_M"), ("IQ4_XS", "Q4_0"), ("Q2_K", "IQ1_S")],
)
def test_the_order_of_quality(better, worse):
    assert rank(better) < rank(worse)


def test_names_of_publishers_own_mixtures():
    assert rank("UD-Q4_K_XL") == rank("Q4_K_L")
    assert rank("Q6_K_L") == rank("Q6_K")
    assert rank("FANCY") is None
    assert is_needless("bf16")
    assert not is_needless("Q8_0")
    assert [main_type(name) for name in ("Q4_K_M", "Q8_0", "IQ4_XS", "IQ3_M", "MXFP4_MOE")] == [
        "Q4_K", "Q8_0", "IQ4_XS", "IQ3_S", "MXFP4",
    ]  # fmt: skip


def test_another_quantisation_is_judged_from_the_header_of_one():
    small = read_model(cached(Recipe(24, "Q4_0")))
    large = read_model(cached(Recipe(24)))
    guessed = resized(large, "Q4_0", small.n_bytes)
    told, true = fit_report(guessed, machine()), fit_report(small, machine())
    assert told.plan.total == pytest.approx(true.plan.total, rel=0.05)
    assert told.speed.empty == pytest.approx(true.speed.empty, rel=0.05)


def curated_model(title):
    (model,) = (model for model in curated().models if model.title == title)
    return model


def test_heads_are_scaled_with_their_model():
    model = curated_model("Qwen3.5 9B")
    whole, small = model.facts, model.facts_of(model.files[0])
    share = small.mtp_weights.read_by(1) / whole.mtp_weights.read_by(1)
    assert share == pytest.approx(small.weight_bytes / whole.weight_bytes, rel=0.01)


@pytest.mark.parametrize("title", ["Ministral 3 8B Instruct", "Qwen3-Coder-Next", "Qwen3.5 9B", "Qwen3.5 4B"])
def test_an_output_of_its_own_is_not_counted_twice_where_sizes_were_scaled(title):
    model = curated_model(title)
    facts = model.facts_of(model.files[0])
    needed = sum(need.weights for need in fit_report(facts, machine(90 * GB, host=100 * GB)).plan.needs)
    # Only an output that is the table of embeddings is there twice: as a table beside the processor.
    again = facts.weight_map.output.n_bytes if title == "Qwen3.5 4B" else 0
    assert needed == pytest.approx(facts.weight_bytes + again, rel=1e-6)


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
