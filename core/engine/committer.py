"""The last third of a step: sample from the logits, keep the drafts that agree, and report the new tokens."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.engine.meter import Meter, StepReading
from core.kv_cache.slot_table import SlotTable
from core.llama.context import Context
from core.llama.sampler_chain import Candidates
from core.sampling.grammar import GrammarLost
from core.scheduler.input_processor import InputProcessor
from core.scheduler.planner import StepPlan
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.proposers.proposer import Evaluated
from core.speculation.speculator import Speculator, StepTimes
from core.values.errors import BrokenLogits
from core.values.messages import (
    Ended,
    Failure,
    FailureKind,
    FinishReason,
    PromptScored,
    Receipt,
    RequestEvent,
    Token,
    TokenLogprob,
)


class RequestFinisher:
    """Ends requests, each once."""

    def __init__(self, scheduler: Scheduler, meter: Meter, speculator: Speculator | None) -> None:
        self.speculator = speculator
        self._scheduler = scheduler
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
        self._scheduler.remove(sequence)
        text = sequence.text.flush()
        events.append(Ended(sequence.id, reason, text, sequence.text.stop, failure, self._receipt(sequence, now)))
        sequence.sampler.close()

    def _receipt(self, sequence: Sequence, now: float) -> Receipt:
        account, meter = sequence.account, self._meter
        first, started = sequence.first_token_at, sequence.started_at or now
        return Receipt(
            n_prompt=sequence.n_prompt,
            n_cached=sequence.n_cached,
            n_generated=sequence.n_generated,
            n_drafted=sequence.n_drafted,
            n_accepted=sequence.n_accepted,
            n_judged=sequence.n_judged,
            n_right=sequence.n_right,
            queued=started - sequence.submitted_at,
            ttft=sequence.ttft,
            prefill=(first or now) - started,
            decode=sequence.last_token_at - first if first else 0.0,
            total=now - sequence.submitted_at,
            seed=sequence.sampler.seed,
            bytes_per_token=account.bytes_per_token,
            peak_share=None if meter.is_in_cache else meter.share_of_peak(account.bytes_per_second),
            limited_by=meter.limit_of(account),
            speedup=account.speedup if sequence.n_drafted else 1.0,
            plain_seconds=None if meter.is_disturbed else account.plain_seconds,
            cache_miss=sequence.cache_miss,
            kv_type=meter.kv_type,
        )


_End = tuple[Sequence, FinishReason, Failure | None]
"""A request that ends with a step."""


class Committer:
    """Commits evaluated plans: counts rows, samples tokens, takes back rejected drafts, ends what is complete."""

    def __init__(self, intake: InputProcessor, context: Context, slots: SlotTable, finisher: RequestFinisher) -> None:
        vocab = intake.vocab
        self._pieces, self._end_tokens = vocab.pieces, vocab.end_tokens
        self._context = context
        self._candidates = Candidates(vocab.n_tokens)
        self._slots = slots
        self._finisher = finisher
        self._n_ctx = intake.n_ctx

    def commit(self, shares: StepPlan, reading: StepReading, events: list[RequestEvent], now: float) -> None:
        """Count the evaluated rows, sample where none is pending, and learn; ``reading`` gets what the step yields."""
        evaluated, outputs = [], []
        for share in shares:
            sequence = share.sequence
            one = Evaluated(sequence, sequence.n_past, share.n_rows, share.draft)
            evaluated.append(one)
            sequence.slot.n_resident = sequence.n_past = sequence.n_past + share.n_rows
            if sequence.request.reports_progress and not sequence.n_generated:
                events.append(sequence.progress(now))
            if sequence.n_past == sequence.tokens.size or sequence.is_scoring:
                outputs.append(one)
        ended = self._sample(outputs, reading, events, now) if outputs else ()
        speculator = self._finisher.speculator
        if speculator is not None and not speculator.learn_rest(0.0 if reading.n_prefill else reading.decode):
            times = StepTimes(reading.n_sequences, reading.plain, reading.decode) if not reading.n_prefill else None
            speculator.learn(evaluated, times)
        for sequence, reason, failure in ended:
            self._finisher.finish(sequence, reason, events, now, failure)

    def _sample(
        self, outputs: list[Evaluated], reading: StepReading, events: list[RequestEvent], now: float
    ) -> list[_End]:
        """Sample for each sequence; return those that end."""
        n_rows, is_greedy = len(outputs), False
        for one in outputs:
            n_rows += len(one.draft)
            if one.sequence.is_scoring:
                n_rows += one.n_rows - 1
            is_greedy = is_greedy or one.sequence.sampler.is_plain_greedy
        logits = self._context.logits(n_rows)
        greedy = logits.argmax(axis=1).tolist() if is_greedy else None
        first = 0
        ended: list[_End] = []
        for one in outputs:
            sequence = one.sequence
            try:
                if sequence.is_scoring:
                    rows = logits[first : first + one.n_rows]
                    first += one.n_rows - 1
                    self._score(one, rows, events)
                    if sequence.n_pending:
                        first += 1
                        continue
                # The first token belongs to the prompt.
                is_decoding = sequence.n_generated > 0 and one.n_rows == 1 + sequence.n_replay
                end = first + 1 + len(one.draft)
                reason = self._verify(one, logits[first:end], greedy[first:end] if greedy else None, events, now)
                self._keep(one, reading, is_decoding=is_decoding)
                if reason is not None:
                    ended.append((sequence, reason, None))
            except (BrokenLogits, GrammarLost) as error:
                self._slots.clear(sequence.slot)  # its contents are unusable
                one.choices, one.n_accepted = [], 0
                ended.append((sequence, FinishReason.FAILED, _failure(sequence, error)))
            first += 1 + len(one.draft)
        return ended

    def _score(self, one: Evaluated, logits: npt.NDArray[np.float32], events: list[RequestEvent]) -> None:
        """Report the log probabilities of prompt tokens that rows predict; ``logits`` have shape (n_rows, n_vocab)."""
        sequence = one.sequence
        # Rows that a preempted prompt evaluates again have been reported before. The last row of a prompt predicts the
        # reply.
        first, end = sequence.n_scored, min(sequence.n_past + 1, sequence.n_prompt)
        found = []
        for token, row in zip(sequence.tokens.view[first:end].tolist(), logits[first - one.start - 1 :], strict=False):
            if not math.isfinite(row.max()):
                raise BrokenLogits
            found.append(sequence.sampler.logprobs(row, token))
        sequence.n_scored = max(first, end)
        events.append(PromptScored(sequence.id, tuple(found)))

    def _verify(
        self,
        one: Evaluated,
        logits: npt.NDArray[np.float32],
        greedy: list[int] | None,
        events: list[RequestEvent],
        now: float,
    ) -> FinishReason | None:
        """Sample along the drafted tokens that agree (sample-and-match); return why the sequence ends, if it does.

        Each token is the target's own sample given the tokens before it, so the text is distributed as without
        drafts, whatever was drafted. ``greedy`` has the most likely token of each row, if any request wants it.
        """
        sequence, draft, choices = one.sequence, one.draft, one.choices
        sampler = sequence.sampler
        logprobs: tuple[TokenLogprob, ...]
        reason = FinishReason.LENGTH if sequence.is_exhausted else None
        while reason is None:
            row = one.n_accepted
            if greedy is not None and sampler.is_plain_greedy and (token := greedy[row]) not in sampler.banned:
                logprobs = ()
                if not math.isfinite(logits.item(row, token)):
                    raise BrokenLogits
            else:
                token, logprobs = self._choose(sequence, logits[row])
            choices.append(token)
            is_drafted = row < len(draft) and token == draft[row]
            reason = self._take(sequence, token, logprobs, events, now, is_drafted)
            if token in self._end_tokens or not is_drafted:
                break
            one.n_accepted += 1
            sequence.n_past += 1
        return reason

    def _keep(self, one: Evaluated, reading: StepReading, *, is_decoding: bool) -> None:
        """Take back rejected drafts, and count what was drafted and chosen."""
        sequence, slot, n_drafted = one.sequence, one.sequence.slot, len(one.draft)
        n_new = len(one.choices)
        sequence.n_replay = 0
        if one.n_accepted < n_drafted:
            n_held = self._slots.memory.take_back(slot.id, sequence.n_past)
            sequence.n_replay = sequence.n_past - n_held if n_held else 0
            sequence.n_past = n_held
        slot.n_resident = sequence.n_past
        sequence.n_drafted += n_drafted
        sequence.n_accepted += one.n_accepted
        reading.n_sampled += n_new
        reading.n_drafted += n_drafted
        reading.n_accepted += one.n_accepted
        if is_decoding:
            reading.book(sequence.account, n_new)

    def _choose(self, sequence: Sequence, logits: npt.NDArray[np.float32]) -> tuple[int, tuple[TokenLogprob, ...]]:
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
        is_drafted: bool,
    ) -> FinishReason | None:
        """Add a token to its sequence and pass on its text; return why the sequence ends with it, if it does."""
        if not sequence.first_token_at:
            sequence.first_token_at = sequence.last_token_at = now
        if token in self._end_tokens:
            if sequence.request.prompt_logprobs:  # who scores a prompt expects a token behind it, as of other servers
                events.append(Token(sequence.id, "", 0, logprobs))
            return FinishReason.STOP
        sequence.last_token_at = now
        sequence.tokens.append(token)
        sequence.n_generated += 1
        sequence.n_unreported += 1
        text = sequence.text.feed(self._pieces[token] or sequence.shown.get(token, b""))
        if text or logprobs:
            ttft = sequence.ttft if sequence.n_unreported == sequence.n_generated else 0.0
            events.append(Token(sequence.id, text, sequence.n_unreported, logprobs, is_drafted, ttft))
            sequence.n_unreported = 0
        if sequence.text.stop is not None:
            return FinishReason.STOP
        if sequence.request.constraint is not None and sequence.sampler.is_over:
            return FinishReason.STOP
        if sequence.is_exhausted or sequence.tokens.size >= self._n_ctx:
            return FinishReason.LENGTH
        return None


def _failure(sequence: Sequence, error: BrokenLogits | GrammarLost) -> Failure:
    """Return the failure: a grammar that cannot be followed is the request's own error, so a retry would not help."""
    constraint = sequence.request.constraint
    if constraint is None or isinstance(error, BrokenLogits):
        return Failure(FailureKind.INTERNAL, error.message)
    return Failure(FailureKind.BAD_REQUEST, error.message, constraint.field)
