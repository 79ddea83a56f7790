"""What the steps of one request cost."""

from __future__ import annotations

from dataclasses import dataclass

# A speed-up is given only if the plain step time is known for more than this share of the reply's tokens.
_COMPARED_SHARE = 0.5


@dataclass(slots=True)
class RequestCost:
    """Sums over the steps in which a request decoded, from its first token on.

    ``n_compared`` of the ``n_tokens`` tokens came from ``n_steps`` steps for which the plain step time is known. These
    steps took ``spent`` seconds; plain decoding of the same tokens takes ``plain`` seconds. ``n_bytes`` is the
    request's share of the bytes read. ``all_bytes`` and ``seconds`` are of whole steps, without those that also had
    prefill.
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
        """Seconds per token without drafts, from observed plain steps; None where there are too few."""
        is_known = self.n_compared > _COMPARED_SHARE * self.n_tokens and self.plain > 0
        return self.plain / self.n_compared if is_known else None

    @property
    def speedup(self) -> float | None:
        """Speed relative to plain decoding; None where too few plain steps were seen.

        It is limited to the tokens per step, since a step with drafts is never faster than one without.
        """
        if self.plain_seconds is None or self.spent <= 0:
            return None
        return min(self.plain / self.spent, self.n_compared / self.n_steps)
