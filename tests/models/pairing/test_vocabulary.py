"""Which vocabularies are the same, loaded and in files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from models.gguf.errors import GgufError
from models.gguf.header import read_header
from models.pairing.vocabulary import FileVocabulary, why_not_files, why_vocabularies_differ
from tests.support.pair_files import other_words
from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import EMBER, EMBER_DRAFT


@dataclass
class Words:
    """A vocabulary of a few tokens."""

    texts: list[str] = field(default_factory=lambda: [f"w{i}" for i in range(300)])
    kind: object = "gpt2"
    adds_begin: int | None = -1
    adds_end: int | None = -1

    @property
    def n_tokens(self) -> int:
        return len(self.texts)

    def raw_text(self, token: int) -> bytes:
        return self.texts[token].encode()


def changed(*pairs: tuple[int, str]) -> Words:
    words = Words()
    for token, text in pairs:
        words.texts[token] = text
    return words


def test_files_are_compared_by_their_tokens(tmp_path: Path):
    assert why_not_files(EMBER, EMBER_DRAFT) is None
    vocabulary = FileVocabulary(read_header(EMBER))
    assert (vocabulary.n_tokens, vocabulary.kind) == (4096, "gpt2")
    assert vocabulary.raw_text(300) == FileVocabulary(read_header(EMBER_DRAFT)).raw_text(300)
    other = other_words(tmp_path / "other.gguf", {900: "fox", 901: "owl"})
    reason = why_not_files(EMBER, other) or ""
    assert "2 token ids mean another text: 900 is 'fox' instead of" in reason
    longer = gguf_factory.big_vocab_ember(tmp_path / "longer.gguf", 20_000, source=EMBER_DRAFT)
    assert why_not_files(EMBER, longer) == "It has 20,000 tokens and the model 4,096."


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (Words(), None),
        (Words([*Words().texts, "padding"]), None),
        (changed((0, "<s>"), (4, "<pad>")), None),
        (Words(kind="llama"), "another kind (llama instead of gpt2)"),
        (Words(adds_begin=1), "other special tokens"),
        (Words(adds_end=2), "other special tokens"),
        (Words(adds_begin=None), None),
        (Words(Words().texts[:100]), "It has 100 tokens and the model 300."),
        (changed((7, "x")), "1 token id means another text: 7 is 'x' instead of 'w7'."),
        (changed((7, "x"), (8, "y" * 99)), f"8 is '{'y' * 21}...' instead of 'w8'."),
        (changed((5, "a"), (6, "b"), (7, "c"), (8, "d")), "7 is 'c' instead of 'w7' and so on."),
    ],
)
def test_what_differs_is_said_with_both_texts(draft, words):
    reason = why_vocabularies_differ(Words(), draft)
    assert reason is None if words is None else words in (reason or "")


def test_a_file_that_changed_is_compared_again(tmp_path: Path):
    path = other_words(tmp_path / "draft.gguf", {900: "fox"})
    assert why_not_files(EMBER, path) is not None
    path.write_bytes(EMBER_DRAFT.read_bytes())
    assert why_not_files(EMBER, path) is None
    path.write_bytes(b"GGUF")
    with pytest.raises(GgufError):
        why_not_files(EMBER, path)
    path.unlink()
    with pytest.raises(GgufError, match="no file"):
        why_not_files(EMBER, path)
