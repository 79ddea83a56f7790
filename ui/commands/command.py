"""What can be done by name, and how a few typed letters find it. No Qt here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# How well a typed word fits: it begins the name, begins a word of it, begins another word for it, stands in the name,
# or only its letters are in the name, in order.
_AT_START, _AT_WORD, _OTHER_WORD, _INSIDE, _LETTERS = 400, 300, 200, 150, 100


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do, or to go to. ``kind`` says what it is, ``keys`` by which keys it is done as well.

    ``beside`` opens it beside what is shown, where that can be. ``words`` are others that it may be looked for by.
    """

    name: str
    act: Callable[[], object]
    keys: tuple[str, ...] = ()
    kind: str = ""
    beside: Callable[[], object] | None = None
    words: str = ""
    folded: str = field(init=False, repr=False)  # the name as it is searched
    folded_words: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", self.name.casefold())
        object.__setattr__(self, "folded_words", f" {self.words.casefold()}")


def ranked(commands: Sequence[Command], typed: str, limit: int) -> list[Command]:
    """Return at most ``limit`` commands that every typed word fits, those it fits best first; else in their order."""
    words = typed.casefold().split()
    if not words:
        return list(commands[:limit])
    found = []
    for at, command in enumerate(commands):
        score = _score(words, command)
        if score:
            found.append((-score, at, command))
    found.sort(key=lambda one: one[:2])
    return [command for _, _, command in found[:limit]]


def _score(words: list[str], command: Command) -> int:
    """Return how well all words fit; 0 where one does not."""
    total = 0
    for word in words:
        score = _score_of_word(word, command.folded, command.folded_words)
        if not score:
            return 0
        total += score
    return total


def _score_of_word(word: str, text: str, others: str) -> int:
    at = text.find(word)
    if at == 0:
        return _AT_START
    if f" {word}" in text:
        return _AT_WORD
    if f" {word}" in others:
        return _OTHER_WORD
    if at > 0:
        return _INSIDE
    first = last = text.find(word[0])
    for letter in word[1:]:
        if last < 0:
            return 0
        last = text.find(letter, last + 1)
    # The closer together the letters are, the better.
    return max(1, _LETTERS - (last - first)) if last >= 0 else 0
