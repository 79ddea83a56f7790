"""Which proposer drafts for which sequence in the next step, and drafts that grow for as long as they pay."""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Sequence as Series
from functools import partial

from core.kv_cache.memory import AttentionMemory
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import (
    GrowthCandidate,
    RoundValue,
    StepCost,
    best_cut,
    charged,
    round_value,
    with_time_saved,
)
from core.speculation.draft_state import DraftStates, OwnTime
from core.speculation.proposers.free_proposers import GrammarProposer, NgramProposer
from core.speculation.proposers.proposer import CostlyProposer, DraftChain, DraftFailed, Proposer
from core.values.engine_options import MAX_DRAFT_DEPTH

# The time of a round beyond its prediction is capped at this many times the prediction: the rest was chance.
_MOST_OVERHEAD = 3.0
# A proposer's time for reading a text is spread over the steps that are likely still to come: those of a reply of usual
# length (tokens; a moving average with this weight), at _TOKENS_PER_STEP tokens a step.
_USUAL_REPLY, _REPLY_WEIGHT = 128.0, 0.1
_TOKENS_PER_STEP = 3.0


class DraftGrowth:
    """Asks proposers for tokens and appends them to drafts.

    ``spent`` is the time of paid proposers since it was last set to 0 (seconds), and ``times`` has that of each, by
    name, for each text. ``reading_seconds`` is the time in the step for reading texts of which they have read little. A
    free draft stops growing when its chance is below ``least_reach``; others grow while another round promises a gain.
    ``round_overhead`` is the time of a round beyond its proposer's prediction, ``decision`` that of finding for a text
    that nothing pays: a draft must be worth that too, since without it the next decisions are left out.
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
        """A draft has at most ``most`` tokens, and a text at most ``n_ctx``.

        Nothing is drafted beyond one of ``end_tokens``. ``checkpoints`` says what rejections cost (None: nothing).
        ``states`` record a proposer's failures.
        """
        self.spent = self.reading_seconds = self.least_reach = 0.0
        self.times: list[tuple[str, float]] = []
        self._states = states
        self._n_ctx = n_ctx
        self._most = most
        self._end_tokens = end_tokens
        self._checkpoints = checkpoints
        self._clock = clock
        self._usual_reply = _USUAL_REPLY
        self.round_overhead, self.decision = OwnTime(), OwnTime()

    def learn_reply_length(self, n_generated: int) -> None:
        """Learn how long replies usually are."""
        self._usual_reply += _REPLY_WEIGHT * (n_generated - self._usual_reply)

    def limit(self, chain: DraftChain) -> int:
        """Return how many tokens may be drafted: no more than can be used."""
        return min(self._most, chain.sequence.n_left(self._n_ctx) - 1)

    # -- by what pays -------------------------------------------------------------------------------------------

    def expected_gain(self, proposer: CostlyProposer, chain: DraftChain, cost: StepCost, n_alike: int = 1) -> float:
        """Return the expected gain of a proposer on a sequence, in tokens.

        If a round does not pay for this sequence alone, it may pay when ``n_alike`` texts share it.
        """
        cost = cost._replace(room=MAX_DRAFT_DEPTH)
        alone = self._round_value(proposer, [chain], cost).worth
        if alone > 0.0 or n_alike == 1:
            return alone
        return self._round_value(proposer, [chain], cost.shared_by(n_alike), n_alike).worth

    def _round_value(
        self, proposer: CostlyProposer, chains: list[DraftChain], cost: StepCost, n_alike: int = 1
    ) -> RoundValue:
        """Return the value of another round. Each chain stands for ``n_alike`` ones, with which it shares the round."""
        late: list[float] = []

        def first(n_chains: int) -> float:
            fresh = [chain.sequence for chain in chains if not chain.tokens]
            if not late:
                late.append(self._late(proposer, fresh))
            n_fresh = sum([not chain.tokens for chain in chains[:n_chains]])
            own = n_fresh * self.decision.seconds
            return late[0] + own + proposer.first_round_seconds(n_alike * n_fresh) / n_alike

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
        """Return the expected gain of verifying each token of a chain, in tokens."""
        checkpoints, n_replay, caution = self._checkpoints, chain.sequence.n_replay, chain.caution
        reach = chain.reach if caution == 1.0 else [chance / caution for chance in chain.reach]
        if checkpoints is None:
            return reach
        first = 0.0 if n_replay else rate * checkpoints.mark_seconds
        return charged(reach, first, lambda depth: rate * checkpoints.loss(n_replay + depth))

    def final_gains(self, chain: DraftChain, cost: StepCost) -> list[float]:
        """As ``gains``, for the draft that was chosen for the sequence in this step.

        A free draft can be found again in the next step; the time of a paid one would be lost.
        """
        gains = self.gains(chain, cost.rate)
        if self._checkpoints is not None or isinstance(chain.proposer, CostlyProposer):
            return gains
        sequence, guess = chain.sequence, chain.next
        end_rate = float(len(gains) >= sequence.n_left(self._n_ctx) - 1)
        if guess is not None and guess.token in self._end_tokens:
            end_rate = chain.acceptance.expect(guess.evidence, chain.proposer.table.rate(guess.evidence))
        return with_time_saved(gains, cost, self._states.by_id[sequence.id].speedup, end_rate)

    def grow(self, proposer: CostlyProposer, chains: list[DraftChain], cost: StepCost) -> None:
        """Let the most promising chains grow while that pays; with ``cost.n_even`` all grow or none."""
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
            # The first round also reads tokens that the proposer has not read yet.
            predicted += proposer.round_seconds(n_chains) if n_rounds > 1 else self.spent - spent_before
        if n_rounds:
            most = _MOST_OVERHEAD * proposer.round_seconds(len(chains))
            self.round_overhead.learn((self._clock() - began - predicted) / n_rounds, most)

    def _late(self, proposer: CostlyProposer, sequences: list[Sequence]) -> float:
        """Return this step's part of the seconds that a proposer needs to catch up with the sequences."""
        n_behind = sum(proposer.n_unread(sequence) - 1 for sequence in sequences)
        if n_behind <= 0:
            return 0.0
        n_steps = max(1.0, max(map(self._n_to_come, sequences)) / _TOKENS_PER_STEP)
        return proposer.catch_up_seconds(n_behind) / n_steps

    def _n_to_come(self, sequence: Sequence) -> float:
        """Return how many tokens of a reply are likely still to come."""
        return min(self._usual_reply - sequence.n_generated, sequence.n_left(self._n_ctx))

    def _loss(self, chain: DraftChain, rate: float) -> float:
        """Return the cost of a rejection of a chain's next token, in tokens."""
        if self._checkpoints is None:
            return 0.0
        return rate * self._checkpoints.loss(chain.sequence.n_replay + len(chain.tokens) + 1)

    # -- in measured time ---------------------------------------------------------------------------------------

    def run_charged(
        self, proposer: Proposer, sequences: list[Sequence], work: Callable[[], None], *, pays_later: bool = False
    ) -> Collection[str]:
        """Book the seconds of a proposer's work, or add them to its debt (``pays_later``); return failed ids."""
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
                state.records[proposer.name].debt += part
            else:
                self.times.append((proposer.name, part))
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
        """As ``catch_up``, for a draft: if its proposer needs more time, the draft ends."""
        can_draft = self.catch_up(proposer, chain.sequence, pays_later=True)
        if not can_draft:
            chain.close(None)
        return can_draft

    def amortise(self, sequence: Sequence, n_new: int) -> None:
        """Book the part of the debt for catching up that falls on ``n_new`` tokens of a reply."""
        state = self._states.by_id[sequence.id]
        for name, record in state.records.items():
            if record.debt:
                paid = record.debt * min(1.0, n_new / max(self._n_to_come(sequence), 1.0))
                record.debt -= paid
                self.times.append((name, paid))

    # -- by a token ---------------------------------------------------------------------------------------------

    def extend_free(self, chain: DraftChain, room: int, *, is_lawful: bool = False) -> None:
        """Let a chain grow by what a free proposer finds; ``is_lawful``: no grammar can forbid it."""
        limit = min(self.limit(chain), room)
        while not chain.is_done and len(chain.tokens) < limit:
            self._extend(chain.proposer, [chain], is_lawful)
            chain.is_done = chain.is_done or chain.probability < self.least_reach

    def extend(self, proposer: Proposer, chains: list[DraftChain]) -> None:
        """Let each chain grow by a token, and charge the proposer's time."""
        while chains:
            work = partial(self._extend, proposer, chains)
            failed = self.run_charged(proposer, [chain.sequence for chain in chains], work)
            if not failed:
                return
            # The chains that failed end, and the others are tried again.
            for chain in chains:
                if chain.sequence.id in failed:
                    chain.close(None)
            chains = [chain for chain in chains if not chain.is_done]

    def _extend(self, proposer: Proposer, chains: list[DraftChain], is_lawful: bool = False) -> None:
        for chain, guess in zip(chains, proposer.extend(chains), strict=True):
            # Nothing follows an end token, and the row before it chooses the end token itself.
            if guess is None or guess.token in self._end_tokens:
                chain.close(guess)
                continue
            grammar = chain.sequence.sampler.grammar if not is_lawful else None
            if grammar is not None and grammar.n_allowed([*chain.tokens, guess.token]) <= len(chain.tokens):
                chain.is_done = True  # the grammar forbids it
                continue
            chain.add(guess)


# The most steps between two probes of an unused proposer; more if they would take more than this share of the time.
_LONGEST_PROBE, _PROBE_SHARE = 256, 0.004


class ProposerChoice:
    """Chooses between free drafts and paid proposers: the paid one that promises most drafts if it may gain more."""

    def __init__(
        self,
        ngram: NgramProposer | None,
        grammar: GrammarProposer,
        paid: Series[CostlyProposer],
        growth: DraftGrowth,
        states: DraftStates,
    ) -> None:
        self._ngram = ngram
        self._grammar = grammar
        self._paid = tuple(paid)
        self._growth = growth
        self._states = states

    def find_free(self, decoding: list[Sequence], cost: StepCost) -> list[DraftChain]:
        """Return chains of n-grams (not for texts that back off) or of grammars, whichever promise more.

        The budget of n-grams must cover a draft that is wrong as a whole: the more they have won, the longer they may
        draft. A text's first drafts are short, and get longer while they are right.
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
        """Let the paid proposer that promises most draft, while it may gain more than the free draft in ``found``.

        Return the paid drafts that turned out better, and the free ones of the other texts. If texts must bring equally
        many rows and one of them has no draft, drafts of the others would be in vain.
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
        # Each proposer alone may promise a gain, but all together none. Then no round was begun.
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
        """Let an unused proposer read along, ever more rarely, to learn whether it would pay; return for which ids."""
        probed: set[str] = set()
        for sequence in sequences:
            state = self._states.by_id[sequence.id]
            record = state.records[proposer.name]
            if state.n_steps - record.tried_at < record.interval or not self._states.can_ask(proposer, sequence):
                continue
            seconds = proposer.catch_up_seconds(proposer.n_unread(sequence)) + proposer.first_round_seconds(1)
            budget = self._states.budget
            # Beside lookups a good proposer is unused because they bring more: its gains are no reason to probe it.
            gains = max(budget.balance(proposer.name), 0.0) if self._ngram is not None else 0.0
            if seconds > budget.available(proposer.name) - gains:
                continue
            before = self._growth.spent
            if not self._growth.catch_up(proposer, sequence):
                continue
            has_failed = self._growth.run_charged(proposer, [sequence], partial(proposer.read_along, sequence))
            taken = max(seconds, self._growth.spent - before)
            longest = max(int(taken / (_PROBE_SHARE * step_seconds)), _LONGEST_PROBE)
            record.interval = min(record.interval * 2, longest)
            if not has_failed:
                record.tried_at = state.n_steps
                probed.add(sequence.id)
        return probed

    def _grow(self, chosen: dict[str, list[DraftChain]], found: list[DraftChain], cost: StepCost) -> list[DraftChain]:
        """Let each proposer, by name, extend the chains that it was chosen for, in place of the free drafts."""
        found_free = {chain.sequence.id for chain in found}
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        # Drafts that the latency bound of texts without a draft would cut need not be made.
        cost = cost.within(cost.latency_bound.limit_without(given_up | found_free))
        drafted: list[DraftChain] = []
        for proposer in self._paid:
            # A probe may just have failed.
            chains = [
                chain for chain in chosen.get(proposer.name, ()) if self._states.can_ask(proposer, chain.sequence)
            ]
            self._growth.grow(proposer, chains, cost.with_rows(n_taken))
            for chain in chains:
                # Only now its worth is known.
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
        """Return an empty chain of the paid proposer that promises most beyond ``rival`` tokens; None if none pays."""
        best, most = None, 0.0
        for proposer in self._paid:
            if not self._states.can_ask(proposer, sequence):
                continue
            chain = self._states.chain(sequence, proposer)
            chain.rival = rival
            if cost.n_even and len(self._paid) == 1:
                return chain  # whether it pays is decided for all together
            promise = self._growth.expected_gain(proposer, chain, cost, n_awake)
            if promise > most:
                best, most = chain, promise
        return best

    def _worth(self, chain: DraftChain, cost: StepCost) -> float:
        """Return the worth of verifying the best part of a chain, in tokens."""
        gains = self._growth.gains(chain, cost.rate)
        count = best_cut(gains, cost)
        seconds = cost.step_seconds(cost.n_rows + count) - cost.step_seconds(cost.n_rows)
        return sum(gains[:count]) - cost.rate * seconds
