"""What can be done by name, and how a few typed letters find it. No Qt here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# How well a typed word fits: it begins the name, begins a word of it, begins another word for it, has the letters that
# the words of the name begin with, stands in it, or has some of those letters in their order.
_AT_START, _AT_WORD, _OTHER_WORD, _INITIALS, _INSIDE, _SOME_INITIALS = 400, 300, 200, 175, 150, 125
# Where no name has the typed words, those fit whose letters are in a name in this order from the beginning of a word
# on. They are at most so many times as far apart as they were typed: in a long name any letters are somewhere.
_FARTHEST = 3
_INITIAL = re.compile(r"(?<![^\W_])[^\W_]")  # in names of models words end at hyphens and underscores too


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
    initials: str = field(init=False, repr=False)  # the letters that the words of the name begin with

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", self.name.casefold())
        object.__setattr__(self, "folded_words", f" {self.words.casefold()}")
        object.__setattr__(self, "initials", "".join(_INITIAL.findall(self.folded)))


def ranked(commands: Sequence[Command], typed: str, limit: int) -> list[Command]:
    """Return at most ``limit`` commands that every typed word fits, those it fits best first; else in their order."""
    words = typed.casefold().split()
    if not words:
        return list(commands[:limit])
    found = _found(words, commands, _score_of_word) or _found(words, commands, _score_of_letters)
    found.sort(key=lambda one: one[:2])
    return [command for _, _, command in found[:limit]]


def _found(
    words: list[str], commands: Sequence[Command], score_of: Callable[[str, Command], int]
) -> list[tuple[int, int, Command]]:
    """Return the commands that all words fit, with how badly they fit and where they stand."""
    found = []
    for at, command in enumerate(commands):
        total = 0
        for word in words:
            score = score_of(word, command)
            if not score:
                break
            total += score
        else:
            found.append((-total, at, command))
    return found


def _score_of_word(word: str, command: Command) -> int:
    at = first = command.folded.find(word)
    if at == 0:
        return _AT_START
    while at > 0:
        if not command.folded[at - 1].isalnum():
            return _AT_WORD
        at = command.folded.find(word, at + 1)
    if f" {word}" in command.folded_words:
        return _OTHER_WORD
    if word == command.initials:
        return _INITIALS
    if first > 0:
        return _INSIDE
    initials = iter(command.initials)
    return _SOME_INITIALS if all(letter in initials for letter in word) else 0


def _score_of_letters(word: str, command: Command) -> int:
    """Return how well a word fits by its letters alone: the closer together they are, the better."""
    best, text = _score_of_word(word, command), command.folded
    if best:
        return best
    beyond = _FARTHEST * len(word) + 1
    begin = text.find(word[0])
    while begin >= 0:
        last = begin
        for letter in word[1:]:
            last = text.find(letter, last + 1, begin + beyond)
            if last < 0:
                break
        if last >= 0 and not text[begin - 1 : begin].isalnum():
            best = max(best, beyond - (last - begin))
        begin = text.find(word[0], begin + 1)
    return best
