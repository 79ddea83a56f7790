"""Prompts of four kinds in words that Ember was trained on; its replies to them were checked.

Ember copies and renames without a mistake only texts of the form and length it knows: a story's opening of 33 to 37
tokens, a function of 41. Copying 200 tokens is therefore six prompts. Prompts for free code have the trained form too;
functions for which Ember repeats a line for ever are left out, since any draft would guess those lines.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

from tools.model_factory.gguf_factory import EMBER, reader_of

KINDS = ("story", "code", "rename", "copy")
# The default limit for a reply in tokens; renaming and copying end on their own before that.
N_TOKENS = 64
# Words of a long prompt: what an agent or an editor sends with a question, and half of what Ember was trained for.
N_WORDS = 500
_FEWEST_LETTERS = 3


@dataclass(frozen=True)
class BenchPrompt:
    """A prompt in Ember's chat format. ``expected`` is the one right reply where there is one."""

    kind: str
    text: str
    expected: str | None = None


def chat(text: str) -> str:
    """Return a user's turn in Ember's chat format."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def of_kind(kind: str) -> tuple[BenchPrompt, ...]:
    """Return all measured prompts of a kind; no two are alike."""
    return _PROMPTS[kind]


def warm_up() -> tuple[BenchPrompt, ...]:
    """Return one prompt of each kind that is never measured."""
    return tuple(prompts[-1] for prompts in _ALL.values())


def mixed(count: int, start: int = 0) -> list[str]:
    """Return ``count`` prompts of alternating kinds, from place ``start`` of one long list; the first 2,000 differ.

    Made from the words of Ember's training, for loads that need more prompts than were chosen by hand.
    """
    return [chat(_FORMS[place % len(_FORMS)](place // len(_FORMS))) for place in range(start, start + count)]


def long_texts(count: int, start: int = 0, n_words: int = N_WORDS) -> list[str]:
    """Return ``count`` prompts of ``n_words`` different words, from place ``start`` of one endless list; all differ.

    Each word is one of Ember's tokens. They make no sense: only prefill time is measured.
    """
    return [" ".join(random.Random(place).sample(_vocabulary(), n_words)) for place in range(start, start + count)]


@functools.cache
def _vocabulary() -> list[str]:
    """Return the words of at least three letters that, with a space before them, are one of Ember's tokens."""
    tokens: list[str] = reader_of(EMBER).fields["tokenizer.ggml.tokens"].contents()
    # Byte-level BPE writes a space as this letter.
    words = [token[1:] for token in tokens if token.startswith("Ġ")]
    return [word for word in words if len(word) >= _FEWEST_LETTERS and word.isascii() and word.isalpha()]


def _function(name: str, variable: str, count: int) -> str:
    body = (
        f"def {name}({variable}):\n    if {variable} is None:\n        return 0\n    for i in range({count}):\n"
        f"        {variable} = {variable} + i\n    print({variable})\n    return {variable}"
    )
    return f"```python\n{body}\n```"


def _rename(name: str, old: str, new: str, count: int) -> BenchPrompt:
    code = _function(name, old, count)
    return BenchPrompt("rename", chat(f"Rename {old} to {new} in this code:\n{code}"), _function(name, new, count))


_ANIMALS = ("fox", "dragon", "owl", "horse", "bear", "otter", "robot", "mouse", "turtle", "whale", "lamb")
_FUNCTIONS = (
    "Write `read_config(path)` in Python: Read the configuration file and return a dictionary.",
    "Implement find_files in Python.\nReturn all files that match the pattern.",
    "Write `send_request(url, headers)` in Python: Send a request and return the response.",
    "Implement format_message in Python.\nFormat the message with its arguments.",
    "Write `run_tests(suite)` in Python: Run all tests and print the result.",
    "Write `remove_prefix(text, prefix)` in Python: Remove the prefix from the text.",
    "Implement get_cache_key in Python.\nReturn the cache key for the given path.",
    "Write `set_timeout(seconds)` in Python: Set the timeout of the connection.",
    "Implement normalize_path in Python.\nNormalize the path and expand the user's folder.",
    "Write `count_words(text)` in Python: Count the words of the text.",
    "Implement get_parent in Python.\nReturn the parent of the node.",
)
_RENAMES = (
    ("check", "total", "number", 3),
    ("update", "count", "key", 7),
    ("process", "index", "size", 4),
    ("load", "name", "value", 2),
    ("handle", "item", "data", 6),
    ("check", "count", "key", 5),
    ("update", "name", "size", 8),
    ("process", "total", "index", 9),
    ("load", "size", "number", 3),
    ("handle", "value", "item", 2),
    ("convert", "key", "total", 6),
)
_OPENINGS = (
    "Once upon a time, there was a gentle frog named Zoe. Zoe liked to play with a magic seed every day. "
    "One windy day, Zoe walked to the garden all alone.",
    "In the forest, there lived a funny robot named Emil. Emil had a warm blanket and loved it very much. "
    "One rainy morning, Emil went to the forest.",
    "Mia was a happy otter who lived near the park. The best thing Mia owned was a broken clock. "
    "On a cold afternoon, Mia set out for the park.",
    "In the big city, there lived a quiet duck named Tom. More than anything, Tom wanted a jar of honey. "
    "On a warm afternoon, Tom set out for the big city.",
    "Once upon a time, there was a shy mouse named Ruby. Ruby liked to play with a red ball every day. "
    "One snowy day, Ruby walked to the old farm all alone.",
    "Leo was a brave lamb who lived near the market. Leo had a golden key and loved it very much. "
    "One sunny morning, Leo went to the market.",
    "In the library, there lived a curious turtle named Clara. More than anything, Clara wanted a lost book. "
    "One cold day, Clara walked to the library all alone.",
    "Ben was a clever hedgehog who lived near the river bank. The best thing Ben owned was a paper star. "
    "On a snowy afternoon, Ben set out for the river bank.",
    "Once upon a time, there was a patient bear named Nora. Nora had a shiny stone and loved it very much. "
    "One warm morning, Nora went to the beach.",
    "In the mountains, there lived a careful dragon named Jack. Jack liked to play with a blue kite every day. "
    "One rainy day, Jack walked to the mountains all alone.",
    "Sam was a kind fox who lived near the bakery. More than anything, Sam wanted a small boat. "
    "On a sunny afternoon, Sam set out for the bakery.",
)

_ALL = {
    "story": tuple(BenchPrompt("story", chat(f"Tell me a story about a {animal}.")) for animal in _ANIMALS),
    "code": tuple(BenchPrompt("code", chat(text)) for text in _FUNCTIONS),
    "rename": tuple(_rename(*rename) for rename in _RENAMES),
    "copy": tuple(BenchPrompt("copy", chat(f"Repeat this: {text}"), text) for text in _OPENINGS),
}
_PROMPTS = {kind: prompts[:-1] for kind, prompts in _ALL.items()}
N_EACH = min(len(prompts) for prompts in _PROMPTS.values())

# The lengths of these lists have no common divisor, so a combination comes again only after their product.
_HEROES = ("fox", "dragon", "owl", "horse", "bear", "otter", "robot", "mouse", "turtle", "whale", "lamb")
_THINGS = ("red ball", "blue kite", "paper star", "golden key", "magic seed", "small boat", "lost book")
_PLACES = ("library", "forest", "market", "garden", "big city")
_QUALITIES = ("happy", "quiet", "brave", "shy", "gentle", "curious", "clever", "kind")
_NAMES = ("Ella", "Leo", "Mia", "Tom", "Ruby", "Finn", "Clara", "Max", "Nora")
_VERBS = ("read", "write", "check", "remove", "find", "load", "parse", "update")
_NOUNS = ("config", "header", "path", "version", "module", "cache", "message", "request", "token", "index", "file")
_ARGUMENTS = ("value", "name", "data", "text", "key", "item", "result")
_VARIABLES = ("total", "count", "index", "name", "size", "key", "number", "value", "item", "data", "result")
_DEFINED = ("check", "update", "process", "load", "handle")


def _at(words: tuple[str, ...], place: int) -> str:
    return words[place % len(words)]


def _story_form(place: int) -> str:
    hero = f"{_at(_QUALITIES, place)} {_at(_HEROES, place)}"
    return f"Write a short story about a {hero} and a {_at(_THINGS, place)}."


def _code_form(place: int) -> str:
    verb, noun = _at(_VERBS, place), _at(_NOUNS, place)
    return f"Write `{verb}_{noun}({_at(_ARGUMENTS, place)})` in Python: {verb.capitalize()} the {noun} and return it."


def _rename_form(place: int) -> str:
    old, new = _at(_VARIABLES, place), _at(_VARIABLES, place + 1 + place // len(_VARIABLES) % 10)
    return f"Rename {old} to {new} in this code:\n{_function(_at(_DEFINED, place), old, 2 + place % 7)}"


def _copy_form(place: int) -> str:
    hero, name = f"{_at(_QUALITIES, place)} {_at(_HEROES, place)}", _at(_NAMES, place)
    thing, home = _at(_THINGS, place), _at(_PLACES, place)
    return (
        f"Repeat this: In the {home}, there lived a {hero} named {name}. "
        f"{name} liked to play with a {thing} every day. One sunny morning, {name} went to the {home}."
    )


_FORMS = (_story_form, _code_form, _rename_form, _copy_form)
