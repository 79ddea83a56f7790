"""The engines of one process: the loaded model with its slots, its draft model (spark), and the embedder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from core.engine.embedder import Embedder, Prepared, PreparedEmbedding
from core.engine.engine import Engine
from core.engine.slot_files import SlotFiles
from core.values.errors import BadRequest
from core.values.messages import Answer, LaneCount, RequestEvent, Snapshot, Started, StepRequest
from core.values.request import DetokenizeRequest, EmbedRequest, Request, SlotRequest, TokenizeRequest
from models.formatting.sentence import Sentence

# Weight of the latest step in the moving average of the draft engine's step time.
_STEP_WEIGHT = 0.1
# Seconds that a batch for vectors may take while chats run: half of the longest step.
_LONGEST_BATCH = 0.05
# Seconds between two looks of an idle engine at whether the file of a slot was read or written.
_FILE_PAUSE = 0.02


class Engines:
    """Steps the engines in turn. ``prepare`` and ``answer`` may be called from any thread, the rest from one.

    While the fast lane decodes on the loaded model, the other engines use only the time that it can spare.
    """

    def __init__(self, main: Engine, embedder: Embedder, open_spark: Callable[[], Engine] | None = None) -> None:
        """``open_spark`` makes the draft model's engine for its first request; None: there is none."""
        self._embedder = embedder
        self.main = main
        self._slot_files = SlotFiles(main.slots, main.n_ctx)
        self._open_spark = open_spark
        self._spark: Engine | None = None
        self._n_sharing = 1
        self._opening = threading.Lock()
        self._n_prepared = 0
        self._step_seconds = 0.0

    def prepare(self, request: StepRequest) -> Prepared:
        """Return what ``submit`` takes. Raises BadRequest, and LoadFailed where memory is short."""
        self._n_prepared += 1
        if isinstance(request, EmbedRequest):
            return self._embedder.prepare(request)
        if isinstance(request, SlotRequest):
            return self._slot_files.prepare(request)
        return self._engine_of(request).prepare(request)

    def answer(self, request: TokenizeRequest | DetokenizeRequest) -> Answer:
        """Return the answer to a request that needs no step; raises BadRequest."""
        return self.main.answer(request)

    def submit(self, prepared: Prepared, submitted_at: float | None = None) -> None:
        """Queue a request with the engine that it is for."""
        if isinstance(prepared, PreparedEmbedding):
            self._embedder.submit(prepared)
            return
        if isinstance(prepared, SlotRequest):
            self._slot_files.submit(prepared)
            return
        engine = self._engine_of(prepared.request)
        engine.share_cores(self._n_sharing)  # it may have been opened since they were counted
        engine.submit(prepared, submitted_at)

    def cancel(self, request_id: str) -> None:
        """End a request at the next step; unknown ids are ignored."""
        self.main.cancel(request_id)
        self._embedder.cancel(request_id)
        if self._spark is not None:
            self._spark.cancel(request_id)

    def end_thoughts(self, request_id: str) -> None:
        """Let a request whose thoughts are bounded go on to its answer; unknown ids are ignored."""
        self.main.end_thoughts(request_id)
        if self._spark is not None:
            self._spark.end_thoughts(request_id)

    def share_cores(self, n_engines: int) -> None:
        """Use this process's part of the cores while ``n_engines`` compute; the engines here take turns."""
        self._n_sharing = n_engines
        for engine in (self.main, self._embedder, self._spark):
            if engine is not None:
                engine.share_cores(n_engines)

    @property
    def is_idle(self) -> bool:
        """True where a step would do nothing."""
        is_spark_idle = self._spark is None or self._spark.is_idle
        return self.main.is_idle and is_spark_idle and self._embedder.is_idle

    def activity(self) -> int | None:
        """Return a count that grows with each step and with each request that is prepared; None while work is left."""
        n_steps = self.main.stats.n_steps + self._embedder.n_steps
        n_done = self._n_prepared + n_steps + (self._spark.stats.n_steps if self._spark is not None else 0)
        return n_done if self.is_idle else None

    def step(self) -> list[RequestEvent]:
        """Step each engine that has work; return what happened."""
        began, is_pause = time.perf_counter(), self._slot_files.needs_step
        events = self._slot_files.step()
        if is_pause:
            self.main.book_pause(time.perf_counter() - began)
        events += self.main.step()
        spark = self._spark
        if spark is not None and not spark.is_idle and self.main.can_pause(self._step_seconds):
            began = time.perf_counter()
            events += self._numbered(spark.step())
            seconds = time.perf_counter() - began
            self._step_seconds += _STEP_WEIGHT * (seconds - self._step_seconds)
            self.main.book_pause(seconds)
        embedder = self._embedder
        if not embedder.is_idle and self.main.can_pause(_LONGEST_BATCH):
            is_alone = self.main.is_idle and (spark is None or spark.is_idle)
            if is_alone or not embedder.can_wait:
                began = time.perf_counter()
                events += embedder.step(None if is_alone else _LONGEST_BATCH)
                self.main.book_pause(time.perf_counter() - began)
        return events

    def write_back(self) -> float | None:
        """While idle, write texts to RAM and disk, as ``Engine.write_back`` does."""
        seconds = self.main.write_back()
        if not self._slot_files.n_open:
            return seconds
        return _FILE_PAUSE if seconds is None else min(seconds, _FILE_PAUSE)

    def take_snapshot(self) -> Snapshot | None:
        """Return a snapshot of the loaded model, or of the draft model's engine while only that one works."""
        snapshot = self.main.take_snapshot()
        spark = self._spark
        if spark is None:
            return snapshot
        if self.main.is_idle:
            snapshot = spark.take_snapshot() or snapshot
        if snapshot is None:
            return None
        counts = self.main.scheduler.lane_counts()
        return replace(
            snapshot,
            lanes=(*counts, LaneCount("spark", len(spark.scheduler.running), spark.scheduler.waiting.size)),
            n_steps=self.main.stats.n_steps + spark.stats.n_steps,
            n_shares=self.main.stats.n_shares + spark.stats.n_shares,
            n_drafts=self.main.stats.n_drafts,
        )

    def close(self) -> None:
        """Free all engines; those that use the loaded model's weights first."""
        if self._spark is not None:
            self._spark.close()
        self._embedder.close()
        self.main.close()

    def _numbered(self, events: list[RequestEvent]) -> list[RequestEvent]:
        """Return the events of the draft model's engine, with its slots numbered after those of the loaded model."""
        n_slots = len(self.main.slots)
        return [replace(one, slot=n_slots + one.slot) if isinstance(one, Started) else one for one in events]

    def _engine_of(self, request: Request) -> Engine:
        if not request.by_draft:
            return self.main
        with self._opening:
            if self._spark is None:
                if self._open_spark is None:
                    raise BadRequest(
                        Sentence("No small model that can answer alone is paired with this model."), param="speed"
                    )
                self._spark = self._open_spark()
        return self._spark
