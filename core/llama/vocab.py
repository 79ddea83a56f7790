"""Converts text to tokens and tokens to bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from core.llama.library import L
from core.llama.model import Model
from core.values.messages import FillInTheMiddle

# Bytes of the buffer for a token's text; longer ones are read again into a larger one.
_PIECE_BYTES = 512
NO_TOKEN = -1  # LLAMA_TOKEN_NULL


class Vocab:
    """A model's vocabulary, with the bytes of every token in memory (``llama_vocab``). Safe to use from any thread.

    ``kind`` is that of its tokenizer (``llama_vocab_type``). ``pieces`` are the bytes that each token adds to visible
    text, empty for control tokens. ``adds_begin`` and ``adds_end`` are the tokens that every text begins and ends with,
    -1 for none; ``begin_text`` and ``end_text`` are the beginning- and end-of-text tokens written out, "" if there are
    none. ``between_texts`` are the tokens between a query and a document that are ranked together, ``after_text`` those
    behind them.
    """

    def __init__(self, model: Model) -> None:
        """Read every piece once: about 1 µs per token."""
        vocab = self._vocab = model.vocab
        self.kind, self.n_tokens = int(L.llama_vocab_type(vocab)), int(L.llama_vocab_n_tokens(vocab))
        begin, end, separator = (int(one(vocab)) for one in (L.llama_vocab_bos, L.llama_vocab_eos, L.llama_vocab_sep))
        self.adds_begin = begin if L.llama_vocab_get_add_bos(vocab) else NO_TOKEN
        self.adds_end = end if L.llama_vocab_get_add_eos(vocab) else NO_TOKEN
        self.begin_text, self.end_text = self.text(begin), self.text(end)
        behind = separator if end == NO_TOKEN else end
        self.after_text = (behind,) if L.llama_vocab_get_add_eos(vocab) else ()
        self.between_texts = (*self.after_text, separator) if L.llama_vocab_get_add_sep(vocab) else self.after_text
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        self.pieces = tuple(self._piece(token, buffer, special=False) for token in range(self.n_tokens))
        self.end_tokens = frozenset(token for token in range(self.n_tokens) if L.llama_vocab_is_eog(vocab, token))
        # Special tokens have no visible piece, so their written form is measured.
        self.longest_piece = max(
            len(piece) or len(self._piece(token, buffer, special=True)) for token, piece in enumerate(self.pieces)
        )
        count = ctypes.c_int32()
        suppressed = L.llama_vocab_get_suppress_tokens(vocab, ctypes.byref(count))
        self.suppressed = frozenset(suppressed[index] for index in range(count.value)) if suppressed else frozenset()

    def raw_text(self, token: int) -> bytes:
        """Return a token's raw text from the model file."""
        return bytes(L.llama_vocab_get_text(self._vocab, token) or b"")

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> npt.NDArray[np.int32]:
        """Return token ids of ``text`` (``llama_tokenize``).

        ``add_special`` adds the tokens that the model wants at the start, ``parse_special`` recognises special
        tokens written out in the text.
        """
        data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
        room = len(data) + 8
        tokens = np.empty(room, np.int32)
        pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        count = L.llama_tokenize(self._vocab, data, len(data), pointer, room, add_special, parse_special)
        if count < 0:
            tokens = np.empty(-count, np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            count = L.llama_tokenize(self._vocab, data, len(data), pointer, -count, add_special, parse_special)
        # A chat template may have written the begin token that add_special adds again.
        is_doubled = add_special and count > 1 and tokens[0] == tokens[1] == self.adds_begin
        return tokens[int(is_doubled) : count].copy()

    def text(self, token: int) -> str:
        """Return a token written out, special ones too; "" for no token."""
        if token == NO_TOKEN:
            return ""
        return self._piece(token, ctypes.create_string_buffer(_PIECE_BYTES), special=True).decode("utf-8", "replace")

    def bytes_of(self, token: int) -> bytes:
        """Return a token's bytes, special ones written out (``common_token_to_piece``)."""
        return self.pieces[token] or self._piece(token, ctypes.create_string_buffer(_PIECE_BYTES), special=True)

    def specials_in(self, texts: Iterable[str]) -> dict[int, bytes]:
        """Return the special tokens in ``texts``, each written out."""
        found = {int(token) for text in texts for token in self.tokenize(text, add_special=False)}
        return {token: self.text(token).encode() for token in found if not self.pieces[token]}

    @property
    def fill_in_the_middle(self) -> FillInTheMiddle | None:
        """The tokens around a middle that is to be filled in, or None where the model has not all three."""
        find = (L.llama_vocab_fim_pre, L.llama_vocab_fim_suf, L.llama_vocab_fim_mid)
        around = [int(one(self._vocab)) for one in find]
        if NO_TOKEN in around:
            return None
        files = int(L.llama_vocab_fim_rep(self._vocab)), int(L.llama_vocab_fim_sep(self._vocab))
        return FillInTheMiddle(*(self.text(token) for token in (*around, *files)))

    def _piece(self, token: int, buffer: ctypes.Array[ctypes.c_char], special: bool) -> bytes:
        length = L.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = L.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        return ctypes.string_at(buffer, length)
