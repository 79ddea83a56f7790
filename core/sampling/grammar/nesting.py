"""The nesting depth of a schema or a grammar, with references followed. Pure.

llguidance compiles by recursion without a depth limit: too deep a grammar would crash the process (a level takes up to
3 KB of the 8 MB stack). A cheap upper bound is enough here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from core.sampling.grammar.json_pointer import child, keys

MOST_LEVELS = 2_000
_ROOT = "#"
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/|//[^\n]*')
_HEAD = re.compile(r"^[ \t]*[?!]*([A-Za-z_][\w-]*)[^\n:]*:", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w-]*")
NodeT = TypeVar("NodeT", bound=Hashable)


def grammar_levels(text: str) -> int:
    """Return the levels of a grammar in Lark: nested rules, groups, and embedded schemas."""
    embedded = max((schema_levels(schema) for schema in _embedded(text)), default=0)
    bare = _TEXT.sub("", text)
    heads = list(_HEAD.finditer(bare))
    ends = [head.start() for head in heads[1:]] + [len(bare)]
    bodies: dict[str, str] = {}
    for head, end in zip(heads, ends, strict=True):
        # A grammar within the grammar has names of its own, which may be the same.
        bodies[head[1]] = bodies.get(head[1], "") + bare[head.end() : end]
    needs = {name: {other for other in _NAME.findall(body) if other in bodies} for name, body in bodies.items()}
    return embedded + deepest({name: 1 + _groups(body) for name, body in bodies.items()}, needs)


def schema_levels(schema: object) -> int:
    """Return the levels of a JSON schema: nested objects and lists, with every ``$ref`` followed.

    0 if it is nested deeper than llguidance reads (128 levels, without references).
    """
    try:
        return _Schema(schema).levels()
    except RecursionError:
        return 0


def json_levels(text: str) -> int:
    """Return the levels of a JSON schema as text; 0 where llguidance does not read it."""
    try:
        return schema_levels(json.loads(text))
    except (ValueError, RecursionError):
        return 0


def deepest(weights: Mapping[NodeT, int], needs: Mapping[NodeT, Collection[NodeT]]) -> int:
    """Return the weight of the heaviest path along ``needs``; a cycle counts with all its nodes.

    Strongly connected components by Tarjan's algorithm (1972), without recursion.
    """
    found: dict[NodeT, int] = {}  # the order in which nodes were found
    lowest: dict[NodeT, int] = {}
    totals: dict[NodeT, int] = {}  # of those whose component is known
    stack: list[NodeT] = []
    for start in needs:
        if start in found:
            continue
        found[start] = lowest[start] = len(found)
        stack.append(start)
        way = [(start, iter(needs[start]))]
        while way:
            node, others = way[-1]
            other = next(others, None)
            if other is None:
                way.pop()
                if lowest[node] == found[node]:
                    _close(node, stack, weights, needs, totals)
                elif way:
                    above = way[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
            elif other not in found:
                found[other] = lowest[other] = len(found)
                stack.append(other)
                way.append((other, iter(needs[other])))
            elif other not in totals:
                lowest[node] = min(lowest[node], found[other])
    return max(totals.values(), default=0)


def _close(
    first: NodeT,
    stack: list[NodeT],
    weights: Mapping[NodeT, int],
    needs: Mapping[NodeT, Collection[NodeT]],
    totals: dict[NodeT, int],
) -> None:
    """Set the totals of a complete component, the stack from ``first`` on; its dependencies have theirs."""
    members = stack[stack.index(first) :] if stack[-1] != first else [first]
    del stack[len(stack) - len(members) :]
    below = max((totals[other] for node in members for other in needs[node] if other in totals), default=0)
    totals |= dict.fromkeys(members, below + sum(weights[node] for node in members))


class _Schema:
    """A schema's parts, each with its own levels and the references inside it."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._references: list[str] = []
        # By identity: levels, and where its references begin and end.
        self._parts: dict[int, tuple[int, int, int]] = {}

    def levels(self) -> int:
        self._walk(self._root)
        weights: dict[str, int] = {}
        needs: dict[str, set[str]] = {}
        left = [_ROOT]
        while left:
            pointer = left.pop()
            if pointer in needs:
                continue
            weights[pointer], first, end = self._parts.get(id(self._at(pointer)), (1, 0, 0))
            needs[pointer] = set(self._references[first:end])
            left += needs[pointer]
        return deepest(weights, needs)

    def _walk(self, part: Any) -> int:
        """Return the levels of a part and record its references."""
        if not isinstance(part, dict | list):
            return 0
        first = len(self._references)
        children: Iterable[Any] = part
        if isinstance(part, dict):
            children = part.values()
            if isinstance(part.get("$ref"), str):
                self._references.append(part["$ref"])
        levels = 1 + max([self._walk(child) for child in children], default=0)
        self._parts[id(part)] = levels, first, len(self._references)
        return levels

    def _at(self, pointer: str) -> object:
        """Return the part that a reference names, None where there is none.

        For a reference that is no pointer (such as an anchor), return the whole schema as an upper bound.
        """
        part: Any = self._root
        if not pointer.startswith("#/"):
            return part
        try:
            for key in keys(pointer):
                part = child(part, key)
        except LookupError:
            return None
        return part


def _groups(body: str) -> int:
    """Return how deep the groups of a rule are."""
    depth = most = 0
    for character in body:
        if character in "([{":
            depth += 1
            most = max(most, depth)
        elif character in ")]}":
            depth -= 1
    return most


def _embedded(text: str) -> Iterable[object]:
    for match in re.finditer(r"%json\s*", text):
        try:
            yield json.JSONDecoder().raw_decode(text, match.end())[0]
        except (ValueError, RecursionError):
            continue
