"""Decides each step, for all sequences together, what to draft; learns from what was accepted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from collections.abc import Sequence as Series

from core.cost.cost_model import CostModel
from core.kv_cache.rollback import CheckpointRollback, Rollback
from core.scheduler.planner import StepPlan
from core.scheduler.sequence import Sequence
from core.speculation.draft_stats import DraftStats
from core.speculation.draft_tree import DraftTree, TreeProposer
from core.speculation.policy.draft_growth import DraftGrowth
from core.speculation.policy.draft_state import FIRST_PROBE
from core.speculation.policy.draft_states import SHORT_REST, DraftStates
from core.speculation.policy.fixed_depth import FixedDepth
from core.speculation.policy.latency_bound import LatencyBound, slack_seconds
from core.speculation.policy.proposer_choice import ProposerChoice
from core.speculation.policy.proposer_trials import ProposerTrials
from core.speculation.policy.risk_budget import HICCUP
from core.speculation.policy.selection import keep_evenly, keep_what_pays
from core.speculation.policy.step_capacity import StepCapacity
from core.speculation.policy.step_cost import StepCost
from core.speculation.policy.step_outcome import NO_EFFORT, DraftingOutcome, SequenceOutcome
from core.speculation.proposer import CostlyProposer, DraftChain, Proposer, TargetObserver
from core.speculation.proposers.draft_model import DraftModelProposer
from core.speculation.proposers.grammar import GrammarProposer
from core.speculation.proposers.ngram import NgramProposer
from core.values.engine_options import MAX_DRAFT_DEPTH

# A chain whose chance has sunk below this cannot pay in any step.
_HOPELESS = 0.02
# So many plain steps may be lost on trying a proposer out before anything was won.
_CREDIT_STEPS = 2.0
# What it takes to decide is known from the latest steps: one counts so much, and as so many times what they took at
# most. Where it comes to nothing it may take such a share of the time, and is done again after so many steps at last.
_DECIDING_WEIGHT, _DECIDING_OUTLIER = 0.1, 3.0
_DECIDING_SHARE, _LONGEST_REST = 0.004, 128
# What was looked up and does not pay is a sign that something will: it is looked at more often.
_JUDGING_SHARE = 0.02


class Speculator:
    """Chooses proposer and depth by what they are worth beyond plain decoding, from measured times and acceptance.

    A lookup costs nothing, and neither does what a grammar forces; ``paid`` proposers must promise more than was found.
    ``fixed_depth`` switches the judgement off: always so many tokens of the first paid proposer (or of the lookup where
    there is none). It is there to be compared with. ``width`` is how many next tokens a draft model proposes at each
    place, more than one making trees; None where that is decided as well. With a fixed depth, a tree has that trunk
    and as many of the likeliest other nodes as make ``width`` at each depth.
    """

    def __init__(
        self,
        cost: CostModel,
        *,
        n_ctx: int,
        lookup: NgramProposer | None = None,
        paid: Series[CostlyProposer] = (),
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
        self._cost = cost
        self._lookup = lookup
        self._paid = tuple(paid)
        forced = GrammarProposer()
        self._proposers: tuple[Proposer, ...] = (forced, *((lookup,) if lookup is not None else ()), *paid)
        self._tree_proposer = next((proposer for proposer in self._paid if isinstance(proposer, TreeProposer)), None)
        self._watchers = tuple(proposer for proposer in self._paid if isinstance(proposer, TargetObserver))
        # Where going back is free, it is not asked for what it costs.
        self._checkpoints = rollback if isinstance(rollback, CheckpointRollback) else None
        self._clock = clock
        self._end_tokens = frozenset(end_tokens)
        self._records = DraftStates(self._proposers, self._paid, _CREDIT_STEPS * cost.time(1), looks=lookup is not None)
        self.budget = self._records.budget
        self._growth = DraftGrowth(
            n_ctx=n_ctx,
            most=min(MAX_DRAFT_DEPTH, rollback.reach) if rollback is not None else MAX_DRAFT_DEPTH,
            # A fixed depth is one also where it is hopeless.
            least_reach=_HOPELESS if fixed_depth is None else 0.0,
            end_tokens=end_tokens,
            tree_proposer=self._tree_proposer,
            checkpoints=self._checkpoints,
            records=self._records,
            clock=clock,
        )
        self._contest = ProposerChoice(
            lookup=lookup,
            forced=forced,
            paid=self._paid,
            tree_proposer=self._tree_proposer,
            growth=self._growth,
            records=self._records,
            probes=ProposerTrials(self._growth, self._records),
            width=width,
        )
        self._fixed: FixedDepth | None = None
        if fixed_depth is not None:
            first = self._paid[0] if self._paid else lookup
            self._fixed = FixedDepth(fixed_depth, width, first, self._growth, self._records)
        self._seconds_drafting = self._seconds_shared = 0.0
        # What each sequence got from the last step.
        self._came: list[SequenceOutcome] = []
        self._cut_away: dict[str, DraftChain] = {}
        # In so many further steps nobody is asked, and whether proposers have worked since the last step.
        self._n_resting = 0
        self._has_worked = False
        # Seconds in which it turns out that nothing was looked up, and that what was looked up or could be drafted does
        # not pay.
        self._look_seconds = self._thought_seconds = 0.0

    @property
    def draft_model(self) -> DraftModelProposer | None:
        """The small model among the proposers, where there is one."""
        return next((proposer for proposer in self._paid if isinstance(proposer, DraftModelProposer)), None)

    # -- sequences ----------------------------------------------------------------------------------------------

    def admit(self, sequence: Sequence) -> None:
        """A sequence will decode from now on."""
        self._n_resting = 0
        self._records.admit(sequence)
        for proposer in self._proposers:
            proposer.begin(sequence)

    def forget(self, sequence: Sequence) -> None:
        """A sequence has ended; what it taught stays."""
        record = self._records.by_id.get(sequence.id)
        if record is None:
            return
        for name, debt in record.debts.items():
            self.budget.book(name, -debt)
        self._records.forget(sequence)
        self._growth.learn_reply_length(sequence.n_generated)
        for proposer in self._proposers:
            proposer.end(sequence)

    # -- before a step ------------------------------------------------------------------------------------------

    def begin_step(self, decoding: list[Sequence]) -> bool:
        """A step begins: return whether ``draft`` is to be asked. Where nothing came of that lately, it rests."""
        if self._n_resting:
            # After a step the processor's caches hold weights and nothing else: what is not touched costs nothing.
            self._n_resting -= 1
            return False
        growth, records, lookup = self._growth, self._records, self._lookup
        growth.drop_branches()
        growth.seconds_at_risk = 0.0
        self._cut_away = {}
        if self._fixed is not None:
            return True
        is_awake = records.begin_step(decoding)
        looking = records.due_for_lookup(decoding) if lookup is not None else ()
        if looking and lookup is not None:
            began = self._clock()
            missed = [sequence for sequence in looking if not lookup.has_match(sequence)]
            if missed:
                taken = (self._clock() - began) / len(looking)
                self._look_seconds = _lately(self._look_seconds, taken)
                longest = self._longest_rest(self._look_seconds, len(decoding))
                for sequence in missed:
                    records.by_id[sequence.id].looks.back_off(longest)
            is_awake = is_awake or len(missed) < len(looking)
        if is_awake or any(sequence.sampler.guide is not None for sequence in decoding):
            return True
        self._n_resting = records.skip_steps(decoding)
        return False

    def _longest_rest(self, seconds: float, n_texts: int, share: float = _DECIDING_SHARE) -> int:
        """Return for how many steps not to do at most what took ``seconds`` for each text and came to nothing."""
        return min(int(n_texts * seconds / (share * self._cost.time(n_texts))), _LONGEST_REST)

    def draft(self, decoding: list[Sequence], step: StepCapacity) -> dict[str, DraftChain]:
        """Return the chains to verify in the next ``step``, by request id; none is a normal answer."""
        began = self._clock()
        self._has_worked = True
        if self._fixed is not None:
            chains = self._fixed.draft(decoding, step.room, step.n_branches)
        else:
            chains = self._draft_what_pays(decoding, step)
        self._records.collect_samples()
        self._seconds_drafting = self._clock() - began
        drafted: dict[str, DraftChain] = {}
        for chain in chains:
            (drafted if chain.kept_depths else self._cut_away)[chain.sequence.id] = chain
        return drafted

    def _draft_what_pays(self, decoding: list[Sequence], step: StepCapacity) -> list[DraftChain]:
        cost, growth, n_rows = self._cost, self._growth, step.n_rows
        # What drafts are measured against must be known. Beside a prompt no step is a plain one.
        n_sequences = len(decoding) + len(step.beside)
        is_beside_prompt = n_rows > n_sequences + sum([sequence.n_replay for sequence in decoding])
        if not is_beside_prompt and cost.plain.is_due(n_sequences):
            return []
        if step.n_even and (len(decoding) < step.n_even or any(sequence.n_replay for sequence in decoding)):
            return []
        began, records = self._clock(), self._records
        awake = records.due_for_proposers(decoding) if self._paid else []
        per_row = step.kv / max(n_rows, 1)

        def step_seconds(rows: int) -> float:
            return cost.time(rows, int(per_row * rows))

        plain = step_seconds(n_rows)
        growth.reading_seconds = slack_seconds(step.target, plain)
        # What a second is worth: the tokens that it brings at the speed that these texts have reached lately.
        of = records.by_id
        for sequence in decoding:
            of[sequence.id].settle_backoff(plain, len(decoding))
        rate = sum([of[sequence.id].speedup for sequence in decoding]) / step_seconds(len(decoding))
        latency_bound = LatencyBound([*decoding, *step.beside], plain)
        prices = StepCost(n_rows, rate, step_seconds, step.room, step.n_branches, step.branch_seconds, latency_bound)
        chains = self._contest.find_free(decoding, prices)
        if not awake and not chains:
            return []
        if awake:
            chains = self._contest.choose_and_draft(awake, chains, prices)
            prices = prices._replace(spent=growth.seconds_at_risk)
        self._keep_what_pays(chains, step, prices)
        self._decided(began, decoding, chains)
        return chains

    def _keep_what_pays(self, chains: list[DraftChain], step: StepCapacity, prices: StepCost) -> None:
        growth = self._growth
        if not chains:
            return
        if step.n_even:
            keep_evenly(chains, step.n_even, prices, lambda chain: growth.gains(chain, prices.rate))
        else:
            keep_what_pays(
                chains, prices, lambda chain: growth.gains(chain, prices.rate), has_forked=growth.has_branched
            )

    def _decided(self, began: float, decoding: list[Sequence], chains: list[DraftChain]) -> None:
        """Let those rest for whom what was found does not pay, for as long as what that took is worth."""
        records = self._records
        kept = {chain.sequence.id for chain in chains if chain.kept_depths}
        if not kept and not self._growth.seconds_at_risk:
            self._thought_seconds = _lately(self._thought_seconds, (self._clock() - began) / len(decoding))
        records.longest_thought = max(self._longest_rest(self._thought_seconds, len(decoding)), SHORT_REST)
        longest = self._longest_rest(self._thought_seconds, len(decoding), _JUDGING_SHARE)
        for sequence in records.due_for_lookup(decoding) if self._lookup is not None else ():
            looks = records.by_id[sequence.id].looks
            if sequence.id in kept:
                looks.reset()
            else:
                looks.back_off(longest)

    # -- after a step -------------------------------------------------------------------------------------------

    def observe(self, shares: StepPlan) -> int:
        """The target has evaluated ``shares``: proposers that feed on it take what they need.

        Returns the bytes that all proposers have read since the step before.
        """
        if self._watchers:
            began = self._clock()
            for watcher in self._watchers:
                watcher.observe(shares)
            # No risk: it costs the same whatever is drafted.
            self._seconds_drafting += self._clock() - began
        elif not self._has_worked:
            return 0
        self._has_worked = False
        return sum([proposer.take_bytes_read() for proposer in self._paid])

    def learn(self, sequence: Sequence, chain: DraftChain | None, choices: list[int], n_accepted: int) -> None:
        """Learn from a step: the target chose ``choices``, of which the first ``n_accepted`` were the chain's.

        The last choice may be the end of the text. There is none beside the accepted ones where the text ended there.
        """
        record = self._records.by_id.get(sequence.id)
        if record is None:
            return
        if chain is None and record.is_backing_off and not self._cut_away:
            # A plain step, and the next one will be too: what is to be learnt of it is learnt later, at once.
            record.n_verified += len(choices)
            record.n_rested += 1
            return
        own_lookup = 0
        if chain is not None:
            chain.learn(choices, n_accepted)
            self.stats.count(chain.kept_depths, n_accepted, len(choices))
            own_lookup = min(len(choices), len(chain.tokens)) if chain.proposer is self._lookup else 0
            if chain.proposer in self._paid and chain.kept_depths:
                sequence.n_judged += min(len(choices), max(chain.kept_depths) + 1)
                sequence.n_right += n_accepted
        record.n_verified += len(choices)
        self._growth.amortise(sequence, len(choices))
        n_rows, promise = 0, None
        if chain is not None:
            record.drafted_by, n_rows, promise = chain.proposer.name, len(chain.kept_depths), chain.promise
        self._came.append(SequenceOutcome(record, len(choices), record.drafted_by, n_rows, promise))
        trial = record.trials.get(chain.proposer.name) if chain is not None else None
        if trial is not None:
            trial.tried_at, trial.interval = record.n_verified, FIRST_PROBE
        if isinstance(chain, DraftTree) and self._tree_proposer is not None:
            began = self._clock()
            self._tree_proposer.keep_accepted(sequence)
            self.book_branching(self._clock() - began)
        self._judge_unverified(chain or self._cut_away.get(sequence.id), choices, n_accepted)
        if self._lookup is not None:
            has_ended = bool(choices) and choices[-1] in self._end_tokens
            self._lookup.advance(sequence, choices[:-1] if has_ended else choices, own_lookup)

    def _judge_unverified(self, chain: DraftChain | None, choices: list[int], n_accepted: int) -> None:
        """Learn from the first token that was drafted but not verified, where the target's own is known."""
        if isinstance(chain, DraftTree) and not chain.kept_nodes:
            chain.learn(choices, n_accepted)
        if chain is None or chain.next is None or chain.proposer is self._lookup:
            return
        if n_accepted < len(chain.tokens) or len(choices) <= n_accepted:
            return
        was_right = choices[n_accepted] == chain.next.token
        rate = chain.proposer.table.rate(chain.next.evidence)
        chain.proposer.table.learn(chain.next.evidence, was_right)
        chain.acceptance.learn(chain.next.evidence, rate, was_right)
        if chain.proposer in self._paid:
            chain.sequence.n_judged += 1
            chain.sequence.n_right += was_right

    def book_branching(self, seconds: float) -> None:
        """Book what the branches of a step's trees have taken beside its decode, before ``step_done``."""
        self._seconds_shared += seconds
        self._seconds_drafting += seconds

    def take_outcome(self) -> DraftingOutcome:
        """Return what drafting for the last step and the way back from it took, once; ``step_done`` books it."""
        growth = self._growth
        if not (self._seconds_drafting or self._came or growth.risks or self._checkpoints):
            return NO_EFFORT
        way_back = self._checkpoints.take_seconds() if self._checkpoints is not None else 0.0
        effort = DraftingOutcome(
            self._seconds_drafting + way_back, self._seconds_shared + way_back, growth.risks, self._came
        )
        self._seconds_drafting = self._seconds_shared = 0.0
        growth.risks, self._came = [], []
        return effort

    def book_step(self, n_sequences: int, plain_step: float, decode: float, effort: DraftingOutcome) -> None:
        """Book a step that only decoded: it took ``decode`` seconds and the drafting.

        ``plain_step`` is what it takes without drafts. An end-of-generation token counts as one.
        """
        if effort is NO_EFFORT:
            self.budget.add_elapsed(decode)
            return
        records, plain = self._records, plain_step / max(n_sequences, 1)
        n_rows = sum([came.n_rows for came in effort.came])
        spent = decode + effort.seconds
        self.budget.add_elapsed(spent)
        # Rows of drafts, those replayed after them, and the way back have taken what the step took beyond a plain one.
        beyond = min(decode, HICCUP * plain_step) - plain_step + effort.shared
        # And it took time to decide on them.
        thought = effort.seconds - effort.shared - sum([risk.seconds for risk in effort.risks])
        for record, n_new, proposer, n_drafted, promise in effort.came:
            record.settle_backoff(plain_step, n_sequences)
            record.budget.add_elapsed(plain)
            lost = beyond * (n_drafted / n_rows if n_rows else 1.0 / len(effort.came))
            if proposer and (won := plain * (n_new - 1) - lost):
                records.book(record, proposer, won - max(thought, 0.0) * n_drafted / max(n_rows, 1))
            if promise is not None:
                lost += sum([risk.seconds for risk in effort.risks if risk.record is record])
                record.learn_gain(promise, n_new - 1 - record.speedup / plain * lost)
            if spent > 0.0:
                record.learn_speed(n_new, plain_step, spent)
        for record, proposer, seconds in effort.risks:
            records.book(record, proposer, -min(seconds, HICCUP * plain_step))

    def forget_texts(self) -> None:
        """Drop what proposers keep of texts; what was learnt of acceptance stays."""
        for proposer in self._proposers:
            proposer.clear()

    def close(self) -> None:
        """Free the proposers."""
        for proposer in self._paid:
            proposer.close()


def _lately(known: float, taken: float) -> float:
    """Return what something takes lately, where it has just taken so many seconds."""
    return known + _DECIDING_WEIGHT * (min(taken, _DECIDING_OUTLIER * known) - known) if known else taken
