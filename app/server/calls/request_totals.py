"""What all requests since the start add up to, for the metrics of a server."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from core.values.messages import Ended, Snapshot
from core.values.request import Request

# In seconds: from a reply out of the cache to one that waited behind a long prompt.
TTFT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(slots=True)
class RequestTotals:
    """Tokens and seconds over all requests that have ended; a request that nobody waits for any more is not counted.

    ``n_embedded`` are the tokens of texts that became vectors or scores. ``n_longest`` are those of the longest text,
    a prompt and its reply. The engines took ``n_steps`` steps, in which ``n_shares`` requests had a share altogether,
    and verified ``n_drafts`` drafts.

    ``ttft[i]`` counts the requests whose first token came within ``TTFT_BOUNDS[i]`` seconds and not within the bound
    before, the last place those beyond all bounds.
    """

    n_prompt: int = 0
    n_cached: int = 0
    prompt_seconds: float = 0.0
    n_generated: int = 0
    decode_seconds: float = 0.0
    n_drafted: int = 0
    n_accepted: int = 0
    ttft_seconds: float = 0.0
    ttft: list[int] = field(default_factory=lambda: [0] * (len(TTFT_BOUNDS) + 1))
    n_ended: Counter[str] = field(default_factory=Counter)  # by the reason of the end
    n_embedded: int = 0
    n_longest: int = 0
    n_steps: int = 0
    n_shares: int = 0
    n_drafts: int = 0

    def opened(self, request: Request) -> None:
        """A request was submitted."""

    def ended(self, event: Ended) -> None:
        """Add a request that is over."""
        receipt = event.receipt
        self.n_ended[event.reason.value] += 1
        self.n_prompt += receipt.n_prompt
        self.n_cached += receipt.n_cached
        self.prompt_seconds += receipt.prefill
        self.n_generated += receipt.n_generated
        self.decode_seconds += receipt.decode
        self.n_drafted += receipt.n_drafted
        self.n_accepted += receipt.n_accepted
        self.n_longest = max(self.n_longest, receipt.n_prompt + receipt.n_generated)
        if receipt.ttft > 0:
            self.ttft[bisect_left(TTFT_BOUNDS, receipt.ttft)] += 1
            self.ttft_seconds += receipt.ttft

    def closed(self, request_id: str) -> None:
        """Nobody hears of a request any more."""
        self.n_ended["cancelled"] += 1

    def stepped(self, before: Snapshot, now: Snapshot) -> None:
        """Add what an engine did between two snapshots of one model."""
        self.n_steps += now.n_steps - before.n_steps
        self.n_shares += now.n_shares - before.n_shares
        self.n_drafts += now.n_drafts - before.n_drafts
