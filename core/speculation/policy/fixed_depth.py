"""Drafts of a given size, whatever they are worth: what the judged ones are compared with."""

from __future__ import annotations

from core.scheduler.sequence import Sequence
from core.speculation.draft_tree import DraftTree, GrowthPoint, TreeProposer
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_states import DraftStates
from core.speculation.policy.selection import branching, keep
from core.speculation.proposer import DraftChain, Proposer


class FixedDepth:
    """Always so many tokens of one proposer.

    A tree has a trunk of that depth, and as many of the likeliest other nodes as make a given width at each depth.
    """

    def __init__(
        self, depth: int, width: int | None, proposer: Proposer | None, growth: DraftGrowth, records: DraftStates
    ) -> None:
        """Draft ``depth`` tokens with ``proposer``, and with a ``width`` above 1 trees where it can; None: nothing."""
        self._depth = depth
        self._width = width or 1
        self._proposer = proposer
        self._tree_proposer = proposer if isinstance(proposer, TreeProposer) else None
        self._growth = growth
        self._records = records

    def draft(self, decoding: list[Sequence], room: int, n_branches: int) -> list[DraftChain]:
        """Return drafts for all sequences, which share ``room`` rows and ``n_branches`` side branches."""
        proposer = self._proposer
        if proposer is None or not self._depth:
            return []
        decoding = [sequence for sequence in decoding if self._records.can_ask(proposer, sequence)]
        room_each = room // max(len(decoding), 1)
        depth = min(self._depth, room_each)
        if self._tree_proposer is not None and n_branches and self._width > 1:
            trees = [self._records.tree(sequence, self._tree_proposer) for sequence in decoding]
            self._grow_trees(depth, trees, room_each, n_branches)
            return [*trees]
        chains = [self._records.chain(sequence, proposer) for sequence in decoding]
        self._grow_chains(depth, proposer, chains)
        return chains

    def _grow_chains(self, depth: int, proposer: Proposer, chains: list[DraftChain]) -> None:
        """Let all chains grow to ``depth`` tokens, as far as they can be used."""
        growth = self._growth
        for _ in range(depth):
            live = [chain for chain in chains if not chain.is_done and growth.limit(chain) > len(chain.tokens)]
            if live:
                growth.extend(proposer, live)

    def _grow_trees(self, depth: int, trees: list[DraftTree], room_each: int, n_branches: int) -> None:
        """Let all trees grow to ``depth``: their trunks, and the likeliest others."""
        for level in range(depth):
            self._growth.grow([tip for tree in trees for tip in self._widest(tree, level)], self._width)
        nodes: list[tuple[DraftChain, int]] = []
        for tree in trees:
            trunk = set(tree.trunk)
            others = sorted(set(range(len(tree.tokens))) - trunk, key=lambda node: (-tree.reach[node], node))
            n_others = min(len(trunk) * self._width, room_each) - len(trunk)
            nodes += [(tree, node) for node in (*tree.trunk, *others[:n_others])]
        keep([*trees], [(chain, node) for _, chain, node in branching(nodes, n_branches, 0.0)])

    def _widest(self, tree: DraftTree, depth: int) -> list[GrowthPoint]:
        """Return a tree's tips at a depth: that of the trunk and the likeliest others, as many as it is wide."""
        if depth >= self._growth.limit(tree):
            return []
        nodes = [node for node in tree.tips if tree.depth_of(node) == depth - 1]
        trunk = tree.trunk[-1:]
        nodes.sort(key=lambda node: (node not in trunk, -tree.reach_of(node)))
        return [GrowthPoint(tree, node) for node in nodes[: self._width]]
