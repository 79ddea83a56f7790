"""The state of one reply in its grammar: which tokens may come next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher

from core.sampling.grammar.error_text import in_short
from core.values.errors import SlipstreamError


class GrammarLost(SlipstreamError):
    """The grammar's parser gave up in the middle of a reply."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The grammar could not be followed any further: {reason}.")


def _nothing() -> None:
    """Do nothing."""


class GrammarMatcher:
    """The state of one reply. Owned by the thread that decodes."""

    def __init__(self, matcher: LLMatcher, n_vocab: int, on_lost: Callable[[], None] = _nothing) -> None:
        """Own ``matcher``, at its start; ``on_lost`` is called if it gives up."""
        self._matcher = matcher
        self._n_vocab = n_vocab
        self._on_lost = on_lost

    @property
    def is_over(self) -> bool:
        """True if nothing can be added to the reply."""
        return bool(self._matcher.is_stopped())

    def allows(self, token: int) -> bool:
        """Return whether ``token`` may come next; testing one is much cheaper than listing all."""
        return bool(self._matcher.validate_tokens([token]) == 1)

    def n_allowed(self, tokens: Sequence[int]) -> int:
        """Return how many of these consecutive tokens may come next."""
        return int(self._matcher.validate_tokens(list(tokens)))

    def after(self, tokens: Sequence[int]) -> GrammarMatcher | None:
        """Return a copy advanced by ``tokens``; None if the grammar does not allow them."""
        matcher = self._matcher.deep_copy()
        if tokens and not matcher.consume_tokens(list(tokens)):
            return None
        return GrammarMatcher(matcher, self._n_vocab, self._on_lost)

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Return which tokens may come next, shape (n_vocab,), at least one. Raises GrammarLost."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        # One byte (0 or 1) for each token, viewed as bool, with which numpy is faster.
        mask = np.unpackbits(bits, count=self._n_vocab, bitorder="little").view(np.bool_)
        if self._matcher.is_error() or not mask.any():
            raise self._lost()
        return mask

    def forced(self) -> list[int]:
        """Return the tokens that the grammar forces next, empty if there is a choice."""
        return list(self._matcher.compute_ff_tokens())

    def accept(self, token: int) -> None:
        """Advance by ``token``. Raises GrammarLost if it is not allowed."""
        if not self._matcher.consume_token(token):
            raise self._lost()

    def _lost(self) -> GrammarLost:
        self._on_lost()
        said = self._matcher.get_error()
        return GrammarLost(in_short(said, has_lines=False) if said else "it allows no next token")
