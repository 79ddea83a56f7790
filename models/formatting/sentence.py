"""Sentences that are English text and keep their template and facts, so that a window can translate them.

    Sentence("{needed:size} are needed in {folder}.", needed=4_900_000_000, folder="/models")

is the text "4.9 GB are needed in /models." and can be used like any other. Its template and facts are sent along over
pipes and HTTP. A process that receives it renders it in its own language: English unless `speak` was called.
`tools/translations.py` gathers the templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from models.formatting import figures
from models.formatting.safe_text import in_utf8

_HOLE: Final = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_FORMS: Final[Mapping[str, Callable[[Any], str]]] = {
    "size": figures.size,
    "rate": figures.rate,
    "expected": figures.expected_speed,
    "duration": figures.duration,
}

_translate: Callable[[str], str] = str


def speak(translate: Callable[[str], str]) -> None:
    """Translate the template of each sentence that this process makes from now on."""
    global _translate
    _translate = translate


class Sentence(str):
    """A text with its facts in place of its {holes}. Formats are Python's, or those of _FORMS.

    A fact that is a sentence itself keeps its own facts.
    """

    text: str
    facts: Mapping[str, str | int | float]

    def __new__(cls, text: str, /, **facts: object) -> Sentence:
        """Fill ``text`` with ``facts``; facts that are neither text nor numbers are converted to text."""
        kept = {name: _fact(fact) for name, fact in facts.items()}
        sentence = super().__new__(cls, _filled(_translate(text), kept))
        sentence.text, sentence.facts = text, kept
        return sentence

    def __str__(self) -> str:
        """Return the sentence with its facts, so that the text of an error keeps them."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it by what it was made of."""
        return _made_of, (self.text, dict(self.facts))


def with_facts(text: str, facts: Mapping[str, object]) -> str:
    """Return a text with ``facts`` for its {holes} as a sentence; without facts as it is."""
    return Sentence(text, **facts) if facts else text


class SentenceError(Exception):
    """An error that is shown to a user. With ``facts`` for its {holes}, its text becomes a sentence."""

    def __init__(self, text: str = "", /, **facts: object) -> None:
        super().__init__(with_facts(text, facts))


def joined(sentences: Iterable[str], between: str = " ") -> Sentence:
    """Return several sentences as one; empty ones are left out."""
    parts = [sentence for sentence in sentences if sentence]
    text = between.join(f"{{{number}}}" for number in range(len(parts)))
    return Sentence(text, **{str(number): part for number, part in enumerate(parts)})


def as_object(sentence: Sentence) -> dict[str, Any]:
    """Return a sentence as a JSON object (``said``, ``text``, ``facts``) for a reader that may translate it."""
    facts = {name: as_object(fact) if isinstance(fact, Sentence) else fact for name, fact in sentence.facts.items()}
    return {"said": sentence[:], "text": sentence.text, "facts": facts}


def from_object(found: Mapping[str, Any]) -> str:
    """Read what `as_object` wrote; any program may have written it. Raises TypeError, ValueError and KeyError."""
    facts = {name: from_object(fact) if isinstance(fact, dict) else fact for name, fact in found["facts"].items()}
    if not isinstance(found["text"], str) or not all(isinstance(fact, str | int | float) for fact in facts.values()):
        raise TypeError("no sentence")
    return Sentence(found["text"], **facts)


def said_in(found: dict[str, Any]) -> Any:
    """Return the sentence that a JSON object stands for, else the object: an ``object_hook`` for ``json.loads``."""
    if "said" not in found or "facts" not in found:
        return found
    try:
        return from_object(found)
    except (AttributeError, TypeError, ValueError, KeyError):
        return found["said"]


def without_facts(value: Any) -> Any:
    """Return a JSON value in which the object of each sentence is replaced by its English text."""
    if isinstance(value, dict):
        if "said" in value and "facts" in value:
            return value["said"]
        return {name: without_facts(item) for name, item in value.items()}
    return [without_facts(item) for item in value] if isinstance(value, list) else value


def _fact(fact: object) -> str | int | float:
    if isinstance(fact, Sentence | int | float):
        return fact
    return in_utf8(str(fact))  # it may be the name of a file


def _made_of(text: str, facts: Mapping[str, Any]) -> Sentence:
    return Sentence(text, **facts)


def _filled(text: str, facts: Mapping[str, Any]) -> str:
    return _HOLE.sub(lambda hole: _written(facts[hole[1]], hole[2] or "") if hole[1] in facts else hole[0], text)


def _written(fact: Any, form: str) -> str:
    if form in _FORMS:
        return _FORMS[form](fact)
    written = format(fact, form)
    return written if isinstance(fact, str) else figures.in_marks(written)
