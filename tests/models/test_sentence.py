"""Sentences that know their facts: as text, over pipes and routes, and in another language."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.values.errors import BadRequest, LoadFailed, ModelDoesNotFit
from models.formatting import sentence
from models.formatting.json_values import fitting, plain, value_of
from models.formatting.sentence import Sentence, joined, said_in, without_facts
from models.formatting.system_error import system_reason

GERMAN = {
    "{needed:size} are needed in {folder}.": "In {folder} werden {needed:size} gebraucht.",
    "It cannot be loaded. {why}": "Es kann nicht geladen werden. {why}",
}


@pytest.fixture
def german() -> Iterator[None]:
    sentence.speak(lambda text: GERMAN.get(text, text))
    yield
    sentence.speak(str)


def needed() -> Sentence:
    return Sentence("{needed:size} are needed in {folder}.", needed=4_900_000_000, folder=Path("/models"))


@dataclass(frozen=True)
class Answer:
    problem: str | None
    notes: tuple[str, ...] = ()


def test_it_is_text_like_any_other() -> None:
    assert needed() == "4.9 GB are needed in /models."
    assert f"{needed()} Free some." == "4.9 GB are needed in /models. Free some."
    assert json.dumps([needed()]) == '["4.9 GB are needed in /models."]'
    assert (
        Sentence("{n:,} of {share:.0%}, {rate:rate}, {gone}", n=1_200, share=0.5, rate=7.26)
        == "1,200 of 50%, 7.3, {gone}"
    )
    assert joined(["One.", "", needed()]) == "One. 4.9 GB are needed in /models."


def test_its_facts_survive_errors_copies_and_pipes() -> None:
    for kept in (
        str(LoadFailed(needed())),
        BadRequest(needed().text, param="n", **needed().facts).message,
        pickle.loads(pickle.dumps(BadRequest(needed().text, param="n", **needed().facts))).message,
        LoadFailed(needed()).message,
        pickle.loads(pickle.dumps(needed())),
        copy.deepcopy(needed()),
    ):
        assert isinstance(kept, Sentence)
        assert kept.facts == {"needed": 4_900_000_000, "folder": "/models"}
    assert isinstance(ModelDoesNotFit(3, 2).message, Sentence)


@pytest.mark.usefixtures("german")
def test_read_again_it_is_said_in_the_language_of_the_reader() -> None:
    sentence.speak(str)
    sent = json.loads(
        json.dumps(plain(Answer(Sentence("It cannot be loaded. {why}", why=needed()), (needed(), "by hand"))))
    )
    assert sent["problem"]["said"] == "It cannot be loaded. 4.9 GB are needed in /models."
    assert without_facts(sent) == {
        "problem": "It cannot be loaded. 4.9 GB are needed in /models.",
        "notes": ["4.9 GB are needed in /models.", "by hand"],
    }
    sentence.speak(lambda text: GERMAN.get(text, text))
    read = value_of(Answer, sent)
    assert read.problem == "Es kann nicht geladen werden. In /models werden 4.9 GB gebraucht."
    assert read.notes == ("In /models werden 4.9 GB gebraucht.", "by hand")
    assert json.loads(json.dumps(sent), object_hook=said_in)["problem"] == read.problem


@pytest.mark.parametrize(
    "facts", [{"needed": "much", "folder": "/"}, {"needed": None}, None, {"needed": [1]}, {"needed": {"text": 1}}]
)
def test_what_another_program_sends_breaks_nothing(facts: object) -> None:
    found = {"said": "What it said.", "text": "{needed:size} are needed in {folder}.", "facts": facts}
    assert said_in(found) == "What it said."
    assert said_in({"facts": facts}) == {"facts": facts}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"problem": None, "notes": ["a", 1, None, "b"]}, Answer(None, ("a", "b"))),
        ({"problem": "no", "notes": True, "of a newer version": 1}, Answer("no")),
        ({"problem": 1, "notes": []}, None),
        ([], None),
    ],
    ids=["odd entries", "odd field", "odd field without a default", "no object"],
)
def test_what_fits_of_what_another_version_wrote_is_kept(found: object, expected: Answer | None) -> None:
    assert fitting(Answer, found) == expected


def test_holes_reach_nothing_of_a_fact() -> None:
    assert Sentence("{path.__class__} {0} {path!r} {{path}}", path=Path("/")) == "{path.__class__} {0} {path!r} {/}"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, ""), PermissionError(errno.EACCES, "Permission denied")])
def test_the_system_refuses_in_the_language_of_the_reader(error: OSError) -> None:
    assert system_reason(error) == os.strerror(error.errno)
    assert isinstance(system_reason(error), Sentence)


def test_the_reason_of_the_system_is_found_behind_what_was_made_of_it() -> None:
    with pytest.raises(OSError, match="refused") as refused:
        socket.create_connection(("127.0.0.1", 1), timeout=5)
    made = RuntimeError("All attempts failed")
    made.__cause__ = refused.value
    assert system_reason(made) == "Connection refused"
    assert system_reason(socket.gaierror(socket.EAI_NONAME, "whatever")) == "Name or service not known"
    assert system_reason(TimeoutError()) == "Connection timed out"
    assert system_reason(OSError("its own words")) == "its own words"
    assert system_reason(OSError(errno.EXDEV, "its own words")) == "its own words"
    assert system_reason(ValueError()) == "ValueError"
