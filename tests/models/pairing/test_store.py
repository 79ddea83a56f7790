"""What is kept of pairs, and what becomes of it when the file is damaged."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from models.gguf.errors import UnreadableFile
from models.pairing.store import MeasuredGain, PairStore, PartnerChoice, file_id
from tools.model_factory.gguf_factory import EMBER_DRAFT

GAIN = MeasuredGain("big", "small", "here", 1.8, 10.0, 18.0, 0.7, 1.5, "2026-01-02")
CHOICE = PartnerChoice("big", "small", "little", "/models/little.gguf", "user")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "pairs.json"


def test_what_is_kept_is_there_again(path):
    kept = PairStore(path)
    assert kept.is_empty
    kept.keep(GAIN)
    kept.choose(CHOICE)
    again = PairStore(path)
    assert (again.gain("big", "small", "here"), again.choice("big", "here")) == (GAIN, CHOICE)
    assert again.gain("big", "small", "elsewhere") is None
    assert again.gains("here") == (GAIN,)
    assert (again.is_empty, again.problem) == (False, None)
    again.keep(replace(GAIN, gain=2.0))
    assert [gain.gain for gain in PairStore(path).gains("here")] == [2.0]


def test_a_choice_is_forgotten_and_one_of_a_test_holds_on_its_machine(path):
    kept = PairStore(path)
    kept.choose(CHOICE)
    kept.forget_choice("big")
    kept.forget_choice("big")
    assert PairStore(path).choice("big", "here") is None
    kept = PairStore(path)
    kept.choose(replace(CHOICE, by="test", machine="here"))
    assert kept.choice("big", "here") is not None
    assert kept.choice("big", "elsewhere") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"gain": 0},
        {"gain": -1.0},
        {"gain": "much"},
        {"gain": float("nan")},
        {"gain": float("inf")},
        {"date": 3},
        {"forecast": None},
    ],
)
def test_an_item_that_makes_no_sense_costs_only_itself(path, wrong):
    kept = PairStore(path)
    kept.keep(GAIN)
    kept.choose(CHOICE)
    listed = json.loads(path.read_text())
    gains, choices = listed["entries"]["gains"], listed["entries"]["choices"]
    gains += [{**gains[0], "draft": "other", **wrong}, 17]
    choices += [{"target": "x", "by": "nobody"}, {**choices[0], "target": "y", "by": "nobody"}]
    path.write_text(json.dumps(listed))
    again = PairStore(path)
    assert again.problem is None
    assert again.gains("here") == (GAIN,)
    assert (again.choice("big", "here"), again.choice("y", "here")) == (CHOICE, None)


def test_a_file_is_known_again_after_a_move_and_not_after_a_change(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(EMBER_DRAFT.read_bytes())
    known = file_id(path)
    moved = path.rename(tmp_path / "b.gguf")
    assert file_id(moved) == known
    os.utime(moved, ns=(1, 1))
    assert file_id(moved) != known
    moved.unlink()
    with pytest.raises(UnreadableFile, match="cannot be read"):
        file_id(moved)
