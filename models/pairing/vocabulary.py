"""Compares vocabularies: a model can draft for another only if the same token ids mean the same text."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from models.formatting.safe_text import shortened
from models.formatting.sentence import Sentence, joined
from models.gguf.header import GgufHeader, read_header

# As llama.cpp's common_speculative_are_compatible: sizes may differ by padding, the first ids by special tokens.
_MOST_SIZE_DIFFERENCE = 128
_FIRST_COMPARED = 5
_SHOWN = 3
_LONGEST_SHOWN = 24
_TOKENS = "tokenizer.ggml.tokens"


class Vocabulary(Protocol):
    """The tokens of one model, loaded or in its file. ``adds_begin`` and ``adds_end`` are None if unknown."""

    @property
    def kind(self) -> object:
        """The kind of tokenizer."""

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""

    @property
    def adds_begin(self) -> int | None:
        """The token that every text begins with, -1 for none."""

    @property
    def adds_end(self) -> int | None:
        """The token that every text ends with, -1 for none."""

    def raw_text(self, token: int) -> bytes:
        """A token's text in the file."""


class FileVocabulary:
    """The vocabulary in the header of a GGUF file. The model need not be loaded.

    A file without a tokenizer has no tokens. Texts are read only when needed: most vocabularies differ in their other
    values already.
    """

    def __init__(self, header: GgufHeader) -> None:
        self._unread: GgufHeader | None = header
        self._texts: tuple[str, ...] = ()
        self.kind = header.text("tokenizer.ggml.model") or ""
        self.n_tokens = header.count_strings(_TOKENS)
        self.adds_begin = _added(header, "bos")
        self.adds_end = _added(header, "eos")

    def read(self) -> None:
        """Read the texts unless that was done; afterwards the file is not needed. Raises GgufError."""
        if self._unread is not None:
            self._texts = self._unread.strings(_TOKENS) or ()
            self._unread = None

    def raw_text(self, token: int) -> bytes:
        """A token's text in the file; bytes that are not UTF-8 are replaced. Raises GgufError."""
        self.read()
        return self._texts[token].encode()


def why_vocabularies_differ(target: Vocabulary, draft: Vocabulary) -> str | None:
    """Why ``draft`` cannot draft for ``target``, as a sentence, or None if it can."""
    if target.kind != draft.kind:
        return Sentence(
            "Its tokenizer is of another kind ({kind} instead of {target_kind}).",
            kind=draft.kind,
            target_kind=target.kind,
        )
    if _differ(target.adds_begin, draft.adds_begin) or _differ(target.adds_end, draft.adds_end):
        return Sentence("It begins or ends texts with other special tokens.")
    if abs(target.n_tokens - draft.n_tokens) > _MOST_SIZE_DIFFERENCE:
        return Sentence(
            "It has {n_tokens:,} tokens and the model {target_n_tokens:,}.",
            n_tokens=draft.n_tokens,
            target_n_tokens=target.n_tokens,
        )
    common = range(_FIRST_COMPARED, min(target.n_tokens, draft.n_tokens))
    differing = [token for token in common if target.raw_text(token) != draft.raw_text(token)]
    if not differing:
        return None
    shown = joined(
        (
            Sentence(
                "{token} is {its} instead of {mine}",
                token=token,
                its=_shown(draft.raw_text(token)),
                mine=_shown(target.raw_text(token)),
            )
            for token in differing[:_SHOWN]
        ),
        ", ",
    )
    rest = Sentence(" and so on") if len(differing) > _SHOWN else ""
    if len(differing) == 1:
        return Sentence("1 token id means another text: {shown}.", shown=shown)
    return Sentence("{n:,} token ids mean another text: {shown}{rest}.", n=len(differing), shown=shown, rest=rest)


def why_not_files(target: Path, draft: Path) -> str | None:
    """``why_vocabularies_differ`` of two files, cached until one of them changes; raises GgufError."""
    return _why_not_files(target, _stamp(target), draft, _stamp(draft))


@lru_cache(maxsize=4096)
def _why_not_files(target: Path, _target_stamp: object, draft: Path, _draft_stamp: object) -> str | None:
    if _print(target, _target_stamp) == _print(draft, _draft_stamp):
        return None
    return why_vocabularies_differ(FileVocabulary(read_header(target)), FileVocabulary(read_header(draft)))


@lru_cache(maxsize=1024)
def _print(path: Path, _stamp: object) -> tuple[object, ...]:
    """A key that is equal for files with the same vocabulary, so that texts are seldom compared."""
    header = read_header(path)
    kind, tokens = header.text("tokenizer.ggml.model"), header.digest(_TOKENS)
    return kind, tokens, _added(header, "bos"), _added(header, "eos")


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0  # reading the header reports the error
    return status.st_mtime_ns, status.st_size


def _added(header: GgufHeader, which: str) -> int | None:
    """The token at the begin or end of each text, -1 for none; None if the file leaves it to llama.cpp."""
    adds = header.metadata.get(f"tokenizer.ggml.add_{which}_token")
    if adds is False:
        return -1
    return header.integer(f"tokenizer.ggml.{which}_token_id") if adds is True else None


def _differ(one: int | None, other: int | None) -> bool:
    return None not in (one, other) and one != other


def _shown(text: bytes) -> str:
    return repr(shortened(text.decode("utf-8", "replace"), _LONGEST_SHOWN))
