"""The engine: one step plans, runs and commits the work of every request."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.cost_model import CostModel
from core.errors import BadRequest, BrokenLogits, PromptTooLong, SlipstreamError
from core.events import Ended, Failure, FailureKind, FinishReason, RequestEvent, Started, Token, TokenLogprob
from core.keyed_noise import draw_seed
from core.llama.batch import Batch
from core.llama.candidates import Candidates
from core.llama.context import Context, DecodeStatus
from core.llama.model import Model
from core.llama.vocab import Vocab
from core.meter import Meter, Occupancy, Reading
from core.planner import (
    Plan,
    Share,
    Work,
    drop_drafts,
    halve_prefill,
    has_drafts,
    has_prefill,
    plan,
    prefill_chunk,
    work_of,
)
from core.receipt import Receipt
from core.request import Request
from core.sampler import Sampler
from core.sequence import Sequence
from core.slots import SlotTable
from core.snapshot import Snapshot
from core.speculative.drafter import Chain
from core.speculative.speculator import Speculator

_log = logging.getLogger(__name__)
_FAILURES_BEFORE_RESTART = 2


class EngineBroken(SlipstreamError):
    """llama.cpp failed to compute repeatedly: only a fresh process can help."""


@dataclass(slots=True)
class StepStats:
    """Where the time went since the start: seconds in all steps, inside the target's ``llama_decode``, drafting."""

    n_steps: int = 0
    n_rows: int = 0
    n_tokens: int = 0
    n_sampled: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    total: float = 0.0
    decode: float = 0.0
    draft: float = 0.0

    @property
    def own(self) -> float:
        """Seconds of our own Python in planning and committing."""
        return self.total - self.decode - self.draft


class Engine:
    """Runs requests on one model by continuous batching. Everything but ``tokenize`` belongs to one thread."""

    def __init__(
        self,
        model: Model,
        vocab: Vocab,
        context: Context,
        *,
        cost: CostModel,
        meter: Meter,
        n_ctx: int,
        n_slots: int,
        n_ubatch: int = 512,
        speculator: Speculator | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take over ``model``, ``context`` and ``speculator``: ``close`` frees them.

        ``cost`` predicts the context's step times and learns from each; ``meter`` takes a reading of each. ``n_ctx``
        bounds each request.
        """
        self.cost = cost
        self.meter = meter
        self.n_ctx = n_ctx
        self.vocab = vocab
        self.stats = StepStats()
        self._model = model
        self._context = context
        self._clock = clock
        self._batch = Batch(context.n_batch)
        self._candidates = Candidates(vocab.n_tokens)
        self._slots = SlotTable(context, n_slots, can_cut=not model.is_recurrent)
        self._n_ubatch = n_ubatch
        self._speculator = speculator
        self._order = itertools.count()
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._by_id: dict[str, Sequence] = {}
        self._cancelled: set[str] = set()
        self._is_under_pressure = False
        self._n_failures = 0

    # -- requests -----------------------------------------------------------------------------------------------

    def tokenize(self, request: Request) -> npt.NDArray[np.int32]:
        """Return the prompt's tokens. Raises PromptTooLong and BadRequest. Safe on any thread."""
        if isinstance(request.prompt, str):
            # No token has more bytes than the longest piece, so an absurdly long text is refused unread.
            n_least = len(request.prompt.encode("utf-8", "replace")) // self.vocab.longest_piece
            if n_least >= self.n_ctx:
                raise PromptTooLong(n_least, self.n_ctx, at_least=True)
            tokens = self.vocab.tokenize(request.prompt)
        else:
            bad = next((token for token in request.prompt if not 0 <= token < self.vocab.n_tokens), None)
            if bad is not None:
                raise BadRequest(
                    f"{bad} is no token: this model has tokens 0 to {self.vocab.n_tokens - 1}.", param="prompt"
                )
            tokens = np.array(request.prompt, np.int32)
        if not len(tokens):
            raise BadRequest("The prompt is empty: send at least one token of text.", param="prompt")
        if len(tokens) >= self.n_ctx:
            raise PromptTooLong(len(tokens), self.n_ctx)
        return tokens

    def submit(self, request: Request, tokens: npt.NDArray[np.int32], submitted_at: float | None = None) -> None:
        """Queue a request whose prompt was tokenised; ``submitted_at`` is on the engine's clock."""
        params = request.sampling
        seed = draw_seed() if params.seed is None else params.seed
        sampler = Sampler(self._model, self.vocab, params, seed, self.n_ctx)
        for token in tokens[len(tokens) - min(len(tokens), sampler.memory_length) :]:
            sampler.accept(int(token))
        now = self._clock() if submitted_at is None else submitted_at
        sequence = Sequence(request, tokens, sampler, order=next(self._order), submitted_at=now)
        self._by_id[request.id] = sequence
        self._waiting.append(sequence)

    def cancel(self, request_id: str) -> None:
        """End a request at the next step; unknown ids are ignored."""
        if request_id in self._by_id:
            self._cancelled.add(request_id)

    @property
    def is_idle(self) -> bool:
        """True where a step would do nothing."""
        return not self._by_id

    @property
    def n_steps(self) -> int:
        """Steps made so far."""
        return self.stats.n_steps

    @property
    def n_running(self) -> int:
        """Requests that have a slot."""
        return len(self._running)

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a slot."""
        return len(self._waiting)

    # -- the step -----------------------------------------------------------------------------------------------

    def step(self) -> list[RequestEvent]:
        """Evaluate one batch and return what happened, in order."""
        began = self._clock()
        decode_before, draft_before = self.stats.decode, self.stats.draft
        events: list[RequestEvent] = []
        self._end_cancelled(events, began)
        self._admit(events, began)
        chains = self._draft()
        drafts = {request_id: tuple(chain.tokens) for request_id, chain in chains.items()}
        todo = plan(self._running, self._batch.capacity, self._chunk(), drafts)
        done = self._run(todo, events)
        if done:
            work = work_of(done)
            decode, draft = self.stats.decode - decode_before, self.stats.draft - draft_before
            draft_bytes = self._speculator.take_bytes_read() if self._speculator is not None else 0
            reading = self.meter.read(done, decode, draft, draft_bytes)
            before = replace(self.stats)
            self._commit(done, chains, reading, events)
            self._learn(work, decode, self.stats.n_tokens - before.n_tokens)
            self._record(reading, began, before)
        if todo:
            self.stats.n_steps += 1
            self.stats.total += self._clock() - began
        return events

    def take_snapshot(self) -> Snapshot | None:
        """Return what the last second was like, where it is time to say so again."""
        now = self._clock()
        if not self.meter.is_due(now, self.is_idle):
            return None
        occupancy = Occupancy(self.n_running, self.n_waiting, self._slots.n_resident, self._context.n_cells)
        if self._speculator is None:
            return self.meter.snapshot(now, self.is_idle, occupancy)
        totals = self._speculator.stats
        return self.meter.snapshot(now, self.is_idle, occupancy, totals.drafted_at, totals.accepted_at)

    def _record(self, reading: Reading, began: float, before: StepStats) -> None:
        now = self.stats
        n_sampled, n_drafted = now.n_sampled - before.n_sampled, now.n_drafted - before.n_drafted
        self.meter.record(reading, began, self._clock(), n_sampled, n_drafted, now.n_accepted - before.n_accepted)

    def _chunk(self) -> int:
        """Return how many prefill rows the next step may have."""
        decoding = [sequence for sequence in self._running if sequence.n_pending == 1]
        if len(decoding) == len(self._running):
            return 0
        widest = self._n_ubatch if decoding else self._batch.capacity
        return prefill_chunk(self.cost, len(decoding), sum(s.n_past + 1 for s in decoding), widest)

    def _draft(self) -> dict[str, Chain]:
        """Return what speculation proposes for the requests that decode."""
        if self._speculator is None:
            return {}
        decoding = [sequence for sequence in self._running if sequence.n_pending == 1 and sequence.n_generated]
        if not decoding:
            return {}
        began = self._clock()
        kv = sum(sequence.n_past + 1 for sequence in decoding)
        room = min(self._context.n_outputs, self._batch.capacity) - len(self._running)
        n_rows = len(decoding) + (self._chunk() if len(decoding) < len(self._running) else 0)
        chains = self._speculator.draft(decoding, n_rows, kv, room)
        self.stats.draft += self._clock() - began
        return chains

    def _end_cancelled(self, events: list[RequestEvent], now: float) -> None:
        while self._cancelled:
            self._end(self._by_id[self._cancelled.pop()], FinishReason.CANCELLED, events, now)

    def _admit(self, events: list[RequestEvent], now: float) -> None:
        """Give slots to waiting requests. While memory is short nobody new joins: it would push others out."""
        while self._waiting and self._slots.has_free and not (self._is_under_pressure and self._running):
            sequence = self._waiting.popleft()
            sequence.slot, sequence.n_past = self._slots.take(sequence.tokens)
            self._running.append(sequence)
            if not sequence.was_started:
                sequence.was_started = True
                sequence.started_at = now
                sequence.n_cached = sequence.n_past
                events.append(Started(sequence.id, sequence.n_prompt, sequence.n_cached))

    def _run(self, shares: Plan, events: list[RequestEvent]) -> Plan:
        """Evaluate the plan, or as much of it as fits into the cache; return what was evaluated."""
        while shares:
            status = self._decode(shares)
            if status is DecodeStatus.OK:
                self._n_failures = 0
                return shares
            if status is DecodeStatus.NO_KV_SLOT:
                shares = self._make_room(shares, events)
                continue
            self._resync(shares)
            if status is DecodeStatus.INVALID_BATCH:
                self._fail(shares, "The engine made an invalid batch. This is a bug in Slipstream.", events)
            elif status is not DecodeStatus.ABORTED:
                self._count_failure(status)
            return ()
        return ()

    def _decode(self, shares: Plan) -> DecodeStatus:
        batch = self._batch
        batch.clear()
        for share in shares:
            sequence = share.sequence
            slot = sequence.slot
            assert slot is not None
            if sequence.n_pending == 1:
                batch.add(sequence.tokens.last, sequence.n_past, slot.id)
                for offset, token in enumerate(share.draft, 1):
                    batch.add(token, sequence.n_past + offset, slot.id)
            else:
                rows = sequence.tokens.view[sequence.n_past : sequence.n_past + share.n_rows]
                batch.add_run(rows, sequence.n_past, slot.id, share.wants_output)
        began = self._clock()
        status = self._context.decode(batch)
        if status is DecodeStatus.OK and batch.n_outputs:
            self._context.synchronize()
        self.stats.decode += self._clock() - began
        self.stats.n_rows += batch.n_tokens
        return status

    def _commit(self, shares: Plan, chains: dict[str, Chain], reading: Reading, events: list[RequestEvent]) -> None:
        """Count the evaluated rows, sample where a prompt or token is complete, and say so."""
        now = self._clock()
        outputs = [(share, share.n_outputs) for share in shares if share.wants_output]
        for share in shares:
            share.sequence.n_past += share.n_rows
            assert share.sequence.slot is not None
            share.sequence.slot.n_resident = share.sequence.n_past
        if not outputs:
            return
        logits = self._context.logits(sum(n_outputs for _, n_outputs in outputs))
        greedy = logits.argmax(axis=1) if any(s.sequence.sampler.is_plain_greedy for s, _ in outputs) else None
        row = 0
        for share, n_outputs in outputs:
            rows = slice(row, row + n_outputs)
            row = rows.stop
            try:
                best = greedy[rows] if greedy is not None else None
                self._verify(share, logits[rows], best, chains, reading, events, now)
            except BrokenLogits as error:
                assert share.sequence.slot is not None
                self._slots.clear(share.sequence.slot)  # nobody may go on from what it holds
                failure = Failure(FailureKind.INTERNAL, error.message)
                self._end(share.sequence, FinishReason.FAILED, events, now, failure)

    def _verify(
        self,
        share: Share,
        logits: npt.NDArray[np.float32],
        greedy: npt.NDArray[np.intp] | None,
        chains: dict[str, Chain],
        reading: Reading,
        events: list[RequestEvent],
        now: float,
    ) -> None:
        """Sample a sequence's rows one after the other for as long as its drafted tokens agree (sample-and-match).

        Each token is the target's own sample given the tokens before it, so the text is distributed as without
        drafts, whatever was drafted.
        """
        sequence, slot = share.sequence, share.sequence.slot
        assert slot is not None
        if self._speculator is not None and not sequence.n_generated:
            self._speculator.admit(sequence)
        reason: FinishReason | None = None
        tokens: list[int] = []
        n_accepted = n_sampled = 0
        for index in range(len(logits)):
            if sequence.is_exhausted:
                reason = FinishReason.LENGTH
                break
            token, logprobs = self._choose(sequence, logits[index], int(greedy[index]) if greedy is not None else -1)
            n_sampled += 1
            reason = self._take(sequence, token, logprobs, events, now)
            if token in self.vocab.end_tokens:
                break
            tokens.append(token)
            if index == len(share.draft) or token != share.draft[index]:
                break
            n_accepted += 1
            sequence.n_past += 1
            if reason is not None:
                break
        slot.n_resident = sequence.n_past
        if n_accepted < len(share.draft) and not self._context.remove(slot.id, sequence.n_past):
            self._slots.clear(slot)
            sequence.n_past = 0
        sequence.n_drafted += len(share.draft)
        sequence.n_accepted += n_accepted
        self.stats.n_sampled += n_sampled
        self.stats.n_drafted += len(share.draft)
        self.stats.n_accepted += n_accepted
        self.stats.n_tokens += len(tokens)
        if share.n_rows == 1:
            reading.book(sequence.account, n_sampled)
        if self._speculator is not None:
            self._speculator.verified(sequence, chains.get(sequence.id) if share.draft else None, tokens, n_accepted)
        if reason is not None:
            self._end(sequence, reason, events, now)

    def _choose(
        self, sequence: Sequence, logits: npt.NDArray[np.float32], best: int
    ) -> tuple[int, tuple[TokenLogprob, ...]]:
        """Return a sequence's next token and its log probabilities if they were asked for."""
        sampler = sequence.sampler
        if sampler.is_plain_greedy:
            if not math.isfinite(logits[best]):
                raise BrokenLogits
            return best, ()
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
        if token in self.vocab.end_tokens:
            return FinishReason.STOP
        sequence.tokens.append(token)
        sequence.n_generated += 1
        sequence.n_unreported += 1
        text = sequence.text.feed(self.vocab.pieces[token])
        if text or logprobs:
            events.append(Token(sequence.id, text, sequence.n_unreported, logprobs))
            sequence.n_unreported = 0
        if sequence.text.stop is not None:
            return FinishReason.STOP
        if sequence.is_exhausted or len(sequence.tokens) >= self.n_ctx:
            return FinishReason.LENGTH
        return None

    # -- ends and trouble ---------------------------------------------------------------------------------------

    def _end(
        self,
        sequence: Sequence,
        reason: FinishReason,
        events: list[RequestEvent],
        now: float,
        failure: Failure | None = None,
    ) -> None:
        del self._by_id[sequence.id]
        self._cancelled.discard(sequence.id)
        if self._speculator is not None:
            self._speculator.forget(sequence)
        if sequence.slot is not None:
            self._slots.release(sequence.slot)
            self._running.remove(sequence)
            sequence.slot = None
            self._is_under_pressure = False
        else:
            self._waiting.remove(sequence)
        text = sequence.text.flush()
        events.append(Ended(sequence.id, reason, text, sequence.text.stop, failure, self._receipt(sequence, now)))
        sequence.sampler.close()

    def _receipt(self, sequence: Sequence, now: float) -> Receipt:
        account = sequence.account
        share = self.meter.share_of_peak(account.bytes_per_second)
        return replace(
            sequence.receipt(now),
            bytes_per_token=account.bytes_per_token,
            peak_share=None if self.meter.is_in_cache else share,
            speedup=account.speedup,
        )

    def _fail(self, shares: Plan, message: str, events: list[RequestEvent]) -> None:
        now = self._clock()
        for share in shares:
            failure = Failure(FailureKind.INTERNAL, message)
            self._end(share.sequence, FinishReason.FAILED, events, now, failure)

    def _make_room(self, shares: Plan, events: list[RequestEvent]) -> Plan:
        """No KV cells were free: forget an idle slot, else drop drafts, prefill less, push back the latest request."""
        if self._slots.drop_idle():
            return shares
        if has_drafts(shares):
            return drop_drafts(shares)
        less = halve_prefill(shares)
        if less and has_prefill(shares):
            return less
        victim = max(self._running, key=lambda sequence: sequence.order)
        if len(self._running) == 1:
            message = f"The KV cache is full: {len(victim.tokens)} tokens do not fit. Load the model with more cells."
            self._fail((Share(victim, 1),), message, events)
            return ()
        self._push_back(victim)
        return tuple(share for share in shares if share.sequence is not victim)

    def _push_back(self, sequence: Sequence) -> None:
        """Take a request's cells; it keeps its tokens and goes on from them when others have ended."""
        assert sequence.slot is not None
        self._slots.clear(sequence.slot)
        self._slots.release(sequence.slot)
        sequence.slot = None
        sequence.n_past = 0
        self._running.remove(sequence)
        self._waiting.appendleft(sequence)
        self._is_under_pressure = True

    def _resync(self, shares: Plan) -> None:
        """After a failed decode, believe the cache about what it holds."""
        for share in shares:
            sequence, slot = share.sequence, share.sequence.slot
            assert slot is not None
            held = self._context.last_position(slot.id) + 1
            # The last pending token must be evaluated again: its logits are lost. A running state is lost as a whole.
            sequence.n_past = min(held, len(sequence.tokens) - 1) if self._slots.can_cut else 0
            if held > sequence.n_past and not self._context.remove(slot.id, sequence.n_past):
                self._slots.clear(slot)
                sequence.n_past = 0
            slot.n_resident = sequence.n_past

    def _count_failure(self, status: DecodeStatus) -> None:
        self._n_failures += 1
        _log.error("llama_decode failed with %s (%d in a row)", status.name, self._n_failures)
        if self._n_failures >= _FAILURES_BEFORE_RESTART:
            raise EngineBroken(f"llama.cpp failed to compute: {status.name.lower().replace('_', ' ')}")

    def _learn(self, work: Work, seconds: float, n_tokens: int) -> None:
        """Let the cost model and speculation learn from a step."""
        self.cost.observe(work.n_rows, work.kv, seconds)
        if self._speculator is not None and not work.n_prefill:
            self._speculator.step_done(work.n_sequences, n_tokens, seconds, work.kv_plain)

    def close(self) -> None:
        """Free samplers, context and model, in this order."""
        for sequence in self._by_id.values():
            sequence.sampler.close()
        self._by_id.clear()
        self._waiting.clear()
        self._running.clear()
        if self._speculator is not None:
            self._speculator.close()
        self._context.close()
        self._model.close()
