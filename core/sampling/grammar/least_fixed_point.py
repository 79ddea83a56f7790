"""The least fixed point of equations that depend on each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

NodeT = TypeVar("NodeT")
ValueT = TypeVar("ValueT")
# Limit of evaluations: only grammars made to take long reach it.
_MOST_EVALUATIONS = 100_000


def least_fixed_point(
    needs: Mapping[NodeT, Sequence[NodeT]],
    evaluate: Callable[[NodeT, Mapping[NodeT, ValueT]], ValueT],
    bottom: ValueT,
) -> dict[NodeT, ValueT] | None:
    """Return the least values in which each node's value is ``evaluate`` of the values it needs.

    All values start at ``bottom`` and only grow (Kleene's theorem). ``needs`` has every node; dependencies first is
    fastest. None if it would take too long.
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
    """Return the cycle that the path from ``start`` runs into, with its first node again at the end.

    Empty if the path ends.
    """
    way: dict[NodeT, int] = {}
    node: NodeT | None = start
    while node is not None and node not in way:
        way[node] = len(way)
        node = next_of(node)
    return [] if node is None else [*list(way)[way[node] :], node]
