"""Which proposer drafts for which sequence in the next step."""

from __future__ import annotations

from collections.abc import Sequence as Series
from functools import partial

from core.scheduler.sequence import Sequence
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_length import best_cut
from core.speculation.policy.draft_state import DraftStates
from core.speculation.policy.step_cost import StepCost
from core.speculation.proposer import CostlyProposer, DraftChain
from core.speculation.proposers.grammar import GrammarProposer
from core.speculation.proposers.ngram import NgramProposer

# Most tokens between two probes of a proposer that is not used; more where they would take more than this share of the
# time.
_LONGEST_PROBE, _PROBE_SHARE = 256, 0.004


class ProposerChoice:
    """N-grams and grammars cost next to nothing; paid proposers draft where that may come to more than was found there.

    Of several paid ones, the one that promises most does.
    """

    def __init__(
        self,
        ngram: NgramProposer | None,
        grammar: GrammarProposer,
        paid: Series[CostlyProposer],
        growth: DraftGrowth,
        states: DraftStates,
    ) -> None:
        """``growth`` lets the drafts grow."""
        self._ngram = ngram
        self._grammar = grammar
        self._paid = tuple(paid)
        self._growth = growth
        self._states = states

    def find_free(self, decoding: list[Sequence], cost: StepCost) -> list[DraftChain]:
        """Return chains of n-grams (but for those that back off) or of grammars, whichever promise more.

        If all that n-grams propose is wrong, their budget must afford that: the more they have won, the longer they
        may draft. A text's first ones are short, and grow with what is right.
        """
        found: dict[str, DraftChain] = {}
        ngram, states = self._ngram, self._states
        looking = states.due_for_ngrams(decoding) if ngram is not None else []
        if ngram is not None and looking:
            stake = max(states.budget.available(ngram.name), 0.0) / len(looking)
            n_affordable = cost.rows_within(cost.step_seconds(cost.n_rows) + stake, cost.room)
            for sequence in looking:
                chain = states.chain(sequence, ngram)
                limit = min(n_affordable, states.by_id[sequence.id].ngram_limit)
                self._growth.extend_free(chain, min(max(limit, 1), cost.room))
                if chain.tokens:
                    found[sequence.id] = chain
        for sequence in decoding:
            if sequence.sampler.grammar is None:
                continue
            chain = states.chain(sequence, self._grammar)
            self._growth.extend_free(chain, cost.room, is_lawful=True)
            free = found.get(sequence.id)
            if chain.tokens and (free is None or sum(chain.reach) >= sum(free.reach)):
                found[sequence.id] = chain
        return list(found.values())

    def choose_and_draft(self, awake: list[Sequence], found: list[DraftChain], cost: StepCost) -> list[DraftChain]:
        """Let the paid proposer draft that promises most, while it may come to more than what was found.

        Return what was drafted where that turned out better, and what was found for the others. Where texts must bring
        equally many rows and one of them has no draft, those of the others would be in vain.
        """
        found_free = {chain.sequence.id: chain for chain in found}
        rivals = {
            sequence.id: max(self._worth(found_free[sequence.id], cost), 0.0)
            for sequence in awake
            if sequence.id in found_free
        }
        chosen: dict[str, list[DraftChain]] = {}
        for sequence in awake:
            chain = self._most_promising(sequence, cost, len(awake), rivals.get(sequence.id, 0.0))
            if chain is not None:
                chosen.setdefault(chain.proposer.name, []).append(chain)
        promising = {chain.sequence.id for chains in chosen.values() for chain in chains}
        if len(found_free.keys() | promising) < cost.n_even:
            chosen, rivals = {}, {}
        probed: set[str] = set()
        for proposer in self._paid:
            probed |= self._probe(proposer, awake, cost.step_seconds(cost.n_rows))
        drafts = self._grow(chosen, found, cost) if chosen else found
        # Each may promise something alone and all together nothing: then no round was begun.
        asked = {chain.sequence.id for chains in chosen.values() for chain in chains if chain.tokens or chain.next}
        is_in_vain = len(drafts) < cost.n_even
        for sequence in awake:
            backoff = self._states.by_id[sequence.id].paid_backoff
            if sequence.id not in asked and (is_in_vain or not rivals.get(sequence.id)):
                backoff.back_off(self._states.longest_rest)
            if sequence.id in probed:
                backoff.n_left = 0
        return drafts

    def _probe(self, proposer: CostlyProposer, sequences: list[Sequence], step_seconds: float) -> set[str]:
        """Let a proposer that is not used read along now and then, each time later, to learn whether it would pay.

        A plain step takes ``step_seconds``. Return for whom it has read.
        """
        probed: set[str] = set()
        for sequence in sequences:
            state = self._states.by_id[sequence.id]
            trial = state.trials[proposer.name]
            if state.n_verified - trial.tried_at < trial.interval or not self._states.can_ask(proposer, sequence):
                continue
            seconds = proposer.catch_up_seconds(proposer.n_unread(sequence)) + proposer.first_round_seconds(1)
            if seconds > self._states.budget.available(proposer.name):
                continue
            before = self._growth.spent
            if not self._growth.catch_up(proposer, sequence):
                continue
            has_failed = self._growth.run_charged(proposer, [sequence], partial(proposer.read_along, sequence))
            taken = max(seconds, self._growth.spent - before)
            longest = max(int(taken / (_PROBE_SHARE * step_seconds)), _LONGEST_PROBE)
            trial.interval = min(trial.interval * 2, longest)
            if not has_failed:
                trial.tried_at = state.n_verified
                probed.add(sequence.id)
        return probed

    def _grow(self, chosen: dict[str, list[DraftChain]], found: list[DraftChain], cost: StepCost) -> list[DraftChain]:
        """Let each proposer, by name, extend the chains that it was chosen for, instead of what was found there."""
        found_free = {chain.sequence.id for chain in found}
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        # What would be cut for the sake of those who have no draft need not be drafted.
        cost = cost.within(cost.latency_bound.limit_without(given_up | found_free))
        drafted: list[DraftChain] = []
        for proposer in self._paid:
            # A probe may just have failed.
            chains = [
                chain for chain in chosen.get(proposer.name, ()) if self._states.can_ask(proposer, chain.sequence)
            ]
            self._growth.grow(proposer, chains, cost.with_rows(n_taken))
            for chain in chains:
                # Only now its tokens show what they are worth.
                if chain.sequence.id in found_free:
                    is_wanted = bool(chain.tokens) and self._worth(chain, cost) > chain.rival
                else:
                    is_wanted = bool(chain.tokens) or chain.next is not None
                if is_wanted:
                    drafted.append(chain)
            n_taken += sum(len(chain.tokens) for chain in chains)
        replaced = {chain.sequence.id for chain in drafted}
        return [chain for chain in found if chain.sequence.id not in replaced] + drafted

    def _most_promising(self, sequence: Sequence, cost: StepCost, n_awake: int, rival: float) -> DraftChain | None:
        """Return an empty chain of the paid proposer that promises most on a sequence; None where none is worth it.

        It is one of ``n_awake`` that proposers may draft for together. A draft worth ``rival`` tokens is there already.
        """
        best, most = None, 0.0
        for proposer in self._paid:
            if not self._states.can_ask(proposer, sequence):
                continue
            chain = self._states.chain(sequence, proposer)
            chain.rival = rival
            if cost.n_even and len(self._paid) == 1:
                return chain  # whether it is worth it is decided for all together
            promise = self._growth.expected_gain(proposer, chain, cost, n_awake)
            if promise > most:
                best, most = chain, promise
        return best

    def _worth(self, chain: DraftChain, cost: StepCost) -> float:
        """Return what verifying the best part of a chain is worth, in tokens."""
        gains = self._growth.gains(chain, cost.rate)
        count = best_cut(gains, cost)
        seconds = cost.step_seconds(cost.n_rows + count) - cost.step_seconds(cost.n_rows)
        return sum(gains[:count]) - cost.rate * seconds
