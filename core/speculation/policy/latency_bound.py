"""How long a step may take for the sake of all who share it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence as Request

# Where the step is beyond a lane's target without drafts, it may become longer by so much.
_SLACK = 1.25
# Sums of chances are not exact.
_ROUNDING = 1.0 - 1e-9


def slack_seconds(target: float, plain_seconds: float) -> float:
    """Return by how much a step of ``plain_seconds`` may become longer: up to its ``target``, and a little always."""
    return max(target, _SLACK * plain_seconds) - plain_seconds


class DraftCandidate(NamedTuple):
    """A drafted token: whose it is, and the chance that it is accepted."""

    request_id: str
    chance: float


class LatencyBound:
    """Bounds a step by what each text gets from it: its seconds over the text's expected tokens, within the target.

    So a text with a good draft may wait long for many tokens at once, and one without waits no longer for those of
    others than its lane allows.
    """

    def __init__(self, requests: Collection[Request] = (), plain_seconds: float = 0.0) -> None:
        """``requests`` share the step, which takes ``plain_seconds`` without drafts.

        One alone waits for its own drafts only: what is worth drafting for it bounds that.
        """
        slowest = _SLACK * plain_seconds
        sharing = requests if len(requests) > 1 else ()
        self._limits = {request.id: max(token_latency_target(request.lane), slowest) for request in sharing}
        self._least = min(self._limits.values(), default=float("inf"))

    def limit_without(self, drafted: Collection[str]) -> float:
        """Return the seconds that the step may take where it brings one token each to all but ``drafted``."""
        return min([seconds for name, seconds in self._limits.items() if name not in drafted], default=float("inf"))

    def trim(self, count: int, hopes: Iterable[DraftCandidate], seconds: Callable[[int], float]) -> int:
        """Return the most of ``count`` drafted tokens that nobody waits too long for.

        ``hopes`` come in the order in which they are verified; the step takes ``seconds`` with so many of them.
        """
        if not self._limits or seconds(count) <= self._least:
            return count
        listed = list(hopes)[:count]
        expected: dict[str, float] = defaultdict(lambda: 1.0)
        for name, chance in listed:
            expected[name] += chance
        while count and not self._bears(seconds(count), expected):
            count -= 1
            name, chance = listed[count]
            expected[name] -= chance
        return count

    def _bears(self, seconds: float, expected: dict[str, float]) -> bool:
        seconds *= _ROUNDING
        return all(seconds <= limit * expected[name] for name, limit in self._limits.items())
