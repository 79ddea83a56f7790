"""What the next step has room for, what drafts cost in it, and how long it may take. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from collections.abc import Sequence as Series
from itertools import pairwise
from typing import NamedTuple

from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence

# A step that is beyond a lane's target without drafts may become longer by this factor with them.
_SLACK = 1.25
# Rows to look ahead: a step in the cost curve may make the first extra row dear and the next ones free.
LOOKAHEAD = (1, 2, 4, 8)
# Sums of chances are not exact.
_ROUNDING = 1.0 - 1e-9


class StepCapacity(NamedTuple):
    """A step has ``n_rows`` rows anyway, which attend to ``kv`` tokens; drafts may add ``room`` rows.

    ``n_even`` sequences have to bring equally many rows (0: as many as each likes), unless a depth is fixed.
    ``beside`` are requests that decode in the step and are not drafted for. The step should take at most ``target``
    seconds, including what proposers read of long texts.
    """

    n_rows: int
    kv: int
    room: int
    n_even: int = 0
    beside: Series[Sequence] = ()
    target: float = math.inf


def slack_seconds(target: float, plain_seconds: float) -> float:
    """Return by how much a step of ``plain_seconds`` may become longer: up to its ``target``, and a little always."""
    return max(target, _SLACK * plain_seconds) - plain_seconds


class DraftCandidate(NamedTuple):
    """A drafted token: whose it is, and the chance that it is accepted."""

    request_id: str
    chance: float


class LatencyBound:
    """Bounds a step by what each text gets from it: its seconds over the text's expected tokens, within the target.

    So a text with a good draft may wait long for many tokens at once, and one without waits no longer for the drafts of
    others than its lane allows.
    """

    def __init__(self, sequences: Collection[Sequence] = (), plain_seconds: float = 0.0) -> None:
        """``sequences`` share the step, which takes ``plain_seconds`` without drafts.

        One alone waits for its own drafts only: what is worth drafting for it bounds that.
        """
        slowest = _SLACK * plain_seconds
        sharing = sequences if len(sequences) > 1 else ()
        self._limits = {sequence.id: max(token_latency_target(sequence.lane), slowest) for sequence in sharing}
        self._least = min(self._limits.values(), default=math.inf)

    def limit_without(self, drafted: Collection[str]) -> float:
        """Return the seconds that the step may take where it brings one token each to all but ``drafted``."""
        return min([seconds for name, seconds in self._limits.items() if name not in drafted], default=math.inf)

    def trim(self, count: int, candidates: Iterable[DraftCandidate], seconds: Callable[[int], float]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified with nobody waiting too long.

        ``candidates`` come in the order in which they are verified; the step takes ``seconds`` with so many of them.
        """
        if not self._limits or seconds(count) <= self._least:
            return count
        listed = list(candidates)[:count]
        expected: dict[str, float] = defaultdict(lambda: 1.0)
        for name, chance in listed:
            expected[name] += chance
        while count and not self._allows(seconds(count), expected):
            count -= 1
            name, chance = listed[count]
            expected[name] -= chance
        return count

    def _allows(self, seconds: float, expected: dict[str, float]) -> bool:
        seconds *= _ROUNDING
        return all(seconds <= limit * expected[name] for name, limit in self._limits.items())


_UNBOUNDED = LatencyBound()


class StepCost(NamedTuple):
    """A step has ``n_rows`` rows anyway and room for ``room`` more; ``step_seconds`` predicts its time by its rows.

    ``rate`` is what a second is worth elsewhere, in tokens. ``latency_bound`` is that of those who share the step.
    They have waited ``spent`` seconds for drafts. ``n_even`` of them must bring equally many rows, 0: none must.
    """

    n_rows: int
    rate: float
    step_seconds: Callable[[int], float]
    room: int
    latency_bound: LatencyBound = _UNBOUNDED
    spent: float = 0.0
    n_even: int = 0

    def within_latency(self, count: int, candidates: Iterable[DraftCandidate]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified with nobody waiting too long.

        ``candidates`` come in the order in which they are verified.
        """
        return self.latency_bound.trim(
            count, candidates, lambda rows: self.spent + self.step_seconds(self.n_rows + rows)
        )

    def within(self, seconds: float) -> StepCost:
        """Return the cost of a step with room for only so many rows that it takes ``seconds`` at most."""
        n_rows = self.rows_within(seconds, self.room)
        return self if n_rows == self.room else self._replace(room=n_rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """Return how many drafted rows, up to ``most``, fit into a step of ``seconds``."""
        fits = 0
        if math.isinf(seconds) or self.step_seconds(self.n_rows + most) <= seconds:
            return most
        while fits < most:
            middle = (fits + most + 1) // 2
            if self.step_seconds(self.n_rows + middle) <= seconds:
                fits = middle
            else:
                most = middle - 1
        return fits

    def shared_by(self, n_alike: int) -> StepCost:
        """Return the cost for each of ``n_alike`` texts that share the step and draft as much."""
        n_rows, step_seconds = self.n_rows, self.step_seconds
        before = step_seconds(n_rows)

        def share(rows: int) -> float:
            return before + (step_seconds(n_rows + n_alike * (rows - n_rows)) - before) / n_alike

        return self._replace(step_seconds=share)

    def row_price(self) -> float:
        """Return what a further row costs at least, in tokens: no token with a lower chance is worth verifying.

        On a CPU the second row may cost more than the tenth.
        """
        points = [(count, self.step_seconds(self.n_rows + count)) for count in (0, *LOOKAHEAD)]
        return self.rate * min(
            [(later - sooner) / (more - fewer) for (fewer, sooner), (more, later) in pairwise(points)]
        )

    def with_rows(self, n_taken: int) -> StepCost:
        """Return the cost of a step in which ``n_taken`` further rows are taken."""
        return self._replace(n_rows=self.n_rows + n_taken, room=self.room - n_taken)
