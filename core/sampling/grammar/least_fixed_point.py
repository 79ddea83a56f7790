"""The least solution of equations that depend on each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

NodeT = TypeVar("NodeT")
ValueT = TypeVar("ValueT")
# Evaluations after which nothing more is asked: what takes longer was written to take long.
_MOST_EVALUATIONS = 100_000


def least_fixed_point(
    needs: Mapping[NodeT, Sequence[NodeT]],
    evaluate: Callable[[NodeT, Mapping[NodeT, ValueT]], ValueT],
    bottom: ValueT,
) -> dict[NodeT, ValueT] | None:
    """Return the least values for which each node's is what ``evaluate`` makes of those that it needs.

    All begin at ``bottom`` and only grow (Kleene's theorem); ``needs`` has every node, best those needed first.
    None where that would take too long.
    """
    needed_by: dict[NodeT, list[NodeT]] = {node: [] for node in needs}
    for node, others in needs.items():
        for other in others:
            needed_by[other].append(node)
    values = dict.fromkeys(needs, bottom)
    dirty = dict.fromkeys(needs)
    n_left = _MOST_EVALUATIONS
    while dirty:
        round_, dirty = dirty, {}
        for node in round_:
            dirty.pop(node, None)
            value = evaluate(node, values)
            n_left -= 1 + len(needs[node])
            if value != values[node]:
                values[node] = value
                dirty |= dict.fromkeys(needed_by[node])
        if n_left < 0:
            return None
    return values


def find_cycle(start: NodeT, next_of: Callable[[NodeT], NodeT | None]) -> list[NodeT]:
    """Return the circle that the way from ``start`` runs into, its first node once more at its end.

    Empty where the way ends.
    """
    way: dict[NodeT, int] = {}
    node: NodeT | None = start
    while node is not None and node not in way:
        way[node] = len(way)
        node = next_of(node)
    return [] if node is None else [*list(way)[way[node] :], node]
