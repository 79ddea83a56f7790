"""How much to draft in a step: what it has room for, how long it may take, and what drafts are worth and cost. Pure.

Drafting is worth what it yields beyond plain decoding: a drafted token is worth its chance of being accepted, and
costs the time it adds to the step. ``rate`` (tokens per second) is what that time is worth elsewhere: maximising
expected tokens minus rate times seconds, with the rate that decoding achieves anyway, maximises tokens per second in
the long run (Dinkelbach's method for fractional programs, 1967).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from collections.abc import Sequence as Series
from itertools import pairwise
from typing import NamedTuple

from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import DraftChain

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

    def trim(self, count: int, candidates: Iterable[tuple[str, float]], seconds: Callable[[int], float]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified with nobody waiting too long.

        ``candidates`` are, in the order in which they are verified, the id of each token's request and its chance to be
        accepted; the step takes ``seconds`` with so many of them.
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

    def within_latency(self, count: int, candidates: Iterable[tuple[str, float]]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified with nobody waiting too long."""
        return self.latency_bound.trim(
            count, candidates, lambda rows: self.spent + self.step_seconds(self.n_rows + rows)
        )

    def within(self, seconds: float) -> StepCost:
        """Return the cost of a step with room for only so many rows that it takes ``seconds`` at most."""
        n_rows = self.rows_within(seconds, self.room)
        return self if n_rows == self.room else self._replace(room=n_rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """Return how many drafted rows, up to ``most``, fit into a step of ``seconds``."""
        if math.isinf(seconds) or self.step_seconds(self.n_rows + most) <= seconds:
            return most
        return bisect_right(range(1, most), seconds, key=lambda rows: self.step_seconds(self.n_rows + rows))

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


class GrowthCandidate(NamedTuple):
    """A chain that could grow: the chance that it is accepted so far, and the chance that its next token is right.

    ``loss`` is what a rejection costs, in tokens: not 0 where rows have to be evaluated again then. ``rival`` is what a
    draft is worth that has been found already, and that the chain would replace, in tokens.
    """

    reach: float
    next_rate: float
    loss: float = 0.0
    rival: float = 0.0


class RoundValue(NamedTuple):
    """The best that another round of drafting promises: worth in tokens, and how many chains should grow."""

    worth: float
    n_chains: int


def round_value(
    candidates: Series[GrowthCandidate],
    cost: StepCost,
    round_seconds: Callable[[int], float],
    first_seconds: Callable[[int], float] = lambda _: 0.0,
    resolution: float = 0.0,
) -> RoundValue:
    """Return what growing the most promising chains by one token (or more) is worth.

    ``candidates`` come most promising first, ``cost`` is that of the step without them. ``round_seconds`` is the
    drafting time of one round by its number of chains, ``first_seconds`` what the next round costs beyond that by the
    number of the first chains that are in it; it is asked only where that decides. Where texts must bring equally many
    rows, all chains grow or none.

    A drafted token comes with evidence of whether it is right, and what is not worth it then is not verified. So
    drafting is worth more than a draft whose length is fixed before: the value of information (Howard 1966).
    ``resolution`` is how much of that is told, between nothing and everything, see ``AcceptanceTable.resolution``.
    """
    best_worth, best_chains = 0.0, 0
    n_rows, rate, step_seconds = cost.n_rows, cost.rate, cost.step_seconds
    before = step_seconds(n_rows)
    for n_chains in range(max(len(candidates), 1) if cost.n_even else 1, len(candidates) + 1):
        chosen, spent = candidates[:n_chains], rate * round_seconds(n_chains)
        depths = [
            (depth, rate * (step_seconds(n_rows + n_chains * depth) - before))
            for depth in LOOKAHEAD
            if n_chains * depth <= cost.room
        ]
        if not depths:
            break
        worth = (1.0 - resolution) * _worth_unseen(chosen, depths, spent)
        if resolution:
            worth += resolution * _worth_seen(chosen, depths, spent)
        if worth > best_worth:
            worth -= rate * first_seconds(n_chains)
            if worth > best_worth:
                best_worth, best_chains = worth, n_chains
    return RoundValue(best_worth, best_chains)


def _worth_unseen(chosen: Series[GrowthCandidate], depths: list[tuple[int, float]], spent: float) -> float:
    """Return what chains are worth, in tokens, of which nobody knows which tokens are right before they are verified.

    ``depths`` are by how many tokens each may grow, and what verifying those costs; a round costs ``spent``. After one
    the drafts may be left as they are.
    """
    worths = [sum([_gain(one, depth) for one in chosen]) - rows - depth * spent for depth, rows in depths]
    return max(max(worths) - sum([one.rival for one in chosen]), -spent)


def _worth_seen(chosen: Series[GrowthCandidate], depths: list[tuple[int, float]], spent: float) -> float:
    """Return what chains are worth, in tokens, if each round shows which tokens are right: only those are verified.

    Several are taken to go wrong at the same depth. Arguments as for ``_worth_unseen``.
    """
    reach = sum([one.reach for one in chosen])
    next_rate = sum([one.reach * one.next_rate for one in chosen]) / reach
    # The chance that all are right so far is that of the next round as well.
    chance, n_rounds, drafted, worth = 1.0, 0.0, 0, 0.0
    most = sum([one.rival for one in chosen])
    for depth, rows in depths:
        for _ in range(drafted, depth):
            n_rounds += chance
            chance *= next_rate
        drafted = depth
        gain = depth * reach - rows
        if gain > most:
            worth += chance * (gain - most)
            most = gain
    return worth - n_rounds * spent


def _gain(candidate: GrowthCandidate, depth: int) -> float:
    """Return the expected accepted tokens of the next ``depth`` ones, if each is right with the same chance.

    The chance that one of them is rejected is what the chance of reaching the end has lost.
    """
    gain, chance = 0.0, candidate.reach
    for _ in range(depth):
        chance *= candidate.next_rate
        gain += chance
    return gain - candidate.loss * (candidate.reach - chance)


def charged(reaches: Series[float], first: float, loss: Callable[[int], float]) -> list[float]:
    """Return what each token of a chain is worth where rejections cost something: in tokens, summed up to any depth.

    ``reaches`` are the chances that each is accepted, ``first`` is the cost of verifying any, ``loss(depth)`` that of
    a rejection at a depth counted from 1. The chain stops at a depth as often as the chance drops there.
    """
    before, worths = 1.0, []
    for depth, reach in enumerate(reaches, 1):
        worths.append(reach - (before - reach) * loss(depth) - first)
        before, first = reach, 0.0
    return worths


def with_time_saved(reaches: Series[float], cost: StepCost, speedup: float, end_rate: float) -> list[float]:
    """Return what each token of a chain that costs nothing promises with the time that it saves later, in tokens.

    ``rate`` takes it that a text goes on ``speedup`` times as fast as plain decoding whatever is drafted now. But what
    is right and not drafted now has to come in later steps, each of which costs what it costs: near a text's end that
    is all there is to come. So what each place of the chain still owes is worked out from its end backwards (Bellman
    1957). ``reaches`` are the chances that each token is accepted; behind the last the text ends with ``end_rate``.
    """
    size, before = len(reaches), cost.step_seconds(cost.n_rows)
    prices = [
        speedup - 1.0 + cost.rate * (cost.step_seconds(cost.n_rows + depth) - before) for depth in range(size + 1)
    ]
    owed = [0.0] * (size + 2)
    owed[size] = reaches[-1] * end_rate * (speedup - 1.0) if reaches else 0.0
    for place in range(size - 1, 0, -1):
        chance, gain = reaches[place - 1], 0.0
        least = chance * prices[0] + owed[place + 1]
        for depth in range(1, size - place + 1):
            gain += reaches[place + depth - 1]
            least = min(least, chance * prices[depth] - gain + owed[place + depth + 1])
        owed[place] = least
    return [reach + owed[depth] - owed[depth + 1] for depth, reach in enumerate(reaches, 1)]


def best_cut(gains: Series[float], cost: StepCost) -> int:
    """Return how many drafted tokens to verify; ``gains`` are in tokens, the likeliest first (see ``charged``)."""
    best_count, best_worth, gain = 0, 0.0, 0.0
    n_rows, rate, step_seconds = cost.n_rows, cost.rate, cost.step_seconds
    before = step_seconds(n_rows)
    for count, more in enumerate(gains, 1):
        gain += more
        worth = gain - rate * (step_seconds(n_rows + count) - before)
        if worth > best_worth:
            best_count, best_worth = count, worth
    return best_count


def keep_what_pays(chains: list[DraftChain], cost: StepCost, gains_of: Callable[[DraftChain], list[float]]) -> None:
    """Keep the drafted tokens that pay, over all chains; ``gains_of`` says what verifying each promises, in tokens."""
    tokens = sorted(
        (
            (reach / chain.caution, -depth, chain, gain)
            for chain in chains
            for depth, (reach, gain) in enumerate(zip(chain.reach, gains_of(chain), strict=True))
        ),
        key=lambda entry: (-entry[0], -entry[1]),
    )[: max(cost.room, 0)]
    count = best_cut([gain for _, _, _, gain in tokens], cost)
    count = cost.within_latency(count, ((chain.sequence.id, chain.reach[-depth]) for _, depth, chain, _ in tokens))
    sizes: dict[int, int] = {}
    for _, _, chain, _ in tokens[:count]:
        sizes[id(chain)] = sizes.get(id(chain), 0) + 1
    for chain in chains:
        chain.truncate(sizes.get(id(chain), 0))


def keep_evenly(chains: list[DraftChain], cost: StepCost, gains_of: Callable[[DraftChain], list[float]]) -> None:
    """Keep equally many tokens of each chain, as many as pay; none where one of ``cost.n_even`` texts has no chain.

    Of models with a recurrent state llama.cpp evaluates sequences with different numbers of rows one after the other
    (``llama_batch_allocr::split_equal``): a row more for one of them is another pass over the weights.
    """
    n_sequences = cost.n_even
    most = min([len(chain.tokens) for chain in chains]) if len(chains) == n_sequences else 0
    gains = [gains_of(chain) for chain in chains]
    least = cost.step_seconds(cost.n_rows)
    depth, worth, promised = 0, 0.0, 0.0
    for size in range(1, min(most, cost.room // max(n_sequences, 1)) + 1):
        promised += sum([gain[size - 1] for gain in gains])
        left = promised - cost.rate * (cost.step_seconds(cost.n_rows + size * n_sequences) - least)
        if left > worth:
            depth, worth = size, left
    candidates = ((chain.sequence.id, chain.reach[place]) for place in range(depth) for chain in chains)
    depth = cost.within_latency(depth * len(chains), candidates) // max(len(chains), 1)
    for chain in chains:
        chain.truncate(depth)
