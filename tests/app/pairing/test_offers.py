"""What is offered where nothing here can draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.library.find_model import find_model
from app.pairing.offers import offers
from models.catalog.catalog import ModelEntry


def gemma(n_params: int = 31_000_000_000) -> ModelEntry:
    """The deep model as if it were a known large one."""
    entry = find_model("deep")
    facts = entry.facts
    assert facts is not None
    weights = replace(facts.active_weights, shared=n_params)
    sizes = {"n_params": n_params, "n_active_params": n_params, "active_weights": weights}
    return replace(entry, facts=replace(facts, title="Gemma 4 31B", **sizes))


@pytest.fixture(autouse=True)
def _roomy(monkeypatch):
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: 64_000_000_000)


def test_offline_the_list_of_this_project_is_offered_where_memory_has_room(library, monkeypatch):
    found = offers(gemma())
    assert found.offers[0].name == "unsloth/gemma-4-E2B-it-GGUF:Q4_K_M"
    assert "HF_HUB_OFFLINE" in found.notes[0]
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: 200_000_000)
    assert offers(gemma(), asks_hub=False).offers == ()


def test_there_is_always_a_sentence(library):
    assert offers(find_model("deep"), asks_hub=False).notes == ("Prompt lookup drafts without a model.",)
    assert offers(find_model("ember-q8_0")).notes == ("Prompt lookup drafts without a model.",)
    broken = replace(find_model("deep"), facts=None, problem="It is damaged.")
    assert offers(broken).notes == ("It is damaged.",)


def test_bad_settings_of_the_hub_cost_a_sentence(library, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "nowhere")
    found = offers(gemma())
    assert found.offers
    assert "no web address" in found.notes[0]
