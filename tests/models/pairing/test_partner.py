"""Who could draft for a model, in which order, and why others cannot."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from models.catalog.catalog import Catalog, ModelEntry
from models.pairing.gain import ProposerKind
from models.pairing.partner import PairingConditions, Partner, partners
from models.pairing.store import MeasuredGain, PairStore, file_id
from tests.support.pair_files import decoder_for_vectors, other_words
from tools.model_factory import embedder_factory, gguf_factory, head_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT, Recipe

HERE = PairingConditions(n_cells=1024, n_slots=2, machine="here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library with a deep Ember, its partners and others."""
    shutil.copyfile(gguf_factory.cached(Recipe(n_layers=30)), tmp_path / "deep.gguf")
    head_factory.eagle_head(tmp_path / "head.gguf")
    head_factory.eagle_head(tmp_path / "wide-head.gguf", target_width=512)
    other_words(tmp_path / "other-words.gguf", {900: "fox", 901: "owl"})
    gguf_factory.big_vocab_ember(tmp_path / "more-words.gguf", 20_000, source=EMBER_DRAFT)
    embedder_factory.bert(tmp_path / "vectors.gguf")
    decoder_for_vectors(tmp_path / "decoder-for-vectors.gguf")
    (tmp_path / "broken.gguf").write_bytes(EMBER_DRAFT.read_bytes()[:100_000])
    return tmp_path


def judged(
    folder: Path, name: str = "deep", conditions: PairingConditions = HERE, store: PairStore | None = None
) -> dict[str, Partner]:
    catalog = Catalog([folder])
    entry = catalog.find(name)
    assert entry is not None
    found = partners(entry, catalog.entries(), store or PairStore(folder / "none.json"), conditions)
    return {partner.name: partner for partner in found}


def entry(path: Path) -> ModelEntry:
    found = Catalog([]).find(str(path))
    assert found is not None
    return found


def test_those_that_fit_come_first_and_the_others_say_why_not(folder):
    found = judged(folder)
    usable = [name for name, partner in found.items() if partner.is_usable]
    assert list(found)[: len(usable)] == usable
    assert set(usable) == {"ember-draft-q8_0", "ember-q8_0", "head"}
    gains = [found[name].gain for name in usable]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 1
    assert found["head"].kind is ProposerKind.EAGLE3
    assert "900 is 'fox' instead of" in (found["other-words"].problem or "")
    for name in ("vectors", "decoder-for-vectors"):
        assert found[name].problem == "It turns texts into vectors and writes nothing."
    assert found["more-words"].problem == "It has 20,000 tokens and the model 4,096."
    assert "made for a model of width 512, and this one's is 384" in (found["wide-head"].problem or "")
    assert "incomplete" in (found["broken"].problem or "")
    assert "deep" not in found
    assert judged(folder, "broken") == {}
    (folder / "again").mkdir()
    shutil.copyfile(EMBER_DRAFT, folder / "again" / "ember-draft-q8_0.gguf")
    assert judged(folder)["again/ember-draft-q8_0"].is_usable, "two models of one name are two"


def test_a_larger_model_or_one_nearly_as_large_is_refused_with_both_sizes(folder, tmp_path):
    assert "larger than the model" in (judged(folder, "ember-draft-q8_0")["deep"].problem or "")
    other = gguf_factory.deep_ember(folder / "deep-28.gguf", 28)
    problem = judged(folder)[other.stem].problem or ""
    assert "too large to gain anything" in problem
    assert problem.count("MB") == 2


def test_what_memory_has_no_room_for_is_refused_with_both_numbers(folder):
    found = judged(folder, conditions=replace(HERE, room=16_000_000))
    assert found["ember-draft-q8_0"].is_usable
    problem = found["ember-q8_0"].problem or ""
    assert "of memory beside the model, and 16 MB is left" in problem
    assert judged(folder, conditions=replace(HERE, room=-5))["head"].problem is not None


def test_prediction_heads_in_the_file_are_a_partner(tmp_path):
    shutil.copyfile(head_factory.cached_mtp_counter(16), tmp_path / "counter.gguf")
    own = judged(tmp_path, "counter")["mtp"]
    assert (own.kind, own.path, own.memory) == (ProposerKind.MTP, None, 0)
    assert own.gain > 1
    refused = judged(tmp_path, "counter", replace(HERE, why_no_head=lambda kind: f"No {kind} in this build."))
    assert refused["mtp"].problem == "No mtp in this build."


def test_what_was_measured_goes_before_what_is_expected(folder):
    store = PairStore(folder / "pairs.json")
    target = file_id(folder / "deep.gguf")
    for path, gain in ((EMBER, 2.5), (EMBER_DRAFT, 0.9)):
        store.keep(MeasuredGain(target, file_id(path), "here", gain, 10, 10 * gain, 0.5, 1.4, "2026-01-01"))
    found = judged(folder, store=store)
    assert next(iter(found)) == "ember-q8_0"
    assert (found["ember-q8_0"].gain, found["ember-draft-q8_0"].gain) == (2.5, 0.9)
    assert found["ember-draft-q8_0"].is_usable
    assert not found["ember-draft-q8_0"].is_worth_it
    elsewhere = judged(folder, store=store, conditions=replace(HERE, machine="elsewhere"))
    assert elsewhere["ember-q8_0"].measured is None
    store.keep(MeasuredGain(target, file_id(EMBER_DRAFT), "here", 1.07, 10, 10.7, None, 1.4, "2026-01-01"))
    idle = judged(folder, store=store)["ember-draft-q8_0"]
    assert (idle.gain, idle.is_worth_it) == (1.0, False), "nothing was drafted: the rates differ by chance"


def test_a_head_of_a_kind_that_does_not_run_is_refused(folder):
    head = entry(folder / "head.gguf")
    assert head.facts is not None
    other = replace(head, facts=replace(head.facts, architecture="gemma4-assistant"))
    (found,) = partners(entry(folder / "deep.gguf"), [other], PairStore(folder / "none.json"), HERE)
    assert "of the kind gemma4-assistant, which Slipstream does not run" in (found.problem or "")


def test_a_dflash_head_is_a_partner_whose_block_costs_once(folder):
    head_factory.dflash_head(folder / "block.gguf")
    found = judged(folder)["block"]
    assert (found.kind, found.is_usable) == (ProposerKind.DFLASH, True)
    assert found.prediction is not None
    assert found.prediction.depth > 1
    lacking = judged(folder, conditions=replace(HERE, why_no_head=lambda kind: f"No {kind} in this build."))
    assert lacking["block"].problem == "No dflash in this build."
    head_factory.dflash_head(folder / "block.gguf", extra=("markov_w1.weight",))
    assert "of the kind DSpark" in (judged(folder)["block"].problem or "")


def test_a_file_that_goes_while_it_is_looked_at_is_a_reason(folder):
    catalog = Catalog([folder])
    target, entries = catalog.find("deep"), catalog.entries()
    (folder / "head.gguf").unlink()
    assert target is not None
    found = {one.name: one for one in partners(target, entries, PairStore(folder / "none.json"), HERE)}
    assert "no file" in (found["head"].problem or "")
