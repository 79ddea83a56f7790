"""Who drafts, of those that could."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.pairing.decision import decide
from models.pairing.gain import ProposerKind
from models.pairing.partner import Partner
from models.pairing.store import MeasuredGain, PartnerChoice

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
