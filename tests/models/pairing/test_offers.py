"""What could be downloaded to draft: small siblings, heads, and other sidecars of the Hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.facts.model_facts import ModelFacts, read_model
from models.hub.errors import HubError
from models.pairing.gain import ProposerKind
from models.pairing.head_offers import hub_heads
from models.pairing.offers import curated_offers, family, hub_offers, n_params_in
from models.pairing.partner import PairingConditions
from tests.support.pair_files import decoder_for_vectors, other_words
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT
from tools.stand_ins.hub_server import Fault, HubServer

NAMES = ("acme/fox-80M-Instruct-GGUF", "Fox 80M")
HERE = PairingConditions(n_cells=1024, n_slots=1)


@pytest.fixture
def server(server: HubServer) -> HubServer:
    server.add("acme/fox-2M-GGUF", {"fox-2M-Q4_0.gguf": b"GGUF", "fox-2M-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    return server


def huge(facts: ModelFacts, n_params: int) -> ModelFacts:
    """The same model, as if it had many more parameters."""
    times = n_params / facts.n_params
    weights = replace(facts.active_weights, shared=round(facts.active_weights.shared * times))
    return replace(facts, n_params=n_params, n_active_params=n_params, active_weights=weights)


@pytest.mark.parametrize(
    ("name", "words", "n_params"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "qwen3", 8_000_000_000),
        ("Qwen/Qwen3-30B-A3B-GGUF", "qwen3", 30_000_000_000),
        ("Meta Llama 3.1 8B Instruct", "llama 3.1", 8_000_000_000),
        ("bartowski/Mistral-Small-24B-Instruct-2501-GGUF", "mistral small", 24_000_000_000),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5 coder", 500_000_000),
        ("gemma-3-270m-it-Q8_0", "gemma 3", 270_000_000),
        ("8B", "", 8_000_000_000),
        ("", "", 0),
    ],
)
def test_a_family_is_a_name_without_sizes(name, words, n_params):
    assert (family(name), n_params_in(name)) == (words, n_params)


def test_the_list_names_a_partner_that_it_has_with_its_size_and_gain(deep):
    offers = curated_offers(huge(deep, 31_000_000_000), ("gemma-4-31B-it-Q4_K_M",), HERE)
    assert [offer.name for offer in offers][:1] == ["unsloth/gemma-4-E2B-it-GGUF:Q4_K_M"]
    assert offers[0].gain > 1.05
    assert not offers[0].is_checked
    assert offers[0].n_bytes == 3_106_738_272
    siblings = curated_offers(huge(deep, 9_200_000_000), ("Qwen3.5 9B",), HERE)
    assert "unsloth/Qwen3.5-0.8B-MTP-GGUF" in [offer.repo_id for offer in siblings]


def test_the_list_has_nothing_for_unknown_or_small_models_or_without_room(deep):
    assert curated_offers(huge(deep, 8_000_000_000), ("Fox 8B", ""), HERE) == ()
    assert curated_offers(huge(deep, 770_000_000), ("Qwen3.5 0.8B",), HERE) == ()
    assert curated_offers(huge(deep, 9_200_000_000), ("Qwen3.5 9B",), replace(HERE, room=1_000_000)) == ()


def test_the_hub_is_searched_for_a_small_sibling_whose_tokens_are_compared(hub, server, deep):
    answer = hub_offers(hub, deep, NAMES, HERE)
    (offer,) = answer.offers
    assert (offer.name, offer.n_bytes, offer.is_checked) == ("acme/fox-2M-GGUF:Q8_0", EMBER_DRAFT.stat().st_size, True)
    assert offer.gain > 1.05
    assert server.n_content_bytes <= 2 << 20


def test_a_sibling_of_other_tokens_is_named_with_the_reason(hub, server, deep, tmp_path: Path):
    words = other_words(tmp_path / "x.gguf", {900: "fox"}).read_bytes()
    server.add("acme/fox-3M-GGUF", {"fox-3M-Q8_0.gguf": words}, downloads=9)
    server.add("acme/fox-broken-GGUF", {"fox-Q8_0.gguf": b"GGUF" * 100}, downloads=9)
    server.add("acme/fox-gated-GGUF", {"fox-Q8_0.gguf": EMBER_DRAFT.read_bytes()}, gated="auto")
    answer = hub_offers(hub, deep, NAMES, HERE)
    assert [offer.repo_id for offer in answer.offers] == ["acme/fox-2M-GGUF"]
    assert any(note.startswith("acme/fox-3M-GGUF: 1 token id means another text: 900") for note in answer.notes)
    assert any(note.startswith("acme/fox-broken-GGUF: ") for note in answer.notes)


def test_siblings_made_for_vectors_are_not_offered_nor_hide_those_that_write(hub, server, deep, tmp_path: Path):
    vectors = decoder_for_vectors(tmp_path / "vectors.gguf").read_bytes()
    for kind in ("Embedding", "Reranker", "Guard"):
        server.add(f"acme/fox-{kind}-2M-GGUF", {"fox-2M-Q8_0.gguf": vectors}, downloads=9)
    answer = hub_offers(hub, deep, NAMES, HERE)
    assert [offer.repo_id for offer in answer.offers] == ["acme/fox-2M-GGUF"]
    assert answer.notes[0].endswith("-2M-GGUF: It turns texts into vectors and writes nothing.")


def test_no_sibling_or_no_room_is_said_and_a_hub_that_fails_raises(hub, deep, server):
    assert "no small sibling" in hub_offers(hub, deep, ("Bear 80M",), HERE).notes[0]
    assert "says nothing of its family" in hub_offers(hub, deep, ("80M",), HERE).notes[0]
    assert "no small sibling" in hub_offers(hub, read_model(EMBER), ("fox",), HERE).notes[0]
    answer = hub_offers(hub, deep, NAMES, replace(HERE, room=1000))
    assert (answer.offers, "larger than the memory" in answer.notes[0]) == ((), True)
    server.fault("/api/models", Fault(status=503))
    with pytest.raises(HubError):
        hub_offers(hub, deep, NAMES, HERE)


OWN = "acme/fox-80M-GGUF"
OWN_NAMES = (OWN, "Fox 80M")


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return head_factory.eagle_head(tmp_path_factory.mktemp("head") / "x.gguf").read_bytes()


def test_a_head_beside_the_model_is_offered_by_its_file(hub, server, deep, head):
    files = {"fox-80M-Q8_0.gguf": b"GGUF", "eagle3-fox-80M-Q8_0.gguf": head, "eagle3-fox-80M-F16.gguf": head + b"\0"}
    server.add(OWN, files)
    answer = hub_heads(hub, deep, OWN_NAMES, HERE, OWN)
    (offer,) = answer.offers
    assert (offer.name, offer.kind, offer.is_checked) == (f"{OWN}:eagle3-fox-80M-Q8_0.gguf", ProposerKind.EAGLE3, True)
    assert (offer.n_bytes, offer.gain > 1.05, answer.notes) == (len(head), True, ())


def test_heads_of_the_family_are_searched_and_those_of_other_sizes_left_out(hub, server, deep, head):
    server.add("acme/Fox-80M-EAGLE3-GGUF", {"Fox-80M-EAGLE3-Q8_0.gguf": head}, downloads=1)
    server.add("acme/fox-eagle3", {"head.gguf": head}, downloads=5)
    server.add("acme/fox-8B-eagle3", {"head-Q8_0.gguf": head}, downloads=9)
    server.add("acme/fox-80M-eagle3-gated", {"head-Q8_0.gguf": head}, gated="auto")
    found = ["acme/Fox-80M-EAGLE3-GGUF:Fox-80M-EAGLE3-Q8_0.gguf", "acme/fox-eagle3:head.gguf"]
    server.add("acme/fox-80M-eagle3-none", {"fox-80M-Q8_0.gguf": EMBER_DRAFT.read_bytes()})
    # Its own repository may be gone.
    for own in ("", OWN):
        assert sorted(offer.name for offer in hub_heads(hub, deep, OWN_NAMES, HERE, own).offers) == found
    answer = hub_heads(hub, deep, OWN_NAMES, replace(HERE, room=1_000))
    assert (answer.offers, any("larger than the memory" in note for note in answer.notes)) == ((), True)
    server.fault("/api/models", Fault(status=503))
    with pytest.raises(HubError):
        hub_heads(hub, deep, OWN_NAMES, HERE)


def test_what_cannot_draft_is_named_with_the_reason(hub, server, deep, tmp_path: Path):
    wide = head_factory.eagle_head(tmp_path / "wide.gguf", target_width=512).read_bytes()
    alien = head_factory.eagle_head(tmp_path / "alien.gguf", n_vocab=5_000, has_tables=True).read_bytes()
    alone = head_factory.mtp_alone(tmp_path / "mtp.gguf").read_bytes()
    server.add(OWN, {"eagle3-wide.gguf": wide, "eagle3-alien.gguf": alien, "mtp-fox.gguf": alone})
    notes = hub_heads(hub, deep, OWN_NAMES, HERE, OWN).notes
    assert any(note.startswith(f"{OWN}, eagle3-wide: It was made for a model of width 512") for note in notes)
    assert any(note.startswith(f"{OWN}, eagle3-alien: It has ") for note in notes)
    assert any(note.startswith(f"{OWN}, mtp-fox: The file holds only the prediction heads") for note in notes)


def test_a_small_model_beside_the_model_drafts_too(hub, server, deep):
    server.add(OWN, {"fox-80M-Q8_0.gguf": b"GGUF", "draft/fox-2M.gguf": EMBER_DRAFT.read_bytes()})
    (offer,) = hub_heads(hub, deep, OWN_NAMES, HERE, OWN).offers
    assert (offer.name, offer.kind) == (f"{OWN}:draft/fox-2M.gguf", ProposerKind.MODEL)


def test_no_head_is_searched_for_where_none_can_run(hub, server, deep, head):
    server.add("acme/fox-eagle3", {"head.gguf": head})
    other = replace(deep, architecture="gemma2")
    lacking = replace(HERE, why_no_head=lambda kind: "Not built in.")
    for answer in (hub_heads(hub, other, OWN_NAMES, HERE), hub_heads(hub, deep, OWN_NAMES, lacking)):
        assert (answer.offers, len(answer.notes)) == ((), 1)
    assert server.asked == []
