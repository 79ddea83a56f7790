"""Who drafts when a model is loaded, and who does of those that could."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.environment.paths import model_settings_file
from app.library.find_model import UnknownModel, catalog, find_model
from app.pairing.decision import decide
from app.pairing.service import CannotPair, choose, choose_automatically, draft_for, pairing
from app.settings.model_settings_store import ModelSettingsStore
from app.settings.server_settings import USUAL_ENGINE, ServerSettings
from core.machine.host import this_machine
from core.machine.known_machine import (
    MachineProbe,
    remember_probe,
    runs_key,
)
from core.values.errors import BadOption
from models.catalog.catalog import ModelEntry
from models.estimate.speed.probe import Probe
from models.estimate.speed.runs import ModelRun, add_runs
from models.pairing.gain import ProposerKind
from models.pairing.partner import Partner
from models.pairing.store import MeasuredGain, PartnerChoice
from tests.support.pair_files import other_words
from tools.model_factory import gguf_factory, head_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT

USUAL = ServerSettings()
STARTER = ModelEntry("ember-q8_0", EMBER, is_toy=True)


def deep() -> ModelEntry:
    return find_model("deep")


def drafts(entry: ModelEntry, settings: ServerSettings = USUAL):
    return draft_for(entry, catalog(), settings)


def set_draft(entry: ModelEntry, name: str) -> None:
    ModelSettingsStore(model_settings_file()).change(
        entry.path, entry.name, lambda old: old.with_texts({"draft": name})
    )


def test_the_bundled_model_has_the_bundled_partner(home):
    found = drafts(STARTER)
    assert (found.path, found.name, found.notices) == (EMBER_DRAFT, "ember-draft-q8_0", ())
    assert "× expected" in found.why
    assert drafts(ModelEntry("draft", EMBER_DRAFT)).path is None
    for none in (ServerSettings(uses_draft=False), ServerSettings(engine=replace(USUAL_ENGINE, speculation="off"))):
        assert drafts(STARTER, none).path is None
    with pytest.raises(BadOption, match="leave out one"):
        ServerSettings(draft="x", uses_draft=False)


def test_a_chosen_file_outside_of_the_library_or_a_head_is_used_from_there(library, tmp_path):
    own = tmp_path / "elsewhere" / "own.gguf"
    own.parent.mkdir()
    shutil.copyfile(EMBER_DRAFT, own)
    choose(deep(), str(own))
    assert drafts(deep()).path == own
    head = head_factory.eagle_head(library / "head.gguf")
    choose(deep(), "head")
    assert drafts(deep()).path == head


@pytest.mark.parametrize("harm", ["gone", "cut", "changed", "empty"])
def test_a_chosen_draft_that_is_gone_or_damaged_costs_a_sentence(library, harm):
    own = library / "own.gguf"
    shutil.copyfile(EMBER_DRAFT, own)
    choose(deep(), "own")
    assert drafts(deep()).path == own
    content = own.read_bytes()
    if harm == "gone":
        own.unlink()
    else:
        own.write_bytes({"cut": content[: len(content) // 2], "changed": EMBER.read_bytes(), "empty": b""}[harm])
    found = drafts(deep())
    assert found.path == EMBER_DRAFT
    (notice,) = found.notices
    assert "own, which was chosen to draft" in notice
    assert "ember-draft-q8_0 drafts" in notice


def test_a_moved_target_and_a_moved_draft_are_known_again(library):
    own = library / "own.gguf"
    shutil.copyfile(EMBER_DRAFT, own)
    choose(deep(), "own")
    (library / "deeper").mkdir()
    (library / "deep.gguf").rename(library / "deeper" / "renamed.gguf")
    moved = own.rename(library / "deeper" / "own-renamed.gguf")
    found = drafts(find_model("renamed"))
    assert (found.path, found.notices) == (moved, ())


def test_a_damaged_store_is_said_and_the_model_has_a_partner(home, library):
    (home / "data" / "pairs.json").write_bytes(b"{")
    found = drafts(deep())
    assert found.path == EMBER_DRAFT
    assert "pairs.json.broken-1, and a new one begins" in found.notices[0]


def test_settings_of_the_model_go_before_choices_until_another_is_made(library):
    choose(deep(), None)
    set_draft(deep(), "ember-q8_0")
    found = drafts(deep())
    assert found.path == EMBER
    assert "ember-q8_0 drafts: the model's settings name it, which goes before automatic pairing." in found.why
    assert "Without that: You chose that none drafts." in found.why
    choose(deep(), "ember-q8_0")
    assert drafts(deep()).path == EMBER
    assert drafts(deep()).why.startswith("You chose ember-q8_0")
    set_draft(deep(), "None")
    assert drafts(deep()).path is None
    assert "None drafts: the model's settings say so" in drafts(deep()).why
    choose_automatically(deep())
    assert (drafts(deep()).path, drafts(deep()).notices) == (EMBER_DRAFT, ())


def test_a_draft_in_the_settings_that_cannot_be_used_costs_a_sentence(library, tmp_path):
    set_draft(deep(), "nobody")
    found = drafts(deep())
    assert found.path == EMBER_DRAFT
    assert "draft in the model's settings cannot be used" in found.notices[0]
    set_draft(deep(), "mtp")  # heads, of a file without any
    assert "there is no model called 'mtp'" in drafts(deep()).notices[0]
    set_draft(deep(), "deep")
    assert "no model drafts for itself" in drafts(deep()).notices[0]
    assert drafts(deep()).path == EMBER_DRAFT
    other_words(library / "other.gguf", {900: "fox"})
    set_draft(deep(), "other")
    found = drafts(deep())
    assert found.path == EMBER_DRAFT
    assert "The model's settings name other, which cannot draft for it. 1 token id means" in found.notices[0]
    elsewhere = tmp_path / "elsewhere.gguf"
    shutil.copyfile(EMBER_DRAFT, elsewhere)
    set_draft(deep(), str(elsewhere))
    assert drafts(deep()).path == elsewhere
    assert pairing(deep()).partners[0].path == elsewhere


def test_where_memory_is_short_nobody_drafts_but_as_wished(library, monkeypatch):
    set_draft(deep(), "ember-q8_0")
    entry = deep()
    assert entry.facts is not None
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: entry.facts.weight_bytes)
    found = drafts(entry)
    assert found.path == EMBER
    assert "ember-q8_0 may not help. It needs" in found.notices[0]
    choose_automatically(entry)
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: entry.facts.weight_bytes * 2)
    found = drafts(entry, ServerSettings(engine=replace(USUAL_ENGINE, n_ctx=1024, n_slots=1)))
    refused = {one.name: one.problem for one in pairing(entry).partners}
    assert all("of memory beside the model" in str(refused[name]) for name in ("ember-q8_0",))
    assert found.path in (None, EMBER_DRAFT)
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: entry.facts.weight_bytes)
    assert drafts(entry).path is None


def test_with_a_gpu_only_the_engine_knows_what_fits(library, monkeypatch):
    monkeypatch.setattr("app.pairing.conditions.gpu_backends", lambda: ("cuda",))
    monkeypatch.setattr("app.pairing.conditions.free_memory", lambda: 1_000_000)
    assert drafts(deep()).path == EMBER_DRAFT
    assert drafts(deep(), ServerSettings(engine=replace(USUAL_ENGINE, n_gpu_layers=0))).path is None


def test_a_model_that_cannot_be_loaded_has_no_partner_and_raises_nothing(library):
    assert drafts(ModelEntry("gone", library / "gone.gguf")).path is None
    (library / "bad.gguf").write_bytes(b"GGUF")
    bad = next(entry for entry in catalog().entries() if entry.name == "bad")
    assert drafts(bad).path is None
    assert pairing(bad).partners == ()
    assert "Nothing can draft for bad." in pairing(bad).decision.why


def test_none_is_none_also_for_heads_in_the_file(home, library):
    shutil.copyfile(head_factory.cached_mtp_counter(16), library / "counter.gguf")
    counter = find_model("counter")
    assert drafts(counter).uses_heads
    assert not drafts(counter, ServerSettings(uses_draft=False)).uses_heads
    choose(counter, None)
    assert (drafts(counter).path, drafts(counter).uses_heads) == (None, False)
    assert "You chose that none drafts." in drafts(counter).why
    choose(counter, "mtp")
    found = drafts(counter)
    assert (found.path, found.name, found.uses_heads) == (None, "mtp", True)
    choose_automatically(counter)
    set_draft(counter, "none")
    assert not drafts(counter).uses_heads
    set_draft(counter, "mtp")
    found = drafts(counter)
    assert (found.name, found.uses_heads) == ("mtp", True)
    assert "mtp drafts: the model's settings name it" in found.why


def test_heads_may_draft_beside_a_partner_that_nobody_chose(home, library):
    shutil.copyfile(head_factory.cached_mtp_counter(16), library / "counter.gguf")
    head_factory.counter(library / "small.gguf", 1)
    counter = find_model("counter")
    choose(counter, "small")
    assert (drafts(counter).name, drafts(counter).uses_heads) == ("small", False)
    choose_automatically(counter)
    assert drafts(counter).uses_heads


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("nobody", UnknownModel, "Those that can draft for deep: ember-draft-q8_0"),
        ("deep", CannotPair, "cannot draft for itself"),
        ("words", CannotPair, "It has 20,000 tokens"),
    ],
)
def test_what_cannot_draft_cannot_be_chosen(library, name, error, words):
    gguf_factory.big_vocab_ember(library / "words.gguf", 20_000, source=EMBER_DRAFT)
    with pytest.raises(error, match=words):
        choose(deep(), name)


def test_a_folder_that_cannot_be_written_is_said(home, library):
    if os.geteuid() == 0:
        (home / "data" / "pairs.json.lock").mkdir()  # whoever may write everywhere cannot lock a folder
    else:
        (home / "data").chmod(0o500)
    with pytest.raises(Exception, match=r"cannot be written"):
        choose(deep(), None)
    (home / "data").chmod(0o700)


def test_what_a_draft_reached_in_replies_replaces_what_was_published(home, library):
    facts = deep().facts
    assert facts is not None
    before = pairing(deep()).partners[0]
    assert before.prediction is not None
    assert not before.prediction.is_measured
    run = ModelRun(
        "deep", facts.weight_bytes, "", before.name, {"CPU: layer": 1.0}, 0.01, 90.0, 9, 64, 2_000, 1_000, 1.0
    )
    add_runs(home / "cache", runs_key(), [run])
    after = next(one for one in pairing(deep()).partners if one.name == before.name)
    assert after.prediction is not None
    assert after.prediction.is_measured
    assert after.prediction.acceptance == pytest.approx(0.5, abs=0.01)
    assert after.prediction.acceptance < before.prediction.acceptance


def test_what_was_measured_of_the_machine_decides_what_a_draft_costs(home, library):
    before = pairing(deep()).partners[0].prediction
    here = this_machine()
    device = Probe({"Q8_0": 20e9, "F32": 20e9}, {"F16": 1e9}, 1e-6, 0.01)
    remember_probe(home / "cache", MachineProbe(here.cpu, here.ram, {"CPU": device}))
    after = pairing(deep()).partners[0].prediction
    assert before is not None
    assert after is not None
    assert after.gain > before.gain, "a row costs a hundredth of a step here"


GOOD = Partner("good", Path("/m/good.gguf"), ProposerKind.MODEL, gain=1.6, id="1")
FAIR = Partner("fair", Path("/m/fair.gguf"), ProposerKind.MODEL, gain=1.2, id="2")
POOR = Partner("poor", Path("/m/poor.gguf"), ProposerKind.MODEL, gain=1.01, id="3")
LARGE = Partner(
    "large", Path("/m/large.gguf"), ProposerKind.MODEL, gain=1.9, problem="It needs 9 GB of memory.", id="4"
)
BY_USER = PartnerChoice("t", "2", "fair", "/m/fair.gguf", "user")
MEASURED = MeasuredGain("t", "2", "here", 1.7, 10, 17, 0.7, 1.2, "2026-01-01")


@pytest.mark.parametrize(
    ("partners", "used", "words"),
    [
        ((GOOD, FAIR, LARGE), "good", "good drafts: 1.60× expected."),
        ((replace(FAIR, measured=MEASURED, gain=1.7), GOOD), "fair", "1.70× measured here"),
        ((POOR, LARGE), None, "poor is the best with 1.01× expected"),
        ((LARGE,), None, "no small model here that fits"),
        ((), None, "Prompt lookup drafts without a model."),
    ],
)
def test_the_best_that_is_worth_it_drafts(partners, used, words):
    decision = decide(partners, None)
    assert (decision.used.name if decision.used else None) == used
    assert words in decision.why
    assert decision.notices == ()


def test_what_was_chosen_goes_before_what_is_better():
    decision = decide((GOOD, FAIR), BY_USER)
    assert (decision.used, decision.why) == (FAIR, "You chose fair: 1.20× expected.")
    assert "A test chose" in decide((GOOD, FAIR), replace(BY_USER, by="test")).why
    assert decide((GOOD, POOR), replace(BY_USER, draft="3", name="poor")).used is POOR
    assert decide((replace(FAIR, id="9"),), BY_USER).notices, "another file in its place is not taken for it"
    for by, words in (("user", "You chose that none"), ("test", "A test found none")):
        decision = decide((GOOD,), PartnerChoice("t", None, "", "", by))
        assert (decision.used, words in decision.why) == (None, True)


def test_a_chosen_one_that_is_gone_or_cannot_is_said_and_the_best_drafts():
    gone = decide((GOOD,), BY_USER)
    assert gone.used is GOOD
    assert gone.notices[0].startswith("fair, which was chosen to draft, is no longer at /m/fair.gguf")
    assert "good drafts" in gone.notices[0]
    large = decide((GOOD, LARGE), replace(BY_USER, draft="4", name="large"))
    assert large.used is GOOD
    assert "large, which was chosen to draft, cannot: It needs 9 GB" in large.notices[0]
    broken = replace(FAIR, id="", problem="fair.gguf is incomplete.")
    assert "cannot: fair.gguf is incomplete." in decide((GOOD, broken), BY_USER).notices[0]
    nothing = decide((), BY_USER)
    assert nothing.used is None
    assert "Prompt lookup" in nothing.notices[0]
