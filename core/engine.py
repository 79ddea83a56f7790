"""The engine: one step plans, runs and commits the work of every request."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import BadRequest, BrokenLogits, PromptTooLong, SlipstreamError
from core.events import Ended, Failure, FailureKind, FinishReason, RequestEvent, Started, Token, TokenLogprob
from core.keyed_noise import draw_seed
from core.llama.batch import Batch
from core.llama.candidates import Candidates
from core.llama.context import Context, DecodeStatus
from core.llama.model import Model
from core.llama.vocab import Vocab
from core.planner import Plan, Share, halve_prefill, has_prefill, plan
from core.prefill_pace import PrefillPace
from core.request import Request
from core.sampler import Sampler
from core.sequence import Sequence
from core.slots import SlotTable

_log = logging.getLogger(__name__)
_FAILURES_BEFORE_RESTART = 2


class EngineBroken(SlipstreamError):
    """llama.cpp failed to compute repeatedly: only a fresh process can help."""


@dataclass(slots=True)
class StepStats:
    """Where the time went since the start: seconds in all steps, and inside ``llama_decode`` and its wait."""

    n_steps: int = 0
    n_rows: int = 0
    total: float = 0.0
    decode: float = 0.0

    @property
    def own(self) -> float:
        """Seconds of our own Python."""
        return self.total - self.decode


class Engine:
    """Runs requests on one model by continuous batching. Everything but ``tokenize`` belongs to one thread."""

    def __init__(
        self,
        model: Model,
        vocab: Vocab,
        context: Context,
        *,
        n_ctx: int,
        n_slots: int,
        n_ubatch: int = 512,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take over ``model`` and ``context``: ``close`` frees them. ``n_ctx`` bounds each request."""
        self.n_ctx = n_ctx
        self.vocab = vocab
        self.stats = StepStats()
        self._model = model
        self._context = context
        self._clock = clock
        self._batch = Batch(context.n_batch)
        self._candidates = Candidates(vocab.n_tokens)
        self._slots = SlotTable(context, n_slots, can_cut=not model.is_recurrent)
        self._pace = PrefillPace(n_ubatch)
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
        decode_before = self.stats.decode
        events: list[RequestEvent] = []
        self._end_cancelled(events, began)
        self._admit(events, began)
        todo = plan(self._running, self._batch.capacity, self._pace.chunk)
        if todo:
            done = self._run(todo, events)
            self._commit(done, events)
        ended = self._clock()
        if todo:
            self.stats.n_steps += 1
            self.stats.total += ended - began
            self._pace_from(todo, self.stats.decode - decode_before)
        return events

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

    def _commit(self, shares: Plan, events: list[RequestEvent]) -> None:
        """Count the evaluated rows, sample where a prompt or token is complete, and say so."""
        now = self._clock()
        outputs = [share.sequence for share in shares if share.wants_output]
        for share in shares:
            sequence = share.sequence
            sequence.n_past += share.n_rows
            assert sequence.slot is not None
            sequence.slot.n_resident = sequence.n_past
        if not outputs:
            return
        logits = self._context.logits(len(outputs))
        greedy = logits.argmax(axis=1) if any(s.sampler.is_plain_greedy for s in outputs) else None
        for row, sequence in enumerate(outputs):
            try:
                self._advance(sequence, logits[row], int(greedy[row]) if greedy is not None else -1, events, now)
            except BrokenLogits as error:
                assert sequence.slot is not None
                self._slots.clear(sequence.slot)  # nobody may go on from what it holds
                failure = Failure(FailureKind.INTERNAL, error.message)
                self._end(sequence, FinishReason.FAILED, events, now, failure)

    def _advance(
        self, sequence: Sequence, logits: npt.NDArray[np.float32], best: int, events: list[RequestEvent], now: float
    ) -> None:
        """Sample one token of a sequence and pass on its text."""
        if sequence.is_exhausted:
            self._end(sequence, FinishReason.LENGTH, events, now)
            return
        sampler = sequence.sampler
        logprobs: tuple[TokenLogprob, ...] = ()
        if sampler.is_plain_greedy:
            token = best
            if not math.isfinite(logits[token]):
                raise BrokenLogits
        else:
            raw = logits.copy() if sampler.params.logprobs else logits
            token = sampler.choose(logits, len(sequence.tokens), self._candidates)
            sampler.accept(token, logits)
            if sampler.params.logprobs:
                logprobs = (sampler.logprobs(raw, token),)
        if not sequence.first_token_at:
            sequence.first_token_at = now
        sequence.last_token_at = now
        if token in self.vocab.end_tokens:
            self._end(sequence, FinishReason.STOP, events, now)
            return
        sequence.tokens.append(token)
        sequence.n_generated += 1
        sequence.n_unreported += 1
        text = sequence.text.feed(self.vocab.pieces[token])
        if text or logprobs:
            events.append(Token(sequence.id, text, sequence.n_unreported, logprobs))
            sequence.n_unreported = 0
        if sequence.text.stop is not None:
            self._end(sequence, FinishReason.STOP, events, now)
        elif sequence.is_exhausted or len(sequence.tokens) >= self.n_ctx:
            self._end(sequence, FinishReason.LENGTH, events, now)

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
        if sequence.slot is not None:
            self._slots.release(sequence.slot)
            self._running.remove(sequence)
            sequence.slot = None
        else:
            self._waiting.remove(sequence)
        self._is_under_pressure = False
        text = sequence.text.flush()
        events.append(Ended(sequence.id, reason, text, sequence.text.stop, failure, sequence.receipt(now)))
        sequence.sampler.close()

    def _fail(self, shares: Plan, message: str, events: list[RequestEvent]) -> None:
        now = self._clock()
        for share in shares:
            failure = Failure(FailureKind.INTERNAL, message)
            self._end(share.sequence, FinishReason.FAILED, events, now, failure)

    def _make_room(self, shares: Plan, events: list[RequestEvent]) -> Plan:
        """No KV cells were free: forget an idle slot, else prefill less, else push back the latest request."""
        if self._slots.drop_idle():
            return shares
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

    def _pace_from(self, shares: Plan, seconds: float) -> None:
        n_prefill = sum(share.n_rows for share in shares if share.n_rows > 1)
        self._pace.observe(len(shares), n_prefill, seconds)

    def close(self) -> None:
        """Free samplers, context and model, in this order."""
        for sequence in self._by_id.values():
            sequence.sampler.close()
        self._by_id.clear()
        self._waiting.clear()
        self._running.clear()
        self._context.close()
        self._model.close()
