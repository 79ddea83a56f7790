"""What is offered to download: where nothing here can draft, and along with a model of the Hub."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.library.find_model import catalog, find_model
from app.library.hub_access import hub
from app.pairing.offers import DraftSearch, offers
from models.catalog.catalog import ModelEntry
from models.facts.model_facts import ModelFacts
from models.hub.remote_source import remote_facts
from models.hub.repository import HubModel
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import EMBER_DRAFT, Recipe


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


REPO = "acme/fox-90M-GGUF"
N_VOCAB = 5_000  # no bundled model has so many tokens


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A model of a vocabulary of its own, and a small one that fits it."""
    folder = tmp_path_factory.mktemp("files")
    model = gguf_factory.big_vocab_ember(folder / "m.gguf", N_VOCAB, n_layers=30)
    small = gguf_factory.big_vocab_ember(folder / "s.gguf", N_VOCAB, source=EMBER_DRAFT)
    return {"model": model.read_bytes(), "small": small.read_bytes()}


def look() -> tuple[DraftSearch, HubModel, ModelFacts]:
    client = hub()
    repository = client.repository(REPO)
    model = next(one for one in repository.models if one.name == "fox-90M-Q8_0")
    return DraftSearch(client, repository), model, remote_facts(client, repository, model)


def test_a_small_model_of_the_family_is_offered_and_priced_for_each_type_without_asking_again(hub_server, files):
    hub_server.add(REPO, {"fox-90M-Q8_0.gguf": files["model"]})
    hub_server.add("acme/fox-2M-GGUF", {"fox-2M-Q8_0.gguf": files["small"]})
    search, model, facts = look()
    offer = search.find(model, facts, ()).offer
    assert offer is not None
    assert offer.name == "acme/fox-2M-GGUF:Q8_0"
    n_asked = len(hub_server.asked)
    weights = replace(facts.active_weights, shared=facts.active_weights.shared // 2)
    smaller = search.find(model, replace(facts, active_weights=weights), ()).offer
    assert smaller is not None
    assert 1 < smaller.gain < offer.gain
    tiny = replace(facts, active_weights=replace(facts.active_weights, shared=1_000))
    assert search.find(model, tiny, ()).offer is None
    assert len(hub_server.asked) == n_asked


def test_nothing_is_offered_where_something_here_drafts(hub_server):
    hub_server.add(REPO, {"fox-90M-Q8_0.gguf": gguf_factory.cached(Recipe(n_layers=30)).read_bytes()})
    hub_server.add("acme/fox-2M-GGUF", {"fox-2M-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    search, model, facts = look()
    found = search.find(model, facts, catalog().entries())
    assert found.offer is None
    assert found.why.startswith("ember-draft-q8_0 drafts: 1.")
    assert not any("/api/models?" in asked.path for asked in hub_server.asked), "nobody is searched for"
