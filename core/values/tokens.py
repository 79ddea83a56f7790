"""Requests that turn text into tokens and back; the engine answers them while steps run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """Asks for the tokens of ``parts`` in order: texts, and token ids that stay as they are.

    ``add_special`` adds the model's special tokens before and after the first text. ``parse_special`` recognises
    special tokens written out.
    """

    id: str
    parts: tuple[str | int, ...]
    add_special: bool = False
    parse_special: bool = True


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    """Asks for the text of tokens, special ones written out."""

    id: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The tokens, and the bytes of each."""

    request_id: str
    tokens: tuple[int, ...]
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Detokenized:
    """The text; bytes that are not UTF-8 are replaced."""

    request_id: str
    text: str
