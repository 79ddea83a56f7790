"""What the steps of one request cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Account:
    """Adds up the steps in which a request decoded.

    ``plain`` is what plain decoding takes for the same tokens by the cost model, ``spent`` what was taken (seconds).
    ``n_bytes`` is the request's part of what was read; ``all_bytes`` and ``seconds`` are of whole steps, only those
    in which no prompt was read beside it.
    """

    n_tokens: int = 0
    plain: float = 0.0
    spent: float = 0.0
    n_bytes: float = 0.0
    all_bytes: float = 0.0
    seconds: float = 0.0

    @property
    def bytes_per_token(self) -> float:
        """Bytes read for each token; 0 where nothing was decoded."""
        return self.n_bytes / self.n_tokens if self.n_tokens else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the machine read per second while the request decoded; 0 where that is not known."""
        return self.all_bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def speedup(self) -> float:
        """How many times faster than plain decoding by the cost model; 1 where nothing was decoded."""
        return self.plain / self.spent if self.spent > 0 and self.plain > 0 else 1.0
