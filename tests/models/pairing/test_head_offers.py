"""Heads and other sidecars on the Hub are found, compared by their headers and offered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.hub.errors import HubError
from models.pairing.gain import ProposerKind
from models.pairing.head_offers import hub_heads
from models.pairing.partner import PairingConditions
from tools.model_factory import head_factory
from tools.model_factory.gguf_factory import EMBER_DRAFT
from tools.stand_ins.hub_server import Fault

OWN = "acme/fox-80M-GGUF"
NAMES = (OWN, "Fox 80M")
HERE = PairingConditions(n_cells=1024, n_slots=1)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return head_factory.eagle_head(tmp_path_factory.mktemp("head") / "x.gguf").read_bytes()


def test_a_head_beside_the_model_is_offered_by_its_file(hub, server, deep, head):
    files = {"fox-80M-Q8_0.gguf": b"GGUF", "eagle3-fox-80M-Q8_0.gguf": head, "eagle3-fox-80M-F16.gguf": head + b"\0"}
    server.add(OWN, files)
    answer = hub_heads(hub, deep, NAMES, HERE, OWN)
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
        assert sorted(offer.name for offer in hub_heads(hub, deep, NAMES, HERE, own).offers) == found
    answer = hub_heads(hub, deep, NAMES, replace(HERE, room=1_000))
    assert (answer.offers, any("larger than the memory" in note for note in answer.notes)) == ((), True)
    server.fault("/api/models", Fault(status=503))
    with pytest.raises(HubError):
        hub_heads(hub, deep, NAMES, HERE)


def test_what_cannot_draft_is_named_with_the_reason(hub, server, deep, tmp_path: Path):
    wide = head_factory.eagle_head(tmp_path / "wide.gguf", target_width=512).read_bytes()
    alien = head_factory.eagle_head(tmp_path / "alien.gguf", n_vocab=5_000, has_tables=True).read_bytes()
    alone = head_factory.mtp_alone(tmp_path / "mtp.gguf").read_bytes()
    server.add(OWN, {"eagle3-wide.gguf": wide, "eagle3-alien.gguf": alien, "mtp-fox.gguf": alone})
    notes = hub_heads(hub, deep, NAMES, HERE, OWN).notes
    assert any(note.startswith(f"{OWN}, eagle3-wide: It was made for a model of width 512") for note in notes)
    assert any(note.startswith(f"{OWN}, eagle3-alien: It has ") for note in notes)
    assert any(note.startswith(f"{OWN}, mtp-fox: The file holds only the prediction heads") for note in notes)


def test_a_small_model_beside_the_model_drafts_too(hub, server, deep):
    server.add(OWN, {"fox-80M-Q8_0.gguf": b"GGUF", "draft/fox-2M.gguf": EMBER_DRAFT.read_bytes()})
    (offer,) = hub_heads(hub, deep, NAMES, HERE, OWN).offers
    assert (offer.name, offer.kind) == (f"{OWN}:draft/fox-2M.gguf", ProposerKind.MODEL)


def test_no_head_is_searched_for_where_none_can_run(hub, server, deep, head):
    server.add("acme/fox-eagle3", {"head.gguf": head})
    other = replace(deep, architecture="gemma2")
    lacking = replace(HERE, why_no_head=lambda kind: "Not built in.")
    for answer in (hub_heads(hub, other, NAMES, HERE), hub_heads(hub, deep, NAMES, lacking)):
        assert (answer.offers, len(answer.notes)) == ((), 1)
    assert server.asked == []
