"""Lets drafts grow: round by round, each as long as it pays or to a given depth."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from core.kv_cache.rollback import CheckpointRollback
from core.scheduler.draft import PENDING
from core.scheduler.sequence import Sequence
from core.speculation.acceptance import SequenceAcceptance
from core.speculation.draft_tree import DraftTree, GrowthPoint, TreeProposer
from core.speculation.policy.draft_length import GrowthCandidate, RoundValue, adaptive_round_value, charged, round_value
from core.speculation.policy.draft_state import DraftState
from core.speculation.policy.draft_states import DraftStates
from core.speculation.policy.step_cost import StepCost
from core.speculation.proposer import CostlyProposer, DraftChain, DraftFailed, Proposer
from core.values.engine_options import MAX_DRAFT_DEPTH

# What reading a sequence costs a proposer is spread over the steps that are likely still to come: a reply of
# usual length, at so many tokens a step.
_USUAL_REPLY, _REPLY_WEIGHT = 128.0, 0.1
_TOKENS_PER_STEP = 3.0
# So many places off the trunks are considered for drafting on.
_MOST_SIDE_TIPS = 8


class DraftingTime(NamedTuple):
    """Seconds that a proposer took for a text, which would not have been spent without drafts."""

    record: DraftState
    proposer: str
    seconds: float


class DraftGrowth:
    """Asks proposers for tokens and puts them behind drafts.

    ``seconds_at_risk`` is what paid proposers took since it was last set to 0, and ``risks`` who took it for whom.
    ``reading_seconds`` is what the step leaves for reading texts that they are far behind in.
    """

    def __init__(
        self,
        *,
        n_ctx: int,
        most: int,
        least_reach: float,
        end_tokens: Collection[int],
        tree_proposer: TreeProposer | None,
        checkpoints: CheckpointRollback | None,
        records: DraftStates,
        clock: Callable[[], float],
    ) -> None:
        """Drafts get ``most`` tokens and texts ``n_ctx``; a draft whose chance is below ``least_reach`` has grown up.

        Nothing is drafted beyond one of ``end_tokens``. ``checkpoints`` is asked what rejections cost, None: nothing.
        ``records`` are told where a proposer fails.
        """
        self.seconds_at_risk = self.reading_seconds = 0.0
        self.risks: list[DraftingTime] = []
        self.clock = clock
        self._n_ctx = n_ctx
        self._most = most
        self._least_reach = least_reach
        self._end_tokens = end_tokens
        self._tree_proposer = tree_proposer
        self._checkpoints = checkpoints
        self._records = records
        self._has_forked = False
        self._usual_reply = _USUAL_REPLY

    @property
    def has_branched(self) -> bool:
        """True where trees have grown since the last ``drop_forks``."""
        return self._has_forked

    def drop_branches(self) -> None:
        """Let the draft model forget the branches of the trees that grew."""
        if self._tree_proposer is not None and self._has_forked:
            self._tree_proposer.drop_branches()
            self._has_forked = False

    def learn_reply_length(self, n_generated: int) -> None:
        """Learn how long replies usually are."""
        self._usual_reply += _REPLY_WEIGHT * (n_generated - self._usual_reply)

    def limit(self, chain: DraftChain) -> int:
        """Return how many tokens may be drafted: no more than can be used."""
        return min(self._most, chain.sequence.n_left(self._n_ctx) - 1)

    # -- by what pays -------------------------------------------------------------------------------------------

    def expected_gain(self, proposer: CostlyProposer, chain: DraftChain, prices: StepCost, n_alike: int = 1) -> float:
        """Return what a proposer can be expected to be worth on a sequence, in tokens.

        Of ``n_alike`` texts that could all be drafted for, one alone may not be worth a round that all share.
        """
        candidates = [self._candidate(chain, prices.rate)]
        prices = prices._replace(room=MAX_DRAFT_DEPTH)
        alone = self._outlook(proposer, candidates, [chain.acceptance], prices, [chain.sequence]).worth
        if alone > 0.0 or n_alike == 1:
            return alone
        prices = prices.shared_by(n_alike)
        return self._outlook(proposer, candidates, [chain.acceptance], prices, [chain.sequence], n_alike).worth

    def _outlook(
        self,
        proposer: CostlyProposer,
        candidates: list[GrowthCandidate],
        acceptances: list[SequenceAcceptance],
        prices: StepCost,
        fresh: list[Sequence | None],
        n_alike: int = 1,
    ) -> RoundValue:
        """Return what another round is worth: by what is usual, or where that is nothing, to see if it is better.

        ``fresh`` has the sequences of those candidates for which nothing is drafted yet. Each candidate stands for
        ``n_alike``, with which it shares a round.
        """
        late: list[float] = []

        def first(n_chains: int) -> float:
            if not late:
                late.append(self._late(proposer, [sequence for sequence in fresh if sequence is not None]))
            n_fresh = n_alike * sum([sequence is not None for sequence in fresh[:n_chains]])
            return late[0] + proposer.first_round_seconds(n_fresh) / n_alike

        def round_seconds(n_chains: int) -> float:
            return proposer.round_seconds(n_alike * n_chains) / n_alike

        outlook = round_value(candidates, prices, round_seconds, first)
        if outlook.n_chains or not candidates or None in fresh:
            return outlook
        spreads = [known.spread(proposer.table) for known in acceptances]
        return adaptive_round_value(candidates, spreads, prices, round_seconds, first)

    def gains(self, chain: DraftChain, rate: float) -> list[float]:
        """Return what verifying each token of a chain promises, in tokens."""
        checkpoints, n_replay, caution = self._checkpoints, chain.sequence.n_replay, chain.caution
        reach = chain.reach if caution == 1.0 else [chance / caution for chance in chain.reach]
        if checkpoints is None:
            return reach
        first = 0.0 if n_replay else rate * checkpoints.mark_seconds
        return charged(reach, first, lambda depth: rate * checkpoints.loss(n_replay + depth))

    def _candidate(self, chain: DraftChain, rate: float) -> GrowthCandidate:
        """Return a chain's next token as what could be drafted."""
        return GrowthCandidate(chain.probability / chain.caution, chain.acceptance.mean, self._loss(chain, rate))

    def grow_chains(self, proposer: CostlyProposer, chains: list[DraftChain], prices: StepCost) -> None:
        """Let chains grow where it promises most, by as many tokens in each round as pay."""
        for _ in range(MAX_DRAFT_DEPTH):
            live = [chain for chain in chains if not chain.is_done and len(chain.tokens) < self.limit(chain)]
            live.sort(key=lambda chain: -chain.probability * chain.acceptance.mean)
            n_drafted = sum(len(chain.tokens) for chain in chains)
            outlook = self._outlook(
                proposer,
                [self._candidate(chain, prices.rate) for chain in live],
                [chain.acceptance for chain in live],
                prices.with_rows(n_drafted),
                [None if chain.tokens else chain.sequence for chain in live],
            )
            if not outlook.n_chains:
                return
            grown = live[: outlook.n_chains]
            self.extend(proposer, [chain for chain in grown if chain.tokens or self._has_caught_up(proposer, chain)])

    def grow_trees(self, trees: list[DraftTree], prices: StepCost, width: int) -> None:
        """Let trees grow where it promises most, by as many places in each round as pay."""
        tree_proposer = self._tree_proposer
        assert tree_proposer is not None
        for _ in range(MAX_DRAFT_DEPTH):
            tips = [GrowthPoint(tree, node) for tree in trees for node in self._open_tips(tree)]
            tips.sort(key=lambda tip: -tip.chain.reach_of(tip.node) * tip.chain.acceptance.mean)
            del tips[len(trees) + _MOST_SIDE_TIPS :]
            n_drafted = sum(tree.n_places for tree in trees)
            outlook = self._outlook(
                tree_proposer,
                [GrowthCandidate(tree.reach_of(node) / tree.caution, tree.acceptance.mean) for tree, node in tips],
                [tree.acceptance for tree, _ in tips],
                prices.with_rows(n_drafted),
                [tree.sequence if node == PENDING else None for tree, node in tips],
            )
            if not outlook.n_chains:
                return
            grown = tips[: outlook.n_chains]
            self.grow(
                [tip for tip in grown if tip.node != PENDING or self._has_caught_up(tree_proposer, tip.chain)], width
            )

    def _open_tips(self, tree: DraftTree) -> list[int]:
        limit = self.limit(tree) - 1
        return [node for node in tree.tips if tree.depth_of(node) < limit]

    def _late(self, proposer: CostlyProposer, sequences: list[Sequence]) -> float:
        """Return this step's part of the seconds that a proposer needs to read what it has not read yet."""
        n_behind = sum(proposer.n_unread(sequence) - 1 for sequence in sequences)
        if n_behind <= 0:
            return 0.0
        n_steps = max(1.0, max(map(self._n_to_come, sequences)) / _TOKENS_PER_STEP)
        return proposer.catch_up_seconds(n_behind) / n_steps

    def _n_to_come(self, sequence: Sequence) -> float:
        """Return how many tokens of a reply are likely still to come."""
        return min(self._usual_reply - sequence.n_generated, sequence.n_left(self._n_ctx))

    def _loss(self, chain: DraftChain, rate: float) -> float:
        """Return what it costs, in tokens, if the next token of a chain is rejected."""
        if self._checkpoints is None:
            return 0.0
        return rate * self._checkpoints.loss(chain.sequence.n_replay + len(chain.tokens) + 1)

    # -- at risk ------------------------------------------------------------------------------------------------

    def run_charged(
        self, proposer: Proposer, sequences: list[Sequence], work: Callable[[], None], *, pays_later: bool = False
    ) -> Collection[str]:
        """Book the seconds of what a proposer does for ``sequences``, and return the ids of those that it fails for.

        Those it leaves alone for a while. What ``pays_later`` is booked as the reply comes.
        """
        began = self.clock()
        failed: dict[str, Sequence] = {}
        try:
            work()
        except DraftFailed as failure:
            failed = {sequence.id: sequence for sequence in failure.sequences or sequences}
            for sequence in failed.values():
                self._records.fail(sequence, proposer)
        seconds = self.clock() - began
        self.seconds_at_risk += seconds
        for sequence in sequences:
            record, part = self._records.by_id[sequence.id], seconds / len(sequences)
            if pays_later and not failed:
                record.debts[proposer.name] = record.debts.get(proposer.name, 0.0) + part
            else:
                self.risks.append(DraftingTime(record, proposer.name, part))
        return failed.keys()

    def catch_up(self, proposer: CostlyProposer, sequence: Sequence, *, pays_later: bool = False) -> bool:
        """Let a proposer read on in a text, in the time that the step leaves; return whether it can draft."""
        can_draft, before = False, self.seconds_at_risk

        def work() -> None:
            nonlocal can_draft
            can_draft = proposer.catch_up(sequence, self.reading_seconds)

        self.run_charged(proposer, [sequence], work, pays_later=pays_later)
        self.reading_seconds -= self.seconds_at_risk - before
        return can_draft

    def _has_caught_up(self, proposer: CostlyProposer, chain: DraftChain) -> bool:
        """As ``catch_up``, for a draft: one that must wait has stopped."""
        can_draft = self.catch_up(proposer, chain.sequence, pays_later=True)
        if not can_draft:
            chain.close(None)
        return can_draft

    def amortise(self, sequence: Sequence, n_new: int) -> None:
        """Book what ``n_new`` tokens of a reply owe for having been caught up with."""
        record = self._records.by_id[sequence.id]
        for name, debt in record.debts.items():
            paid = debt * min(1.0, n_new / max(self._n_to_come(sequence), 1.0))
            record.debts[name] -= paid
            self.risks.append(DraftingTime(record, name, paid))

    def _works(self, proposer: Proposer, chains: list[DraftChain], work: Callable[[], None]) -> bool:
        """Let a proposer work; False where it failed: chains that it failed for stop, the others are as they were."""
        failed = self.run_charged(proposer, [chain.sequence for chain in chains], work)
        for chain in chains if failed else ():
            if chain.sequence.id in failed:
                chain.close(None)
        return not failed

    # -- by a token ---------------------------------------------------------------------------------------------

    def extend_free(self, chain: DraftChain, room: int, *, is_lawful: bool = False) -> None:
        """Let a chain grow by what its proposer finds for next to nothing; ``is_lawful``: no grammar forbids that."""
        limit = min(self.limit(chain), room)
        while not chain.is_done and len(chain.tokens) < limit:
            self._extend_all(chain.proposer, [chain], is_lawful)

    def extend(self, proposer: Proposer, chains: list[DraftChain]) -> None:
        """Let each chain grow by a token, at the expense of the proposer's time."""
        while chains and not self._works(proposer, chains, partial(self._extend_all, proposer, chains)):
            chains = [chain for chain in chains if not chain.is_done]

    def _extend_all(self, proposer: Proposer, chains: list[DraftChain], is_lawful: bool = False) -> None:
        for chain, guess in zip(chains, proposer.extend(chains), strict=True):
            # Behind the end there is nothing; the end itself comes with the row before it.
            if guess is None or guess.token in self._end_tokens:
                chain.close(guess)
                continue
            guide = chain.sequence.sampler.guide if not is_lawful else None
            if guide is not None and guide.n_allowed([*chain.tokens, guess.token]) <= len(chain.tokens):
                chain.is_done = True  # what the grammar forbids need not be verified
                continue
            chain.add(guess)
            chain.is_done = chain.probability < self._least_reach

    def grow(self, tips: list[GrowthPoint], width: int) -> None:
        """Let the draft model draft on at ``tips``, with ``width`` choices at each."""
        if not tips:
            return
        tree_proposer = self._tree_proposer
        assert tree_proposer is not None
        self._has_forked = True
        tips = tips[: tree_proposer.most_tips]
        while tips:
            grow = partial(self._grow_all, tree_proposer, tips, width)
            if self._works(tree_proposer, [tip.chain for tip in tips], grow):
                return
            tips = [tip for tip in tips if not tip.chain.is_done]

    def _grow_all(self, tree_proposer: TreeProposer, tips: list[GrowthPoint], width: int) -> None:
        for (tree, node), guesses in zip(tips, tree_proposer.grow(tips, width), strict=True):
            assert isinstance(tree, DraftTree)
            tree.grow(node, guesses, self._least_reach, self._end_tokens)
