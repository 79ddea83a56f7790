"""Drafts of a given size, whatever they are worth: what the judged ones are compared with."""

from __future__ import annotations

from core.speculative.drafter import Chain, Drafter
from core.speculative.growth import Growth
from core.speculative.selection import branching, keep
from core.speculative.tree import Tip, Tree


def grow_chains_to(depth: int, growth: Growth, drafter: Drafter, chains: list[Chain]) -> None:
    """Let all chains grow to ``depth`` tokens, as far as they can be used."""
    for _ in range(depth):
        live = [chain for chain in chains if not chain.is_done and growth.limit(chain) > len(chain.tokens)]
        if live:
            growth.extend(drafter, live)


def grow_trees_to(depth: int, growth: Growth, trees: list[Tree], width: int, room_each: int, n_branches: int) -> None:
    """Let all trees grow to ``depth``: their trunks, and the likeliest others, in all ``width`` at each depth."""
    for level in range(depth):
        growth.grow([tip for tree in trees for tip in _widest(growth, tree, level, width)], width)
    nodes: list[tuple[Chain, int]] = []
    for tree in trees:
        trunk = set(tree.trunk)
        others = sorted(set(range(len(tree.tokens))) - trunk, key=lambda node: (-tree.reach[node], node))
        n_others = min(len(trunk) * width, room_each) - len(trunk)
        nodes += [(tree, node) for node in (*tree.trunk, *others[:n_others])]
    keep([*trees], [(chain, node) for _, chain, node in branching(nodes, n_branches, 0.0)])


def _widest(growth: Growth, tree: Tree, depth: int, width: int) -> list[Tip]:
    """Return a tree's tips at a depth: that of the trunk and the likeliest others, ``width`` in all."""
    if depth >= growth.limit(tree):
        return []
    nodes = [node for node in tree.tips if tree.depth_of(node) == depth - 1]
    trunk = tree.trunk[-1:]
    nodes.sort(key=lambda node: (node not in trunk, -tree.reach_of(node)))
    return [Tip(tree, node) for node in nodes[:width]]
