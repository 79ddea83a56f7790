"""Speculative decoding as the engine sees it: ``propose`` before a step, ``learn`` after it, ``forget`` at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from collections.abc import Sequence as Series
from typing import NamedTuple

from core.cost.cost_model import SHARED_READ, CostModel
from core.kv_cache.memory import AttentionMemory
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import (
    LatencyBound,
    StepCapacity,
    StepCost,
    keep_evenly,
    keep_what_pays,
    slack_seconds,
)
from core.speculation.draft_state import FIRST_PROBE, HICCUP, SHORT_REST, DraftState, DraftStates, OwnTime, Rest
from core.speculation.proposer_choice import DraftGrowth, ProposerChoice
from core.speculation.proposers.context_proposer import HiddenStateProposer
from core.speculation.proposers.draft_model import DraftModelProposer
from core.speculation.proposers.free_proposers import GrammarProposer, NgramProposer
from core.speculation.proposers.proposer import CostlyProposer, DraftChain, DraftStats, Evaluated, Proposer
from core.values.engine_options import MAX_DRAFT_DEPTH

# A chain whose chance has sunk below this cannot pay in any step.
_HOPELESS = 0.02
# The share of the time that deciding to draft nothing may take, and the most steps between two decisions.
_DECIDING_SHARE, _LONGEST_REST = 0.002, 128
# The same share for texts with n-grams that did not pay. Others may soon, so these texts are looked at more often.
_JUDGING_SHARE = 0.01


class StepTimes(NamedTuple):
    """The target decoded a step of ``n_sequences`` in ``decode`` seconds; without drafts it takes ``plain``."""

    n_sequences: int
    plain: float
    decode: float


# A text's state, the tokens that a step gave it, and how many tokens were drafted for it.
_Outcome = tuple[DraftState, int, int]


class Speculator:
    """Chooses proposers and depths by their gain over plain decoding, from measured times and acceptance.

    N-grams and grammars are nearly free. A paid proposer is used if it promises more than the free draft that was
    found. ``cost`` is the target's. ``budget`` is what each proposer has won and lost on all texts.
    """

    def __init__(
        self,
        cost: CostModel,
        *,
        n_ctx: int,
        memory: AttentionMemory,
        ngram: NgramProposer | None = None,
        paid: Series[CostlyProposer] = (),
        fixed_depth: int | None = None,
        end_tokens: Collection[int] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``n_ctx`` is the longest a sequence may get.

        ``fixed_depth`` is for comparisons: instead of deciding, always draft this many tokens with the first paid
        proposer, or with n-grams if there is none. ``memory`` takes rejected tokens back: it bounds the depth, and its
        cost is charged. ``end_tokens`` end a text: nothing is drafted beyond one.
        """
        self.stats = DraftStats()
        self.cost = cost
        self.paid = tuple(paid)
        self._ngram = ngram
        grammar = GrammarProposer()
        self.proposers: tuple[Proposer, ...] = (grammar, *((ngram,) if ngram is not None else ()), *paid)
        # Those that read the target's hidden states after each step.
        self._observers = tuple(proposer for proposer in self.paid if isinstance(proposer, HiddenStateProposer))
        self.has_heads = bool(self._observers)
        # None if taking back rejected drafts is free.
        self._checkpoints = memory if memory.replays else None
        self._clock = clock
        self._end_tokens = frozenset(end_tokens)
        self._states = DraftStates(self.proposers, self.paid, cost.time(1), has_ngrams=ngram is not None)
        self.budget = self._states.budget
        self._growth = DraftGrowth(
            self._states,
            n_ctx=n_ctx,
            most=min(MAX_DRAFT_DEPTH, memory.reach),
            end_tokens=end_tokens,
            checkpoints=self._checkpoints,
            clock=clock,
        )
        self._choice = ProposerChoice(ngram, grammar, self.paid, self._growth, self._states)
        self._fixed_depth = fixed_depth
        # Drafts of the step: those to verify, and those that were not worth it.
        self._drafts: dict[str, DraftChain] = {}
        self._cut_away: dict[str, DraftChain] = {}
        # Seconds that drafting took since the last ``learn``.
        self._seconds = 0.0
        self._rest = Rest()
        # Seconds of committing a step with drafts, beyond those of committing as many plain tokens.
        self._commit_overhead = OwnTime()
        # Seconds for each text of finding that there is no n-gram.
        self._search = OwnTime()

    @property
    def draft_model(self) -> DraftModelProposer | None:
        """The small model among the proposers, where there is one."""
        return next((proposer for proposer in self.paid if isinstance(proposer, DraftModelProposer)), None)

    # -- before a step ------------------------------------------------------------------------------------------

    def rest(self, decoding: list[Sequence]) -> bool:
        """Count the next step as one of the present rest, in place of ``propose``; False if there is no rest."""
        # After a step the processor's caches hold only weights, so touching anything else takes time.
        rest = self._rest
        rest.is_now = rest.n_left > 0 and len(decoding) == rest.n_texts  # a step that failed was never counted
        rest.n_left -= rest.is_now
        return rest.is_now

    def propose(self, decoding: list[Sequence], step: StepCapacity) -> dict[str, tuple[int, ...]]:
        """Return the drafts to verify in the next ``step``, by request id; none is a normal answer."""
        self._settle_rest()
        for sequence in decoding:
            if sequence.id not in self._states.by_id:
                self._admit(sequence)
        if self._rest.n_left:
            self._rest.n_left -= 1
            return {}
        self.budget.n_even = step.n_even
        growth = self._growth
        growth.spent, self._cut_away, self._drafts = 0.0, {}, {}
        if self._fixed_depth is None and not self._is_worth_asking(decoding, step.n_even):
            return {}
        began = self._clock()
        depth = self._fixed_depth
        chains = self._draft_what_pays(decoding, step) if depth is None else self._draft(depth, decoding, step.room)
        self._states.collect_samples()
        self._seconds = self._clock() - began
        for chain in chains:
            (self._drafts if chain.tokens else self._cut_away)[chain.sequence.id] = chain
        if not chains and depth is None and not _has_grammar(decoding):
            self._begin_rest(decoding)
        return {name: tuple(chain.tokens) for name, chain in self._drafts.items()}

    def _admit(self, sequence: Sequence) -> None:
        self._rest.n_left = 0
        self._states.admit(sequence)
        for proposer in self.proposers:
            proposer.begin(sequence)

    def _is_worth_asking(self, decoding: list[Sequence], n_even: int) -> bool:
        """Return whether to decide on drafts in this step. If the last decisions were to draft nothing, wait.

        If ``n_even`` texts must bring equally many rows, n-grams for only some of them are useless.
        """
        states, ngram = self._states, self._ngram
        is_awake, n_found = states.begin_step(decoding), 0
        looking = states.due_for_ngrams(decoding) if ngram is not None else ()
        if looking and ngram is not None:
            began = self._clock()
            missed = [sequence for sequence in looking if not ngram.has_match(sequence)]
            if missed:
                self._search.learn((self._clock() - began) / len(looking), self.cost.time(len(decoding)))
                longest = self._longest_rest(self._search.seconds, len(decoding))
                for sequence in missed:
                    states.by_id[sequence.id].ngram_backoff.back_off(longest)
            n_found = len(looking) - len(missed)
            is_awake = is_awake or n_found >= max(n_even, 1)
        if is_awake or _has_grammar(decoding):
            return True
        self._begin_rest(decoding)
        # If nothing was found, there is nothing to judge after the step either.
        self._rest.is_now = not n_found and len(decoding) == len(states.by_id)
        return False

    def _begin_rest(self, decoding: list[Sequence]) -> None:
        self._rest.n_left, self._rest.n_texts = self._states.skip_steps(decoding), len(decoding)

    def _longest_rest(self, seconds: float, n_texts: int, share: float = _DECIDING_SHARE) -> int:
        """Return how many steps apart work of ``seconds`` for each text takes at most ``share`` of the time."""
        return min(int(n_texts * seconds / (share * self.cost.time(n_texts))), _LONGEST_REST)

    def _draft(self, depth: int, decoding: list[Sequence], room: int) -> list[DraftChain]:
        """Return drafts of a fixed depth that can be used, in at most ``room`` rows for all."""
        proposer = self.paid[0] if self.paid else self._ngram
        if proposer is None:
            return []
        states, growth = self._states, self._growth
        chains = [states.chain(one, proposer) for one in decoding if states.can_ask(proposer, one)]
        for _ in range(min(depth, room // max(len(chains), 1))):
            live = [chain for chain in chains if not chain.is_done and growth.limit(chain) > len(chain.tokens)]
            growth.extend(proposer, live)
        return chains

    def _draft_what_pays(self, decoding: list[Sequence], step: StepCapacity) -> list[DraftChain]:
        cost, growth, n_rows = self.cost, self._growth, step.n_rows
        # Drafts are compared with plain steps, so some are observed. A step that also reads a prompt is not one.
        n_sequences = len(decoding) + len(step.beside)
        is_beside_prompt = n_rows > n_sequences + sum([sequence.n_replay for sequence in decoding])
        if not is_beside_prompt and cost.plain.is_due(n_sequences):
            return []
        if step.n_even and (len(decoding) < step.n_even or any(sequence.n_replay for sequence in decoding)):
            return []
        began, states = self._clock(), self._states
        awake = states.due_for_paid(decoding) if self.paid else []

        kv_per_row = SHARED_READ * step.kv / n_sequences
        commit_overhead = self._commit_overhead.seconds
        # Each is asked for several times in a decision.
        known: dict[int, float] = {}

        def step_seconds(rows: int) -> float:
            seconds = known.get(rows)
            if seconds is None:
                seconds = cost.time(rows, step.kv + int(kv_per_row * (rows - n_rows)))
                known[rows] = seconds = seconds + commit_overhead if rows > n_rows else seconds
            return seconds

        plain = step_seconds(n_rows)
        growth.reading_seconds = slack_seconds(step.target, plain)
        # The value of a second: the tokens that all texts get in one at their latest speed. Those whose prompts are
        # read wait for the step as well: if they were left out, drafts beside prompts would look cheap.
        for sequence in decoding:
            states.by_id[sequence.id].settle_backoff(plain)
        speedup = sum([states.by_id[sequence.id].speedup for sequence in decoding])
        latency_bound = LatencyBound([*decoding, *step.beside], plain)
        n_others = len(step.beside) + step.n_reading
        rate = (speedup + n_others) / step_seconds(len(decoding) + n_others)
        step_cost = StepCost(n_rows, rate, step_seconds, step.room, latency_bound, n_even=step.n_even)
        growth.least_reach = max(step_cost.row_price(), _HOPELESS)
        chains = self._choice.find_free(decoding, step_cost)
        if not awake and not chains:
            return []
        if awake:
            chains = self._choice.choose_and_draft(awake, chains, step_cost)
            step_cost = step_cost._replace(spent=growth.spent)
        if chains:
            keep = keep_evenly if step.n_even else keep_what_pays
            keep(chains, step_cost, lambda chain: growth.final_gains(chain, step_cost))
        self._back_off(began, decoding, chains, step.n_even)
        return chains

    def _back_off(self, began: float, decoding: list[Sequence], chains: list[DraftChain], n_even: int) -> None:
        """Wait before the next decision for texts for which nothing pays, longer if deciding took longer."""
        states = self._states
        kept = {chain.sequence.id for chain in chains if chain.tokens}
        for chain in chains:
            if chain.proposer in self.paid:
                backoff = states.by_id[chain.sequence.id].paid_backoff
                if chain.tokens:
                    backoff.reset()
                elif n_even:  # all had to do without, because one promised nothing
                    backoff.back_off(states.longest_rest)
        if not kept:
            self._commit_overhead.fade()
            self._growth.round_overhead.fade()
        if not kept and not self._growth.spent:
            self._growth.decision.learn((self._clock() - began) / len(decoding), self.cost.time(len(decoding)))
        states.longest_rest = max(self._longest_rest(self._growth.decision.seconds, len(decoding)), SHORT_REST)
        longest = self._longest_rest(self._growth.decision.seconds, len(decoding), _JUDGING_SHARE)
        for sequence in states.due_for_ngrams(decoding) if self._ngram is not None else ():
            backoff = states.by_id[sequence.id].ngram_backoff
            if sequence.id in kept:
                backoff.reset()
            else:
                backoff.back_off(longest)

    def take_bytes_read(self) -> int:
        """Return the bytes that proposers have read since this was last asked."""
        return sum([proposer.take_bytes_read() for proposer in self.paid])

    # -- after a step -------------------------------------------------------------------------------------------

    def learn_rest(self, seconds: float) -> bool:
        """Count a step of a rest; False if it was none, or heads observe it. ``seconds`` 0: it read prompts too."""
        if not self._rest.is_now or self._observers:
            return False
        self._rest.count(seconds)
        return True

    def _settle_rest(self) -> None:
        """Learn from the steps of a rest: each of them gave each text one token."""
        rest = self._rest
        if rest.n_steps:
            # A moment in which the machine stood still does not make old gains and losses fade.
            most = HICCUP * rest.n_steps * self.cost.time(len(self._states.by_id))
            self.budget.add_elapsed(min(rest.seconds, most))
            for state in self._states.by_id.values():
                state.n_steps += rest.n_steps
                state.n_rested += rest.n_steps
            rest.n_steps, rest.seconds = 0, 0.0

    def learn(self, evaluated: Series[Evaluated], times: StepTimes | None) -> None:
        """Learn from a step, before its sequences are forgotten; ``times`` None: it read prompts too."""
        observing = self._observe(evaluated) if self._observers else 0.0
        if self._rest.is_now:
            self._rest.count(times.decode if times is not None else 0.0)
            return
        self._settle_rest()
        # Observing costs the same whatever is drafted, so it is no risk.
        self._seconds += observing
        found = [self._learn_from(one) for one in evaluated if one.choices]
        outcomes = [outcome for outcome in found if outcome is not None]
        if times is not None and found:
            self._book(times, outcomes)
        self._seconds, self._growth.times = 0.0, []
        self._drafts, self._cut_away = {}, {}

    def _observe(self, evaluated: Series[Evaluated]) -> float:
        """Let heads copy the target's hidden states; return the seconds that took."""
        began = self._clock()
        for observer in self._observers:
            observer.observe(evaluated)
        return self._clock() - began

    def _learn_from(self, one: Evaluated) -> _Outcome | None:
        """Learn from what the target chose for a sequence; None if it is unknown here, or learnt from later."""
        sequence, choices, n_accepted = one.sequence, one.choices, one.n_accepted
        state = self._states.by_id.get(sequence.id)
        if state is None:
            return None
        chain = self._drafts.get(sequence.id) if one.draft else None
        if chain is None and state.is_backing_off and not self._cut_away:
            # This step and the next are plain: they are learnt from together.
            state.n_steps += 1
            state.n_rested += 1
            return None
        n_drafted_by_ngrams, n_drafted = 0, 0
        if chain is not None:
            n_drafted, state.drafted_by = len(chain.tokens), chain.proposer.name
            chain.learn(choices, n_accepted)
            self.stats.count(n_drafted, n_accepted)
            if chain.proposer is self._ngram:
                n_drafted_by_ngrams = min(len(choices), n_drafted)
                state.learn_ngram(n_accepted)
            elif chain.proposer in self.paid:
                sequence.n_judged += min(len(choices), n_drafted)
                sequence.n_right += n_accepted
        state.n_steps += 1
        self._growth.amortise(sequence, len(choices))
        if chain is not None:
            record = state.records[chain.proposer.name]
            record.tried_at = state.n_steps
            if n_accepted == n_drafted:
                record.interval = FIRST_PROBE
        self._judge_unverified(chain or self._cut_away.get(sequence.id), choices, n_accepted)
        if self._ngram is not None:
            has_ended = choices[-1] in self._end_tokens
            self._ngram.advance(sequence, list(choices[:-1] if has_ended else choices), n_drafted_by_ngrams)
        return state, len(choices), n_drafted

    def _judge_unverified(self, chain: DraftChain | None, choices: Series[int], n_accepted: int) -> None:
        """Learn from the first proposed token that was not verified, if the target's own token is known."""
        if chain is None or chain.next is None or chain.proposer is self._ngram:
            return
        if n_accepted < len(chain.tokens) or len(choices) <= n_accepted:
            return
        was_right = choices[n_accepted] == chain.next.token
        rate = chain.proposer.table.rate(chain.next.evidence)
        chain.proposer.table.learn(chain.next.evidence, was_right)
        chain.acceptance.learn(chain.next.evidence, rate, was_right)
        if chain.proposer in self.paid:
            chain.sequence.n_judged += 1
            chain.sequence.n_right += was_right

    def _book(self, times: StepTimes, outcomes: list[_Outcome]) -> None:
        """Book the seconds that drafting has won or lost in a step. An end token counts as a token."""
        growth, plain_step = self._growth, times.plain
        way_back = self._checkpoints.take_seconds() if self._checkpoints is not None else 0.0
        n_rows = sum([n_drafted for _, _, n_drafted in outcomes])
        committing = self._commit_overhead.seconds if n_rows else 0.0
        spent = times.decode + self._seconds + way_back + committing
        self.budget.add_elapsed(min(spent, HICCUP * plain_step))
        if not outcomes and not growth.times:
            return
        plain = plain_step / max(times.n_sequences, 1)
        # The seconds beyond a plain step went to rows of drafts, replayed rows, taking drafts back, and committing.
        beyond = min(times.decode, HICCUP * plain_step) - plain_step + way_back + committing
        # Deciding took time too. If nothing was drafted, it is charged to the proposers that were asked in vain.
        deciding = max(self._seconds - growth.spent, 0.0)
        in_vain = deciding / len(growth.times) if growth.spent and growth.times and not n_rows else 0.0
        for state, n_new, n_drafted in outcomes:
            state.settle_backoff(plain_step)
            lost = beyond * (n_drafted / n_rows if n_rows else 1.0 / len(outcomes))
            if state.drafted_by and (won := plain * (n_new - 1) - lost):
                self.budget.book(state.drafted_by, won - deciding * n_drafted / max(n_rows, 1))
            if spent > 0.0:
                state.learn_speed(n_new, plain_step, spent)
        for proposer, seconds in growth.times:
            self.budget.book(proposer, -min(seconds + in_vain, HICCUP * plain_step))

    def learn_commit(self, seconds: float, n_new: int, n_sequences: int) -> None:
        """Learn from ``seconds`` of own code in a step with drafts that brought ``n_new`` tokens."""
        plain = self.cost.plain.own_seconds(n_sequences) * n_new / n_sequences
        self._commit_overhead.learn(seconds - plain, self.cost.time(n_sequences))

    def forget(self, sequence: Sequence) -> None:
        """A sequence has ended. What was learnt from it stays."""
        if sequence.id not in self._states.by_id:
            return
        self._settle_rest()
        self._states.forget(sequence)
        # Another text may take its place.
        self._rest.n_texts = 0
        self._growth.learn_reply_length(sequence.n_generated)
        for proposer in self.proposers:
            proposer.end(sequence)

    # -- proposers ----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop what proposers keep of texts that have ended; what was learnt of acceptance stays."""
        for proposer in self.proposers:
            proposer.clear()

    def close(self) -> None:
        """Free the proposers."""
        for proposer in self.paid:
            proposer.close()


def _has_grammar(decoding: list[Sequence]) -> bool:
    """Return whether a text's grammar may force its next tokens: these cost nothing to find."""
    return any(sequence.sampler.grammar is not None for sequence in decoding)
