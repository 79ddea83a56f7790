"""Decides each step, for all sequences together, what to draft; learns from what was accepted."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as Series
from dataclasses import dataclass, field

from core.cost_model import CostModel
from core.options import MAX_DRAFT_DEPTH
from core.planner import Plan
from core.sequence import Sequence
from core.speculative.acceptance import SequenceAcceptance
from core.speculative.depth import Candidate, another_round, best_cut
from core.speculative.draft_model import DraftFailed
from core.speculative.drafter import Chain, Drafter, PaidDrafter, Watcher
from core.speculative.lookup import Lookup
from core.speculative.purse import Purse

MAX_DRAFT = MAX_DRAFT_DEPTH
# A chain whose chance has sunk below this cannot pay in any step.
_HOPELESS = 0.02
_SPEEDUP_WEIGHT = 0.05
_FIRST_PROBE, _LONGEST_PROBE = 8, 256
# Where drafting promises nothing, it is thought about anew only every so many steps.
_LONGEST_REST = 16
# How often a probe has shown that drafting pays: what may be risked on the next one depends on it.
_PROBE_CHANCE, _CHANCE_WEIGHT, _LEAST_CHANCE = 0.5, 0.2, 0.02
_START_MEAN = 0.6
_CAUTION = 1.3
# So many plain steps may be lost on trying a drafter out before anything was won.
_CREDIT_STEPS = 2.0
# What reading a sequence costs a drafter is spread over the steps that are likely still to come: a reply of
# usual length, at so many tokens a step.
_USUAL_REPLY, _REPLY_WEIGHT = 128.0, 0.1
_TOKENS_PER_STEP = 3.0


@dataclass(slots=True)
class _Trial:
    """When a paid drafter was last tried on a sequence, by the count of its verified tokens."""

    tried_at: int = 0
    interval: int = _FIRST_PROBE
    is_new: bool = False


@dataclass(slots=True)
class _Record:
    """What speculation knows of one sequence; acceptance and trials are by drafter."""

    acceptance: dict[str, SequenceAcceptance]
    trials: dict[str, _Trial]
    n_verified: int = 0
    rest: int = 0
    rest_length: int = 0

    def tire(self) -> None:
        """Nothing is promised here: look again a little later, each time later still."""
        self.rest_length = min(2 * self.rest_length + 1, _LONGEST_REST)
        self.rest = self.rest_length

    def wake(self) -> None:
        """Something new is known: look again at once."""
        self.rest = self.rest_length = 0


@dataclass(slots=True)
class DraftStats:
    """Totals: tokens drafted and accepted by depth, tokens that came, seconds saved."""

    n_drafted: int = 0
    n_accepted: int = 0
    n_bonus: int = 0
    drafted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)
    accepted_at: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)


class Speculator:
    """Chooses drafter and depth by what they are worth beyond plain decoding, from measured times and acceptance.

    A lookup costs nothing; ``paid`` drafters must promise more than it has found. ``fixed_depth`` switches the
    judgement off: always so many tokens of the first paid drafter (or of the lookup where there is none). It is there
    to be compared with.
    """

    def __init__(
        self,
        cost: CostModel,
        *,
        n_ctx: int,
        lookup: Lookup | None = None,
        paid: Series[PaidDrafter] = (),
        fixed_depth: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``cost`` is the target's, ``n_ctx`` the longest a sequence may get."""
        self.stats = DraftStats()
        self.purse = Purse(_CREDIT_STEPS * cost.time(1))
        self._cost = cost
        self._n_ctx = n_ctx
        self._lookup = lookup
        self._paid = tuple(paid)
        self._watchers = tuple(drafter for drafter in self._paid if isinstance(drafter, Watcher))
        self._fixed_depth = fixed_depth
        self._clock = clock
        self._drafters: tuple[Drafter, ...] = (lookup, *paid) if lookup is not None else self._paid
        self._means = {drafter.name: _START_MEAN for drafter in self._drafters}
        self._records: dict[str, _Record] = {}
        self._speedup = 1.0
        self._seconds_drafting = 0.0
        self._seconds_at_risk = 0.0
        self._usual_reply = _USUAL_REPLY
        self._probe_chance = {drafter.name: _PROBE_CHANCE for drafter in self._paid}
        self._cut_away: dict[str, Chain] = {}

    # -- sequences ----------------------------------------------------------------------------------------------

    def admit(self, sequence: Sequence) -> None:
        """A sequence will decode from now on."""
        acceptance = {name: SequenceAcceptance(mean) for name, mean in self._means.items()}
        self._records[sequence.id] = _Record(acceptance, {drafter.name: _Trial() for drafter in self._paid})
        for drafter in self._drafters:
            drafter.admit(sequence)

    def forget(self, sequence: Sequence) -> None:
        """A sequence has ended; what it taught stays."""
        record = self._records.pop(sequence.id, None)
        if record is None:
            return
        self._usual_reply += _REPLY_WEIGHT * (sequence.n_generated - self._usual_reply)
        for drafter in self._drafters:
            drafter.forget(sequence)
            seen = record.acceptance[drafter.name]
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[drafter.name] += weight * (seen.mean - self._means[drafter.name])

    # -- before a step ------------------------------------------------------------------------------------------

    def draft(self, decoding: list[Sequence], n_rows: int, kv: int, room: int) -> dict[str, Chain]:
        """Return the chains to verify in the next step, by request id; none is a normal answer.

        ``n_rows`` are the rows that the step has anyway, ``kv`` the tokens they attend to, ``room`` the rows that may
        be added.
        """
        began = self._clock()
        self._seconds_at_risk = 0.0
        try:
            if self._fixed_depth is not None:
                chains = self._draft_fixed(decoding, room)
            else:
                chains = self._draft_what_pays(decoding, n_rows, kv, room)
        except DraftFailed:
            chains = []
        self._collect_observations()
        self._seconds_drafting = self._clock() - began
        self._cut_away = {chain.sequence.id: chain for chain in chains if not chain.tokens}
        return {chain.sequence.id: chain for chain in chains if chain.tokens}

    def _draft_fixed(self, decoding: list[Sequence], room: int) -> list[Chain]:
        assert self._fixed_depth is not None
        drafter: Drafter | None = self._paid[0] if self._paid else self._lookup
        if drafter is None or not self._fixed_depth:
            return []
        chains = [self._chain(sequence, drafter) for sequence in decoding]
        depth = min(self._fixed_depth, room // max(len(chains), 1))
        for _ in range(depth):
            live = [chain for chain in chains if not chain.is_done and self._limit(chain) > len(chain.tokens)]
            if live:
                self._extend(drafter, live)
        return chains

    def _draft_what_pays(self, decoding: list[Sequence], n_rows: int, kv: int, room: int) -> list[Chain]:
        awake = [sequence for sequence in decoding if self._is_awake(sequence)] if self._paid else []
        chains = self._look_up(decoding, room)
        if not awake and not chains:
            return []
        per_row = kv / max(n_rows, 1)

        def step_seconds(rows: int) -> float:
            return self._cost.time(rows, int(per_row * rows))

        # What a second is worth: the tokens that it brings at the speed reached lately.
        rate = len(decoding) / step_seconds(len(decoding)) * self._speedup
        if not self.purse.may_risk(0.0):
            # What was believed to pay has not: from here on only what is clearly worth it.
            rate *= _CAUTION
        if awake:
            chains = self._draft_at_a_price(awake, chains, n_rows, rate, step_seconds, room)
        self._cut_to_what_pays(chains, n_rows, rate, step_seconds, room)
        return chains

    def _is_awake(self, sequence: Sequence) -> bool:
        """Return whether to think about paid drafting for a sequence in this step."""
        record = self._records[sequence.id]
        record.rest -= record.rest > 0
        return not record.rest

    def _look_up(self, decoding: list[Sequence], room: int) -> list[Chain]:
        """Return chains of what was found; looking it up costs next to nothing."""
        if self._lookup is None:
            return []
        chains = [self._chain(sequence, self._lookup) for sequence in decoding]
        for chain in chains:
            limit = min(self._limit(chain), room)
            while not chain.is_done and len(chain.tokens) < limit:
                self._extend(self._lookup, [chain])
        return [chain for chain in chains if chain.tokens]

    def _draft_at_a_price(
        self,
        awake: list[Sequence],
        found: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> list[Chain]:
        """Let the drafter work that promises most, where that is more than what was found, for as long as it pays."""
        by_id = {chain.sequence.id: chain for chain in found}
        chosen: dict[str, list[Chain]] = {drafter.name: [] for drafter in self._paid}
        for sequence in awake:
            chain, promise = self._most_promising(sequence, rate, step_seconds, n_rows)
            rival = by_id.get(sequence.id)
            if promise > (self._worth(rival, rate, step_seconds, n_rows) if rival is not None else 0.0):
                chosen[chain.drafter.name].append(chain)
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        drafted = []
        for drafter in self._paid:
            self._probe(drafter, awake)
            chains = chosen[drafter.name]
            self._run_rounds(drafter, chains, n_rows + n_taken, rate, step_seconds, room - n_taken)
            drafted += [chain for chain in chains if chain.tokens]
            n_taken += sum(len(chain.tokens) for chain in chains)
        replaced = {chain.sequence.id for chain in drafted}
        return [chain for chain in found if chain.sequence.id not in replaced] + drafted

    def _most_promising(
        self, sequence: Sequence, rate: float, step_seconds: Callable[[int], float], n_rows: int
    ) -> tuple[Chain, float]:
        """Return an empty chain of the paid drafter that promises most on a sequence, and what it promises."""
        record = self._records[sequence.id]
        best: tuple[Chain, float] | None = None
        for drafter in self._paid:
            chain = self._chain(sequence, drafter)
            promise = self._promise(drafter, chain, rate, step_seconds, n_rows)
            trial = record.trials[drafter.name]
            if trial.is_new:
                self._judge_trial(trial, drafter.name, promise)
            if best is None or promise > best[1]:
                best = chain, promise
        assert best is not None
        if best[1] > 0.0:
            record.wake()
        else:
            record.tire()
        return best

    def _judge_trial(self, trial: _Trial, name: str, promise: float) -> None:
        trial.is_new = False
        chance = self._probe_chance[name]
        chance += _CHANCE_WEIGHT * (float(promise > 0.0) - chance)
        self._probe_chance[name] = max(chance, _LEAST_CHANCE)

    def _run_rounds(
        self,
        drafter: PaidDrafter,
        chains: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> None:
        for _ in range(MAX_DRAFT):
            live = [chain for chain in chains if not chain.is_done and len(chain.tokens) < self._limit(chain)]
            live.sort(key=lambda chain: -chain.probability * chain.acceptance.mean)
            n_drafted = sum(len(chain.tokens) for chain in chains)
            outlook = another_round(
                [Candidate(chain.probability, chain.acceptance.mean) for chain in live],
                n_rows + n_drafted,
                rate,
                step_seconds,
                drafter.round_seconds,
                room - n_drafted,
                self._late(drafter, [chain.sequence for chain in live if not chain.tokens]),
            )
            if not outlook.n_chains:
                return
            self._extend(drafter, live[: outlook.n_chains])

    def _probe(self, drafter: PaidDrafter, awake: list[Sequence]) -> None:
        """Let a drafter read along now and then where it is not used, to learn whether it would pay."""
        for sequence in awake:
            record = self._records[sequence.id]
            trial = record.trials[drafter.name]
            if record.n_verified - trial.tried_at < trial.interval:
                continue
            seconds = drafter.catch_up_seconds(drafter.n_behind(sequence))
            if not self.purse.may_risk(seconds, self._probe_chance[drafter.name]):
                continue
            began = self._clock()
            drafter.shadow(sequence)
            self._seconds_at_risk += self._clock() - began
            trial.tried_at = record.n_verified
            trial.is_new = True
            record.wake()
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)

    def _cut_to_what_pays(
        self,
        chains: list[Chain],
        n_rows: int,
        rate: float,
        step_seconds: Callable[[int], float],
        room: int,
    ) -> None:
        """Keep the drafted tokens whose verification pays, over all chains together."""
        tokens = sorted(
            ((reach, -depth, chain) for chain in chains for depth, reach in enumerate(chain.reach)),
            key=lambda entry: (-entry[0], -entry[1]),
        )[: max(room, 0)]
        count = best_cut([reach for reach, _, _ in tokens], n_rows, rate, step_seconds)
        sizes: dict[int, int] = {}
        for _, _, chain in tokens[:count]:
            sizes[id(chain)] = sizes.get(id(chain), 0) + 1
        for chain in chains:
            chain.truncate(sizes.get(id(chain), 0))

    # -- after a step -------------------------------------------------------------------------------------------

    def evaluated(self, shares: Plan) -> int:
        """The target has evaluated ``shares``: drafters that feed on it take what they need.

        Returns the bytes that all drafters have read since the step before.
        """
        if self._watchers:
            began = self._clock()
            for watcher in self._watchers:
                watcher.evaluated(shares)
            # No risk: it costs the same whatever is drafted.
            self._seconds_drafting += self._clock() - began
        if not self._seconds_at_risk:
            return 0  # none has worked
        return sum([drafter.take_bytes_read() for drafter in self._paid])

    def verified(self, sequence: Sequence, chain: Chain | None, tokens: list[int], n_accepted: int) -> None:
        """Learn from a step: ``tokens`` came, of which the first ``n_accepted`` were the chain's."""
        record = self._records.get(sequence.id)
        if record is None:
            return
        own_lookup = 0
        if chain is not None:
            n_judged = min(n_accepted + 1, len(chain.tokens))
            for depth in range(n_judged):
                was_accepted = depth < n_accepted
                chain.drafter.table.learn(chain.evidence[depth], was_accepted)
                chain.acceptance.learn(chain.evidence[depth], chain.rates[depth], was_accepted)
            self._count(chain, n_accepted)
            own_lookup = n_judged if chain.drafter is self._lookup else 0
        record.n_verified += len(tokens)
        if chain is not None and chain.drafter is not self._lookup:
            trial = record.trials[chain.drafter.name]
            trial.tried_at, trial.interval = record.n_verified, _FIRST_PROBE
        self._judge_unverified(chain or self._cut_away.get(sequence.id), tokens, n_accepted)
        if self._lookup is not None:
            self._lookup.advance(sequence, tokens, own_lookup)

    def _judge_unverified(self, chain: Chain | None, tokens: list[int], n_accepted: int) -> None:
        """Learn from the first token that was drafted but not verified, where the target's own is known."""
        if chain is None or chain.next is None or chain.drafter is self._lookup:
            return
        if n_accepted < len(chain.tokens) or len(tokens) <= n_accepted:
            return
        was_right = tokens[n_accepted] == chain.next.token
        rate = chain.drafter.table.rate(chain.next.evidence)
        chain.drafter.table.learn(chain.next.evidence, was_right)
        chain.acceptance.learn(chain.next.evidence, rate, was_right)

    def step_done(self, n_sequences: int, n_tokens: int, plain_step: float, decode: float) -> None:
        """Book a step that only decoded: ``n_tokens`` came for ``n_sequences`` in ``decode`` seconds and the drafting.

        An end-of-generation token counts as one. ``plain_step`` is what the step takes without drafts.
        """
        plain = plain_step * n_tokens / max(n_sequences, 1)
        # Deciding is no risk: it costs the same whatever is decided.
        self.purse.book(plain, decode + self._seconds_at_risk)
        spent = decode + self._seconds_drafting
        achieved = min(max(plain / spent, 0.5), 2.0 * MAX_DRAFT) if spent > 0 else 1.0
        self._speedup = max(1.0, self._speedup + _SPEEDUP_WEIGHT * (achieved - self._speedup))

    def _count(self, chain: Chain, n_accepted: int) -> None:
        self.stats.n_drafted += len(chain.tokens)
        self.stats.n_accepted += n_accepted
        self.stats.n_bonus += 1
        for depth in range(len(chain.tokens)):
            self.stats.drafted_at[depth] += 1
            self.stats.accepted_at[depth] += depth < n_accepted

    def forget_texts(self) -> None:
        """Drop what drafters keep of texts; what was learnt of acceptance stays."""
        for drafter in self._drafters:
            drafter.clear()

    def close(self) -> None:
        """Free the drafters."""
        for drafter in self._paid:
            drafter.close()

    # -- helpers ------------------------------------------------------------------------------------------------

    def _chain(self, sequence: Sequence, drafter: Drafter) -> Chain:
        return Chain(sequence, drafter, self._records[sequence.id].acceptance[drafter.name])

    def _limit(self, chain: Chain) -> int:
        """Return how many tokens may be drafted: no more than can be used."""
        return min(MAX_DRAFT, chain.sequence.n_left(self._n_ctx) - 1)

    def _late(self, drafter: PaidDrafter, sequences: list[Sequence]) -> float:
        """Return this step's part of the seconds that a drafter needs to read what it has not read yet."""
        n_behind = sum(drafter.n_behind(sequence) - 1 for sequence in sequences)
        if n_behind <= 0:
            return 0.0
        longest = max(min(self._usual_reply - s.n_generated, s.n_left(self._n_ctx)) for s in sequences)
        n_steps = max(1.0, longest / _TOKENS_PER_STEP)
        return drafter.catch_up_seconds(n_behind) / n_steps

    def _extend(self, drafter: Drafter, chains: list[Chain]) -> None:
        began = self._clock()
        self._extend_all(drafter, chains)
        if drafter is not self._lookup:
            self._seconds_at_risk += self._clock() - began

    def _extend_all(self, drafter: Drafter, chains: list[Chain]) -> None:
        for chain, guess in zip(chains, drafter.extend(chains), strict=True):
            if guess is None:
                chain.is_done = True
                continue
            chain.add(guess)
            # A fixed depth is one also where it is hopeless.
            chain.is_done = self._fixed_depth is None and chain.probability < _HOPELESS

    def _promise(
        self, drafter: PaidDrafter, chain: Chain, rate: float, step_seconds: Callable[[int], float], n_rows: int
    ) -> float:
        """Return what a drafter can be expected to be worth on a sequence, in tokens."""
        late = self._late(drafter, [chain.sequence])
        candidates = [Candidate(1.0, chain.acceptance.mean)]
        return another_round(candidates, n_rows, rate, step_seconds, drafter.round_seconds, MAX_DRAFT, late).worth

    def _worth(self, chain: Chain, rate: float, step_seconds: Callable[[int], float], n_rows: int) -> float:
        count = best_cut(chain.reach, n_rows, rate, step_seconds)
        return sum(chain.reach[:count]) - rate * (step_seconds(n_rows + count) - step_seconds(n_rows))

    def _collect_observations(self) -> None:
        for drafter in self._drafters:
            for sequence_id, evidence, was_right in drafter.take_observations():
                record = self._records.get(sequence_id)
                rate = drafter.table.rate(evidence)
                drafter.table.learn(evidence, was_right)
                if record is not None:
                    record.acceptance[drafter.name].learn(evidence, rate, was_right)
