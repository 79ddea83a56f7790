"""Deep Ember with a vocabulary as large as those of recent models, made of words that a grammar must check."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tools.model_factory import gguf_factory
from tools.model_factory.gguf_factory import EMBER, MetadataEntry, Tensor

_NORMAL_TOKEN = 1
_ONSETS = ("", *"bcdfghjklmnprstvwz", "br", "ch", "cl", "dr", "fl", "gr", "pl", "pr", "sh", "sl", "st", "th", "tr")
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "oo", "ou", "ä", "é", "ö")
_CODAS = ("", "", "", *"dlmnprst", "ck", "ld", "ng", "nt", "rs", "st")
_MARKS = (
    '"',
    "'",
    ":",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "=",
    "\\",
    "/",
    "-",
    ".",
    ";",
    "\n",
    "\t",
    "  ",
    "0",
    "1",
    "7",
)
_WORDS_SHARE = 0.92


@dataclass(frozen=True, slots=True)
class SyntheticVocabulary:
    """Made-up tokens: words with and without a space before them, capitals, and runs of marks and digits as in code."""

    seed: int = 1

    def texts(self, n: int, known: set[str]) -> list[str]:
        """Return ``n`` texts, no two alike and none in ``known``, as a byte-level vocabulary writes them."""
        chance, texts = random.Random(self.seed), dict.fromkeys(known)
        n_known = len(texts)
        while len(texts) < n_known + n:
            text = _word(chance) if chance.random() < _WORDS_SHARE else _run(chance)
            texts.setdefault("".join(_BYTES[byte] for byte in text.encode()))
        return list(texts)[n_known:]


def model(n_vocab: int, n_layers: int) -> Path:
    """Return the file of the model, which is made on first use."""
    name = f"ember-{n_layers}-layers-{n_vocab}-words-q8_0.gguf"
    return gguf_factory.cached_file(name, lambda path: _make(path, n_vocab, n_layers))


def _make(path: Path, n_vocab: int, n_layers: int) -> Path:
    recipe = gguf_factory.Recipe(n_layers=n_layers, n_vocab=n_vocab)
    reader = gguf_factory.reader_of(EMBER)
    entries = [_with_words(entry, n_vocab) for entry in gguf_factory._metadata(recipe)]
    tensors = [_with_rows(tensor, n_vocab) for tensor in gguf_factory.tensors_of(reader, replace(recipe, n_vocab=None))]
    return gguf_factory.write(path, entries, tensors)


def _with_words(entry: MetadataEntry, n_vocab: int) -> MetadataEntry:
    if entry.key == "tokenizer.ggml.tokens":
        known = [text for text in entry.value if not text.startswith("<|unused_")]
        return replace(entry, value=known + SyntheticVocabulary().texts(n_vocab - len(known), set(known)))
    if entry.key == "tokenizer.ggml.token_type":
        return replace(
            entry, value=[_NORMAL_TOKEN if kind == gguf_factory._UNUSED_TOKEN else kind for kind in entry.value]
        )
    return entry


def _with_rows(tensor: Tensor, n_vocab: int) -> Tensor:
    """Return a table with a row for each new token: half of a known token's, so that the best known one stays best."""
    if tensor.name not in ("token_embd.weight", "output.weight"):
        return tensor

    def rows() -> np.ndarray:
        import gguf

        table = tensor.data()
        known = gguf.quants.dequantize(table, tensor.type)
        chosen = np.random.default_rng(1).integers(0, len(known), n_vocab - len(known))
        return np.concatenate([table, gguf.quants.quantize(known[chosen] / 2, tensor.type)])

    return replace(tensor, shape=(tensor.shape[0], n_vocab), data=rows)


def _word(chance: random.Random) -> str:
    syllables = chance.choices((1, 2, 3, 4), (3, 6, 4, 1))[0]
    word = "".join(chance.choice(_ONSETS) + chance.choice(_NUCLEI) + chance.choice(_CODAS) for _ in range(syllables))
    word = word.capitalize() if chance.random() < 0.2 else word
    return f" {word}" if chance.random() < 0.6 else word


def _run(chance: random.Random) -> str:
    return "".join(chance.choices(_MARKS, k=chance.randint(2, 6)))


def _byte_characters() -> list[str]:
    """Return the printable character that stands for each byte (``bytes_to_unicode`` of GPT-2)."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


_BYTES = _byte_characters()
