"""A chain that forks: several next tokens behind each drafted one (EAGLE-2, arXiv 2406.16858)."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Series
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from core.scheduler.draft import PENDING, Draft, TreeShape
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import SequenceAcceptance
from core.speculation.proposer import CostlyProposer, DraftChain, ProposedToken

_SMALLEST_CHANCE = 1e-4


@dataclass(slots=True)
class DraftTree(DraftChain):
    """Tokens drafted for one sequence in one step, each behind the token ``parents`` names or the pending one.

    ``tips`` can grow; ``n_places`` have grown: siblings that lead nowhere need not be verified. ``kept_nodes`` are to
    be. ``siblings`` is what is known of other than first choices. The trunk is made of first choices only: the chain
    that would be drafted without forks.
    """

    siblings: SequenceAcceptance = field(kw_only=True)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    trunk: list[int] = field(default_factory=list)
    open_tips: list[int] = field(default_factory=lambda: [PENDING])
    kept_nodes: list[int] = field(default_factory=list)
    n_places: int = 0

    @property
    def tips(self) -> tuple[int, ...]:
        """Nodes that can grow."""
        return tuple(self.open_tips) if not self.is_done else ()

    @property
    def kept_depths(self) -> Series[int]:
        """Depths of the tokens to verify."""
        return [self.depths[node] for node in self.kept_nodes]

    @property
    def draft(self) -> Draft:
        """What is to be verified; without forks it is a chain like any other."""
        places = {node: place for place, node in enumerate(self.kept_nodes)}
        parents = tuple(places.get(self.parents[node], PENDING) for node in self.kept_nodes)
        is_chain = all(parent == place - 1 for place, parent in enumerate(parents))
        return Draft(tuple(self.tokens[node] for node in self.kept_nodes), None if is_chain else TreeShape(parents))

    def depth_of(self, node: int) -> int:
        """Return how many drafted tokens lead up to a node."""
        return PENDING if node == PENDING else self.depths[node]

    def path(self, node: int) -> list[int]:
        """Return the tokens that lead from behind the pending one up to a node."""
        path = []
        while node != PENDING:
            path.append(self.tokens[node])
            node = self.parents[node]
        return path[::-1]

    def grow(
        self, node: int, guesses: Series[ProposedToken], least_reach: float, end_tokens: Collection[int] = ()
    ) -> None:
        """Put what was proposed behind a node, but for ``end_tokens``.

        What has less than ``least_reach`` of a chance grows no further.
        """
        self.open_tips.remove(node)
        self.n_places += 1
        is_trunk = node == (self.trunk[-1] if self.trunk else PENDING)
        left = 1.0
        for rank, guess in enumerate(guesses):
            rate = self.proposer.table.rate(guess.evidence)
            # Only one of the siblings can be right.
            chance = max(min(self._learner(rank).expect(guess.evidence, rate), left), _SMALLEST_CHANCE)
            left -= chance
            if guess.token in end_tokens:
                if not self.tokens and not rank:
                    self.next = guess
                continue
            child = len(self.tokens)
            self.tokens.append(guess.token)
            self.evidence.append(guess.evidence)
            self.rates.append(rate)
            self.reach.append(self.reach_of(node) * chance)
            self.parents.append(node)
            self.depths.append(self.depth_of(node) + 1)
            self.ranks.append(rank)
            if is_trunk and not rank:
                self.trunk.append(child)
            if self.reach[child] >= least_reach:
                self.open_tips.append(child)

    def keep(self, nodes: Series[int]) -> None:
        """Verify only these nodes, each of them with all that lead up to it."""
        self.kept_nodes = sorted(nodes)

    def learn(self, choices: Series[int], n_accepted: int) -> None:
        """Learn what each drafted token was worth wherever the target's own is known, verified or not."""
        node = PENDING
        for token in choices:
            following = None
            for child, parent in enumerate(self.parents):
                if parent != node:
                    continue
                was_right = self.tokens[child] == token
                self.proposer.table.learn(self.evidence[child], was_right)
                self._learner(self.ranks[child]).learn(self.evidence[child], self.rates[child], was_right)
                following = child if was_right else following
            if following is None:
                return
            node = following

    def _learner(self, rank: int) -> SequenceAcceptance:
        return self.siblings if rank else self.acceptance


class GrowthPoint(NamedTuple):
    """Where to draft on: behind a node of a chain, -1 being the pending token."""

    chain: DraftChain
    node: int


@runtime_checkable
class TreeProposer(CostlyProposer, Protocol):
    """A proposer that can propose several next tokens for one place and go on behind each of them."""

    most_tips: int

    def grow(self, tips: Series[GrowthPoint], width: int) -> list[tuple[ProposedToken, ...]]:
        """Return the ``width`` best next tokens for each tip; at most ``most_tips``. May raise DraftFailed."""

    def keep_accepted(self, sequence: Sequence) -> None:
        """Keep of a sequence's branches what has become part of it."""

    def drop_branches(self) -> None:
        """Free the branches of sequences that were not settled."""
