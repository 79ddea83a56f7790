"""Decides each step, for all sequences together, what to draft; learns from what was accepted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from collections.abc import Sequence as Series

from core.cost_model import CostModel
from core.options import MAX_DRAFT_DEPTH
from core.planner import Plan
from core.rollback import Checkpoints, Rollback
from core.sequence import Sequence
from core.speculative.acceptance import SequenceAcceptance
from core.speculative.depth import best_cut
from core.speculative.draft_model import DraftFailed, DraftModel
from core.speculative.draft_stats import DraftStats
from core.speculative.drafter import Chain, Drafter, PaidDrafter, Watcher
from core.speculative.effort import Effort
from core.speculative.fixed_depth import grow_chains_to, grow_trees_to
from core.speculative.forced import Forced
from core.speculative.growth import Growth
from core.speculative.lookup import Lookup
from core.speculative.prices import Prices
from core.speculative.purse import Purse
from core.speculative.record import FIRST_PROBE, Record, Trial
from core.speculative.selection import keep_evenly, keep_what_pays
from core.speculative.tree import Forker, Tree

MAX_DRAFT = MAX_DRAFT_DEPTH
# A chain whose chance has sunk below this cannot pay in any step.
_HOPELESS = 0.02
_LONGEST_PROBE = 256
# How often a probe has shown that drafting pays: what may be risked on the next one depends on it.
_PROBE_CHANCE, _CHANCE_WEIGHT, _LEAST_CHANCE = 0.5, 0.2, 0.02
_START_MEAN = 0.6
# How much the speed that one text came at says about the next.
_MOST_SPEEDUP_WEIGHT = 0.3
_CAUTION = 1.3
# So many plain steps may be lost on trying a drafter out before anything was won.
_CREDIT_STEPS = 2.0
# What drafts are measured against must be known: after so many steps without a plain one, one is made.
_CONTROL_STEPS = 40
# How many next tokens are asked for at each place where forks may pay, and how likely others than the first choice are
# at best: where a row (the mean of the next so many) is worth more than that, they are not asked for.
_WIDEST, _SECOND_CHANCE, _WIDE_LOOK = 3, 0.15, 8


class Speculator:
    """Chooses drafter and depth by what they are worth beyond plain decoding, from measured times and acceptance.

    A lookup costs nothing, and neither does what a grammar forces; ``paid`` drafters must promise more than was found.
    ``fixed_depth`` switches the judgement off: always so many tokens of the first paid drafter (or of the lookup where
    there is none). It is there to be compared with. ``width`` is how many next tokens a draft model proposes at each
    place, more than one making trees; None where that is decided as well. With a fixed depth, a tree has that trunk
    and as many of the likeliest other nodes as make ``width`` at each depth.
    """

    def __init__(
        self,
        cost: CostModel,
        *,
        n_ctx: int,
        lookup: Lookup | None = None,
        paid: Series[PaidDrafter] = (),
        fixed_depth: int | None = None,
        width: int | None = None,
        rollback: Rollback | None = None,
        end_tokens: Collection[int] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``cost`` is the target's, ``n_ctx`` the longest a sequence may get.

        ``rollback`` takes rejected tokens back: it bounds the depth, and what it costs is charged. None: free.
        ``end_tokens`` end a text: nothing is drafted beyond one.
        """
        self.stats = DraftStats()
        self.purse = Purse(_CREDIT_STEPS * cost.time(1))
        self._cost = cost
        self._lookup = lookup
        self._forced = Forced()
        self._paid = tuple(paid)
        self._forker = next((drafter for drafter in self._paid if isinstance(drafter, Forker)), None)
        self._watchers = tuple(drafter for drafter in self._paid if isinstance(drafter, Watcher))
        self._fixed_depth = fixed_depth
        self._width = width
        self._n_branches, self._branch_seconds = 0, 0.0
        # Where going back is free, it is not asked for what it costs.
        self._checkpoints = rollback if isinstance(rollback, Checkpoints) else None
        self._clock = clock
        self._end_tokens = frozenset(end_tokens)
        self._growth = Growth(
            n_ctx=n_ctx,
            most=min(MAX_DRAFT, rollback.reach) if rollback is not None else MAX_DRAFT,
            # A fixed depth is one also where it is hopeless.
            least_reach=_HOPELESS if fixed_depth is None else 0.0,
            end_tokens=end_tokens,
            forker=self._forker,
            checkpoints=self._checkpoints,
            clock=clock,
        )
        self._drafters: tuple[Drafter, ...] = (self._forced, *((lookup,) if lookup is not None else ()), *paid)
        self._means = {drafter.name: _START_MEAN for drafter in self._drafters}
        self._records: dict[str, Record] = {}
        # Of texts before.
        self._speedup = 1.0
        self._seconds_drafting = 0.0
        # What each sequence got from the last step.
        self._yields: list[tuple[Record, int]] = []
        self._probe_chance = {drafter.name: _PROBE_CHANCE for drafter in self._paid}
        self._cut_away: dict[str, Chain] = {}

    @property
    def draft_model(self) -> DraftModel | None:
        """The small model among the drafters, where there is one."""
        return next((drafter for drafter in self._paid if isinstance(drafter, DraftModel)), None)

    # -- sequences ----------------------------------------------------------------------------------------------

    def admit(self, sequence: Sequence) -> None:
        """A sequence will decode from now on."""
        acceptance = {name: SequenceAcceptance(mean) for name, mean in self._means.items()}
        trials = {drafter.name: Trial() for drafter in self._paid}
        self._records[sequence.id] = Record(acceptance, trials, speedup=math.sqrt(self._speedup))
        for drafter in self._drafters:
            drafter.admit(sequence)

    def forget(self, sequence: Sequence) -> None:
        """A sequence has ended; what it taught stays."""
        record = self._records.pop(sequence.id, None)
        if record is None:
            return
        self._growth.reply_ended(sequence.n_generated)
        weight = min(_MOST_SPEEDUP_WEIGHT, record.n_verified / 100.0)
        self._speedup += weight * (record.speedup - self._speedup)
        for drafter in self._drafters:
            drafter.forget(sequence)
            seen = record.acceptance[drafter.name]
            if seen.n_seen:
                weight = min(0.5, seen.n_seen / 100.0)
                self._means[drafter.name] += weight * (seen.mean - self._means[drafter.name])

    # -- before a step ------------------------------------------------------------------------------------------

    def draft(
        self,
        decoding: list[Sequence],
        n_rows: int,
        kv: int,
        room: int,
        n_branches: int = 0,
        branch_seconds: float = 0.0,
        n_even: int = 0,
    ) -> dict[str, Chain]:
        """Return the chains to verify in the next step, by request id; none is a normal answer.

        ``n_rows`` are the rows that the step has anyway, ``kv`` the tokens they attend to, ``room`` the rows that may
        be added, ``n_branches`` the side branches that trees may have altogether; each adds ``branch_seconds``.
        ``n_even`` sequences have to bring equally many rows (0: as many as each likes), unless a depth is fixed.
        """
        began = self._clock()
        self._n_branches, self._branch_seconds = n_branches, branch_seconds
        self._growth.drop_forks()
        self._growth.seconds_at_risk = 0.0
        try:
            if self._fixed_depth is not None:
                chains = self._draft_fixed(decoding, room)
            else:
                chains = self._draft_what_pays(decoding, n_rows, kv, room, n_even)
        except DraftFailed:
            chains = []
        self._collect_observations()
        self._seconds_drafting = self._clock() - began
        drafted: dict[str, Chain] = {}
        self._cut_away = {}
        for chain in chains:
            (drafted if chain.kept_depths else self._cut_away)[chain.sequence.id] = chain
        return drafted

    def _draft_fixed(self, decoding: list[Sequence], room: int) -> list[Chain]:
        assert self._fixed_depth is not None
        drafter: Drafter | None = self._paid[0] if self._paid else self._lookup
        if drafter is None or not self._fixed_depth:
            return []
        width = self._width or 1 if drafter is self._forker and self._n_branches else 1
        room_each = room // max(len(decoding), 1)
        depth = min(self._fixed_depth, room_each)
        if width > 1:
            trees = [self._tree(sequence) for sequence in decoding]
            grow_trees_to(depth, self._growth, trees, width, room_each, self._n_branches)
            return [*trees]
        chains = [self._chain(sequence, drafter) for sequence in decoding]
        grow_chains_to(depth, self._growth, drafter, chains)
        return chains

    def _draft_what_pays(self, decoding: list[Sequence], n_rows: int, kv: int, room: int, n_even: int) -> list[Chain]:
        if self._cost.age(n_rows) > _CONTROL_STEPS:
            return []
        if n_even and (len(decoding) < n_even or any(sequence.n_replay for sequence in decoding)):
            return []
        awake = [sequence for sequence in decoding if self._is_awake(sequence)] if self._paid else []
        chains = self._find(decoding, room)
        if not awake and not chains:
            return []
        per_row = kv / max(n_rows, 1)

        def step_seconds(rows: int) -> float:
            return self._cost.time(rows, int(per_row * rows))

        # What a second is worth: the tokens that it brings at the speed that these texts have reached lately.
        records = self._records
        rate = sum([records[sequence.id].speedup for sequence in decoding]) / step_seconds(len(decoding))
        if not self.purse.may_risk(0.0):
            # What was believed to pay has not: from here on only what is clearly worth it.
            rate *= _CAUTION
        prices = Prices(n_rows, rate, step_seconds, room)
        if awake:
            chains = self._draft_at_a_price(awake, chains, prices)
        if n_even:
            keep_evenly(chains, n_even, prices, lambda chain: self._growth.gains(chain, rate))
            return chains
        keep_what_pays(
            chains,
            prices,
            lambda chain: self._growth.gains(chain, rate),
            has_forked=self._growth.has_forked,
            n_branches=self._n_branches,
            branch_seconds=self._branch_seconds,
        )
        return chains

    def _is_awake(self, sequence: Sequence) -> bool:
        """Return whether to think about paid drafting for a sequence in this step."""
        record = self._records[sequence.id]
        record.rest -= record.rest > 0
        return not record.rest

    def _find(self, decoding: list[Sequence], room: int) -> list[Chain]:
        """Return chains of what was looked up or must come, whichever promises more; both cost next to nothing."""
        found: dict[str, Chain] = {}
        if self._lookup is not None:
            chains = [self._chain(sequence, self._lookup) for sequence in decoding]
            self._growth.look_up(self._lookup, chains, room)
            found = {chain.sequence.id: chain for chain in chains if chain.tokens}
        for sequence in decoding:
            if sequence.sampler.guide is None:
                continue
            chain = self._chain(sequence, self._forced)
            self._growth.look_up(self._forced, [chain], room, is_lawful=True)
            rival = found.get(sequence.id)
            if chain.tokens and (rival is None or sum(chain.reach) >= sum(rival.reach)):
                found[sequence.id] = chain
        return list(found.values())

    def _draft_at_a_price(self, awake: list[Sequence], found: list[Chain], prices: Prices) -> list[Chain]:
        """Let the drafter work that promises most, where that is more than what was found, for as long as it pays."""
        by_id = {chain.sequence.id: chain for chain in found}
        chosen: dict[str, list[Chain]] = {drafter.name: [] for drafter in self._paid}
        width = self._width_worth_trying(prices) if awake and self._n_branches else 1
        for sequence in awake:
            chain, promise = self._most_promising(sequence, prices)
            rival = by_id.get(sequence.id)
            if promise > (self._worth(rival, prices) if rival is not None else 0.0):
                forks = width > 1 and chain.drafter is self._forker
                chosen[chain.drafter.name].append(self._tree(sequence) if forks else chain)
        given_up = {chain.sequence.id for chains in chosen.values() for chain in chains}
        n_taken = sum(len(chain.tokens) for chain in found if chain.sequence.id not in given_up)
        drafted = []
        for drafter in self._paid:
            self._probe(drafter, awake)
            chains = chosen[drafter.name]
            if width > 1 and drafter is self._forker:
                trees = [chain for chain in chains if isinstance(chain, Tree)]
                self._growth.grow_trees(trees, prices.beside(n_taken), width)
            else:
                self._growth.grow_chains(drafter, chains, prices.beside(n_taken))
            drafted += [chain for chain in chains if chain.tokens or (chain.next and chain.sequence.id not in by_id)]
            n_taken += sum(len(chain.tokens) for chain in chains)
        replaced = {chain.sequence.id for chain in drafted}
        return [chain for chain in found if chain.sequence.id not in replaced] + drafted

    def _most_promising(self, sequence: Sequence, prices: Prices) -> tuple[Chain, float]:
        """Return an empty chain of the paid drafter that promises most on a sequence, and what it promises."""
        record = self._records[sequence.id]
        best: tuple[Chain, float] | None = None
        for drafter in self._paid:
            chain = self._chain(sequence, drafter)
            promise = self._growth.promise(drafter, chain, prices)
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

    def _judge_trial(self, trial: Trial, name: str, promise: float) -> None:
        trial.is_new = False
        chance = self._probe_chance[name]
        chance += _CHANCE_WEIGHT * (float(promise > 0.0) - chance)
        self._probe_chance[name] = max(chance, _LEAST_CHANCE)

    def _width_worth_trying(self, prices: Prices) -> int:
        """Return how many next tokens to ask for: first choices only where a row costs more than others can bring."""
        if self._width is not None:
            return self._width
        n_rows, step_seconds = prices.n_rows, prices.step_seconds
        row_seconds = (step_seconds(n_rows + _WIDE_LOOK) - step_seconds(n_rows)) / _WIDE_LOOK
        price = prices.rate * (row_seconds + self._branch_seconds)
        return _WIDEST if price < _SECOND_CHANCE else 1

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
            self._growth.seconds_at_risk += self._clock() - began
            trial.tried_at = record.n_verified
            trial.is_new = True
            record.wake()
            trial.interval = min(trial.interval * 2, _LONGEST_PROBE)

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
        if not self._growth.seconds_at_risk:
            return 0  # none has worked
        return sum([drafter.take_bytes_read() for drafter in self._paid])

    def verified(self, sequence: Sequence, chain: Chain | None, choices: list[int], n_accepted: int) -> None:
        """Learn from a step: the target chose ``choices``, of which the first ``n_accepted`` were the chain's.

        The last choice may be the end of the text. There is none beside the accepted ones where the text ended there.
        """
        record = self._records.get(sequence.id)
        if record is None:
            return
        own_lookup = 0
        if chain is not None:
            chain.learn(choices, n_accepted)
            self.stats.count(chain.kept_depths, n_accepted, len(choices))
            own_lookup = min(len(choices), len(chain.tokens)) if chain.drafter is self._lookup else 0
            if chain.drafter in self._paid and chain.kept_depths:
                sequence.n_judged += min(len(choices), max(chain.kept_depths) + 1)
                sequence.n_right += n_accepted
        record.n_verified += len(choices)
        self._yields.append((record, len(choices)))
        trial = record.trials.get(chain.drafter.name) if chain is not None else None
        if trial is not None:
            trial.tried_at, trial.interval = record.n_verified, FIRST_PROBE
        if isinstance(chain, Tree) and self._forker is not None:
            began = self._clock()
            self._forker.settle(sequence)
            self.branched(self._clock() - began)
        self._judge_unverified(chain or self._cut_away.get(sequence.id), choices, n_accepted)
        if self._lookup is not None:
            has_ended = bool(choices) and choices[-1] in self._end_tokens
            self._lookup.advance(sequence, choices[:-1] if has_ended else choices, own_lookup)

    def _judge_unverified(self, chain: Chain | None, choices: list[int], n_accepted: int) -> None:
        """Learn from the first token that was drafted but not verified, where the target's own is known."""
        if isinstance(chain, Tree) and not chain.kept_nodes:
            chain.learn(choices, n_accepted)
        if chain is None or chain.next is None or chain.drafter is self._lookup:
            return
        if n_accepted < len(chain.tokens) or len(choices) <= n_accepted:
            return
        was_right = choices[n_accepted] == chain.next.token
        rate = chain.drafter.table.rate(chain.next.evidence)
        chain.drafter.table.learn(chain.next.evidence, was_right)
        chain.acceptance.learn(chain.next.evidence, rate, was_right)
        if chain.drafter in self._paid:
            chain.sequence.n_judged += 1
            chain.sequence.n_right += was_right

    def branched(self, seconds: float) -> None:
        """Book what the branches of a step's trees have taken beside its decode, before ``step_done``."""
        self._growth.seconds_at_risk += seconds
        self._seconds_drafting += seconds

    def take_effort(self) -> Effort:
        """Return what drafting for the last step and the way back from it took, once; ``step_done`` books it."""
        way_back = self._checkpoints.take_seconds() if self._checkpoints is not None else 0.0
        effort = Effort(self._seconds_drafting + way_back, self._growth.seconds_at_risk + way_back, self._yields)
        self._seconds_drafting, self._growth.seconds_at_risk, self._yields = 0.0, 0.0, []
        return effort

    def step_done(self, n_sequences: int, n_tokens: int, plain_step: float, decode: float, effort: Effort) -> None:
        """Book a step that only decoded: ``n_tokens`` came for ``n_sequences`` in ``decode`` seconds and the drafting.

        An end-of-generation token counts as one. ``plain_step`` is what the step takes without drafts.
        """
        plain = plain_step * n_tokens / max(n_sequences, 1)
        self.purse.book(plain, decode + effort.at_risk)
        spent = decode + effort.seconds
        if spent > 0.0:
            for record, n_new in effort.yields:
                record.came(n_new, plain_step, spent)

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

    def _tree(self, sequence: Sequence) -> Tree:
        assert self._forker is not None
        record = self._records[sequence.id]
        return Tree(sequence, self._forker, record.acceptance[self._forker.name], siblings=record.siblings)

    def _worth(self, chain: Chain, prices: Prices) -> float:
        gains = self._growth.gains(chain, prices.rate)
        count = best_cut(gains, prices.n_rows, prices.rate, prices.step_seconds)
        seconds = prices.step_seconds(prices.n_rows + count) - prices.step_seconds(prices.n_rows)
        return sum(gains[:count]) - prices.rate * seconds

    def _collect_observations(self) -> None:
        for drafter in self._drafters:
            for sequence_id, evidence, was_right in drafter.take_observations():
                record = self._records.get(sequence_id)
                rate = drafter.table.rate(evidence)
                drafter.table.learn(evidence, was_right)
                if record is not None:
                    record.acceptance[drafter.name].learn(evidence, rate, was_right)
