"""Which proposer works on which sequence in the next step."""

from __future__ import annotations

from collections.abc import Sequence as Series

from core.scheduler.sequence import Sequence
from core.speculation.draft_tree import TreeProposer
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_length import best_cut
from core.speculation.policy.draft_states import DraftStates
from core.speculation.policy.proposer_trials import ProposerTrials
from core.speculation.policy.step_cost import StepCost
from core.speculation.proposer import CostlyProposer, DraftChain, ExpectedGain
from core.speculation.proposers.grammar import GrammarProposer
from core.speculation.proposers.ngram import SHARED, NgramProposer

# How many next tokens are asked for at each place where forks may pay, and how likely others than the first choice are
# at best: where a row (the mean of the next so many) is worth more than that, they are not asked for.
_WIDEST, _SECOND_CHANCE, _WIDE_LOOK = 3, 0.15, 8


class ProposerChoice:
    """What is looked up or must come costs next to nothing; paid proposers work where they promise more than that.

    Of several paid ones, the one that promises most does.
    """

    def __init__(
        self,
        *,
        lookup: NgramProposer | None,
        forced: GrammarProposer,
        paid: Series[CostlyProposer],
        tree_proposer: TreeProposer | None,
        growth: DraftGrowth,
        records: DraftStates,
        probes: ProposerTrials,
        width: int | None,
    ) -> None:
        """``tree_proposer`` is the one of ``paid`` that can draft trees, with ``width`` next tokens at each place.

        None where that is decided as well.
        """
        self._lookup = lookup
        self._forced = forced
        self._paid = tuple(paid)
        self._tree_proposer = tree_proposer
        self._growth = growth
        self._records = records
        self._probes = probes
        self._width = width

    def find_free(self, decoding: list[Sequence], prices: StepCost) -> list[DraftChain]:
        """Return chains of what was looked up (but for those at rest) or must come, whichever promises more.

        If all that was looked up is wrong, the text must be able to afford that: who was right may stake more the next
        time.
        """
        found: dict[str, DraftChain] = {}
        lookup, records = self._lookup, self._records
        plain = prices.step_seconds(prices.n_rows)
        for sequence in records.due_for_lookup(decoding) if lookup is not None else ():
            assert lookup is not None
            chain = records.chain(sequence, lookup)
            stake = records.by_id[sequence.id].budget.available(lookup.name)
            self._growth.extend_free(chain, min(max(prices.rows_within(plain + stake, prices.room), 1), prices.room))
            if chain.tokens:
                found[sequence.id] = chain
        for sequence in decoding:
            if sequence.sampler.guide is None:
                continue
            chain = records.chain(sequence, self._forced)
            self._growth.extend_free(chain, prices.room, is_lawful=True)
            rival = found.get(sequence.id)
            if chain.tokens and (rival is None or sum(chain.reach) >= sum(rival.reach)):
                found[sequence.id] = chain
        return list(found.values())

    def choose_and_draft(self, awake: list[Sequence], found: list[DraftChain], prices: StepCost) -> list[DraftChain]:
        """Let the proposer work that promises most, where that is more than what was found, for as long as it pays.

        Return what was drafted, and what was found for the others.
        """
        rivals = {chain.sequence.id: chain for chain in found}
        chosen: dict[str, list[DraftChain]] = {}
        for sequence in awake:
            chain, worth = self._most_promising(sequence, prices, len(awake))
            rival = rivals.get(sequence.id)
            is_better = worth > 0.0
            if rival is not None:
                record = self._records.by_id[sequence.id]
                chain.promise = ExpectedGain(chain.proposer.name, worth)
                rival.promise = ExpectedGain(_source(rival), self._worth(rival, prices))
                is_better = is_better and record.expected_gain(chain.promise) > max(
                    record.expected_gain(rival.promise), 0.0
                )
            if is_better:
                chosen.setdefault(chain.proposer.name, []).append(chain)
        for proposer in self._paid:
            self._probes.run(proposer, awake)
        return self._grow(chosen, found, prices) if chosen else found

    def _grow(self, chosen: dict[str, list[DraftChain]], found: list[DraftChain], prices: StepCost) -> list[DraftChain]:
        """Let each proposer, by name, work on the chains that it was chosen for, instead of what was found there."""
        growth, rivals = self._growth, {chain.sequence.id for chain in found}
        width = self._width_worth_trying(prices) if prices.n_branches else 1
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        # What would be cut for the sake of those who have no draft need not be drafted.
        prices = prices.within(prices.latency_bound.limit_without(given_up | rivals))
        drafted: list[DraftChain] = []
        for proposer in self._paid:
            chains = chosen.get(proposer.name, [])
            # A probe may just have failed.
            chains = [chain for chain in chains if self._records.can_ask(proposer, chain.sequence)]
            if not chains:
                continue
            if width > 1 and proposer is self._tree_proposer:
                trees = [self._records.tree(chain.sequence, self._tree_proposer, chain.promise) for chain in chains]
                growth.grow_trees(trees, prices.with_rows(n_taken), width)
                chains = [*trees]
            else:
                growth.grow_chains(proposer, chains, prices.with_rows(n_taken))
            drafted += [chain for chain in chains if chain.tokens or (chain.next and chain.sequence.id not in rivals)]
            n_taken += sum(len(chain.tokens) for chain in chains)
        replaced = {chain.sequence.id for chain in drafted}
        return [chain for chain in found if chain.sequence.id not in replaced] + drafted

    def _most_promising(self, sequence: Sequence, prices: StepCost, n_awake: int) -> tuple[DraftChain, float]:
        """Return an empty chain of the paid proposer that promises most on a sequence, and what it promises.

        It is one of ``n_awake`` that proposers may work for together.
        """
        record = self._records.by_id[sequence.id]
        best: tuple[DraftChain, float] | None = None
        for proposer in self._paid:
            chain = self._records.chain(sequence, proposer)
            may_ask = self._records.can_ask(proposer, sequence)
            promise = self._growth.expected_gain(proposer, chain, prices, n_awake) if may_ask else 0.0
            if best is None or promise > best[1]:
                best = chain, promise
        assert best is not None
        if best[1] > 0.0:
            record.thoughts.reset()
        else:
            record.thoughts.back_off(self._records.longest_thought)
        return best

    def _worth(self, chain: DraftChain, prices: StepCost) -> float:
        """Return what verifying the best part of a chain is worth, in tokens."""
        gains = self._growth.gains(chain, prices.rate)
        count = best_cut(gains, prices)
        seconds = prices.step_seconds(prices.n_rows + count) - prices.step_seconds(prices.n_rows)
        return sum(gains[:count]) - prices.rate * seconds

    def _width_worth_trying(self, prices: StepCost) -> int:
        """Return how many next tokens to ask for: first choices only where a row costs more than others can bring."""
        if self._width is not None:
            return self._width
        n_rows, step_seconds = prices.n_rows, prices.step_seconds
        row_seconds = (step_seconds(n_rows + _WIDE_LOOK) - step_seconds(n_rows)) / _WIDE_LOOK
        price = prices.rate * (row_seconds + prices.branch_seconds)
        return _WIDEST if price < _SECOND_CHANCE else 1


def _source(chain: DraftChain) -> str:
    """Return what a draft was found by: lookups in the text itself and in others are right for different reasons."""
    is_shared = isinstance(chain.proposer, NgramProposer) and chain.evidence[0] == SHARED
    return f"{chain.proposer.name} in others" if is_shared else chain.proposer.name
