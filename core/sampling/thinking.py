"""Enforces a thinking budget: once it is spent, only the tokens that end the thoughts are allowed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.llama.model import Vocab
from core.sampling.grammar import GrammarMatcher
from core.values.request import ThinkingBudget


class ThinkingMarkers:
    """The markers of thoughts in a vocabulary."""

    def __init__(self, budget: ThinkingBudget, vocab: Vocab) -> None:
        self.open, self.close = budget.open.strip().encode(), budget.close.strip().encode()
        self.comes_again = bool(budget.then)  # thoughts are messages of their own
        self.n_vocab = vocab.n_tokens
        self._vocab, self._then = vocab, budget.then
        self._specials = vocab.specials_in((budget.open, budget.close))
        # A special token is written as a whole: text before it is never its beginning.
        self._closes_with_special = any(self.close.startswith(text) for text in self._specials.values())

    def text(self, token: int) -> bytes:
        """Return a token's text; special tokens have one only if they are part of a marker."""
        return self._vocab.pieces[token] or self._specials.get(token, b"")

    def closing(self, text: bytes) -> tuple[int, ...]:
        """Return the tokens that end the thoughts after ``text``, which may end with the beginning of the marker."""
        begun = (n for n in range(len(self.close) - 1, -1, -1) if text.endswith(self.close[:n]))
        n_begun = 0 if self._closes_with_special else next(begun)
        rest = self.close[n_begun:].decode("utf-8", "replace") + self._then
        return tuple(int(token) for token in self._vocab.tokenize(rest, add_special=False))


class ThinkingGuide:
    """Follows the thoughts of one reply, and its grammar ``inner``.

    Thoughts end with their marker. After ``n_left`` tokens only the marker is allowed, as soon as the text ends with a
    whole character. If the grammar does not allow the marker there, the thoughts end without it.
    """

    def __init__(
        self, markers: ThinkingMarkers, inner: GrammarMatcher | None, n_left: int, *, begins_inside: bool
    ) -> None:
        self._markers, self._inner, self._n_left = markers, inner, n_left
        self._is_inside = begins_inside
        self._may_open = not begins_inside
        self._tail = b""  # the latest text, as long as a marker can be
        self._due: tuple[int, ...] = ()  # what must come
        self._look()

    @property
    def is_over(self) -> bool:
        """True if nothing can be added to the reply."""
        return self._inner is not None and self._inner.is_over

    def allows(self, token: int) -> bool:
        """Return whether ``token`` may come next."""
        if self._due:
            return token == self._due[0]
        return self._inner is None or self._inner.allows(token)

    def n_allowed(self, tokens: Sequence[int]) -> int:
        """Return how many of these consecutive tokens may come next."""
        if self._inner is not None:
            tokens = tokens[: self._inner.n_allowed(tokens)]
        ahead = self._without_grammar()
        for n, token in enumerate(tokens):
            if not ahead.allows(token):
                return n
            ahead.accept(token)
        return len(tokens)

    def after(self, tokens: Sequence[int]) -> ThinkingGuide | None:
        """Return a copy advanced by ``tokens``; None if they are not allowed."""
        inner = self._inner.after(tokens) if self._inner is not None else None
        ahead = self._without_grammar()
        if (inner is None) != (self._inner is None) or ahead.n_allowed(tokens) < len(tokens):
            return None
        for token in tokens:
            ahead.accept(token)
        ahead._inner = inner
        return ahead

    def _without_grammar(self) -> ThinkingGuide:
        ahead = copy.copy(self)
        ahead._inner = None
        return ahead

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Return which tokens may come next, shape (n_vocab,), at least one. Raises GrammarLost."""
        if self._due:
            mask = np.zeros(self._markers.n_vocab, np.bool_)
            mask[self._due[0]] = True
            return mask
        return np.ones(self._markers.n_vocab, np.bool_) if self._inner is None else self._inner.allowed()

    def forced(self) -> list[int]:
        """Return the tokens that must come next, empty if there is a choice."""
        return list(self._due) if self._due or self._inner is None else self._inner.forced()

    def accept(self, token: int) -> None:
        """Advance by ``token``. Raises GrammarLost if the grammar does not allow it."""
        if self._inner is not None:
            self._inner.accept(token)
        markers = self._markers
        text = markers.text(token)
        if self._due:
            self._due = self._due[1:]
            if not self._due:
                self._leave()
            return
        if self._is_inside:
            self._n_left -= 1
            self._tail = (self._tail + text)[-len(markers.close) - len(text) :]
            if markers.close in self._tail:
                self._leave()
        elif self._may_open:
            self._tail += text
            begun = self._tail.lstrip()
            if begun.startswith(markers.open):
                self._is_inside, self._may_open, self._tail = True, False, b""
            elif not markers.open.startswith(begun):
                # If thoughts are messages of their own, more of them may follow.
                at = self._tail.rfind(markers.open) if markers.comes_again else -1
                self._is_inside = at >= 0
                self._may_open = markers.comes_again and at < 0
                self._tail = self._tail[-len(markers.open) :] if at < 0 else b""
        self._look()

    def end(self) -> None:
        """Let the thoughts end as if their budget were spent; without effect after them."""
        if self._is_inside:
            self._n_left = 0
            self._look()

    def _look(self) -> None:
        """Require the closing marker if the budget is spent."""
        if not self._is_inside or self._due or self._n_left > 0 or _is_in_character(self._tail):
            return
        closing = self._markers.closing(self._tail)
        if self._inner is None or self._inner.n_allowed(closing) == len(closing):
            self._due = closing
        else:
            self._leave()

    def _leave(self) -> None:
        self._is_inside, self._tail = False, b""
        self._may_open = self._markers.comes_again


def _is_in_character(text: bytes) -> bool:
    """Return whether a text ends inside a character of UTF-8."""
    for n, byte in enumerate(reversed(text[-3:]), 1):
        if byte & 0xC0 != 0x80:
            size = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return size > n
    return False


Guide = GrammarMatcher | ThinkingGuide
