"""Lets drafts grow: round by round, each for as long as it pays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from core.kv_cache.memory import AttentionMemory
from core.scheduler.sequence import Sequence
from core.speculation.policy.draft_length import GrowthCandidate, RoundValue, charged, round_value
from core.speculation.policy.draft_state import DraftingTime, DraftStates, OwnTime
from core.speculation.policy.step_cost import StepCost
from core.speculation.proposer import CostlyProposer, DraftChain, DraftFailed, Proposer
from core.values.engine_options import MAX_DRAFT_DEPTH

# What a round takes beyond its proposer's prediction counts as so many times that at most: the rest was chance.
_MOST_OVERHEAD = 3.0
# What reading a sequence costs a proposer is spread over the steps that are likely still to come: a reply of
# usual length, at so many tokens a step.
_USUAL_REPLY, _REPLY_WEIGHT = 128.0, 0.1
_TOKENS_PER_STEP = 3.0


class DraftGrowth:
    """Asks proposers for tokens and puts them behind drafts.

    ``spent`` is what paid proposers took since it was last set to 0 (seconds), and ``times`` who took it for whom.
    ``reading_seconds`` is what the step leaves for reading texts that they are far behind in. A free draft whose chance
    is below ``least_reach`` stops growing; others grow while another round promises something. ``round_overhead`` is
    what a round takes beyond what its proposer predicts.
    """

    def __init__(
        self,
        states: DraftStates,
        *,
        n_ctx: int,
        most: int,
        end_tokens: Collection[int],
        checkpoints: AttentionMemory | None,
        clock: Callable[[], float],
    ) -> None:
        """Drafts get ``most`` tokens and texts ``n_ctx``.

        Nothing is drafted beyond one of ``end_tokens``. ``checkpoints`` is asked what rejections cost, None: nothing.
        ``states`` are told where a proposer fails.
        """
        self.spent = self.reading_seconds = self.least_reach = 0.0
        self.times: list[DraftingTime] = []
        self._states = states
        self._n_ctx = n_ctx
        self._most = most
        self._end_tokens = end_tokens
        self._checkpoints = checkpoints
        self._clock = clock
        self._usual_reply = _USUAL_REPLY
        self.round_overhead = OwnTime()

    def learn_reply_length(self, n_generated: int) -> None:
        """Learn how long replies usually are."""
        self._usual_reply += _REPLY_WEIGHT * (n_generated - self._usual_reply)

    def limit(self, chain: DraftChain) -> int:
        """Return how many tokens may be drafted: no more than can be used."""
        return min(self._most, chain.sequence.n_left(self._n_ctx) - 1)

    # -- by what pays -------------------------------------------------------------------------------------------

    def expected_gain(self, proposer: CostlyProposer, chain: DraftChain, cost: StepCost, n_alike: int = 1) -> float:
        """Return what a proposer can be expected to be worth on a sequence, in tokens.

        Of ``n_alike`` texts that could all be drafted for, one alone may not be worth a round that all share.
        """
        cost = cost._replace(room=MAX_DRAFT_DEPTH)
        alone = self._round_value(proposer, [chain], cost).worth
        if alone > 0.0 or n_alike == 1:
            return alone
        return self._round_value(proposer, [chain], cost.shared_by(n_alike), n_alike).worth

    def _round_value(
        self, proposer: CostlyProposer, chains: list[DraftChain], cost: StepCost, n_alike: int = 1
    ) -> RoundValue:
        """Return what another round is worth. Each chain stands for ``n_alike``, with which it shares the round."""
        late: list[float] = []

        def first(n_chains: int) -> float:
            fresh = [chain.sequence for chain in chains if not chain.tokens]
            if not late:
                late.append(self._late(proposer, fresh))
            n_fresh = n_alike * sum([not chain.tokens for chain in chains[:n_chains]])
            return late[0] + proposer.first_round_seconds(n_fresh) / n_alike

        def round_seconds(n_chains: int) -> float:
            return (proposer.round_seconds(n_alike * n_chains) + self.round_overhead.seconds) / n_alike

        candidates = [
            GrowthCandidate(
                chain.probability / chain.caution, chain.acceptance.mean, self._loss(chain, cost.rate), chain.rival
            )
            for chain in chains
        ]
        return round_value(candidates, cost, round_seconds, first, proposer.table.resolution)

    def gains(self, chain: DraftChain, rate: float) -> list[float]:
        """Return what verifying each token of a chain promises, in tokens."""
        checkpoints, n_replay, caution = self._checkpoints, chain.sequence.n_replay, chain.caution
        reach = chain.reach if caution == 1.0 else [chance / caution for chance in chain.reach]
        if checkpoints is None:
            return reach
        first = 0.0 if n_replay else rate * checkpoints.mark_seconds
        return charged(reach, first, lambda depth: rate * checkpoints.loss(n_replay + depth))

    def grow(self, proposer: CostlyProposer, chains: list[DraftChain], cost: StepCost) -> None:
        """Let chains grow where it promises most, by as many tokens in each round as pay.

        Where texts must bring equally many rows, all grow or none.
        """
        began, spent_before, n_rounds, predicted = self._clock(), self.spent, 0, 0.0
        for _ in range(MAX_DRAFT_DEPTH):
            live = [chain for chain in chains if not chain.is_done and len(chain.tokens) < self.limit(chain)]
            live.sort(key=lambda chain: -chain.probability * chain.acceptance.mean)
            n_drafted = sum(len(chain.tokens) for chain in chains)
            n_chains = self._round_value(proposer, live, cost.with_rows(n_drafted)).n_chains
            if not n_chains or (cost.n_even and n_chains < len(chains)):
                break
            grown = live[:n_chains]
            self.extend(proposer, [chain for chain in grown if chain.tokens or self._has_caught_up(proposer, chain)])
            n_rounds += 1
            # The first round also reads what a proposer has not read yet.
            predicted += proposer.round_seconds(n_chains) if n_rounds > 1 else self.spent - spent_before
        if n_rounds:
            most = _MOST_OVERHEAD * proposer.round_seconds(len(chains))
            self.round_overhead.learn((self._clock() - began - predicted) / n_rounds, most)

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

    # -- in measured time ---------------------------------------------------------------------------------------

    def run_charged(
        self, proposer: Proposer, sequences: list[Sequence], work: Callable[[], None], *, pays_later: bool = False
    ) -> Collection[str]:
        """Book the seconds of what a proposer does for ``sequences``, and return the ids of those that it fails for.

        Those it leaves alone for a while. What ``pays_later`` is booked as the reply comes.
        """
        began = self._clock()
        failed: dict[str, Sequence] = {}
        try:
            work()
        except DraftFailed as failure:
            failed = {sequence.id: sequence for sequence in failure.sequences or sequences}
            for sequence in failed.values():
                self._states.fail(sequence, proposer)
        seconds = self._clock() - began
        self.spent += seconds
        for sequence in sequences:
            state, part = self._states.by_id[sequence.id], seconds / len(sequences)
            if pays_later and not failed:
                state.debts[proposer.name] = state.debts.get(proposer.name, 0.0) + part
            else:
                self.times.append(DraftingTime(state, proposer.name, part))
        return failed.keys()

    def catch_up(self, proposer: CostlyProposer, sequence: Sequence, *, pays_later: bool = False) -> bool:
        """Let a proposer read on in a text, in the time that the step leaves; return whether it can draft."""
        can_draft, before = False, self.spent

        def work() -> None:
            nonlocal can_draft
            can_draft = proposer.catch_up(sequence, self.reading_seconds)

        self.run_charged(proposer, [sequence], work, pays_later=pays_later)
        self.reading_seconds -= self.spent - before
        return can_draft

    def _has_caught_up(self, proposer: CostlyProposer, chain: DraftChain) -> bool:
        """As ``catch_up``, for a draft: one that must wait has stopped."""
        can_draft = self.catch_up(proposer, chain.sequence, pays_later=True)
        if not can_draft:
            chain.close(None)
        return can_draft

    def amortise(self, sequence: Sequence, n_new: int) -> None:
        """Book what ``n_new`` tokens of a reply owe for having been caught up with."""
        state = self._states.by_id[sequence.id]
        for name, debt in state.debts.items():
            paid = debt * min(1.0, n_new / max(self._n_to_come(sequence), 1.0))
            state.debts[name] -= paid
            self.times.append(DraftingTime(state, name, paid))

    # -- by a token ---------------------------------------------------------------------------------------------

    def extend_free(self, chain: DraftChain, room: int, *, is_lawful: bool = False) -> None:
        """Let a chain grow by what its proposer finds for next to nothing; ``is_lawful``: no grammar forbids that."""
        limit = min(self.limit(chain), room)
        while not chain.is_done and len(chain.tokens) < limit:
            self._extend(chain.proposer, [chain], is_lawful)
            chain.is_done = chain.is_done or chain.probability < self.least_reach

    def extend(self, proposer: Proposer, chains: list[DraftChain]) -> None:
        """Let each chain grow by a token, at the expense of the proposer's time."""
        while chains:
            work = partial(self._extend, proposer, chains)
            failed = self.run_charged(proposer, [chain.sequence for chain in chains], work)
            if not failed:
                return
            # Chains that it failed for stop, the others are as they were.
            for chain in chains:
                if chain.sequence.id in failed:
                    chain.close(None)
            chains = [chain for chain in chains if not chain.is_done]

    def _extend(self, proposer: Proposer, chains: list[DraftChain], is_lawful: bool = False) -> None:
        for chain, guess in zip(chains, proposer.extend(chains), strict=True):
            # Behind the end there is nothing; the end itself comes with the row before it.
            if guess is None or guess.token in self._end_tokens:
                chain.close(guess)
                continue
            grammar = chain.sequence.sampler.grammar if not is_lawful else None
            if grammar is not None and grammar.n_allowed([*chain.tokens, guess.token]) <= len(chain.tokens):
                chain.is_done = True  # what the grammar forbids need not be verified
                continue
            chain.add(guess)
