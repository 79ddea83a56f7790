"""The list to begin with: whole, true to published figures, and a header like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from itertools import groupby
from pathlib import Path

import pytest

from models.catalog.curated import curated, header_of
from models.facts.model_facts import facts_from, read_model
from models.files.safe_path import safe_parts
from models.gguf.header import GgufHeader, read_header
from models.hub.repository import quantisation_of
from models.pairing.heads import why_no_mtp
from models.recommend.fit_report import fit_report
from tests.support.made_up_machines import machine
from tools.model_factory.gguf_factory import EMBER, Recipe, cached
from tools.model_factory.hybrid_factory import qwen35

LISTED = json.loads((Path(__file__).parents[2] / "models" / "curated.json").read_bytes())
ITEM = {
    "title": str, "use": str, "repo_id": str, "licence": str, "good_for": str, "files": list, "draft": dict | None,
    "assistant": str | None, "is_tested": bool, "checked": str, "sources": list, "header": dict, "weights": list,
}  # fmt: skip
FILE = {"quantisation": str, "n_bytes": int, "is_estimate": bool}
WEIGHTS = {"name": str, "layers": str, "n_elements": int, "type": str}
# Published elsewhere, and not in the list: parameters in millions, bytes of F16 cache for a further token of a long
# context, bytes of recurrent state.
PUBLISHED = {
    "Qwen3.5 2B": (1_900, 12_288, 20_201_472),
    "Qwen3.5 4B": (4_300, 32_768, 52_690_944),
    "Qwen3.5 9B": (9_200, 32_768, 52_690_944),
    "Qwen3.6 27B": (27_300, 65_536, 156_893_184),
    "Qwen3.6 35B-A3B": (35_500, 20_480, 65_863_680),
    "Qwen3-Coder-Next": (79_700, 24_576, 79_036_416),
    "Gemma 4 26B-A4B": (25_200, 20_480, 0),
    "Gemma 4 31B": (30_697, 81_920, 0),
    "gpt-oss 20B": (20_900, 24_576, 0),
    "gpt-oss 120B": (116_800, 36_864, 0),
    "Ministral 3 8B Instruct": (8_490, 139_264, 0),
    "Mistral Small 3.2 24B": (23_572, 163_840, 0),
    "SmolLM3 3B": (3_075, 73_728, 0),
    "Granite 4.0 H Tiny": (6_939, 8_192, None),
    "LFM2.5 1.2B Instruct": (1_170, 12_288, None),
}


def has_shape(value: dict, shape: dict) -> bool:
    return value.keys() == shape.keys() and all(isinstance(value[name], kind) for name, kind in shape.items())


def test_the_file_has_the_form_of_the_list():
    assert date.fromisoformat(LISTED["date"])
    assert LISTED["source"]
    for item in LISTED["models"]:
        assert has_shape(item, ITEM), item["title"]
        assert item["files"]
        assert all(has_shape(file, FILE) for file in item["files"])
        assert all(has_shape(weights, WEIGHTS) for weights in item["weights"])
        assert date.fromisoformat(item["checked"]) <= date.fromisoformat(LISTED["date"])


def test_it_is_sorted_by_use_and_size():
    uses = [use for use, _ in groupby(curated().models, key=lambda model: model.use)]
    assert len(uses) == len(set(uses))
    for _, models in groupby(curated().models, key=lambda model: model.use):
        sizes = [model.n_params for model in models]
        assert sizes == sorted(sizes)
    assert len({model.repo_id for model in curated().models}) == len(curated().models)


@pytest.mark.parametrize("model", curated().models, ids=lambda model: model.title)
def test_an_entry_is_whole_and_says_where_it_is_from(model):
    assert len(safe_parts(model.repo_id)) == 2
    assert any(source.startswith("shapes: ") for source in model.sources)
    assert any(source.startswith("size") for source in model.sources)
    assert not model.is_tested
    facts = model.facts
    assert facts.problem is None
    assert facts.n_layers == len(facts.weight_map.layers)
    assert all(layer.n_bytes for layer in facts.weight_map.layers)
    assert facts.caches
    assert min(facts.n_ctx_train, facts.n_vocab, facts.n_embd) > 0
    assert bool(facts.n_experts) == (facts.active_weights.experts > 0)
    if facts.n_mtp_layers:
        assert why_no_mtp(facts) is None
    for file in model.files:
        assert quantisation_of(f"x-{file.quantisation}") == file.quantisation
        bits = 8 * file.n_bytes / model.n_params
        assert 3.8 < bits < (9 if file.quantisation == "Q8_0" else 5.8)
        assert model.facts_of(file).weight_bytes == pytest.approx(file.n_bytes, rel=0.01)


def test_drafts_are_entries_of_their_own_and_said_to_be_untested():
    names = {(model.repo_id, file.quantisation) for model in curated().models for file in model.files}
    for model in curated().models:
        if model.draft is not None:
            assert (model.draft.repo_id, model.draft.quantisation) in names
            assert "may draft, untested" in model.drafting
        assert ("own file, untested" in model.drafting) == bool(model.facts.n_mtp_layers)
        assert (model.assistant is not None) == ("does not run here" in model.unusable_draft)


@pytest.mark.parametrize("title", PUBLISHED)
def test_the_figures_are_the_published_ones(title):
    (facts,) = (model.facts for model in curated().models if model.title == title)
    n_millions, cache, state = PUBLISHED[title]
    assert facts.n_params == pytest.approx(n_millions * 1e6, rel=0.025)
    assert facts.kv_bytes_per_further_token() == cache
    if state is not None:
        assert 4 * facts.state_elements == state


def as_item(header: GgufHeader) -> dict:
    """What the list would say of a model with this header."""
    architecture = header.text("general.architecture")
    keys = {
        key.removeprefix(f"{architecture}."): value if header.count(key) is None else list(header.integers(key))
        for key, value in header.metadata.items()
        if key.startswith(f"{architecture}.") and (header.integer(key) is not None or header.integers(key))
    }
    weights = []
    for tensor in header.tensors:
        _, layer, name = tensor.name.split(".", 2) if tensor.name.startswith("blk.") else ("", "", tensor.name)
        about = {"n_elements": tensor.n_elements, "type": tensor.type.name}
        weights.append({"name": name.removesuffix(".weight") if layer else name, "layers": layer, **about})
    n_tokens = header.count("tokenizer.ggml.tokens")
    return {
        "title": "Fox",
        "licence": "mit",
        "header": {"architecture": architecture, "vocabulary": n_tokens, **keys},
        "weights": weights,
    }


@pytest.mark.parametrize("kind", ["dense", "experts", "hybrid"])
def test_figures_and_a_header_are_judged_alike(kind, tmp_path):
    recipes = {"dense": Recipe(24), "experts": Recipe(n_experts=4, n_experts_used=2)}
    path = qwen35(tmp_path / "hybrid.gguf") if kind == "hybrid" else cached(recipes[kind])
    true = read_model(path)
    listed = facts_from([header_of(as_item(read_header(path)))])
    names = ("caches", "weight_map", "mtp_head", "active_weights", "state_elements", "n_ctx_train", "n_params")
    assert [getattr(listed, name) for name in names] == [getattr(true, name) for name in names]
    assert replace(fit_report(listed, machine()), notes=()) == replace(fit_report(true, machine()), notes=())


def test_ember_has_the_figures_of_its_header():
    item = as_item(read_header(EMBER))
    whole = [weights for weights in item["weights"] if not weights["layers"]]
    first = [weights for weights in item["weights"] if weights["layers"] == "0"]
    n_layers = item["header"]["block_count"]
    summed = {**item, "weights": [*whole, *({**weights, "layers": f"0:{n_layers}"} for weights in first)]}
    assert facts_from([header_of(summed)]).weight_map == read_model(EMBER).weight_map
