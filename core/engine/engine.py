"""The engine: one step plans, runs and commits the work of every request."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from core.cost.calibration import MeasuredContext
from core.cost.cost_model import attended
from core.engine.committer import Committer, RequestFinisher
from core.engine.image_steps import ImageSteps
from core.engine.meter import Meter, StepFeedback, StepReading, StepStats
from core.engine.model_runner import ModelRunner
from core.kv_cache.memory import MOST_REPLAYED
from core.kv_cache.prefix_tree import is_image
from core.kv_cache.slot_table import SlotTable
from core.llama.context import LoraAdapters
from core.scheduler.fast_lane import PiggybackScheduler
from core.scheduler.images import ImageEncoder
from core.scheduler.input_processor import InputProcessor, PreparedRequest, convert
from core.scheduler.planner import (
    NO_DRAFTS,
    Share,
    StepPlan,
    cut_at_checkpoints,
    cut_at_images,
    cut_at_outputs,
    leading_requests,
    plan,
    prefill_chunk,
    step_latency_target,
    without_stranded_drafts,
)
from core.scheduler.scheduler import Scheduler
from core.scheduler.sequence import Sequence
from core.speculation.draft_length import StepCapacity
from core.speculation.proposers.draft_model import DraftModelProposer
from core.speculation.speculator import Speculator
from core.values.errors import BadRequest, SlipstreamError
from core.values.messages import (
    Answer,
    CacheMiss,
    Ended,
    FinishReason,
    Logprob,
    PromptScored,
    RequestEvent,
    Snapshot,
    Started,
    TokenLogprob,
)
from core.values.request import DetokenizeRequest, Lane, Request, SamplingParams, TokenizeRequest

# Seconds that a step waits for the disk, or for an image, while no request can go on.
_LONGEST_WAIT = 0.01
# Seconds between two looks of an idle engine at whether the disk is done.
_WRITE_PAUSE = 0.05


class Engine:
    """Runs requests on one model by continuous batching. Everything but ``tokenize`` belongs to one thread."""

    def __init__(
        self,
        own: MeasuredContext,
        intake: InputProcessor,
        slots: SlotTable,
        meter: Meter,
        speculator: Speculator | None = None,
        images: ImageEncoder | None = None,
    ) -> None:
        """Take over ``own``, ``slots``, ``speculator``, ``images`` and the model of ``intake``: ``close`` frees them.

        The cost model of ``own`` learns from each step, and ``meter`` takes a reading of each. Set ``owns_model`` to
        False if the model is freed elsewhere.
        """
        context, clock = own.context, own.clock
        self.owns_model = True
        self.cost = own.cost
        self.meter = meter
        self.slots = slots
        self.model, self.vocab, self.n_ctx = intake.model, intake.vocab, intake.n_ctx
        self.stats = StepStats()
        self._intake = intake
        self.context = context
        self._clock = clock
        self.scheduler = Scheduler(slots)
        self._usual_lora: tuple[float, ...] = ()
        self.threads = own.threads
        self.feedback = StepFeedback(own.cost, own.observe, meter, slots)
        self.speculator = speculator
        self.finisher = RequestFinisher(self.scheduler, meter, speculator)
        self.runner = ModelRunner(context, self.scheduler, self.finisher, clock, images)
        self._images = ImageSteps(images, self.scheduler, self.finisher) if images is not None else None
        self._committer = Committer(intake, context, slots, self.finisher)
        self.piggyback = PiggybackScheduler(own.cost)
        self._order = itertools.count()
        self._cancelled: set[str] = set()
        self._has_written = False
        # When the last step was committed and when it ended; None if the engine has been idle since.
        self._committed_at: float | None = None
        self._ended_at: float | None = None

    # -- requests -----------------------------------------------------------------------------------------------

    def tokenize(self, request: Request) -> npt.NDArray[np.int32]:
        """Return the prompt's tokens. Raises PromptTooLong and BadRequest. Safe on any thread."""
        return self._intake.tokenize(request)

    def answer(self, request: TokenizeRequest | DetokenizeRequest) -> Answer:
        """Return the answer to a request that needs no step; raises BadRequest. Safe on any thread."""
        return convert(request, self.vocab, self._intake.images)

    def prepare(self, request: Request, tokens: npt.NDArray[np.int32] | None = None) -> PreparedRequest:
        """Return what ``submit`` takes; ``tokens`` are the prompt's if they are known. Safe on any thread.

        Raises PromptTooLong and BadRequest.
        """
        if request.lora and len(request.lora) != len(self._usual_lora):
            raise BadRequest(f"This model has {len(self._usual_lora)} LoRA adapters.", param="lora")
        return self._intake.prepare(request, tokens)

    def submit(self, prepared: PreparedRequest, submitted_at: float | None = None) -> Sequence:
        """Queue a request; ``submitted_at`` is on the engine's clock. The sequence is for reading: do not change it."""
        now = self._clock() if submitted_at is None else submitted_at
        sequence = Sequence(prepared, order=next(self._order), submitted_at=now)
        sequence.lora = sequence.lora or self._usual_lora
        self.scheduler.add(sequence)
        return sequence

    def cancel(self, request_id: str) -> None:
        """End a request at the next step; unknown ids are ignored."""
        if request_id in self.scheduler:
            self._cancelled.add(request_id)

    def end_thoughts(self, request_id: str) -> None:
        """Let a request whose thoughts are bounded go on to its answer; unknown ids are ignored."""
        if request_id in self.scheduler:
            self.scheduler[request_id].sampler.end_thoughts()

    def share_cores(self, n_engines: int) -> None:
        """Use this engine's part of the cores while ``n_engines`` compute; a projector goes on with all of them."""
        if self.threads is not None:
            self.threads.share(n_engines)
        if self.speculator is not None:
            for proposer in self.speculator.paid:
                proposer.share_cores(n_engines)

    def use_adapters(self, adapters: LoraAdapters) -> None:
        """Compute with these LoRA adapters from now on, at their usual scales unless a request has its own."""
        self._usual_lora = adapters.scales
        self.scheduler.change_lora = partial(adapters.apply, self.context)
        self.scheduler.use_lora(adapters.scales)

    def forget_texts(self) -> None:
        """Drop all that the cache (on disk too) and the proposers keep of earlier texts."""
        self.slots.forget_idle()
        if self.speculator is not None:
            self.speculator.clear()

    def next_logits(self, tokens: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
        """Return the logits after ``tokens``, shape (n_vocab,), by one plain evaluation of all of them.

        The engine must be idle. Raises SlipstreamError where llama.cpp or the model cannot compute them.
        """
        assert self.is_idle
        self.forget_texts()
        greedy = SamplingParams(temperature=0)
        request = Request("next logits", tuple(tokens.tolist()), max_tokens=1, sampling=greedy, speculates=False)
        self.submit(self.prepare(request, tokens))
        while not self.is_idle:
            for event in self.step():
                if isinstance(event, Ended) and event.failure is not None:
                    raise SlipstreamError(event.failure.message)
        logits: npt.NDArray[np.float32] = self.context.logits(1)[0].copy()
        return logits

    @property
    def is_idle(self) -> bool:
        """True where a step would do nothing."""
        return not len(self.scheduler)

    @property
    def draft_model(self) -> DraftModelProposer | None:
        """The draft model; None if there is none."""
        return self.speculator.draft_model if self.speculator is not None else None

    def can_pause(self, seconds: float) -> bool:
        """Return whether requests of the fast lane, if there are any, can wait ``seconds`` for something else."""
        return self.is_idle or self.piggyback.can_pause(seconds)

    def book_pause(self, seconds: float) -> None:
        """Record that the engine's thread was elsewhere for ``seconds`` after a step."""
        self.piggyback.book_pause(seconds)
        if self._committed_at is not None and self._ended_at is not None:
            self._committed_at += seconds
            self._ended_at += seconds

    # -- the step -----------------------------------------------------------------------------------------------

    def step(self) -> list[RequestEvent]:
        """Evaluate one batch and return what happened, in order."""
        began = self._clock()
        events: list[RequestEvent] = []
        scheduler, runner, stats = self.scheduler, self.runner, self.stats
        if self._cancelled:
            self._end_cancelled(events, began)
        if scheduler.waiting.size:
            for sequence in scheduler.admit(began):
                self._start(sequence, events, began)

        running = scheduler.running if self._images is None else self._images.prepare(events, began)
        leaders = leading_requests(running)
        todo, draft_seconds = self._plan(running, leaders)
        if not todo:
            self._wait_for_work()
            return events
        is_pause = todo[0].sequence.image is not None and todo[0].sequence.lane is not Lane.FAST
        planned, before = self._clock(), runner.seconds

        done = runner.run(todo, events)
        decode_seconds = runner.seconds - before

        reading = self._commit(done, began, decode_seconds, draft_seconds, events) if done else None
        ended = self._clock()
        stats.n_steps += 1
        stats.n_shares += len(done)
        stats.plan += planned - began - draft_seconds
        stats.decode += decode_seconds
        stats.draft += draft_seconds
        stats.total += ended - began
        self._end_step(reading, began, ended, draft_seconds)
        if leaders is running:
            self.piggyback.stop()
        elif is_pause:
            self.piggyback.book_pause(ended - began)
        elif done:
            self.piggyback.observe(done, began, ended, draft_seconds)
        if not len(scheduler):
            self.piggyback.stop()
            self.feedback.stop()
        return events

    def _wait_for_work(self) -> None:
        """Wait for the image or the part of a text without which no request can go on."""
        self._committed_at = self._ended_at = None
        if self._images is not None and self.scheduler.running:
            self._images.encoder.wait(_LONGEST_WAIT)
        elif self.scheduler.waiting.size:
            self.slots.store.wait(_LONGEST_WAIT)

    def _start(self, sequence: Sequence, events: list[RequestEvent], now: float) -> None:
        """Begin to work on a request that has just got a slot; report its start if it is its first one."""
        sequence.rode_at = self.piggyback.n_rides
        if sequence.was_started:
            return
        sequence.was_started = True
        sequence.started_at = now
        sequence.n_cached = sequence.n_past
        sequence.cache_miss = self._cache_miss(sequence)
        events.append(Started(sequence.id, sequence.n_prompt, sequence.n_cached, sequence.slot.id))
        if sequence.request.reports_progress:
            events.append(sequence.progress(now))
        if sequence.request.prompt_logprobs:
            token = int(sequence.tokens.view[0])
            first = Logprob(token, self.vocab.pieces[token], math.nan)
            events.append(PromptScored(sequence.id, (TokenLogprob(first, ()),)))

    def _cache_miss(self, sequence: Sequence) -> CacheMiss | None:
        if sequence.divergence is None:
            return None
        position, *parted = sequence.divergence
        pieces = self.vocab.pieces
        stored, prompt = (
            b"".join([b"" if is_image(token) else pieces[token] for token in tokens]).decode("utf-8", "replace")
            for tokens in parted
        )
        return CacheMiss(position, stored, prompt)

    def _plan(self, running: list[Sequence], leaders: list[Sequence]) -> tuple[StepPlan, float]:
        """Return the rows of the next step, and the seconds that drafting took. ``running`` are those at text."""
        if self._images is not None and len(running) < len(self.scheduler.running):
            image = self._next_image(self._images, running, has_leaders=leaders is not running)
            if image is not None:
                return (image,), 0.0
        decoding = [sequence for sequence in leaders if sequence.n_pending == 1 or not sequence.is_prefilling]
        chunk = self._chunk(decoding, leaders) if len(decoding) < len(leaders) else 0
        is_scoring = len(decoding) < len(running) and any(sequence.is_scoring for sequence in running)
        # A prompt that is scored needs the outputs that drafts would use.
        drafts, draft_seconds = (NO_DRAFTS, 0.0) if is_scoring else self._draft(decoding, chunk, len(leaders))
        todo = plan(leaders, self.runner.capacity, chunk, drafts)
        if leaders is not running:
            todo += self._riding(todo, running)
        if len(decoding) < len(running):
            todo = cut_at_checkpoints(todo)
            if self._images is not None:
                todo = cut_at_images(todo)
            if is_scoring:
                todo = cut_at_outputs(todo, self.context.n_outputs)
        if drafts and self.slots.memory.has_snapshots:
            todo = without_stranded_drafts(todo, self.context.n_ubatch)
        return todo, draft_seconds

    def _draft(
        self, decoding: list[Sequence], chunk: int, n_sharing: int
    ) -> tuple[Mapping[str, tuple[int, ...]], float]:
        """Return the drafts by request id, beside ``chunk`` prefill rows, and the seconds that drafting took.

        ``n_sharing`` requests wait for the step to end. The cache must be able to drop drafts that are rejected.
        """
        speculator = self.speculator
        if speculator is None or speculator.rest(decoding):
            return NO_DRAFTS, 0.0
        # A request without a token yet still evaluates the last row of its prompt.
        decoding = [sequence for sequence in decoding if sequence.n_generated]
        speculating = [sequence for sequence in decoding if sequence.request.may_draft]
        if not speculating:
            return NO_DRAFTS, 0.0
        began, n_running = self._clock(), len(self.scheduler.running)
        n_rows, memory = len(decoding) + chunk, self.slots.memory
        memory.n_decoding = len(decoding)
        room = self.context.n_outputs - n_running
        if memory.replays:
            # Rows that a rejection loses are replayed in the next step, where new requests may need rows too.
            n_replay = sum([sequence.n_replay for sequence in decoding])
            room -= n_replay + len(self.slots) - n_running
            n_rows += n_replay
            speculating = [sequence for sequence in speculating if sequence.n_replay <= MOST_REPLAYED]
        drafts: Mapping[str, tuple[int, ...]] = NO_DRAFTS
        if speculating:
            kv = sum([sequence.n_past + 1 for sequence in decoding])
            target = step_latency_target(decoding)
            is_for_all = len(speculating) == len(decoding)
            beside = () if is_for_all else [sequence for sequence in decoding if sequence not in speculating]
            n_reading = n_sharing - len(decoding)
            step = StepCapacity(n_rows, kv, room, memory.n_even, beside, n_reading, target)
            drafts = speculator.propose(speculating, step)
            for sequence in speculating if drafts and memory.replays else ():
                # What a rejection goes back to. If rows are replayed, it was saved before them.
                if sequence.id in drafts and not sequence.n_replay:
                    memory.mark(sequence.slot.id, sequence.n_past)
        return drafts, self._clock() - began

    def _next_image(self, images: ImageSteps, running: list[Sequence], *, has_leaders: bool) -> Share | None:
        """Return the image rows of the next step; those of other lanes run only if the fast lane can wait."""

        def may_run(sequence: Sequence, n_rows: int) -> bool:
            seconds = self.cost.time(n_rows, attended(n_rows, sequence.n_past))
            return not has_leaders or sequence.lane is Lane.FAST or self.piggyback.can_pause(seconds)

        decoding = [sequence for sequence in running if not sequence.is_prefilling]
        return images.next_share(self._chunk(decoding, running), is_alone=not running, may_run=may_run)

    def _commit(
        self,
        done: StepPlan,
        began: float,
        decode_seconds: float,
        draft_seconds: float,
        events: list[RequestEvent],
    ) -> StepReading:
        now = self._clock()
        since = began if self._committed_at is None else self._committed_at
        self._committed_at = now
        speculator = self.speculator
        draft_bytes = speculator.take_bytes_read() if speculator is not None else 0
        reading = self.meter.read(done, decode_seconds, draft_seconds, draft_bytes, now - since)
        reading.began, reading.ended, reading.has_waited = began, now, self.runner.has_waited
        self._committer.commit(done, reading, events, now)
        self.stats.n_sampled += reading.n_sampled
        if reading.n_drafted:
            self.stats.n_drafts += sum([bool(share.draft) for share in done])
        self.feedback.add(reading)
        self.slots.after_step()
        return reading

    def _end_step(self, reading: StepReading | None, began: float, ended: float, draft_seconds: float) -> None:
        """End a step: learn what our own code took, and the time of a plain step; record when it ended."""
        if reading is not None and reading.n_rows == reading.n_sequences:
            since = began if self._ended_at is None else self._ended_at
            self.cost.plain.saw(reading.n_rows, reading.kv, ended - since - draft_seconds, reading.decode)
        elif reading is not None and reading.n_drafted and not reading.n_prefill and self.speculator is not None:
            own_seconds = ended - began - reading.decode - draft_seconds
            self.speculator.learn_commit(own_seconds, reading.n_sampled, reading.n_sequences)
        self._ended_at = ended
        if reading is None or not len(self.scheduler):
            self._committed_at = self._ended_at = None

    def _riding(self, leaders: StepPlan, running: list[Sequence]) -> StepPlan:
        riders = [sequence for sequence in running if sequence.lane is not Lane.FAST]
        n_rows = sum([share.n_rows + len(share.draft) for share in leaders])
        if not riders:
            return ()
        return self.piggyback.add_riders(leaders, riders, self.runner.capacity - n_rows)

    def write_back(self) -> float | None:
        """While idle, write texts to RAM and disk; return in how many seconds to call again, None: nothing is left."""
        if self.slots.write_back():
            self._has_written = True
            return 0.0
        if self.slots.store.is_writing:
            self._has_written = True
            return _WRITE_PAUSE
        if self._has_written:
            self._has_written = False
            self.meter.mark_changed()
            return 0.0
        return None

    def take_snapshot(self) -> Snapshot | None:
        """Return a snapshot of the last second if one is due, else None."""
        now = self._clock()
        if self.is_idle:
            self.feedback.flush()
        if not self.meter.is_due(now, self.is_idle):
            return None
        self.feedback.flush()
        slots, n_cells = self.slots, self.context.n_cells
        totals = self.speculator.stats if self.speculator is not None else None
        known = Snapshot(
            is_idle=self.is_idle,
            n_active=len(self.scheduler.running),
            n_waiting=self.scheduler.waiting.size,
            lanes=self.scheduler.lane_counts(),
            # Cells that texts share count for each.
            n_cells_used=min(slots.n_resident, n_cells),
            n_cells=n_cells,
            cache_ram_bytes=slots.store.n_ram_bytes,
            drafted_at=tuple(totals.drafted_at) if totals is not None else (),
            accepted_at=tuple(totals.accepted_at) if totals is not None else (),
            n_steps=self.stats.n_steps,
            n_shares=self.stats.n_shares,
            n_drafts=self.stats.n_drafts,
        )
        return self.meter.snapshot(now, known)

    def _chunk(self, decoding: list[Sequence], running: list[Sequence]) -> int:
        """Return how many prefill rows the next step of ``running`` may have beside those that decode."""
        kv = sum([sequence.n_past + 1 for sequence in decoding])
        # It is not known yet which prompt gets the rows, so they are priced as those of the one that is read furthest.
        n_past = max([sequence.n_past for sequence in running if sequence.is_prefilling], default=0)
        target = step_latency_target(decoding)
        # llama.cpp evaluates at most an ubatch at a time: with more rows, new requests would only wait longer.
        return prefill_chunk(self.cost, len(decoding), kv, self.context.n_ubatch, target, n_past)

    def _end_cancelled(self, events: list[RequestEvent], now: float) -> None:
        while self._cancelled:
            request_id = self._cancelled.pop()
            if request_id in self.scheduler:
                self.finisher.finish(self.scheduler[request_id], FinishReason.CANCELLED, events, now)

    def close(self) -> None:
        """Free samplers, context and model, in this order."""
        for sequence in self.scheduler:
            sequence.sampler.close()
        if self.speculator is not None:
            self.speculator.close()
        if self._images is not None:
            self._images.encoder.close()
        self.slots.store.close()
        self.context.close()
        if self.owns_model:
            self.model.close()
