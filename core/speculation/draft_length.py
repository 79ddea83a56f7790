"""How much to draft in a step: what it has room for, how long it may take, and what drafts are worth and cost. Pure.

A drafted token is worth its chance of being accepted, and costs the time that it adds to the step. ``rate`` converts
that time into tokens: it is the number of tokens per second that decoding achieves anyway. Maximising expected tokens
minus rate times seconds maximises tokens per second in the long run (Dinkelbach's method for fractional programs,
1967).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from collections.abc import Sequence as Series
from itertools import pairwise
from operator import add
from typing import NamedTuple

from core.scheduler.planner import token_latency_target
from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import DraftChain

# If a step misses its lane's target even without drafts, drafts may make it longer by this factor.
_SLACK = 1.25
# Rows to look ahead: where the cost curve has a step, the first extra row is dear and the next ones are free.
LOOKAHEAD = (1, 2, 4, 8)
# Tolerance for sums of chances, which floating point rounds.
_ROUNDING = 1.0 - 1e-9


class StepCapacity(NamedTuple):
    """A step without drafts has ``n_rows`` rows, which attend to ``kv`` tokens; drafts may add ``room`` rows.

    ``n_even`` sequences must bring equally many rows (0: any number each), unless a depth is fixed. ``beside`` are
    requests that decode in the step and are not drafted for, and the prompts of ``n_reading`` further ones are read
    meanwhile. The step should take at most ``target`` seconds, including the reading of long texts by proposers.
    """

    n_rows: int
    kv: int
    room: int
    n_even: int = 0
    beside: Series[Sequence] = ()
    n_reading: int = 0
    target: float = math.inf


def slack_seconds(target: float, plain_seconds: float) -> float:
    """Return the seconds by which drafts may lengthen a step: up to its ``target``, or by a quarter."""
    return max(target, _SLACK * plain_seconds) - plain_seconds


class LatencyBound:
    """Bounds the seconds of a step per expected token of each text by the target of the text's lane.

    So a text with a good draft may wait long for many tokens at once. A text without one does not wait longer for the
    drafts of others than its lane allows.
    """

    def __init__(self, sequences: Collection[Sequence] = (), plain_seconds: float = 0.0) -> None:
        """``sequences`` share the step, which takes ``plain_seconds`` without drafts.

        A single one has no bound: it only waits for its own drafts, which are as long as they pay.
        """
        slowest = _SLACK * plain_seconds
        sharing = sequences if len(sequences) > 1 else ()
        self._limits = {sequence.id: max(token_latency_target(sequence.lane), slowest) for sequence in sharing}
        self._least = min(self._limits.values(), default=math.inf)

    def limit_without(self, drafted: Collection[str]) -> float:
        """Return the seconds that the step may take if all but ``drafted`` get one token from it."""
        return min([seconds for name, seconds in self._limits.items() if name not in drafted], default=math.inf)

    def trim(self, count: int, candidates: Iterable[tuple[str, float]], seconds: Callable[[int], float]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified within all limits.

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
    """A step without drafts has ``n_rows`` rows, and room for ``room`` more; ``step_seconds`` is its time by rows.

    ``rate`` is the value of a second, in tokens. ``latency_bound`` is that of the requests that share the step. They
    have waited ``spent`` seconds for drafts. ``n_even`` of them must bring equally many rows (0: any number each).
    """

    n_rows: int
    rate: float
    step_seconds: Callable[[int], float]
    room: int
    latency_bound: LatencyBound = _UNBOUNDED
    spent: float = 0.0
    n_even: int = 0

    def within_latency(self, count: int, candidates: Iterable[tuple[str, float]]) -> int:
        """Return how many of the first ``count`` drafted tokens can be verified within the latency bound."""
        return self.latency_bound.trim(
            count, candidates, lambda rows: self.spent + self.step_seconds(self.n_rows + rows)
        )

    def within(self, seconds: float) -> StepCost:
        """Return the cost of the step with less room, so that it takes at most ``seconds``."""
        n_rows = self.rows_within(seconds, self.room)
        return self if n_rows == self.room else self._replace(room=n_rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """Return how many drafted rows, up to ``most``, fit into a step of ``seconds``."""
        if math.isinf(seconds) or self.step_seconds(self.n_rows + most) <= seconds:
            return most
        return bisect_right(range(1, most), seconds, key=lambda rows: self.step_seconds(self.n_rows + rows))

    def shared_by(self, n_alike: int) -> StepCost:
        """Return the cost for one of ``n_alike`` texts that share the step and draft equally much."""
        n_rows, step_seconds = self.n_rows, self.step_seconds
        before = step_seconds(n_rows)

        def share(rows: int) -> float:
            return before + (step_seconds(n_rows + n_alike * (rows - n_rows)) - before) / n_alike

        return self._replace(step_seconds=share)

    def row_price(self) -> float:
        """Return the least cost of a further row, in tokens: a token with a lower chance is not worth verifying.

        It is the least over several rows, because on a CPU the second row may cost more than the tenth.
        """
        points = [(count, self.step_seconds(self.n_rows + count)) for count in (0, *LOOKAHEAD)]
        return self.rate * min(
            [(later - sooner) / (more - fewer) for (fewer, sooner), (more, later) in pairwise(points)]
        )

    def with_rows(self, n_taken: int) -> StepCost:
        """Return the cost of the step with ``n_taken`` more rows."""
        return self._replace(n_rows=self.n_rows + n_taken, room=self.room - n_taken)


class GrowthCandidate(NamedTuple):
    """A chain that could grow: the chance that it is accepted so far, and the chance that its next token is right.

    ``loss`` is the cost of a rejection, in tokens: above 0 if rows have to be evaluated again then. ``rival`` is the
    worth of the free draft that the chain would replace, in tokens.
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
    drafting time of one round by its number of chains. ``first_seconds`` is the additional time of the next round, by
    how many of the first chains are in it; it is asked only if it decides. If texts must bring equally many rows, all
    chains grow or none.

    A drafted token comes with evidence of whether it is right, and is verified only if that still pays. So drafting is
    worth more than a draft of a fixed length: the value of information (Howard 1966). ``resolution`` is how much the
    evidence tells, from 0 for nothing to 1 for everything (``AcceptanceTable.resolution``).
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
    """Return the worth of chains, in tokens, if nothing tells which tokens are right before they are verified.

    ``depths`` are pairs of the tokens by which each may grow, and the cost of verifying those. A round costs
    ``spent``. After one round the drafts may also stay as they were.
    """
    gains = _gains(chosen[0], depths)
    for other in chosen[1:]:
        gains = list(map(add, gains, _gains(other, depths)))
    worths = [gain - rows - depth * spent for gain, (depth, rows) in zip(gains, depths, strict=True)]
    return max(max(worths) - sum([one.rival for one in chosen]), -spent)


def _worth_seen(chosen: Series[GrowthCandidate], depths: list[tuple[int, float]], spent: float) -> float:
    """Return the worth of chains, in tokens, if each round shows which tokens are right, so only those are verified.

    Several chains are assumed to go wrong at the same depth. Arguments as for ``_worth_unseen``.
    """
    reach = sum([one.reach for one in chosen])
    next_rate = sum([one.reach * one.next_rate for one in chosen]) / reach
    # The next round is made only if all tokens so far are right.
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


def _gains(candidate: GrowthCandidate, depths: list[tuple[int, float]]) -> list[float]:
    """Return the expected accepted tokens among the next ones for each of ``depths``, if all have the same chance.

    The cost of a rejection is subtracted, times the chance that one of them is rejected.
    """
    reach, next_rate, loss, _ = candidate
    gain, chance, drafted, gains = 0.0, reach, 0, []
    for depth, _ in depths:
        for _ in range(drafted, depth):
            chance *= next_rate
            gain += chance
        drafted = depth
        gains.append(gain - loss * (reach - chance))
    return gains


def charged(reaches: Series[float], first: float, loss: Callable[[int], float]) -> list[float]:
    """Return the worth of each token of a chain, in tokens, if rejections have a cost. Their sum is that of the chain.

    ``reaches`` are the chances that each is accepted, ``first`` is the cost of verifying any, ``loss(depth)`` that of
    a rejection at a depth counted from 1. A rejection at a depth is as likely as the drop of the chance there.
    """
    before, worths = 1.0, []
    for depth, reach in enumerate(reaches, 1):
        worths.append(reach - (before - reach) * loss(depth) - first)
        before, first = reach, 0.0
    return worths


def with_time_saved(reaches: Series[float], cost: StepCost, speedup: float, end_rate: float) -> list[float]:
    """Return the worth of each token of a free chain, in tokens, including the time that it saves in later steps.

    ``rate`` assumes that a text goes on at ``speedup`` times plain decoding, whatever is drafted now. But a right token
    that is not drafted now costs time in a later step, and near a text's end there is little else to come. So the cost
    of what is left is computed from each place of the chain, from its end backwards (Bellman 1957). ``reaches`` are the
    chances that each token is accepted; behind the last one the text ends with chance ``end_rate``.
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
    """Keep the drafted tokens that pay, over all chains; ``gains_of`` returns the gain of verifying each, in tokens."""
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
    """Keep equally many tokens of each chain, as many as pay; none if one of ``cost.n_even`` texts has no chain.

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
