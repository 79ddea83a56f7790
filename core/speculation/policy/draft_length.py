"""How much to draft in a step. Pure: probabilities and step times in, rows out.

Drafting is worth what it yields beyond plain decoding: a drafted token is worth its chance of being accepted, and
costs the time it adds to the step. ``rate`` (tokens per second) is what that time is worth elsewhere: maximising
expected tokens minus rate times seconds, with the rate that decoding achieves anyway, maximises tokens per second in
the long run (Dinkelbach's method for fractional programs, 1967).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.speculation.policy.step_cost import StepCost

# How far to look ahead: a step in the cost curve may make the first extra row dear and the next ones free.
LOOKAHEAD = (1, 2, 4, 8)


def _nothing(_: int) -> float:
    return 0.0


class GrowthCandidate(NamedTuple):
    """A chain that could grow: the chance that it is accepted so far, and the chance that its next token is right.

    ``loss`` is what a rejection costs, in tokens: not 0 where rows have to be evaluated again then.
    """

    reach: float
    next_rate: float
    loss: float = 0.0


class RoundValue(NamedTuple):
    """The best that another round of drafting promises: worth in tokens, and how many chains should grow."""

    worth: float
    n_chains: int


def round_value(
    candidates: Sequence[GrowthCandidate],
    prices: StepCost,
    round_seconds: Callable[[int], float],
    first_seconds: Callable[[int], float] = _nothing,
) -> RoundValue:
    """Return what growing the most promising chains by one token (or more) is worth.

    ``candidates`` come most promising first, ``prices`` are those of the step without them. ``round_seconds`` is the
    drafting time of one round by its number of chains, ``first_seconds`` what the next round costs beyond that by the
    number of the first chains that are in it; it is asked only where that decides.
    """
    best_worth, best_chains = 0.0, 0
    n_rows, rate, step_seconds, room = prices.n_rows, prices.rate, prices.step_seconds, prices.room
    before = step_seconds(n_rows)
    for n_chains in range(1, len(candidates) + 1):
        chosen, spent = candidates[:n_chains], round_seconds(n_chains)
        worth = -math.inf
        for depth in LOOKAHEAD:
            more = n_chains * depth
            if more > room:
                break
            gain = sum([_gain(candidate, depth) for candidate in chosen])
            worth = max(worth, gain - rate * (step_seconds(n_rows + more) - before + depth * spent))
        if worth > best_worth:
            worth -= rate * first_seconds(n_chains)
            if worth > best_worth:
                best_worth, best_chains = worth, n_chains
    return RoundValue(best_worth, best_chains)


def adaptive_round_value(
    candidates: Sequence[GrowthCandidate],
    spreads: Sequence[Sequence[tuple[float, float]]],
    prices: StepCost,
    round_seconds: Callable[[int], float],
    first_seconds: Callable[[int], float] = _nothing,
) -> RoundValue:
    """Return what it is worth to draft one token for each chain, see how likely it is, and go on only where that pays.

    A proposer that is right half of the time may know when: on average its tokens do not pay, but those do of which it
    is sure. ``spreads`` has, for each candidate, shares of its next tokens and their chances. Else as another_round.
    """
    n_chains = len(candidates)
    n_rows, rate, step_seconds = prices.n_rows, prices.rate, prices.step_seconds
    spent = round_seconds(n_chains)
    before = step_seconds(n_rows)
    # What each chain pays for so many tokens, the first of which is drafted already.
    dues = [
        (depth, rate * ((step_seconds(n_rows + n_chains * depth) - before) / n_chains + (depth - 1) * spent / n_chains))
        for depth in LOOKAHEAD
        if n_chains * depth <= prices.room
    ]
    worth = -rate * spent
    for candidate, spread in zip(candidates, spreads, strict=True):
        for share, chance in spread:
            sure = candidate._replace(next_rate=chance)
            # The tokens behind it are no surer than usual.
            behind = candidate._replace(reach=candidate.reach * chance)
            gains = [_gain(sure, 1) + (_gain(behind, depth - 1) if depth > 1 else 0.0) - paid for depth, paid in dues]
            worth += share * max([0.0, *gains])
    if worth > 0.0:
        worth -= rate * first_seconds(n_chains)
    return RoundValue(worth, n_chains) if worth > 0.0 else RoundValue(0.0, 0)


def _gain(candidate: GrowthCandidate, depth: int) -> float:
    """Return the expected accepted tokens of the next ``depth`` ones, if each is right with the same chance.

    The chance that one of them is rejected is what the chance of reaching the end has lost.
    """
    gain, chance = 0.0, candidate.reach
    for _ in range(depth):
        chance *= candidate.next_rate
        gain += chance
    return gain - candidate.loss * (candidate.reach - chance)


def charged(reaches: Sequence[float], first: float, loss: Callable[[int], float]) -> list[float]:
    """Return what each token of a chain is worth where rejections cost something: in tokens, summed up to any depth.

    ``reaches`` are the chances that each is accepted, ``first`` is the cost of verifying any, ``loss(depth)`` that of
    a rejection at a depth counted from 1. The chain stops at a depth as often as the chance drops there.
    """
    before, worths = 1.0, []
    for depth, reach in enumerate(reaches, 1):
        worths.append(reach - (before - reach) * loss(depth) - first)
        before, first = reach, 0.0
    return worths


def best_cut(gains: Sequence[float], prices: StepCost) -> int:
    """Return how many of the drafted tokens to verify.

    ``gains`` are the chances that each token is accepted (less what rejections cost, see ``charged``), most likely
    first; drafting itself is paid already.
    """
    best_count, best_worth, gain = 0, 0.0, 0.0
    n_rows, rate, step_seconds = prices.n_rows, prices.rate, prices.step_seconds
    before = step_seconds(n_rows)
    for count, more in enumerate(gains, 1):
        gain += more
        worth = gain - rate * (step_seconds(n_rows + count) - before)
        if worth > best_worth:
            best_count, best_worth = count, worth
    return best_count
