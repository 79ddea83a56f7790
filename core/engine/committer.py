"""The last third of a step: sample what was evaluated, keep the drafts that agree, and say what came."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from core.engine.meter import Meter, StepReading
from core.engine.step_feedback import StepStats, StepYield
from core.kv_cache.branches import Branches
from core.kv_cache.rollback import Rollback
from core.kv_cache.slot_table import SlotTable
from core.llama.candidates import Candidates
from core.llama.context import Context
from core.llama.vocab import Vocab
from core.sampling.grammar.grammar_matcher import GrammarLost
from core.scheduler.draft import TreeShape
from core.scheduler.planner import Share, StepPlan
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.policy.speculator import Speculator
from core.speculation.proposer import DraftChain
from core.values.errors import BrokenLogits
from core.values.messages import Ended, Failure, FailureKind, FinishReason, RequestEvent, Token, TokenLogprob
from core.values.receipt import Receipt


class RequestFinisher:
    """Ends requests, each once."""

    def __init__(self, scheduler: Scheduler, branches: Branches, meter: Meter, speculator: Speculator | None) -> None:
        """Take requests off ``scheduler`` and out of ``branches`` and ``speculator``; ``meter`` knows the peak."""
        self.speculator = speculator
        self._scheduler = scheduler
        self._branches = branches
        self._meter = meter

    def finish(
        self,
        sequence: Sequence,
        reason: FinishReason,
        events: list[RequestEvent],
        now: float,
        failure: Failure | None = None,
    ) -> None:
        """Free what a request holds and append its end to ``events``; ``now`` is on the engine's clock."""
        if self.speculator is not None:
            self.speculator.forget(sequence)
        if sequence.slot is not None:
            self._branches.trim(sequence.slot.id, 0)
        self._scheduler.remove(sequence)
        text = sequence.text.flush()
        events.append(Ended(sequence.id, reason, text, sequence.text.stop, failure, self._receipt(sequence, now)))
        sequence.sampler.close()

    def fail(self, sequence: Sequence, message: str, events: list[RequestEvent], now: float) -> None:
        """End a request for a reason that is not its own."""
        self.finish(sequence, FinishReason.FAILED, events, now, Failure(FailureKind.INTERNAL, message))

    def _receipt(self, sequence: Sequence, now: float) -> Receipt:
        account = sequence.account
        share = self._meter.share_of_peak(account.bytes_per_second)
        return replace(
            sequence.receipt(now),
            bytes_per_token=account.bytes_per_token,
            peak_share=None if self._meter.is_in_cache else share,
            speedup=account.speedup if sequence.n_drafted else 1.0,
            plain_seconds=None if self._meter.is_disturbed else account.plain_seconds,
            kv_type=self._meter.kv_type,
        )


class Committer:
    """Commits evaluated plans: counts rows, samples tokens, takes back rejected drafts, ends what is complete."""

    def __init__(
        self,
        vocab: Vocab,
        context: Context,
        slots: SlotTable,
        branches: Branches,
        rollback: Rollback,
        finisher: RequestFinisher,
        stats: StepStats,
        speculator: Speculator | None,
        *,
        n_ctx: int,
    ) -> None:
        """Read logits of ``context``, count in ``stats``; texts end at ``n_ctx`` tokens."""
        self.speculator = speculator
        self._pieces, self._end_tokens = vocab.pieces, vocab.end_tokens
        self._context = context
        self._candidates = Candidates(vocab.n_tokens)
        self._slots = slots
        self._branches = branches
        self._rollback = rollback
        self._finisher = finisher
        self._stats = stats
        self._n_ctx = n_ctx

    def commit(
        self,
        shares: StepPlan,
        chains: dict[str, DraftChain],
        reading: StepReading,
        events: list[RequestEvent],
        now: float,
    ) -> StepYield:
        """Count the evaluated rows, sample where a prompt or token is complete, and say so at ``now``."""
        stats = self._stats
        before = stats.n_tokens, stats.n_sampled, stats.n_drafted, stats.n_accepted
        outputs = []
        for share in shares:
            sequence, slot = share.sequence, share.sequence.slot
            assert slot is not None
            slot.n_resident = sequence.n_past = sequence.n_past + share.n_rows
            if sequence.n_past == sequence.tokens.size:
                outputs.append(share)
        if outputs:
            self._sample(outputs, chains, reading, events, now)
        return StepYield(
            stats.n_tokens - before[0],
            stats.n_sampled - before[1],
            stats.n_drafted - before[2],
            stats.n_accepted - before[3],
        )

    def _sample(
        self,
        outputs: list[Share],
        chains: dict[str, DraftChain],
        reading: StepReading,
        events: list[RequestEvent],
        now: float,
    ) -> None:
        n_rows, is_greedy = len(outputs), False
        for share in outputs:
            n_rows += len(share.draft)
            is_greedy = is_greedy or share.sequence.sampler.is_plain_greedy
        logits = self._context.logits(n_rows)
        greedy = logits.argmax(axis=1).tolist() if is_greedy else None
        first = 0
        for share in outputs:
            try:
                self._verify(share, logits, first, greedy, chains, reading, events, now)
            except (BrokenLogits, GrammarLost) as error:
                assert share.sequence.slot is not None
                self._branches.trim(share.sequence.slot.id, 0)
                self._slots.clear(share.sequence.slot)  # nobody may go on from what it holds
                failure = _failure(share.sequence, error)
                self._finisher.finish(share.sequence, FinishReason.FAILED, events, now, failure)
            first += 1 + len(share.draft)

    def _verify(
        self,
        share: Share,
        logits: npt.NDArray[np.float32],
        first: int,
        greedy: list[int] | None,
        chains: dict[str, DraftChain],
        reading: StepReading,
        events: list[RequestEvent],
        now: float,
    ) -> None:
        """Sample a sequence's rows, from row ``first`` on, along the drafted tokens that agree (sample-and-match).

        Each token is the target's own sample given the tokens before it, so the text is distributed as without
        drafts, whatever was drafted.
        """
        sequence, slot = share.sequence, share.sequence.slot
        assert slot is not None
        if self.speculator is not None and sequence.request.speculates and not sequence.n_generated:
            self.speculator.admit(sequence)
        reason = FinishReason.LENGTH if sequence.is_exhausted else None
        draft, shape = share.draft, share.shape
        sampler = sequence.sampler
        logprobs: tuple[TokenLogprob, ...]
        choices: list[int] = []
        n_before = sequence.n_generated
        n_accepted = row = 0
        while reason is None:
            if greedy is not None and sampler.is_plain_greedy and (token := greedy[first + row]) not in sampler.banned:
                logprobs = ()
                if not math.isfinite(logits.item(first + row, token)):
                    raise BrokenLogits
            else:
                token, logprobs = self._choose(sequence, logits[first + row])
            choices.append(token)
            reason = self._take(sequence, token, logprobs, events, now)
            if token in self._end_tokens:
                break
            if shape is not None:
                following = shape.follow(draft, row, token)
            else:
                following = row + 1 if row < len(draft) and token == draft[row] else 0
            if not following:
                break
            row = following
            n_accepted += 1
            sequence.n_past += 1
        # The first token belongs to the prompt.
        is_decoding = n_before > 0 and share.n_rows == 1 + sequence.n_replay
        sequence.n_replay = 0
        if shape is not None:
            self._keep_path(shape, row, slot.id, sequence.n_past)
        elif n_accepted < len(draft):
            n_held = self._rollback.keep(slot.id, sequence.n_past)
            sequence.n_replay = sequence.n_past - n_held if n_held else 0
            sequence.n_past = n_held
        slot.n_resident = sequence.n_past
        sequence.n_drafted += len(draft)
        sequence.n_accepted += n_accepted
        self._stats.n_sampled += len(choices)
        self._stats.n_drafted += len(draft)
        self._stats.n_accepted += n_accepted
        self._stats.n_tokens += sequence.n_generated - n_before
        if is_decoding:
            reading.book(sequence.account, len(choices))
        if self.speculator is not None:
            self.speculator.learn(sequence, chains.get(sequence.id) if draft else None, choices, n_accepted)
        if reason is not None:
            self._finisher.finish(sequence, reason, events, now)

    def _keep_path(self, shape: TreeShape, row: int, slot: int, n_past: int) -> None:
        """Let a slot hold the way of a tree that ends in ``row``, which makes ``n_past`` positions, and no other."""
        start = n_past - shape.n_off_leaf_0(row)
        self._context.remove(slot, start)
        if start < n_past:
            branch = self._branches.lent_to(slot)[shape.leaves_below[row][0] - 1]
            self._context.copy(branch, slot, n_past, start)
        self._branches.release(slot, n_past - 1 - shape.depths[row])
        if self.speculator is not None:
            self.speculator.book_branching(self._branches.take_seconds())

    def _choose(self, sequence: Sequence, logits: npt.NDArray[np.float32]) -> tuple[int, tuple[TokenLogprob, ...]]:
        """Return a sequence's next token and its log probabilities if they were asked for."""
        sampler = sequence.sampler
        raw = logits.copy() if sampler.params.logprobs else logits
        token = sampler.choose(logits, len(sequence.tokens), self._candidates)
        sampler.accept(token, logits)
        return token, (sampler.logprobs(raw, token),) if sampler.params.logprobs else ()

    def _take(
        self,
        sequence: Sequence,
        token: int,
        logprobs: tuple[TokenLogprob, ...],
        events: list[RequestEvent],
        now: float,
    ) -> FinishReason | None:
        """Add a token to its sequence and pass on its text; return why the sequence ends with it, if it does."""
        if not sequence.first_token_at:
            sequence.first_token_at = now
        sequence.last_token_at = now
        if token in self._end_tokens:
            return FinishReason.STOP
        sequence.tokens.append(token)
        sequence.n_generated += 1
        sequence.n_unreported += 1
        text = sequence.text.feed(self._pieces[token])
        if text or logprobs:
            events.append(Token(sequence.id, text, sequence.n_unreported, logprobs))
            sequence.n_unreported = 0
        if sequence.text.stop is not None:
            return FinishReason.STOP
        if sequence.request.constraint is not None and sequence.sampler.is_over:
            return FinishReason.STOP
        if sequence.is_exhausted or sequence.tokens.size >= self._n_ctx:
            return FinishReason.LENGTH
        return None


def _failure(sequence: Sequence, error: BrokenLogits | GrammarLost) -> Failure:
    """Return what a request is told: a grammar that cannot be followed is its own, and asking again would not help."""
    constraint = sequence.request.constraint
    if constraint is None or isinstance(error, BrokenLogits):
        return Failure(FailureKind.INTERNAL, error.message)
    return Failure(FailureKind.BAD_REQUEST, error.message, constraint.field)
