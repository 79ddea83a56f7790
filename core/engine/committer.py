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
from core.scheduler.planner import Share, StepPlan
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
        """Remove ended requests from ``scheduler`` and ``speculator``; ``meter`` helps with receipts."""
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
            ttft=first - sequence.submitted_at if first else 0.0,
            prefill=(first or now) - started,
            decode=sequence.last_token_at - first if first else 0.0,
            total=now - sequence.submitted_at,
            seed=sequence.sampler.seed,
            bytes_per_token=account.bytes_per_token,
            peak_share=None if meter.is_in_cache else meter.share_of_peak(account.bytes_per_second),
            speedup=account.speedup if sequence.n_drafted else 1.0,
            plain_seconds=None if meter.is_disturbed else account.plain_seconds,
            cache_miss=sequence.cache_miss,
            kv_type=meter.kv_type,
        )


class _Sampled:
    """The result of a step for one sequence: the target's tokens, how many were drafted, and why the sequence ends."""

    __slots__ = ("choices", "draft", "failure", "n_accepted", "n_before", "reason", "sequence", "start")

    def __init__(self, share: Share) -> None:
        sequence = share.sequence
        self.sequence, self.draft = sequence, share.draft
        # Where the evaluated rows begin.
        self.start = sequence.n_past - share.n_rows
        self.n_before = sequence.n_generated
        self.choices: list[int] = []
        self.n_accepted = 0
        self.reason: FinishReason | None = None
        self.failure: Failure | None = None


class Committer:
    """Commits evaluated plans: counts rows, samples tokens, takes back rejected drafts, ends what is complete."""

    def __init__(self, intake: InputProcessor, context: Context, slots: SlotTable, finisher: RequestFinisher) -> None:
        """Read logits of ``context``; ``intake`` has vocabulary and length."""
        vocab = intake.vocab
        self._pieces, self._end_tokens = vocab.pieces, vocab.end_tokens
        self._context = context
        self._candidates = Candidates(vocab.n_tokens)
        self._slots = slots
        self._finisher = finisher
        self._n_ctx = intake.n_ctx

    def commit(self, shares: StepPlan, reading: StepReading, events: list[RequestEvent], now: float) -> None:
        """Count the evaluated rows, sample where none is pending, and learn; ``reading`` gets what the step yields."""
        outputs = []
        for share in shares:
            sequence, slot = share.sequence, share.sequence.slot
            slot.n_resident = sequence.n_past = sequence.n_past + share.n_rows
            if sequence.request.reports_progress and not sequence.n_generated:
                events.append(sequence.progress(now))
            if sequence.n_past == sequence.tokens.size or sequence.is_scoring:
                outputs.append(share)
        results = self._sample(outputs, reading, events, now) if outputs else {}
        speculator = self._finisher.speculator
        if speculator is not None and not speculator.learn_rest(0.0 if reading.n_prefill else reading.decode):
            times = StepTimes(reading.n_sequences, reading.plain, reading.decode) if not reading.n_prefill else None
            speculator.learn([_evaluated(share, results.get(share.sequence.id)) for share in shares], times)
        for result in results.values():
            if result.reason is not None:
                self._finisher.finish(result.sequence, result.reason, events, now, result.failure)

    def _sample(
        self, outputs: list[Share], reading: StepReading, events: list[RequestEvent], now: float
    ) -> dict[str, _Sampled]:
        """Sample for each share; return the results by request id."""
        n_rows, is_greedy = len(outputs), False
        for share in outputs:
            n_rows += len(share.draft)
            if share.sequence.is_scoring:
                n_rows += share.n_rows - 1
            is_greedy = is_greedy or share.sequence.sampler.is_plain_greedy
        logits = self._context.logits(n_rows)
        greedy = logits.argmax(axis=1).tolist() if is_greedy else None
        first, results = 0, {}
        for share in outputs:
            sequence, result = share.sequence, _Sampled(share)
            try:
                if sequence.is_scoring:
                    rows = logits[first : first + share.n_rows]
                    first += share.n_rows - 1
                    self._score(share, rows, events)
                    if sequence.n_pending:
                        first += 1
                        continue
                results[sequence.id] = result
                end = first + 1 + len(share.draft)
                self._verify(result, logits[first:end], greedy[first:end] if greedy else None, events, now)
                self._keep(share, result, reading)
            except (BrokenLogits, GrammarLost) as error:
                self._slots.clear(sequence.slot)  # its contents are unusable
                results[sequence.id] = result
                result.reason, result.failure = FinishReason.FAILED, _failure(sequence, error)
                result.choices, result.n_accepted = [], 0
            first += 1 + len(share.draft)
        return results

    def _score(self, share: Share, logits: npt.NDArray[np.float32], events: list[RequestEvent]) -> None:
        """Report the log probabilities of prompt tokens that rows predict; ``logits`` have shape (n_rows, n_vocab)."""
        sequence, start = share.sequence, share.sequence.n_past - share.n_rows
        # Rows that a preempted prompt evaluates again have been reported before. The last row of a prompt predicts the
        # reply.
        first, end = sequence.n_scored, min(sequence.n_past + 1, sequence.n_prompt)
        found = []
        for token, row in zip(sequence.tokens.view[first:end].tolist(), logits[first - start - 1 :], strict=False):
            if not math.isfinite(row.max()):
                raise BrokenLogits
            found.append(sequence.sampler.logprobs(row, token))
        sequence.n_scored = max(first, end)
        events.append(PromptScored(sequence.id, tuple(found)))

    def _verify(
        self,
        result: _Sampled,
        logits: npt.NDArray[np.float32],
        greedy: list[int] | None,
        events: list[RequestEvent],
        now: float,
    ) -> None:
        """Sample a sequence's rows along the drafted tokens that agree (sample-and-match).

        Each token is the target's own sample given the tokens before it, so the text is distributed as without
        drafts, whatever was drafted. ``greedy`` has the most likely token of each row, if any request wants it.
        """
        sequence, draft, choices = result.sequence, result.draft, result.choices
        sampler = sequence.sampler
        logprobs: tuple[TokenLogprob, ...]
        result.reason = FinishReason.LENGTH if sequence.is_exhausted else None
        while result.reason is None:
            row = result.n_accepted
            if greedy is not None and sampler.is_plain_greedy and (token := greedy[row]) not in sampler.banned:
                logprobs = ()
                if not math.isfinite(logits.item(row, token)):
                    raise BrokenLogits
            else:
                token, logprobs = self._choose(sequence, logits[row])
            choices.append(token)
            is_drafted = result.n_accepted < len(draft) and token == draft[result.n_accepted]
            result.reason = self._take(sequence, token, logprobs, events, now, is_drafted)
            if token in self._end_tokens or not is_drafted:
                break
            result.n_accepted += 1
            sequence.n_past += 1

    def _keep(self, share: Share, result: _Sampled, reading: StepReading) -> None:
        """Take back rejected drafts, and count what was drafted and chosen."""
        sequence, slot, n_drafted = share.sequence, share.sequence.slot, len(share.draft)
        n_new = len(result.choices)
        # The first token belongs to the prompt.
        is_decoding = result.n_before > 0 and share.n_rows == 1 + sequence.n_replay
        sequence.n_replay = 0
        if result.n_accepted < n_drafted:
            n_held = self._slots.memory.take_back(slot.id, sequence.n_past)
            sequence.n_replay = sequence.n_past - n_held if n_held else 0
            sequence.n_past = n_held
        slot.n_resident = sequence.n_past
        sequence.n_drafted += n_drafted
        sequence.n_accepted += result.n_accepted
        reading.n_sampled += n_new
        reading.n_drafted += n_drafted
        reading.n_accepted += result.n_accepted
        if is_decoding:
            reading.book(sequence.account, n_new)

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
            events.append(Token(sequence.id, text, sequence.n_unreported, logprobs, is_drafted))
            sequence.n_unreported = 0
        if sequence.text.stop is not None:
            return FinishReason.STOP
        if sequence.request.constraint is not None and sequence.sampler.is_over:
            return FinishReason.STOP
        if sequence.is_exhausted or sequence.tokens.size >= self._n_ctx:
            return FinishReason.LENGTH
        return None


def _evaluated(share: Share, result: _Sampled | None) -> Evaluated:
    """Return what speculation learns from a share and its sampled tokens."""
    sequence = share.sequence
    if result is None:
        return Evaluated(sequence, sequence.n_past - share.n_rows, share.n_rows, share.draft)
    return Evaluated(sequence, result.start, share.n_rows, share.draft, result.choices, result.n_accepted)


def _failure(sequence: Sequence, error: BrokenLogits | GrammarLost) -> Failure:
    """Return the failure: a grammar that cannot be followed is the request's own error, so a retry would not help."""
    constraint = sequence.request.constraint
    if constraint is None or isinstance(error, BrokenLogits):
        return Failure(FailureKind.INTERNAL, error.message)
    return Failure(FailureKind.BAD_REQUEST, error.message, constraint.field)
