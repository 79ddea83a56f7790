"""What the steps of one request cost."""

from __future__ import annotations

from dataclasses import dataclass

# A speed-up is of the whole reply: of so large a share of its tokens it must be known what plain steps take.
_COMPARED_SHARE = 0.5


@dataclass(slots=True)
class RequestCost:
    """Adds up the steps in which a request decoded, from its first token on.

    Of ``n_tokens``, ``n_compared`` came in ``n_steps`` steps of which it is known what plain ones take: ``spent`` are
    their seconds, ``plain`` those of as many plain steps as tokens came. ``n_bytes`` is the request's part of what was
    read; ``all_bytes`` and ``seconds`` are of whole steps, only those in which no prompt was read beside it.
    """

    n_tokens: int = 0
    n_compared: int = 0
    n_steps: int = 0
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
    def plain_seconds(self) -> float | None:
        """What a token takes without drafts by plain steps that were seen; None where too few were."""
        is_known = self.n_compared > _COMPARED_SHARE * self.n_tokens and self.plain > 0
        return self.plain / self.n_compared if is_known else None

    @property
    def speedup(self) -> float | None:
        """How many times faster than plain decoding; None where too few plain steps were seen.

        A step with drafts takes no less than one without: it is never more than the tokens of a step.
        """
        if self.plain_seconds is None or self.spent <= 0:
            return None
        return min(self.plain / self.spent, self.n_compared / self.n_steps)
